/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finding out what a filter of system calls would do (filter.h). */
#include "config.h"

#include "os/filter.h"

#include <errno.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/compiler.h"
#include "base/syscall_raw.h"
#include "os/file.h"
#include "os/pidns.h"
#include "os/real.h"

/* What we call and a program need not, each in a way that changes nothing. The kernel looks at
 * the filter before it looks at the rest. */
static const struct {
	long number, a, b, c;
} calls[] = {
	{ SYS_bpf, -1, 0, 0 },
	{ SYS_capget, 0, 0, 0 },
	{ SYS_clone3, 0, 0, 0 },
	{ SYS_close_range, -1, 0, 0 },
	{ SYS_epoll_create1, -1, 0, 0 },
	{ SYS_epoll_ctl, -1, 0, -1 },
	{ SYS_epoll_pwait, -1, 0, 0 },
	{ SYS_eventfd2, 0, -1, 0 },
	{ SYS_fallocate, -1, 0, 0 },
	{ SYS_fchmod, -1, 0, 0 },
	{ SYS_fchown, -1, 0, 0 },
	{ SYS_flock, -1, 0, 0 },
	{ SYS_fstatfs, -1, 0, 0 },
	{ SYS_ftruncate, -1, 0, 0 },
	{ SYS_getdents64, -1, 0, 0 },
	{ SYS_getsockopt, -1, 0, 0 },
	{ SYS_ioctl, -1, 0, 0 },
	{ SYS_madvise, 1, 0, 0 },
	{ SYS_membarrier, -1, 0, 0 },
	{ SYS_memfd_create, 0, -1, 0 },
	{ SYS_mkdirat, -1, 0, 0 },
	{ SYS_pidfd_getfd, -1, 0, 0 },
	{ SYS_pidfd_open, -1, 0, 0 },
	{ SYS_pipe2, 0, -1, 0 },
	{ SYS_ppoll, 0, 0, -1 },
	{ SYS_prctl, -1, 0, 0 },
	{ SYS_pread64, -1, 0, 0 },
	{ SYS_process_vm_writev, -1, 0, 0 },
	{ SYS_readlinkat, -1, 0, 0 },
	{ SYS_recvmsg, -1, 0, 0 },
	{ SYS_rt_sigpending, 0, 0, 0 },
	{ SYS_rt_sigtimedwait, 0, 0, 0 },
	{ SYS_rt_tgsigqueueinfo, -1, -1, 0 },
	{ SYS_sched_getaffinity, -1, 0, 0 },
	{ SYS_sched_getscheduler, -1, 0, 0 },
	{ SYS_sched_setaffinity, -1, 0, 0 },
	{ SYS_sched_setscheduler, -1, 0, 0 },
	{ SYS_sendmsg, -1, 0, 0 },
	{ SYS_setsockopt, -1, 0, 0 },
	{ SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE },
	{ SYS_socket, AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0 },
	{ SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0 },
	{ SYS_socket, AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0 },
	{ SYS_socketpair, -1, 0, 0 },
	{ SYS_statfs, 0, 0, 0 },
	{ SYS_sysinfo, 0, 0, 0 },
	{ SYS_tgkill, -1, -1, 0 },
	{ SYS_timerfd_create, -1, 0, 0 },
	{ SYS_uname, 0, 0, 0 },
	{ SYS_unlinkat, -1, 0, 0 },
};

enum { MODE_FILTER = 2 };

static void read_mode(void *ctx, const char *line)
{
	static const char name[] = "Seccomp:\t";
	int *mode = ctx;

	if (strncmp(line, name, strlen(name)) == 0)
		*mode = atoi(line + strlen(name));
}

/* The mode of seccomp in which this thread is; by a file that any program may read, and
 * that is long where the user has many groups. */
static int mode(void)
{
	int mode = 0;

	file_for_lines("/proc/thread-self/status", read_mode, &mode);
	return mode;
}

bool filter_is_there(void)
{
	return mode() == MODE_FILTER;
}

/* In the child. It ends by SIGSYS, or by itself. A filter may also send that signal, for which
 * the program may have a handler. */
static _Noreturn void try_all(void)
{
	/* one byte: no dump for a pipe either */
	static const struct rlimit no_dump = { 1, 1 };
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t sys;

	sigemptyset(&sys);
	sigaddset(&sys, SIGSYS);
	(void)setrlimit(RLIMIT_CORE, &no_dump);
	(void)!real.sigaction(SIGSYS, &dfl, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &sys, NULL);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		(void)syscall_raw(calls[i].number, calls[i].a, calls[i].b,
				  calls[i].c, 0, 0, 0);
	for (;;)
		(void)syscall_raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* Its end sends no signal, and no wait of the program sees it. */
bool filter_is_deadly(void)
{
	int status = 0;
	long pid, n;

	if (!filter_is_there())
		return false;
	/* which may have no child of ours to find it out */
	if (pidns_of_children_is_another())
		return true;
	pid = syscall_raw(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0)
		try_all();
	if (pid < 0)
		return false;
	do {
		n = syscall_raw(SYS_wait4, pid, (long)&status, __WCLONE, 0, 0, 0);
	} while (n == -EINTR);
	return n == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}
