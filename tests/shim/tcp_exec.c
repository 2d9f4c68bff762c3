/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: connections of programs that end, and of those that they become or
 * start. */
#include "config.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/tcp.h"

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

/* -- forks in handlers --------------------------------------------------------------- */

static pid_t handlers_child;

/* The child goes on first, to its end. */
static void fork_in_handler(int sig)
{
	(void)sig;
	handlers_child = fork();
	if (handlers_child)
		await_child(handlers_child);
}

static void say_interrupted(const char *call, long result)
{
	SAY("%s: %ld %s\n", call, result, err(result));
	if (!handlers_child)
		_exit(0);
}

/* The handler ends the call in both. */
static void handlers_that_fork(void)
{
	struct sigaction act = { .sa_handler = fork_in_handler };
	struct pollfd pfd = { .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	struct sockaddr_in name;
	int pair[2], listener = listening(&name, 1), set = epoll_create1(0);
	char byte;

	make_pair(pair);
	/* the listener is at work */
	fcntl(listener, F_SETFL, O_NONBLOCK);
	SAY("accept %s\n", err(accept(listener, NULL, NULL)));
	fcntl(listener, F_SETFL, 0);
	pfd.fd = pair[1];
	epoll_ctl(set, EPOLL_CTL_ADD, pair[1], &event);
	sigaction(SIGALRM, &act, NULL);
	ualarm(50000, 0);
	say_interrupted("recv", recv(pair[1], &byte, 1, 0));
	ualarm(50000, 0);
	say_interrupted("accept", accept(listener, NULL, NULL));
	ualarm(50000, 0);
	say_interrupted("poll", poll(&pfd, 1, 10000));
	ualarm(50000, 0);
	say_interrupted("epoll_wait", epoll_wait(set, &event, 1, 10000));
	close(set);
	close(listener);
	close_pair(pair);
}

/* -- children whose end is awaited ---------------------------------------------------- */

static int told[2];

static int await_word(void *arg)
{
	struct pollfd pfd = { .fd = told[0], .events = POLLIN };

	(void)arg;
	_exit(poll(&pfd, 1, 5000));
}

static int count_open(void)
{
	int cnt = 0;

	for (int fd = 0; fd < 64; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

/* How many numbers a child of fork() has. */
static int count_of_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(count_open());
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int usual_cnt;

/* The child has nothing that was made for the waiting. */
static void *fork_and_tell(void *arg)
{
	int cnt = count_of_child();

	SAY("a child has %d more\n", cnt - usual_cnt);
	if (write(told[1], "x", 1) != 1)
		SAY("write: %m\n");
	return arg;
}

static pid_t wait_by_clone(void)
{
	static _Alignas(16) char stack[65536];

	return clone(await_word, stack + sizeof(stack), CLONE_VFORK | SIGCHLD, NULL);
}

static pid_t in_child(pid_t pid)
{
	if (pid == 0)
		await_word(NULL);
	return pid;
}

static pid_t wait_by_clones_number(void)
{
	return in_child((pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0));
}

static pid_t wait_by_clone3(void)
{
	struct clone_args args = { .flags = CLONE_VFORK, .exit_signal = SIGCHLD };

	return in_child((pid_t)syscall(SYS_clone3, &args, sizeof(args)));
}

/* Of libc's syscall() there is no second return, where its child has been. */
static pid_t wait_by_vforks_number(void)
{
	return getenv("LD_PRELOAD") ? in_child((pid_t)syscall(SYS_vfork)) : wait_by_clone();
}

/* Who waits for a child's end has nothing that others need to fork. */
static void forks_beside_an_awaited_child(void)
{
	static pid_t (*const waits[])(void) = { wait_by_clone, wait_by_clones_number,
						wait_by_clone3, wait_by_vforks_number };
	pthread_t thread;
	int pair[2];

	make_pair(pair);
	if (pipe(told) != 0)
		SAY("pipe: %m\n");
	usual_cnt = count_of_child();
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		char byte;

		pthread_create(&thread, NULL, fork_and_tell, NULL);
		await_child(waits[i]());
		pthread_join(thread, NULL);
		if (read(told[0], &byte, 1) != 1)
			SAY("read: %m\n");
	}
	say_sent(pair[0], "beside", 0);
	receive(pair[1], 0);
	close_pair(pair);
}

/* -- children that share our memory and our files ------------------------------------- */

static int end_at_once(void *ending)
{
	end_process(*(enum ending *)ending);
	return 0;
}

/* They end, or become other programs, alone. */
static void ends_of_a_sharer(void)
{
	static _Alignas(16) char stack[65536];
	static enum ending endings[] = { BY_UNDERSCORE, BY_EXEC };
	int pair[2];

	make_pair(pair);
	for (int end = 0; end < 2; end++)
		fcntl(pair[end], F_SETFD, FD_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		await_child(clone(end_at_once, stack + sizeof(stack),
				  CLONE_VM | CLONE_FILES | SIGCHLD, &endings[i]));
		say_sent(pair[0], "still here", 0);
		receive(pair[1], 0);
	}
	close_pair(pair);
}

/* -- another network ------------------------------------------------------------------ */

static void *serve_from_another_network(void *arg)
{
	int fd, listener = *(int *)arg;
	pid_t pid;

	SAY("unshare %s\n", err(unshare(CLONE_NEWNET)));
	if (write(told[1], "x", 1) != 1)
		SAY("write: %m\n");
	fd = accept(listener, NULL, NULL);
	receive(fd, 0);
	pid = fork();
	if (pid == 0) {
		say_sent(fd, "a child", 0);
		_exit(0);
	}
	await_child(pid);
	say_sent(fd, "the end", 0);
	close(fd);
	return NULL;
}

/* A thread that has left the network goes on with what it had there. */
static void sockets_of_another_network(void)
{
	struct sockaddr_in name;
	int listener = listening(&name, 4), early[2], fd = made();
	pthread_t thread;
	char byte;

	early[0] = connected(&name);
	early[1] = accept(listener, NULL, NULL);
	say_sent(early[1], "before", 0);
	if (pipe(told) != 0)
		SAY("pipe: %m\n");
	pthread_create(&thread, NULL, serve_from_another_network, &listener);
	if (read(told[0], &byte, 1) != 1)
		SAY("read: %m\n");
	SAY("connect %s\n", err(connect_to(fd, &name)));
	send_all(fd, "hello", 5);
	pthread_join(thread, NULL);
	receive_to_end(fd);
	receive(early[0], 0);
	close(fd);
	close_pair(early);
	close(listener);
}

const struct scenario exec_scenarios[] = {
	SCENARIO(exit_behind_much, MIXED),
	SCENARIO(program_on_a_connection, MIXED),
	SCENARIO(streams_over_a_connection, MIXED),
	SCENARIO(spawned_on_a_connection, MIXED),
	SCENARIO(closed_at_exec, MIXED),
	SCENARIO(programs_beside_a_connection, MIXED),
	SCENARIO(handlers_that_fork, MIXED),
	SCENARIO(forks_beside_an_awaited_child, MIXED),
	SCENARIO(ends_of_a_sharer, OURS),
	SCENARIO(sockets_of_another_network, MIXED),
	SCENARIO_END,
};
