/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: connections that have ended when another process gets them, those and
 * listeners that are sent to it, and servers of several processes. */
#include "config.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"
#include "tests/support/sleeper.h"

/* -- connections that have ended ------------------------------------------------------ */

enum end {
	BY_RESET,
	BY_RESET_BEHIND_DATA,
	BY_RESET_THAT_WAS_TOLD,
	BY_RESET_BEHIND_THE_END,
	BY_BOTH_ENDS,
	BY_BOTH_ENDS_BEHIND_DATA,
	BY_REFUSED_DATA,
	ENDS
};

/* `fd` is over when it returns, and has no peer any more. */
static void end_connection(int fd, int peer, enum end end)
{
	if (end == BY_RESET_BEHIND_DATA || end == BY_BOTH_ENDS_BEHIND_DATA) {
		send_all(peer, "unread", 6);
		await_bytes(fd, 6);
	}
	switch (end) {
	case BY_RESET_BEHIND_THE_END:
		close(peer);
		await(fd, POLLRDHUP);
		/* the peer answers it */
		send_all(fd, "x", 1);
		await(fd, POLLERR);
		break;
	case BY_BOTH_ENDS:
	case BY_BOTH_ENDS_BEHIND_DATA:
		shutdown(peer, SHUT_WR);
		await(fd, POLLRDHUP);
		shutdown(fd, SHUT_WR);
		receive_all(peer, &(char){ 0 }, 1);
		await_closed(fd);
		close(peer);
		break;
	case BY_REFUSED_DATA:
		shutdown(fd, SHUT_RDWR);
		send_all(peer, "x", 1);
		await_closed(fd);
		close(peer);
		break;
	default:
		reset(peer);
		await(fd, POLLERR);
		break;
	}
	if (end == BY_RESET_THAT_WAS_TOLD)
		receive(fd, 0);
}

static void say_what_is_left(const char *who, int fd)
{
	SAY("%s: events %#x\n", who, (unsigned)await(fd, POLLIN | POLLOUT | POLLRDHUP));
	for (int i = 0; i < 3; i++)
		receive(fd, MSG_DONTWAIT);
	SAY("send %s\n", err(send(fd, "x", 1, MSG_NOSIGNAL)));
	say_error(fd);
	say_names(fd, 0, 0);
}

static void fork_behind_the_end(int fd, bool is_parent_first)
{
	int go[2];
	char c;
	pid_t pid;

	if (pipe(go) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) != 0)
			SAY("read: %m\n");
		say_what_is_left("child", fd);
		_exit(0);
	}
	if (is_parent_first)
		say_what_is_left("parent", fd);
	close_pair(go);
	await_child(pid);
	say_what_is_left("parent", fd);
}

/* The error is said once, to whoever asks first. */
static void ended_before_a_fork(void)
{
	int pair[2];

	for (int i = 0; i < 4 * ENDS; i++) {
		int which = i & 1, is_parent_first = i & 2;
		enum end end = (enum end)(i / 4);

		SAY("end %d of %d\n", end, which);
		make_pair(pair);
		end_connection(pair[which], pair[!which], end);
		fork_behind_the_end(pair[which], is_parent_first);
		close(pair[which]);
	}
}

/* It has failed when it returns, and nobody has asked why. A connection lives on at the port
 * where nobody listens any more. */
static int refused(int pair[2])
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), fd = made_nonblocking();

	make_pair_of(listener, &name, pair);
	close(listener);
	SAY("connect %s\n", err(connect_to(fd, &name)));
	await(fd, POLLERR);
	return fd;
}

/* SO_ERROR alone says that a socket which can be written is not connected. */
static void say_why(const char *who, int fd)
{
	SAY("%s: events %#x\n", who, (unsigned)await(fd, POLLIN | POLLOUT | POLLRDHUP));
	for (int i = 0; i < 2; i++)
		say_error(fd);
	for (int i = 0; i < 2; i++)
		receive(fd, MSG_DONTWAIT);
	SAY("events %#x\n", (unsigned)await(fd, POLLIN | POLLOUT | POLLRDHUP));
}

static void ask_in_a_child(int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		say_why("child", fd);
		_exit(0);
	}
	await_child(pid);
	say_why("parent", fd);
}

/* The child outlives the process that has connected, as a daemon does. */
static void ask_in_a_daemon(void)
{
	int go[2], gone[2];
	pid_t pid;
	char c;

	if (pipe(go) != 0 || pipe(gone) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid == 0) {
		int pair[2], fd = refused(pair);

		if (fork() != 0)
			_exit(0);
		close(go[1]);
		if (read(go[0], &c, 1) == 0)
			say_why("daemon", fd);
		_exit(0);
	}
	close(gone[1]);
	await_child(pid);
	close_pair(go);
	/* until nobody has the other end */
	if (read(gone[0], &c, 1) != 0)
		SAY("read: %m\n");
	close(gone[0]);
}

static void refused_before_a_fork(void)
{
	int pair[2];

	for (int is_told = 0; is_told < 2; is_told++) {
		int fd = refused(pair);

		if (is_told)
			say_error(fd);
		ask_in_a_child(fd);
		close(fd);
		close_pair(pair);
	}
	ask_in_a_daemon();
}

/* It is the owner who becomes another program, and has no device before. */
static void become_another_program(int way)
{
	int pair[2], which = way & 1;
	char number[16];

	make_pair(pair);
	end_connection(pair[which], pair[!which], (enum end)(way / 2));
	snprintf(number, sizeof(number), "%d", pair[which]);
	setenv("TCP_WHAT_IS_LEFT", number, 1);
	execl("/proc/self/exe", "tcp", "ended_before_an_exec", (char *)NULL);
	_exit(1);
}

static void ended_before_an_exec(void)
{
	const char *left = getenv("TCP_WHAT_IS_LEFT"), *way = getenv("TCP_ENDS_BY");
	char number[16];

	if (left) {
		say_what_is_left("program", atoi(left));
		_exit(0);
	}
	if (way)
		become_another_program(atoi(way));
	for (int i = 0; i < 2 * ENDS; i++) {
		pid_t pid;

		SAY("end %d of %d\n", i / 2, i & 1);
		pid = fork();
		if (pid == 0) {
			snprintf(number, sizeof(number), "%d", i);
			setenv("TCP_ENDS_BY", number, 1);
			execl("/proc/self/exe", "tcp", __func__, (char *)NULL);
			_exit(1);
		}
		await_child(pid);
	}
}

/* -- handed on ---------------------------------------------------------------------- */

static void send_fd(int to, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)"x", 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(to, &msg, 0) != 1)
		SAY("sendmsg: %m\n");
}

static int receive_fd(int from)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(from, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void connection_is_handed_on(void)
{
	int pair[2], way[2], fd;
	pid_t pid;

	socketpair(AF_UNIX, SOCK_STREAM, 0, way);
	pid = fork();
	if (pid == 0) {
		fd = receive_fd(way[1]);
		receive(fd, 0);
		send_all(fd, "from the new owner", 18);
		receive_to_end(fd);
		_exit(0);
	}
	make_pair(pair);
	say_sent(pair[0], "waiting", 0);
	await_bytes(pair[1], 7);
	send_fd(way[0], pair[1]);
	close(pair[1]);
	await_bytes(pair[0], 18);
	receive(pair[0], 0);
	send_all(pair[0], "more", 4);
	shutdown(pair[0], SHUT_WR);
	receive(pair[0], 0);
	await_child(pid);
	close(pair[0]);
	close_pair(way);
}

/* The receiver finds what Linux has left of it. */
static void ended_before_it_is_handed_on(void)
{
	int pair[2], way[2];
	pid_t pid;

	for (int i = 0; i < 2 * ENDS; i++) {
		int which = i & 1;

		SAY("end %d of %d\n", i / 2, which);
		socketpair(AF_UNIX, SOCK_STREAM, 0, way);
		pid = fork();
		if (pid == 0) {
			say_what_is_left("receiver", receive_fd(way[1]));
			_exit(0);
		}
		make_pair(pair);
		end_connection(pair[which], pair[!which], (enum end)(i / 2));
		send_fd(way[0], pair[which]);
		close(pair[which]);
		await_child(pid);
		close_pair(way);
	}
}

/* To itself: two names of one connection. */
static void handed_to_itself(void)
{
	int pair[2], way[2], copy;

	socketpair(AF_UNIX, SOCK_STREAM, 0, way);
	make_pair(pair);
	send_fd(way[0], pair[1]);
	say_sent(pair[0], "one", 0);
	receive(pair[1], 0);
	copy = receive_fd(way[1]);
	say_sent(pair[0], "two", 0);
	receive(copy, 0);
	close(pair[1]);
	say_sent(pair[0], "three", 0);
	receive(copy, 0);
	close(copy);
	receive(pair[0], 0);
	close(pair[0]);
	close_pair(way);
}

static void listener_is_handed_on(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 8), way[2], fds[2];
	pid_t pid;

	socketpair(AF_UNIX, SOCK_STREAM, 0, way);
	pid = fork();
	if (pid == 0) {
		close(listener);
		listener = receive_fd(way[1]);
		for (int i = 0; i < 2; i++) {
			int child = accept(listener, NULL, NULL);

			await_bytes(child, 5);
			receive(child, 0);
			close(child);
		}
		_exit(0);
	}
	/* one of them is in the queue before */
	fds[0] = connected(&name);
	send(fds[0], "early", 5, 0);
	send_fd(way[0], listener);
	close(listener);
	receive(fds[0], 0);
	fds[1] = connected(&name);
	send(fds[1], "later", 5, 0);
	await_child(pid);
	receive(fds[1], 0);
	close_pair(fds);
	close_pair(way);
}

/* -- workers ------------------------------------------------------------------------ */

static void work(int listener, int number)
{
	char buf[32], answer[64];
	ssize_t n;
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		n = recv(fd, buf, sizeof(buf) - 1, 0);
		buf[n > 0 ? n : 0] = '\0';
		if (strcmp(buf, "end") == 0)
			_exit(number);
		snprintf(answer, sizeof(answer), "%s answered", buf);
		send_all(fd, answer, strlen(answer));
		close(fd);
	}
	_exit(99);
}

static void inherited_listener(void)
{
	enum { WORKERS = 3, CLIENTS = 30 };
	struct sockaddr_in name;
	int listener = listening(&name, 64), good_cnt = 0, status_sum = 0;
	pid_t pids[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			work(listener, 10 + i);
	}
	for (int i = 0; i < CLIENTS; i++) {
		char out[16], in[64] = "", expected[64];
		int fd = connected(&name);

		snprintf(out, sizeof(out), "%d", i);
		snprintf(expected, sizeof(expected), "%d answered", i);
		send_all(fd, out, strlen(out));
		receive_all(fd, in, sizeof(in) - 1);
		good_cnt += strcmp(in, expected) == 0;
		close(fd);
	}
	for (int i = 0; i < WORKERS; i++) {
		int fd = connected(&name);

		send_all(fd, "end", 3);
		receive_all(fd, &(char){ 0 }, 1);
		close(fd);
	}
	for (int i = 0; i < WORKERS; i++) {
		int status = 0;

		waitpid(pids[i], &status, 0);
		status_sum += WEXITSTATUS(status);
	}
	SAY("%d good, workers' sum %d\n", good_cnt, status_sum);
	close(listener);
}

/* The parent accepts too, and goes on when its child has gone. */
static void listener_of_two(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 8), fd, child;
	pid_t pid = fork();

	if (pid == 0)
		work(listener, 0);
	fd = connected(&name);
	send_all(fd, "end", 3);
	receive_to_end(fd);
	close(fd);
	await_child(pid);
	fd = connected(&name);
	child = accept(listener, NULL, NULL);
	say_sent(fd, "to the parent", 0);
	receive(child, 0);
	close(fd);
	close(child);
	close(listener);
}

static void serve_in_a_child(int fd, int listener)
{
	char buf[8] = "";

	close(listener);
	receive_all(fd, buf, 4);
	send_all(fd, buf, 4);
	close(fd);
	_exit(0);
}

/* A server that forks for each connection. */
static void child_for_each_connection(void)
{
	enum { CLIENTS = 20 };
	struct sockaddr_in name;
	int listener = listening(&name, 8), good = 0;

	for (int i = 0; i < CLIENTS; i++) {
		char buf[8] = "";
		int pair[2];
		pid_t pid;

		make_pair_of(listener, &name, pair);
		pid = fork();
		if (pid == 0) {
			close(pair[0]);
			serve_in_a_child(pair[1], listener);
		}
		close(pair[1]);
		send_all(pair[0], "ping", 4);
		good += receive_all(pair[0], buf, 5) == 4 &&
			memcmp(buf, "ping", 4) == 0;
		waitpid(pid, NULL, 0);
		close(pair[0]);
	}
	SAY("%d good\n", good);
	close(listener);
}

/* -- threads beside a child ------------------------------------------------------------- */

/* It is ours when a child gets it. Without a wire, what is for the kernel cannot come by the rule
 * of a connection that goes on, so that its last words are waited for. */
static int listening_with_us(struct sockaddr_in *name)
{
	int listener = listening(name, 8), pair[2];

	make_pair_of(listener, name, pair);
	shutdown(pair[0], SHUT_WR);
	/* the accepted one shall not be in TIME_WAIT, as where both end at once */
	await(pair[1], POLLIN);
	shutdown(pair[1], SHUT_WR);
	await_closed(pair[0]);
	await_closed(pair[1]);
	close_pair(pair);
	return listener;
}

/* A child that has what the parent has, and does nothing until its pipe ends. */
static pid_t child_that_has_all(int pipes[2])
{
	pid_t pid;
	char c;

	if (pipe(pipes) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid != 0)
		return pid;
	close(pipes[1]);
	if (read(pipes[0], &c, 1) != 0)
		SAY("read: %m\n");
	_exit(0);
}

struct crew {
	int listener;
	_Atomic int left, accepted_cnt;
	_Atomic pid_t tids[3];
	_Atomic int tid_cnt;
};

/* Each accepts one, and one of them one more. */
static void *accept_a_share(void *arg)
{
	struct crew *crew = arg;
	int fd;

	crew->tids[crew->tid_cnt++] = gettid();
	do {
		fd = accept(crew->listener, NULL, NULL);
		if (fd < 0)
			break;
		crew->accepted_cnt++;
		send_all(fd, "y", 1);
		close(fd);
	} while (crew->left-- > 0);
	return NULL;
}

/* Who has waited since a child had the listener, too, still hears of what comes when one of
 * them has it with us again. */
static void crew_of_a_lent_listener(void)
{
	struct sockaddr_in name;
	struct crew crew = { .left = 1 };
	pthread_t threads[3];
	int pipes[2];
	pid_t pid;

	crew.listener = listening_with_us(&name);
	pid = child_that_has_all(pipes);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, accept_a_share, &crew);
	while (crew.tid_cnt < 3)
		sleep_ms(1);
	for (int i = 0; i < 3; i++)
		sleeper_await(crew.tids[i]);
	close_pair(pipes);
	await_child(pid);
	for (int i = 0; i < 4; i++) {
		int fd = connected(&name);

		SAY("client %d hears %#x\n", i, (unsigned)await(fd, POLLIN));
		close(fd);
	}
	SAY("accepted %d\n", crew.accepted_cnt);
	if (crew.accepted_cnt < 4)
		_exit(1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	close(crew.listener);
}

static void *poll_a_listener(void *arg)
{
	struct crew *crew = arg;
	struct pollfd pfd = { .fd = crew->listener, .events = POLLIN };

	crew->tids[crew->tid_cnt++] = gettid();
	SAY("poll %d\n", poll(&pfd, 1, 5000));
	return NULL;
}

/* The same with poll(). */
static void poll_of_a_lent_listener(void)
{
	struct sockaddr_in name;
	struct crew crew = { 0 };
	pthread_t thread;
	int pipes[2], client, fd;
	pid_t pid;

	crew.listener = listening_with_us(&name);
	set_blocking(crew.listener, false);
	pid = child_that_has_all(pipes);
	pthread_create(&thread, NULL, poll_a_listener, &crew);
	while (crew.tid_cnt < 1)
		sleep_ms(1);
	sleeper_await(crew.tids[0]);
	close_pair(pipes);
	await_child(pid);
	/* our thread hears of its end */
	sleep_ms(100);
	SAY("accept %s\n", err(accept(crew.listener, NULL, NULL)));
	client = connected(&name);
	pthread_join(thread, NULL);
	fd = accept(crew.listener, NULL, NULL);
	SAY("accept %s\n", err(fd));
	close(client);
	close(fd);
	close(crew.listener);
}

/* Threads of the parent and a child accept from one listener, in turn or at once: each
 * connection is accepted once, and none of them is left over. */
static void *accept_until_told(void *arg)
{
	struct crew *crew = arg;
	char c;
	int fd;

	while ((fd = accept(crew->listener, NULL, NULL)) >= 0) {
		ssize_t n = recv(fd, &c, 1, 0);

		if (n == 1 && c == 'e') {
			close(fd);
			break;
		}
		send_all(fd, "y", 1);
		close(fd);
	}
	return NULL;
}

/* Without a wire, who calls just before the rule of the last connection goes has chosen a way by
 * which nobody answers. Who calls again after that has another one. */
static int connected_at_last(const struct sockaddr_in *name)
{
	for (int tries = 0; tries < 4; tries++) {
		int fd = made();

		if (connect_to(fd, name) == 0)
			return fd;
		if (errno != ETIMEDOUT)
			SAY("connect: %m\n");
		close(fd);
	}
	return connected(name);
}

static int asked(const struct sockaddr_in *name, const char *what)
{
	int fd = connected_at_last(name), events;

	send_all(fd, what, 1);
	events = await(fd, POLLIN);
	close(fd);
	return events;
}

static void parent_and_child_accept(void)
{
	enum { THREADS = 2, CNT = 200 };
	struct sockaddr_in name;
	struct crew crew = { 0 };
	pthread_t threads[THREADS];
	int heard = 0;
	pid_t pid;

	crew.listener = listening_with_us(&name);
	pid = fork();
	if (pid == 0) {
		accept_until_told(&crew);
		_exit(0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, accept_until_told, &crew);
	for (int i = 0; i < CNT; i++)
		heard += asked(&name, "x") & POLLIN;
	SAY("heard %d of %d\n", heard, CNT);
	for (int i = 0; i < THREADS + 1; i++)
		asked(&name, "e");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	await_child(pid);
	close(crew.listener);
}

/* -- handlers that have interrupted malloc -------------------------------------------------- */

static void accepted_in_malloc(void)
{
	struct sockaddr_in name;
	int listener, client, other, fd;

	listener = listening_with_us(&name);
	set_option(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(listener, IPPROTO_TCP, TCP_SAVE_SYN, 1);
	client = connected(&name);
	other = connected(&name);
	await(listener, POLLIN);
	set_in_malloc(true);
	fd = accept(listener, NULL, NULL);
	close(fd);
	fd = accept(listener, NULL, NULL);
	set_in_malloc(false);
	close(listener);
	SAY("accepted %d\n", fd > listener);
	close(fd);
	close(client);
	close(other);
}

/* One that is open with bytes on both sides, and one that nobody has accepted. */
static void end_in_malloc(int way)
{
	struct sockaddr_in name;
	int listener = listening_with_us(&name), pair[2];

	if (way == 0) {
		make_pair_of(listener, &name, pair);
		send_all(pair[0], "unread", 6);
		await_bytes(pair[1], 6);
		shutdown(pair[0], SHUT_WR);
	} else {
		int client = connected(&name);

		send_all(client, "unread", 6);
		await(listener, POLLIN);
	}
	set_in_malloc(true);
	_exit(0);
}

static void ended_in_malloc(void)
{
	for (int way = 0; way < 2; way++) {
		pid_t pid = fork();

		if (pid == 0)
			end_in_malloc(way);
		await_child(pid);
	}
}

const struct scenario worker_scenarios[] = {
	SCENARIO(ended_before_a_fork, MIXED),
	SCENARIO(ended_before_an_exec, MIXED),
	SCENARIO(refused_before_a_fork, MIXED),
	SCENARIO(child_for_each_connection, MIXED),
	SCENARIO(connection_is_handed_on, MIXED),
	SCENARIO(ended_before_it_is_handed_on, MIXED),
	SCENARIO(handed_to_itself, MIXED),
	SCENARIO(listener_is_handed_on, MIXED),
	SCENARIO(inherited_listener, MIXED),
	SCENARIO(listener_of_two, MIXED),
	SCENARIO(crew_of_a_lent_listener, MIXED),
	SCENARIO(poll_of_a_lent_listener, MIXED),
	SCENARIO(parent_and_child_accept, MIXED),
	SCENARIO(accepted_in_malloc, MIXED),
	SCENARIO(ended_in_malloc, MIXED),
	SCENARIO_END,
};
