/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

TEST(identity_tells_files_apart)
{
	int fds[2];
	struct file_id a, b, none = file_identify(-1);

	CHECK_EQ(pipe(fds), 0);
	a = file_identify(fds[0]);
	b = file_identify(STDIN_FILENO);
	CHECK(file_is_same(&a, &a));
	CHECK(!file_is_same(&a, &b));
	CHECK(!file_is_same(&none, &none));
	close(fds[0]);
	close(fds[1]);
}

/* The owner is who has the rights, and not who has started the program. */
TEST(a_socket_has_its_makers_rights)
{
	uid_t own = geteuid(), other = own ? own : 12345, owner;
	ino_t inode;
	int fd;

	CHECK_EQ(seteuid(other), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(seteuid(own), 0);
	CHECK(file_identify_socket(fd, &inode, &owner));
	CHECK_EQ(owner, other);
	CHECK_EQ(inode, file_identify(fd).ino);
	close(fd);
	errno = 7;
	CHECK(!file_identify_socket(fd, &inode, &owner));
	CHECK_EQ(errno, 7);
	CHECK_EQ(inode + owner, 0);
}

TEST(read_returns_the_whole_file)
{
	char path[] = "/tmp/vma_file_XXXXXX", *text;
	int fd = mkstemp(path);
	size_t len;

	CHECK_EQ(write(fd, "abc", 3), 3);
	close(fd);
	CHECK_EQ(file_read(path, 3, &text, &len), 0);
	CHECK_EQ(len, 3);
	CHECK_STR(text, "abc");
	free(text);
	CHECK_EQ(file_read(path, 2, &text, &len), -EFBIG);
	unlink(path);
	CHECK_EQ(file_read(path, 3, &text, &len), -ENOENT);
	CHECK_EQ(file_read("/", 3, &text, &len), -EINVAL);
}

TEST(fifo_without_writer_does_not_hold_up)
{
	char dir[] = "/tmp/vma_file_XXXXXX", path[64], *text;
	size_t len;

	CHECK(mkdtemp(dir));
	strcat(strcpy(path, dir), "/fifo");
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(file_read(path, 100, &text, &len), -EINVAL);
	unlink(path);
	rmdir(dir);
}

TEST(peek_reads_files_without_size)
{
	char text[16];

	CHECK(file_peek("/proc/self/comm", text, sizeof(text)) > 0);
	CHECK_EQ(file_peek("/no/such/file", text, sizeof(text)), -ENOENT);
}

/* What file_for_lines() has told, each line behind the one before. */
static char told[8192];

static void keep_line(void *ctx, const char *line)
{
	CHECK(ctx == told);
	CHECK(strlen(told) + strlen(line) + 2 < sizeof(told));
	strcat(strcat(told, line), ";");
}

static void check_lines(const char *text, const char *expected)
{
	char path[] = "/tmp/vma_file_XXXXXX";
	int fd = mkstemp(path);

	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	told[0] = '\0';
	file_for_lines(path, keep_line, told);
	CHECK_STR(told, expected);
	unlink(path);
}

TEST(lines_come_one_by_one)
{
	char text[4096], expected[4096];
	unsigned n = 0, m = 0;

	check_lines("", "");
	check_lines("a\n\nbc\n", "a;;bc;");
	check_lines("a\nwithout an end", "a;");
	for (unsigned i = 0; i < 300; i++) {
		n += (unsigned)sprintf(text + n, "line %u\n", i);
		m += (unsigned)sprintf(expected + m, "line %u;", i);
	}
	check_lines(text, expected);
	told[0] = '\0';
	file_for_lines("/no/such/file", keep_line, told);
	CHECK_STR(told, "");
}

static unsigned named[300], named_cnt;

static void note_name(void *ctx, const char *name)
{
	CHECK(ctx == named);
	named_cnt++;
	if (name[0] != '.')
		named[atoi(name)]++;
}

/* The name of one of the files, longer from file to file; to be freed. */
static char *long_path(const char *dir, int i)
{
	char *path;

	CHECK(asprintf(&path, "%s/%d-%0*d", dir, i, i / 2, i) > 0);
	return path;
}

/* With the two that each directory has. */
TEST(names_come_one_by_one)
{
	char dir[] = "/tmp/vma-unit-XXXXXX", *path;

	CHECK(mkdtemp(dir));
	for (int i = 0; i < 300; i++) {
		path = long_path(dir, i);
		fclose(fopen(path, "w"));
		free(path);
	}
	file_for_names(dir, UINT_MAX, note_name, named);
	CHECK_EQ(named_cnt, 302);
	for (int i = 0; i < 300; i++)
		CHECK_EQ(named[i], 1);
	named_cnt = 0;
	file_for_names(dir, 7, note_name, named);
	CHECK_EQ(named_cnt, 7);
	for (int i = 0; i < 300; i++) {
		path = long_path(dir, i);
		unlink(path);
		free(path);
	}
	CHECK(rmdir(dir) == 0);
	file_for_names(dir, 7, note_name, named);
	CHECK_EQ(named_cnt, 7);
}

enum { FDS_MAX = 400 };

/* How often each was met, and the hundred from `skipped` on that are passed over. */
struct met {
	int cnt[FDS_MAX], skipped, last;
};

static int note_fd(void *ctx, int fd)
{
	struct met *met = ctx;

	CHECK(fd > met->last);
	met->last = fd;
	if (fd < FDS_MAX)
		met->cnt[fd]++;
	return fd == met->skipped ? fd + 101 : fd + 1;
}

TEST(fds_come_in_their_order_and_can_be_skipped)
{
	struct met met = { .skipped = 120, .last = -1 };

	for (int fd = 100; fd < FDS_MAX; fd++)
		CHECK_EQ(dup2(0, fd), fd);
	close(300);
	file_for_fds(0, note_fd, &met);
	CHECK_EQ(met.cnt[0], 1);
	for (int fd = 100; fd < FDS_MAX; fd++)
		CHECK_EQ(met.cnt[fd], fd != 300 && (fd <= 120 || fd > 220));
	met = (struct met){ .skipped = -1, .last = 249 };
	file_for_fds(250, note_fd, &met);
	CHECK_EQ(met.cnt[250], 1);
	CHECK_EQ(met.cnt[399], 1);
	for (int fd = 100; fd < FDS_MAX; fd++)
		close(fd);
}

/* Neither in part, nor at the cost of its neighbours. */
TEST(lines_that_are_too_long_are_left_out)
{
	static const unsigned lens[] = { 1000, 1001, 1002, 2002, 3500 };
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, "a\n", 2);
		strcpy(text + 2 + lens[i], "\nb\n");
		if (lens[i] > 1000) {
			check_lines(text, "a;b;");
		} else {
			char expected[2048];

			snprintf(expected, sizeof(expected), "a;%.*s;b;",
				 (int)lens[i], text + 2);
			check_lines(text, expected);
		}
	}
}

TEST(new_map_is_private_reserved_and_new)
{
	char dir[] = "/tmp/vma-unit-XXXXXX", path[64];
	void *first, *second;
	struct stat st;
	mode_t mask;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/map", dir);
	mask = umask(0777);
	CHECK_EQ(file_map_new(path, 100000, &first, NULL), 0);
	umask(mask);
	CHECK(stat(path, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	CHECK_EQ(st.st_size, 100000);
	CHECK(st.st_blocks * 512 >= 100000);
	memset(first, 1, 100000);
	/* another one of that name; the first is still there for who has it */
	CHECK_EQ(file_map_new(path, 10, &second, NULL), 0);
	CHECK_EQ(*(char *)second, 0);
	CHECK_EQ(*(char *)first, 1);
	munmap(first, 100000);
	munmap(second, 10);
	file_remove(path);
	file_remove(path);
	CHECK(rmdir(dir) == 0);
	CHECK_EQ(file_map_new(path, 10, &first, NULL), -ENOENT);
}

TEST(new_map_follows_no_link)
{
	char dir[] = "/tmp/vma-unit-XXXXXX", path[64], target[64];
	struct stat st;
	void *mem;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/map", dir);
	snprintf(target, sizeof(target), "%s/target", dir);
	CHECK_EQ(file_make_empty(target), 0);
	CHECK(symlink(target, path) == 0);
	CHECK_EQ(file_map_new(path, 10, &mem, NULL), 0);
	CHECK(stat(target, &st) == 0 && st.st_size == 0);
	munmap(mem, 10);
	file_remove(path);
	file_remove(target);
	/* what cannot be removed is left alone */
	CHECK(mkdir(path, 0700) == 0);
	CHECK_EQ(file_map_new(path, 10, &mem, NULL), -EEXIST);
	CHECK(rmdir(path) == 0 && rmdir(dir) == 0);
}

TEST(secret_is_one_for_all_of_a_user)
{
	char dir[] = "/tmp/vma_file_XXXXXX", path[64], link[64];
	uint64_t first[2], second[2], third[2];
	int fd;

	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/secret", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	CHECK_EQ(file_secret(path, first, sizeof(first)), 0);
	CHECK_EQ(file_secret(path, second, sizeof(second)), 0);
	CHECK(memcmp(first, second, sizeof(first)) == 0);
	/* whoever made it has died over it */
	CHECK_EQ(truncate(path, 3), 0);
	CHECK_EQ(file_secret(path, second, sizeof(second)), 0);
	CHECK(memcmp(first, second, sizeof(first)) != 0);
	CHECK_EQ(file_secret(path, third, sizeof(third)), 0);
	CHECK(memcmp(second, third, sizeof(second)) == 0);
	/* or is at it */
	CHECK_EQ(truncate(path, 3), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK_EQ(flock(fd, LOCK_EX), 0);
	CHECK_EQ(file_secret(path, third, sizeof(third)), -EAGAIN);
	close(fd);
	CHECK_EQ(file_secret(path, third, sizeof(third)), 0);
	/* others know it, or have chosen where it is */
	CHECK_EQ(chmod(path, 0640), 0);
	CHECK_EQ(file_secret(path, third, sizeof(third)), -EPERM);
	CHECK_EQ(symlink(path, link), 0);
	CHECK_EQ(file_secret(link, third, sizeof(third)), -ELOOP);
	unlink(link);
	unlink(path);
	CHECK_EQ(file_secret(dir, third, sizeof(third)), -EISDIR);
	rmdir(dir);
}

TEST(pieces_are_appended)
{
	char dir[] = "/tmp/vma-unit-XXXXXX", path[64], text[16];

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	CHECK_EQ(file_append(path, "ab", 2), 0);
	CHECK_EQ(file_append(path, "c", 1), 0);
	CHECK_EQ(file_peek(path, text, sizeof(text)), 3);
	CHECK_MEM(text, "abc", 3);
	CHECK_EQ(file_make_empty(path), 0);
	CHECK_EQ(file_peek(path, text, sizeof(text)), 0);
	file_remove(path);
	CHECK(rmdir(dir) == 0);
	CHECK_EQ(file_append(path, "x", 1), -ENOENT);
	CHECK_EQ(file_make_empty(path), -ENOENT);
	CHECK_EQ(file_inode(path), 0);
	CHECK(file_inode("/proc/self/ns/pid") > 0);
}

/* A program may forbid itself to write files, and then ends by a signal when it does. */
TEST(file_that_may_not_grow_ends_nobody)
{
	char dir[] = "/tmp/vma_file_XXXXXX", path[64];
	struct rlimit none = { 0 };
	int status;
	pid_t pid;

	CHECK(mkdtemp(dir));
	strcat(strcpy(path, dir), "/new");
	pid = fork();
	if (pid == 0) {
		char secret[16];
		void *mem;

		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_FSIZE, &none);
		CHECK_EQ(file_map_new(path, 4096, &mem, NULL), -EFBIG);
		CHECK_EQ(file_append(path, "a", 1), -EFBIG);
		unlink(path);
		CHECK_EQ(file_secret(path, secret, sizeof(secret)), -EIO);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	unlink(path);
	CHECK_EQ(rmdir(dir), 0);
}

static void *read_while_cancelled(void *arg)
{
	char text[16];

	pthread_cancel(pthread_self());
	return file_peek("/proc/self/comm", text, sizeof(text)) > 0 ? arg : NULL;
}

/* The thread may have locks or references of ours. */
TEST(reading_is_no_cancellation_point)
{
	pthread_t thread;
	void *result;
	int arg;

	CHECK_EQ(pthread_create(&thread, NULL, read_while_cancelled, &arg), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == &arg);
}
