/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/filter.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/real.h"
#include "tests/support/test.h"

static int install_filter(void)
{
	struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	struct sock_fprog all = { 1, &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0;
}

/* In a child with so many groups: whether it sees the filter that it has installed. */
static int seen_with(size_t group_cnt)
{
	gid_t groups[1000];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (size_t i = 0; i < group_cnt; i++)
			groups[i] = (gid_t)(2000000000 + i);
		if (group_cnt && setgroups(group_cnt, groups) != 0)
			_exit(errno == EPERM ? 2 : 3);
		if (filter_is_there())
			_exit(4);
		if (install_filter())
			_exit(5);
		_exit(!filter_is_there());
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

TEST(filter_is_seen)
{
	CHECK_EQ(seen_with(0), 0);
}

TEST(filter_is_seen_behind_many_groups)
{
	int result = seen_with(1000);

	if (result == 2)
		test_skip("needs root");
	CHECK_EQ(result, 0);
}

/* The first one in another namespace takes it along, so it has to be a child of the program's. */
static int first_of_a_namespace(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID) != 0)
		return errno == EPERM ? 2 : 3;
	if (install_filter() || !filter_is_deadly())
		return 4;
	pid = fork();
	if (pid == 0)
		_exit(getpid() != 1);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 5;
	return WEXITSTATUS(status);
}

TEST(no_child_tries_where_it_would_be_the_first)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(first_of_a_namespace());
	waitpid(pid, &status, 0);
	if (WEXITSTATUS(status) == 2)
		test_skip("needs root");
	CHECK_EQ(WEXITSTATUS(status), 0);
}
