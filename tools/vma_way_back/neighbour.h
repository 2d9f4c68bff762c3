/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Has the kernel look for neighbours. One fixed message of rtnetlink: what keeps rights is to
 * have little in it, and libnl would be more than all the rest. */
#ifndef TOOLS_VMA_WAY_BACK_NEIGHBOUR_H
#define TOOLS_VMA_WAY_BACK_NEIGHBOUR_H

#include "os/keeper_abi.h"

/* Before the filter of system calls. */
void neighbour_prepare(void);
void neighbour_confirm(const struct keeper_request *request);

#endif
