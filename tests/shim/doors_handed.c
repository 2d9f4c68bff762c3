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
#include <sys/epoll.h>
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

/* -- sets ---------------------------------------------------------------------------- */

static void say_in(int set, const char *what, int ms)
{
	struct epoll_event got[4];
	int n = epoll_wait(set, got, 4, ms);

	SAY("%s: %d", what, n);
	for (int i = 0; i < n; i++)
		SAY(", %u %#x", got[i].data.u32, got[i].events);
	SAY("\n");
}

static void put_in(int set, int fd, uint32_t events, uint32_t word)
{
	struct epoll_event event = { .events = events, .data.u32 = word };

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0)
		SAY("add: %m\n");
}

/* Linux shuts an unconnected socket down, and says it did not. */
static void shut_down_after_it_was_passed(void)
{
	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		int via[2], set = epoll_create1(EPOLL_CLOEXEC);
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		struct pollfd polled = { .fd = fd, .events = POLLIN };

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, via) != 0)
			SAY("socketpair: %m\n");
		put_in(set, fd, EPOLLIN, 1);
		send_fd(via[0], fd);
		SAY("shutdown %d: %d\n", how, shutdown(fd, how));
		say_in(set, "in the set", 0);
		poll(&polled, 1, 0);
		SAY("polled: %#x\n", (unsigned)polled.revents);
		close(fd);
		close(set);
		close_pair(via);
	}
}

/* In turn: a line from one, then the other goes on. */
static void let_go_on(int via)
{
	if (write(via, "x", 1) != 1)
		SAY("write: %m\n");
}

static void await_turn(int via)
{
	char byte;

	if (read(via, &byte, 1) != 1)
		SAY("read: %m\n");
}

/* The sockets stay with the sender. Whoever gets the set hears of what comes to them, and
 * what it takes out of the set, the sender's set has not got any more. */
static void set_is_passed_to_another_process(void)
{
	int via[2], pair[2], set = epoll_create1(EPOLL_CLOEXEC);
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, via) != 0)
		SAY("socketpair: %m\n");
	pid = fork();
	if (pid == 0) {
		int theirs = receive_fd(via[1]);

		say_in(theirs, "what waits, there", 3000);
		let_go_on(via[1]);
		await_turn(via[1]);
		say_in(theirs, "nothing, there", 0);
		let_go_on(via[1]);
		say_in(theirs, "what comes, there", 3000);
		let_go_on(via[1]);
		await_turn(via[1]);
		say_in(theirs, "of one that is closed, there", 0);
		_exit(0);
	}
	make_waiting_pair(pair);
	put_in(set, pair[0], EPOLLIN, 1);
	put_in(set, via[0], EPOLLPRI, 2);
	say_in(set, "what waits, here", 3000);
	send_fd(via[0], set);
	await_turn(via[0]);
	say_in(set, "what waits, here", 3000);
	read_all(pair[0], 2);
	say_in(set, "nothing, here", 0);
	let_go_on(via[0]);
	await_turn(via[0]);
	send(pair[1], "third", 5, 0);
	await_turn(via[0]);
	say_in(set, "what comes, here", 3000);
	read_all(pair[0], 1);
	close_pair(pair);
	say_in(set, "of one that is closed, here", 0);
	let_go_on(via[0]);
	ended(pid);
	close(set);
	close_pair(via);
}

/* A socket stays a member while a duplicate of it lives, also of a set that is passed on. */
static void set_is_passed_with_a_duplicate(void)
{
	int via[2], pair[2], other, set = epoll_create1(EPOLL_CLOEXEC), theirs;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, via) != 0)
		SAY("socketpair: %m\n");
	make_waiting_pair(pair);
	put_in(set, pair[0], EPOLLIN, 1);
	other = dup(pair[0]);
	close(pair[0]);
	say_in(set, "what waits", 3000);
	send_fd(via[0], set);
	theirs = receive_fd(via[1]);
	say_in(theirs, "what waits, there", 3000);
	say_in(set, "what waits, here", 3000);
	read_all(other, 2);
	say_in(theirs, "nothing, there", 0);
	send(pair[1], "third", 5, 0);
	say_in(theirs, "what comes, there", 3000);
	say_in(set, "what comes, here", 3000);
	read_all(other, 1);
	close(theirs);
	close(set);
	close(other);
	close(pair[1]);
	close_pair(via);
}

/* Parent and child have the set and its sockets. */
static void set_is_inherited(void)
{
	int via[2], pair[2], set = epoll_create1(0);
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, via) != 0)
		SAY("socketpair: %m\n");
	make_waiting_pair(pair);
	put_in(set, pair[0], EPOLLIN, 1);
	say_in(set, "what waits, here", 3000);
	pid = fork();
	if (pid == 0) {
		say_in(set, "what waits, in the child", 3000);
		receive(pair[0], 0);
		receive(pair[0], 0);
		say_in(set, "nothing, in the child", 0);
		let_go_on(via[1]);
		say_in(set, "what comes, in the child", 3000);
		receive(pair[0], 0);
		if (epoll_ctl(set, EPOLL_CTL_DEL, pair[0], NULL) != 0)
			SAY("delete: %m\n");
		_exit(0);
	}
	await_turn(via[0]);
	send(pair[1], "third", 5, 0);
	ended(pid);
	close(set);
	close_pair(pair);
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

static int close_in_clone(void *fds)
{
	const int *pair = fds, via = pair[3];

	dup2(STDIN_FILENO, pair[1]);
	close(pair[1]);
	close_range((unsigned)pair[0], (unsigned)pair[0], 0);
	if (fcntl(pair[0], F_GETFD) >= 0 || fcntl(pair[1], F_GETFD) >= 0)
		_exit(1);
	usleep(10000);
	if (write(via, "before", 6) != 6)
		_exit(3);
	execl("/bin/true", "true", NULL);
	_exit(2);
}

/* The program's own vfork(): the child borrows the memory, but has fds of its own. */
static void cloned_children_rearrange_fds(void)
{
	static char stack[256 << 10] __attribute__((aligned(16)));
	char said[8] = "";
	int fds[4];
	pid_t pid;

	make_waiting_pair(fds);
	if (pipe2(fds + 2, O_CLOEXEC | O_NONBLOCK))
		SAY("pipe2: %m\n");
	pid = clone(close_in_clone, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD, fds);
	SAY("read: %zd\n", read(fds[2], said, sizeof(said)));
	ended(pid);
	still_hears(fds[0], fds[1]);
	close_pair(fds);
	close_pair(fds + 2);
}

const struct door handed_doors[] = {
	SCENARIO(exec_keeps_what_waits),
	SCENARIO(exec_of_itself_keeps_what_waits),
	SCENARIO(passed_to_another_process),
	SCENARIO(shut_down_after_it_was_passed),
	SCENARIO(set_is_passed_to_another_process),
	SCENARIO(set_is_passed_with_a_duplicate),
	SCENARIO(set_is_inherited),
	SCENARIO(spawned_children_read_what_waits),
	SCENARIO(shells_read_what_waits),
	SCENARIO(cloned_children_read_what_waits),
	SCENARIO(cloned_children_rearrange_fds),
	SCENARIO_END,
};
