/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: how connections end: shutdown(), close(), linger, resets. */
#include "config.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/syscall_raw.h"
#include "tests/shim/tcp.h"
#include "tests/support/sleeper.h"

static void say_shutdown(int fd, int how)
{
	SAY("shutdown %d: %s\n", how, err(shutdown(fd, how)));
}

static void say_plain_send(int fd)
{
	SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
}

/* -- ends --------------------------------------------------------------------------- */

static void the_end_of_a_stream(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "last words", 0);
	close(pair[0]);
	await(pair[1], POLLRDHUP);
	SAY("events %#x\n", (unsigned)await(pair[1], POLLIN | POLLRDHUP));
	receive(pair[1], 0);
	for (int i = 0; i < 3; i++)
		receive(pair[1], 0);
	say_error(pair[1]);
	close(pair[1]);
}

/* The first send after the peer has closed is taken, and answered by a reset. */
static void sends_to_one_that_has_closed(void)
{
	int pair[2];

	make_pair(pair);
	close(pair[0]);
	await(pair[1], POLLIN);
	say_plain_send(pair[1]);
	await(pair[1], POLLERR);
	say_plain_send(pair[1]);
	say_plain_send(pair[1]);
	receive(pair[1], 0);
	say_error(pair[1]);
	close(pair[1]);
}

static void half_closed(void)
{
	int pair[2];

	for (int i = 0; i < 2; i++) {
		make_pair(pair);
		say_sent(pair[i], "question", 0);
		say_shutdown(pair[i], SHUT_WR);
		say_plain_send(pair[i]);
		receive_to_end(pair[!i]);
		say_sent(pair[!i], "answer", 0);
		await_bytes(pair[i], 6);
		receive(pair[i], 0);
		say_sent(pair[!i], "and more", 0);
		close(pair[!i]);
		receive_to_end(pair[i]);
		close(pair[i]);
	}
}

static void both_half_closed(void)
{
	int pair[2];

	make_pair(pair);
	say_shutdown(pair[0], SHUT_WR);
	say_shutdown(pair[1], SHUT_WR);
	for (int i = 0; i < 2; i++) {
		await_closed(pair[i]);
		SAY("events %#x\n", (unsigned)await(pair[i], POLLIN | POLLOUT |
								     POLLRDHUP));
		receive(pair[i], 0);
		say_plain_send(pair[i]);
		say_error(pair[i]);
	}
	close_pair(pair);
}

/* -- shutdown() in each state ------------------------------------------------------- */

static void shut_down_in_each_state(void)
{
	struct sockaddr_in name;
	int fd = made(), pair[2];

	for (int how = -1; how <= 3; how++)
		say_shutdown(fd, how);
	close(fd);
	fd = bound(&name);
	say_shutdown(fd, SHUT_RDWR);
	SAY("listen %s\n", err(listen(fd, 1)));
	close(fd);
	for (int how = 0; how <= 2; how++) {
		make_pair(pair);
		say_sent(pair[1], "before", 0);
		await_bytes(pair[0], 6);
		say_shutdown(pair[0], how);
		SAY("events %#x\n", (unsigned)await(pair[0], POLLIN | POLLOUT |
								     POLLRDHUP));
		receive(pair[0], MSG_DONTWAIT);
		receive(pair[0], MSG_DONTWAIT);
		say_plain_send(pair[0]);
		say_shutdown(pair[0], how);
		say_shutdown(pair[0], SHUT_RDWR);
		close_pair(pair);
	}
	/* after the peer */
	make_pair(pair);
	close(pair[1]);
	await(pair[0], POLLIN);
	say_shutdown(pair[0], SHUT_RD);
	say_shutdown(pair[0], SHUT_WR);
	await_closed(pair[0]);
	say_shutdown(pair[0], SHUT_RDWR);
	close(pair[0]);
	/* after a reset */
	make_pair(pair);
	reset(pair[1]);
	await(pair[0], POLLERR);
	say_shutdown(pair[0], SHUT_RDWR);
	close(pair[0]);
}

/* Shut down both ways, a connection is reset by data, and not by the end. */
static void data_after_both_are_shut_down(void)
{
	char early[5] = "";
	int pair[2];

	for (int end = 0; end < 2; end++) {
		make_pair(pair);
		say_shutdown(pair[end], SHUT_RD);
		say_sent(pair[!end], "in time", 0);
		await_bytes(pair[end], 7);
		receive(pair[end], MSG_DONTWAIT);
		say_shutdown(pair[end], SHUT_WR);
		say_sent(pair[!end], "late", 0);
		SAY("events %#x\n", (unsigned)await(pair[!end], POLLERR));
		SAY("events %#x\n", (unsigned)await(pair[end], POLLERR));
		receive(pair[end], MSG_DONTWAIT);
		receive(pair[end], MSG_DONTWAIT);
		say_plain_send(pair[!end]);
		close_pair(pair);
		/* what came before is not lost by what comes later */
		make_pair(pair);
		say_sent(pair[!end], "early", 0);
		await_bytes(pair[end], 5);
		say_shutdown(pair[end], SHUT_RDWR);
		send(pair[!end], "late", 4, MSG_NOSIGNAL);
		recv(pair[end], early, sizeof(early), MSG_DONTWAIT);
		SAY("%.5s\n", early);
		close_pair(pair);
		make_pair(pair);
		say_shutdown(pair[end], SHUT_RDWR);
		close(pair[!end]);
		SAY("events %#x\n", (unsigned)await(pair[end], POLLHUP));
		receive(pair[end], MSG_DONTWAIT);
		close(pair[end]);
	}
}

/* recvmmsg() tells an error before the data that came before it. */
static void messages_before_a_reset(void)
{
	char bytes[8];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct mmsghdr msgs[1] = { { .msg_hdr = { .msg_iov = &iov,
						  .msg_iovlen = 1 } } };
	int pair[2];

	make_pair(pair);
	say_sent(pair[1], "data", 0);
	await_bytes(pair[0], 4);
	reset(pair[1]);
	await(pair[0], POLLERR);
	for (int i = 0; i < 3; i++)
		SAY("messages %s\n", err(recvmmsg(pair[0], msgs, 1, MSG_DONTWAIT, NULL)));
	close(pair[0]);
}

/* What comes later is read all the same, and then there is an end. */
static void reading_is_shut_down(void)
{
	int pair[2];

	make_pair(pair);
	say_shutdown(pair[0], SHUT_RD);
	receive(pair[0], 0);
	SAY("events %#x\n", (unsigned)await(pair[0], POLLIN | POLLRDHUP));
	say_sent(pair[1], "late", 0);
	await_bytes(pair[0], 4);
	receive(pair[0], 0);
	receive(pair[0], 0);
	say_sent(pair[0], "still sends", 0);
	await_bytes(pair[1], 11);
	receive(pair[1], 0);
	close_pair(pair);
}

static void shut_down_while_connecting(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 0), holder = connected(&name);
	int fd = made_nonblocking();

	SAY("connect %s\n", err(connect_to(fd, &name)));
	say_shutdown(fd, SHUT_RDWR);
	say_error(fd);
	SAY("events %#x\n", (unsigned)await(fd, POLLIN | POLLOUT));
	SAY("connect %s\n", err(connect_to(fd, &name)));
	close(fd);
	close(holder);
	close(listener);
}

/* -- signals ------------------------------------------------------------------------ */

static _Atomic pid_t signalled;

static void note_thread(int sig)
{
	(void)sig;
	signalled = gettid();
}

static void *send_into_nothing(void *arg)
{
	struct iovec iov = { (void *)"x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = *(int *)arg;

	for (int i = 0; i < 5; i++) {
		signalled = 0;
		SAY("%s", err(i == 0 ? write(fd, "x", 1) :
			      i == 1 ? send(fd, "x", 1, 0) :
			      i == 2 ? writev(fd, &iov, 1) :
			      i == 3 ? sendmsg(fd, &msg, 0) :
				       sendmsg(fd, &msg, MSG_NOSIGNAL)));
		SAY(", %s\n", !signalled	    ? "no signal" :
			      signalled == gettid() ? "signalled" :
						      "somebody else is signalled");
	}
	return NULL;
}

static void broken_pipe(void)
{
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	signal(SIGPIPE, note_thread);
	shutdown(pair[0], SHUT_WR);
	pthread_create(&thread, NULL, send_into_nothing, &pair[0]);
	pthread_join(thread, NULL);
	close_pair(pair);
	/* blocked, it waits for the thread */
	make_pair(pair);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	shutdown(pair[0], SHUT_WR);
	signalled = 0;
	SAY("%s\n", err(write(pair[0], "x", 1)));
	sigpending(&set);
	SAY("pending %d, handled %d\n", sigismember(&set, SIGPIPE),
	    signalled != 0);
	close_pair(pair);
}

/* A number that is closed behind the library's back leaves its connection, which has its
 * port until its peer ends it, too. The kernel's socket of it is gone. */
static void port_of_a_number_closed_by_a_raw_call(void)
{
	enum { OPT_LOCAL_PORT_RANGE = 51, ROUNDS = 8, PORTS = 32, FEW = 3 };
	struct sockaddr_in name;
	int listener = listening(&name, 2 * FEW), cnt = 0, children[ROUNDS * 2 * FEW];

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned first = 33000 + PORTS * i;
		unsigned range = first | (first + PORTS - 1) << 16;
		int fds[2 * FEW];

		for (int n = 0; n < 2 * FEW; n++) {
			for (int j = 0; n == FEW && j < FEW; j++)
				syscall_raw(SYS_close, fds[j], 0, 0, 0, 0, 0);
			fds[n] = made();
			setsockopt(fds[n], IPPROTO_IP, OPT_LOCAL_PORT_RANGE, &range, sizeof(range));
			if (connect(fds[n], (struct sockaddr *)&name, sizeof(name)) == 0)
				children[cnt++] = accept(listener, NULL, NULL);
			else
				SAY("%d of %u: %s\n", n, i, err(-1));
		}
		for (int n = FEW; n < 2 * FEW; n++)
			close(fds[n]);
	}
	SAY("connected %d\n", cnt);
	for (int i = 0; i < cnt; i++)
		close(children[i]);
	close(listener);
}

/* -- handlers ----------------------------------------------------------------------- */

static int chat[2];

static void talk(int sig)
{
	char byte;

	(void)sig;
	(void)!send(chat[0], "x", 1, MSG_DONTWAIT);
	(void)!recv(chat[1], &byte, 1, MSG_DONTWAIT);
}

/* One runs in the midst of a close of any kind, and uses another connection. By a raw close
 * the next fd of the same number finds that it is over. */
static void closed_under_a_busy_handler(void)
{
	struct sigaction act = { .sa_handler = talk, .sa_flags = SA_RESTART };
	struct itimerval off = { 0 };
	struct sockaddr_in name;
	int listener = listening(&name, 5), pair[2];
	sigset_t set;

	make_pair(chat);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGALRM, &act, NULL);
	for (int i = 0; i < 600; i++) {
		/* each time at another moment, and once, or a slow handler would never end */
		struct itimerval timer = { .it_value.tv_usec = 1 + i / 3 % 100 };
		FILE *stream;

		make_pair_of(listener, &name, pair);
		stream = i % 3 == 0 ? fdopen(pair[0], "w") : NULL;
		if (i % 3 == 1)
			syscall_raw(SYS_close, pair[0], 0, 0, 0, 0, 0);
		setitimer(ITIMER_REAL, &timer, NULL);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		if (stream)
			fclose(stream);
		else if (i % 3 == 1)
			pair[0] = open("/dev/null", O_RDONLY);
		else
			close(pair[0]);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		if (i % 3 == 1)
			close(pair[0]);
		close(pair[1]);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	close_pair(chat);
	close(listener);
	SAY("all closed\n");
}

/* -- resets ------------------------------------------------------------------------- */

static void reset_is_told_once(void)
{
	static const char *const calls[] = { "recv", "send", "SO_ERROR" };
	int pair[2];

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		make_pair(pair);
		reset(pair[0]);
		await(pair[1], POLLERR);
		SAY("events %#x\n", (unsigned)await(pair[1], POLLIN | POLLOUT |
								     POLLRDHUP));
		SAY("first %s\n", calls[i]);
		if (i == 0)
			receive(pair[1], 0);
		else if (i == 1)
			say_plain_send(pair[1]);
		else
			say_error(pair[1]);
		SAY("events %#x\n", (unsigned)await(pair[1], POLLIN | POLLOUT |
								     POLLRDHUP));
		receive(pair[1], 0);
		say_plain_send(pair[1]);
		say_error(pair[1]);
		say_names(pair[1], 0, 0);
		close(pair[1]);
	}
}

/* What had come before the reset can be read. */
static void reset_behind_data(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "kept or lost", 0);
	await_bytes(pair[1], 12);
	reset(pair[0]);
	await(pair[1], POLLERR);
	receive(pair[1], 0);
	receive(pair[1], 0);
	receive(pair[1], 0);
	close(pair[1]);
}

static void closed_with_unread_data(void)
{
	int pair[2];

	make_pair(pair);
	say_sent(pair[0], "nobody reads this", 0);
	await_bytes(pair[1], 17);
	say_sent(pair[1], "said before", 0);
	close(pair[1]);
	await(pair[0], POLLERR);
	receive(pair[0], 0);
	receive(pair[0], 0);
	receive(pair[0], 0);
	close(pair[0]);
	/* what was read is no reason */
	make_pair(pair);
	say_sent(pair[0], "read", 0);
	await_bytes(pair[1], 4);
	receive(pair[1], 0);
	close(pair[1]);
	receive(pair[0], 0);
	close(pair[0]);
	/* shut down for reading, it is one */
	make_pair(pair);
	say_sent(pair[0], "unread", 0);
	await_bytes(pair[1], 6);
	shutdown(pair[1], SHUT_RDWR);
	close(pair[1]);
	await(pair[0], POLLIN);
	sleep_ms(20);
	receive(pair[0], 0);
	close(pair[0]);
}

/* What comes after the close is answered by a reset. */
static void data_after_a_close(void)
{
	int pair[2];

	make_pair(pair);
	close(pair[1]);
	receive(pair[0], 0);
	say_plain_send(pair[0]);
	await(pair[0], POLLERR);
	SAY("events %#x\n", (unsigned)await(pair[0], POLLIN | POLLOUT));
	receive(pair[0], 0);
	say_plain_send(pair[0]);
	close(pair[0]);
}

/* -- linger ------------------------------------------------------------------------- */

static void set_linger(int fd, int on, int seconds)
{
	struct linger linger = { on, seconds };

	SAY("linger %d %d: %s\n", on, seconds,
	    err(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger))));
}

/* Whoever shall not wait does not wait for that long. */
enum { NO_WAIT_MS = 4500 };

static void say_close(int fd, long at_once_ms)
{
	long begin = now_ms(), took;

	SAY("close %s", err(close(fd)));
	took = now_ms() - begin;
	SAY(" %s\n", took < at_once_ms ? "at once" : took < 5000 ? "in time" : "late");
}

static void lingering(void)
{
	int pair[2];

	/* everything is acknowledged, and the end too */
	make_pair(pair);
	set_linger(pair[0], 1, 5);
	say_sent(pair[0], "taken", 0);
	say_close(pair[0], NO_WAIT_MS);
	receive_to_end(pair[1]);
	close(pair[1]);
	/* nobody reads */
	make_pair(pair);
	set_linger(pair[0], 1, 1);
	stuff(pair[0]);
	say_close(pair[0], 950);
	close(pair[1]);
	make_pair(pair);
	set_linger(pair[0], 0, 5);
	stuff(pair[0]);
	say_close(pair[0], NO_WAIT_MS);
	close(pair[1]);
	make_pair(pair);
	set_linger(pair[0], 1, 0);
	stuff(pair[0]);
	say_close(pair[0], NO_WAIT_MS);
	await(pair[1], POLLERR);
	close(pair[1]);
}

static void lingering_without_waiting(void)
{
	size_t sent;
	ssize_t last;
	int pair[2];

	make_pair(pair);
	set_linger(pair[0], 1, 5);
	set_blocking(pair[0], false);
	sent = stuff(pair[0]);
	say_close(pair[0], NO_WAIT_MS);
	SAY("all came: %d", drain(pair[1], &last) == sent);
	SAY(" %s\n", err(last));
	close(pair[1]);
}

/* One of which both ends are acknowledged, ours first. */
static void shut_down_after_both_ends(void)
{
	int pair[2];

	make_pair(pair);
	shutdown(pair[0], SHUT_WR);
	await(pair[1], POLLRDHUP);
	shutdown(pair[1], SHUT_WR);
	await_closed(pair[0]);
	await_closed(pair[1]);
	for (int i = 0; i < 2; i++)
		for (int how = SHUT_RD; how <= SHUT_RDWR; how++)
			SAY("end %d shutdown %d %s\n", i, how, err(shutdown(pair[i], how)));
	close_pair(pair);
}

static _Atomic bool is_read;

static void *close_it(void *arg)
{
	close(*(int *)arg);
	SAY("closed when it was read: %d\n", is_read);
	return NULL;
}

/* As long as it takes, which is what Linux makes of a negative number. */
static void lingering_for_long(void)
{
	pthread_t thread;
	ssize_t last;
	int pair[2];

	make_pair(pair);
	set_linger(pair[0], 1, -1);
	stuff(pair[0]);
	pthread_create(&thread, NULL, close_it, &pair[0]);
	sleep_ms(100);
	is_read = true;
	(void)!drain(pair[1], &last);
	pthread_join(thread, NULL);
	close(pair[1]);
}

static _Atomic pid_t closer;

static void *close_and_linger(void *arg)
{
	closer = gettid();
	return close_it(arg);
}

static void *close_range_and_linger(void *arg)
{
	unsigned fd = (unsigned)*(int *)arg;

	closer = gettid();
	SAY("close_range %s\n", err(close_range(fd, fd, 0)));
	SAY("closed when it was read: %d\n", is_read);
	return NULL;
}

/* What lingers has closed its number before. */
static void linger_in(void *close_number(void *number))
{
	pthread_t thread;
	ssize_t last;
	int pair[2], fd;

	make_pair(pair);
	set_linger(pair[0], 1, 20);
	stuff(pair[0]);
	is_read = false;
	closer = 0;
	pthread_create(&thread, NULL, close_number, &pair[0]);
	while (!closer)
		sleep_ms(1);
	sleeper_await(closer);
	fd = made();
	SAY("the same number: %d\n", fd == pair[0]);
	is_read = true;
	(void)!drain(pair[1], &last);
	pthread_join(thread, NULL);
	SAY("it is open: %s\n", err(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1)));
	close(fd);
	close(pair[1]);
}

static void number_of_one_that_lingers(void)
{
	linger_in(close_and_linger);
}

static void range_that_lingers(void)
{
	linger_in(close_range_and_linger);
}

static void *close_a_stream(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_cancel(pthread_self());
	fclose(arg);
	return NULL;
}

/* fclose() is no cancellation point for that. */
static void stream_closed_by_a_cancelled_thread(void)
{
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	pthread_create(&thread, NULL, close_a_stream, fdopen(pair[0], "r+"));
	pthread_join(thread, NULL);
	SAY("closed: %s\n", err(fcntl(pair[0], F_GETFD)));
	SAY("end %#x\n", (unsigned)await(pair[1], POLLRDHUP));
	close(pair[1]);
}

static _Atomic bool has_number;

static int take_number(_Atomic int *at)
{
	int fd = *at;

	has_number = true;
	return fd;
}

/* Returns when the thread has the number, which may be taken away from it then. */
static void start_use(pthread_t *thread, void *use(void *number), _Atomic int *number)
{
	has_number = false;
	pthread_create(thread, NULL, use, number);
	while (!has_number)
		sched_yield();
}

/* Until somebody takes the number away. */
static void *poll_number(void *arg)
{
	_Atomic int *at = arg;
	int fd = take_number(at);
	long ready = 0;

	while (*at == fd)
		ready += poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 1) != 0;
	SAY("ready %ld\n", ready);
	return NULL;
}

static void *write_to_number(void *arg)
{
	_Atomic int *at = arg;
	int fd = take_number(at);
	long failed = 0;

	while (*at == fd)
		if (send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
			failed++;
	SAY("sends that failed: %ld\n", failed);
	return NULL;
}

static void replace_under(void *use(void *number))
{
	enum { CNT = 200 };
	pthread_t thread;
	/* over a wire on a busy machine each may have to repeat its SYN */
	int cnt = over_wire() ? CNT / 4 : CNT;
	int number, pair[2], peers[CNT];
	_Atomic int used;

	make_pair(pair);
	peers[0] = pair[1];
	used = number = pair[0];
	start_use(&thread, use, &used);
	for (int i = 1; i < cnt; i++) {
		int next[2];

		make_pair(next);
		peers[i] = next[1];
		if (dup2(next[0], number) != number)
			SAY("dup2: %m\n");
		close(next[0]);
	}
	used = -1;
	pthread_join(thread, NULL);
	close(number);
	for (int i = 0; i < cnt; i++)
		close(peers[i]);
}

/* dup2() replaces a connection in one step: who writes meanwhile writes to one or the
 * other. */
static void replaced_under_a_writer(void)
{
	replace_under(write_to_number);
}

/* Who polls sees no end. */
static void replaced_under_a_poller(void)
{
	replace_under(poll_number);
}

struct replacement {
	int from, to;
	_Atomic pid_t tid;
	_Atomic bool is_over;
};

static void *replace(void *arg)
{
	struct replacement *r = arg;
	long begin = now_ms();

	r->tid = gettid();
	SAY("dup2 %d", dup2(r->from, r->to) == r->to);
	r->is_over = true;
	SAY(" late: %d\n", now_ms() - begin >= 950);
	return NULL;
}

/* And where the old one lingers, dup2() waits, but nobody else. (Who is in a call with the old
 * one at that moment would have to wait in its place.) */
static void replaced_while_it_lingers(void)
{
	struct replacement r;
	pthread_t thread;
	ssize_t last;
	int pair[2], next[2];
	bool is_sent;

	make_pair(pair);
	make_pair(next);
	set_linger(pair[0], 1, 1);
	stuff(pair[0]);
	r = (struct replacement){ .from = next[0], .to = pair[0] };
	pthread_create(&thread, NULL, replace, &r);
	while (!r.tid)
		sched_yield();
	sleeper_await(r.tid);
	is_sent = send(pair[0], "x", 1, MSG_DONTWAIT) == 1 && !r.is_over;
	pthread_join(thread, NULL);
	SAY("sent meanwhile: %d\n", is_sent);
	receive(next[1], 0);
	close(next[0]);
	close(pair[0]);
	close(next[1]);
	(void)!drain(pair[1], &last);
	close(pair[1]);
}

/* Only the last of the copies lingers. */
static void lingering_copies(void)
{
	int pair[2], copy;

	make_pair(pair);
	copy = dup(pair[0]);
	set_linger(pair[0], 1, 0);
	say_close(pair[0], NO_WAIT_MS);
	say_sent(copy, "alive", 0);
	receive(pair[1], 0);
	say_close(copy, NO_WAIT_MS);
	await(pair[1], POLLERR);
	receive(pair[1], 0);
	close(pair[1]);
}

/* -- what is under way -------------------------------------------------------------- */

static void closed_behind_much(void)
{
	ssize_t last;
	size_t sent;
	int pair[2];

	make_pair(pair);
	sent = stuff(pair[0]);
	close(pair[0]);
	SAY("all came: %d", drain(pair[1], &last) == sent);
	SAY(" %s\n", err(last));
	close(pair[1]);
}

/* A peer that takes nothing for long ends the connection. */
static void user_timeout(void)
{
	int pair[2];

	make_pair(pair);
	/* which takes a while, and would find the error itself */
	stuff(pair[0]);
	SAY("set %s\n",
	    err(set_option(pair[0], IPPROTO_TCP, TCP_USER_TIMEOUT, 600)));
	SAY("events %#x\n", (unsigned)await(pair[0], POLLERR));
	SAY("recv %s\n", err(recv(pair[0], &(char){ 0 }, 1, 0)));
	say_plain_send(pair[0]);
	close_pair(pair);
}

/* From now on it hears nothing, and says nothing. */
static void make_deaf(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &drop };

	SAY("deaf %s\n", err(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER,
					&program, sizeof(program))));
}

static void say_death(int fd, long begin)
{
	SAY("events %#x ", (unsigned)await(fd, POLLIN | POLLOUT | POLLERR));
	SAY("in time: %d\n", now_ms() - begin > 400 && now_ms() - begin < 8000);
	receive(fd, 0);
	receive(fd, 0);
	say_plain_send(fd);
}

/* Neither data nor probes are answered. Over loopback the deaf end takes the other one to
 * the kernel; over a wire (system/tcp_mirror) it is ours that finds out. */
static void silent_peer(void)
{
	struct sockaddr_in name;
	int pair[2], listener = listening(&name, 4);

	for (int by_keepalive = 0; by_keepalive < 2; by_keepalive++) {
		make_pair_of(listener, &name, pair);
		make_deaf(pair[1]);
		if (by_keepalive) {
			set_option(pair[0], SOL_SOCKET, SO_KEEPALIVE, 1);
			set_option(pair[0], IPPROTO_TCP, TCP_KEEPIDLE, 1);
			set_option(pair[0], IPPROTO_TCP, TCP_KEEPINTVL, 1);
			set_option(pair[0], IPPROTO_TCP, TCP_KEEPCNT, 1);
		} else {
			set_option(pair[0], IPPROTO_TCP, TCP_USER_TIMEOUT, 700);
			say_sent(pair[0], "unheard", 0);
		}
		struct pollfd pfd = { .fd = pair[0], .events = POLLIN };
		long begin = now_ms();

		SAY("poll %d\n", poll(&pfd, 1, 10000));
		say_death(pair[0], begin);
		reset(pair[1]);
		close(pair[0]);
	}
	close(listener);
}

static void closed_twice(void)
{
	int pair[2];

	make_pair(pair);
	SAY("close %s", err(close(pair[0])));
	SAY(" %s\n", err(close(pair[0])));
	SAY("recv %s\n", err(recv(pair[0], &(char){ 0 }, 1, 0)));
	SAY("shutdown %s\n", err(shutdown(pair[0], SHUT_RDWR)));
	close(pair[1]);
}

/* A port is free again as soon as the one who did not end first has closed, and the
 * conversation of the other does not keep him from new ones. */
static void many_short_connections(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 16), pair[2], good_cnt = 0;
	char c;

	for (int i = 0; i < 200; i++) {
		int first = i & 1;

		make_pair_of(listener, &name, pair);
		good_cnt += send(pair[0], "x", 1, 0) == 1 &&
			    recv(pair[1], &c, 1, 0) == 1 &&
			    send(pair[1], "y", 1, 0) == 1 &&
			    recv(pair[0], &c, 1, 0) == 1;
		close(pair[first]);
		good_cnt += recv(pair[!first], &c, 1, 0) == 0;
		close(pair[!first]);
	}
	SAY("%d good\n", good_cnt);
	close(listener);
}

/* The number of a connection that the program has closed by a system call of its own is taken
 * again while another goes back. That may be the library, for an fd of its own. */
static void closed_unseen_before_another_goes_back(void)
{
	int pair[2], other[2], fd;

	make_pair(pair);
	make_pair(other);
	say_sent(pair[0], "before", 0);
	/* no lower number is free */
	do
		fd = dup(STDIN_FILENO);
	while (fd < pair[0]);
	close(fd);
	(void)syscall_raw(SYS_close, pair[0], 0, 0, 0, 0, 0);
	SAY("TCP_ULP %s\n", err(setsockopt(other[1], IPPROTO_TCP, TCP_ULP, "none", 4)));
	say_sent(other[0], "to the other", 0);
	receive(other[1], 0);
	close_pair(other);
	fd = dup(STDIN_FILENO);
	SAY("%s number\n", fd == pair[0] ? "the same" : "another");
	receive_to_end(pair[1]);
	close(pair[1]);
}

const struct scenario close_scenarios[] = {
	SCENARIO(the_end_of_a_stream, OURS),
	SCENARIO(sends_to_one_that_has_closed, OURS),
	SCENARIO(half_closed, OURS),
	SCENARIO(both_half_closed, OURS),
	SCENARIO(shut_down_in_each_state, MIXED),
	SCENARIO(data_after_both_are_shut_down, OURS),
	SCENARIO(messages_before_a_reset, OURS),
	SCENARIO(reading_is_shut_down, OURS),
	SCENARIO(shut_down_while_connecting, MIXED),
	SCENARIO(broken_pipe, OURS),
	SCENARIO(closed_under_a_busy_handler, OURS),
	SCENARIO(port_of_a_number_closed_by_a_raw_call, OURS),
	SCENARIO(reset_is_told_once, OURS),
	SCENARIO(reset_behind_data, OURS),
	SCENARIO(closed_with_unread_data, OURS),
	SCENARIO(data_after_a_close, OURS),
	SCENARIO(lingering, OURS),
	SCENARIO(lingering_without_waiting, OURS),
	SCENARIO(shut_down_after_both_ends, OURS),
	SCENARIO(lingering_for_long, OURS),
	SCENARIO(lingering_copies, OURS),
	SCENARIO(number_of_one_that_lingers, OURS),
	SCENARIO(range_that_lingers, OURS),
	SCENARIO(stream_closed_by_a_cancelled_thread, OURS),
	SCENARIO(replaced_under_a_writer, OURS),
	SCENARIO(replaced_under_a_poller, OURS),
	SCENARIO(replaced_while_it_lingers, OURS),
	SCENARIO(closed_behind_much, OURS),
	SCENARIO(user_timeout, MIXED),
	SCENARIO(silent_peer, MIXED),
	SCENARIO(closed_twice, OURS),
	SCENARIO(closed_unseen_before_another_goes_back, MIXED),
	SCENARIO(many_short_connections, OURS),
	SCENARIO_END,
};
