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
#include "os/netns.h"
#include "os/pidns.h"
#include "os/real.h"
#include "os/rights.h"

/* How long it may take to be ready, and to answer: a busy kernel takes its time to verify a
 * program, and other processes may have asked before. */
enum { PATIENCE_SEC = 10 };

static struct {
	/* One question at a time; also for who starts it. */
	struct mutex lock;
	/* The entry, which all have that it is for; -1: there is none. */
	_Atomic int entry;
	/* -1: this process has asked for nothing so far */
	_Atomic int channel;
	/* An older process of the program has started it. */
	bool is_inherited;
	/* the entry, for the time of a fork; or -1 */
	int kept;
} keeper = { .lock = MUTEX_INIT(LOCK_RANK_RIGHT_KEEPER),
	     .entry = -1,
	     .channel = -1,
	     .kept = -1 };

bool right_keeper_is_there(void)
{
	return atomic_load_explicit(&keeper.entry, memory_order_relaxed) >= 0;
}

void right_keeper_forked_first(void)
{
	keeper.kept = fd_internal_keep(&keeper.entry);
}

void right_keeper_forked(void)
{
	mutex_init(&keeper.lock, LOCK_RANK_RIGHT_KEEPER);
	keeper.is_inherited = true;
	atomic_store(&keeper.entry, -1);
	if (keeper.kept >= 0 && fd_internal_adopt(keeper.kept, &keeper.entry) != 0)
		inside_close(keeper.kept);
	keeper.kept = -1;
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

static int hear(int fd, struct heard *heard)
{
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(KEEPER_FDS_MAX * sizeof(int))];
	} control;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timespec patience = { .tv_sec = PATIENCE_SEC };
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

static int hear_that_it_is_ready(int channel)
{
	struct heard heard;
	int err = hear(channel, &heard);

	return !err && heard.word != KEEPER_ABI ? -EPROTO : err;
}

/* A pair of sockets of which one end becomes the keeper's. */
static int make_pair(int ends[2])
{
	if (real.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	fd_table_forget(ends[0]);
	fd_table_forget(ends[1]);
	return 0;
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
static _Noreturn void become_keeper(const char *path, int channel, int entry, char *name)
{
	char *args[] = { name, NULL }, *env[] = { NULL };

	/* Whatever the program has closed, the second end of a pair is never 0, and that of the
	 * second pair never 1. */
	(void)syscall_raw(SYS_dup3, channel, KEEPER_CHANNEL, 0, 0, 0, 0);
	(void)syscall_raw(SYS_dup3, entry, KEEPER_ENTRY, 0, 0, 0, 0);
	(void)syscall_raw(SYS_close_range, KEEPER_ENTRY + 1, ~0u, 0, 0, 0, 0);
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
static int start(const char *path, int channel, int entry, char *name)
{
	sigset_t all, old;
	long pid;

	sigfillset(&all);
	syscall_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old,
		    _NSIG / 8, 0, 0);
	pid = syscall_raw(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0) {
		if (syscall_raw(SYS_clone, 0, 0, 0, 0, 0, 0) == 0)
			become_keeper(path, channel, entry, name);
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
	int channel[2], entry[2], err;

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "started without the lock");
	err = make_pair(channel);
	if (err)
		return err;
	err = make_pair(entry);
	if (err)
		goto err_close_channel;
	snprintf(name, sizeof(name), "vma: way back for %d",
		 (int)syscall_raw(SYS_getpid, 0, 0, 0, 0, 0, 0));
	err = start(path, channel[1], entry[1], name);
	inside_close(entry[1]);
	if (err)
		goto err_close_entry;
	inside_close(channel[1]);
	channel[1] = -1;
	err = hear_that_it_is_ready(channel[0]);
	if (!err)
		err = fd_internal_adopt(channel[0], &keeper.channel);
	if (err)
		goto err_close_entry;
	channel[0] = -1;
	err = fd_internal_adopt(entry[0], &keeper.entry);
	if (!err) {
		keeper.is_inherited = false;
		return 0;
	}
	fd_internal_close(&keeper.channel);
err_close_entry:
	/* which ends it, too */
	inside_close(entry[0]);
err_close_channel:
	for (size_t i = 0; i < ARRAY_LEN(channel); i++)
		if (channel[i] >= 0)
			inside_close(channel[i]);
	return err;
}

static void forget_locked(void) REQUIRES(keeper.lock)
{
	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "forgotten without the lock");
	fd_internal_close(&keeper.channel);
	fd_internal_close(&keeper.entry);
}

/* The entry is of the namespace in which the keeper was started. */
static bool is_of_namespace(int entry, uint64_t netns)
{
	return netns && netns_of(entry) == netns;
}

/* One that is dead, or that a child in another namespace has inherited. */
static void forget_useless_locked(void) REQUIRES(keeper.lock)
{
	struct pollfd pfd = { .fd = atomic_load(&keeper.entry) };

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "looked without the lock");
	if (pfd.fd >= 0 && (inside_poll(&pfd, 1) > 0 ||
			    (keeper.is_inherited && !is_of_namespace(pfd.fd, netns_here()))))
		forget_locked();
}

int right_keeper_start(bool (*find_program)(const char *name, char *path, size_t size))
{
	char path[PATH_MAX];
	int err = 0;

	mutex_acquire(&keeper.lock);
	forget_useless_locked();
	if (!right_keeper_is_there()) {
		if (adopts_orphans() || pidns_of_children_is_another())
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

/* It never waits: of what was told before, all was answered, or is about to be read. */
static int tell(int fd, const struct keeper_request *request, const int *fds)
{
	union {
		struct cmsghdr first;
		char room[CMSG_SPACE(KEEPER_FDS_MAX * sizeof(int))];
	} control;
	size_t size = keeper_fds_of_request(request) * sizeof(int);
	struct keeper_request copy = *request;
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (size) {
		control.first = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(size) };
		memcpy(CMSG_DATA(&control.first), fds, size);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(size);
	}
	return (int)MIN(inside_sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT), 0L);
}

/* A child makes a channel of its own when it has something to ask. */
static int join_locked(void) REQUIRES(keeper.lock)
{
	const struct keeper_request request = { .op = KEEPER_JOIN };
	int ends[2], err;

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "joined without the lock");
	err = make_pair(ends);
	if (err)
		return err;
	err = tell(atomic_load(&keeper.entry), &request, &ends[1]);
	inside_close(ends[1]);
	if (!err)
		err = hear_that_it_is_ready(ends[0]);
	if (!err)
		err = fd_internal_adopt(ends[0], &keeper.channel);
	if (err)
		inside_close(ends[0]);
	return err;
}

/* The program may have closed it by a call that we have not seen. */
static bool has_locked(_Atomic int *fd) REQUIRES(keeper.lock)
{
	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "looked without the lock");
	if (!fd_internal_is_intact(fd))
		fd_internal_close(fd);
	return atomic_load(fd) >= 0;
}

static bool is_of_any_namespace(const struct keeper_request *request)
{
	return request->op == KEEPER_REPAIR || request->op == KEEPER_DROP;
}

/* For a channel or a message, which there may be later: the keeper has heard nothing of it. The
 * descriptors that a user has under way are counted. */
static bool is_for_want_of_room(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS ||
	       err == -EAGAIN || err == -ETOOMANYREFS;
}

static int ask_locked(const struct keeper_request *request, const int *fds, int *fds_out)
	REQUIRES(keeper.lock)
{
	unsigned cnt = keeper_fds_of_answer(request);
	struct heard heard = { .fd_cnt = 0 };
	int err = 0;

	INVARIANT(lock_witness_is_mine(&keeper.lock.witness), "asked without the lock");
	if (!has_locked(&keeper.entry)) {
		forget_locked();
		return -EPERM;
	}
	if (!is_of_any_namespace(request) &&
	    !is_of_namespace(atomic_load(&keeper.entry), netns_here()))
		return -EPERM;
	if (!has_locked(&keeper.channel))
		err = join_locked();
	if (!err)
		err = tell(atomic_load(&keeper.channel), request, fds);
	if (is_for_want_of_room(err))
		return err;
	if (!err)
		err = hear(atomic_load(&keeper.channel), &heard);
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
	forget_locked();
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

int right_keeper_tell(const struct keeper_request *request, uint64_t netns)
{
	int err = -EPERM;

	if (!right_keeper_is_there())
		return -EPERM;
	if (!mutex_try_acquire(&keeper.lock))
		return -EAGAIN;
	if (!has_locked(&keeper.entry))
		forget_locked();
	else if (is_of_namespace(atomic_load(&keeper.entry), netns))
		err = tell(atomic_load(&keeper.entry), request, NULL);
	mutex_release(&keeper.lock);
	return is_for_want_of_room(err) ? -EAGAIN : err;
}
