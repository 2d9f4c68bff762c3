/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ops that are used where a ring or a device has none of its own. Compiled into
 * each back end, like services.c.
 */
#include "config.h"

#include <errno.h>

#include "dev/ring.h"

/* All frames are taken by rx_poll. */
static struct ring_frame peek_nothing(struct ring *ring UNUSED)
{
	return RING_NO_FRAME;
}

static void nothing(struct ring *ring UNUSED)
{
}

/* There is no tx_frame. */
static void commit_nothing(struct ring *ring UNUSED, size_t len UNUSED)
{
}

static void follow_nothing(struct ring *ring UNUSED, struct pkt *record UNUSED)
{
}

static bool any_fits(struct ring *ring UNUSED, uint32_t cnt UNUSED,
		     uint32_t copied UNUSED)
{
	return true;
}

static bool has_left(struct ring *ring UNUSED)
{
	return true;
}

static enum ring_kick kick_nothing(struct ring *ring UNUSED)
{
	return RING_KICKED;
}

static unsigned no_fds(struct ring *ring UNUSED, int *fds UNUSED,
		       unsigned cnt UNUSED)
{
	return 0;
}

static bool arm_nothing(struct ring *ring UNUSED)
{
	return true;
}

static uint32_t has_no_frames(const struct ring *ring UNUSED)
{
	return 0;
}

static int keeps_pace(struct ring *ring UNUSED, const struct ring_pace *pace UNUSED)
{
	return -EOPNOTSUPP;
}

static unsigned receive_nothing(struct ring *ring UNUSED, struct pkt **batch UNUSED,
				unsigned cnt UNUSED)
{
	return 0;
}

void ring_ops_fill(struct ring_ops *ops)
{
	if (!ops->rx_poll)
		ops->rx_poll = receive_nothing;
	if (!ops->rx_peek)
		ops->rx_peek = peek_nothing;
	if (!ops->rx_done)
		ops->rx_done = nothing;
	if (!ops->tx_commit)
		ops->tx_commit = commit_nothing;
	if (!ops->tx_follow)
		ops->tx_follow = follow_nothing;
	if (!ops->tx_fits)
		ops->tx_fits = any_fits;
	if (!ops->tx_is_done)
		ops->tx_is_done = has_left;
	if (!ops->reap)
		ops->reap = nothing;
	if (!ops->kick)
		ops->kick = kick_nothing;
	if (!ops->fds)
		ops->fds = no_fds;
	if (!ops->arm)
		ops->arm = arm_nothing;
	if (!ops->acknowledge)
		ops->acknowledge = nothing;
	if (!ops->set_pace)
		ops->set_pace = keeps_pace;
	if (!ops->rx_grow)
		ops->rx_grow = nothing;
	if (!ops->device_cnt)
		ops->device_cnt = has_no_frames;
	if (!ops->stop)
		ops->stop = nothing;
	if (!ops->take_back)
		ops->take_back = nothing;
}

static int give_to_interface(struct dev *dev UNUSED, const void *frame UNUSED,
			     uint32_t len UNUSED)
{
	return -EOPNOTSUPP;
}

static int still_works(struct dev *dev UNUSED)
{
	return 0;
}

static int no_more_regions(struct dev *dev UNUSED, uint32_t frame_cnt UNUSED)
{
	return -EOPNOTSUPP;
}

static int shares_no_region(struct dev *dev UNUSED, struct region *region UNUSED,
			    uint32_t id UNUSED)
{
	return -EOPNOTSUPP;
}

static void has_no_ports(struct dev *dev UNUSED, uint32_t active UNUSED)
{
}

static void needs_no_rights(struct dev *dev UNUSED)
{
}

static void leaves_nothing(struct dev *dev UNUSED, enum dev_end how_far UNUSED)
{
}

static int no_paced_rings(struct dev *dev UNUSED,
			  const struct ring_pace *pace UNUSED,
			  struct pkt_pool *pool UNUSED,
			  struct ring **ring_out UNUSED)
{
	return -EOPNOTSUPP;
}

void dev_ops_fill(struct dev_ops *ops)
{
	if (!ops->paced_ring_create)
		ops->paced_ring_create = no_paced_rings;
	if (!ops->give_back)
		ops->give_back = give_to_interface;
	if (!ops->check)
		ops->check = still_works;
	if (!ops->link_changed)
		ops->link_changed = still_works;
	if (!ops->region_add)
		ops->region_add = no_more_regions;
	if (!ops->region_share)
		ops->region_share = shares_no_region;
	if (!ops->ports_changed)
		ops->ports_changed = has_no_ports;
	if (!ops->rights_go)
		ops->rights_go = needs_no_rights;
	if (!ops->ending)
		ops->ending = leaves_nothing;
}
