/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP sockets: what the library as a whole asks of them, beyond the ops that each
 * has (sock/sock_kinds.c). */
#ifndef SOCK_UDP_UDP_H
#define SOCK_UDP_UDP_H

#include "sock/sock.h"

/* Once, before the first socket. */
void udp_start(void);

/* The object for a new kernel socket, with a reference, or NULL: no memory. */
struct fd_object *udp_create(int fd, int domain, int type) MUST_CHECK;

/* In the child of a fork: there are no sockets, and whatever another thread of the
 * parent was about is nobody's. */
void udp_forked(void);

/* Each second: sockets whose port another process has by now, too, go back to the
 * kernel. Inside the bracket. */
void udp_look_at_ports(void);
/* Whether there is something to look for, each second. */
bool udp_looks_at_ports(void);

/* -- sockets that a child of a fork has too (udp_heir.c) -- */

/* Inside the bracket, before each fork: what is queued becomes the kernel's, for
 * either process to read. */
void udp_before_fork(void);
/* The same for a child that is another program at once: of what that inherits. */
void udp_before_spawn(void);
/* Whether there may be such sockets. */
bool udp_has_heirs(void);
/* Now and then: those whose datagrams nobody has read, or waited for, since the
 * call before are the kernel's from now on. True: there are some that the next
 * call decides on. Inside the bracket. */
bool udp_look_after_heirs(void);
/* The same for all of them, before the process ends. Inside the bracket. */
void udp_before_exit(void);

#endif
