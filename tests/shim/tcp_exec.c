/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of tcp.sh: connections of programs that end, and of those that they become or
 * start. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
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

const struct scenario exec_scenarios[] = {
	SCENARIO(exit_behind_much, MIXED),
	SCENARIO(program_on_a_connection, MIXED),
	SCENARIO(streams_over_a_connection, MIXED),
	SCENARIO(spawned_on_a_connection, MIXED),
	SCENARIO(closed_at_exec, MIXED),
	SCENARIO(programs_beside_a_connection, MIXED),
	SCENARIO_END,
};
