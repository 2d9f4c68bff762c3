/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every wrapper is made of. A wrapper is a function of our own name that is
 * exported under the call's: so neither the attributes nor the inline variants of
 * libc's headers apply to it, and no code of ours calls it by accident.
 */
#ifndef SOCK_REDIRECT_CALL_H
#define SOCK_REDIRECT_CALL_H

#include <errno.h>

#include "os/real.h"
#include "os/thread.h"
#include "sock/fd_table.h"
#include "sock/fd_wait.h"

#define CALL_REAL(ret, name, params, args) \
	EXPORT ret shim_##name params __asm__(#name);
/* Calls with a variable list are taken over with as many fixed parameters as they
 * can have. The machines we run on pass integers and pointers in the same
 * registers either way, and what the caller left out is passed on as unread as it
 * came; a va_list would cost each call a dozen stores. */
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

/* Test builds count entries and ops, so that a test can prove which way it
 * went. Children of a fork count in the same place. */
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
	int saved_errno;
};

/* Enters the bracket with the object that `fd` names. False, and outside, when
 * it names none or the call comes from inside the library. */
bool fd_call_begin_slow(struct fd_call *call, int fd) MUST_CHECK;

static inline bool fd_call_begin(struct fd_call *call, int fd)
{
	return UNLIKELY(fd_table_has(fd)) && fd_call_begin_slow(call, fd);
}

enum fd_verdict {
	FD_CALL_DONE,  /* return the result */
	FD_CALL_LIBC,  /* the object leaves it to libc */
	FD_CALL_AGAIN, /* from the beginning */
};

/* Leaves the bracket with an op's result, which becomes the call's result and
 * errno. The one place that writes errno; on success it is as it was. */
enum fd_verdict fd_call_end(struct fd_call *call, long *result);

/* F_DUPFD in both forms: the new number names what the old one names. errno is
 * set. */
int fd_call_duplicate(int fd, int cmd, void *arg);

#endif
