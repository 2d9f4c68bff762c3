/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /dev/infiniband/rdma_cm, as far as software uses it that wants to know which
 * device an address belongs to: identifiers, binding, address and route
 * resolution, and the events of these. An address is resolved when the kernel
 * knows its neighbour, which it is asked to find. There are no connections.
 */
#ifndef SOFTCX_RDMA_CM_H
#define SOFTCX_RDMA_CM_H

#include "base/compiler.h"

/* Makes the descriptor, just opened, a connection manager's. */
MUST_CHECK int rdma_cm_open(int fd);
/* Looks how the resolutions that go on are doing; how many ended. */
int rdma_cm_step_locked(void);
/* In a forked child: the resolutions are the parent's. */
void rdma_cm_forget_locked(void);

#endif
