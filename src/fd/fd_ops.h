/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an fd can be besides a plain fd of the kernel: an object with a table of
 * operations, one for each intercepted call on an fd.
 *
 * An op gets the call's own parameters, runs inside the bracket (os/thread.h)
 * with a reference to its object, and returns what the call returns or a
 * negative errno. It may return FD_PASS instead: the wrapper then leaves the
 * bracket, gives the reference back and lets libc do the call on the kernel fd,
 * the object's twin. What a kind does not implement does just that, so callers
 * never test a member. An op that has to wait does so with fd_wait.h.
 */
#ifndef FD_FD_OPS_H
#define FD_FD_OPS_H

#include <limits.h>
#include <stdatomic.h>

#include "base/list.h"
#include "os/real.h"
#include "stats/reasons.h"
#include "stats/stats_abi.h"

/* "Let libc do it on the twin." No call returns this value. */
#define FD_PASS LONG_MIN

/* A parameter list of calls.def without its parentheses. */
#define FD_UNWRAP(...) __VA_ARGS__

struct fd_object;

struct endpoint;
struct stack;

/* What the ready word of an object (fd_object.ready) says. */
enum fd_word {
	/* what our queues have; the twin has more, and can always be written to */
	FD_WORD_PART,
	/* all there is. What the twin says of itself is not so, and no set of the
	 * kernel's may have it. */
	FD_WORD_ALL,
	/* what our queues have; the twin has more */
	FD_WORD_BESIDE,
	/* nothing: it is the kernel's for good */
	FD_WORD_NOTHING,
};

enum fd_traffic {
	FD_RECEIVED,
	FD_SENT,
	/* the result is the new fd, or an errno */
	FD_ACCEPTED,
};

/* How a waiting call can hear of the object's data. A socket that the kernel has is
 * included: another thread may name it, connect it elsewhere or send from it, and a
 * thread that sleeps in the kernel by then would not hear what our rings bring. */
enum fd_await {
	FD_AWAIT_KERNEL, /* it is the kernel's for good */
	FD_AWAIT_STACK, /* by the endpoint, and the twin */
	/* the same, and there is no stack yet: by wait_early_begin, and the twin */
	FD_AWAIT_EARLY,
	/* by the endpoint alone: the twin tells nothing that is so */
	FD_AWAIT_ALONE,
};

/* The wrappers' way through the bracket, with the entry of the fd table and what it
 * named a moment ago. */
typedef ssize_t fd_recv_fn(int fd, void *buf, size_t len, int flags,
			   const _Atomic(struct fd_object *) *entry,
			   struct fd_object *named);
typedef ssize_t fd_send_fn(int fd, const void *buf, size_t len, int flags,
			   const _Atomic(struct fd_object *) *entry,
			   struct fd_object *named);

typedef ssize_t fd_sendto_fn(int fd, const void *buf, size_t len, int flags,
			     const struct sockaddr *addr, socklen_t addr_len,
			     const _Atomic(struct fd_object *) *entry,
			     struct fd_object *named);

/* Set by the wrappers before there is any object. */
struct fd_slow_calls {
	fd_recv_fn *recv;
	fd_send_fn *send;
	fd_sendto_fn *sendto;
};
extern HIDDEN struct fd_slow_calls fd_slow_calls;

struct fd_ops {
	/* A name for logs and tests. */
	const char *name;

	/* The fd numbers stay the library's own: they look closed to the
	 * program, and make way when it wants their number (fd_internal.h). */
	bool is_internal;
	/* its number is becoming another file: fd_change.h */
	bool is_change;

	/* Of the fds that name objects with these ops, so that a visit of a few among
	 * many ends with the last of them (fd_visit.h): how many there are, in the low
	 * half, and how often that has changed. NULL: not counted. */
	_Atomic uint64_t *numbers;

#define CALL_OP(ret, name, params, args) \
	long (*name)(struct fd_object *obj, FD_UNWRAP params);
#include "os/calls.def"

	/* recv, send and sendto once more, for the data path: called outside the bracket
	 * and without a reference. They do the whole call, the bracket and errno included,
	 * or undo what they did and return what fd_slow_calls returns. */
	fd_recv_fn *quick_recv;
	fd_send_fn *quick_send;
	fd_sendto_fn *quick_sendto;

	/* libc has done a call that the op passed on, and that moves data or has accepted
	 * a connection. Gets the result, or a negative errno. */
	void (*passed)(struct fd_object *obj, enum fd_traffic traffic,
		       long result);

	/* The object becomes the kernel's for good, with all that it holds: what is
	 * queued in it can be read from the twin afterwards. `fd` names it. Called
	 * inside the bracket, without a lock of ours. A second call does nothing. */
	void (*leave)(struct fd_object *obj, int fd, enum reason reason,
		      enum stats_decider decider);

	/* It could not leave: only this process can go on with it. After `leave`, in the
	 * bracket. */
	bool (*stays)(struct fd_object *obj);

	/* The twin has something to read or an error to tell: EPOLLIN, EPOLLERR.
	 * Any thread, inside the bracket, with or without a reference. */
	void (*twin_event)(struct fd_object *obj, uint32_t events);

	/* Says how a call that may block can hear of what the object gets, and
	 * gives the endpoint and the stack for that. Inside the bracket. */
	enum fd_await (*await)(struct fd_object *obj, struct endpoint **end_out,
			       struct stack **stack_out);

	/* Gives the endpoint to somebody who will watch it for long; a socket that
	 * is not bound yet gets a network for that. NULL: the socket is the
	 * kernel's for good. Inside the bracket. */
	struct endpoint *(*follow)(struct fd_object *obj,
				   struct stack **stack_out);

	/* What its ready word says at this moment. Of one that changes this, the watches
	 * are told of everything. Any thread, with or without a reference or a lock. */
	enum fd_word (*word)(const struct fd_object *obj);

	/* An edge-triggered set wants to hear when it can be written to. Of one whose word
	 * does not tell that, each send has to tell the watches from then on, as under
	 * Linux. Any thread, under locks. */
	void (*await_room)(struct fd_object *obj);

	/* Called after news of interfaces, addresses or routes. What is attached
	 * follows the news by itself. Inside the bracket. */
	void (*follow_news)(struct fd_object *obj, int fd);

	/* An fd that names the object is about to be closed, or to become another file,
	 * and names it still. Inside the bracket. */
	void (*before_close)(struct fd_object *obj, int fd);

	/* The last fd that named the object is about to be closed, or to become
	 * another file: `fd`, which is still the twin; -1: the object was in flight
	 * between processes. Calls may still be inside. No reply: close() succeeds. */
	void (*last_close)(struct fd_object *obj, int fd);

	/* Of one that lingers, when it has no number any more: its close has to wait for
	 * the peer. Once. FD_ABANDONED: the caller's reference is gone. Inside the
	 * bracket, without a lock. */
	long (*linger)(struct fd_object *obj);

	/* Nobody refers to the object any more. Its memory may be given to
	 * another object, but to nothing else ever: look-ups race with this. */
	void (*release)(struct fd_object *obj);

	/* Called in the child of a fork, where no fd names the object any more. The
	 * child has one thread, and no locks are held. */
	void (*forked)(struct fd_object *obj);

	/* Called before that, for each fd that named the object in the parent: what
	 * `fd` names here, with a reference, or NULL. */
	struct fd_object *(*heir)(struct fd_object *obj, int fd);

	/* Called in the child for an object of the parent's that was alive at the fork,
	 * by its heir, one thread at a time: an option of the socket that the twin does
	 * not know. FD_PASS: it is the twin's. */
	long (*heir_option)(struct fd_object *obj, int level, int name,
			    void *value, socklen_t *len);
};

/* The part that all kinds of objects begin with. */
struct fd_object {
	/* One for each fd that names it and each call inside it; 0: not in
	 * use. */
	_Atomic int refs;
	_Atomic int fd_cnt;
	/* last_close has found that `linger` is due */
	_Atomic bool lingers;
	/* fixed while refs is not 0, and read at any time */
	const struct fd_ops *_Atomic ops;
	/* What it is ready for, by our queues (enum ready_bit); NULL: nobody says.
	 * Read at any time, also when the object is gone. */
	const _Atomic uint32_t *_Atomic ready;
	/* The twin's inode, by which an fd that arrives in a control message is
	 * recognised; 0: cannot be passed. */
	ino_t inode;
	struct list by_inode;
};

/* Fills the members that are NULL with the op that passes. Once for each
 * table, before its first use. */
void fd_ops_fill(struct fd_ops *ops);

#endif
