/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a received packet finds: one end of a flow, inside a socket. It is
 * reachable by packets while it is in its stack's demultiplexer.
 */
#ifndef NET_ENDPOINT_H
#define NET_ENDPOINT_H

#include <stdatomic.h>

#include "base/list.h"
#include "pkt/flow_key.h"
#include "pkt/pkt.h"

struct endpoint;
struct watch;

/* What an endpoint is ready for; the values are poll's. */
enum ready_bit {
	READY_IN = 0x001,
	READY_OUT = 0x004,
	READY_ERR = 0x008,
	READY_HUP = 0x010,
	READY_RDHUP = 0x2000,
};

/*
 * A received packet as an endpoint gets it: `data` is what follows the IP header, and
 * this, in its scratch room, says where its headers lie in the first buffer.
 */
struct rx_info {
	uint16_t ip_at;
	/* behind the IP header, which has no options */
	uint16_t transport_at;
	uint32_t ifindex;
	/* from `data` on, in all parts: of IP's payload, then of what the endpoint
	 * makes of it */
	uint32_t len;
	/* its checksum may be the sum of the pseudo header alone */
	bool may_be_partial;
} __attribute__((may_alias));
_Static_assert(sizeof(struct rx_info) <= PKT_CB_SIZE, "fits");

struct endpoint {
	/* Fixed while it is reachable: IP's number of its protocol, one with ports
	 * in front, and its ends. The any-address stands for every local
	 * address, or for an end that is not connected. */
	uint8_t proto;
	struct flow_key key;
	/* Takes the packet, whose IP header has been looked at. Under the stack's
	 * lock; appends, and tells the
	 * watches by endpoint_set_ready. */
	void (*input)(struct endpoint *end, struct pkt *pkt);

	/* Only packets of this interface are for it; 0: of all. */
	uint32_t ifindex;
	/* SO_REUSEPORT: packets are shared out among those with the same key
	 * that say so. Otherwise the newest has them all. */
	bool is_shared;
	/* It serves IPv4 as mapped addresses, after those that serve nothing
	 * else. */
	bool is_ipv6;
	/* when it got its local name: monotonic clock */
	uint64_t named_ns;
	bool is_reachable;

	/* What it is ready for, enum ready_bit. Written under the stack's lock,
	 * read by anybody: a reader that sees a bit sees what it stands for
	 * once it has the lock. */
	_Atomic uint32_t ready;

	/* the stack's lock */
	struct list watches;
	struct list by_key;
};

/* Somebody who wants to hear of an endpoint's readiness. Linked to it under the
 * stack's lock. */
struct watch {
	struct list link;
	/* Under the stack's lock: only notes it, for after the unlock. */
	void (*fire)(struct watch *watch);
	/* Under the stack's lock: no fd names the socket any more; it takes the
	 * watch off. NULL: the watch ends by itself. */
	void (*closed)(struct watch *watch);
};

static inline void endpoint_init(struct endpoint *end,
				 void (*input)(struct endpoint *, struct pkt *))
{
	*end = (struct endpoint){ .input = input };
	list_init(&end->watches);
	list_init(&end->by_key);
}

static inline uint32_t endpoint_ready(const struct endpoint *end)
{
	return atomic_load_explicit(&end->ready, memory_order_relaxed);
}

/* Under the stack's lock. Each call is news to the watches, also of a bit that
 * was set. */
static inline void endpoint_set_ready(struct endpoint *end, uint32_t bits)
{
	struct watch *watch;

	atomic_store_explicit(&end->ready, endpoint_ready(end) | bits,
			      memory_order_relaxed);
	LIST_FOR_EACH(watch, &end->watches, link)
		watch->fire(watch);
}

static inline void endpoint_clear_ready(struct endpoint *end, uint32_t bits)
{
	atomic_store_explicit(&end->ready, endpoint_ready(end) & ~bits,
			      memory_order_relaxed);
}

#endif
