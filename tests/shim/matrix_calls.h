/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the matrix makes each intercepted call (matrix_calls.c, matrix_files.c,
 * matrix_processes.c), and what it has to prepare for it (matrix.c). */
#ifndef SHIM_MATRIX_CALLS_H
#define SHIM_MATRIX_CALLS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum condition {
	COND_VALID,
	COND_NULL,
	COND_BAD_FD,
	COND_CLOSED,
	COND_WRONG_TYPE,
	COND_NONBLOCKING,
	COND_INTERRUPTED,
	COND_CNT,
};

/* What the call's fd is when all is well. */
enum role {
	ROLE_NONE, /* takes no fd */
	ROLE_STREAM, /* connected, data waiting unless it is to block */
	ROLE_SENDER, /* connected, buffer full when it is to block */
	ROLE_LISTENER,
	ROLE_DGRAM,
	ROLE_SOCKET, /* fresh */
	ROLE_FILE,
};

struct cell {
	const struct call *call;
	enum condition condition;
	int fd, peer;
	bool is_null;
	char buf[64];
	char shown[256]; /* what else is compared */
};

struct call {
	const char *name;
	enum role role;
	unsigned not_in; /* bit n: condition n makes no sense */
	bool may_touch_errno; /* on success, libc does too */
	long (*run)(struct cell *c);
};

extern const struct call calls[];
extern const size_t calls_cnt;

/* Adds to what the cell prints. */
void cell_show(struct cell *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Shows what arrived and gives the result on. */
long cell_shown(struct cell *c, long n);
/* A sending call's data has to get to the other end, too. */
long cell_sent(struct cell *c, long n);
/* Whether the fd that came back is open, and closes it. */
long cell_new_fd(struct cell *c, long fd);
/* The pointer, or what the condition puts in its place; a function, so that the
 * compiler does not see the NULL. */
void *cell_pointer(const struct cell *c, const void *p);
#define P(x) ((__typeof__(&*(x)))cell_pointer(c, x))

/* A way out that is not one of the calls. */
void real_exit(int status) __attribute__((noreturn));
struct sockaddr_in loopback(int port);

#define CALL(name, role, not_in) long do_##name(struct cell *c);
#define CALL_ERRNO CALL
#include "tests/shim/matrix_calls.def"
#undef CALL
#undef CALL_ERRNO

#endif
