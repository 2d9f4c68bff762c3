/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stops a thread of this process where it has entered the kernel and the kernel has not looked at
 * the call's number yet, for programs that do something to that number then. It is a filter of
 * the thread's own, which the library does not see.
 */
#ifndef SUPPORT_STOPPER_H
#define SUPPORT_STOPPER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "base/syscall_raw.h"
#include "tests/support/sleeper.h"

/* From now on the calling thread stops at each call with this number, if argument `arg` has the
 * flags. Returns the fd by which others hear of it. */
static inline int stopper_set(uint32_t number, unsigned arg, uint32_t flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
		/* its lower half */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, flags),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	syscall_raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	return (int)syscall_raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, (long)&filter, 0, 0, 0);
}

static inline bool stopper_has_stopped(int stopper, int ms, uint64_t *id_out)
{
	struct pollfd pfd = { .fd = stopper, .events = POLLIN };
	struct seccomp_notif call = { 0 };

	if (poll(&pfd, 1, ms) <= 0 || ioctl(stopper, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
		return false;
	*id_out = call.id;
	return true;
}

static inline void stopper_go_on(int stopper, uint64_t id)
{
	struct seccomp_notif_resp answer = {
		.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
	};

	(void)!ioctl(stopper, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* The thread goes on from each stop until it sleeps. */
static inline void stopper_await_sleep(int stopper, pid_t tid)
{
	uint64_t id;

	for (int i = 0; i < 5000; i++) {
		/* in a stop it seems to sleep, too */
		bool sleeps = sleeper_is_asleep(tid);

		if (stopper_has_stopped(stopper, !sleeps, &id))
			stopper_go_on(stopper, id);
		else if (sleeps)
			return;
	}
}

struct stopper_change {
	int fd, by, next;
	_Atomic bool is_done;
};

static inline void *stopper_change(void *arg)
{
	struct stopper_change *change = arg;

	close(change->fd);
	change->next = fcntl(change->by, F_DUPFD, change->fd);
	change->is_done = true;
	return NULL;
}

/* The number is closed, and becomes that of a copy of `by`, in the next stop of the thread, or
 * when that says to be over without one. Returns the copy's, when the thread is over. */
static inline int stopper_replace(int stopper, int fd, int by, const _Atomic bool *is_over)
{
	struct stopper_change change = { .fd = fd, .by = by };
	bool has_stopped = false;
	pthread_t thread;
	uint64_t id;

	while (!has_stopped && !*is_over)
		has_stopped = stopper_has_stopped(stopper, 10, &id);
	pthread_create(&thread, NULL, stopper_change, &change);
	/* a close that waits for the call does not say so */
	for (int i = 0; has_stopped && !change.is_done && i < 50; i++)
		usleep(1000);
	if (has_stopped)
		stopper_go_on(stopper, id);
	while (!*is_over)
		if (stopper_has_stopped(stopper, 10, &id))
			stopper_go_on(stopper, id);
	pthread_join(thread, NULL);
	return change.next;
}

#endif
