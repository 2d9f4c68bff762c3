/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From options to sockets that have a network: opens the back ends, makes the
 * network and the progress thread when the first socket needs them, and asks the
 * rules which sockets are the kernel's.
 */
#ifndef CORE_NETWORK_H
#define CORE_NETWORK_H

#include "conf/options.h"
#include "conf/rules.h"
#include "dev/ring.h"
#include "fd/fd_ops.h"
#include "stats/reasons.h"

/* Called once, at the start of the runtime. Both arguments must stay as they are. */
void network_configure(const struct options *options, const struct rules *rules,
		       const char *program);

/* Whether we can accelerate sockets of this type at all. */
bool network_may_serve(int type);

/* The object for a new kernel socket, or NULL and the reason. */
struct fd_object *network_make_socket(int fd, int domain, int type,
				      int protocol, int *reason_out);

/* Before a fork, before a program is started beside this one, and before the process ends:
 * look after sockets that other processes have as well. Behind a fork, in the parent. All
 * inside the bracket. */
void network_before_fork(void);
/* The second part of it, where no other thread can fork. */
void network_share(void);
void network_after_fork(void);
void network_before_spawn(void);
void network_before_exit(void);
/* What has not left to the kernel though it should ends. */
void network_end_what_stays(void);
/* Before the process becomes another program: what closing still has to deliver is the
 * kernel's. */
void network_before_exec(void);
/* It has not become one. */
void network_goes_on(void);
/* Around a call by which the process may lose rights, or get them. */
void network_before_rights_go(void);
void network_rights_changed(bool may_go_back);
/* Before our modules, and the helper that keeps rights, can no longer be found. */
void network_before_root_changes(void);
/* Sets the device by which the process talks to itself (test builds). Call it before
 * the first socket. */
void network_set_local_dev(struct dev *dev);

bool network_is_made(void);

/* There is a ring of io_uring, so all sockets go to the kernel. Inside the bracket,
 * without a lock. */
void network_leave_to_rings(void);

/* All sockets have left. Ends the progress thread; nothing of the network runs any
 * more. */
void network_stop(void);

/* While the kernel is asked for what it does for the only thread of a process. True: to be
 * ended by network_end_alone, which returns false when our thread does not start again. Inside
 * the bracket, without a lock. */
bool network_begin_alone(void);
bool network_end_alone(void);

/* Called in the child of a fork, which has no network yet: before its internal fds are
 * closed, and last. */
void network_forked_first(void);
void network_forked(void);

#endif
