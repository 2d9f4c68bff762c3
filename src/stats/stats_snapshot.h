/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reader's side of the shared region. A reader never looks at the file itself,
 * which may change or shrink under it: it reads a copy, has that checked here, and
 * may print whatever it then finds.
 */
#ifndef STATS_STATS_SNAPSHOT_H
#define STATS_STATS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "stats/stats_abi.h"

/*
 * Makes the `size` bytes at `region` safe to use: afterwards its numbers of places,
 * reasons, deciders and rings are within their limits, and texts end and can be
 * shown. -EBADMSG: no region, or not whole; -EPROTO: another build's.
 */
int stats_snapshot_check(struct stats_region *region, size_t size) MUST_CHECK;

/* What was counted between `before`, which may be NULL, and `now`. Counters that
 * were set to zero in between count from there. The highest values are as they are
 * now. */
void stats_snapshot_socket_diff(const struct stats_socket *before,
				const struct stats_socket *now,
				struct stats_socket_counters *diff_out);
void stats_snapshot_mux_diff(const struct stats_mux *before,
			     const struct stats_mux *now,
			     struct stats_mux_counters *diff_out);
void stats_snapshot_ring_diff(const struct stats_ring *before,
			      const struct stats_ring *now,
			      struct stats_ring_counters *diff_out);

/* The number of packets that wait: those that came, less those that were taken. A
 * reader may have seen the two numbers at different moments. */
static inline uint64_t stats_socket_ready_pkts(const struct stats_socket *s)
{
	int64_t cnt = (int64_t)(s->counters.rx_queued_packets -
				s->counters.rx_packets);

	return cnt > 0 ? (uint64_t)cnt : 0;
}

static inline uint64_t stats_socket_ready_bytes(const struct stats_socket *s)
{
	int64_t len = (int64_t)(s->counters.rx_queued_bytes -
				s->counters.rx_bytes);

	return len > 0 ? (uint64_t)len : 0;
}

static inline bool stats_socket_is_used(const struct stats_socket *s)
{
	return atomic_load_explicit(&s->id, memory_order_relaxed) != 0;
}

#endif
