/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files, for the few things the library does with them outside the data path. */
#ifndef OS_FILE_H
#define OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"

/* Tells an open file from another one that took over its number. */
struct file_id {
	dev_t dev;
	ino_t ino;
	mode_t mode; /* 0: no file */
};

/* Returns all zeroes when fd is not open. errno is preserved. */
struct file_id file_identify(int fd);

/* A socket's inode and its owner, by whom the kernel looks for its routes: who made it, and
 * with which rights (fsuid). False, and all zeroes, when fd is not open. errno is preserved. */
bool file_identify_socket(int fd, ino_t *inode_out, uid_t *owner_out);

static inline bool file_is_same(const struct file_id *a,
				const struct file_id *b)
{
	return a->mode && a->ino == b->ino && a->dev == b->dev;
}

/* A duplicate with a number that is not the program's next one, and that is closed by an exec,
 * or a negative errno. */
int file_duplicate_high(int fd) MUST_CHECK;

/* The least number that it gives, unless all from there on are taken. */
int file_high_begins(void);

/*
 * Reads a regular file of at most `max` bytes into malloc'ed memory that the
 * caller frees; a NUL follows its `*len_out` bytes. -EFBIG when it is larger,
 * -EINVAL when it is not a regular file, or another negative errno. Never waits.
 */
int file_read(const char *path, size_t max, char **text_out,
	      size_t *len_out) MUST_CHECK;

/* Reads up to `size` bytes of a file in proc or sysfs, which has no size of its
 * own. Returns the number of bytes or a negative errno. */
ssize_t file_peek(const char *path, char *buf, size_t size) MUST_CHECK;

bool file_is_there(const char *path);

/*
 * Makes a new file of `size` zero bytes with mode 0600 and maps it as shared
 * memory. All its blocks are reserved, so that a full file system is noticed here,
 * and not as a fault later. A file of the same name is removed first; -EEXIST: it
 * belongs to somebody else. `id_out` tells it from others that get its name later, and
 * may be NULL.
 */
int file_map_new(const char *path, size_t size, void **mem_out,
		 struct file_id *id_out) MUST_CHECK;

/* Whether a program that this process becomes, or starts, has the fd as well. */
bool file_is_inherited(int fd);

/* Whether the path is a symbolic link that contains exactly this text. */
bool file_leads_to(const char *path, const char *text);

/* Calls `fn` for each name in a directory, but for at most `max` of them. */
void file_for_names(const char *dir, unsigned max,
		    void (*fn)(void *ctx, const char *name), void *ctx);

/* Calls `fn` for each line of a file, without its end. Lines above 1000 bytes are left
 * out. */
void file_for_lines(const char *path, void (*fn)(void *ctx, const char *line),
		    void *ctx);

/* Reads the first `size` bytes of a regular file of this user; to root each is one. False: it
 * is not that, or a link, or shorter. Never waits. */
bool file_read_own(const char *path, void *buf, size_t size,
		   struct file_id *id_out) MUST_CHECK;

/*
 * Random bytes that all processes of the user have in common until the machine is started
 * anew, if `path` is on a file system that forgets: they are in this file, which is made
 * where there is none, with mode 0600. A negative errno: somebody else's is there, or one
 * that others may read (-EPERM), or another process makes it in this moment (-EAGAIN); what
 * is in `buf` then means nothing. Never waits.
 */
int file_secret(const char *path, void *buf, size_t len) MUST_CHECK;

/* Removes it if it is still that file. */
bool file_remove_same(const char *path, const struct file_id *id);

/* Makes `user` its owner, if it is still that file and we may. */
void file_give(const char *path, const struct file_id *id, uid_t user);

/* Harmless when there is none. */
void file_remove(const char *path);

/* Calls `fn` for the process's fds from `first` on, in their order. It returns the number
 * at which to go on, which is higher. Skipping is worth while: for each fd that it lists
 * the kernel makes an inode. */
void file_for_fds(int first, int (*fn)(void *ctx, int fd), void *ctx);

/* Creates the file, or empties it if it exists. */
int file_make_empty(const char *path) MUST_CHECK;

/* Appends the text by a single write. */
int file_append(const char *path, const char *text, size_t len) MUST_CHECK;

/* The inode that a link such as /proc/self/ns/pid leads to; 0: none. */
ino_t file_inode(const char *path);

/* Whether what is in this directory is in memory alone, and never written to a disk. */
bool file_is_in_memory(const char *dir);

/* Whether we may make files there. */
bool file_may_make(const char *dir);

/* As the file system has it; of /proc/self/fd, from Linux 6.2 on, how many fds there
 * are. 0: none, or it does not say. */
off_t file_size(const char *path);

#endif
