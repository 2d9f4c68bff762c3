/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: connections and listeners that several processes have. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

/* One of the two prints at a time: who sends to the other, sends in silence. */

/* -- fork --------------------------------------------------------------------------- */

/* Both ends are this program's. */
static void say_alive(const char *what, const int pair[2])
{
	char buf[16] = "";

	for (int i = 0; i < 2; i++) {
		send(pair[i], "alive", 5, 0);
		SAY("%s: %zd ", what, recv(pair[!i], buf, sizeof(buf), 0));
	}
	SAY("%s\n", buf);
}

/* Without rights no connection becomes the kernel's, so they do before. */
static void rights_go(void)
{
	static char big[100000], back[100000];
	struct sockaddr_in name;
	int pair[2], later[2], again[2], closed[2];
	int listener = listening(&name, 8);

	make_pair_of(listener, &name, pair);
	make_pair_of(listener, &name, closed);
	say_alive("before", pair);
	set_blocking(pair[0], false);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 31);
	SAY("sent %d\n", send(pair[0], big, 15000, 0) == 15000);
	send(closed[0], big, 15000, 0);
	close(closed[0]);
	SAY("seteuid %s\n", err(seteuid(65534)));
	SAY("came %d", recv(pair[1], back, 15000, MSG_WAITALL) == 15000);
	SAY(" %d\n", memcmp(big, back, 15000));
	SAY("of the closed one %d",
	    recv(closed[1], back, 15001, MSG_WAITALL) == 15000);
	SAY(" %d\n", memcmp(big, back, 15000));
	close(closed[1]);
	set_blocking(pair[0], true);
	make_pair_of(listener, &name, later);
	say_alive("without rights", pair);
	say_alive("without rights", later);
	SAY("seteuid %s\n", err(seteuid(0)));
	make_pair_of(listener, &name, again);
	say_alive("with rights again", again);
	SAY("seteuid %s\n", err(seteuid(65534)));
	if (fork() == 0) {
		say_alive("child", pair);
		say_alive("child", later);
		say_alive("child", again);
		SAY("seteuid %s\n", err(seteuid(0)));
		_exit(0);
	}
	await_child(-1);
	SAY("seteuid %s\n", err(seteuid(0)));
	close(listener);
	close_pair(pair);
	close_pair(later);
	close_pair(again);
}

/* What it was before. */
static rlim_t allow_fds(rlim_t cnt)
{
	struct rlimit limit;
	rlim_t before;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		SAY("getrlimit: %m\n");
	before = limit.rlim_cur;
	limit.rlim_cur = cnt;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		SAY("setrlimit: %m\n");
	return before;
}

/* More descriptors are under way through local sockets than Linux lets a process without
 * rights send. */
static rlim_t fill_with_flights(int way[2])
{
	enum { EACH = 100 };
	char room[CMSG_SPACE(EACH * sizeof(int))] = "";
	struct iovec iov = { (char[]){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fds[EACH];
	rlim_t before;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, way) != 0)
		SAY("socketpair: %m\n");
	for (int i = 0; i < EACH; i++)
		fds[i] = STDOUT_FILENO;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	SAY("first %s\n", err((int)sendmsg(way[1], &msg, 0)));
	before = allow_fds(EACH / 2);
	SAY("more %s\n", err((int)sendmsg(way[1], &msg, 0)));
	return before;
}

/* What the helper that keeps the rights could not be told then it is told later. */
static void rights_go_beside_flights(void)
{
	int pair[2], way[2];
	rlim_t before;
	char c;
	pid_t pid;

	make_pair(pair);
	send_all(pair[0], "hello", 5);
	await_bytes(pair[1], 5);
	SAY("seteuid %s\n", err(seteuid(65534)));
	before = fill_with_flights(way);
	pid = fork();
	if (pid == 0) {
		(void)!recv(pair[1], &c, 1, MSG_PEEK | MSG_DONTWAIT);
		_exit(0);
	}
	await_child(pid);
	/* they end; other programs of the user may have some, too */
	close_pair(way);
	allow_fds(before);
	pid = fork();
	if (pid == 0) {
		receive(pair[1], 0);
		send_all(pair[1], "the child", 9);
		_exit(0);
	}
	await_child(pid);
	receive(pair[0], 0);
	SAY("seteuid %s\n", err(seteuid(0)));
	close_pair(pair);
}

static void child_goes_on(void)
{
	int pair[2];
	pid_t pid;

	make_pair(pair);
	say_sent(pair[0], "before the fork", 0);
	await_bytes(pair[1], 15);
	pid = fork();
	if (pid == 0) {
		receive(pair[1], 0);
		send_all(pair[1], "the child", 9);
		receive_to_end(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	await_bytes(pair[0], 9);
	receive(pair[0], 0);
	send_all(pair[0], "heard", 5);
	shutdown(pair[0], SHUT_WR);
	await_child(pid);
	receive(pair[0], 0);
	close(pair[0]);
}

static void parent_goes_on(void)
{
	int pair[2];
	pid_t pid;

	make_pair(pair);
	pid = fork();
	if (pid == 0)
		_exit(0);
	await_child(pid);
	say_sent(pair[0], "still there", 0);
	receive(pair[1], 0);
	say_sent(pair[1], "both ways", 0);
	receive(pair[0], 0);
	close(pair[0]);
	receive(pair[1], 0);
	close(pair[1]);
}

/* By turns, on the same connection. It ends when both have closed it. */
static void both_go_on(void)
{
	int pair[2], turns[2];
	char c;
	pid_t pid;

	make_pair(pair);
	if (pipe(turns) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid == 0) {
		close(turns[1]);
		for (int i = 0; i < 3; i++) {
			if (read(turns[0], &c, 1) != 1)
				break;
			send_all(pair[0], "child", 5);
		}
		close(pair[0]);
		_exit(0);
	}
	for (int i = 0; i < 3; i++) {
		say_sent(pair[0], "parent", 0);
		receive(pair[1], 0);
		if (write(turns[1], "x", 1) != 1)
			SAY("write: %m\n");
		await_bytes(pair[1], 5);
		receive(pair[1], 0);
	}
	await_child(pid);
	say_sent(pair[0], "not yet", 0);
	receive(pair[1], 0);
	close(pair[0]);
	receive(pair[1], 0);
	close(pair[1]);
	close_pair(turns);
}

static void child_connects(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), pair[2], child;
	pid_t pid;

	/* the library is at work before the fork, too */
	make_pair(pair);
	pid = fork();
	if (pid == 0) {
		int fd = connected(&name);

		send_all(fd, "from the child", 14);
		receive_to_end(fd);
		_exit(0);
	}
	child = accept(listener, NULL, NULL);
	await_bytes(child, 14);
	receive(child, 0);
	send_all(child, "to the child", 12);
	close(child);
	await_child(pid);
	close_pair(pair);
	close(listener);
}

/* A child that never ends keeps the connection open, a dead one does not. */
static void killed_child(void)
{
	struct pollfd pfd = { .events = POLLIN };
	int pair[2];
	pid_t pid;

	make_pair(pair);
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(pair[0]);
	pfd.fd = pair[1];
	SAY("poll %d\n", poll(&pfd, 1, 50));
	kill(pid, SIGKILL);
	await_child(pid);
	receive(pair[1], 0);
	close(pair[1]);
}

/* -- what a child has and does not use ------------------------------------------------- */

/* A child that waits at the other end of a pipe, which it tells of its life. */
static pid_t child_that_waits(int pipes[2], void (*first)(const int pair[2]),
			      const int pair[2])
{
	char c = 0;
	pid_t pid;

	if (pipe(pipes) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid)
		return pid;
	close(pipes[1]);
	if (first)
		first(pair);
	_exit(read(pipes[0], &c, 1) ? 1 : 0);
}

static void end_child(pid_t pid, const int pipes[2])
{
	close(pipes[1]);
	await_child(pid);
	close(pipes[0]);
}

/* There and back so often. */
static void say_exchanged(const char *when, const int pair[2], int times)
{
	char buf[32] = "";
	int good = 0;

	for (int i = 0; i < times; i++) {
		char text[16];
		int len = snprintf(text, sizeof(text), "%d", i);

		for (int end = 0; end < 2; end++) {
			memset(buf, 0, sizeof(buf));
			send_all(pair[end], text, (size_t)len);
			receive_all(pair[!end], buf, (size_t)len);
			good += strcmp(buf, text) == 0;
		}
	}
	SAY("%s: %d\n", when, good);
}

static void idle_children(void)
{
	int pair[2], pipes[3][2];
	pid_t pids[3];

	make_pair(pair);
	for (int i = 0; i < 3; i++) {
		pids[i] = child_that_waits(pipes[i], NULL, NULL);
		say_exchanged("beside a child", pair, 100);
	}
	/* later ones have the pipes of earlier ones, too */
	for (int i = 3; i-- > 0;)
		end_child(pids[i], pipes[i]);
	say_exchanged("alone", pair, 100);
	close_pair(pair);
}

static void child_closes_its_copies(void)
{
	int pair[2], pipes[2];
	pid_t pid;

	make_pair(pair);
	pid = child_that_waits(pipes, close_pair, pair);
	say_exchanged("beside a child", pair, 200);
	close(pair[0]);
	receive(pair[1], 0);
	close(pair[1]);
	end_child(pid, pipes);
}

/* The connection ends when the last process has closed it. */
static void parent_closes_first(void)
{
	struct pollfd pfd = { .events = POLLIN };
	int pair[2], pipes[2];
	pid_t pid;

	make_pair(pair);
	pid = child_that_waits(pipes, NULL, NULL);
	say_sent(pair[0], "not the last word", 0);
	close(pair[0]);
	receive(pair[1], 0);
	pfd.fd = pair[1];
	SAY("poll %d\n", poll(&pfd, 1, 50));
	end_child(pid, pipes);
	receive(pair[1], 0);
	close(pair[1]);
}

static void grandchild_goes_on(void)
{
	int pair[2], via[2];
	char c;
	pid_t pid;

	make_pair(pair);
	if (pipe(via) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			receive(pair[1], 0);
			send_all(pair[1], "the grandchild", 14);
			receive_to_end(pair[1]);
		}
		_exit(0);
	}
	await_child(pid);
	close(via[1]);
	close(pair[1]);
	send_all(pair[0], "hello", 5);
	await_bytes(pair[0], 14);
	receive(pair[0], 0);
	shutdown(pair[0], SHUT_WR);
	/* it has ended */
	if (read(via[0], &c, 1) != 0)
		SAY("read: %m\n");
	receive(pair[0], 0);
	close(pair[0]);
	close(via[0]);
}

/* The listener is the kernel's while a child has it, and ours again afterwards. A connection
 * that it has accepted before stays ours, and what comes for the kernel comes by its rule;
 * without a wire that cannot be. */
static void listener_after_a_child(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 8), pair[2], older[2], pipes[2];
	pid_t pid;

	kernel_begins();
	make_pair_of(listener, &name, older);
	say_exchanged("before", older, 1);
	if (!over_wire()) {
		close_pair(older);
		/* its last words have been said, and our thread has tidied up */
		sleep_ms(500);
	}
	pid = child_that_waits(pipes, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		make_pair_of(listener, &name, pair);
		say_exchanged("beside a child", pair, 1);
		close_pair(pair);
	}
	end_child(pid, pipes);
	/* our thread hears of its end */
	sleep_ms(100);
	make_pair_of(listener, &name, pair);
	say_exchanged("the next", pair, 1);
	close_pair(pair);
	kernel_ends();
	if (over_wire()) {
		say_exchanged("older", older, 1);
		close_pair(older);
	}
	for (int i = 0; i < 3; i++) {
		make_pair_of(listener, &name, pair);
		say_exchanged("alone", pair, 50);
		close_pair(pair);
	}
	close(listener);
}

/* -- full tables --------------------------------------------------------------------- */

/* Each number below that is taken. Returns what it was before. */
static rlim_t allow_no_more_fds(void)
{
	return allow_fds(3);
}

static void go_on_in_child(const int pair[2])
{
	receive(pair[1], 0);
	send_all(pair[1], "the child", 9);
	receive_to_end(pair[1]);
}

static void make_pair_with_hello(int pair[2])
{
	make_pair(pair);
	send_all(pair[0], "hello", 5);
	await_bytes(pair[1], 5);
}

static void child_has_no_more_fds(void)
{
	int pair[2];
	pid_t pid;

	make_pair_with_hello(pair);
	pid = fork();
	if (pid == 0) {
		allow_no_more_fds();
		go_on_in_child(pair);
		_exit(0);
	}
	await_bytes(pair[0], 9);
	receive(pair[0], 0);
	shutdown(pair[0], SHUT_WR);
	await_child(pid);
	close_pair(pair);
}

static void parent_has_no_more_fds(void)
{
	int pair[2], go[2];
	rlim_t before;
	char c = 0;
	pid_t pid;

	make_pair_with_hello(pair);
	if (pipe(go) != 0)
		SAY("pipe: %m\n");
	pid = fork();
	if (pid == 0) {
		if (read(go[0], &c, 1) != 1)
			SAY("read: %m\n");
		go_on_in_child(pair);
		_exit(0);
	}
	before = allow_no_more_fds();
	if (write(go[1], &c, 1) != 1)
		SAY("write: %m\n");
	await_bytes(pair[0], 9);
	receive(pair[0], 0);
	shutdown(pair[0], SHUT_WR);
	await_child(pid);
	close_pair(pair);
	close_pair(go);
	allow_fds(before);
}

static void child_forks_with_a_full_table(void)
{
	int pair[2];
	pid_t pid;

	make_pair_with_hello(pair);
	pid = fork();
	if (pid == 0) {
		allow_no_more_fds();
		pid = fork();
		if (pid == 0) {
			go_on_in_child(pair);
			_exit(0);
		}
		await_child(pid);
		_exit(0);
	}
	await_bytes(pair[0], 9);
	receive(pair[0], 0);
	shutdown(pair[0], SHUT_WR);
	await_child(pid);
	close_pair(pair);
}

/* -- threads beside forks -- */

enum { STREAM = 8 << 20 };

struct stream {
	int fd;
	unsigned sum;
	size_t len;
};

static void *sends_a_stream(void *arg)
{
	struct stream *s = arg;
	static char buf[30000];

	while (s->len < STREAM) {
		fill(buf, sizeof(buf), (unsigned)s->len);
		s->sum = s->sum * 31 + sum(buf, sizeof(buf));
		if (!send_all(s->fd, buf, sizeof(buf)))
			break;
		s->len += sizeof(buf);
	}
	shutdown(s->fd, SHUT_WR);
	return NULL;
}

static void *receives_a_stream(void *arg)
{
	struct stream *s = arg;
	static char buf[30000];
	size_t n;

	while ((n = receive_all(s->fd, buf, sizeof(buf)))) {
		s->sum = s->sum * 31 + sum(buf, n);
		s->len += n;
	}
	return NULL;
}

/* Children that do nothing, and at last one that uses the connection. */
static void forks_beside_a_stream(void)
{
	pthread_t threads[2];
	struct stream from = { 0 }, to = { 0 };
	int pair[2];
	pid_t pid;

	make_pair(pair);
	from.fd = pair[0];
	to.fd = pair[1];
	pthread_create(&threads[0], NULL, sends_a_stream, &from);
	pthread_create(&threads[1], NULL, receives_a_stream, &to);
	for (int i = 0; i < 8; i++) {
		pid = fork();
		if (pid == 0) {
			if (i == 7)
				(void)!send(pair[1], "child", 5, 0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		sleep_ms(1);
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	SAY("all: %d, as it was: %d\n", from.len == to.len && to.len >= STREAM,
	    from.sum == to.sum);
	receive(pair[0], 0);
	close_pair(pair);
}

static void *forks_often(void *arg)
{
	const int *pair = arg;
	intptr_t good = 0;

	for (int i = 0; i < 10; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(i == 9 ? get_option(pair[0], SOL_SOCKET, SO_TYPE) : 1);
		waitpid(pid, &status, 0);
		good += WIFEXITED(status) && WEXITSTATUS(status) == 1;
	}
	return (void *)good;
}

/* Each of them has a channel of its own. */
static void threads_fork_at_once(void)
{
	pthread_t threads[4];
	intptr_t good = 0;
	int pair[2];

	make_pair(pair);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, forks_often, pair);
	for (int i = 0; i < 4; i++) {
		void *result;

		pthread_join(threads[i], &result);
		good += (intptr_t)result;
	}
	SAY("%d children were right\n", (int)good);
	say_exchanged("afterwards", pair, 10);
	close_pair(pair);
}

/* What another process does to the owner of a connection. Under the library a killed one
 * takes it along. */
static void owner_is_killed(void)
{
	int via[2];
	char c = 0;
	pid_t owner = -1;

	if (pipe(via) != 0)
		SAY("pipe: %m\n");
	owner = fork();
	if (owner == 0) {
		int pair[2];

		make_pair(pair);
		if (fork() == 0) {
			char buf[8];
			ssize_t n;

			while (getppid() == owner)
				sleep_ms(1);
			n = recv(pair[0], buf, sizeof(buf), MSG_DONTWAIT);
			SAY("told: %d, of permission: %d\n", n < 0,
			    n < 0 && errno == EPERM);
			close_pair(pair);
			_exit(0);
		}
		sleep_ms(20);
		kill(getpid(), SIGKILL);
	}
	close(via[1]);
	/* its child has said what it has to say */
	if (read(via[0], &c, 1) != 0)
		SAY("read: %m\n");
	await_child(owner);
	close(via[0]);
}

/* Programs that inherit nothing. */
static void programs_without_a_connection(void)
{
	char *args[] = { "true", NULL };
	struct sockaddr_in name;
	int listener = listening(&name, 4), pair[2];
	char line[16] = "";
	FILE *file;
	pid_t pid;

	fcntl(listener, F_SETFD, FD_CLOEXEC);
	make_pair_of(listener, &name, pair);
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	fcntl(pair[1], F_SETFD, FD_CLOEXEC);
	SAY("system %d\n", system("exit 5") >> 8);
	say_exchanged("after system", pair, 50);
	file = popen("echo said", "r");
	SAY("popen %s", fgets(line, sizeof(line), file));
	pclose(file);
	say_exchanged("after popen", pair, 50);
	SAY("spawn %d\n", posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ));
	await_child(pid);
	say_exchanged("after posix_spawn", pair, 50);
	pid = vfork();
	if (pid == 0) {
		execv("/bin/true", args);
		_exit(127);
	}
	await_child(pid);
	say_exchanged("after vfork", pair, 50);
	close_pair(pair);
	close(listener);
}

/* -- sets of epoll -- */

static void say_event(const char *where, int set)
{
	struct epoll_event event = { 0 };
	int n = epoll_wait(set, &event, 1, 3000);

	SAY("%s: %d, %u %#x\n", where, n, event.data.u32, event.events);
}

static void set_of_connections_is_inherited(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	int pair[2], pipes[2], set = epoll_create1(0);
	char c = 0;
	pid_t pid;

	make_pair(pair);
	if (pipe(pipes) != 0)
		SAY("pipe: %m\n");
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	send_all(pair[0], "first", 5);
	say_event("parent", set);
	receive(pair[1], 0);
	pid = fork();
	if (pid == 0) {
		say_event("child", set);
		receive(pair[1], 0);
		event.events = EPOLLOUT;
		SAY("modify %s\n", err(epoll_ctl(set, EPOLL_CTL_MOD, pair[1], &event)));
		say_event("child", set);
		SAY("delete %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
		SAY("again %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, pair[1], NULL)));
		if (write(pipes[1], &c, 1) != 1)
			SAY("write: %m\n");
		_exit(0);
	}
	send_all(pair[0], "second", 6);
	if (read(pipes[0], &c, 1) != 1)
		SAY("read: %m\n");
	await_child(pid);
	send_all(pair[0], "third", 5);
	await_bytes(pair[1], 5);
	SAY("parent: %d\n", epoll_wait(set, &event, 1, 0));
	event = (struct epoll_event){ .events = EPOLLIN, .data.u32 = 8 };
	SAY("add %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event)));
	say_event("parent", set);
	close_pair(pair);
	close_pair(pipes);
	close(set);
}

/* What only this end knows of: no segment says it. */
static void shut_for_reading_in_a_child(void)
{
	static const int hows[] = { SHUT_RD, SHUT_RDWR };

	for (size_t i = 0; i < ARRAY_LEN(hows); i++) {
		struct pollfd pfd = { .events = POLLIN | POLLOUT | POLLRDHUP };
		int pair[2];
		pid_t pid;

		make_pair(pair);
		SAY("shutdown %s\n", err(shutdown(pair[1], hows[i])));
		pfd.fd = pair[1];
		pid = fork();
		if (pid == 0) {
			/* the first call has it go back */
			receive(pair[1], MSG_DONTWAIT);
			SAY("child: poll %d", poll(&pfd, 1, 0));
			SAY(" %#x\n", (unsigned)pfd.revents);
			_exit(0);
		}
		await_child(pid);
		receive(pair[1], MSG_DONTWAIT);
		close_pair(pair);
	}
}

/* A connection, and a socket that is none yet. */
static void leave_a_set_to_a_child(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	struct epoll_event none = { .events = EPOLLHUP, .data.u32 = 8 };
	int pair[2], set = epoll_create1(0), fresh = made();
	pid_t parent = getpid();

	make_pair(pair);
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	send_all(pair[0], "first", 5);
	say_event("parent", set);
	receive(pair[1], 0);
	epoll_ctl(set, EPOLL_CTL_ADD, fresh, &none);
	if (fork())
		_exit(0);
	while (getppid() == parent)
		sleep_ms(1);
	SAY("again %s\n", err(epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event)));
	say_event("child", set);
	SAY("delete %s\n", err(epoll_ctl(set, EPOLL_CTL_DEL, fresh, NULL)));
	send_all(pair[0], "second", 6);
	say_event("child", set);
	receive(pair[1], 0);
	_exit(0);
}

/* The process is a program's, since a mere child has no device here; it is over when its
 * child has ended, too. */
static void set_outlives_its_process(void)
{
	int life[2];
	char c;

	if (getenv("TCP_LEAVES_A_SET"))
		leave_a_set_to_a_child();
	if (pipe(life) != 0)
		SAY("pipe: %m\n");
	if (fork() == 0) {
		close(life[0]);
		setenv("TCP_LEAVES_A_SET", "1", 1);
		execl("/proc/self/exe", "tcp", __func__, (char *)NULL);
		_exit(1);
	}
	close(life[1]);
	SAY("end %zd\n", read(life[0], &c, 1));
	close(life[0]);
	await_child(-1);
}

static void no_handler(int sig)
{
	(void)sig;
}

/* What a child says of a listener that both have holds for its parent, too. */
static void listener_is_set_by_a_child(void)
{
	struct sigaction act = { .sa_handler = no_handler };
	/* again and again, since one signal may come before the wait */
	struct itimerval often = { { .tv_usec = 50000 }, { .tv_usec = 50000 } };
	struct timeval limit = { .tv_usec = 10000 };
	struct sockaddr_in name;
	int pair[2], listener;
	pid_t pid;

	sigaction(SIGALRM, &act, NULL);
	for (int i = 0; i < 2; i++) {
		listener = listening(&name, 8);
		make_pair_of(listener, &name, pair);
		set_blocking(listener, i);
		pid = fork();
		if (pid == 0) {
			if (i)
				setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit,
					   sizeof(limit));
			else
				set_blocking(listener, true);
			_exit(0);
		}
		await_child(pid);
		if (i)
			alarm(5);
		else
			setitimer(ITIMER_REAL, &often, NULL);
		SAY("accept %s\n", err(accept(listener, NULL, NULL)));
		setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
		close(listener);
		close_pair(pair);
	}
}

const struct scenario process_scenarios[] = {
	SCENARIO(idle_children, OURS),
	SCENARIO(child_closes_its_copies, OURS),
	SCENARIO(parent_closes_first, MIXED),
	SCENARIO(grandchild_goes_on, MIXED),
	SCENARIO(child_has_no_more_fds, MIXED),
	SCENARIO(parent_has_no_more_fds, MIXED),
	SCENARIO(child_forks_with_a_full_table, MIXED),
	SCENARIO(forks_beside_a_stream, MIXED),
	SCENARIO(threads_fork_at_once, MIXED),
	SCENARIO(owner_is_killed, MIXED),
	SCENARIO(programs_without_a_connection, OURS),
	SCENARIO(set_of_connections_is_inherited, MIXED),
	SCENARIO(shut_for_reading_in_a_child, MIXED),
	SCENARIO(set_outlives_its_process, MIXED),
	SCENARIO(child_goes_on, MIXED),
	SCENARIO(parent_goes_on, MIXED),
	SCENARIO(both_go_on, MIXED),
	SCENARIO(child_connects, MIXED),
	SCENARIO(killed_child, MIXED),
	SCENARIO(rights_go, MIXED),
	SCENARIO(rights_go_beside_flights, MIXED),
	SCENARIO(listener_after_a_child, OURS),
	SCENARIO(listener_is_set_by_a_child, OURS),
	SCENARIO_END,
};
