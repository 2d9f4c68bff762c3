/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The right to switch TCP_REPAIR (tcp_right.h). */
#include "config.h"

#include "sock/tcp/tcp_right.h"

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/lock.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/inside.h"
#include "os/rights.h"
#include "sock/sock.h"

/* How long it may take to be ready, and to answer. */
enum { PATIENCE_MS = 2000 };

static struct {
	/* One question at a time; also for who starts it. */
	struct mutex lock;
	_Atomic int fd; /* -1: there is none */
} helper = { MUTEX_INIT(LOCK_RANK_TCP_RIGHT), -1 };

static bool is_always_wanted(void)
{
	return sock_params.right_keeper == SOCK_RIGHT_HELPER_ALWAYS;
}

bool tcp_right_is_kept(void)
{
	return atomic_load_explicit(&helper.fd, memory_order_relaxed) >= 0;
}

/* -- starting it --------------------------------------------------------------------- */

/* Through the exec, whoever the user is. */
static void keep_net_admin(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall_raw(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0) != 0)
		return;
	data[0].inheritable |= CAP_TO_MASK(CAP_NET_ADMIN);
	(void)syscall_raw(SYS_capset, (long)&header, (long)data, 0, 0, 0, 0);
	(void)syscall_raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE,
			  CAP_NET_ADMIN, 0, 0, 0);
}

/* In the child, which is a copy of one thread of the program: system calls alone. */
static _Noreturn void become_helper(const char *path, int channel, char *name)
{
	char *args[] = { name, NULL }, *env[] = { NULL };

	(void)syscall_raw(SYS_dup3, channel, 0, 0, 0, 0, 0);
	(void)syscall_raw(SYS_close_range, 1, ~0u, 0, 0, 0, 0);
	keep_net_admin();
	(void)syscall_raw(SYS_execve, (long)path, (long)args, (long)env, 0, 0, 0);
	(void)syscall_raw(SYS_exit_group, 1, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

/* Waits for a word of it: 0, or a negative errno. */
static int hear(int fd, int32_t *value_out)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timespec patience = { .tv_sec = PATIENCE_MS / 1000 };
	struct iovec iov = { value_out, sizeof(*value_out) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	long n;

	/* the kernel counts the time down, also when a signal interrupts */
	do
		n = syscall_raw(SYS_ppoll, (long)&pfd, 1, (long)&patience, 0, 0, 0);
	while (n == -EINTR);
	if (n == 1)
		n = inside_recvmsg(fd, &msg, MSG_DONTWAIT);
	else if (n == 0)
		n = -ETIMEDOUT;
	if (n == sizeof(*value_out))
		return 0;
	return n < 0 ? (int)n : -EPIPE;
}

/*
 * It is no child of the program, which hears nothing of its end: its parent ends at once,
 * and is none that wait() sees without __WCLONE. (An exec makes any child one that it does
 * see.) All signals are blocked before it could get one. 0, or a negative errno.
 */
static int start(const char *path, int channel, char *name)
{
	sigset_t all, old;
	long pid;

	sigfillset(&all);
	syscall_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old,
		    _NSIG / 8, 0, 0);
	pid = syscall_raw(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0) {
		if (syscall_raw(SYS_clone, 0, 0, 0, 0, 0, 0) == 0)
			become_helper(path, channel, name);
		(void)syscall_raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
		__builtin_unreachable();
	}
	if (pid > 0)
		while (syscall_raw(SYS_wait4, pid, 0, __WCLONE, 0, 0, 0) == -EINTR)
			;
	syscall_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, _NSIG / 8, 0,
		    0);
	return pid < 0 ? (int)pid : 0;
}

/* Whoever adopts orphans would get it back as a child. */
static bool adopts_orphans(void)
{
	int is_reaper = 0;

	return syscall_raw(SYS_getpid, 0, 0, 0, 0, 0, 0) == 1 ||
	       (syscall_raw(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&is_reaper,
			    0, 0, 0, 0) == 0 &&
		is_reaper);
}

static int keep_locked(void) REQUIRES(helper.lock)
{
	char path[PATH_MAX], name[48];
	int ends[2], err;
	int32_t word;

	INVARIANT(lock_witness_is_mine(&helper.lock.witness), "kept without the lock");
	if (adopts_orphans())
		return -ECHILD;
	if (!sock_params.find_program("vma_way_back", path, sizeof(path)))
		return -ENOENT;
	if (real.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	fd_table_forget(ends[0]);
	fd_table_forget(ends[1]);
	snprintf(name, sizeof(name), "vma: way back for %d",
		 (int)syscall_raw(SYS_getpid, 0, 0, 0, 0, 0, 0));
	err = start(path, ends[1], name);
	inside_close(ends[1]);
	if (!err)
		err = hear(ends[0], &word);
	if (!err)
		err = fd_internal_adopt(ends[0], &helper.fd);
	if (!err)
		return 0;
	/* which ends it, too */
	inside_close(ends[0]);
	return err;
}

static void forget_dead_locked(void) REQUIRES(helper.lock)
{
	struct pollfd pfd = { .fd = atomic_load(&helper.fd) };

	INVARIANT(lock_witness_is_mine(&helper.lock.witness), "looked without the lock");
	if (pfd.fd >= 0 && inside_poll(&pfd, 1) > 0)
		fd_internal_close(&helper.fd);
}

bool tcp_right_keep(void)
{
	int err = 0;

	if (sock_params.right_keeper == SOCK_RIGHT_SELF || !rights_is_net_admin())
		return tcp_right_is_kept();
	mutex_acquire(&helper.lock);
	forget_dead_locked();
	if (!tcp_right_is_kept())
		err = keep_locked();
	mutex_release(&helper.lock);
	if (err)
		LOG_ONCE(LOG_LEVEL_WARNING, "TCP sockets are the kernel's%s: no helper can keep it (vma_way_back: %s)",
			 is_always_wanted() ?
				 ", since VMA_WAY_BACK=helper wants CAP_NET_ADMIN to be kept" :
				 " once the program has given up CAP_NET_ADMIN",
			 strerror(-err));
	return !err;
}

bool tcp_right_is_ready(void)
{
	return !is_always_wanted() || tcp_right_is_kept() || tcp_right_keep();
}

/* -- asking it ----------------------------------------------------------------------- */

static int ask_locked(int fd, int32_t value) REQUIRES(helper.lock)
{
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .first = { .cmsg_level = SOL_SOCKET,
				 .cmsg_type = SCM_RIGHTS,
				 .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { &value, sizeof(value) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int channel = atomic_load(&helper.fd), err;
	int32_t answer;
	long n;

	INVARIANT(lock_witness_is_mine(&helper.lock.witness), "asked without the lock");
	if (channel < 0)
		return -EPERM;
	memcpy(CMSG_DATA(&control.first), &fd, sizeof(fd));
	n = inside_sendmsg(channel, &msg, MSG_NOSIGNAL);
	err = n < 0 ? (int)n : hear(channel, &answer);
	if (!err)
		return answer;
	/* an answer that comes later would be taken for the next one */
	fd_internal_close(&helper.fd);
	log_warn("the helper that gives connections back to the kernel does not answer (%s)%s",
		 strerror(-err),
		 rights_is_net_admin() ?
			 "" :
			 ": what is accelerated stays so, new TCP sockets are the kernel's");
	return -EPERM;
}

static int ask(int fd, int value)
{
	int err;

	if (!tcp_right_is_kept())
		return -EPERM;
	mutex_acquire(&helper.lock);
	err = ask_locked(fd, value);
	mutex_release(&helper.lock);
	return err;
}

static int switch_here(int fd, int value)
{
	return real.setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &value,
			       sizeof(value)) ?
		       -errno :
		       0;
}

/* Whichever is asked first, the other one does it if that cannot. */
int tcp_right_switch(int fd, int value)
{
	int err = is_always_wanted() ? ask(fd, value) : switch_here(fd, value);

	if (err != -EPERM)
		return err;
	return is_always_wanted() ? switch_here(fd, value) : ask(fd, value);
}

void tcp_right_forked(void)
{
	mutex_init(&helper.lock, LOCK_RANK_TCP_RIGHT);
}
