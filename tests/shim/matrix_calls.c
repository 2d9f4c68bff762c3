/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the matrix makes the calls on sockets and on sets of them, and the table of all
 * calls. A call is a function of a prepared cell; what it is prepared with is in
 * matrix_calls.def.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <resolv.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/poll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/shim/matrix_calls.h"

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

void *cell_pointer(const struct cell *c, const void *p)
{
	return c->is_null ? NULL : (void *)p;
}

long cell_shown(struct cell *c, long n)
{
	if (n > 0 && n < (long)sizeof(c->buf))
		cell_show(c, "%.*s", (int)n, c->buf);
	return n;
}

long cell_new_fd(struct cell *c, long fd)
{
	if (fd >= 0) {
		cell_show(c, "flags %d", fcntl((int)fd, F_GETFD));
		close((int)fd);
	}
	return fd;
}

long cell_sent(struct cell *c, long n)
{
	char buf[64];
	long got;

	if (n <= 0 || c->condition != COND_VALID)
		return n;
	got = recv(c->peer, buf, sizeof(buf), 0);
	cell_show(c, "peer got %ld %.*s", got, got > 0 ? (int)got : 0, buf);
	return n;
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

static struct sockaddr *any_address(struct cell *c)
{
	static struct sockaddr_in addr;

	(void)c;
	addr = loopback(0);
	return (struct sockaddr *)&addr;
}

long do_socket(struct cell *c)
{
	return cell_new_fd(c, c->condition == COND_WRONG_TYPE ?
				 socket(AF_INET, 77, 0) :
				 socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

long do_close(struct cell *c)
{
	long n = close(c->fd);

	cell_show(c, "then %d", fcntl(c->fd, F_GETFD));
	return n;
}

long do___res_iclose(struct cell *c)
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

long do_shutdown(struct cell *c)
{
	char byte;
	long n = shutdown(c->fd, SHUT_WR);

	if (n == 0)
		cell_show(c, "peer reads %zd", recv(c->peer, &byte, 1, 0));
	return n;
}

long do_sockatmark(struct cell *c)
{
	return sockatmark(c->fd);
}

long do_listen(struct cell *c)
{
	return listen(c->fd, 3);
}

long do_accept(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);
	long fd = accept(c->fd, P((struct sockaddr *)&addr), P(&len));

	if (fd >= 0)
		cell_show(c, "family %d ", addr.sin_family);
	return cell_new_fd(c, fd);
}

long do_accept4(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);

	return cell_new_fd(c, accept4(c->fd, P((struct sockaddr *)&addr), P(&len),
				 SOCK_CLOEXEC));
}

long do_bind(struct cell *c)
{
	return bind(c->fd, P(any_address(c)), sizeof(struct sockaddr_in));
}

long do_connect(struct cell *c)
{
	struct sockaddr_in addr = loopback(1); /* nobody listens */

	return connect(c->fd, P((struct sockaddr *)&addr), sizeof(addr));
}

long do_setsockopt(struct cell *c)
{
	int on = 1, now = 0;
	socklen_t len = sizeof(now);
	long n = setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, P(&on),
			    sizeof(on));

	if (n == 0 && getsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &now, &len) == 0)
		cell_show(c, "now %d", now);
	return n;
}

long do_getsockopt(struct cell *c)
{
	int type = 0;
	socklen_t len = sizeof(type);
	long n = getsockopt(c->fd, SOL_SOCKET, SO_TYPE, P(&type), P(&len));

	cell_show(c, "%d %u", type, len);
	return n;
}

long do_fcntl(struct cell *c)
{
	long copy = fcntl(c->fd, F_DUPFD, 100);
	long n = fcntl(c->fd, F_GETFL);

	cell_show(c, "copy %ld", copy);
	return n;
}

long do_fcntl64(struct cell *c)
{
	extern int fcntl64(int fd, int cmd, ...);
	long copy = fcntl64(c->fd, F_DUPFD_CLOEXEC, 100);
	long n = fcntl64(c->fd, F_SETFD, FD_CLOEXEC);

	cell_show(c, "copy %ld", copy);
	return n;
}

long do_ioctl(struct cell *c)
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

long do_getsockname(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);

	return show_name(c,
			 getsockname(c->fd, P((struct sockaddr *)&addr),
				     P(&len)),
			 &addr, len);
}

long do_getpeername(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);

	return show_name(c,
			 getpeername(c->fd, P((struct sockaddr *)&addr),
				     P(&len)),
			 &addr, len);
}

long do_read(struct cell *c)
{
	return cell_shown(c, read(c->fd, P(c->buf), sizeof(c->buf) - 1));
}

long do___read_chk(struct cell *c)
{
	return cell_shown(c, __read_chk(c->fd, P(c->buf), sizeof(c->buf) - 1,
				   sizeof(c->buf)));
}

long do_readv(struct cell *c)
{
	return cell_shown(c, readv(c->fd, P(parts(c)), 2));
}

long do_preadv(struct cell *c)
{
	return cell_shown(c, preadv(c->fd, P(parts(c)), 2, 1));
}

long do_preadv64(struct cell *c)
{
	return cell_shown(c, preadv64(c->fd, P(parts(c)), 2, 1));
}

long do_preadv2(struct cell *c)
{
	return cell_shown(c, preadv2(c->fd, P(parts(c)), 2, -1, 0));
}

long do_preadv64v2(struct cell *c)
{
	return cell_shown(c, preadv64v2(c->fd, P(parts(c)), 2, -1, 0));
}

long do_recv(struct cell *c)
{
	return cell_shown(c, recv(c->fd, P(c->buf), 5, 0));
}

long do___recv_chk(struct cell *c)
{
	return cell_shown(c, __recv_chk(c->fd, P(c->buf), 5, 64, MSG_PEEK));
}

long do_recvfrom(struct cell *c)
{
	struct sockaddr_in addr = { 0 };
	socklen_t len = sizeof(addr);
	long n = recvfrom(c->fd, P(c->buf), 5, 0, P((struct sockaddr *)&addr),
			  P(&len));

	cell_show(c, "from %d %u ", addr.sin_family, len);
	return cell_shown(c, n);
}

long do___recvfrom_chk(struct cell *c)
{
	return cell_shown(c, __recvfrom_chk(c->fd, P(c->buf), 5, 64, 0, NULL, NULL));
}

long do_recvmsg(struct cell *c)
{
	struct msghdr *msg = message(c);
	long n = recvmsg(c->fd, P(msg), 0);

	cell_show(c, "flags %#x ", msg->msg_flags);
	return cell_shown(c, n);
}

long do_recvmmsg(struct cell *c)
{
	struct mmsghdr *msgs = messages(c);
	long n = recvmmsg(c->fd, P(msgs), 2, MSG_WAITFORONE, NULL);

	cell_show(c, "len %u", msgs[0].msg_len);
	return n;
}

long do_write(struct cell *c)
{
	return cell_sent(c, write(c->fd, P(c->buf), 7));
}

long do_writev(struct cell *c)
{
	return cell_sent(c, writev(c->fd, P(parts(c)), 2));
}

long do_pwritev(struct cell *c)
{
	return pwritev(c->fd, P(parts(c)), 2, 1);
}

long do_pwritev64(struct cell *c)
{
	return pwritev64(c->fd, P(parts(c)), 2, 1);
}

long do_pwritev2(struct cell *c)
{
	return cell_sent(c, pwritev2(c->fd, P(parts(c)), 2, -1, 0));
}

long do_pwritev64v2(struct cell *c)
{
	return cell_sent(c, pwritev64v2(c->fd, P(parts(c)), 2, -1, 0));
}

long do_send(struct cell *c)
{
	return cell_sent(c, send(c->fd, P(c->buf), 7, MSG_NOSIGNAL));
}

long do_sendto(struct cell *c)
{
	return cell_sent(c, sendto(c->fd, P(c->buf), 7, MSG_NOSIGNAL, NULL, 0));
}

long do_sendmsg(struct cell *c)
{
	return cell_sent(c, sendmsg(c->fd, P(message(c)), MSG_NOSIGNAL));
}

long do_sendmmsg(struct cell *c)
{
	return cell_sent(c, sendmmsg(c->fd, P(messages(c)), 1, MSG_NOSIGNAL));
}

static int some_file(void)
{
	int fd = memfd_create("matrix", 0);

	if (write(fd, "0123456789", 10) != 10)
		return -1;
	lseek(fd, 0, SEEK_SET);
	return fd;
}

long do_sendfile(struct cell *c)
{
	off_t at = 2;
	long n = sendfile(c->fd, some_file(), P(&at), 4);

	cell_show(c, "at %ld ", (long)at);
	return cell_sent(c, n);
}

long do_sendfile64(struct cell *c)
{
	off64_t at = 2;

	return cell_sent(c, sendfile64(c->fd, some_file(), P(&at), 4));
}

/* From the socket into a pipe and out of it. */
long do_splice(struct cell *c)
{
	int fds[2];
	long n;

	if (pipe(fds) != 0)
		return -2;
	errno = ENOTRECOVERABLE;
	n = splice(c->fd, NULL, fds[1], NULL, 5, 0);
	if (n > 0)
		cell_show(c, "piped %zd ", read(fds[0], c->buf, 5));
	return cell_shown(c, n);
}

long do_tee(struct cell *c)
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

long do_select(struct cell *c)
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

long do_pselect(struct cell *c)
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

long do_poll(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };
	long n = poll(P(&fds), 1, wait_ms(c));

	cell_show(c, "%#x", fds.revents);
	return n;
}

long do___poll_chk(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };

	return __poll_chk(P(&fds), 1, wait_ms(c), sizeof(fds));
}

long do_ppoll(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };
	struct timespec timeout = wait_time(c);

	return ppoll(P(&fds), 1, &timeout, NULL);
}

long do___ppoll_chk(struct cell *c)
{
	struct pollfd fds = { .fd = c->fd, .events = POLLIN };
	struct timespec timeout = wait_time(c);

	return __ppoll_chk(P(&fds), 1, &timeout, NULL, sizeof(fds));
}

long do_epoll_create(struct cell *c)
{
	return cell_new_fd(c, epoll_create(c->condition == COND_BAD_FD ? -1 : 1));
}

long do_epoll_create1(struct cell *c)
{
	return cell_new_fd(c, epoll_create1(c->condition == COND_BAD_FD ?
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

long do_epoll_ctl(struct cell *c)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, c->fd, P(&event));
}

long do_epoll_wait(struct cell *c)
{
	struct epoll_event event = { 0 };
	long n = epoll_wait(watching(c), P(&event), 1, wait_ms(c));

	cell_show(c, "%#x %u", event.events, event.data.u32);
	return n;
}

long do_epoll_pwait(struct cell *c)
{
	struct epoll_event event;
	sigset_t mask;

	sigemptyset(&mask);
	return epoll_pwait(watching(c), P(&event), 1, wait_ms(c), P(&mask));
}

long do_epoll_pwait2(struct cell *c)
{
	struct timespec timeout = wait_time(c);
	struct epoll_event event = { 0 };

	return epoll_pwait2(watching(c), P(&event), 1, &timeout, NULL);
}

long do_socketpair(struct cell *c)
{
	int fds[2] = { -1, -1 };
	long n = socketpair(AF_UNIX, SOCK_STREAM, 0, P(fds));

	cell_show(c, "%d %d", fds[0], fds[1]);
	return n;
}

long do_pipe(struct cell *c)
{
	int fds[2] = { -1, -1 };
	long n = pipe(P(fds));

	cell_show(c, "%d %d", fds[0], fds[1]);
	return n;
}

long do_pipe2(struct cell *c)
{
	int fds[2] = { -1, -1 };
	long n = pipe2(P(fds), O_CLOEXEC);

	cell_show(c, "%d %d", fds[0], fds[1]);
	return n;
}

/* By number: what the program means is the same call. */
long do_syscall(struct cell *c)
{
	long n = syscall(SYS_read, c->fd, P(c->buf), 5);

	cell_shown(c, n);
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

#define CALL(name, role, not_in) { #name, ROLE_##role, not_in, false, do_##name },
#define CALL_ERRNO(name, role, not_in) \
	{ #name, ROLE_##role, not_in, true, do_##name },

const struct call calls[] = {
#include "tests/shim/matrix_calls.def"
};
const size_t calls_cnt = sizeof(calls) / sizeof(calls[0]);
