/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The C library's calls through which a program meets the device. Each looks
 * whether the path or the descriptor is of ours, and otherwise hands on to the
 * next library, which is the C library itself.
 */
#define _FORTIFY_SOURCE 0
#include "config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/compiler.h"
#include "card.h"
#include "check.h"
#include "files.h"
#include "rdma_cm.h"
#include "sys.h"
#include "tree.h"
#include "uverbs.h"

static void *next_symbol(void *_Atomic *cache, const char *name)
{
	void *fn = atomic_load_explicit(cache, memory_order_relaxed);

	if (fn)
		return fn;
	fn = dlsym(RTLD_NEXT, name);
	if (!fn)
		check_die("the C library has no %s", name);
	atomic_store_explicit(cache, fn, memory_order_relaxed);
	return fn;
}

/* The function behind ours of the same name. */
#define NEXT(name)                                          \
	({                                                  \
		static void *_Atomic cache_;                \
		(__typeof__(&name))next_symbol(&cache_, #name); \
	})

/* What to look at instead of `path`: in the view of the device, or itself. */
static const char *seen(const char *path, char buf[TREE_PATH_SIZE])
{
	if (LIKELY(!the_card) || !path || path[0] != '/')
		return path;
	if (!tree_translate(path, &the_card->conf, buf))
		return path;
	if (tree_fd() < 0) {
		card_show(the_card);
		tree_translate(path, &the_card->conf, buf);
	}
	return buf;
}

/* A file of the view was opened. If it is a device, its descriptor becomes ours.
 * Returns what the program gets. */
static int opened(const char *path, int fd)
{
	static const char uverbs[] = "/dev/infiniband/uverbs";
	int ret = 0;

	if (fd < 0 || !the_card)
		return fd;
	if (strncmp(path, uverbs, sizeof(uverbs) - 1) == 0)
		ret = uverbs_open(the_card,
				  (unsigned int)atoi(path + sizeof(uverbs) - 1),
				  fd);
	else if (strcmp(path, "/dev/infiniband/rdma_cm") == 0)
		ret = rdma_cm_open(fd);
	if (!ret)
		return fd;
	sys_close(fd);
	errno = -ret;
	return -1;
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN(name)                                                        \
	EXPORT int name(const char *path, int flags, ...)                 \
	{                                                                 \
		char buf[TREE_PATH_SIZE];                                 \
		const char *to = seen(path, buf);                         \
		va_list args;                                             \
		mode_t mode;                                              \
									  \
		va_start(args, flags);                                    \
		mode = mode_of(flags, args);                              \
		va_end(args);                                             \
		if (to == path)                                           \
			return NEXT(name)(path, flags, mode);             \
		return opened(path, NEXT(name)(to, flags, mode));         \
	}
#define OPENAT(name)                                                      \
	EXPORT int name(int dir, const char *path, int flags, ...)        \
	{                                                                 \
		char buf[TREE_PATH_SIZE];                                 \
		const char *to = seen(path, buf);                         \
		va_list args;                                             \
		mode_t mode;                                              \
									  \
		va_start(args, flags);                                    \
		mode = mode_of(flags, args);                              \
		va_end(args);                                             \
		if (to == path)                                           \
			return NEXT(name)(dir, path, flags, mode);        \
		return opened(path, NEXT(name)(dir, to, flags, mode));    \
	}

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* What programs call that are compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

EXPORT int __openat_2(int dir, const char *path, int flags)
{
	return openat(dir, path, flags);
}

EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	return openat64(dir, path, flags);
}

/* Calls whose first or only argument that matters is a path. */
#define BY_PATH(type, name, params, ...)               \
	EXPORT type name params                        \
	{                                              \
		char view[TREE_PATH_SIZE];             \
						       \
		path = seen(path, view);               \
		return NEXT(name)(__VA_ARGS__);        \
	}

BY_PATH(FILE *, fopen, (const char *path, const char *mode), path, mode)
BY_PATH(FILE *, fopen64, (const char *path, const char *mode), path, mode)
BY_PATH(DIR *, opendir, (const char *path), path)
BY_PATH(int, stat, (const char *path, struct stat *st), path, st)
BY_PATH(int, stat64, (const char *path, struct stat64 *st), path, st)
BY_PATH(int, lstat, (const char *path, struct stat *st), path, st)
BY_PATH(int, lstat64, (const char *path, struct stat64 *st), path, st)
BY_PATH(int, fstatat, (int dir, const char *path, struct stat *st, int flags),
	dir, path, st, flags)
BY_PATH(int, fstatat64,
	(int dir, const char *path, struct stat64 *st, int flags), dir, path,
	st, flags)
BY_PATH(int, access, (const char *path, int mode), path, mode)
BY_PATH(int, faccessat, (int dir, const char *path, int mode, int flags), dir,
	path, mode, flags)
BY_PATH(ssize_t, readlink, (const char *path, char *buf, size_t size), path,
	buf, size)
BY_PATH(ssize_t, readlinkat,
	(int dir, const char *path, char *buf, size_t size), dir, path, buf,
	size)
BY_PATH(int, scandir,
	(const char *path, struct dirent ***names,
	 int (*filter)(const struct dirent *),
	 int (*compare)(const struct dirent **, const struct dirent **)),
	path, names, filter, compare)
BY_PATH(int, scandir64,
	(const char *path, struct dirent64 ***names,
	 int (*filter)(const struct dirent64 *),
	 int (*compare)(const struct dirent64 **, const struct dirent64 **)),
	path, names, filter, compare)

BY_PATH(ssize_t, getxattr,
	(const char *path, const char *name, void *value, size_t size), path,
	name, value, size)
BY_PATH(ssize_t, lgetxattr,
	(const char *path, const char *name, void *value, size_t size), path,
	name, value, size)
BY_PATH(ssize_t, listxattr, (const char *path, char *list, size_t size), path,
	list, size)
BY_PATH(ssize_t, llistxattr, (const char *path, char *list, size_t size), path,
	list, size)

ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);

EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size,
			      size_t room)
{
	return readlink(path, buf, MIN(size, room));
}

/* Programs of before glibc 2.33 call these for stat and lstat. */
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);

BY_PATH(int, __xstat, (int version, const char *path, struct stat *st), version,
	path, st)
BY_PATH(int, __lxstat, (int version, const char *path, struct stat *st),
	version, path, st)

EXPORT char *realpath(const char *path, char *resolved)
{
	char view[TREE_PATH_SIZE], real[TREE_PATH_SIZE];
	const char *to = seen(path, view);

	if (to == path)
		return NEXT(realpath)(path, resolved);
	if (!tree_realpath(to, real)) {
		errno = ENOENT;
		return NULL;
	}
	return resolved ? strcpy(resolved, real) : strdup(real);
}

char *__realpath_chk(const char *path, char *resolved, size_t room);

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	if (room < PATH_MAX)
		abort();
	return realpath(path, resolved);
}

static int fail(int error)
{
	errno = error;
	return -1;
}

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	struct file *file = files_get(fd);
	ssize_t ret;

	if (LIKELY(!file) || !file->ops->write)
		return NEXT(write)(fd, buf, len);
	ret = file->ops->write(file, buf, len);
	return ret < 0 ? fail((int)-ret) : ret;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct file *file = files_get(fd);
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (LIKELY(!file) || !file->ops->ioctl)
		return NEXT(ioctl)(fd, request, arg);
	ret = file->ops->ioctl(file, request, arg);
	return ret < 0 ? fail(-ret) : ret;
}

static void *map(struct file *file, void *addr, size_t len, int prot, int flags,
		 off_t offset)
{
	void *at = file->ops->mmap ? file->ops->mmap(file, addr, len, prot,
						     flags, offset) :
				     NULL;

	if (at)
		return at;
	errno = EINVAL;
	return MAP_FAILED;
}

/* Straight to the kernel when it is not ours: allocators map memory before a
 * symbol can be looked up. */
static void *pass_mmap(void *addr, size_t len, int prot, int flags, int fd,
		       off_t offset)
{
	long ret = SYS(__NR_mmap, addr, len, prot, flags, fd, offset);

	if (ret >= 0 || ret < -4095)
		return (void *)ret;
	errno = (int)-ret;
	return MAP_FAILED;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset)
{
	struct file *file = files_get(fd);

	if (LIKELY(!file))
		return pass_mmap(addr, len, prot, flags, fd, offset);
	return map(file, addr, len, prot, flags, offset);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd,
		    off64_t offset)
{
	return mmap(addr, len, prot, flags, fd, offset);
}

EXPORT int dup(int fd)
{
	int copy = NEXT(dup)(fd);

	files_copied(fd, copy);
	return copy;
}

/* What `to` named before is closed by this. */
static void replaced(int fd, int to)
{
	struct file *file = fd != to && files_get(fd) != files_get(to) ?
				    files_take(to) :
				    NULL;

	if (UNLIKELY(file))
		file->ops->close(file);
}

EXPORT int dup2(int fd, int to)
{
	replaced(fd, to);
	to = NEXT(dup2)(fd, to);
	files_copied(fd, to);
	return to;
}

EXPORT int dup3(int fd, int to, int flags)
{
	replaced(fd, to);
	to = NEXT(dup3)(fd, to, flags);
	files_copied(fd, to);
	return to;
}

static int controlled(int fd, int cmd, int ret)
{
	if (UNLIKELY(cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		files_copied(fd, ret);
	return ret;
}

#define FCNTL(name)                                                      \
	EXPORT int name(int fd, int cmd, ...)                            \
	{                                                                \
		va_list args;                                            \
		void *arg;                                               \
									 \
		va_start(args, cmd);                                     \
		arg = va_arg(args, void *);                              \
		va_end(args);                                            \
		return controlled(fd, cmd, NEXT(name)(fd, cmd, arg));    \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT int close(int fd)
{
	struct file *file = files_take(fd);

	if (UNLIKELY(file))
		file->ops->close(file);
	return NEXT(close)(fd);
}

static bool is_shown_as_device(int fd)
{
	struct file *file = files_get(fd);

	return UNLIKELY(file) && file->ops->is_shown_as_device;
}

/* The descriptor's own file, by an empty path, or what the path says. */
EXPORT int statx(int dir, const char *restrict path, int flags,
		 unsigned int wanted, struct statx *restrict st)
{
	char view[TREE_PATH_SIZE];
	int ret = NEXT(statx)(dir, seen(path, view), flags, wanted, st);

	if (ret || !(flags & AT_EMPTY_PATH) || *path ||
	    !is_shown_as_device(dir))
		return ret;
	st->stx_mode = S_IFCHR | 0666;
	st->stx_rdev_major = TREE_DEV_MAJOR;
	st->stx_rdev_minor = TREE_DEV_MINOR;
	return 0;
}

static int fstat_of(int fd, struct stat *st)
{
	int ret = NEXT(fstat)(fd, st);

	if (ret || !is_shown_as_device(fd))
		return ret;
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(TREE_DEV_MAJOR, TREE_DEV_MINOR);
	return 0;
}

EXPORT int fstat(int fd, struct stat *st)
{
	return fstat_of(fd, st);
}

/* What older programs call for it, and the sanitizers' run-time libraries. */
int __fxstat(int version, int fd, struct stat *st);

EXPORT int __fxstat(int version UNUSED, int fd, struct stat *st)
{
	return fstat_of(fd, st);
}
