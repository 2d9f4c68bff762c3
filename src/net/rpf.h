/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rp_filter for the demultiplexer, which cannot look up routes. For each interface
 * we compute the ranges of source addresses that it admits, whenever routes change.
 * The demultiplexer looks at them when a sender is new. A struct rpf does not change
 * once it is made.
 */
#ifndef NET_RPF_H
#define NET_RPF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "nl/net_view.h"

struct rpf;

/* Asks the view about these interfaces, for packets to these addresses of this host.
 * NULL in *rpf_out: every source is admitted. -ENOMEM. -E2BIG: there are too many
 * routes and addresses to compute it. */
int rpf_make(const struct net_view *view, const int *ifindexes,
	     unsigned ifindex_cnt, const __be32 *own, unsigned own_cnt,
	     struct rpf **rpf_out) MUST_CHECK;
/* Does nothing for NULL. */
void rpf_free(struct rpf *rpf);

/* Whether the interface admits packets from `src` to `dst`. NULL admits everything. */
bool rpf_admits(const struct rpf *rpf, uint32_t ifindex, __be32 src, __be32 dst);

#endif
