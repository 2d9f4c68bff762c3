/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scenarios of doors.sh: sockets that are handed on, to other programs, processes and
 * children. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/doors.h"

extern char **environ;

static const char *number(int value)
{
	static char text[4][16];
	static int next;

	next = (next + 1) % 4;
	snprintf(text[next], sizeof(text[next]), "%d", value);
	return text[next];
}

void read_all(int fd, int cnt)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < cnt; i++) {
		if (poll(&readable, 1, 3000) != 1)
			SAY("nothing comes\n");
		receive(fd, MSG_DONTWAIT);
	}
	receive(fd, MSG_DONTWAIT);
}

static void ended(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	SAY("child: %#x\n", (unsigned)status);
}

static void exec_keeps_what_waits(void)
{
	int pair[2];

	make_waiting_pair(pair);
	execl(own_path, "doors", "--read", number(pair[0]), "2", (char *)NULL);
	SAY("execl: %m\n");
}

/* As programs upgrade themselves: a failed attempt, the number in the environment. */
static void exec_of_itself_keeps_what_waits(void)
{
	char *args[] = { (char *)"doors", (char *)"--read-env", NULL };
	int pair[2];

	make_waiting_pair(pair);
	fcntl(pair[1], F_SETFD, FD_CLOEXEC);
	setenv("DOORS_FD", number(pair[0]), 1);
	execv("/nowhere/doors", args);
	SAY("execv: %m\n");
	send(pair[1], "third", 5, 0);
	execvp(own_path, args);
	SAY("execvp: %m\n");
}

static void send_fd(int via, int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	if (sendmsg(via, &msg, 0) != 1)
		SAY("sendmsg: %m\n");
}

static int receive_fd(int via)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(via, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The sender closes it at once. */
static void passed_to_another_process(void)
{
	int via[2], pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, via) != 0)
		SAY("socketpair: %m\n");
	pid = fork();
	if (pid == 0) {
		read_all(receive_fd(via[1]), 3);
		_exit(0);
	}
	make_waiting_pair(pair);
	send_fd(via[0], pair[0]);
	close(pair[0]);
	send(pair[1], "third", 5, 0);
	ended(pid);
	close(pair[1]);
	close_pair(via);
}

/* By a copy in the child, and by leaving the fd open. */
static void spawned_children_read_what_waits(void)
{
	posix_spawn_file_actions_t actions;
	int pair[2];
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		char *args[] = { (char *)"doors", (char *)"--read", NULL,
				 (char *)"3", NULL };

		make_waiting_pair(pair);
		fcntl(pair[1], F_SETFD, FD_CLOEXEC);
		args[2] = (char *)number(i == 0 ? 0 : pair[0]);
		posix_spawn_file_actions_init(&actions);
		if (i == 0)
			posix_spawn_file_actions_adddup2(&actions, pair[0], 0);
		if ((i == 0 ? posix_spawn : posix_spawnp)(&pid, own_path, &actions,
							  NULL, args, environ))
			SAY("posix_spawn fails\n");
		posix_spawn_file_actions_destroy(&actions);
		send(pair[1], "third", 5, 0);
		ended(pid);
		close_pair(pair);
	}
}

static void shells_read_what_waits(void)
{
	char command[sizeof(own_path) + 64], line[128];
	int pair[2];
	FILE *file;

	for (int i = 0; i < 2; i++) {
		make_waiting_pair(pair);
		snprintf(command, sizeof(command), "exec %s --read %d 2",
			 own_path, pair[0]);
		if (i == 0) {
			SAY("system: %d\n", system(command));
			continue;
		}
		file = popen(command, "r");
		while (file && fgets(line, sizeof(line), file))
			SAY("%s", line);
		SAY("pclose: %d\n", pclose(file));
	}
}

static int read_in_clone(void *fd)
{
	read_all(*(int *)fd, 3);
	_exit(0);
}

/* A child that libc does not make, or not by fork: its calls go to the kernel's
 * socket, and the parent's go on. */
static void cloned_children_read_what_waits(void)
{
	static char stack[256 << 10] __attribute__((aligned(16)));
	int pair[2];
	pid_t pid;

	for (int i = 0; i < 3; i++) {
		make_waiting_pair(pair);
		switch (i) {
		case 0:
			pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
			break;
		case 1:
			pid = clone(read_in_clone, stack + sizeof(stack),
				    SIGCHLD, &pair[0]);
			break;
		default:
			pid = _Fork();
		}
		if (pid == 0)
			read_in_clone(&pair[0]);
		send(pair[1], "third", 5, 0);
		ended(pid);
		still_hears(pair[0], pair[1]);
		close_pair(pair);
	}
}

const struct door handed_doors[] = {
	SCENARIO(exec_keeps_what_waits),
	SCENARIO(exec_of_itself_keeps_what_waits),
	SCENARIO(passed_to_another_process),
	SCENARIO(spawned_children_read_what_waits),
	SCENARIO(shells_read_what_waits),
	SCENARIO(cloned_children_read_what_waits),
	SCENARIO_END,
};
