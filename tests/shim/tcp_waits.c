/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: threads that share sockets, end what others wait for, and are
 * interrupted. */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/shim/tcp.h"
#include "tests/support/sleeper.h"

/* -- who shares --------------------------------------------------------------------- */

struct sharer {
	int fd;
	unsigned byte;
	size_t cnt;
	unsigned long long sum;
};

static void *read_a_share(void *arg)
{
	struct sharer *s = arg;
	unsigned char buf[1000];
	ssize_t n;

	while ((n = recv(s->fd, buf, sizeof(buf), 0)) > 0) {
		s->cnt += (size_t)n;
		for (ssize_t i = 0; i < n; i++)
			s->sum += buf[i];
	}
	return NULL;
}

static void *write_a_share(void *arg)
{
	struct sharer *s = arg;
	char buf[777];

	memset(buf, (int)s->byte, sizeof(buf));
	for (int i = 0; i < 1000; i++)
		if (!send_all(s->fd, buf, sizeof(buf)))
			SAY("send: %m\n");
	return NULL;
}

/* Each byte is written by one of them and read by one of them. */
static void readers_and_writers_of_one(void)
{
	enum { CNT = 3 };
	struct sharer readers[CNT] = { 0 }, writers[CNT];
	pthread_t threads[2 * CNT];
	unsigned long long sum = 0;
	size_t cnt = 0;
	int pair[2];

	make_pair(pair);
	for (unsigned i = 0; i < CNT; i++) {
		readers[i].fd = pair[1];
		writers[i] = (struct sharer){ .fd = pair[0], .byte = i + 1 };
		pthread_create(&threads[i], NULL, read_a_share, &readers[i]);
		pthread_create(&threads[CNT + i], NULL, write_a_share,
			       &writers[i]);
	}
	for (int i = CNT; i < 2 * CNT; i++)
		pthread_join(threads[i], NULL);
	shutdown(pair[0], SHUT_WR);
	for (int i = 0; i < CNT; i++) {
		pthread_join(threads[i], NULL);
		cnt += readers[i].cnt;
		sum += readers[i].sum;
	}
	SAY("%zu bytes, sum %llu\n", cnt, sum);
	close_pair(pair);
}

static void *echo(void *arg)
{
	int listener = *(int *)arg, fd;
	char buf[256];
	ssize_t n;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
			send_all(fd, buf, (size_t)n);
		close(fd);
	}
	return NULL;
}

struct asker {
	struct sockaddr_in server;
	unsigned id, good_cnt;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	char out[64], in[64];

	for (int i = 0; i < 20; i++) {
		int fd = connected(&asker->server);

		for (int k = 0; k < 20; k++) {
			int len = snprintf(out, sizeof(out), "%u asks %d %d",
					   asker->id, i, k);

			send(fd, out, (size_t)len, 0);
			asker->good_cnt += receive_all(fd, in, (size_t)len) ==
						   (size_t)len &&
					   memcmp(in, out, (size_t)len) == 0;
		}
		close(fd);
	}
	return NULL;
}

/* Several accept from one listener, several connect. */
static void many_threads_many_connections(void)
{
	enum { CNT = 4 };
	struct asker askers[CNT];
	pthread_t servers[CNT], clients[CNT];
	struct sockaddr_in name;
	int listener = listening(&name, 16);
	unsigned good_cnt = 0;

	for (unsigned i = 0; i < CNT; i++) {
		askers[i] = (struct asker){ name, i, 0 };
		pthread_create(&servers[i], NULL, echo, &listener);
		pthread_create(&clients[i], NULL, ask, &askers[i]);
	}
	for (int i = 0; i < CNT; i++) {
		pthread_join(clients[i], NULL);
		good_cnt += askers[i].good_cnt;
	}
	shutdown(listener, SHUT_RD);
	for (int i = 0; i < CNT; i++)
		pthread_join(servers[i], NULL);
	SAY("%u good\n", good_cnt);
	close(listener);
}

/* -- who waits ---------------------------------------------------------------------- */

enum waits { IN_RECV, IN_ACCEPT, IN_CONNECT, IN_SEND, IN_POLL, IN_EPOLL };

struct waiter {
	enum waits in;
	int fd, set;
	struct sockaddr_in name;
	_Atomic pid_t tid;
	pthread_t thread;
	long result;
	int error;
};

static void *wait_in(void *arg)
{
	struct waiter *w = arg;
	static char text[65536];
	struct pollfd pfd = { .fd = w->fd, .events = POLLIN };
	struct epoll_event event = { 0 };
	char buf[16];

	w->tid = gettid();
	errno = 0;
	switch (w->in) {
	case IN_RECV:
		w->result = recv(w->fd, buf, sizeof(buf), 0);
		break;
	case IN_ACCEPT:
		w->result = accept(w->fd, NULL, NULL);
		break;
	case IN_CONNECT:
		w->result = connect_to(w->fd, &w->name);
		break;
	case IN_SEND:
		w->result = send(w->fd, text, sizeof(text), MSG_NOSIGNAL);
		break;
	case IN_POLL:
		poll(&pfd, 1, 5000);
		w->result = pfd.revents;
		break;
	case IN_EPOLL:
		epoll_wait(w->set, &event, 1, 5000);
		w->result = event.events;
	}
	w->error = errno;
	return NULL;
}

static void start_waiter(struct waiter *w)
{
	struct epoll_event event = { .events = EPOLLIN };

	w->set = epoll_create1(0);
	epoll_ctl(w->set, EPOLL_CTL_ADD, w->fd, &event);
	pthread_create(&w->thread, NULL, wait_in, w);
	while (!w->tid)
		sched_yield();
	sleeper_await(w->tid);
}

static void say_waiter(struct waiter *w)
{
	pthread_join(w->thread, NULL);
	if (w->in == IN_ACCEPT && w->result >= 0)
		SAY("a child\n");
	else if (w->in == IN_POLL || w->in == IN_EPOLL)
		SAY("events %#lx\n", w->result);
	else
		SAY("%ld %s\n", w->result,
		    w->result < 0 ? strerrorname_np(w->error) : "");
	close(w->set);
}

static void shutdown_wakes(void)
{
	struct sockaddr_in name;
	int pair[2], listener, holder;

	for (enum waits in = IN_RECV; in <= IN_EPOLL; in++)
		for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
			struct waiter w = { .in = in };

			if (in == IN_ACCEPT || in == IN_CONNECT ||
			    (how == SHUT_WR) != (in == IN_SEND))
				continue;
			make_pair(pair);
			w.fd = pair[0];
			if (in == IN_SEND)
				stuff(w.fd);
			start_waiter(&w);
			SAY("%d %d: shutdown %s, ", in, how,
			    err(shutdown(w.fd, how)));
			say_waiter(&w);
			close_pair(pair);
		}
	listener = listening(&name, 0);
	struct waiter accepts = { .in = IN_ACCEPT, .fd = listener };
	start_waiter(&accepts);
	SAY("shutdown %s, ", err(shutdown(listener, SHUT_RD)));
	say_waiter(&accepts);
	close(listener);
	listener = listening(&name, 0);
	holder = connected(&name);
	struct waiter connects = { .in = IN_CONNECT, .fd = made(), .name = name };
	start_waiter(&connects);
	SAY("shutdown %s, ", err(shutdown(connects.fd, SHUT_RDWR)));
	say_waiter(&connects);
	close(connects.fd);
	close(holder);
	close(listener);
}

/* close() does not end a wait; what comes after it does. */
static void closed_under_a_reader(void)
{
	struct waiter w = { .in = IN_RECV };
	int pair[2];

	make_pair(pair);
	w.fd = pair[0];
	start_waiter(&w);
	SAY("close %s\n", err(close(pair[0])));
	SAY("closed twice %s\n", err(close(pair[0])));
	sleep_ms(20);
	say_sent(pair[1], "late", 0);
	say_waiter(&w);
	receive(pair[1], 0);
	close(pair[1]);
}

static void closed_under_a_reader_for_good(void)
{
	struct waiter w = { .in = IN_RECV };
	int pair[2];

	make_pair(pair);
	w.fd = pair[0];
	start_waiter(&w);
	close(pair[0]);
	shutdown(pair[1], SHUT_WR);
	say_waiter(&w);
	receive(pair[1], 0);
	close(pair[1]);
}

static void closed_under_an_accept(void)
{
	struct sockaddr_in name;
	struct waiter w = { .in = IN_ACCEPT, .fd = listening(&name, 4) };
	int fd;

	start_waiter(&w);
	SAY("close %s\n", err(close(w.fd)));
	sleep_ms(20);
	fd = made();
	SAY("connect %s\n", err(connect_to(fd, &name)));
	say_waiter(&w);
	say_sent(fd, "hello", 0);
	if (w.result >= 0)
		receive((int)w.result, 0);
	close(fd);
	fd = made();
	SAY("connect %s\n", err(connect_to(fd, &name)));
	close(fd);
}

static void closed_under_a_connect(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 0), holder = connected(&name);
	struct waiter w = { .in = IN_CONNECT, .fd = made(), .name = name };

	start_waiter(&w);
	close(w.fd);
	close(accept(listener, NULL, NULL));
	say_waiter(&w);
	close(accept(listener, NULL, NULL));
	close(holder);
	close(listener);
}

/* Another file takes the number; the wait is for what it began with. */
static void replaced_under_a_reader(void)
{
	struct waiter w = { .in = IN_RECV };
	int pair[2], other[2];

	make_pair(pair);
	make_pair(other);
	w.fd = pair[0];
	start_waiter(&w);
	SAY("dup2 %d\n", dup2(other[0], pair[0]) == pair[0]);
	say_sent(other[1], "others", 0);
	sleep_ms(20);
	say_sent(pair[1], "own", 0);
	say_waiter(&w);
	receive(pair[0], 0);
	/* and the old connection has ended with its last call */
	receive(pair[1], 0);
	close_pair(pair);
	close_pair(other);
}

static void closed_under_a_poll(void)
{
	int pair[2];

	for (enum waits in = IN_POLL; in <= IN_EPOLL; in++) {
		struct waiter w = { .in = in };

		make_pair(pair);
		w.fd = dup(pair[0]);
		start_waiter(&w);
		close(w.fd);
		send(pair[1], "x", 1, 0);
		say_waiter(&w);
		close_pair(pair);
	}
}

struct short_poll {
	int fd;
	_Atomic long begin_ms;
	_Atomic pid_t tid;
	int n;
	short revents;
};

static void *poll_shortly(void *arg)
{
	struct short_poll *p = arg;
	struct pollfd fds = { .fd = p->fd, .events = POLLIN };

	p->begin_ms = now_ms();
	p->tid = gettid();
	p->n = poll(&fds, 1, 400);
	p->revents = fds.revents;
	return NULL;
}

/* When its time is over it looks what the number names by then. */
static void number_changes_under_a_poll(void)
{
	int pair[2], other[2];

	make_pair(other);
	send(other[1], "x", 1, 0);
	await_bytes(other[0], 1);
	for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
		struct short_poll p;
		pthread_t thread;
		bool is_late;

		do { /* a change after its time shows nothing */
			make_pair(pair);
			p = (struct short_poll){ .fd = pair[0] };
			pthread_create(&thread, NULL, poll_shortly, &p);
			while (!p.tid)
				sched_yield();
			sleeper_await(p.tid);
			if (is_replaced)
				dup2(other[0], pair[0]);
			else
				close(pair[0]);
			is_late = now_ms() - p.begin_ms >= 395;
			pthread_join(thread, NULL);
			if (is_replaced)
				close(pair[0]);
			close(pair[1]);
		} while (is_late);
		SAY("poll %d %#x\n", p.n, (unsigned)p.revents);
	}
	close_pair(other);
}

static void copies_share_the_connection(void)
{
	int pair[2], copies[3];

	make_pair(pair);
	copies[0] = dup(pair[0]);
	copies[1] = dup2(pair[0], 50);
	copies[2] = dup3(pair[0], 51, SOCK_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		say_sent(copies[i], "by a copy", 0);
		receive(pair[1], 0);
		say_sent(pair[1], "and back", 0);
		receive(copies[i], 0);
	}
	set_blocking(copies[0], false);
	receive(copies[1], 0);
	close(pair[0]);
	close(copies[0]);
	close(copies[1]);
	say_sent(copies[2], "the last one", 0);
	receive(pair[1], 0);
	close(copies[2]);
	receive(pair[1], 0);
	close(pair[1]);
}

/* -- signals ------------------------------------------------------------------------ */

static _Atomic int handled_cnt;

static void handle(int sig)
{
	(void)sig;
	handled_cnt++;
}

static void set_handler(int flags)
{
	struct sigaction act = { .sa_handler = handle, .sa_flags = flags };

	sigaction(SIGUSR1, &act, NULL);
}

/* Where what is full finds room once more, as it does on a slow machine, who waits for room
 * is told of that, and not of the signal. */
static void fill_to_the_brim(int fd)
{
	char byte = 0;

	do {
		stuff(fd);
		sleep_ms(300);
	} while (send(fd, &byte, 1, MSG_DONTWAIT) > 0);
}

static void interrupted_by_a_signal(void)
{
	struct sockaddr_in name;
	int pair[2];

	set_handler(0);
	make_pair(pair);
	for (enum waits in = IN_RECV; in <= IN_EPOLL; in++) {
		struct waiter w = { .in = in, .fd = pair[0] };

		if (in == IN_CONNECT)
			continue;
		if (in == IN_ACCEPT)
			w.fd = listening(&name, 1);
		if (in == IN_SEND)
			fill_to_the_brim(w.fd);
		start_waiter(&w);
		pthread_kill(w.thread, SIGUSR1);
		SAY("%d: ", in);
		say_waiter(&w);
		if (in == IN_ACCEPT)
			close(w.fd);
	}
	SAY("%d handled\n", handled_cnt);
	close_pair(pair);
}

static void restarted_after_a_signal(void)
{
	struct timeval limit = { 5, 0 };
	struct sockaddr_in name;
	struct waiter accepts = { .in = IN_ACCEPT, .fd = listening(&name, 1) };
	struct waiter reads = { .in = IN_RECV }, limited = { .in = IN_RECV };
	int pair[2], fd;

	set_handler(SA_RESTART);
	make_pair(pair);
	reads.fd = pair[0];
	start_waiter(&reads);
	pthread_kill(reads.thread, SIGUSR1);
	while (handled_cnt < 1)
		sched_yield();
	sleeper_await(reads.tid);
	say_sent(pair[1], "restarted", 0);
	say_waiter(&reads);
	start_waiter(&accepts);
	pthread_kill(accepts.thread, SIGUSR1);
	while (handled_cnt < 2)
		sched_yield();
	fd = connected(&name);
	say_waiter(&accepts);
	close(fd);
	close((int)accepts.result);
	close(accepts.fd);
	/* with a time limit nothing is restarted */
	limited.fd = pair[0];
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	start_waiter(&limited);
	pthread_kill(limited.thread, SIGUSR1);
	say_waiter(&limited);
	close_pair(pair);
}

static void cancelled_in_its_wait(void)
{
	void *result;
	int pair[2];

	for (enum waits in = IN_RECV; in <= IN_EPOLL; in++) {
		struct waiter w = { .in = in };

		if (in == IN_ACCEPT || in == IN_CONNECT)
			continue;
		make_pair(pair);
		w.fd = pair[0];
		if (in == IN_SEND)
			stuff(w.fd);
		start_waiter(&w);
		pthread_cancel(w.thread);
		pthread_join(w.thread, &result);
		SAY("%d: cancelled %d\n", in, result == PTHREAD_CANCELED);
		say_sent(pair[1], "still", 0);
		receive(pair[0], 0);
		close(w.set);
		close_pair(pair);
	}
}

/* -- many --------------------------------------------------------------------------- */

/* A chat of all with all, by one set and three threads. */
struct hall {
	int set;
	_Atomic unsigned heard_cnt;
};

static void *hear(void *arg)
{
	struct hall *hall = arg;
	struct epoll_event event;
	unsigned number;

	while (epoll_wait(hall->set, &event, 1, -1) == 1) {
		if (recv(event.data.fd, &number, sizeof(number),
			 MSG_DONTWAIT) != sizeof(number))
			continue;
		if (!number)
			break;
		hall->heard_cnt++;
	}
	return NULL;
}

static void many_threads_one_set(void)
{
	enum { THREADS = 3, SOCKETS = 5, NUMBERS = 1000 };
	struct hall hall = { .set = epoll_create1(0) };
	int pairs[SOCKETS][2];
	pthread_t threads[THREADS];
	unsigned number;

	for (int i = 0; i < SOCKETS; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		make_pair(pairs[i]);
		event.data.fd = pairs[i][1];
		epoll_ctl(hall.set, EPOLL_CTL_ADD, pairs[i][1], &event);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, hear, &hall);
	for (number = 1; number <= NUMBERS; number++)
		send(pairs[number % SOCKETS][0], &number, sizeof(number), 0);
	while (hall.heard_cnt < NUMBERS)
		sched_yield();
	number = 0;
	for (int i = 0; i < THREADS; i++)
		send(pairs[i][0], &number, sizeof(number), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	SAY("%u heard\n", hall.heard_cnt);
	for (int i = 0; i < SOCKETS; i++)
		close_pair(pairs[i]);
	close(hall.set);
}

/* -- the connection goes back under a call ------------------------------------------- */

enum { MOVED_LEN = 200000, MOVED_PIECE = 3000 };

struct moved_stream {
	int fd;
	bool is_right;
	/* where it ended, and why */
	unsigned at;
	int err;
};

static void *send_pieces(void *arg)
{
	struct moved_stream *s = arg;
	char piece[MOVED_PIECE];

	s->is_right = true;
	for (s->at = 0; s->at < MOVED_LEN && s->is_right; s->at += MOVED_PIECE) {
		fill(piece, sizeof(piece), s->at);
		s->is_right = send_all(s->fd, piece, sizeof(piece));
	}
	s->err = errno;
	shutdown(s->fd, SHUT_WR);
	return NULL;
}

static void *receive_pieces(void *arg)
{
	struct moved_stream *s = arg;
	char piece[MOVED_PIECE], got[MOVED_PIECE];

	s->is_right = true;
	while (s->is_right &&
	       receive_all(s->fd, got, sizeof(got)) == sizeof(got)) {
		fill(piece, sizeof(piece), s->at);
		s->is_right = memcmp(piece, got, sizeof(got)) == 0;
		s->at += MOVED_PIECE;
	}
	s->err = errno;
	s->is_right &= s->at >= MOVED_LEN;
	return NULL;
}

/* Who has seen that the connection is ours may find that it is not any more when it is
 * its turn. */
static void goes_back_under_streams(void)
{
	int wrong = 0;

	for (int round = 0; round < 60; round++) {
		struct moved_stream s[4];
		pthread_t threads[4];
		int pair[2], on = 1;

		make_pair(pair);
		for (int i = 0; i < 4; i++) {
			s[i] = (struct moved_stream){ .fd = pair[i % 2] };
			pthread_create(&threads[i], NULL,
				       i < 2 ? send_pieces : receive_pieces,
				       &s[i]);
		}
		usleep((unsigned)(round % 10) * 100);
		/* signals to nobody are the kernel's */
		ioctl(pair[round % 2], FIOASYNC, &on);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			wrong += !s[i].is_right;
			if (!s[i].is_right)
				SAY("round %d, %s at end %d: %u bytes, errno %d\n", round,
				    i < 2 ? "sender" : "receiver", i % 2, s[i].at, s[i].err);
		}
		close_pair(pair);
	}
	SAY("wrong streams: %d\n", wrong);
}

/* A call that wants more than there is, while the connection goes back. */
struct moved_call {
	int fd, flags;
	_Atomic pid_t tid;
	size_t len;
	ssize_t result;
	char text[64];
};

static void *receive_moved(void *arg)
{
	struct moved_call *call = arg;

	call->tid = gettid();
	call->result = recv(call->fd, call->text, call->len, call->flags);
	return NULL;
}

static void receive_while_it_moves(int flags)
{
	struct moved_call call = { .flags = flags, .len = 10 };
	pthread_t thread;
	int pair[2], on = 1;

	make_pair(pair);
	call.fd = pair[1];
	say_sent(pair[0], "hello", 0);
	await_acks(pair[0]);
	pthread_create(&thread, NULL, receive_moved, &call);
	/* mostly it has these and waits for the others */
	sleep_ms(100);
	ioctl(pair[1], FIOASYNC, &on);
	sleep_ms(100);
	say_sent(pair[0], "world", 0);
	pthread_join(thread, NULL);
	SAY("recv: %zd \"%s\"\n", call.result, call.text);
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[1]);
	close_pair(pair);
}

/* A call goes on where the connection is, with what it has, until it has all. */
static void goes_back_under_one_that_wants_all(void)
{
	receive_while_it_moves(MSG_WAITALL);
	receive_while_it_moves(MSG_WAITALL | MSG_PEEK);
}

enum { BY_SIGNAL, BY_CANCEL };

/* It has some, and waits for the rest where the connection is now, the kernel. */
static void end_one_that_wants_all(int by)
{
	struct moved_call call = { .flags = MSG_WAITALL, .len = 10 };
	pthread_t thread;
	int pair[2], on = 1;
	void *end = NULL;

	make_pair(pair);
	call.fd = pair[1];
	say_sent(pair[0], "hello", 0);
	await_acks(pair[0]);
	pthread_create(&thread, NULL, receive_moved, &call);
	while (!call.tid)
		sched_yield();
	sleeper_await(call.tid);
	ioctl(pair[1], FIOASYNC, &on);
	/* from its sleep with us to its sleep at the twin */
	sleep_ms(50);
	sleeper_await(call.tid);
	if (by == BY_SIGNAL)
		pthread_kill(thread, SIGUSR1);
	else
		pthread_cancel(thread);
	pthread_join(thread, &end);
	SAY("%d: %d, recv: %zd \"%s\"\n", by, end == PTHREAD_CANCELED,
	    call.result, end ? "" : call.text);
	say_sent(pair[0], "again", 0);
	receive(pair[1], 0);
	close_pair(pair);
}

static void ended_where_it_went_back(void)
{
	set_handler(0);
	end_one_that_wants_all(BY_SIGNAL);
	end_one_that_wants_all(BY_CANCEL);
}

static void *send_moved(void *arg)
{
	struct moved_call *call = arg;
	char *text = calloc(1, call->len);

	call->result = send(call->fd, text, call->len, 0);
	free(text);
	shutdown(call->fd, SHUT_WR);
	return NULL;
}

static void *send_file_moved(void *arg)
{
	struct moved_call *call = arg;
	int file = memfd_create("long", MFD_CLOEXEC);
	off_t offset = 10;

	if (ftruncate(file, (off_t)call->len + 20) != 0)
		SAY("no file\n");
	call->result = sendfile(call->fd, file, &offset, call->len);
	SAY("offset: %d\n", offset == (off_t)call->len + 10);
	close(file);
	shutdown(call->fd, SHUT_WR);
	return NULL;
}

static void moves_under_a_long(void *(*sender)(void *))
{
	struct moved_call call = { .len = 32 << 20 };
	pthread_t thread;
	int pair[2], on = 1;
	ssize_t last;

	make_pair(pair);
	call.fd = pair[0];
	pthread_create(&thread, NULL, sender, &call);
	sleep_ms(100);
	ioctl(pair[0], FIOASYNC, &on);
	SAY("all came: %d\n", drain(pair[1], &last) == call.len);
	pthread_join(thread, NULL);
	SAY("all sent: %d\n", call.result == (ssize_t)call.len);
	close_pair(pair);
}

static void goes_back_under_a_long_send(void)
{
	moves_under_a_long(send_moved);
	moves_under_a_long(send_file_moved);
}

/* What becomes of a connect that the kernel takes over as the answer comes. */
static const char *end_of_connect(int fd, int listener)
{
	int accepted, error;
	char c = 0;

	await(fd, POLLOUT);
	error = get_option(fd, SOL_SOCKET, SO_ERROR);
	if (listener < 0 || error)
		return strerrorname_np(error);
	accepted = accept(listener, NULL, NULL);
	send(accepted, "x", 1, 0);
	await(fd, POLLIN);
	recv(fd, &c, 1, MSG_DONTWAIT);
	close(accepted);
	return c == 'x' ? "open" : "silent";
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void goes_back_while_it_opens(void)
{
	struct sockaddr_in there, nowhere_near;
	int listener = listening(&there, 64), taken = bound(&nowhere_near);
	int wrong = 0;

	for (int round = 0; round < 200; round++) {
		/* a twin over loopback is not heard by what is not accepted yet */
		bool is_refused = round & 1 || !over_wire();
		int fd = made_nonblocking(), on = 1;
		const char *end;
		uint64_t until;

		connect_to(fd, is_refused ? &nowhere_near : &there);
		for (until = now_us() + (uint64_t)(round % 40); now_us() < until;)
			;
		/* signals to nobody are the kernel's */
		ioctl(fd, FIOASYNC, &on);
		end = end_of_connect(fd, is_refused ? -1 : listener);
		if (strcmp(end, is_refused ? "ECONNREFUSED" : "open") != 0) {
			SAY("round %d: %s\n", round, end);
			wrong++;
		}
		close(fd);
	}
	close(taken);
	close(listener);
	SAY("wrong: %d\n", wrong);
}

const struct scenario wait_scenarios[] = {
	SCENARIO(readers_and_writers_of_one, OURS),
	SCENARIO(many_threads_many_connections, OURS),
	SCENARIO(shutdown_wakes, OURS),
	SCENARIO(closed_under_a_reader, OURS),
	SCENARIO(closed_under_a_reader_for_good, OURS),
	SCENARIO(closed_under_an_accept, OURS),
	SCENARIO(closed_under_a_connect, OURS),
	SCENARIO(replaced_under_a_reader, OURS),
	SCENARIO(closed_under_a_poll, MIXED),
	SCENARIO(number_changes_under_a_poll, OURS),
	SCENARIO(copies_share_the_connection, OURS),
	SCENARIO(interrupted_by_a_signal, OURS),
	SCENARIO(restarted_after_a_signal, OURS),
	SCENARIO(cancelled_in_its_wait, OURS),
	SCENARIO(many_threads_one_set, OURS),
	SCENARIO(goes_back_under_streams, MIXED),
	SCENARIO(goes_back_under_one_that_wants_all, MIXED),
	SCENARIO(ended_where_it_went_back, MIXED),
	SCENARIO(goes_back_under_a_long_send, MIXED),
	SCENARIO(goes_back_while_it_opens, MIXED),
	SCENARIO_END,
};
