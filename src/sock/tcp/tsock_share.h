/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listeners with SO_REUSEPORT, of which several have one port. Those of a port are ours
 * together, or the kernel's together: where each of them gets a share of the connections,
 * nobody may be left out. The engine spreads what comes to us (tcp_listen_shared), the
 * kernel what comes to it.
 *
 * All of them are known here by their ports, whoever serves them. Listeners of other
 * processes, and those of this one that have no object, are found in /proc/net/tcp: when one
 * of ours joins its twin, and once a second.
 */
#ifndef SOCK_TCP_TSOCK_SHARE_H
#define SOCK_TCP_TSOCK_SHARE_H

#include "sock/tcp/tsock_priv.h"

/* It listens, or has just been given SO_REUSEPORT: if it shares its port it is known here
 * from now on. With `config`. */
void tsock_share(struct tsock *t, int fd);
/* It does not listen any more. With `config`, or nobody has it. */
void tsock_unshare(struct tsock *t);

/* Why one that shares its port may not be ours; REASON_NONE: it may. With `config`. */
enum reason tsock_share_reason(struct tsock *t) MUST_CHECK;
/* Whether others of its port are ours. With `config`. */
bool tsock_shares_with_ours(const struct tsock *t);
/* It is ours now, unless one of its port has become the kernel's since the question before:
 * then it goes there as well. With `config`. */
void tsock_share_joined(struct tsock *t);
/* If it is ours, so are the others from now on. Without a lock. */
void tsock_share_joins(struct tsock *t);
/* It is the kernel's from now on: so are the others, each as soon as nobody waits for it
 * here. With `config`. */
void tsock_share_leaves(struct tsock *t);

void tsocks_share_forked(void);

#endif
