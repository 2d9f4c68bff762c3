/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The AF_XDP back end from the inside. */
#ifndef DEV_XDP_XDP_PRIV_H
#define DEV_XDP_XDP_PRIV_H

#include "dev/backend.h"
#include "dev/dev_services.h"
#include "dev/xdp/owner.h"
#include "dev/xdp/queues.h"
#include "dev/xdp/steer.h"
#include "dev/xdp/tags.h"
#include "dev/xdp/xdp.h"
#include "dev/xdp/xsk.h"
#include "os/services.h"

/* Room that the kernel leaves in front of a received frame, and we in front of
 * what we send. */
enum { XDP_HEADROOM = 256 };

struct xdp_ring;

struct xdp_dev {
	struct dev dev;
	struct steer *steer;
	struct owner owner;
	uint32_t queue_cnt;
	struct queues_of queues;
	/* as in xdp_params */
	uint32_t rx_post_first;
	/* both ends of the link are in this machine */
	bool is_virtual;
	struct tags tags;
	/* while it is tried: another process has a queue of it */
	bool is_in_use;
	/* several frames for one packet */
	bool has_sg;
	/* while it is tried: it would do, with those */
	bool lacks_sg;
	/* the program gets one buffer for it */
	bool is_single;
	uint16_t bind_flags; /* of the mode that works */
	/* The one ring: AF_XDP gives a queue to one stack at a time. Made to find
	 * out whether the mode works, and started when a stack wants it. */
	struct xdp_ring *ring;
	bool is_ring_taken;
	/* of the program's drops those that are counted */
	uint64_t seen_fragments;
};

struct xdp_ring {
	struct ring ring;
	/* The region's: where it is, and what leaves of an offset in it that of
	 * the frame. */
	uint8_t *mem;
	uint64_t frame_mask;
	/* says whether a receiver may wait to be woken */
	_Atomic uint32_t *wake_word;
	/* how much the kernel had taken when it last refused to take more; only the
	 * thread that kicks uses this */
	uint32_t tx_refused_at;
	/* The kernel has fewer frames to receive into than it could have. Each poll
	 * tries to give it more. */
	bool is_short;
	/* A poll would first bring the next frame of the first queue, and has
	 * nothing else to do. */
	bool can_peek;
	/* How many frames each queue has for certain, and how many more may be posted
	 * by those that run short; see refill() in ring.c. */
	uint32_t rx_share, reserve;
	/* The least that a queue had that ran short when nothing was in reserve. 0: none
	 * did. */
	uint32_t poorest;
	/* the queue with which the next poll begins */
	uint32_t first;
	uint32_t queue_cnt;
	struct xsk queues[];
};

/* Makes the slot's fd an internal one. If there is no room for that, the fd stays
 * as it is. */
int xdp_adopt_fd(int fd, _Atomic int *slot) MUST_CHECK;

/* ring.c: once, before any is made. */
void xdp_ring_module(void);

/* ring.c: sockets on all queues, which receive nothing yet. `bind_flags` as in
 * xsk.h. */
int xdp_ring_create(struct xdp_dev *dev, uint16_t bind_flags,
		    struct xdp_ring **ring_out) MUST_CHECK;
/* Whether another process has the first queue. */
bool xdp_queue_is_taken(struct xdp_dev *dev, uint16_t bind_flags);
/* Posts frames of the pool. */
void xdp_ring_start(struct xdp_ring *ring, struct pkt_pool *pool);
void xdp_ring_destroy(struct xdp_ring *ring);

#endif
