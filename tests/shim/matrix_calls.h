/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the matrix makes each intercepted call (matrix_calls.c), and what it has to
 * prepare for it (matrix.c). */
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
/* A way out that is not one of the calls. */
void real_exit(int status) __attribute__((noreturn));
struct sockaddr_in loopback(int port);

#endif
