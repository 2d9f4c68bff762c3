/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a socket's datagrams go: the ways that it remembers, by the names of peers, and
 * those of calls that ask for something of their own.
 */
#ifndef SOCK_UDP_WAYS_H
#define SOCK_UDP_WAYS_H

#include "sock/udp/udp_priv.h"

/* A send call, whichever it was. */
struct tx_call {
	const struct iovec *iov;
	size_t iov_cnt;
	size_t len;
	int flags;
	/* where to; NULL: where it is connected */
	const struct user_name *to;
	/* what this one asks for; NULL: nothing */
	const struct tx_control *control;
	/* of one that the program follows; or NULL */
	struct udp_draft *draft;
};

/* The entry of a call that asks for something of its own, or NULL. Under the stack's
 * lock, as all of these but the last. */
struct udp_way *udp_way_controlled(struct udp *u, const struct tx_call *call);

/* The socket's entry for a name, or NULL. Under the stack's lock. */
static ALWAYS_INLINE struct udp_way *udp_way_named(struct udp *u,
						   const struct ip_addr *addr,
						   __be16 port)
{
	for (int i = 0; i < UDP_WAYS; i++)
		if (u->ways[i].dst.query.remote_port == port &&
		    ip_addr_eq(&u->ways[i].dst.query.remote, addr))
			return &u->ways[i];
	return NULL;
}

/* The socket's entry for a destination; under the stack's lock. NULL: there is
 * none yet. */
static inline struct udp_way *udp_way_find(struct udp *u,
					   const struct tx_call *call)
{
	const struct user_name *to = call->to;

	if (UNLIKELY(call->control))
		return udp_way_controlled(u, call);
	if (!to)
		return u->sock.is_connected ? &u->ways[UDP_WAY_CONNECTED] : NULL;
	return udp_way_named(u, &to->addr, to->port);
}

/* A way to a peer that is new, made of one to another peer behind the same gateway.
 * NULL: there is none, so it has to be looked up. */
struct udp_way *udp_way_derive(struct udp *u, const struct stack *stack,
			       __be32 remote, __be16 port);

/* Looks the destination up, outside the stack's lock, and remembers the answer.
 * -ENOTCONN: there is none to look up. */
int udp_way_look_up(struct udp *u, const struct tx_call *call) MUST_CHECK;

#endif
