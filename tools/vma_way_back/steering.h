/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the helper does for interfaces that are driven by AF_XDP. A build without that has
 * none (no_steering.c). */
#ifndef TOOLS_VMA_WAY_BACK_STEERING_H
#define TOOLS_VMA_WAY_BACK_STEERING_H

#include "os/keeper_abi.h"

/* Before the filter of system calls. */
void steering_prepare(void);
/* As in dev/xdp/steer_load.h. */
int steering_load(const struct keeper_request *request, int *fds);
/* The link's fd. -EINVAL: the program is none of those that were loaded here. */
int steering_attach(const struct keeper_request *request, int prog);

#endif
