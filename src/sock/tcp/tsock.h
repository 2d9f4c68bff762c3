/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP sockets. Which of them are ours is decided late: at connect(), and for a
 * listener at the first accept() or wait. Until then, and where we have no way, all
 * calls are the twin's. A connection of ours is the engine's (tcp/tcp.h), and its twin,
 * which is bound and not connected, keeps the port; it can become the twin's at any
 * moment (tcp_way_back.h).
 */
#ifndef SOCK_TCP_TSOCK_H
#define SOCK_TCP_TSOCK_H

#include "sock/sock.h"

void tsocks_start(void);

/* Makes the object for a new kernel socket, with a reference; NULL: no memory. */
struct fd_object *tsock_create(int fd, int domain, int type) MUST_CHECK;

/* Publishes how connections stand, for readers of the statistics. One thread, about once a
 * second. */
void tsocks_publish(void);

/* Looks for connections whose peers' segments come another way. The same thread. */
void tsocks_ask_guards(void);

/* Whether listeners of ours allow others on their ports; then looks whether other
 * processes are there. The same thread. */
bool tsocks_share_ports(void);
void tsocks_look_at_ports(void);

/* Before a fork: the child's heirs can ask for what they need (`is_shared`, kin.h), or its
 * sockets are the kernel's. Before a program is started beside this one: what it inherits is the
 * kernel's. Before the process ends: the kernel delivers what we have not. */
void tsocks_before_fork(bool is_shared);
void tsocks_before_spawn(void);
void tsocks_before_exit(void);
bool tsocks_exist(void);
/* Before the process may lose the right to give connections back: a helper keeps it, or
 * all are the kernel's, and new ones as long as it has not got the right again. */
void tsocks_before_rights_go(void);
/* Before the helper can no longer be found, which the process may want later. */
void tsocks_before_root_changes(void);
/* Ends those that could not leave, or shall not, with what they have to deliver. */
void tsocks_end_what_stays(void);
void tsocks_rights_changed(bool may_go_back);
/* In the child of a fork. */
void tsocks_forked(void);

#endif
