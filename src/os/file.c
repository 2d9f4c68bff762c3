/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading and recognising files. */
#include "config.h"

#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "os/inside.h"
#include "os/real.h"
#include "os/signals.h"

struct file_id file_identify(int fd)
{
	struct file_id id = { 0 };
	int saved_errno = errno;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		id = (struct file_id){ st.st_dev, st.st_ino, st.st_mode };
	errno = saved_errno;
	return id;
}

bool file_identify_socket(int fd, ino_t *inode_out, uid_t *owner_out)
{
	struct stat st = { 0 };
	int saved_errno = errno;
	bool is_open = fstat(fd, &st) == 0;

	*inode_out = is_open ? st.st_ino : 0;
	*owner_out = is_open ? st.st_uid : 0;
	errno = saved_errno;
	return is_open;
}

bool file_is_inherited(int fd)
{
	int flags = real.fcntl(fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Numbers above those that select() can name, and low enough that the kernel's own
 * table of fds does not cost the process much memory. */
enum { PREFERRED_LOW = 2048, ROOM = 64 };

/* Under a limit that forbids those there are lower ones. */
int file_high_begins(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 2 * ROOM ?
		       (int)MIN(limit.rlim_cur, (rlim_t)PREFERRED_LOW) - ROOM :
		       3;
}

/* Most programs have a limit that allows what we prefer, and it is not asked for. */
int file_duplicate_high(int fd)
{
	int high = real.fcntl(fd, F_DUPFD_CLOEXEC, PREFERRED_LOW);

	if (high < 0)
		high = real.fcntl(fd, F_DUPFD_CLOEXEC, file_high_begins());

	if (high < 0)
		high = real.fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (high >= 0)
		return high;
	/* a limit below that is an invalid argument to the kernel */
	return errno == EINVAL ? -EMFILE : -errno;
}

/* Up to `size` bytes, or negative errno. */
static ssize_t read_all(int fd, char *buf, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = inside_read(fd, buf + len, size - len);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return n;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static int read_regular(int fd, size_t max, char **text_out, size_t *len_out)
{
	struct stat st;
	ssize_t len;
	char *text;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((size_t)st.st_size > max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	len = read_all(fd, text, (size_t)st.st_size);
	if (len < 0) {
		free(text);
		return (int)len;
	}
	text[len] = '\0';
	*text_out = text;
	*len_out = (size_t)len;
	return 0;
}

int file_read(const char *path, size_t max, char **text_out, size_t *len_out)
{
	/* O_NONBLOCK: a FIFO without a writer must not stop the program. */
	int fd = inside_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			     0);
	int err;

	if (fd < 0)
		return fd;
	err = read_regular(fd, max, text_out, len_out);
	inside_close(fd);
	return err;
}

ssize_t file_peek(const char *path, char *buf, size_t size)
{
	int fd = inside_open(path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t len;

	if (fd < 0)
		return fd;
	len = read_all(fd, buf, size);
	inside_close(fd);
	return len;
}

bool file_is_there(const char *path)
{
	return access(path, R_OK) == 0;
}

static int map_reserved(int fd, size_t size, void **mem_out)
{
	int err;

	/* the umask may have removed some of these bits */
	if (fchmod(fd, 0600) != 0)
		return -errno;
	err = posix_fallocate(fd, 0, (off_t)size);
	if (err)
		return -err;
	*mem_out = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return *mem_out == MAP_FAILED ? -errno : 0;
}

int file_map_new(const char *path, size_t size, void **mem_out,
		 struct file_id *id_out)
{
	struct signals_quiet quiet;
	int fd, err;

	unlink(path);
	/* O_EXCL does not follow a link that somebody has put there */
	fd = inside_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	signals_quiet_begin(&quiet);
	err = map_reserved(fd, size, mem_out);
	signals_quiet_end(&quiet);
	if (err)
		unlink(path);
	else if (id_out)
		*id_out = file_identify(fd);
	inside_close(fd);
	return err;
}

bool file_leads_to(const char *path, const char *text)
{
	char link[64];
	ssize_t len = readlink(path, link, sizeof(link));

	return len >= 0 && (size_t)len == strlen(text) &&
	       memcmp(link, text, (size_t)len) == 0;
}

/* Gives the names of the entries to `fn`, at most `max`. Returns how many. */
static unsigned tell_names(const char *buf, size_t len, unsigned max,
			   void (*fn)(void *ctx, const char *name), void *ctx)
{
	unsigned cnt = 0;

	while (len && cnt < max) {
		const struct dirent64 *entry = (const void *)buf;

		fn(ctx, entry->d_name);
		cnt++;
		len -= entry->d_reclen;
		buf += entry->d_reclen;
	}
	return cnt;
}

/* Not by opendir, which takes memory from the program's allocator. */
void file_for_names(const char *dir, unsigned max,
		    void (*fn)(void *ctx, const char *name), void *ctx)
{
	int fd = inside_open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	_Alignas(struct dirent64) char buf[2048];
	unsigned done = 0;
	ssize_t len;

	if (fd < 0)
		return;
	while (done < max && (len = getdents64(fd, buf, sizeof(buf))) > 0)
		done += tell_names(buf, (size_t)len, max - done, fn, ctx);
	inside_close(fd);
}

/* Returns where to go on; `next` if there was nothing from there on. */
static int tell_fds(const char *buf, size_t len, int next,
		    int (*fn)(void *ctx, int fd), void *ctx)
{
	while (len) {
		const struct dirent64 *entry = (const void *)buf;
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd >= next)
			next = fn(ctx, fd);
		len -= entry->d_reclen;
		buf += entry->d_reclen;
	}
	return next;
}

/* In this directory the place of an fd is its number behind "." and "..". */
void file_for_fds(int first, int (*fn)(void *ctx, int fd), void *ctx)
{
	int dir = inside_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			      0);
	/* a few, since what comes behind them may be skipped */
	_Alignas(struct dirent64) char buf[256];
	int next = first, before;
	ssize_t len;

	if (dir < 0)
		return;
	do {
		before = next;
		if (lseek(dir, 2 + (off_t)next, SEEK_SET) < 0)
			break;
		len = getdents64(dir, buf, sizeof(buf));
		if (len > 0)
			next = tell_fds(buf, (size_t)len, next, fn, ctx);
	} while (next > before);
	inside_close(dir);
}

/* Gives the whole lines of the first `len` bytes to `fn`. Returns where what is left
 * begins. */
static size_t tell_lines(char *buf, size_t len,
			 void (*fn)(void *ctx, const char *line), void *ctx)
{
	char *line = buf, *end;

	while ((end = memchr(line, '\n', len - (size_t)(line - buf)))) {
		*end = '\0';
		fn(ctx, line);
		line = end + 1;
	}
	return (size_t)(line - buf);
}

void file_for_lines(const char *path, void (*fn)(void *ctx, const char *line),
		    void *ctx)
{
	int fd = inside_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			     0);
	/* The beginning of the line was left out, so is the rest. */
	bool is_too_long = false;
	size_t len = 0, begin;
	char buf[1001];
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read_all(fd, buf + len, sizeof(buf) - len)) > 0) {
		len += (size_t)n;
		begin = 0;
		if (is_too_long) {
			char *end = memchr(buf, '\n', len);

			begin = end ? (size_t)(end + 1 - buf) : len;
			is_too_long = !end;
		}
		begin += tell_lines(buf + begin, len - begin, fn, ctx);
		if (begin == 0 && len == sizeof(buf)) {
			is_too_long = true;
			begin = len;
		}
		len -= begin;
		memmove(buf, buf + begin, len);
	}
	inside_close(fd);
}

bool file_read_own(const char *path, void *buf, size_t size,
		   struct file_id *id_out)
{
	/* A FIFO must not stop the program, and a link would lead elsewhere. */
	int fd = inside_open(path,
			     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
				     O_NOCTTY,
			     0);
	struct stat st;
	bool is_read;

	if (fd < 0)
		return false;
	is_read = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		  (st.st_uid == geteuid() || geteuid() == 0) &&
		  inside_read(fd, buf, size) == (ssize_t)size;
	*id_out = (struct file_id){ st.st_dev, st.st_ino, st.st_mode };
	inside_close(fd);
	return is_read;
}

/* The file is ours alone, and whoever fills it holds the lock. */
static int read_secret(int fd, void *buf, size_t len)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IRWXG | S_IRWXO))
		return -EPERM;
	if (pread(fd, buf, len, 0) == (ssize_t)len)
		return 0;
	/* it is new, or who made it has died */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return -errno;
	if (pread(fd, buf, len, 0) == (ssize_t)len)
		return 0;
	if (getrandom(buf, len, 0) != (ssize_t)len ||
	    pwrite(fd, buf, len, 0) != (ssize_t)len)
		return -EIO;
	return 0;
}

int file_secret(const char *path, void *buf, size_t len)
{
	int fd = inside_open(path,
			     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC |
				     O_NONBLOCK | O_NOCTTY,
			     0600);
	struct signals_quiet quiet;
	int err;

	if (fd < 0)
		return fd;
	signals_quiet_begin(&quiet);
	err = read_secret(fd, buf, len);
	signals_quiet_end(&quiet);
	/* a child that is forked meanwhile has the lock, too */
	(void)flock(fd, LOCK_UN);
	inside_close(fd);
	return err;
}

bool file_remove_same(const char *path, const struct file_id *id)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_ino == id->ino &&
	       st.st_dev == id->dev && unlink(path) == 0;
}

void file_give(const char *path, const struct file_id *id, uid_t user)
{
	int fd = inside_open(path,
			     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
				     O_NOCTTY,
			     0);
	struct file_id its;

	if (fd < 0)
		return;
	its = file_identify(fd);
	if (file_is_same(&its, id))
		(void)!fchown(fd, user, (gid_t)-1);
	inside_close(fd);
}

void file_remove(const char *path)
{
	unlink(path);
}

int file_make_empty(const char *path)
{
	int fd = inside_open(path,
			     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
				     O_NONBLOCK | O_NOCTTY,
			     0644);

	if (fd < 0)
		return fd;
	inside_close(fd);
	return 0;
}

int file_append(const char *path, const char *text, size_t len)
{
	int fd = inside_open(path,
			     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
				     O_NONBLOCK | O_NOCTTY,
			     0644);
	struct signals_quiet quiet;
	ssize_t n;

	if (fd < 0)
		return fd;
	signals_quiet_begin(&quiet);
	n = inside_write(fd, text, len);
	signals_quiet_end(&quiet);
	if (n != (ssize_t)len)
		n = n < 0 ? n : -EIO;
	inside_close(fd);
	return (int)MIN(n, 0);
}

ino_t file_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

bool file_is_in_memory(const char *dir)
{
	struct statfs st;

	return statfs(dir, &st) == 0 && st.f_type == TMPFS_MAGIC;
}

bool file_may_make(const char *dir)
{
	return eaccess(dir, W_OK | X_OK) == 0;
}

off_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}
