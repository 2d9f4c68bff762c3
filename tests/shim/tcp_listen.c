/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: listeners, their queues, and what accept() brings. */
#include "config.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"
#include "tests/support/high_page.h"

/* -- listeners ---------------------------------------------------------------------- */

static void say_listen(int fd, int backlog)
{
	SAY("listen %d: %s", backlog, err(listen(fd, backlog)));
	SAY(", listens %d\n", get_option(fd, SOL_SOCKET, SO_ACCEPTCONN));
}

static void states_of_listeners(void)
{
	struct sockaddr_in name, other;
	struct sockaddr_in bound_name = { 0 };
	socklen_t len = sizeof(bound_name);
	int fd = made(), pair[2], udp = socket(AF_INET, SOCK_DGRAM, 0);

	/* without a name it gets one */
	SAY("accept %s\n", err(accept(fd, NULL, NULL)));
	say_listen(fd, 5);
	getsockname(fd, (struct sockaddr *)&bound_name, &len);
	SAY("any address %d, a port %d\n", !bound_name.sin_addr.s_addr,
	    bound_name.sin_port != 0);
	name = owned(0);
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&name, sizeof(name))));
	close(fd);
	fd = listening(&name, 0);
	say_listen(fd, 100);
	say_listen(fd, -1);
	say_listen(fd, 0);
	SAY("recv %s\n", err(recv(fd, &(char){ 0 }, 1, 0)));
	SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
	close(fd);
	make_pair(pair);
	say_listen(pair[0], 5);
	SAY("accept %s\n", err(accept(pair[0], NULL, NULL)));
	close_pair(pair);
	SAY("listen of UDP %s\n", err(listen(udp, 5)));
	SAY("accept of UDP %s\n", err(accept(udp, NULL, NULL)));
	close(udp);
	fd = bound(&other);
	SAY("accept of a bound one %s\n", err(accept(fd, NULL, NULL)));
	close(fd);
}

/* Begins a connection that a full queue leaves waiting; whether it is one after all. */
static int begun(const struct sockaddr_in *name, bool *is_open)
{
	int fd = made_nonblocking();
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	connect_to(fd, name);
	*is_open = poll(&pfd, 1, 200) == 1;
	return fd;
}

static void backlog_is_counted(void)
{
	enum { CNT = 5 };
	struct sockaddr_in name;
	int listener = listening(&name, 2), fds[CNT];
	bool is_open;

	for (int i = 0; i < CNT; i++) {
		fds[i] = begun(&name, &is_open);
		SAY("connection %d: %s\n", i, is_open ? "open" : "waits");
	}
	set_blocking(listener, false);
	for (int i = 0; i < CNT; i++) {
		int child = accept(listener, NULL, NULL);

		SAY("accept %s\n", err(child));
		if (child < 0)
			break;
		close(child);
	}
	for (int i = 0; i < CNT; i++)
		close(fds[i]);
	close(listener);
}

static void longer_backlog_by_listening_again(void)
{
	enum { CNT = 3 };
	struct sockaddr_in name;
	int listener = listening(&name, 0), fds[CNT];
	bool is_open;

	for (int i = 0; i < CNT; i++) {
		fds[i] = begun(&name, &is_open);
		SAY("connection %d: %s\n", i, is_open ? "open" : "waits");
	}
	say_listen(listener, 10);
	for (int i = 0; i < CNT; i++)
		SAY("connection %d: %#x\n", i, (unsigned)await(fds[i], POLLOUT));
	for (int i = 0; i < CNT; i++)
		close(accept(listener, NULL, NULL));
	set_blocking(listener, false);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	for (int i = 0; i < CNT; i++)
		close(fds[i]);
	close(listener);
}

static void names_in_use(void)
{
	struct sockaddr_in name, any = { .sin_family = AF_INET };
	int listener = made(), fd = made(), pair[2];
	struct sockaddr_in own;

	close(bound(&name));
	own = owned(name.sin_port);
	set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	SAY("bind %s\n",
	    err(bind(listener, (struct sockaddr *)&own, sizeof(own))));
	SAY("listen %s\n", err(listen(listener, 4)));
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	any.sin_port = name.sin_port;
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&any, sizeof(any))));
	SAY("listen %s\n", err(listen(fd, 4)));
	/* after a connection that the server ended first */
	make_pair_of(listener, &name, pair);
	close(pair[1]);
	receive_to_end(pair[0]);
	close(pair[0]);
	close(listener);
	close(fd);
	fd = made();
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&own, sizeof(own))));
	say_listen(fd, 4);
	make_pair_of(fd, &name, pair);
	say_sent(pair[0], "again", 0);
	receive(pair[1], 0);
	close_pair(pair);
	close(fd);
}

/* -- accept() ----------------------------------------------------------------------- */

static void accepted_names(void)
{
	static const socklen_t rooms[] = { 0, 2, 8, 16, 100 };
	struct sockaddr_in name;
	struct sockaddr_storage room;
	int listener = listening(&name, 16);
	socklen_t len;

	for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
		int fd = connected(&name), child;

		memset(&room, 0xee, sizeof(room));
		len = rooms[i];
		child = accept(listener, (struct sockaddr *)&room, &len);
		SAY("%u: %s %u, the next byte %#x\n", rooms[i], err(child), len,
		    ((unsigned char *)&room)[rooms[i] < 16 ? rooms[i] : 16]);
		close(child);
		close(fd);
	}
	close(listener);
}

/* As of a length that was never set. */
static void accepted_name_of_a_length_beyond_memory(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 16), fd = connected(&name);
	char *page = high_page();
	socklen_t len = INT_MAX;
	int child = accept(listener, (struct sockaddr *)(void *)page, &len);

	SAY("%s %u\n", err(child), len);
	close(child);
	close(fd);
	close(listener);
	munmap(page, HIGH_PAGE_SIZE);
}

/* The child is lost with the name that cannot be written. */
static void accept_into_bad_places(void)
{
	struct sockaddr_in name, room;
	int listener = listening(&name, 16), fd;
	socklen_t len = (socklen_t)-1;

	fd = connected(&name);
	SAY("length %s\n",
	    err(accept(listener, (struct sockaddr *)&room, &len)));
	SAY("events %#x\n", (unsigned)await(fd, POLLRDHUP));
	receive_to_end(fd);
	close(fd);
	fd = connected(&name);
	len = sizeof(room);
	SAY("address %s\n", err(accept(listener, nowhere(), &len)));
	SAY("events %#x\n", (unsigned)await(fd, POLLRDHUP));
	receive_to_end(fd);
	close(fd);
	fd = connected(&name);
	SAY("no length %s\n",
	    err(accept(listener, (struct sockaddr *)&room, NULL)));
	SAY("events %#x\n", (unsigned)await(fd, POLLRDHUP));
	receive_to_end(fd);
	close(fd);
	SAY("flags %s\n", err(accept4(listener, NULL, NULL, 1)));
	close(listener);
}

static void say_flags(int fd)
{
	SAY("close-on-exec %d, non-blocking %d\n", fcntl(fd, F_GETFD),
	    (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
}

static void flags_of_children(void)
{
	static const int flags[] = { 0, SOCK_CLOEXEC, SOCK_NONBLOCK,
				     SOCK_CLOEXEC | SOCK_NONBLOCK };
	struct sockaddr_in name;
	int listener = listening(&name, 16);

	set_blocking(listener, false);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	SAY("accept4 %s\n", err(accept4(listener, NULL, NULL, SOCK_CLOEXEC)));
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		int fd = connected(&name), child;

		await(listener, POLLIN);
		child = accept4(listener, NULL, NULL, flags[i]);
		say_flags(child);
		if (flags[i] & SOCK_NONBLOCK)
			receive(child, 0);
		close(child);
		close(fd);
	}
	close(listener);
}

static void accepted_in_order(void)
{
	enum { CNT = 20 };
	struct sockaddr_in name;
	int listener = listening(&name, CNT), fds[CNT];
	char number[12];

	for (int i = 0; i < CNT; i++) {
		fds[i] = connected(&name);
		snprintf(number, sizeof(number), "%d", i);
		send(fds[i], number, strlen(number), 0);
	}
	for (int i = 0; i < CNT; i++) {
		int child = accept(listener, NULL, NULL);

		receive(child, 0);
		close(child);
		close(fds[i]);
	}
	close(listener);
}

static void accept_with_a_time_limit(void)
{
	struct timeval limit = { 0, 100000 };
	struct sockaddr_in name;
	int listener = listening(&name, 4);
	long begin = now_ms();

	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	SAY("accept %s", err(accept(listener, NULL, NULL)));
	SAY(" in time: %d\n", now_ms() - begin >= 95 && now_ms() - begin < 3000);
	close(listener);
}

/* Without a free fd the child stays in the queue. */
static void accept_without_fds(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = connected(&name);
	struct rlimit all, none;
	int next = dup(listener);

	close(next);
	say_sent(fd, "still there", 0);
	await(listener, POLLIN);
	getrlimit(RLIMIT_NOFILE, &all);
	none = all;
	none.rlim_cur = (rlim_t)next;
	setrlimit(RLIMIT_NOFILE, &none);
	for (int i = 0; i < 3; i++)
		SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	SAY("socket %s\n", err(socket(AF_INET, SOCK_STREAM, 0)));
	setrlimit(RLIMIT_NOFILE, &all);
	SAY("events %#x\n", (unsigned)await(listener, POLLIN));
	next = accept(listener, NULL, NULL);
	receive(next, 0);
	close(next);
	close(fd);
	close(listener);
}

/* -- children that nobody has accepted ---------------------------------------------- */

static void queued_children_are_reset(void)
{
	enum { CNT = 3 };
	struct sockaddr_in name;
	int listener = listening(&name, CNT), fds[CNT], accepted;

	for (int i = 0; i < CNT; i++)
		fds[i] = connected(&name);
	await(listener, POLLIN);
	accepted = accept(listener, NULL, NULL);
	close(listener);
	for (int i = 1; i < CNT; i++) {
		SAY("events %#x\n", (unsigned)await(fds[i], POLLIN));
		receive(fds[i], 0);
		receive(fds[i], 0);
		close(fds[i]);
	}
	/* that one lives on, and its port stays in use */
	say_sent(accepted, "alive", 0);
	receive(fds[0], 0);
	SAY("connect %s\n", err(connect_to(made(), &name)));
	close(accepted);
	close(fds[0]);
}

static void begin_anew(int listener, const struct sockaddr_in *name)
{
	int fd = made();

	say_listen(listener, 4);
	SAY("connect %s\n", err(connect_to(fd, name)));
	close(fd);
	close(listener);
}

/* Children have no descriptor before somebody accepts them. */
static void queue_takes_no_fds(void)
{
	enum { CNT = 50 };
	struct sockaddr_in name;
	int listener = listening(&name, CNT), fds[CNT], next[2];

	for (int i = 0; i < CNT; i++)
		fds[i] = made();
	next[0] = dup(listener);
	close(next[0]);
	for (int i = 0; i < CNT; i++)
		if (connect_to(fds[i], &name) != 0)
			SAY("connect: %m\n");
	await(listener, POLLIN);
	next[1] = dup(listener);
	close(next[1]);
	SAY("taken by the queue: %d\n", next[1] - next[0]);
	for (int i = 0; i < CNT; i++)
		close(fds[i]);
	close(listener);
}

static void shut_down(int listener, const struct sockaddr_in *name)
{
	int fd = connected(name);

	await(listener, POLLIN);
	SAY("shutdown WR %s\n", err(shutdown(listener, SHUT_WR)));
	SAY("listens %d\n", get_option(listener, SOL_SOCKET, SO_ACCEPTCONN));
	SAY("shutdown RD %s\n", err(shutdown(listener, SHUT_RD)));
	SAY("listens %d\n", get_option(listener, SOL_SOCKET, SO_ACCEPTCONN));
	receive(fd, 0);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	SAY("connect %s\n", err(connect_to(fd, name)));
	close(fd);
	say_names(listener, name->sin_port, 0);
	begin_anew(listener, name);
}

/* It keeps the port that it has asked for; another one it has lost, whatever
 * getsockname() says. */
static void shut_down_listener(void)
{
	struct sockaddr_in name;
	int listener;

	close(bound(&name));
	listener = bound_to(name.sin_port);
	say_listen(listener, 4);
	shut_down(listener, &name);
	listener = listening(&name, 4);
	shut_down(listener, &name);
}

/* All that a client did before anybody accepted it. */
static void accepted_late(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = connected(&name), child;

	say_sent(fd, "said and gone", 0);
	close(fd);
	sleep_ms(20);
	child = accept(listener, NULL, NULL);
	SAY("events %#x\n", (unsigned)await(child, POLLRDHUP) & POLLRDHUP);
	receive_to_end(child);
	say_sent(child, "unheard", MSG_NOSIGNAL);
	close(child);
	fd = connected(&name);
	say_sent(fd, "said and reset", 0);
	await(listener, POLLIN);
	reset(fd);
	sleep_ms(20);
	child = accept(listener, NULL, NULL);
	SAY("accept %s\n", err(child));
	SAY("events %#x\n", (unsigned)await(child, POLLIN | POLLRDHUP));
	receive(child, 0);
	receive(child, 0);
	SAY("send %s\n", err(send(child, "x", 1, MSG_NOSIGNAL)));
	close(child);
	close(listener);
}

static void deferred_accept(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	SAY("default %d, ", get_option(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT));
	SAY("set %s, ", err(set_option(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5)));
	SAY("now %d\n", get_option(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT));
	fd = connected(&name);
	SAY("poll without data %d\n", poll(&pfd, 1, 100));
	say_sent(fd, "now", 0);
	SAY("events %#x\n", (unsigned)await(listener, POLLIN));
	child = accept(listener, NULL, NULL);
	SAY("data is there: %s\n",
	    err(recv(child, &(char[4]){ 0 }, 4, MSG_DONTWAIT)));
	say_sent(child, "answer", 0);
	receive(fd, 0);
	close(child);
	close(fd);
	close(listener);
}

/* -- what children get from their listener ------------------------------------------ */

static const struct inherited {
	const char *name;
	int level, option, value;
} inherited[] = {
	{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 30000 },
	{ "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 40000 },
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 7 },
	{ "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1 },
	{ "SO_PRIORITY", SOL_SOCKET, SO_PRIORITY, 5 },
	{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1 },
	{ "SO_TIMESTAMP", SOL_SOCKET, SO_TIMESTAMP, 1 },
	{ "SO_DONTROUTE", SOL_SOCKET, SO_DONTROUTE, 1 },
	{ "SO_MAX_PACING_RATE", SOL_SOCKET, SO_MAX_PACING_RATE, 50000000 },
	{ "SO_BUSY_POLL", SOL_SOCKET, SO_BUSY_POLL, 9 },
	{ "SO_SELECT_ERR_QUEUE", SOL_SOCKET, SO_SELECT_ERR_QUEUE, 1 },
	{ "SO_ZEROCOPY", SOL_SOCKET, SO_ZEROCOPY, 1 },
	{ "IP_PKTINFO", IPPROTO_IP, IP_PKTINFO, 1 },
	{ "TCP_THIN_LINEAR_TIMEOUTS", IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1 },
	{ "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 11 },
	{ "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 12 },
	{ "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 13 },
	{ "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 14000 },
	{ "TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, 3 },
	{ "TCP_LINGER2", IPPROTO_TCP, TCP_LINGER2, 15 },
	{ "TCP_CORK", IPPROTO_TCP, TCP_CORK, 1 },
	{ "TCP_NOTSENT_LOWAT", IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16000 },
	{ "TCP_WINDOW_CLAMP", IPPROTO_TCP, TCP_WINDOW_CLAMP, 17000 },
	{ "TCP_QUICKACK", IPPROTO_TCP, TCP_QUICKACK, 0 },
	{ "TCP_INQ", IPPROTO_TCP, TCP_INQ, 1 },
	{ "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT, 1 },
	{ "IP_TOS", IPPROTO_IP, IP_TOS, 0x10 },
	{ "IP_TTL", IPPROTO_IP, IP_TTL, 33 },
	{ "IP_RECVTOS", IPPROTO_IP, IP_RECVTOS, 1 },
};

static void say_buffer_times_and_linger(int fd)
{
	struct linger linger = { 0 };
	struct timeval tv = { 0 };
	char algorithm[16] = "";
	socklen_t len = sizeof(linger);

	getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len);
	SAY("SO_LINGER %d %d, ", linger.l_onoff, linger.l_linger);
	len = sizeof(tv);
	getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len);
	SAY("SO_RCVTIMEO %ld, ", (long)tv.tv_sec);
	len = sizeof(tv);
	getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, &len);
	SAY("SO_SNDTIMEO %ld, ", (long)tv.tv_sec);
	len = sizeof(algorithm);
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, &len);
	SAY("TCP_CONGESTION %s\n", algorithm);
}

static void set_all(int fd)
{
	struct linger linger = { 1, 3 };
	struct timeval tv = { 4, 0 };

	for (size_t i = 0; i < ARRAY_LEN(inherited); i++)
		SAY("%s %s\n", inherited[i].name,
		    err(set_option(fd, inherited[i].level, inherited[i].option,
				   inherited[i].value)));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	SAY("reno %s\n",
	    err(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4)));
}

static void say_all(const char *whose, int fd)
{
	for (size_t i = 0; i < ARRAY_LEN(inherited); i++)
		SAY("%s's %s %d\n", whose, inherited[i].name,
		    get_option(fd, inherited[i].level, inherited[i].option));
	say_buffer_times_and_linger(fd);
}

/* It says when they are readable. */
static void children_have_its_low_water_mark(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child, mark = 10;
	struct pollfd pfd;

	SAY("mark %s, ", err(setsockopt(listener, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark))));
	fd = connected(&name);
	child = accept(listener, NULL, NULL);
	pfd = (struct pollfd){ .fd = child, .events = POLLIN };
	send(fd, "few", 3, 0);
	await_bytes(child, 3);
	SAY("with few %d, ", poll(&pfd, 1, 0));
	send(fd, "and more", 8, 0);
	await_bytes(child, 11);
	SAY("with more %d\n", poll(&pfd, 1, 1000));
	receive(child, 0);
	close(child);
	close(fd);
	close(listener);
}

static void inherited_options(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;

	set_all(listener);
	fcntl(listener, F_SETFD, FD_CLOEXEC);
	fd = connected(&name);
	send(fd, "data", 4, 0);
	await(listener, POLLIN);
	set_blocking(listener, false);
	child = accept(listener, NULL, NULL);
	say_all("child", child);
	say_flags(child);
	/* a later change is the listener's alone */
	set_option(listener, IPPROTO_TCP, TCP_KEEPIDLE, 99);
	SAY("child's TCP_KEEPIDLE %d\n",
	    get_option(child, IPPROTO_TCP, TCP_KEEPIDLE));
	close(child);
	close(fd);
	close(listener);
}

static void options_between_syn_and_accept(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = connected(&name), child;

	await(listener, POLLIN);
	set_option(listener, IPPROTO_TCP, TCP_KEEPIDLE, 99);
	set_option(listener, IPPROTO_TCP, TCP_NODELAY, 1);
	child = accept(listener, NULL, NULL);
	SAY("TCP_KEEPIDLE %d, TCP_NODELAY %d\n",
	    get_option(child, IPPROTO_TCP, TCP_KEEPIDLE),
	    get_option(child, IPPROTO_TCP, TCP_NODELAY));
	close(child);
	close(fd);
	close(listener);
}

/* -- SYNs that are kept -------------------------------------------------------------- */

enum { ETHERNET = 14, SYN_ROOM = 256 };

static const char *saved(int fd, unsigned char *syn, socklen_t *len)
{
	return err(getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, syn, len));
}

/* The kinds of its options, but for padding. */
static void say_syn_options(const unsigned char *tcp)
{
	const unsigned char *at = tcp + 20, *end = tcp + (tcp[12] >> 4) * 4;
	unsigned kinds = 0;

	while (at < end && *at) {
		if (*at > 1 && *at < 32)
			kinds |= 1u << *at;
		at += *at == 1 ? 1 : at[1];
	}
	SAY(", options %x\n", kinds);
}

/* Whose SYN it is, by the names of the two ends. */
static void say_syn(const unsigned char *ip, int child)
{
	struct sockaddr_in own = { 0 }, peer = { 0 };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
	const unsigned char *tcp = ip + (ip[0] & 15) * 4;

	getsockname(child, (struct sockaddr *)&own, &own_len);
	getpeername(child, (struct sockaddr *)&peer, &peer_len);
	SAY("version %d, header %d, protocol %d, flags %x", ip[0] >> 4,
	    (ip[0] & 15) * 4, ip[9], tcp[13]);
	SAY(", from %d:%d, to %d:%d",
	    memcmp(ip + 12, &peer.sin_addr, 4) == 0,
	    memcmp(tcp, &peer.sin_port, 2) == 0,
	    memcmp(ip + 16, &own.sin_addr, 4) == 0,
	    memcmp(tcp + 2, &own.sin_port, 2) == 0);
	SAY(", acknowledges %d", tcp[8] | tcp[9] | tcp[10] | tcp[11]);
	say_syn_options(tcp);
}

static void say_saved(const char *which, int child, int front)
{
	unsigned char syn[SYN_ROOM] = { 0 };
	socklen_t len = sizeof(syn);

	SAY("%s %s", which, saved(child, syn, &len));
	SAY(", %u bytes\n", len);
	if (len <= sizeof(syn) && len > (socklen_t)front)
		say_syn(syn + front, child);
}

static void saved_syn(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;
	unsigned char syn[SYN_ROOM] = { 0 };
	socklen_t len = sizeof(syn);

	SAY("set %s\n", err(set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 1)));
	fd = connected(&name);
	child = accept(listener, NULL, NULL);
	len = 4;
	SAY("short %s", saved(child, syn, &len));
	SAY(" %u\n", len);
	SAY("one less %s", (len--, saved(child, syn, &len)));
	SAY(" %u\n", len);
	SAY("no room for the length %s\n", saved(child, syn, nowhere()));
	SAY("no room %s", saved(child, nowhere(), &len));
	SAY(" %u\n", len);
	len = (socklen_t)-1;
	SAY("below nothing %s", saved(child, syn, &len));
	SAY(" %d\n", (int)len);
	say_saved("whole", child, 0);
	say_saved("again", child, 0);
	say_saved("the other end", fd, 0);
	say_saved("the listener", listener, 0);
	SAY("to be set %s\n", err(set_option(child, IPPROTO_TCP, TCP_SAVED_SYN, 1)));
	close(child);
	close(fd);
	close(listener);
}

static void saved_syn_with_its_link(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;
	unsigned char syn[SYN_ROOM] = { 0 };
	socklen_t len = sizeof(syn);

	SAY("set %s\n", err(set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 2)));
	fd = connected(&name);
	child = accept(listener, NULL, NULL);
	SAY("whole %s", saved(child, syn, &len));
	SAY(" %u, type %02x%02x, sent by somebody %d\n", len, syn[12], syn[13],
	    (syn[6] | syn[7] | syn[8] | syn[9] | syn[10] | syn[11]) != 0);
	say_syn(syn + ETHERNET, child);
	say_saved("again", child, ETHERNET);
	close(child);
	close(fd);
	close(listener);
}

/* What counts is what the listener wants when the SYN comes. */
static void saved_syn_as_it_was_wanted(void)
{
	static const int wanted[] = { 0, 1, 2, 0 };
	struct sockaddr_in name;
	int listener = listening(&name, 4), fds[4], child;
	char none = 1;

	set_blocking(listener, false);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	set_blocking(listener, true);
	SAY("3 %s, -1 %s, a byte %s\n",
	    err(set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 3)),
	    err(set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, -1)),
	    err(setsockopt(listener, IPPROTO_TCP, TCP_SAVE_SYN, &none, 1)));
	for (int i = 0; i < 4; i++) {
		set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, wanted[i]);
		fds[i] = connected(&name);
		send(fds[i], "x", 1, 0);
	}
	for (int i = 0; i < 4; i++) {
		child = accept(listener, NULL, NULL);
		await(child, POLLIN);
		say_saved("saved", child, wanted[i] == 2 ? ETHERNET : 0);
		close(child);
		close(fds[i]);
	}
	set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 1);
	fds[0] = connected(&name);
	child = accept(listener, NULL, NULL);
	SAY("the child's own %d\n", get_option(child, IPPROTO_TCP, TCP_SAVE_SYN));
	close(child);
	close(fds[0]);
	close(listener);
}

/* What only the kernel can do, the kernel does from here on. */
static void saved_syn_of_a_kernels_connection(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;

	set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 1);
	fd = connected(&name);
	child = accept(listener, NULL, NULL);
	SAY("IP_MINTTL %s\n", err(set_option(child, IPPROTO_IP, IP_MINTTL, 1)));
	say_saved("whole", child, 0);
	say_saved("again", child, 0);
	say_sent(fd, "goes on", 0);
	receive(child, 0);
	close(child);
	close(fd);
	close(listener);
}

static void saved_syn_in_a_child(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd, child;
	pid_t pid;

	set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 1);
	fd = connected(&name);
	child = accept(listener, NULL, NULL);
	pid = fork();
	if (pid == 0) {
		say_saved("whole", child, 0);
		say_saved("again", child, 0);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	say_sent(fd, "goes on", 0);
	receive(child, 0);
	close(child);
	close(fd);
	close(listener);
}

/* -- both families ------------------------------------------------------------------ */

static int listening_six(bool is_six_only, struct sockaddr_in *name)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(any);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_six_only);
	SAY("bind %s\n", err(bind(fd, (struct sockaddr *)&any, sizeof(any))));
	SAY("listen %s\n", err(listen(fd, 4)));
	getsockname(fd, (struct sockaddr *)&any, &len);
	*name = heard_at(any.sin6_port);
	return fd;
}

static void say_six(const char *whose, const struct sockaddr_in6 *name,
		    socklen_t len)
{
	SAY("%s: family %s, mapped %d, length %u\n", whose,
	    name->sin6_family == AF_INET6 ? "six" : "other",
	    IN6_IS_ADDR_V4MAPPED(&name->sin6_addr), len);
}

static void both_families(void)
{
	struct sockaddr_in name;
	struct sockaddr_in6 got = { 0 };
	socklen_t len = sizeof(got);
	int listener = listening_six(false, &name), fd = connected(&name);
	int child = accept(listener, (struct sockaddr *)&got, &len);
	struct sockaddr_in6 own = { 0 };

	say_six("peer", &got, len);
	len = sizeof(own);
	getsockname(child, (struct sockaddr *)&own, &len);
	say_six("own", &own, len);
	say_sent(fd, "by four", 0);
	receive(child, 0);
	SAY("domain %s\n", get_option(child, SOL_SOCKET, SO_DOMAIN) == AF_INET6 ?
				   "six" : "other");
	SAY("IP_TTL %d\n", get_option(child, IPPROTO_IP, IP_TTL));
	close(child);
	close(fd);
	kernel_begins();
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	own = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				     .sin6_port = name.sin_port,
				     .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	SAY("connect by six %s\n",
	    err(connect(fd, (struct sockaddr *)&own, sizeof(own))));
	len = sizeof(got);
	child = accept(listener, (struct sockaddr *)&got, &len);
	say_six("peer", &got, len);
	say_sent(fd, "by six", 0);
	receive(child, 0);
	close(child);
	close(fd);
	close(listener);
	kernel_ends();
}

static void six_alone(void)
{
	struct sockaddr_in name;
	int listener = listening_six(true, &name), fd = made();

	SAY("connect by four %s\n", err(connect_to(fd, &name)));
	close(fd);
	close(listener);
}

static void say_told(int set, const char *when, int ms)
{
	struct epoll_event events[4];

	SAY("%s: %d\n", when, epoll_wait(set, events, ARRAY_LEN(events), ms));
}

/* Connects by one family or the other, and returns when that waits in the listener. */
static int connected_by(bool is_six, uint16_t port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = port,
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = heard_at(port);
	int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);

	SAY("connect %s\n",
	    err(connect(fd, is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
			is_six ? sizeof(six) : sizeof(four))));
	say_sent(fd, "hello", 0);
	await_acks(fd);
	return fd;
}

/* Connections of ours and of the kernel's come to one listener. Whoever tells of the first
 * one, nobody tells of the next before the set is asked for it again, and then once. */
static void both_families_by_a_one_shot(void)
{
	for (int is_six = 0; is_six < 2; is_six++)
		for (int is_seen = 0; is_seen < 2; is_seen++) {
			struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
			int set = epoll_create1(0), outer = epoll_create1(0), fds[2];
			struct sockaddr_in name;
			int listener = listening_six(false, &name);
			struct pollfd pfd = { .fd = set, .events = POLLIN };

			if (is_seen)
				epoll_ctl(outer, EPOLL_CTL_ADD, set, &event);
			epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
			fds[0] = connected_by(is_six, name.sin_port);
			say_told(set, "first", 5000);
			say_told(set, "told", 0);
			fds[1] = connected_by(!is_six, name.sin_port);
			if (is_seen)
				SAY("poll %d\n", poll(&pfd, 1, 0));
			say_told(set, "second", 0);
			epoll_ctl(set, EPOLL_CTL_MOD, listener, &event);
			say_told(set, "asked", 5000);
			say_told(set, "told", 0);
			close(accept(listener, NULL, NULL));
			epoll_ctl(set, EPOLL_CTL_MOD, listener, &event);
			say_told(set, "one is left", 5000);
			close(accept(listener, NULL, NULL));
			epoll_ctl(set, EPOLL_CTL_MOD, listener, &event);
			say_told(set, "none", 0);
			close_pair(fds);
			close(listener);
			close(set);
			close(outer);
		}
}

static void ring(int sig)
{
	(void)sig;
}

/* The flag is the file's, which both processes have. */
static void listener_nonblocking_by_a_child(void)
{
	struct sigaction act = { .sa_handler = ring };
	struct sockaddr_in name;
	int listener = listening(&name, 8), pair[2];
	pid_t pid;

	make_pair_of(listener, &name, pair);
	sigaction(SIGALRM, &act, NULL);
	pid = fork();
	if (pid == 0) {
		fcntl(listener, F_SETFL, O_NONBLOCK);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	alarm(5);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	alarm(0);
	close_pair(pair);
	close(listener);
}

const struct scenario listen_scenarios[] = {
	SCENARIO(states_of_listeners, OURS),
	SCENARIO(backlog_is_counted, OURS),
	SCENARIO(longer_backlog_by_listening_again, OURS),
	SCENARIO(names_in_use, KERNEL),
	SCENARIO(accepted_names, OURS),
	SCENARIO(accept_into_bad_places, OURS),
	SCENARIO(accepted_name_of_a_length_beyond_memory, OURS),
	SCENARIO(flags_of_children, OURS),
	SCENARIO(accepted_in_order, OURS),
	SCENARIO(accept_with_a_time_limit, OURS),
	SCENARIO(accept_without_fds, OURS),
	SCENARIO(listener_nonblocking_by_a_child, MIXED),
	SCENARIO(queued_children_are_reset, OURS),
	SCENARIO(queue_takes_no_fds, MIXED),
	SCENARIO(shut_down_listener, MIXED),
	SCENARIO(accepted_late, OURS),
	SCENARIO(deferred_accept, OURS),
	SCENARIO(inherited_options, OURS),
	SCENARIO(children_have_its_low_water_mark, OURS),
	SCENARIO(options_between_syn_and_accept, KERNEL),
	SCENARIO(saved_syn, OURS),
	SCENARIO(saved_syn_with_its_link, OURS),
	SCENARIO(saved_syn_as_it_was_wanted, OURS),
	SCENARIO(saved_syn_of_a_kernels_connection, MIXED),
	SCENARIO(saved_syn_in_a_child, MIXED),
	SCENARIO(both_families, OURS),
	SCENARIO(both_families_by_a_one_shot, MIXED),
	SCENARIO(six_alone, MIXED),
	SCENARIO_END,
};
