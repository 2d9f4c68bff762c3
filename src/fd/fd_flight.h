/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects on their way through a local socket (SCM_RIGHTS). The program may close
 * its fd before the message is received. The object has to outlive that, as the
 * kernel's socket does. We never hear about a message that another process
 * receives, or that nobody receives, so only the latest ones are kept.
 */
#ifndef FD_FD_FLIGHT_H
#define FD_FD_FLIGHT_H

#include "fd/fd_ops.h"

/* The object that `fd` names, if any, is about to be sent. */
void fd_flight_start(int fd);

/* One sending of `obj` has ended: it arrived in this process, or failed. Does
 * nothing when it is not in flight. The caller holds a reference. */
void fd_flight_end(struct fd_object *obj);

/* In the child of a fork: nothing is in flight. */
void fd_flight_forked(void);

#endif
