/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checking what a reader has read (stats_snapshot.h). */
#include "config.h"

#include "stats/stats_snapshot.h"

#include <errno.h>
#include <string.h>

#include "stats/reasons.h"

/* -- checking -------------------------------------------------------------- */

static void clean_text(char *text, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	text[i] = '\0';
}

static void clean_way(struct stats_way *way)
{
	if (way->reason >= REASON_COUNT)
		way->reason = REASON_NONE;
	if (way->decider >= STATS_BY_COUNT)
		way->decider = STATS_BY_SOCKET;
	clean_text(way->detail, sizeof(way->detail));
}

static void clean_places(struct stats_region *r)
{
	for (size_t i = 0; i < STATS_RINGS_MAX; i++) {
		struct stats_ring *ring = &r->rings[i];

		clean_text(ring->interface, sizeof(ring->interface));
		clean_text(ring->back_end, sizeof(ring->back_end));
		clean_text(ring->mode, sizeof(ring->mode));
	}
	for (size_t i = 0; i < STATS_POOLS_MAX; i++)
		clean_text(r->pools[i].interface,
			   sizeof(r->pools[i].interface));
	for (uint32_t i = 0; i < r->socket_max; i++) {
		clean_way(&r->sockets[i].rx);
		clean_way(&r->sockets[i].tx);
		if (r->sockets[i].tcp_state >= STATS_TCP_STATE_COUNT)
			r->sockets[i].tcp_state = STATS_TCP_UNKNOWN;
	}
}

int stats_snapshot_check(struct stats_region *r, size_t size)
{
	if (size < sizeof(*r) ||
	    memcmp(r->magic, STATS_MAGIC, sizeof(r->magic)) != 0)
		return -EBADMSG;
	if (r->abi != STATS_ABI || r->layout != stats_layout())
		return -EPROTO;
	if (r->socket_max > STATS_SOCKETS_MAX || r->size != size ||
	    stats_region_size(r->socket_max) != size)
		return -EBADMSG;
	clean_text(r->program, sizeof(r->program));
	clean_text(r->version, sizeof(r->version));
	clean_places(r);
	return 0;
}

/* -- differences ------------------------------------------------------------ */

static uint64_t diff(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

/* By how a counter is kept. */
#define DIFF_LOCKED(name) \
	diff_out->name = diff(before ? before->counters.name : 0, \
			      now->counters.name);
#define DIFF_SHARED(name) DIFF_LOCKED(name)
#define DIFF_HIGHEST(name) diff_out->name = now->counters.name;

void stats_snapshot_socket_diff(const struct stats_socket *before,
				const struct stats_socket *now,
				struct stats_socket_counters *diff_out)
{
	/* another socket's */
	if (before && atomic_load(&before->id) != atomic_load(&now->id))
		before = NULL;
#define SOCKET_COUNTER(name, how, what) DIFF_##how(name)
#include "stats/counters.def"
}

void stats_snapshot_mux_diff(const struct stats_mux *before,
			     const struct stats_mux *now,
			     struct stats_mux_counters *diff_out)
{
	if (before && before->fd != now->fd)
		before = NULL;
#define MUX_COUNTER(name, how, what) DIFF_##how(name)
#include "stats/counters.def"
}

void stats_snapshot_ring_diff(const struct stats_ring *before,
			      const struct stats_ring *now,
			      struct stats_ring_counters *diff_out)
{
	if (before && !before->is_used)
		before = NULL;
#define RING_COUNTER(name, how, what) DIFF_##how(name)
#include "stats/counters.def"
}
