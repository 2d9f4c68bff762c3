/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which RDMA device, and which of its ports, is an interface of the kernel's. */
#ifndef DEV_RDMA_FIND_H
#define DEV_RDMA_FIND_H

#include <stdbool.h>

/*
 * The port of the RDMA device whose folder in sysfs is `dir` that belongs to this
 * interface; 0: none, or sysfs does not show the interface below the device. A device with
 * several interfaces has a port for each. One whose ports do not name theirs has the number
 * in the interface's dev_port.
 */
unsigned rdma_find_port(const char *dir, int ifindex, const char *name);

/* Whether the device is that of a whole bond of this name: with RoCE, the ports of one card
 * that are bonded become one RDMA device with one port. */
bool rdma_is_bond(const char *dir, const char *name);

#endif
