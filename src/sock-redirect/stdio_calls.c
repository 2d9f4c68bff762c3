/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams over sockets. libc's streams read and write through functions that nobody
 * can intercept. So a stream over an object of ours is made with functions of our
 * own. fileno() works all the same.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "sock-redirect/call.h"

/* Declared by libc's headers for fortified callers only. */
extern int __vasprintf_chk(char **text, int flag, const char *fmt,
			   va_list list);

struct stream {
	int fd;
	/* As large as that of a stream of libc's own, since who reads and writes datagrams sees
	 * where it ends. Left to itself, libc gives a stream with functions twice as much. */
	char buf[];
};

static int cookie_fd(void *cookie)
{
	return ((const struct stream *)cookie)->fd;
}

static ssize_t stream_read(void *cookie, char *buf, size_t len)
{
	return shim_read(cookie_fd(cookie), buf, len);
}

/* libc's own streams go on after a short write. */
static ssize_t write_all(int fd, const char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = shim_write(fd, buf + done, len - done);

		if (n < 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t stream_write(void *cookie, const char *buf, size_t len)
{
	return write_all(cookie_fd(cookie), buf, len);
}

static int stream_seek(void *cookie, off64_t *offset, int whence)
{
	off64_t at = lseek64(cookie_fd(cookie), *offset, whence);

	if (at < 0)
		return -1;
	*offset = at;
	return 0;
}

static int stream_close(void *cookie)
{
	int fd = cookie_fd(cookie);

	free(cookie);
	return table_close(fd);
}

/* What fdopen() makes of a mode: a letter, and whether there is a plus among the next few
 * characters. fopencookie() wants that at once. False: it is none. */
static bool read_mode(const char *mode, char plain[3])
{
	if (!*mode || !strchr("rwa", *mode))
		return false;
	plain[0] = *mode;
	plain[1] = memchr(mode, '+', strnlen(mode, 5)) ? '+' : '\0';
	plain[2] = '\0';
	return true;
}

static bool set_append(int fd)
{
	int flags = shim_fcntl(fd, F_GETFL, NULL);

	return flags >= 0 &&
	       (flags & O_APPEND ||
		shim_fcntl(fd, F_SETFL, (void *)(intptr_t)(flags | O_APPEND)) == 0);
}

static FILE *open_stream(int fd, const char *mode)
{
	static const cookie_io_functions_t functions = {
		.read = stream_read,
		.write = stream_write,
		.seek = stream_seek,
		.close = stream_close,
	};
	struct stream *cookie;
	struct stat st;
	char plain[3];
	size_t size;
	FILE *stream;

	if (!read_mode(mode, plain)) {
		errno = EINVAL;
		return NULL;
	}
	if ((plain[0] == 'a' && !set_append(fd)) || fstat(fd, &st) != 0)
		return NULL;
	size = st.st_blksize > 0 ? (size_t)st.st_blksize : BUFSIZ;
	cookie = malloc(sizeof(*cookie) + size);
	if (!cookie)
		return NULL;
	cookie->fd = fd;
	stream = fopencookie(cookie, plain, functions);
	if (!stream) {
		free(cookie);
		return NULL;
	}
	stream->_fileno = fd;
	(void)!setvbuf(stream, cookie->buf, _IOFBF, size);
	return stream;
}

FILE *shim_fdopen(int fd, const char *mode)
{
	CALL_ENTERED(fdopen);
	if (UNLIKELY(fd_table_has(fd)) && !os_is_inside()) {
		struct fd_object *obj;
		bool is_internal;

		os_enter();
		obj = fd_table_get(fd);
		is_internal = obj && obj->ops->is_internal;
		fd_object_put(obj);
		os_leave();
		if (is_internal) {
			errno = EBADF;
			return NULL;
		}
		if (obj)
			return open_stream(fd, mode);
	}
	return real.fdopen(fd, mode);
}

/* A stream with functions of its own has no wide part. libc marks that by an
 * address which freopen would follow, so the stream stays one of bytes. */
#define NO_WIDE_DATA ((struct _IO_wide_data *)-1L)

/* Those of the program's own have no fd. */
static bool is_over_object(FILE *stream)
{
	return stream->_wide_data == NO_WIDE_DATA && stream->_fileno >= 0;
}

/* libc closes the fd, or has it name another file, without calling a wrapper. */
static void forget_fd_of(FILE *stream)
{
	int saved_errno = errno;

	if (!os_is_inside())
		fd_table_forget(fileno(stream));
	errno = saved_errno;
}

/* What the stream still has goes to the object, and not to its twin afterwards: what cannot
 * be written is dropped here, as libc does it. */
static void flush_to_object(FILE *stream)
{
	int saved_errno = errno;

	(void)fflush(stream);
	errno = saved_errno;
}

static FILE *reopen(FILE *(*libc_reopen)(const char *, const char *, FILE *),
		    const char *path, const char *mode, FILE *stream)
{
	bool is_bytes_only = stream && stream->_wide_data == NO_WIDE_DATA;
	FILE *again;

	if (stream && is_over_object(stream))
		flush_to_object(stream);
	if (stream)
		forget_fd_of(stream);
	if (is_bytes_only)
		stream->_wide_data = NULL;
	again = libc_reopen(path, mode, stream);
	if (again && is_bytes_only)
		fwide(again, -1);
	return again;
}

FILE *shim_freopen(const char *path, const char *mode, FILE *stream)
{
	CALL_ENTERED(freopen);
	return reopen(real.freopen, path, mode, stream);
}

FILE *shim_freopen64(const char *path, const char *mode, FILE *stream)
{
	CALL_ENTERED(freopen64);
	return reopen(real.freopen64, path, mode, stream);
}

int shim_fclose(FILE *stream)
{
	CALL_ENTERED(fclose);
	/* one over an object flushes, and closes the fd, by functions of ours */
	if (stream && !is_over_object(stream))
		forget_fd_of(stream);
	return real.fclose(stream);
}

/* vdprintf on an object: libc's would write past us. `flag` is that of the
 * checking variant, -1 for the plain one. */
static int print_to_object(int fd, int flag, const char *fmt, va_list list)
{
	char *text;
	int len, written;

	len = flag < 0 ? vasprintf(&text, fmt, list) :
			 __vasprintf_chk(&text, flag, fmt, list);
	if (len < 0)
		return -1;
	written = (int)write_all(fd, text, (size_t)len);
	free(text);
	return written < len ? -1 : len;
}

int shim_vdprintf(int fd, const char *fmt, va_list list)
{
	CALL_ENTERED(vdprintf);
	if (UNLIKELY(fd_table_has(fd)) && !os_is_inside())
		return print_to_object(fd, -1, fmt, list);
	return real.vdprintf(fd, fmt, list);
}

int shim___vdprintf_chk(int fd, int flag, const char *fmt, va_list list)
{
	CALL_ENTERED(__vdprintf_chk);
	if (UNLIKELY(fd_table_has(fd)) && !os_is_inside())
		return print_to_object(fd, flag, fmt, list);
	return real.__vdprintf_chk(fd, flag, fmt, list);
}

EXPORT int shim_dprintf(int fd, const char *fmt, ...) __asm__("dprintf");
EXPORT int shim___dprintf_chk(int fd, int flag, const char *fmt,
			      ...) __asm__("__dprintf_chk");

int shim_dprintf(int fd, const char *fmt, ...)
{
	va_list list;
	int n;

	CALL_ENTERED(dprintf);
	va_start(list, fmt);
	n = shim_vdprintf(fd, fmt, list);
	va_end(list);
	return n;
}

int shim___dprintf_chk(int fd, int flag, const char *fmt, ...)
{
	va_list list;
	int n;

	CALL_ENTERED(__dprintf_chk);
	va_start(list, fmt);
	n = shim___vdprintf_chk(fd, flag, fmt, list);
	va_end(list);
	return n;
}
