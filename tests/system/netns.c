/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Namespaces by unshare(), commands by the shell. */
#define _GNU_SOURCE
#include "tests/system/netns.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static pid_t peer;

void netns_enter(void)
{
	if (unshare(CLONE_NEWNET) != 0) {
		if (errno == EPERM)
			test_skip("needs root");
		FAIL("unshare: %s", strerror(errno));
	}
	netns_run("ip link set lo up");
}

void netns_mount_alone(void)
{
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

static void end_peer(void)
{
	if (!peer)
		return;
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	peer = 0;
}

/* The child of netns_make_peer; tells by one byte that it is there. */
static NO_RETURN void live_in_new_namespace(int ready_fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) != 0 || write(ready_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

pid_t netns_make_peer(void)
{
	int fds[2];
	char byte;

	end_peer();
	CHECK(pipe(fds) == 0);
	fflush(stdout);
	peer = fork();
	CHECK(peer >= 0);
	if (peer == 0)
		live_in_new_namespace(fds[1]);
	close(fds[1]);
	CHECK(read(fds[0], &byte, 1) == 1);
	close(fds[0]);
	netns_run_in_peer("ip link set lo up");
	return peer;
}

static void run_command(const char *prefix, const char *fmt, va_list args)
{
	char command[4096];
	int len = snprintf(command, sizeof(command), "%s", prefix);

	vsnprintf(command + len, sizeof(command) - (size_t)len, fmt, args);
	fflush(stdout);
	if (system(command) != 0)
		FAIL("failed: %s", command);
}

void netns_run(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	run_command("", fmt, args);
	va_end(args);
}

void netns_run_in_peer(const char *fmt, ...)
{
	char prefix[64];
	va_list args;

	snprintf(prefix, sizeof(prefix), "nsenter -t %d -n ", (int)peer);
	va_start(args, fmt);
	run_command(prefix, fmt, args);
	va_end(args);
}

int netns_index(const char *name)
{
	unsigned ifindex = if_nametoindex(name);

	if (!ifindex)
		FAIL("no interface %s", name);
	return (int)ifindex;
}
