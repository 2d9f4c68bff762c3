/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One AF_XDP socket with its four rings, on one queue of an interface. The rings
 * are shared with the kernel: each has one producer and one consumer, whose
 * positions count on for ever and are masked.
 */
#ifndef DEV_XDP_XSK_H
#define DEV_XDP_XSK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/linux_compat.h"

struct xsk_ring {
	/* shared */
	_Atomic uint32_t *producer;
	_Atomic uint32_t *consumer;
	_Atomic uint32_t *flags;
	void *entries;
	/* ours */
	uint32_t mask;
	/* how many entries are used at a time; all, or as many as we want */
	uint32_t size;
	/* the next entry that we use, and the first one that is not ours yet, as
	 * far as we know */
	uint32_t next;
	uint32_t end;
	void *mem;
	size_t mem_size;
};

struct xsk {
	_Atomic int fd;
	struct xsk_ring rx, tx; /* struct xdp_desc */
	struct xsk_ring fill, done; /* offsets */
	/* how many frames are posted at a time */
	uint32_t fill_batch;
	/* The kernel has had all that it may have since there was more for it: what it uses
	 * of that without a poll between shows that it is too little. */
	bool was_full;
	/* a packet of several frames of which the end has not come yet */
	struct pkt *partial;
	/* how many of the kernel's drops we have counted; the control mutex */
	uint64_t seen_drops;
};

struct xsk_params {
	int ifindex;
	uint32_t queue;
	void *mem;
	size_t mem_size;
	uint32_t frame_size;
	/* the socket whose memory this one shares; -1: it is the first */
	int shared_fd;
	/* XDP_COPY or XDP_ZEROCOPY, XDP_USE_SG, XDP_USE_NEED_WAKEUP */
	uint16_t bind_flags;
	uint32_t rx_size, tx_size, fill_size, done_size;
};

/* Makes and binds it. -EBUSY: the queue is taken; -ENOBUFS: memory, or the limit
 * on locked memory; -EOPNOTSUPP: not with these flags; -EPERM. */
int xsk_create(struct xsk *xsk, const struct xsk_params *params) MUST_CHECK;
void xsk_destroy(struct xsk *xsk);

/* Frames for us that the kernel has dropped so far, because the ring was full or
 * there was none to receive into. */
uint64_t xsk_drops(const struct xsk *xsk);

/* Whether the interface has left the namespace since it was made, which unbinds the socket
 * for good, also where the interface has come back. Said once. */
bool xsk_was_unbound(const struct xsk *xsk);

/* -- the side that takes: rx, done -- */

/* The number of entries that may be read, at most `max`, from xsk_ring.next on. */
static inline uint32_t xsk_available(struct xsk_ring *ring, uint32_t max)
{
	uint32_t next = ring->next, end = ring->end;

	if (end == next) {
		/* acquire pairs with the kernel's release: the entries before
		 * the position are written */
		end = atomic_load_explicit(ring->producer,
					   memory_order_acquire);
		ring->end = end;
	}
	return MIN(end - next, max);
}

/* Gives the entries before xsk_ring.next back to the kernel. */
static inline void xsk_consumed(struct xsk_ring *ring)
{
	/* release: we have read them */
	atomic_store_explicit(ring->consumer, ring->next, memory_order_release);
}

/* -- the side that gives: fill, tx -- */

/* The number of entries that may be written. */
static inline uint32_t xsk_room(struct xsk_ring *ring, uint32_t wanted)
{
	uint32_t cnt = ring->end - ring->next;

	if (cnt < wanted) {
		/* acquire pairs with the kernel's release: it has read them */
		ring->end = atomic_load_explicit(ring->consumer,
						 memory_order_acquire) +
			    ring->size;
		cnt = ring->end - ring->next;
	}
	return cnt;
}

/* Gives the entries before xsk_ring.next to the kernel. */
static inline void xsk_produced(struct xsk_ring *ring)
{
	/* release: they are written */
	atomic_store_explicit(ring->producer, ring->next, memory_order_release);
}

static inline struct xdp_desc *xsk_desc(const struct xsk_ring *ring,
					uint32_t at)
{
	return (struct xdp_desc *)ring->entries + (at & ring->mask);
}

static inline uint64_t *xsk_offset(const struct xsk_ring *ring, uint32_t at)
{
	return (uint64_t *)ring->entries + (at & ring->mask);
}

static inline bool xsk_needs_wakeup(const struct xsk_ring *ring)
{
	return atomic_load_explicit(ring->flags, memory_order_relaxed) &
	       XDP_RING_NEED_WAKEUP;
}

#endif
