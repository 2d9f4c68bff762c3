/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rp_filter for the demultiplexer, which cannot ask for routes: ranges of source
 * addresses that an interface admits, computed when routes change and looked at
 * when a sender is new. Fixed once made.
 */
#ifndef NET_RPF_H
#define NET_RPF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "nl/net_view.h"

struct rpf;

/* What the view says of these interfaces, for packets to these addresses of this
 * host. NULL in *rpf_out: everything is admitted. -ENOMEM; -E2BIG: too many routes
 * and addresses to compute it. */
int rpf_make(const struct net_view *view, const int *ifindexes,
	     unsigned ifindex_cnt, const __be32 *own, unsigned own_cnt,
	     struct rpf **rpf_out) MUST_CHECK;
/* NULL is a no-op. */
void rpf_free(struct rpf *rpf);

/* NULL admits everything. */
bool rpf_admits(const struct rpf *rpf, uint32_t ifindex, __be32 src, __be32 dst);

#endif
