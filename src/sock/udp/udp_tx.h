/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending a datagram, for the calls that read it in forms of their own (udp_msgs.c). */
#ifndef SOCK_UDP_TX_H
#define SOCK_UDP_TX_H

#include "sock/udp/udp_ways.h"

/* Whether the way leads through a stack; otherwise the kernel does it, or says why not. */
bool udp_is_by_stack(struct udp *u, int fd, int flags);

/* Each is a call's result. */
long udp_send_call(struct udp *u, int fd, const struct tx_call *call);
/* The same where the shortest way does not do: the program follows the datagram, or the
 * twin sends it. */
COLD long udp_send_oddly(struct udp *u, int fd, const struct tx_call *call);

/* A name that is none, unless Linux takes it for one of AF_INET. */
COLD bool udp_read_odd_name(const struct udp *u, const struct sockaddr *addr, socklen_t len,
			    struct user_name *to) MUST_CHECK;
/* Where a call sends to. False: it is for the kernel to judge. */
static inline bool udp_read_name(const struct udp *u, const struct sockaddr *addr,
				 socklen_t len, struct user_name *to)
{
	return (LIKELY(user_name_read(u->sock.domain, addr, len, to) == 0) ||
		udp_read_odd_name(u, addr, len, to)) &&
	       to->port;
}

/* Sends it if it is short and may leave at once. */
bool udp_send_short_locked(struct udp *u, struct stack *stack, const struct tx_call *call)
	REQUIRES(stack->lock);

/* The twin sends it. It may have an error to tell now, or have one for the next receive.
 * With MSG_MORE it keeps the bytes, and has to get the rest as well. */
COLD long udp_leave_to_twin(struct udp *u, int flags);
/* The same for what the twin has to send because of how it is asked. */
COLD long udp_leave_asked(struct udp *u, int fd, int flags, const char *what);
/* The same where that would be the flags. */
COLD long udp_leave_for(struct udp *u, int fd, int flags);
/* The same for one that the program follows. */
COLD long udp_leave_followed(struct udp *u, int fd, int flags);

#endif
