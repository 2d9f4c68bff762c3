/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which kinds of sockets there are: the one place that knows them by name. What the
 * library asks of a single socket are ops of its table (fd/fd_ops.h); this is what
 * it asks of all of them.
 */
#ifndef SOCK_SOCK_KINDS_H
#define SOCK_SOCK_KINDS_H

#include "sock/sock.h"

/* Once, before the first socket. */
void sock_kinds_start(const struct sock_params *params);

/* Whether sockets of this type may become ours at all. */
bool sock_kinds_may_serve(int type);

/* The object for a new kernel socket, with a reference, or NULL and the reason. */
struct fd_object *sock_kinds_create(int fd, int domain, int type, int protocol,
				    enum reason *reason_out) MUST_CHECK;

/* Inside the bracket: after news of interfaces, addresses or routes, */
void sock_kinds_follow_news(void);
/* each second, */
void sock_kinds_each_second(void);
/* whether that has something to do, */
bool sock_kinds_want_seconds(void);
/* before each fork, and before the process ends. */
void sock_kinds_before_fork(void);
void sock_kinds_before_exit(void);

/* In the child of a fork: there are no sockets. */
void sock_kinds_forked(void);

/* Whether a child may have sockets that are ours. */
bool sock_kinds_have_heirs(void);
/* Now and then, when that is so: what is a child's to read becomes the kernel's. True:
 * the next call decides on more. Inside the bracket. */
bool sock_kinds_look_after_heirs(void);

#endif
