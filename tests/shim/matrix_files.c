/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the matrix makes the calls that open files, copy and close descriptors, and use
 * them by streams and in the background. */
#include "config.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/shim/matrix_calls.h"

/* Symbols that programs reach without a declaration in the headers. */
extern int __open_2(const char *path, int flags);
extern int __open64_2(const char *path, int flags);
extern int __openat_2(int dir, const char *path, int flags);
extern int __openat64_2(int dir, const char *path, int flags);
extern int __dprintf_chk(int fd, int flag, const char *fmt, ...);
extern int __vdprintf_chk(int fd, int flag, const char *fmt, va_list list);

static const char *null_device(struct cell *c)
{
	return c->condition == COND_WRONG_TYPE ? "/no/such/file" : "/dev/null";
}

long do_open(struct cell *c)
{
	return cell_new_fd(c, open(P(null_device(c)), O_RDONLY | O_CLOEXEC));
}

long do_open64(struct cell *c)
{
	return cell_new_fd(c, open64(P(null_device(c)), O_WRONLY | O_CREAT, 0600));
}

/* The directory comes from the condition. */
static int directory(struct cell *c)
{
	if (c->condition == COND_VALID || c->condition == COND_NULL)
		return open("/dev", O_RDONLY | O_DIRECTORY);
	return c->fd;
}

long do_openat(struct cell *c)
{
	int dir = directory(c);

	return cell_new_fd(c, openat(dir, P("null"), O_RDONLY));
}

long do_openat64(struct cell *c)
{
	int dir = directory(c);

	return cell_new_fd(c, openat64(dir, P("null"), O_RDONLY | O_CLOEXEC));
}

long do___open_2(struct cell *c)
{
	return cell_new_fd(c, __open_2(P(null_device(c)), O_RDONLY));
}

long do___open64_2(struct cell *c)
{
	return cell_new_fd(c, __open64_2(P(null_device(c)), O_RDONLY));
}

long do___openat_2(struct cell *c)
{
	int dir = directory(c);

	return cell_new_fd(c, __openat_2(dir, P("null"), O_RDONLY));
}

long do___openat64_2(struct cell *c)
{
	int dir = directory(c);

	return cell_new_fd(c, __openat64_2(dir, P("null"), O_RDONLY));
}

long do_creat(struct cell *c)
{
	return cell_new_fd(c, creat(P("/dev/null"), 0600));
}

long do_creat64(struct cell *c)
{
	return cell_new_fd(c, creat64(P("/dev/null"), 0600));
}

/* A copy has to reach the same file. */
static long copied(struct cell *c, long copy)
{
	char byte = '-';

	if (copy >= 0) {
		cell_show(c, "flags %d ", fcntl((int)copy, F_GETFD));
		if (c->call->role == ROLE_STREAM &&
		    c->condition == COND_VALID) {
			cell_show(c, "%zd", recv((int)copy, &byte, 1, 0));
			cell_show(c, "%c", byte);
		}
	}
	return copy;
}

long do_eventfd(struct cell *c)
{
	return cell_new_fd(c, eventfd(7, EFD_CLOEXEC));
}

/* The wrong type is that of a clock that does not exist. */
long do_timerfd_create(struct cell *c)
{
	return cell_new_fd(c, timerfd_create(c->condition == COND_WRONG_TYPE ?
						     1000 : CLOCK_MONOTONIC,
					     TFD_NONBLOCK));
}

/* A new one, or the set of what is none. */
long do_signalfd(struct cell *c)
{
	bool is_new = c->condition == COND_VALID || c->condition == COND_NULL;
	sigset_t set;

	sigemptyset(&set);
	return cell_new_fd(c, signalfd(is_new ? -1 : c->fd, P(&set), SFD_CLOEXEC));
}

long do_inotify_init(struct cell *c)
{
	return cell_new_fd(c, inotify_init());
}

long do_inotify_init1(struct cell *c)
{
	return cell_new_fd(c, inotify_init1(c->condition == COND_WRONG_TYPE ?
						    1 << 30 : IN_CLOEXEC));
}

long do_memfd_create(struct cell *c)
{
	return cell_new_fd(c, memfd_create(P("matrix"),
					   c->condition == COND_WRONG_TYPE ?
						   1u << 25 : MFD_CLOEXEC));
}

/* Older C libraries do not have it. */
extern int pidfd_getfd(int pidfd, int fd, unsigned flags) __attribute__((weak));

long do_pidfd_getfd(struct cell *c)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	long n;

	errno = ENOTRECOVERABLE;
	n = pidfd_getfd ? pidfd_getfd(self, c->fd, 0) :
			  syscall(SYS_pidfd_getfd, self, c->fd, 0);
	return copied(c, n);
}

long do_dup(struct cell *c)
{
	return copied(c, dup(c->fd));
}

long do_dup2(struct cell *c)
{
	return copied(c, dup2(c->fd, 60));
}

long do_dup3(struct cell *c)
{
	return copied(c, dup3(c->fd, c->condition == COND_NULL ? c->fd : 61,
			      O_CLOEXEC));
}

long do_close_range(struct cell *c)
{
	unsigned fd = (unsigned)c->fd;
	long n = c->condition == COND_BAD_FD ?
			 close_range(9, 3, 0) :
			 close_range(fd, fd + 3,
				     c->condition == COND_WRONG_TYPE ?
					     CLOSE_RANGE_CLOEXEC :
					     0);

	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return n;
}

long do_closefrom(struct cell *c)
{
	closefrom(c->condition == COND_BAD_FD ? 1000 : c->fd);
	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return 0;
}

long do_fdopen(struct cell *c)
{
	FILE *stream = fdopen(c->fd, P("r+"));
	int n;

	if (!stream)
		return -1;
	cell_show(c, "fileno %d ", fileno(stream));
	if (c->condition == COND_VALID) {
		fprintf(stream, "line %d", 1);
		fflush(stream);
		cell_show(c, "peer %zd ", recv(c->peer, c->buf, 20, 0));
		n = fgetc(stream);
		cell_show(c, "read %c ", n);
	}
	n = fclose(stream);
	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return n;
}

/* The stream of a connection becomes a file's. */
static long replace_stream(struct cell *c,
			   FILE *(*replace)(const char *, const char *, FILE *))
{
	FILE *stream = fdopen(c->fd, "r+"), *again;

	if (!stream)
		return -2;
	errno = ENOTRECOVERABLE;
	again = replace(P("/dev/null"), "r", stream);
	if (!again)
		return -1;
	cell_show(c, "fileno %d eof %d ", fileno(again) == c->fd,
		  fgetc(again));
	cell_show(c, "peer %zd", recv(c->peer, c->buf, 1, 0));
	return fclose(again);
}

long do_freopen(struct cell *c)
{
	return replace_stream(c, freopen);
}

long do_freopen64(struct cell *c)
{
	return replace_stream(c, freopen64);
}

long do_fclose(struct cell *c)
{
	FILE *stream = fdopen(c->fd, "w");
	long n;

	if (!stream)
		return -2;
	fputs("last words", stream);
	errno = ENOTRECOVERABLE;
	n = fclose(stream);
	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return cell_sent(c, n);
}

long do_dprintf(struct cell *c)
{
	return cell_sent(c, dprintf(c->fd, "%s %d", "number", 5));
}

long do___dprintf_chk(struct cell *c)
{
	return cell_sent(c, __dprintf_chk(c->fd, 1, "%s %d", "number", 6));
}

static int call_vdprintf(int fd, const char *fmt, ...)
{
	va_list list;
	int n;

	va_start(list, fmt);
	n = vdprintf(fd, fmt, list);
	va_end(list);
	return n;
}

long do_vdprintf(struct cell *c)
{
	return cell_sent(c, call_vdprintf(c->fd, "%s %d", "number", 7));
}

static int call_vdprintf_chk(int fd, const char *fmt, ...)
{
	va_list list;
	int n;

	va_start(list, fmt);
	n = __vdprintf_chk(fd, 1, fmt, list);
	va_end(list);
	return n;
}

long do___vdprintf_chk(struct cell *c)
{
	return cell_sent(c, call_vdprintf_chk(c->fd, "%s %d", "number", 8));
}

/* What it brought in the end. The forms for large files take the same block. */
static long await_aio(struct cell *c, long n, struct aiocb *block)
{
	const struct aiocb *const list[] = { block };

	cell_show(c, "begun %ld ", n);
	if (n != 0)
		return n;
	while (aio_error(block) == EINPROGRESS)
		(void)aio_suspend(list, 1, NULL);
	errno = aio_error(block) ? aio_error(block) : ENOTRECOVERABLE;
	return aio_return(block);
}

static struct aiocb *aio_block(struct cell *c, size_t len)
{
	static struct aiocb block;

	memset(&block, 0, sizeof(block));
	block.aio_fildes = c->fd;
	block.aio_buf = c->buf;
	block.aio_nbytes = len;
	return &block;
}

long do_aio_read(struct cell *c)
{
	struct aiocb *block = aio_block(c, sizeof(c->buf) - 1);

	return cell_shown(c, await_aio(c, aio_read(block), block));
}

long do_aio_read64(struct cell *c)
{
	struct aiocb *block = aio_block(c, sizeof(c->buf) - 1);

	return cell_shown(c, await_aio(c, aio_read64((struct aiocb64 *)block), block));
}

long do_aio_write(struct cell *c)
{
	struct aiocb *block = aio_block(c, 5);

	return cell_sent(c, await_aio(c, aio_write(block), block));
}

long do_aio_write64(struct cell *c)
{
	struct aiocb *block = aio_block(c, 5);

	return cell_sent(c, await_aio(c, aio_write64((struct aiocb64 *)block), block));
}

long do_lio_listio(struct cell *c)
{
	struct aiocb *block = aio_block(c, 5), *list[] = { NULL, block };

	block->aio_lio_opcode = LIO_WRITE;
	return cell_sent(c, await_aio(c, lio_listio(LIO_NOWAIT, list, 2, NULL),
				 block));
}

long do_lio_listio64(struct cell *c)
{
	struct aiocb *block = aio_block(c, sizeof(c->buf) - 1);
	struct aiocb64 *list[] = { NULL, (struct aiocb64 *)block };

	block->aio_lio_opcode = LIO_READ;
	return cell_shown(c, await_aio(c, lio_listio64(LIO_NOWAIT, list, 2, NULL),
				  block));
}

