/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the matrix makes each call of calls.def. A call is a function of a prepared
 * cell; the table below says what it is prepared with and which conditions make
 * no sense for it. lists.sh compares the table with calls.def.
 */
#include "config.h"

#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/matrix_calls.h"

/* The pointer, or what the condition puts in its place; a function, so that the
 * compiler does not see the NULL. */
#define P(x) ((__typeof__(&*(x)))pointer(c, x))

__attribute__((noinline)) static void *pointer(const struct cell *c,
					       const void *p)
{
	return c->is_null ? NULL : (void *)p;
}

/* Some of the calls are deprecated; programs use them all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Symbols that programs reach without a declaration in the headers. */
extern ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
extern ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size,
			  int flags);
extern ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t size,
			      int flags, struct sockaddr *addr,
			      socklen_t *addr_len);
extern int __poll_chk(struct pollfd *fds, nfds_t cnt, int timeout,
		      size_t size);
extern int __ppoll_chk(struct pollfd *fds, nfds_t cnt,
		       const struct timespec *timeout, const sigset_t *mask,
		       size_t size);
extern int __open_2(const char *path, int flags);
extern int __open64_2(const char *path, int flags);
extern int __openat_2(int dir, const char *path, int flags);
extern int __openat64_2(int dir, const char *path, int flags);
extern int __dprintf_chk(int fd, int flag, const char *fmt, ...);
extern int __vdprintf_chk(int fd, int flag, const char *fmt, va_list list);

/* Shows what arrived and gives the result on. */
static long shown(struct cell *c, long n)
{
	if (n > 0 && n < (long)sizeof(c->buf))
		cell_show(c, "%.*s", (int)n, c->buf);
	return n;
}

/* Whether the fd that came back is open, and closes it. */
static long new_fd(struct cell *c, long fd)
{
	if (fd >= 0) {
		cell_show(c, "flags %d", fcntl((int)fd, F_GETFD));
		close((int)fd);
	}
	return fd;
}

static struct iovec two_parts[2];

static struct iovec *parts(struct cell *c)
{
	two_parts[0] = (struct iovec){ c->buf, 3 };
	two_parts[1] = (struct iovec){ c->buf + 3, 4 };
	return two_parts;
}

static struct msghdr *message(struct cell *c)
{
	static struct msghdr msg;

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = parts(c);
	msg.msg_iovlen = 2;
	return &msg;
}

static struct mmsghdr *messages(struct cell *c)
{
	static struct mmsghdr msgs[2];

	memset(msgs, 0, sizeof(msgs));
	msgs[0].msg_hdr = *message(c);
	msgs[1].msg_hdr = *message(c);
	return msgs;
}

/* A sending call's data has to get to the other end, too. */
static long sent(struct cell *c, long n)
{
	char buf[64];
	long got;

	if (n <= 0 || c->condition != COND_VALID)
		return n;
	got = recv(c->peer, buf, sizeof(buf), 0);
	cell_show(c, "peer got %ld %.*s", got, got > 0 ? (int)got : 0, buf);
	return n;
}

static struct sockaddr *any_address(struct cell *c)
{
	static struct sockaddr_in addr;

	(void)c;
	addr = loopback(0);
	return (struct sockaddr *)&addr;
}

static long do_socket(struct cell *c)
{
	return new_fd(c, c->condition == COND_WRONG_TYPE ?
				 socket(AF_INET, 77, 0) :
				 socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static long do_close(struct cell *c)
{
	long n = close(c->fd);

	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return n;
}

static long do___res_iclose(struct cell *c)
{
	static struct __res_state state;
	/* Private to the C library: its own parts find it at run time. */
	void (*iclose)(res_state, bool) =
		(void (*)(res_state, bool))dlsym(RTLD_DEFAULT, "__res_iclose");

	state._vcsock = c->fd;
	for (int i = 0; i < MAXNS; i++)
		state._u._ext.nssocks[i] = -1;
	iclose(&state, false);
	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return 0;
}

static long do_shutdown(struct cell *c)
{
	char byte;
	long n = shutdown(c->fd, SHUT_WR);

	if (n == 0)
		cell_show(c, "peer reads %zd", recv(c->peer, &byte, 1, 0));
	return n;
}

static long do_listen(struct cell *c)
{
	return listen(c->fd, 3);
}

static long do_accept(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);
	long fd = accept(c->fd, P((struct sockaddr *)&addr), P(&len));

	if (fd >= 0)
		cell_show(c, "family %d ", addr.sin_family);
	return new_fd(c, fd);
}

static long do_accept4(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);

	return new_fd(c, accept4(c->fd, P((struct sockaddr *)&addr), P(&len),
				 SOCK_CLOEXEC));
}

static long do_bind(struct cell *c)
{
	return bind(c->fd, P(any_address(c)), sizeof(struct sockaddr_in));
}

static long do_connect(struct cell *c)
{
	struct sockaddr_in addr = loopback(1); /* nobody listens */

	return connect(c->fd, P((struct sockaddr *)&addr), sizeof(addr));
}

static long do_setsockopt(struct cell *c)
{
	int on = 1, now = 0;
	socklen_t len = sizeof(now);
	long n = setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, P(&on),
			    sizeof(on));

	if (n == 0 && getsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &now, &len) == 0)
		cell_show(c, "now %d", now);
	return n;
}

static long do_getsockopt(struct cell *c)
{
	int type = 0;
	socklen_t len = sizeof(type);
	long n = getsockopt(c->fd, SOL_SOCKET, SO_TYPE, P(&type), P(&len));

	cell_show(c, "%d %u", type, len);
	return n;
}

static long do_fcntl(struct cell *c)
{
	long copy = fcntl(c->fd, F_DUPFD, 100);
	long n = fcntl(c->fd, F_GETFL);

	cell_show(c, "copy %ld", copy);
	return n;
}

static long do_fcntl64(struct cell *c)
{
	extern int fcntl64(int fd, int cmd, ...);
	long copy = fcntl64(c->fd, F_DUPFD_CLOEXEC, 100);
	long n = fcntl64(c->fd, F_SETFD, FD_CLOEXEC);

	cell_show(c, "copy %ld", copy);
	return n;
}

static long do_ioctl(struct cell *c)
{
	int waiting = -1;
	long n = ioctl(c->fd, FIONREAD, P(&waiting));

	cell_show(c, "%d", waiting);
	return n;
}

static long show_name(struct cell *c, long n, const struct sockaddr_in *addr,
		      socklen_t len)
{
	if (n == 0)
		cell_show(c, "%d %s %u", addr->sin_family,
			  addr->sin_addr.s_addr == htonl(INADDR_LOOPBACK) ?
				  "loopback" :
				  "elsewhere",
			  len);
	return n;
}

static long do_getsockname(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);

	return show_name(c,
			 getsockname(c->fd, P((struct sockaddr *)&addr),
				     P(&len)),
			 &addr, len);
}

static long do_getpeername(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);

	return show_name(c,
			 getpeername(c->fd, P((struct sockaddr *)&addr),
				     P(&len)),
			 &addr, len);
}

static long do_read(struct cell *c)
{
	return shown(c, read(c->fd, P(c->buf), sizeof(c->buf) - 1));
}

static long do___read_chk(struct cell *c)
{
	return shown(c, __read_chk(c->fd, P(c->buf), sizeof(c->buf) - 1,
				   sizeof(c->buf)));
}

static long do_readv(struct cell *c)
{
	return shown(c, readv(c->fd, P(parts(c)), 2));
}

static long do_preadv(struct cell *c)
{
	return shown(c, preadv(c->fd, P(parts(c)), 2, 1));
}

static long do_preadv64(struct cell *c)
{
	return shown(c, preadv64(c->fd, P(parts(c)), 2, 1));
}

static long do_preadv2(struct cell *c)
{
	return shown(c, preadv2(c->fd, P(parts(c)), 2, -1, 0));
}

static long do_preadv64v2(struct cell *c)
{
	return shown(c, preadv64v2(c->fd, P(parts(c)), 2, -1, 0));
}

static long do_recv(struct cell *c)
{
	return shown(c, recv(c->fd, P(c->buf), 5, 0));
}

static long do___recv_chk(struct cell *c)
{
	return shown(c, __recv_chk(c->fd, P(c->buf), 5, 64, MSG_PEEK));
}

static long do_recvfrom(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);
	long n = recvfrom(c->fd, P(c->buf), 5, 0, P((struct sockaddr *)&addr),
			  P(&len));

	cell_show(c, "from %d %u ", addr.sin_family, len);
	return shown(c, n);
}

static long do___recvfrom_chk(struct cell *c)
{
	return shown(c, __recvfrom_chk(c->fd, P(c->buf), 5, 64, 0, NULL, NULL));
}

static long do_recvmsg(struct cell *c)
{
	struct msghdr *msg = message(c);
	long n = recvmsg(c->fd, P(msg), 0);

	cell_show(c, "flags %#x ", msg->msg_flags);
	return shown(c, n);
}

static long do_recvmmsg(struct cell *c)
{
	struct mmsghdr *msgs = messages(c);
	long n = recvmmsg(c->fd, P(msgs), 2, MSG_WAITFORONE, NULL);

	cell_show(c, "len %u", msgs[0].msg_len);
	return n;
}

static long do_write(struct cell *c)
{
	return sent(c, write(c->fd, P(c->buf), 7));
}

static long do_writev(struct cell *c)
{
	return sent(c, writev(c->fd, P(parts(c)), 2));
}

static long do_pwritev(struct cell *c)
{
	return pwritev(c->fd, P(parts(c)), 2, 1);
}

static long do_pwritev64(struct cell *c)
{
	return pwritev64(c->fd, P(parts(c)), 2, 1);
}

static long do_pwritev2(struct cell *c)
{
	return sent(c, pwritev2(c->fd, P(parts(c)), 2, -1, 0));
}

static long do_pwritev64v2(struct cell *c)
{
	return sent(c, pwritev64v2(c->fd, P(parts(c)), 2, -1, 0));
}

static long do_send(struct cell *c)
{
	return sent(c, send(c->fd, P(c->buf), 7, MSG_NOSIGNAL));
}

static long do_sendto(struct cell *c)
{
	return sent(c, sendto(c->fd, P(c->buf), 7, MSG_NOSIGNAL, NULL, 0));
}

static long do_sendmsg(struct cell *c)
{
	return sent(c, sendmsg(c->fd, P(message(c)), MSG_NOSIGNAL));
}

static long do_sendmmsg(struct cell *c)
{
	return sent(c, sendmmsg(c->fd, P(messages(c)), 1, MSG_NOSIGNAL));
}

static int some_file(void)
{
	int fd = memfd_create("matrix", 0);

	if (write(fd, "0123456789", 10) != 10)
		return -1;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static long do_sendfile(struct cell *c)
{
	off_t at = 2;
	long n = sendfile(c->fd, some_file(), P(&at), 4);

	cell_show(c, "at %ld ", (long)at);
	return sent(c, n);
}

static long do_sendfile64(struct cell *c)
{
	off64_t at = 2;

	return sent(c, sendfile64(c->fd, some_file(), P(&at), 4));
}

/* From the socket into a pipe and out of it. */
static long do_splice(struct cell *c)
{
	int fds[2];
	long n;

	if (pipe(fds) != 0)
		return -2;
	errno = ENOTRECOVERABLE;
	n = splice(c->fd, NULL, fds[1], NULL, 5, 0);
	if (n > 0)
		cell_show(c, "piped %zd ", read(fds[0], c->buf, 5));
	return shown(c, n);
}

static long do_tee(struct cell *c)
{
	int fds[2];

	if (pipe(fds) != 0)
		return -2;
	return tee(c->fd, fds[1], 5, 0);
}

/* One fd set for in, so that results can be shown. */
/* How long a call waits for what does not come: one that is to be interrupted for as long
 * as that takes on the busiest machine. */
static int wait_ms(const struct cell *c)
{
	return c->condition == COND_INTERRUPTED ? 20000 : 60;
}

static struct timespec wait_time(const struct cell *c)
{
	return (struct timespec){ wait_ms(c) / 1000,
				  wait_ms(c) % 1000 * 1000000L };
}

static long do_select(struct cell *c)
{
	struct timeval timeout = { wait_ms(c) / 1000, wait_ms(c) % 1000 * 1000 };
	fd_set in;
	long n;

	FD_ZERO(&in);
	if (c->fd >= 0)
		FD_SET(c->fd, &in);
	n = select(c->fd + 1, P(&in), NULL, NULL, &timeout);
	cell_show(c, "%d", c->fd >= 0 && FD_ISSET(c->fd, &in));
	return n;
}

static long do_pselect(struct cell *c)
{
	struct timespec timeout = wait_time(c);
	fd_set in;
	sigset_t mask;

	sigemptyset(&mask);
	FD_ZERO(&in);
	if (c->fd >= 0)
		FD_SET(c->fd, &in);
	return pselect(c->fd + 1, P(&in), NULL, NULL, &timeout, P(&mask));
}

static long do_poll(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };
	long n = poll(P(&fds), 1, wait_ms(c));

	cell_show(c, "%#x", fds.revents);
	return n;
}

static long do___poll_chk(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };

	return __poll_chk(P(&fds), 1, wait_ms(c), sizeof(fds));
}

static long do_ppoll(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };
	struct timespec timeout = wait_time(c);

	return ppoll(P(&fds), 1, &timeout, NULL);
}

static long do___ppoll_chk(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };
	struct timespec timeout = wait_time(c);

	return __ppoll_chk(P(&fds), 1, &timeout, NULL, sizeof(fds));
}

static long do_epoll_create(struct cell *c)
{
	return new_fd(c, epoll_create(c->condition == COND_BAD_FD ? -1 : 1));
}

static long do_epoll_create1(struct cell *c)
{
	return new_fd(c, epoll_create1(c->condition == COND_BAD_FD ?
					       -1 :
					       EPOLL_CLOEXEC));
}

/* An epoll set that watches c->fd, or whose own fd is bad. */
static int watching(struct cell *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	int set = epoll_create1(0);

	if (c->condition == COND_BAD_FD)
		return -1;
	if (c->condition == COND_WRONG_TYPE)
		return c->fd;
	if (c->condition == COND_CLOSED)
		close(set);
	else
		epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &event);
	errno = ENOTRECOVERABLE;
	return set;
}

static long do_epoll_ctl(struct cell *c)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, c->fd, P(&event));
}

static long do_epoll_wait(struct cell *c)
{
	struct epoll_event event = { 0 };
	long n = epoll_wait(watching(c), P(&event), 1, wait_ms(c));

	cell_show(c, "%#x %u", event.events, event.data.u32);
	return n;
}

static long do_epoll_pwait(struct cell *c)
{
	struct epoll_event event;
	sigset_t mask;

	sigemptyset(&mask);
	return epoll_pwait(watching(c), P(&event), 1, wait_ms(c), P(&mask));
}

static long do_epoll_pwait2(struct cell *c)
{
	struct timespec timeout = wait_time(c);
	struct epoll_event event = { 0 };

	return epoll_pwait2(watching(c), P(&event), 1, &timeout, NULL);
}

static long do_socketpair(struct cell *c)
{
	int fds[2] = { -1, -1 };
	long n = socketpair(AF_UNIX, SOCK_STREAM, 0, P(fds));

	cell_show(c, "%d %d", fds[0], fds[1]);
	return n;
}

static long do_pipe(struct cell *c)
{
	int fds[2] = { -1, -1 };
	long n = pipe(P(fds));

	cell_show(c, "%d %d", fds[0], fds[1]);
	return n;
}

static long do_pipe2(struct cell *c)
{
	int fds[2] = { -1, -1 };
	long n = pipe2(P(fds), O_CLOEXEC);

	cell_show(c, "%d %d", fds[0], fds[1]);
	return n;
}

static const char *null_device(struct cell *c)
{
	return c->condition == COND_WRONG_TYPE ? "/no/such/file" : "/dev/null";
}

static long do_open(struct cell *c)
{
	return new_fd(c, open(P(null_device(c)), O_RDONLY | O_CLOEXEC));
}

static long do_open64(struct cell *c)
{
	return new_fd(c, open64(P(null_device(c)), O_WRONLY | O_CREAT, 0600));
}

/* The directory comes from the condition. */
static int directory(struct cell *c)
{
	if (c->condition == COND_VALID || c->condition == COND_NULL)
		return open("/dev", O_RDONLY | O_DIRECTORY);
	return c->fd;
}

static long do_openat(struct cell *c)
{
	int dir = directory(c);

	return new_fd(c, openat(dir, P("null"), O_RDONLY));
}

static long do_openat64(struct cell *c)
{
	int dir = directory(c);

	return new_fd(c, openat64(dir, P("null"), O_RDONLY | O_CLOEXEC));
}

static long do___open_2(struct cell *c)
{
	return new_fd(c, __open_2(P(null_device(c)), O_RDONLY));
}

static long do___open64_2(struct cell *c)
{
	return new_fd(c, __open64_2(P(null_device(c)), O_RDONLY));
}

static long do___openat_2(struct cell *c)
{
	int dir = directory(c);

	return new_fd(c, __openat_2(dir, P("null"), O_RDONLY));
}

static long do___openat64_2(struct cell *c)
{
	int dir = directory(c);

	return new_fd(c, __openat64_2(dir, P("null"), O_RDONLY));
}

static long do_creat(struct cell *c)
{
	return new_fd(c, creat(P("/dev/null"), 0600));
}

static long do_creat64(struct cell *c)
{
	return new_fd(c, creat64(P("/dev/null"), 0600));
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

static long do_dup(struct cell *c)
{
	return copied(c, dup(c->fd));
}

static long do_dup2(struct cell *c)
{
	return copied(c, dup2(c->fd, 60));
}

static long do_dup3(struct cell *c)
{
	return copied(c, dup3(c->fd, c->condition == COND_NULL ? c->fd : 61,
			      O_CLOEXEC));
}

static long do_close_range(struct cell *c)
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

static long do_closefrom(struct cell *c)
{
	closefrom(c->condition == COND_BAD_FD ? 1000 : c->fd);
	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return 0;
}

static long do_fdopen(struct cell *c)
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

static long do_freopen(struct cell *c)
{
	return replace_stream(c, freopen);
}

static long do_freopen64(struct cell *c)
{
	return replace_stream(c, freopen64);
}

static long do_fclose(struct cell *c)
{
	FILE *stream = fdopen(c->fd, "w");
	long n;

	if (!stream)
		return -2;
	fputs("last words", stream);
	errno = ENOTRECOVERABLE;
	n = fclose(stream);
	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return sent(c, n);
}

static long do_dprintf(struct cell *c)
{
	return sent(c, dprintf(c->fd, "%s %d", "number", 5));
}

static long do___dprintf_chk(struct cell *c)
{
	return sent(c, __dprintf_chk(c->fd, 1, "%s %d", "number", 6));
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

static long do_vdprintf(struct cell *c)
{
	return sent(c, call_vdprintf(c->fd, "%s %d", "number", 7));
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

static long do___vdprintf_chk(struct cell *c)
{
	return sent(c, call_vdprintf_chk(c->fd, "%s %d", "number", 8));
}

/* What became of a child. */
static long ended(struct cell *c, pid_t pid)
{
	int status = 0;

	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	cell_show(c, WIFEXITED(status) ? "exit %d" : "signal %d",
		  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	errno = ENOTRECOVERABLE;
	return 0;
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

static long do_aio_read(struct cell *c)
{
	struct aiocb *block = aio_block(c, sizeof(c->buf) - 1);

	return shown(c, await_aio(c, aio_read(block), block));
}

static long do_aio_read64(struct cell *c)
{
	struct aiocb *block = aio_block(c, sizeof(c->buf) - 1);

	return shown(c, await_aio(c, aio_read64((struct aiocb64 *)block), block));
}

static long do_aio_write(struct cell *c)
{
	struct aiocb *block = aio_block(c, 5);

	return sent(c, await_aio(c, aio_write(block), block));
}

static long do_aio_write64(struct cell *c)
{
	struct aiocb *block = aio_block(c, 5);

	return sent(c, await_aio(c, aio_write64((struct aiocb64 *)block), block));
}

static long do_lio_listio(struct cell *c)
{
	struct aiocb *block = aio_block(c, 5), *list[] = { NULL, block };

	block->aio_lio_opcode = LIO_WRITE;
	return sent(c, await_aio(c, lio_listio(LIO_NOWAIT, list, 2, NULL),
				 block));
}

static long do_lio_listio64(struct cell *c)
{
	struct aiocb *block = aio_block(c, sizeof(c->buf) - 1);
	struct aiocb64 *list[] = { NULL, (struct aiocb64 *)block };

	block->aio_lio_opcode = LIO_READ;
	return shown(c, await_aio(c, lio_listio64(LIO_NOWAIT, list, 2, NULL),
				  block));
}

/* The child of each kind of fork still has the connection. */
static long do_fork(struct cell *c)
{
	pid_t pid = fork();

	if (pid == 0)
		syscall(SYS_exit_group,
			read(c->fd, c->buf, 5) == 5 ? c->buf[1] : 1);
	return ended(c, pid);
}

static long do_vfork(struct cell *c)
{
	pid_t pid = vfork();
	long n;

	if (pid == 0) {
		close(c->fd);
		execl("/bin/sh", "sh", "-c", "exit 12", (char *)NULL);
		_exit(13);
	}
	n = ended(c, pid);
	cell_show(c, " parent has %d", fcntl(c->fd, F_GETFD));
	return n;
}

static long do_daemon(struct cell *c)
{
	int fds[2];
	pid_t pid;
	char byte = '-';

	if (pipe(fds) != 0)
		return -2;
	pid = fork();
	if (pid == 0) {
		bool ok = daemon(0, 0) == 0;

		if (write(fds[1], ok ? "y" : "n", 1) != 1)
			real_exit(1);
		real_exit(0);
	}
	close(fds[1]);
	ended(c, pid);
	if (read(fds[0], &byte, 1) == 1)
		cell_show(c, " daemon %c", byte);
	errno = ENOTRECOVERABLE;
	return 0;
}

#define IN_CHILD(statement)           \
	({                            \
		pid_t pid_ = fork();  \
		if (pid_ == 0) {      \
			statement;    \
			real_exit(1); \
		}                     \
		ended(c, pid_);       \
	})

static long do__exit(struct cell *c)
{
	return IN_CHILD(_exit(3));
}

static long do__Exit(struct cell *c)
{
	return IN_CHILD(_Exit(4));
}

static long do_quick_exit(struct cell *c)
{
	return IN_CHILD(quick_exit(5));
}

static char *shell_args[] = { "sh", "-c", "exit ${CODE:-21}", NULL };
static char *shell_env[] = { "CODE=22", NULL };

static const char *shell(struct cell *c)
{
	return c->condition == COND_WRONG_TYPE ? "/no/such/program" : "/bin/sh";
}

/* A failed exec tells its errno by the exit code. */
#define EXEC(call)                                      \
	IN_CHILD({                                      \
		call;                                   \
		syscall(SYS_exit_group, 100 + errno);   \
	})

static long do_execve(struct cell *c)
{
	return EXEC(execve(P(shell(c)), shell_args, shell_env));
}

static long do_execv(struct cell *c)
{
	return EXEC(execv(P(shell(c)), shell_args));
}

static long do_execvp(struct cell *c)
{
	return EXEC(execvp(c->condition == COND_WRONG_TYPE ? "no-such" : "sh",
			   shell_args));
}

static long do_execvpe(struct cell *c)
{
	return EXEC(execvpe(c->condition == COND_WRONG_TYPE ? "no-such" : "sh",
			    shell_args, shell_env));
}

static long do_fexecve(struct cell *c)
{
	int fd = c->condition == COND_VALID ? open("/bin/sh", O_RDONLY) : c->fd;

	return EXEC(fexecve(fd, shell_args, shell_env));
}

static long do_execveat(struct cell *c)
{
	int dir = c->condition == COND_VALID ? open("/bin", O_RDONLY) : c->fd;

	return EXEC(execveat(dir, P("sh"), shell_args, shell_env, 0));
}

static long do_execl(struct cell *c)
{
	return EXEC(execl(shell(c), "sh", "-c", "exit $1", "sh", "23",
			  (char *)NULL));
}

static long do_execlp(struct cell *c)
{
	return EXEC(execlp(c->condition == COND_WRONG_TYPE ? "no-such" : "sh",
			   "sh", "-c", "exit 24", (char *)NULL));
}

static long do_execle(struct cell *c)
{
	return EXEC(execle(shell(c), "sh", "-c", "exit ${CODE:-21}",
			   (char *)NULL, shell_env));
}

static long do__Fork(struct cell *c)
{
	pid_t pid = _Fork();

	if (pid == 0)
		syscall(SYS_exit_group,
			read(c->fd, c->buf, 5) == 5 ? c->buf[1] : 1);
	return ended(c, pid);
}

static int read_in_clone(void *arg)
{
	struct cell *c = arg;

	syscall(SYS_exit_group, read(c->fd, c->buf, 5) == 5 ? c->buf[1] : 1);
	return 1;
}

static long do_clone(struct cell *c)
{
	static char stack[256 << 10] __attribute__((aligned(16)));

	return ended(c, clone(read_in_clone, stack + sizeof(stack), SIGCHLD, c));
}

/* These two return their errors. */
static long spawned(struct cell *c, int result, pid_t pid)
{
	if (result == 0)
		return ended(c, pid);
	cell_show(c, "error %d", result);
	errno = ENOTRECOVERABLE;
	return 0;
}

static long do_posix_spawn(struct cell *c)
{
	pid_t pid = -1;
	int result = posix_spawn(&pid, shell(c), NULL, NULL, shell_args,
				 shell_env);

	return spawned(c, result, pid);
}

static long do_posix_spawnp(struct cell *c)
{
	pid_t pid = -1;
	int result = posix_spawnp(
		&pid, c->condition == COND_WRONG_TYPE ? "no-such" : "sh", NULL,
		NULL, shell_args, shell_env);

	return spawned(c, result, pid);
}

/* The child reads what waits in the connection, by its standard input. */
static long do_posix_spawn_file_actions_adddup2(struct cell *c)
{
	char *args[] = { "sh", "-c", "read -n 5 x || test -n \"$x\"", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int result;

	posix_spawn_file_actions_init(&actions);
	result = posix_spawn_file_actions_adddup2(&actions, c->fd, 0);
	cell_show(c, "added %d ", result);
	if (result == 0)
		result = posix_spawn(&pid, "/bin/bash", &actions, NULL, args,
				     shell_env);
	posix_spawn_file_actions_destroy(&actions);
	return spawned(c, result, pid);
}

static long do_system(struct cell *c)
{
	int status = system(P("exit 25"));

	cell_show(c, "status %#x", (unsigned)status);
	errno = ENOTRECOVERABLE;
	return 0;
}

static long do_popen(struct cell *c)
{
	FILE *file = popen("echo said; exit 26",
			   c->condition == COND_WRONG_TYPE ? "x" : "re");
	char line[16] = "";

	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file))
		cell_show(c, "%.4s ", line);
	cell_show(c, "status %#x", (unsigned)pclose(file));
	errno = ENOTRECOVERABLE;
	return 0;
}

static long do_prctl(struct cell *c)
{
	char name[16] = "", *at = P(name);
	int n = c->condition == COND_WRONG_TYPE ?
			prctl(-1, 0, 0, 0, 0) :
			prctl(PR_GET_NAME, at, 0, 0, 0);

	cell_show(c, "%.6s %d", name, prctl(PR_GET_SECCOMP));
	return n;
}

static long do_setns(struct cell *c)
{
	int fd = c->condition == COND_VALID ?
			 open("/proc/self/ns/uts", O_RDONLY) :
			 c->fd;

	errno = ENOTRECOVERABLE;
	return setns(fd, CLONE_NEWUTS);
}

static long do_unshare(struct cell *c)
{
	return unshare(c->condition == COND_BAD_FD ? -1 : CLONE_FILES);
}

static volatile int handled;

static void handle(int sig)
{
	handled += sig;
}

/* Installs, raises, asks what is there. */
static void try_handler(struct cell *c)
{
	struct sigaction now;
	int saved_errno = errno;

	raise(SIGUSR2);
	sigaction(SIGUSR2, NULL, &now);
	cell_show(c, "handled %d, %s, flags %#x", handled,
		  now.sa_handler == handle  ? "own" :
		  now.sa_handler == SIG_DFL ? "default" :
					      "other",
		  (unsigned)now.sa_flags);
	errno = saved_errno;
}

static int signal_for(const struct cell *c)
{
	return c->condition == COND_BAD_FD     ? 99 :
	       c->condition == COND_WRONG_TYPE ? SIGKILL :
						 SIGUSR2;
}

static long do_sigaction(struct cell *c)
{
	struct sigaction act = { .sa_handler = handle,
				 .sa_flags = SA_NODEFER };
	long n = sigaction(signal_for(c), P(&act), NULL);

	if (n == 0 && c->condition == COND_VALID)
		try_handler(c);
	return n;
}

static long by_signal(struct cell *c, sighandler_t (*set)(int, sighandler_t))
{
	sighandler_t old = set(signal_for(c), c->is_null ? NULL : handle);

	if (old == SIG_ERR)
		return -1;
	if (c->condition == COND_VALID)
		try_handler(c);
	return old == SIG_DFL ? 0 : 1;
}

static long do_signal(struct cell *c)
{
	return by_signal(c, signal);
}

static long do_bsd_signal(struct cell *c)
{
	extern sighandler_t bsd_signal(int sig, sighandler_t handler);

	return by_signal(c, bsd_signal);
}

static long do_sysv_signal(struct cell *c)
{
	return by_signal(c, sysv_signal);
}

static long do___sysv_signal(struct cell *c)
{
	return by_signal(c, __sysv_signal);
}

static long do_sigset(struct cell *c)
{
	extern sighandler_t sigset(int sig, sighandler_t disposition);

	return by_signal(c, sigset);
}

static long do_siginterrupt(struct cell *c)
{
	extern int siginterrupt(int sig, int flag);
	long n;

	signal(SIGUSR2, handle);
	n = siginterrupt(signal_for(c), 1);
	if (c->condition == COND_VALID)
		try_handler(c);
	return n;
}

struct sigvec_args {
	void (*handler)(int);
	int mask, flags;
};

/* Only old programs have it, by its old version. */
static long do_sigvec(struct cell *c)
{
	extern int old_sigvec(int sig, const struct sigvec_args *vec,
			      struct sigvec_args *old);
	struct sigvec_args vec = { handle, 0, 2 };
	long n = old_sigvec(signal_for(c), P(&vec), NULL);

	if (n == 0 && c->condition == COND_VALID)
		try_handler(c);
	return n;
}

__asm__(".symver old_sigvec, sigvec@GLIBC_2.2.5");

/* By number: what the program means is the same call. */
static long do_syscall(struct cell *c)
{
	long n = syscall(SYS_read, c->fd, P(c->buf), 5);

	shown(c, n);
	if (n > 0) {
		long copy = syscall(SYS_dup, c->fd);

		cell_show(c, " copy %ld", copy);
		cell_show(c, " close %ld", syscall(SYS_close, copy));
		cell_show(c, " sent %ld",
			  syscall(SYS_sendto, c->fd, "x", 1, 0, NULL, 0));
		errno = ENOTRECOVERABLE;
	}
	return n;
}

#define NOT(condition) (1u << COND_##condition)
/* There is no pointer that may be NULL. */
#define NO_NULL NOT(NULL)
/* The call does not wait. */
#define NO_WAIT (NOT(NONBLOCKING) | NOT(INTERRUPTED))
/* There is no fd to be bad. */
#define NO_FD (NOT(BAD_FD) | NOT(CLOSED))
#define ONLY_VALID (NO_NULL | NO_WAIT | NO_FD | NOT(WRONG_TYPE))

#define CALL(name, role, not_in) { #name, ROLE_##role, not_in, false, do_##name }
#define CALL_ERRNO(name, role, not_in) \
	{ #name, ROLE_##role, not_in, true, do_##name }

const struct call calls[] = {
	CALL(socket, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL_ERRNO(close, STREAM, NO_NULL),
	CALL_ERRNO(__res_iclose, STREAM, NO_NULL | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(shutdown, STREAM, NO_NULL | NO_WAIT),
	CALL(listen, SOCKET, NO_NULL | NO_WAIT),
	CALL(accept, LISTENER, 0),
	CALL(accept4, LISTENER, 0),
	CALL(bind, SOCKET, NO_WAIT),
	CALL(connect, SOCKET, NOT(INTERRUPTED)),
	CALL(setsockopt, SOCKET, NO_WAIT),
	CALL(getsockopt, SOCKET, NO_WAIT),
	CALL(fcntl, STREAM, NO_NULL | NOT(INTERRUPTED)),
	CALL(fcntl64, STREAM, NO_NULL | NOT(INTERRUPTED)),
	CALL(ioctl, STREAM, NO_WAIT),
	CALL(getsockname, STREAM, NO_WAIT),
	CALL(getpeername, STREAM, NO_WAIT),
	CALL(read, STREAM, 0),
	CALL(__read_chk, STREAM, 0),
	CALL(readv, STREAM, 0),
	CALL(preadv, FILE, NO_WAIT),
	CALL(preadv64, FILE, NO_WAIT),
	CALL(preadv2, STREAM, 0),
	CALL(preadv64v2, STREAM, 0),
	CALL(recv, STREAM, 0),
	CALL(__recv_chk, STREAM, 0),
	CALL(recvfrom, DGRAM, 0),
	CALL(__recvfrom_chk, STREAM, 0),
	CALL(recvmsg, DGRAM, 0),
	CALL(recvmmsg, DGRAM, 0),
	CALL(write, SENDER, 0),
	CALL(writev, SENDER, 0),
	CALL(pwritev, FILE, NO_WAIT),
	CALL(pwritev64, FILE, NO_WAIT),
	CALL(pwritev2, SENDER, 0),
	CALL(pwritev64v2, SENDER, 0),
	CALL(send, SENDER, 0),
	CALL(sendto, SENDER, 0),
	CALL(sendmsg, SENDER, 0),
	CALL(sendmmsg, SENDER, 0),
	CALL(sendfile, SENDER, 0),
	CALL(sendfile64, SENDER, 0),
	CALL(splice, STREAM, NO_NULL),
	CALL(tee, STREAM, NO_NULL | NO_WAIT),
	CALL(select, STREAM, NOT(BAD_FD)),
	CALL(pselect, STREAM, NOT(BAD_FD)),
	CALL(poll, STREAM, 0),
	CALL(__poll_chk, STREAM, 0),
	CALL(ppoll, STREAM, 0),
	CALL(__ppoll_chk, STREAM, 0),
	CALL(epoll_create, NONE,
	     NO_NULL | NO_WAIT | NOT(CLOSED) | NOT(WRONG_TYPE)),
	CALL(epoll_create1, NONE,
	     NO_NULL | NO_WAIT | NOT(CLOSED) | NOT(WRONG_TYPE)),
	CALL(epoll_ctl, STREAM, NO_WAIT),
	CALL(epoll_wait, STREAM, 0),
	CALL(epoll_pwait, STREAM, 0),
	CALL(epoll_pwait2, STREAM, 0),
	CALL(socketpair, NONE, NO_FD | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(pipe, NONE, NO_FD | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(pipe2, NONE, NO_FD | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(open, NONE, NO_FD | NO_WAIT),
	CALL(open64, NONE, NO_FD | NO_WAIT),
	CALL(openat, STREAM, NO_WAIT),
	CALL(openat64, STREAM, NO_WAIT),
	CALL(__open_2, NONE, NO_FD | NO_WAIT),
	CALL(__open64_2, NONE, NO_FD | NO_WAIT),
	CALL(__openat_2, STREAM, NO_WAIT),
	CALL(__openat64_2, STREAM, NO_WAIT),
	CALL(creat, NONE, NO_FD | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(creat64, NONE, NO_FD | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(dup, STREAM, NO_NULL | NO_WAIT),
	CALL(dup2, STREAM, NO_NULL | NO_WAIT),
	CALL(dup3, STREAM, NO_WAIT),
	CALL_ERRNO(close_range, STREAM, NO_NULL | NO_WAIT),
	CALL_ERRNO(closefrom, STREAM, NO_NULL | NO_WAIT | NOT(WRONG_TYPE)),
	CALL_ERRNO(fdopen, STREAM, NO_WAIT),
	CALL_ERRNO(freopen, STREAM, NO_WAIT | NO_FD | NOT(WRONG_TYPE)),
	CALL_ERRNO(freopen64, STREAM, NO_WAIT | NO_FD | NOT(WRONG_TYPE)),
	CALL_ERRNO(fclose, SENDER,
		   NO_NULL | NO_WAIT | NO_FD | NOT(WRONG_TYPE)),
	CALL_ERRNO(dprintf, SENDER, NO_NULL | NOT(INTERRUPTED)),
	CALL_ERRNO(__dprintf_chk, SENDER, NO_NULL | NOT(INTERRUPTED)),
	CALL_ERRNO(vdprintf, SENDER, NO_NULL | NOT(INTERRUPTED)),
	CALL_ERRNO(__vdprintf_chk, SENDER, NO_NULL | NOT(INTERRUPTED)),
	CALL(aio_read, STREAM, NO_NULL | NO_WAIT),
	CALL(aio_read64, STREAM, NO_NULL | NO_WAIT),
	CALL(aio_write, SENDER, NO_NULL | NO_WAIT),
	CALL(aio_write64, SENDER, NO_NULL | NO_WAIT),
	CALL(lio_listio, SENDER, NO_NULL | NO_WAIT),
	CALL(lio_listio64, STREAM, NO_NULL | NO_WAIT),
	CALL(fork, STREAM, ONLY_VALID),
	CALL_ERRNO(vfork, STREAM, ONLY_VALID),
	CALL(daemon, NONE, ONLY_VALID),
	CALL(_exit, NONE, ONLY_VALID),
	CALL(_Exit, NONE, ONLY_VALID),
	CALL(quick_exit, NONE, ONLY_VALID),
	CALL(execve, NONE, NO_FD | NO_WAIT),
	CALL(execv, NONE, NO_FD | NO_WAIT),
	CALL(execvp, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(execvpe, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(fexecve, STREAM, NO_NULL | NO_WAIT),
	CALL(execveat, STREAM, NO_WAIT),
	CALL(execl, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(execlp, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(execle, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(_Fork, STREAM, ONLY_VALID),
	CALL(clone, STREAM, ONLY_VALID),
	CALL(posix_spawn, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(posix_spawnp, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(posix_spawn_file_actions_adddup2, STREAM,
	     NO_NULL | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(system, NONE, NO_FD | NO_WAIT | NOT(WRONG_TYPE)),
	CALL(popen, NONE, NO_NULL | NO_FD | NO_WAIT),
	CALL(prctl, NONE, NO_FD | NO_WAIT),
	CALL(setns, STREAM, NO_NULL | NO_WAIT),
	CALL(unshare, NONE,
	     NO_NULL | NO_WAIT | NOT(CLOSED) | NOT(WRONG_TYPE)),
	CALL(sigaction, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(signal, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(bsd_signal, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(sysv_signal, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(__sysv_signal, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(sigset, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(siginterrupt, NONE, NO_NULL | NO_WAIT | NOT(CLOSED)),
	CALL(sigvec, NONE, NO_WAIT | NOT(CLOSED)),
	CALL(syscall, STREAM, 0),
};
const size_t calls_cnt = sizeof(calls) / sizeof(calls[0]);
