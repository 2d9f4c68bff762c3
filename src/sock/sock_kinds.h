/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which kinds of sockets there are. This is the only place that knows them by name.
 * What the library asks of a single socket are ops of its table (fd/fd_ops.h). Here
 * is what it asks of all sockets together.
 */
#ifndef SOCK_SOCK_KINDS_H
#define SOCK_SOCK_KINDS_H

#include "sock/sock.h"

/* Called once, before the first socket. */
void sock_kinds_start(const struct sock_params *params);

/* Whether we can accelerate sockets of this type at all. */
bool sock_kinds_may_serve(int type);

/* Makes the object for a new kernel socket, with a reference. NULL: there is none,
 * for *reason_out. */
struct fd_object *sock_kinds_create(int fd, int domain, int type, int protocol,
				    enum reason *reason_out) MUST_CHECK;

/* Called after news of interfaces, addresses or routes. This one and the next ones
 * are called inside the bracket. */
void sock_kinds_follow_news(void);
/* Called each second. */
void sock_kinds_each_second(void);
/* Whether sock_kinds_each_second has something to do. */
bool sock_kinds_want_seconds(void);
/* Called before each fork, behind it in the parent, before a program is started beside
 * this one, and before the process ends. */
void sock_kinds_before_fork(void);
/* The second part of it, where no other thread can fork. */
void sock_kinds_share(void);
void sock_kinds_after_fork(void);
void sock_kinds_before_spawn(void);
void sock_kinds_before_exit(void);
void sock_kinds_end_what_stays(void);
/* Called when all sockets have left, and our thread has ended. */
void sock_kinds_stop(void);
/* Called before the process becomes another program, which closes sockets. */
void sock_kinds_before_exec(void);

/* Called before the process may give up the right without which no connection goes back
 * to the kernel, or the directory with the program that keeps it; and after that, or
 * another change of its rights. */
void sock_kinds_before_rights_go(void);
void sock_kinds_before_root_changes(void);
void sock_kinds_rights_changed(bool may_go_back);

/* Called in the child of a fork, which has no sockets of ours: before its internal fds are
 * closed, and when all objects have been told. */
void sock_kinds_forked_first(void);
void sock_kinds_forked(void);

/* Whether a child of a fork may have sockets that are ours, too. */
bool sock_kinds_have_heirs(void);
/* Called from time to time while that is so: leaves to the kernel what is a child's
 * to read. True: there is more, and the next call decides on it. Inside the bracket. */
bool sock_kinds_look_after_heirs(void);

#endif
