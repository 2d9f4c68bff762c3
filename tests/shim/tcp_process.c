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
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

extern char **environ;

static void await_child(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid && pid != -1)
		SAY("waitpid: %m\n");
	else if (WIFSIGNALED(status))
		SAY("child: signal %d\n", WTERMSIG(status));
	else
		SAY("child: exit %d\n", WEXITSTATUS(status));
}

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

/* -- full tables -- */

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

static void child_has_no_more_fds(void)
{
	int pair[2];
	pid_t pid;

	make_pair(pair);
	send_all(pair[0], "hello", 5);
	await_bytes(pair[1], 5);
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

	make_pair(pair);
	send_all(pair[0], "hello", 5);
	await_bytes(pair[1], 5);
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

	make_pair(pair);
	send_all(pair[0], "hello", 5);
	await_bytes(pair[1], 5);
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

/* -- exit --------------------------------------------------------------------------- */

enum ending { BY_UNDERSCORE, BY_EXIT, BY_EXEC, BY_SIGNAL, BY_DAEMON, ENDINGS };

static void end_process(enum ending ending)
{
	char *args[] = { "true", NULL };

	if (ending == BY_EXIT)
		exit(0);
	if (ending == BY_EXEC)
		execv("/bin/true", args);
	if (ending == BY_SIGNAL)
		raise(SIGTERM);
	/* the process ends inside libc, and its child a moment later */
	if (ending == BY_DAEMON && daemon(1, 1) != 0)
		SAY("daemon: %m\n");
	_exit(0);
}

/* As much as goes into the buffers, and an end at once: all of it arrives. */
static void exit_behind_much(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), child;
	size_t sent = 0;
	ssize_t last;
	pid_t pid;

	for (enum ending ending = 0; ending < ENDINGS; ending++) {
		int pipes[2];

		if (pipe(pipes) != 0)
			SAY("pipe: %m\n");
		pid = fork();
		if (pid == 0) {
			int fd = connected(&name);

			fcntl(fd, F_SETFD, FD_CLOEXEC);
			sent = stuff(fd);
			if (write(pipes[1], &sent, sizeof(sent)) < 0)
				_exit(1);
			end_process(ending);
		}
		child = accept(listener, NULL, NULL);
		if (read(pipes[0], &sent, sizeof(sent)) != sizeof(sent))
			SAY("read: %m\n");
		await_child(pid);
		SAY("all came: %d", drain(child, &last) == sent);
		SAY(" %s\n", err(last));
		close(child);
		close_pair(pipes);
	}
	close(listener);
}

/* -- exec --------------------------------------------------------------------------- */

/* The connection becomes a program's standard input and output. */
static void run_on(int fd, const char *command)
{
	dup2(fd, 0);
	dup2(fd, 1);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void program_on_a_connection(void)
{
	int pair[2];
	pid_t pid;

	make_pair(pair);
	say_sent(pair[0], "first line\n", 0);
	await_bytes(pair[1], 11);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		run_on(pair[1], "read a; read b; echo \"$b, $a\"; exit 3");
	}
	close(pair[1]);
	say_sent(pair[0], "second line\n", 0);
	receive_to_end(pair[0]);
	await_child(pid);
	close(pair[0]);
}

/* The connection stands in for the standard streams for a while, as bash has it: libc's own
 * functions use it then. */
static void streams_over_a_connection(void)
{
	char line[32] = "";
	int pair[2], kept[2] = { dup(0), dup(1) };

	make_pair(pair);
	say_sent(pair[0], "a line\nanother\n", 0);
	await_bytes(pair[1], 15);
	dup2(pair[1], 0);
	if (!fgets(line, sizeof(line), stdin))
		strcpy(line, "nothing\n");
	dup2(pair[1], 1);
	printf("said: %s", line);
	fflush(stdout);
	dup2(kept[1], 1);
	receive(pair[0], 0);
	/* and of a child that has it, too */
	if (fork() == 0) {
		dup2(pair[1], 1);
		printf("by a child\n");
		exit(0);
	}
	wait(NULL);
	receive(pair[0], 0);
	close(1);
	if (dup(pair[1]) == 1)
		printf("by the lowest number\n");
	fflush(stdout);
	dup2(kept[1], 1);
	receive(pair[0], 0);
	close(0);
	if (fcntl(pair[1], F_DUPFD, 0) != 0)
		SAY("fcntl: %m\n");
	if (!fgets(line, sizeof(line), stdin))
		strcpy(line, "nothing\n");
	dup2(kept[0], 0);
	SAY("read: %s", line);
	close_pair(kept);
	close_pair(pair);
}

static void spawned_on_a_connection(void)
{
	char *args[] = { "cat", NULL };
	posix_spawn_file_actions_t actions;
	int pair[2], result;
	pid_t pid;

	make_pair(pair);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 0);
	posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
	posix_spawn_file_actions_addclose(&actions, pair[0]);
	posix_spawn_file_actions_addclose(&actions, pair[1]);
	result = posix_spawn(&pid, "/bin/cat", &actions, NULL, args, environ);
	SAY("spawn %d\n", result);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	say_sent(pair[0], "through a cat", 0);
	shutdown(pair[0], SHUT_WR);
	receive_to_end(pair[0]);
	await_child(pid);
	close(pair[0]);
}

static void closed_at_exec(void)
{
	int pair[2];
	pid_t pid;

	make_pair(pair);
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		close(pair[1]);
		execl("/bin/sleep", "sleep", "0.3", (char *)NULL);
		_exit(127);
	}
	close(pair[0]);
	receive(pair[1], 0);
	await_child(pid);
	close(pair[1]);
}

/* Programs that are run beside a connection do not disturb it. */
static void programs_beside_a_connection(void)
{
	char line[16] = "";
	int pair[2];
	FILE *file;

	make_pair(pair);
	SAY("system %d\n", system("exit 5") >> 8);
	say_sent(pair[0], "one", 0);
	receive(pair[1], 0);
	file = popen("echo said", "r");
	SAY("popen %s", fgets(line, sizeof(line), file));
	pclose(file);
	say_sent(pair[1], "two", 0);
	receive(pair[0], 0);
	close_pair(pair);
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
		/* its last words have been said */
		sleep_ms(50);
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
	SCENARIO(listener_after_a_child, OURS),
	SCENARIO(child_for_each_connection, MIXED),
	SCENARIO(child_goes_on, MIXED),
	SCENARIO(parent_goes_on, MIXED),
	SCENARIO(both_go_on, MIXED),
	SCENARIO(child_connects, MIXED),
	SCENARIO(killed_child, MIXED),
	SCENARIO(ended_before_a_fork, MIXED),
	SCENARIO(ended_before_an_exec, MIXED),
	SCENARIO(exit_behind_much, MIXED),
	SCENARIO(program_on_a_connection, MIXED),
	SCENARIO(streams_over_a_connection, MIXED),
	SCENARIO(spawned_on_a_connection, MIXED),
	SCENARIO(closed_at_exec, MIXED),
	SCENARIO(programs_beside_a_connection, MIXED),
	SCENARIO(connection_is_handed_on, MIXED),
	SCENARIO(ended_before_it_is_handed_on, MIXED),
	SCENARIO(handed_to_itself, MIXED),
	SCENARIO(listener_is_handed_on, MIXED),
	SCENARIO(inherited_listener, MIXED),
	SCENARIO(listener_of_two, MIXED),
	SCENARIO(rights_go, MIXED),
	SCENARIO(rights_go_beside_flights, MIXED),
	SCENARIO_END,
};
