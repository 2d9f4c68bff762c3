/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From options to sockets that have a network: opens the back ends, makes the
 * network and the progress thread when the first socket needs them, and decides
 * by the rules.
 */
#ifndef CORE_NETWORK_H
#define CORE_NETWORK_H

#include "conf/options.h"
#include "conf/rules.h"
#include "dev/ring.h"
#include "fd/fd_ops.h"
#include "stats/reasons.h"

/* Once, at the start of the runtime; both stay as they are. */
void network_configure(const struct options *options,
		       const struct rules *rules);

/* Whether sockets of this type may become ours at all. */
bool network_may_serve(int type);

/* The object for a new kernel socket, or NULL and the reason. */
struct fd_object *network_make_socket(int fd, int domain, int type,
				      int protocol, int *reason_out);

/* An interface that the process talks to itself by (test builds). Before the
 * first socket. */
/* Before a fork, and before the process ends, inside the bracket: what belongs to
 * processes that will have our sockets too. */
void network_before_fork(void);
void network_before_exit(void);
void network_set_local_dev(struct dev *dev);

bool network_is_made(void);

/* There is an io_uring: all sockets are the kernel's. Inside the bracket, without a
 * lock. */
void network_leave_to_rings(void);

/* All sockets have left: the progress thread ends, and no call is made any more. */
void network_stop(void);

/* In the child of a fork: there is no network yet. */
void network_forked(void);

#endif
