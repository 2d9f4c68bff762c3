/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plays sequences (sequence.h). What it prints names fds by their slots and ports by
 * the slots that have them, so that it does not depend on the numbers of the kernel. */
#define _GNU_SOURCE
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/rand.h"
#include "tests/sequences/play.h"
#include "tests/support/sleeper.h"

/* Nobody listens there. */
enum { DEAD_PORT = 1 };

enum { LEN_MAX = 1400, EVENTS_MAX = 64, WAIT_MS = 2, MEANWHILE_MS = 20 };

unsigned long sequence_received;

/* The second thread, which does what it is given. */
static struct {
	pthread_t thread;
	bool is_made;
	sem_t has_work, is_done;
	_Atomic pid_t tid;
	const struct op *op;
	/* of a wait: it has begun, and is over; what it found */
	_Atomic bool has_begun, is_over;
	bool is_waiting;
	int found, error;
	struct epoll_event events[8];
} other;

struct play play;

void say(const char *fmt, ...)
{
	struct record *record = play.record;
	size_t room = sizeof(record->text) - record->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(record->text + record->len, room, fmt, args);
	va_end(args);
	if (n > 0)
		record->len += MIN((unsigned)n, (unsigned)room - 1);
}

bool said(long n)
{
	if (n < 0)
		say(" %s", strerrorname_np(errno));
	else
		say(" %ld", n);
	return n >= 0;
}

/* -- where we are ------------------------------------------------------------------- */

/* The address that sockets are bound to, and the one by which they reach each other:
 * that of a mirror, or the same. */
static struct in_addr owned = { 0 }, heard = { 0 };

static void find_addresses(void)
{
	const char *own = getenv("SEQUENCES_OWNED");
	const char *mirror = getenv("SEQUENCES_HEARD_AT");

	owned.s_addr = own ? inet_addr(own) : htonl(INADDR_LOOPBACK);
	heard.s_addr = mirror ? inet_addr(mirror) : owned.s_addr;
}

/* What was sent has arrived then: the mirror and the ring keep the order. */
static void settle_once(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = owned };
	socklen_t len = sizeof(name);
	static int fd = -1;
	char c = 0;

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
			abort();
	}
	getsockname(fd, (struct sockaddr *)&name, &len);
	name.sin_addr = heard;
	if (sendto(fd, &c, 1, 0, (struct sockaddr *)&name, sizeof(name)) != 1 ||
	    recv(fd, &c, 1, 0) != 1)
		abort();
	sequence_received++;
}

/* A conversation of TCP is over after a few rounds: data, answer, reset, and what that
 * wakes. */
static void settle(void)
{
	enum { ROUNDS = 4 };

	if (play.s->is_tcp)
		for (int i = 0; i < ROUNDS; i++)
			settle_once();
	else if (owned.s_addr != heard.s_addr)
		settle_once();
}

/* -- names ---------------------------------------------------------------------------- */

static bool name_of_slot(int slot, struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);

	memset(name, 0, sizeof(*name));
	return getsockname(play.fds[slot], (struct sockaddr *)name, &len) == 0 &&
	       name->sin_family == AF_INET;
}

static void say_name(const struct sockaddr_in *name)
{
	struct sockaddr_in own;

	say(" %s:", name->sin_addr.s_addr == owned.s_addr ? "own" :
		    name->sin_addr.s_addr == heard.s_addr ? "mirror" :
		    name->sin_addr.s_addr ? "elsewhere" : "any");
	if (name->sin_port == 0 || ntohs(name->sin_port) == DEAD_PORT) {
		say("%d", ntohs(name->sin_port));
		return;
	}
	for (int i = 0; i < SLOTS; i++)
		if (name_of_slot(i, &own) && own.sin_port == name->sin_port) {
			say("of-%d", i);
			return;
		}
	say("gone");
}

static struct sockaddr_in at_port(struct in_addr addr, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr = addr };
}

/* Where a slot hears; port 0 if it does not. */
static struct sockaddr_in heard_at(int slot)
{
	struct sockaddr_in name;

	return at_port(heard, name_of_slot(slot, &name) ? ntohs(name.sin_port) :
							 0);
}

/* -- slots ---------------------------------------------------------------------------- */

/* A member of a set whose number is another file's by now cannot be found in the kernel's
 * set when it becomes the kernel's. */
static void leave_sets(int slot)
{
	for (int i = 0; play.s->has_processes && play.s->is_tcp && i < SLOTS; i++)
		if (play.fds[i] >= 0)
			(void)!epoll_ctl(play.fds[i], EPOLL_CTL_DEL,
					 play.fds[slot], NULL);
}

void put(int slot, int fd, bool is_blocking)
{
	if (fd < 0)
		return;
	leave_sets(slot);
	if (play.fds[slot] >= 0)
		close(play.fds[slot]);
	play.fds[slot] = fd;
	play.is_blocking[slot] = is_blocking;
	play.is_private[slot] = false;
}

void share_all(void)
{
	memset(play.is_private, 0, sizeof(play.is_private));
}

/* Nagle's rule would make what arrives depend on the time. */
static void set_nodelay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void play_socket(const struct op *op)
{
	bool is_blocking = op->n == 2 && !play.s->is_tcp;
	int fd = socket(AF_INET,
			(play.s->is_tcp ? SOCK_STREAM : SOCK_DGRAM) |
				(is_blocking ? 0 : SOCK_NONBLOCK) |
				(op->n == 1 ? SOCK_CLOEXEC : 0), 0);

	said(fd < 0 ? fd : 0);
	if (play.s->is_tcp && fd >= 0)
		set_nodelay(fd);
	put(op->a, fd, is_blocking);
	play.is_private[op->a] = fd >= 0;
}

static void play_close(const struct op *op)
{
	leave_sets(op->a);
	said(close(play.fds[op->a]));
	play.fds[op->a] = -1;
}

static void play_dup(const struct op *op)
{
	bool is_blocking = play.is_blocking[op->a];
	int fd;

	fd = dup(play.fds[op->a]);
	said(fd < 0 ? fd : 0);
	put(op->b, fd, is_blocking);
	play.is_private[op->b] = play.is_private[op->a];
}

static void play_dup2(const struct op *op)
{
	int fd;

	if (op->a != op->b)
		leave_sets(op->b);
	fd = dup2(play.fds[op->a], play.fds[op->b]);
	said(fd < 0 ? fd : 0);
	if (fd < 0)
		return;
	play.is_blocking[op->b] = play.is_blocking[op->a];
	play.is_private[op->b] = play.is_private[op->a];
}

static void play_eventfd(const struct op *op)
{
	int fd = eventfd(op->n, EFD_NONBLOCK | EFD_CLOEXEC);

	said(fd < 0 ? fd : 0);
	put(op->a, fd, false);
}

static void play_pipe(const struct op *op)
{
	int fds[2] = { -1, -1 };

	said(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
	put(op->a, fds[0], false);
	put(op->b, fds[1], false);
}

static void play_epoll_create(const struct op *op)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	said(fd < 0 ? fd : 0);
	put(op->a, fd, false);
}

static void play_read(const struct op *op)
{
	uint64_t value = 0;

	if (play.is_blocking[op->a])
		said(recv(play.fds[op->a], &value, sizeof(value), MSG_DONTWAIT));
	else
		said(read(play.fds[op->a], &value, sizeof(value)));
}

/* -- sockets -------------------------------------------------------------------------- */

bool is_unconnected(int slot)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return play.s->is_tcp &&
	       getsockopt(play.fds[slot], IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

/* A receive call that does not wait looks at the kernel's queue now and then, poll() each
 * time. */
bool is_unread(int slot)
{
	struct pollfd fd = { .fd = play.fds[slot], .events = POLLIN };
	int type = 0;
	socklen_t len = sizeof(type);
	char c;

	return getsockopt(play.fds[slot], SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_DGRAM && poll(&fd, 1, 0) > 0 && fd.revents & POLLIN &&
	       recv(play.fds[slot], &c, 0, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A connection of TCP that has ended has a port with us, and none with Linux, unless the
 * program has bound it. */
static bool is_over(int slot)
{
	struct sockaddr_in name;

	return is_unconnected(slot) && name_of_slot(slot, &name) && name.sin_port;
}

static void play_bind(const struct op *op)
{
	struct sockaddr_in name = at_port(owned, 0);

	if (op->n == 0)
		name.sin_addr.s_addr = htonl(INADDR_ANY);
	/* the documentation's, which no host has */
	if (op->n == 1)
		name.sin_addr.s_addr = htonl(0xc0000201);
	if (is_over(op->a)) {
		say(" is over");
		return;
	}
	said(bind(play.fds[op->a], (struct sockaddr *)&name, sizeof(name)));
}

static void set_blocking(int fd, bool is_blocking)
{
	int flags = play.s->is_tcp ? fcntl(fd, F_GETFL) : -1;

	if (flags >= 0)
		fcntl(fd, F_SETFL, is_blocking ? flags & ~O_NONBLOCK :
						 flags | O_NONBLOCK);
}

/* What goes over the library's device does not reach a listener that is the kernel's, which
 * it may be when another process or program has it. A mere child has no such device. */
static bool is_reached(__be16 port)
{
	bool result = !play.s->is_tcp || !play.s->has_processes || play.is_forked;
	struct sockaddr_in name;

	for (int i = 0; !result && i < SLOTS; i++)
		result = play.is_private[i] && is_listener(i) &&
			 name_of_slot(i, &name) && name.sin_port == port;
	return result;
}

static void play_connect(const struct op *op)
{
	struct sockaddr_in name = op->n ? heard_at(op->b) :
						 at_port(heard, DEAD_PORT);

	struct sockaddr_in own;

	if (!name.sin_port || !is_reached(name.sin_port)) {
		say(" nobody is there");
		return;
	}
	if (is_over(op->a) && name_of_slot(op->a, &own) && own.sin_port == name.sin_port) {
		say(" is over");
		return;
	}
	/* On loopback it is over before the kernel's call returns, on a wire it is not:
	 * who waits for it sees no difference. */
	set_blocking(play.fds[op->a], play.s->is_tcp);
	said(connect(play.fds[op->a], (struct sockaddr *)&name, sizeof(name)));
	set_blocking(play.fds[op->a], play.is_blocking[op->a]);
}

/* A backlog that is long enough: what becomes of more depends on the time. */
static void play_listen(const struct op *op)
{
	said(listen(play.fds[op->a], op->n ? 64 : 512));
}

static void play_accept(const struct op *op)
{
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(from);
	int fd = accept4(play.fds[op->a], (struct sockaddr *)&from, &len,
			 SOCK_NONBLOCK);

	if (!said(fd < 0 ? fd : 0))
		return;
	say_name(&from);
	put(op->b, fd, false);
}

static void play_option(const struct op *op)
{
	static const struct linger lingers[] = { { 0, 0 }, { 1, 0 } };
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 }, { SOL_SOCKET, SO_RCVLOWAT, 100 },
		{ SOL_SOCKET, SO_RCVLOWAT, 1 },	 { SOL_SOCKET, SO_REUSEADDR, 1 },
		{ IPPROTO_TCP, TCP_QUICKACK, 1 }, { IPPROTO_TCP, TCP_CORK, 0 },
	};
	int fd = play.fds[op->a];

	if (op->n < ARRAY_LEN(lingers))
		said(setsockopt(fd, SOL_SOCKET, SO_LINGER, &lingers[op->n],
				sizeof(lingers[0])));
	else
		said(setsockopt(fd, options[op->n - 2].level,
				options[op->n - 2].name, &options[op->n - 2].value,
				sizeof(int)));
}

static void play_state(const struct op *op)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int value = 0;

	if (said(getsockopt(play.fds[op->a], IPPROTO_TCP, TCP_INFO, &info, &len)))
		/* when the peer's kernel acknowledges our end depends on the time */
		say(" %u", info.tcpi_state == TCP_FIN_WAIT2 ? TCP_FIN_WAIT1 :
							      info.tcpi_state);
	len = sizeof(value);
	if (said(getsockopt(play.fds[op->a], SOL_SOCKET, SO_ACCEPTCONN, &value, &len)))
		say(" %d", value);
}

bool is_listener(int slot)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return play.s->is_tcp && getsockopt(play.fds[slot], SOL_SOCKET, SO_ACCEPTCONN,
					 &value, &len) == 0 && value;
}

static void play_disconnect(const struct op *op)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct pollfd fd = { .fd = play.fds[op->a], .events = POLLIN };

	/* it may lose its name, and get another one by a send that fails, by which only
	 * the kernel hears */
	if (poll(&fd, 1, 0) > 0) {
		say(" has something to read");
		return;
	}
	said(connect(play.fds[op->a], &none, sizeof(none)));
}

/* Bytes that tell operations apart. */
static void fill(uint8_t *bytes)
{
	for (unsigned i = 0; i < LEN_MAX; i++)
		bytes[i] = (uint8_t)(play.at * 7 + i);
}

static __be16 port_of_peer(int slot)
{
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);

	return getpeername(play.fds[slot], (struct sockaddr *)&peer, &len) == 0 &&
			       peer.sin_family == AF_INET ?
		       peer.sin_port :
		       0;
}

/* Datagrams that come by the kernel and by us have no order, so there is one at a time. */
static bool has_order(void)
{
	if (play.s->is_tcp || !play.s->has_processes)
		return true;
	for (int i = 0; i < SLOTS; i++)
		if (is_unread(i))
			return false;
	return true;
}

/* Whether somebody takes what this slot sends to that port, and how is known. Otherwise an
 * error comes back, at its own time: under the library a moment later, if the next datagram
 * does not go by the kernel, too. */
static bool is_heard(int slot, __be16 port)
{
	struct sockaddr_in own, name;

	if (!has_order())
		return false;
	if (!port || play.s->is_tcp)
		return true;
	if (!name_of_slot(slot, &own))
		return true;
	for (int i = 0; i < SLOTS; i++)
		if (name_of_slot(i, &name) && name.sin_port == port)
			return !port_of_peer(i) ||
			       port_of_peer(i) == own.sin_port;
	return false;
}

/* A send that fails gives a socket a name in passing, by which only the kernel hears. */
static bool fails_without_name(const struct op *op, __be16 port)
{
	struct sockaddr_in name;

	return !play.s->is_tcp && (!port || op->flags & MSG_OOB) &&
	       name_of_slot(op->a, &name) && !name.sin_port;
}

static void play_send(const struct op *op)
{
	uint8_t bytes[LEN_MAX];
	struct iovec iov[2] = { { bytes, op->n / 3 },
				{ bytes + op->n / 3, op->n - op->n / 3 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int fd = play.fds[op->a];

	if (!is_heard(op->a, port_of_peer(op->a)) ||
	    fails_without_name(op, port_of_peer(op->a))) {
		say(" nobody is there");
		return;
	}
	fill(bytes);
	if (op->flags)
		said(sendmsg(fd, &msg, (int)op->flags));
	else if (op->n % 2)
		said(write(fd, bytes, op->n));
	else
		said(send(fd, bytes, op->n, 0));
}

/* Eight bytes are what an eventfd takes. */
static void play_write(const struct op *op)
{
	uint64_t value = 1;

	if (!is_heard(op->a, port_of_peer(op->a)) ||
	    fails_without_name(op, port_of_peer(op->a))) {
		say(" nobody is there");
		return;
	}
	said(write(play.fds[op->a], &value, sizeof(value)));
}

static void play_sendto(const struct op *op)
{
	struct sockaddr_in name = heard_at(op->b);
	uint8_t bytes[LEN_MAX];

	if (!is_heard(op->a, name.sin_port) ||
	    fails_without_name(op, name.sin_port)) {
		say(" nobody is there");
		return;
	}
	fill(bytes);
	said(sendto(play.fds[op->a], bytes, op->n, (int)op->flags,
		    (struct sockaddr *)&name, sizeof(name)));
}

static void say_bytes(const uint8_t *bytes, size_t len)
{
	unsigned sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + bytes[i];
	say(" sum %x", sum);
}

static void receive_message(int fd, const struct op *op, int flags)
{
	uint8_t bytes[LEN_MAX] = { 0 };
	struct iovec iov[2] = { { bytes, op->n / 2 },
				{ bytes + op->n / 2, op->n - op->n / 2 } };
	struct sockaddr_in from = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2,
			      .msg_name = &from, .msg_namelen = sizeof(from) };
	ssize_t n = recvmsg(fd, &msg, flags);

	if (!said(n))
		return;
	say(" flags %x namelen %u", (unsigned)msg.msg_flags, msg.msg_namelen);
	say_name(&from);
	say_bytes(bytes, MIN((size_t)n, op->n));
}

static void receive_batch(int fd, const struct op *op, int flags)
{
	uint8_t bytes[2][LEN_MAX] = { { 0 } };
	struct iovec iov[2] = { { bytes[0], op->n }, { bytes[1], op->n } };
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_iov = &iov[0],
						  .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &iov[1],
						  .msg_iovlen = 1 } } };
	int cnt = recvmmsg(fd, msgs, 2, flags, NULL);

	said(cnt);
	for (int i = 0; i < cnt; i++) {
		say(" %u", msgs[i].msg_len);
		say_bytes(bytes[i], MIN((size_t)msgs[i].msg_len, op->n));
	}
}

static void play_recv(const struct op *op)
{
	int fd = play.fds[op->a], flags = (int)op->flags;
	struct sockaddr_in from = { 0 };
	socklen_t len = sizeof(from);
	uint8_t bytes[LEN_MAX] = { 0 };
	unsigned before = play.record->len;
	ssize_t n;

	if (play.is_blocking[op->a])
		flags |= MSG_DONTWAIT;
	if (op->b == 3) {
		receive_message(fd, op, flags);
	} else if (op->b == 4) {
		receive_batch(fd, op, flags);
	} else {
		if (op->b == 1)
			n = recvfrom(fd, bytes, op->n, flags,
				     (struct sockaddr *)&from, &len);
		else if (op->b == 2 && !flags)
			n = read(fd, bytes, op->n);
		else
			n = recv(fd, bytes, op->n, flags);
		if (said(n)) {
			say_bytes(bytes, MIN((size_t)n, op->n));
			if (op->b == 1)
				say_name(&from);
		}
	}
	if (play.record->text[before + 1] != 'E' && !(flags & (MSG_PEEK | MSG_ERRQUEUE)))
		sequence_received++;
}

static void play_shutdown(const struct op *op)
{
	int waiting = 0;

	/* Who connects to a listener then is refused by the kernel, which the local device of
	 * the tests does not hear. Before a connection it makes the socket the kernel's, and
	 * whom a listener accepts first, ours or its, depends on the time. */
	if (is_listener(op->a) || is_unconnected(op->a)) {
		say(" is not connected");
		return;
	}
	/* What comes later would be refused, and is taken while something waits. */
	if (play.s->is_tcp && ioctl(play.fds[op->a], FIONREAD, &waiting) == 0 && waiting) {
		say(" has something to read");
		return;
	}
	said(shutdown(play.fds[op->a], (int)op->n));
}

static void play_name(const struct op *op)
{
	struct sockaddr_in name = { 0 };
	socklen_t len = sizeof(name);

	if (is_over(op->a)) {
		say(" is over");
		return;
	}
	if (said(getsockname(play.fds[op->a], (struct sockaddr *)&name, &len)))
		say_name(&name);
	len = sizeof(name);
	if (said(getpeername(play.fds[op->a], (struct sockaddr *)&name, &len)))
		say_name(&name);
}

static void play_error(const struct op *op)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (said(getsockopt(play.fds[op->a], SOL_SOCKET, SO_ERROR, &error, &len)))
		say(" %s", error ? strerrorname_np(error) : "none");
}

static void play_waiting(const struct op *op)
{
	int len = -1;

	if (said(ioctl(play.fds[op->a], FIONREAD, &len)))
		say(" %d", len);
}

/* -- readiness ------------------------------------------------------------------------ */

static void change(const struct op *op, int what)
{
	/* names the operation that has set the events */
	struct epoll_event event = { .events = op->flags,
				     .data.u64 = play.at << 8 | op->b };

	said(epoll_ctl(play.fds[op->a], what, play.fds[op->b], &event));
}

static void play_epoll_add(const struct op *op)
{
	struct epoll_event events[EVENTS_MAX];

	/* a socket that has become the kernel's moves to its set at the next look */
	if (play.s->is_tcp)
		(void)!epoll_wait(play.fds[op->a], events, EVENTS_MAX, 0);
	change(op, EPOLL_CTL_ADD);
}

static void play_epoll_mod(const struct op *op)
{
	change(op, EPOLL_CTL_MOD);
}

static void play_epoll_del(const struct op *op)
{
	change(op, EPOLL_CTL_DEL);
}

static int by_data(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;

	return x->data.u64 < y->data.u64 ? -1 : x->data.u64 > y->data.u64;
}

static void say_events(struct epoll_event *events, int cnt)
{
	qsort(events, (size_t)cnt, sizeof(events[0]), by_data);
	for (int i = 0; i < cnt; i++)
		say(" [%u by %u: %x]", (unsigned)(events[i].data.u64 & 0xff),
		    (unsigned)(events[i].data.u64 >> 8), events[i].events);
}

/* There is room for all events: which of them come first is not promised. */
static void play_epoll_wait(const struct op *op)
{
	struct epoll_event events[EVENTS_MAX];
	int cnt = epoll_wait(play.fds[op->a], events, EVENTS_MAX,
			     op->n ? WAIT_MS : 0);

	said(cnt);
	if (cnt > 0)
		say_events(events, cnt);
}

static void play_poll(const struct op *op)
{
	static const short wanted[] = { POLLIN, POLLIN, POLLIN | POLLOUT,
					POLLOUT, POLLRDNORM, POLLPRI,
					POLLIN | POLLRDHUP, 0 };
	struct pollfd fds[6];
	struct rand rand;
	int slots[6];
	nfds_t cnt;

	rand_init(&rand, op->n);
	cnt = 1 + (nfds_t)rand_below(&rand, ARRAY_LEN(fds));
	for (nfds_t i = 0; i < cnt; i++) {
		slots[i] = (int)rand_below(&rand, SLOTS);
		fds[i] = (struct pollfd){
			.fd = play.fds[slots[i]],
			.events = wanted[rand_below(&rand, ARRAY_LEN(wanted))],
		};
	}
	said(poll(fds, cnt, op->flags % 40 ? 0 : WAIT_MS));
	for (nfds_t i = 0; i < cnt; i++)
		say(" [%d: %x of %x]", slots[i], (unsigned)fds[i].revents,
		    (unsigned)fds[i].events);
}

static void play_select(const struct op *op)
{
	struct timeval time = { .tv_usec = op->flags % 40 ? 0 : WAIT_MS * 1000 };
	fd_set sets[3];
	int cnt = 0;

	for (int set = 0; set < 3; set++) {
		FD_ZERO(&sets[set]);
		for (int i = 0; i < SLOTS; i++)
			if (op->n >> (set * SLOTS + i) & 1 &&
			    play.fds[i] >= 0) {
				FD_SET(play.fds[i], &sets[set]);
				cnt = MAX(cnt, play.fds[i] + 1);
			}
	}
	said(select(cnt, &sets[0], &sets[1], &sets[2], &time));
	for (int set = 0; set < 3; set++) {
		say(" [");
		for (int i = 0; i < SLOTS; i++)
			if (play.fds[i] >= 0 && FD_ISSET(play.fds[i], &sets[set]))
				say(" %d", i);
		say(" ]");
	}
}

/* Programs that know epoll's busy polling ask and set. */
#ifndef EPIOCSPARAMS
struct epoll_params {
	uint32_t busy_poll_usecs;
	uint16_t busy_poll_budget;
	uint8_t prefer_busy_poll;
	uint8_t pad;
};
#define EPIOCSPARAMS _IOW(0x8a, 0x01, struct epoll_params)
#define EPIOCGPARAMS _IOR(0x8a, 0x02, struct epoll_params)
#endif

static void play_params(const struct op *op)
{
	struct epoll_params params = {
		.busy_poll_usecs = op->flags % 100,
		.busy_poll_budget = (uint16_t)(op->flags >> 8 & 15),
		.prefer_busy_poll = op->n & 3,
		.pad = op->n == 7,
	};

	said(ioctl(play.fds[op->a], EPIOCSPARAMS, &params));
	memset(&params, 0, sizeof(params));
	if (said(ioctl(play.fds[op->a], EPIOCGPARAMS, &params)))
		say(" %u %u %u", params.busy_poll_usecs,
		    params.busy_poll_budget, params.prefer_busy_poll);
}

/* -- the second thread --------------------------------------------------------------- */

static void begin_wait(const struct op *op)
{
	struct pollfd fd = { .fd = play.fds[op->a], .events = POLLIN };
	struct timeval time = { .tv_usec = MEANWHILE_MS * 1000 };
	fd_set in;

	atomic_store(&other.has_begun, true);
	if (op->n == 0) {
		other.found = epoll_wait(fd.fd, other.events, 8, MEANWHILE_MS);
	} else if (op->n == 1 || fd.fd < 0) {
		other.found = poll(&fd, 1, MEANWHILE_MS);
	} else {
		FD_ZERO(&in);
		FD_SET(fd.fd, &in);
		other.found = select(fd.fd + 1, &in, NULL, NULL, &time);
	}
	other.error = errno;
	atomic_store(&other.is_over, true);
}

static void play_op(const struct op *op);

static void *work(void *arg)
{
	atomic_store(&other.tid, gettid());
	for (;;) {
		while (sem_wait(&other.has_work) != 0)
			;
		if (other.op->kind == OP_meanwhile)
			begin_wait(other.op);
		else
			play_op(other.op);
		sem_post(&other.is_done);
	}
	return arg;
}

static void give_work(const struct op *op)
{
	if (!other.is_made) {
		sem_init(&other.has_work, 0, 0);
		sem_init(&other.is_done, 0, 0);
		if (pthread_create(&other.thread, NULL, work, NULL) != 0)
			abort();
		other.is_made = true;
	}
	other.op = op;
	sem_post(&other.has_work);
}

static void await_work(void)
{
	while (sem_wait(&other.is_done) != 0)
		;
}

/* The other thread waits, until the time is over or what happens next ends it. */
static void play_meanwhile(const struct op *op)
{
	atomic_store(&other.has_begun, false);
	atomic_store(&other.is_over, false);
	give_work(op);
	while (!atomic_load(&other.has_begun) ||
	       (!atomic_load(&other.is_over) &&
		!sleeper_is_asleep(atomic_load(&other.tid))))
		sched_yield();
	other.is_waiting = true;
}

void end_meanwhile(void)
{
	if (!other.is_waiting)
		return;
	other.is_waiting = false;
	await_work();
	say("meanwhile");
	errno = other.error;
	said(other.found);
	if (other.op->n == 0 && other.found > 0)
		say_events(other.events, other.found);
	say("\n");
}

void forget_other(void)
{
	other.is_made = other.is_waiting = false;
}

/* -- the whole of it ------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*play)(const struct op *op);
} kinds[] = {
#define OP(name, ...) { #name, play_##name },
#include "tests/sequences/ops.def"
};

static void play_op(const struct op *op)
{
	kinds[op->kind].play(op);
}

void play_ops(void)
{
	find_addresses();
	for (; play.at < play.until; play.at++) {
		const struct op *op = &play.s->ops[play.at];

		if (play.s->is_out[play.at])
			continue;
		if (op->kind == OP_meanwhile)
			end_meanwhile();
		say("%u %s %u %u (%u, %x)%s:", play.at, kinds[op->kind].name,
		    op->a, op->b, op->n, op->flags,
		    op->is_by_other ? " there" : "");
		if (op->kind == OP_meanwhile) {
			play_op(op);
			say("\n");
			continue;
		}
		if (op->is_by_other && !other.is_waiting) {
			give_work(op);
			await_work();
		} else {
			play_op(op);
		}
		settle();
		say("\n");
		end_meanwhile();
	}
	end_meanwhile();
	if (play.is_child)
		process_end(&play.ending);
	for (int i = 0; i < SLOTS; i++)
		if (play.fds[i] >= 0)
			close(play.fds[i]);
	for (int i = 0; i < 2; i++)
		if (play.post[i] >= 0)
			close(play.post[i]);
	process_account();
}

void play_prepare(const struct sequence *s, struct record *record)
{
	play = (struct play){ .s = s, .record = record, .until = s->cnt,
			      .post = { -1, -1 } };
	for (int i = 0; i < SLOTS; i++)
		play.fds[i] = -1;
}

void sequence_play(const struct sequence *s, struct record *record)
{
	play_prepare(s, record);
	process_begin();
	play_ops();
}
