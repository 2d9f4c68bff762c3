/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process that keeps rights (right_keeper.h). */
#include "config.h"

#include "fd/right_keeper.h"

#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/lock.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/inside.h"
#include "os/real.h"
#include "os/rights.h"

/* How long it may take to be ready, and to answer; a busy kernel takes its time to verify a
 * program. */
enum { PATIENCE_SEC = 2, PATIENCE_OPENING_SEC = 10 };

static struct {
	/* One question at a time; also for who starts it. */
	struct mutex lock;
	_Atomic int fd; /* -1: there is none */
} keeper = { MUTEX_INIT(LOCK_RANK_RIGHT_KEEPER), -1 };

bool right_keeper_is_there(void)
{
	return atomic_load_explicit(&keeper.fd, memory_order_relaxed) >= 0;
}

void right_keeper_forked(void)
{
	mutex_init(&keeper.lock, LOCK_RANK_RIGHT_KEEPER);
}

/* -- what it says ---------------------------------------------------------------------- */

/* A word with the descriptors that came with it. */
struct heard {
	int32_t word;
	int fds[KEEPER_FDS_MAX];
	unsigned fd_cnt;
};

static void take_fds(struct msghdr *msg, struct heard *heard)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	heard->fd_cnt = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(heard->fds, CMSG_DATA(c), heard->fd_cnt * sizeof(int));
	for (unsigned i = 0; i < heard->fd_cnt; i++)
		fd_table_forget(heard->fds[i]);
}

static int hear(int fd, int patience_sec, struct heard *heard)
{
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(KEEPER_FDS_MAX * sizeof(int))];
	} control;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timespec patience = { .tv_sec = patience_sec };
	struct iovec iov = { &heard->word, sizeof(heard->word) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      /* without its padding, in which one more would fit */
			      .msg_controllen = CMSG_LEN(sizeof(heard->fds)) };
	long n;

	heard->fd_cnt = 0;
	/* the kernel counts the time down, also when a signal interrupts */
	do
		n = syscall_raw(SYS_ppoll, (long)&pfd, 1, (long)&patience, 0, 0, 0);
	while (n == -EINTR);
	if (n == 1)
		n = inside_recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	else if (n == 0)
		n = -ETIMEDOUT;
	if (n < 0)
		return (int)n;
	take_fds(&msg, heard);
	return n == sizeof(heard->word) ? 0 : -EPIPE;
}

/* -- starting it --------------------------------------------------------------------- */

/* Through the exec, whoever the user is. */
static void keep_rights(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall_raw(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0) != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(keeper_rights); i++)
		data[CAP_TO_INDEX(keeper_rights[i])].inheritable |=
			data[CAP_TO_INDEX(keeper_rights[i])].permitted &
			CAP_TO_MASK(keeper_rights[i]);
	(void)syscall_raw(SYS_capset, (long)&header, (long)data, 0, 0, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(keeper_rights); i++)
		(void)syscall_raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE,
				  keeper_rights[i], 0, 0, 0);
}

/* In the child, which is a copy of one thread of the program: system calls alone. */
static _Noreturn void become_keeper(const char *path, int channel, char *name)
{
	char *args[] = { name, NULL }, *env[] = { NULL };

	(void)syscall_raw(SYS_dup3, channel, 0, 0, 0, 0, 0);
	(void)syscall_raw(SYS_close_range, 1, ~0u, 0, 0, 0, 0);
	keep_rights();
	(void)syscall_raw(SYS_execve, (long)path, (long)args, (long)env, 0, 0, 0);
	(void)syscall_raw(SYS_exit_group, 1, 0, 0, 0, 0, 0);
	__builtin_unreachable();
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
			become_keeper(path, channel, name);
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

static int start_locked(const char *path) REQUIRES(keeper.lock)
{
	char name[48];
	struct heard heard;
	int ends[2], err;

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "started without the lock");
	if (real.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	fd_table_forget(ends[0]);
	fd_table_forget(ends[1]);
	snprintf(name, sizeof(name), "vma: way back for %d",
		 (int)syscall_raw(SYS_getpid, 0, 0, 0, 0, 0, 0));
	err = start(path, ends[1], name);
	inside_close(ends[1]);
	if (!err)
		err = hear(ends[0], PATIENCE_SEC, &heard);
	if (!err && heard.word != KEEPER_ABI)
		err = -EPROTO;
	if (!err)
		err = fd_internal_adopt(ends[0], &keeper.fd);
	if (!err)
		return 0;
	/* which ends it, too */
	inside_close(ends[0]);
	return err;
}

static void forget_dead_locked(void) REQUIRES(keeper.lock)
{
	struct pollfd pfd = { .fd = atomic_load(&keeper.fd) };

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "looked without the lock");
	if (pfd.fd >= 0 && inside_poll(&pfd, 1) > 0)
		fd_internal_close(&keeper.fd);
}

int right_keeper_start(bool (*find_program)(const char *name, char *path, size_t size))
{
	char path[PATH_MAX];
	int err = 0;

	mutex_acquire(&keeper.lock);
	forget_dead_locked();
	if (!right_keeper_is_there()) {
		if (adopts_orphans())
			err = -ECHILD;
		else if (!find_program("vma_way_back", path, sizeof(path)))
			err = -ENOENT;
		else
			err = start_locked(path);
	}
	mutex_release(&keeper.lock);
	return err;
}

/* -- asking it ----------------------------------------------------------------------- */

/* The channel is of the namespace in which the keeper was started. */
static bool is_of_this_namespace(int channel)
{
	int here = real.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookies[2] = { 1, 2 };
	socklen_t len = sizeof(*cookies);
	bool is_known;

	if (here < 0)
		return false;
	is_known = real.getsockopt(channel, SOL_SOCKET, SO_NETNS_COOKIE, &cookies[0],
				   &len) == 0 &&
		   real.getsockopt(here, SOL_SOCKET, SO_NETNS_COOKIE, &cookies[1],
				   &len) == 0;
	inside_close(here);
	return is_known && cookies[0] == cookies[1];
}

static int tell_locked(int channel, const struct keeper_request *request, const int *fds)
	REQUIRES(keeper.lock)
{
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(KEEPER_FDS_MAX * sizeof(int))];
	} control;
	size_t size = keeper_fds_of_request(request) * sizeof(int);
	struct keeper_request copy = *request;
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "told without the lock");
	if (size) {
		control.first = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(size) };
		memcpy(CMSG_DATA(&control.first), fds, size);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(size);
	}
	return (int)MIN(inside_sendmsg(channel, &msg, MSG_NOSIGNAL), 0L);
}

static int ask_locked(const struct keeper_request *request, const int *fds, int *fds_out)
	REQUIRES(keeper.lock)
{
	unsigned cnt = keeper_fds_of_answer(request);
	bool is_repair = request->op == KEEPER_REPAIR;
	int channel = atomic_load(&keeper.fd), err;
	struct heard heard = { .fd_cnt = 0 };

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "asked without the lock");
	if (channel < 0 || (!is_repair && !is_of_this_namespace(channel)))
		return -EPERM;
	err = tell_locked(channel, request, fds);
	if (!err)
		err = hear(channel, is_repair ? PATIENCE_SEC : PATIENCE_OPENING_SEC,
			   &heard);
	if (!err && heard.fd_cnt == (heard.word ? 0 : cnt)) {
		for (unsigned i = 0; i < heard.fd_cnt; i++)
			fds_out[i] = heard.fds[i];
		return heard.word;
	}
	for (unsigned i = 0; i < heard.fd_cnt; i++)
		inside_close(heard.fds[i]);
	/* There was no room for them here. */
	if (!err && !heard.word)
		return -EMFILE;
	/* an answer that comes later would be taken for the next one */
	fd_internal_close(&keeper.fd);
	log_warn("the helper that gives connections back to the kernel does not answer (%s)%s",
		 strerror(err ? -err : EPROTO),
		 rights_is_net_admin() ?
			 "" :
			 ": what is accelerated stays so, new TCP sockets and interfaces are the kernel's");
	return -EPERM;
}

int right_keeper_ask(const struct keeper_request *request, const int *fds, int *fds_out)
{
	int err;

	if (!right_keeper_is_there())
		return -EPERM;
	mutex_acquire(&keeper.lock);
	err = ask_locked(request, fds, fds_out);
	mutex_release(&keeper.lock);
	return err;
}
