/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bond as one device: it is made of a device for each of its ports, and a ring of it of
 * a ring for each. Which ports send and receive is the decision of the kernel's driver,
 * whose monitoring and whose LACP go on as they do without us; dev_ops.ports_changed says
 * which they are. Of a bond that balances (802.3ad), each frame leaves by the port that
 * its policy gives to the flow, so that a flow stays in order.
 *
 * All ports have the same regions: what one has received another can send. Only back ends
 * with backend.shares_regions can do that.
 *
 * It has no rings of single senders (paces), and says of no frame when it has left.
 */
#ifndef DEV_BOND_BOND_H
#define DEV_BOND_BOND_H

#include "dev/backend.h"

/* As backend.open, which it calls for each port of request->bond. Not all modes can be
 * driven, and either all ports are driven by the back end or none is. */
int bond_open(struct backend *backend, const struct backend_request *request,
	      struct dev **dev_out, struct dev_verdict *why_out) MUST_CHECK;

#endif
