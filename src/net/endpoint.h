/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One end of a flow, inside a socket: what the demultiplexer finds for a received
 * packet. Packets reach it while it is in the demultiplexer of its stack.
 */
#ifndef NET_ENDPOINT_H
#define NET_ENDPOINT_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/list.h"
#include "dev/ring.h"
#include "pkt/flow_key.h"
#include "pkt/pkt.h"

struct endpoint;
struct watch;

/* What an endpoint is ready for. The values are those of poll(). */
enum ready_bit {
	READY_IN = 0x001,
	READY_PRI = 0x002,
	READY_OUT = 0x004,
	READY_ERR = 0x008,
	READY_HUP = 0x010,
	READY_RDHUP = 0x2000,
	READY_RDNORM = 0x040,
	READY_WRNORM = 0x100,
	/* PRI, RDNORM and RDBAND; WRNORM and WRBAND */
	READY_IN_NAMES = 0x002 | READY_RDNORM | 0x080,
	READY_OUT_NAMES = 0x100 | 0x200,
	/* (watch.fire) */
	READY_SOON = 1 << 29,
	READY_BY_TWIN = 1 << 30,
};

/* For watch.fire: whatever somebody waits for. */
#define READY_ANY UINT32_MAX

/*
 * The form in which an endpoint gets a received packet. `data` is what follows the
 * IP header. This struct is in the packet's scratch room, and says where the headers
 * lie in the first buffer.
 */
struct rx_info {
	uint16_t ip_at;
	/* right behind the IP header, which has no options */
	uint16_t transport_at;
	uint32_t ifindex;
	/* The bytes from `data` on, in all parts: first IP's payload, later what the
	 * endpoint leaves of it. */
	uint32_t len;
	/* its checksum may be the sum of the pseudo header alone, left to a card to
	 * complete */
	bool may_be_partial;
} __attribute__((may_alias));
_Static_assert(sizeof(struct rx_info) <= PKT_CB_SIZE, "fits");

struct endpoint {
	/* Fixed while it is reachable: the protocol's number in IP (a protocol whose
	 * header begins with ports), and both ends. The any-address stands for every
	 * local address, or for the remote end if there is no peer. */
	uint8_t proto;
	struct flow_key key;
	/* Takes the packet, whose IP header has been checked. Called under the
	 * stack's lock; it queues the packet, and tells the watches by
	 * endpoint_set_ready. */
	void (*input)(struct endpoint *end, struct pkt *pkt);
	/* Who could be read if this frame were taken, whose `data` is what follows the
	 * IP header; NULL: nobody for sure. It may be another endpoint, and one that
	 * has READY_IN is none. Called under the stack's lock, of the endpoint that the
	 * last packet was for, and changes nothing. NULL: never. */
	struct endpoint *(*foresee)(struct endpoint *end,
				    const struct ring_frame *frame);

	/* It takes packets of this interface only; 0: of all interfaces. */
	uint32_t ifindex;
	/* SO_REUSEPORT: the packets are distributed among all endpoints with the
	 * same key that have this set. Otherwise the newest one gets all of them. */
	bool is_shared;
	/* An IPv6 socket, which takes IPv4 as mapped addresses. It comes after those
	 * that take IPv4 alone. */
	bool is_ipv6;
	/* when it got its local name, by the monotonic clock */
	uint64_t named_ns;
	bool is_reachable;

	/* What it is ready for: bits of enum ready_bit. Written under the stack's
	 * lock, read by anybody. A reader that sees a bit, and then takes the lock,
	 * sees what the bit stands for. */
	_Atomic uint32_t ready;

	/* the stack's lock */
	struct list watches;
	struct list by_key;
};

/* The wish to hear when an endpoint becomes ready. It is linked to the endpoint
 * under the stack's lock. */
struct watch {
	struct list link;
	/* Called under the stack's lock with what has come, by all names that Linux
	 * has for it: it may only note that something has to be done after the
	 * unlock. With READY_SOON, the kernel is about to tell its sets of the twin
	 * without asking for bits; with READY_BY_TWIN, it has told them of these
	 * bits, and one more edge from us would be reported, too. Returns whether
	 * somebody waits for it. */
	bool (*fire)(struct watch *watch, uint32_t bits);
	/* Called under the stack's lock when no fd names the socket any more: takes
	 * the watch off. NULL: the watch ends by itself. */
	void (*closed)(struct watch *watch);
	/* Whether it makes no difference if the same arrival fires it twice. NULL: it
	 * does. */
	bool (*is_level)(const struct watch *watch);
	/* If somebody waits for it, other exclusive ones do not hear of what has
	 * come. */
	bool is_exclusive;
};

static inline void endpoint_init(struct endpoint *end,
				 void (*input)(struct endpoint *, struct pkt *))
{
	/* somebody may still read the word (fd_object.ready) */
	memset(end, 0, offsetof(struct endpoint, ready));
	end->input = input;
	atomic_store_explicit(&end->ready, 0, memory_order_relaxed);
	list_init(&end->watches);
	list_init(&end->by_key);
}

static inline uint32_t endpoint_ready(const struct endpoint *end)
{
	return atomic_load_explicit(&end->ready, memory_order_relaxed);
}

/* Called under the stack's lock. Exclusive ones come last, so that all others hear of
 * each arrival. */
static inline void endpoint_add_watch(struct endpoint *end, struct watch *watch)
{
	if (watch->is_exclusive)
		list_push_back(&end->watches, &watch->link);
	else
		list_push_front(&end->watches, &watch->link);
}

/* Tells the watches what has come. Under Linux, data that arrives also stirs those who
 * want urgent data alone. */
static inline void endpoint_fire(struct endpoint *end, uint32_t bits)
{
	struct watch *watch;

	if (bits & READY_IN)
		bits |= READY_IN_NAMES;
	if (bits & READY_OUT)
		bits |= READY_OUT_NAMES;
	LIST_FOR_EACH(watch, &end->watches, link)
		if (watch->fire(watch, bits) && UNLIKELY(watch->is_exclusive))
			break;
}

/* What poll() calls that: the end of the data can be read, and data has a name more in each
 * direction. */
static inline uint32_t endpoint_poll_events(uint32_t ready)
{
	enum { TO_IN = READY_RDHUP / READY_IN, TO_NORM = READY_RDNORM / READY_IN };
	_Static_assert(READY_WRNORM == READY_OUT * TO_NORM, "both by one step");

	ready |= (ready & READY_RDHUP) / TO_IN;
	return ready | (ready & (READY_IN | READY_OUT)) * TO_NORM;
}

/* Called under the stack's lock. */
static inline void endpoint_add_ready(struct endpoint *end, uint32_t bits)
{
	atomic_store_explicit(&end->ready, endpoint_ready(end) | bits,
			      memory_order_relaxed);
}

/* The same, and each call fires the watches, even if the bit was set already. */
static inline void endpoint_set_ready(struct endpoint *end, uint32_t bits)
{
	endpoint_add_ready(end, bits);
	if (UNLIKELY(!list_is_empty(&end->watches)))
		endpoint_fire(end, bits);
}

static inline void endpoint_clear_ready(struct endpoint *end, uint32_t bits)
{
	atomic_store_explicit(&end->ready, endpoint_ready(end) & ~bits,
			      memory_order_relaxed);
}

#endif
