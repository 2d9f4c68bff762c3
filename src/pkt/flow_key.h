/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Identifies a connection or a flow, seen from one end: both addresses and both
 * ports. The order is always local, remote, whichever way a packet goes.
 */
#ifndef PKT_FLOW_KEY_H
#define PKT_FLOW_KEY_H

#include "base/hash.h"
#include "base/ipaddr.h"

struct flow_key {
	struct ip_addr local;
	struct ip_addr remote;
	__be16 local_port;
	__be16 remote_port;
	/* keeps every byte defined, so that keys compare as words */
	uint32_t zero;
};
_Static_assert(sizeof(struct flow_key) == 40, "five words, no padding");

static inline bool flow_key_eq(const struct flow_key *a,
			       const struct flow_key *b)
{
	return a->local_port == b->local_port &&
	       a->remote_port == b->remote_port &&
	       ip_addr_eq(&a->remote, &b->remote) &&
	       ip_addr_eq(&a->local, &b->local);
}

/* For tables inside the process; the seed is a secret of the table. */
static inline uint64_t flow_key_hash(const struct flow_key *key, uint64_t seed)
{
	uint64_t ports = (uint64_t)key->local_port << 16 | key->remote_port;
	uint64_t hash = hash_u64x2(seed ^ ports, key->remote.half[0],
				   key->remote.half[1]);

	return hash_u64x2(hash, key->local.half[0], key->local.half[1]);
}

#endif
