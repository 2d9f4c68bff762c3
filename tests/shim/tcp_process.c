/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: connections and listeners that several processes have. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
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

/* -- exit --------------------------------------------------------------------------- */

enum ending { BY_UNDERSCORE, BY_EXIT, BY_EXEC, BY_SIGNAL, ENDINGS };

static void end_process(enum ending ending)
{
	char *args[] = { "true", NULL };

	if (ending == BY_EXIT)
		exit(0);
	if (ending == BY_EXEC)
		execv("/bin/true", args);
	if (ending == BY_SIGNAL)
		raise(SIGTERM);
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

const struct scenario process_scenarios[] = {
	SCENARIO(child_goes_on, MIXED),
	SCENARIO(parent_goes_on, MIXED),
	SCENARIO(both_go_on, MIXED),
	SCENARIO(child_connects, MIXED),
	SCENARIO(killed_child, MIXED),
	SCENARIO(exit_behind_much, MIXED),
	SCENARIO(program_on_a_connection, MIXED),
	SCENARIO(spawned_on_a_connection, MIXED),
	SCENARIO(closed_at_exec, MIXED),
	SCENARIO(programs_beside_a_connection, MIXED),
	SCENARIO(connection_is_handed_on, MIXED),
	SCENARIO(handed_to_itself, MIXED),
	SCENARIO(listener_is_handed_on, MIXED),
	SCENARIO(inherited_listener, MIXED),
	SCENARIO(listener_of_two, MIXED),
	SCENARIO(rights_go, MIXED),
	SCENARIO_END,
};
