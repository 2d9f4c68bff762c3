/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A number that stands for everything that a region's layout depends on
 * (stats_abi.h). */
#include "config.h"

#include "base/hash.h"
#include "stats/reasons.h"
#include "stats/stats_abi.h"

_Static_assert((int)REASON_COUNT <= (int)STATS_REASONS_MAX, "a count for each reason");

static const char names[] =
#define SOCKET_COUNTER(name, how, what) "s." #name " "
#define RING_COUNTER(name, how, what) "r." #name " "
#define DROP_COUNTER(name, how, what) "d." #name " "
#define MUX_COUNTER(name, how, what) "m." #name " "
#define TCP_COUNTER(name, how, what) "t." #name " "
#define TCP_GAUGE(name, how, what) "g." #name " "
#include "stats/counters.def"
#define REASON(name, why, remedy) #name " "
#include "stats/reasons.def"
#define DECIDER(name, text) #name " "
#include "stats/deciders.def"
	;

uint64_t stats_layout(void)
{
	return hash_bytes(sizeof(struct stats_region) ^
				  (uint64_t)sizeof(struct stats_socket) << 32,
			  names, sizeof(names));
}
