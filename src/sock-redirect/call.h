/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every wrapper is made of. A wrapper is a function with a name of our own
 * that is exported under the name of the call. So neither the attributes nor the
 * inline variants of libc's headers apply to it, and no code of ours calls it by
 * accident.
 */
#ifndef SOCK_REDIRECT_CALL_H
#define SOCK_REDIRECT_CALL_H

#include <errno.h>

#include "fd/fd_table.h"
#include "fd/fd_wait.h"
#include "iomux/mux.h"
#include "os/real.h"
#include "os/thread.h"

#define CALL_REAL(ret, name, params, args) \
	EXPORT ret shim_##name params __asm__(#name);
/* A call with a variable list is taken over with as many fixed parameters as it can
 * have. On the machines we run on, integers and pointers are passed in the same
 * registers either way. An argument that the caller left out is passed on without
 * being looked at. A va_list would cost each call a dozen stores. */
#define CALL_REAL_VA(ret, name, va_params, params, args) \
	EXPORT ret shim_##name params __asm__(#name);
#include "os/calls.def"
#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(__powerpc64__)
#error "check that variable arguments travel like fixed ones on this machine"
#endif

enum call_id {
#define CALL_NAME(name) CALL_ID_##name,
#include "os/calls.def"
	CALL_ID_COUNT
};

/* Test builds count entries and ops, so that a test can prove which way a call
 * went. Children of a fork use the same counters. */
#ifdef VMA_TEST
extern _Atomic unsigned long *call_entries, *call_ops; /* by enum call_id */
#define CALL_ENTERED(name)                                          \
	atomic_fetch_add_explicit(&call_entries[CALL_ID_##name], 1, \
				  memory_order_relaxed)
#define CALL_REACHED_OP(name)                                   \
	atomic_fetch_add_explicit(&call_ops[CALL_ID_##name], 1, \
				  memory_order_relaxed)
#else
#define CALL_ENTERED(name) ((void)0)
#define CALL_REACHED_OP(name) ((void)0)
#endif

/* A call on an object in progress. */
struct fd_call {
	struct fd_object *obj;
	/* errno, looked up once, and what it was */
	int *errno_at;
	int saved_errno;
};

/* For the case that the thread is odd: the call comes from inside the library, or a
 * handler may have jumped out of an earlier one. True: it comes from inside. */
COLD bool fd_call_is_odd(void);

/* Enters the bracket with the object that an entry of the table names; NULL is
 * none. False, and outside, when it names none or the call comes from inside the
 * library. */
static ALWAYS_INLINE bool
fd_call_begin(struct fd_call *call, const _Atomic(struct fd_object *) *entry)
{
	if (!entry || (UNLIKELY(os_thread.is_odd) && fd_call_is_odd()))
		return false;
	call->errno_at = &errno;
	call->saved_errno = *call->errno_at;
	os_enter_first();
	call->obj = fd_table_get_at(entry);
	if (LIKELY(call->obj))
		return true;
	os_leave_last();
	*call->errno_at = call->saved_errno;
	return false;
}

enum fd_verdict {
	FD_CALL_DONE,  /* return the result */
	FD_CALL_LIBC,  /* the object leaves it to libc */
	FD_CALL_AGAIN, /* from the beginning */
};

/* The rest of fd_call_end for results that are none. */
COLD enum fd_verdict fd_call_end_odd(const struct fd_call *call, long *result);

/* Leaves the bracket with an op's result, which becomes the call's result and
 * errno. Errno is written here and at the ends of quick ops (fd/fd_quick.h), and
 * nowhere else; on success it is left as it was. */
static ALWAYS_INLINE enum fd_verdict fd_call_end(const struct fd_call *call,
						 long *result)
{
	long n = *result;

	if (UNLIKELY(n <= FD_ABANDONED))
		return fd_call_end_odd(call, result);
	fd_object_put(call->obj);
	os_leave_last();
	*call->errno_at = n < 0 ? (int)-n : call->saved_errno;
	*result = n < 0 ? -1 : n;
	return FD_CALL_DONE;
}

/* Tells the object the result of a call that libc has done for it, as libc returned
 * it. Returns `result`, and leaves errno as it is. */
COLD long fd_call_passed(int fd, enum fd_traffic traffic, long result);

COLD void fd_call_copied_set(int fd);

/* To be called before there is any object. */
void fd_calls_load(void);
void mux_calls_load(void);

/* To be called before core prepares for forks, so that our part of a fork runs
 * inside core's part. */
void process_calls_load(void);

/* Whether this mode and program of seccomp install a filter. */
bool process_is_filter(unsigned long mode, const void *program);

/* A call by its number that makes a child with a copy of everything. The second one waits for
 * the child's exec or end, for which the kernel is not asked: what a fork holds others want. */
struct numbered_call {
	long number;
	long args[6];
};
pid_t process_fork_by_number(const struct numbered_call *call);
pid_t process_vfork_by_number(const struct numbered_call *call);

/* Whether the parent of a child by clone() with these flags waits for its exec or end. */
bool process_is_awaited(uint64_t flags);

/* Whether a child of clone() with these flags shares either our memory or our fds, but not
 * both, and is none that borrows them until it runs another program. */
bool process_parts_fds(uint64_t flags);

/* The calling thread is about to get fds of its own, if others have them, too. */
void process_gets_own_fds(void);
/* The process is about to get this effective user, or these rights (capset). */
void process_becomes(uid_t euid);
void process_gets(const void *header, const void *data);

/* A call that is a wrapper of its own alone. */
EXPORT int shim_pidfd_getfd(int pidfd, int fd, unsigned flags) __asm__("pidfd_getfd");

/* The fd is about to get another number as well. A set of epoll is known from then on,
 * or the two would not be one. errno is as before. */
static inline void fd_call_copied(int fd)
{
	if (UNLIKELY(mux_is_noted(fd)) && !os_is_inside())
		fd_call_copied_set(fd);
}

/* What the object's `fd` names is about to have the number new_fd as well. libc's streams read
 * and write by the first three numbers, through functions that nobody can intercept, so a
 * socket is the kernel's from then on. Inside the bracket. */
void fd_call_may_be_stream(struct fd_object *obj, int fd, int new_fd);

/* A call has returned new_fd, a copy of `fd`, which names this object: now it does so as
 * well. Inside the bracket. */
void fd_call_name_copy(struct fd_object *obj, int fd, int new_fd);

/* A call has returned the fd of a file that another process has, too. Where that is a socket
 * of this process, the fd names its object, which is returned with a reference, or NULL.
 * Inside the bracket. */
struct fd_object *fd_call_adopt(int fd) MUST_CHECK;

/* close() where libc's is no cancellation point. */
int table_close(int fd);

/* F_DUPFD in both forms: the new number names what the old one names. errno is
 * set. */
int fd_call_duplicate(int fd, int cmd, void *arg);

#endif
