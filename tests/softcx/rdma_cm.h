/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * /dev/infiniband/rdma_cm, as far as software uses it that wants to know which
 * device an address belongs to: identifiers, binding, address and route
 * resolution, and the events of these. There are no connections.
 */
#ifndef SOFTCX_RDMA_CM_H
#define SOFTCX_RDMA_CM_H

#include "base/compiler.h"

/* Makes the descriptor, just opened, a connection manager's. */
MUST_CHECK int rdma_cm_open(int fd);

#endif
