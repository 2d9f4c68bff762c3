/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The RDMA back end from the inside. */
#ifndef DEV_RDMA_RDMA_PRIV_H
#define DEV_RDMA_RDMA_PRIV_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "base/list.h"
#include "dev/backend.h"
#include "dev/rdma/rdma.h"
#include "dev/rdma/stamps.h"
#include "os/services.h"

struct rdma_dev;

/* The kernel's objects of one ring. The ring that sends and receives by them comes
 * into being when a stack wants it. Those of a paced one have no channel and no queues to
 * receive: `chan` and `rx_cq` are NULL, and rx_size is 0. */
struct rdma_queues {
	struct ibv_comp_channel *chan;
	/* its fd, which is an internal one */
	_Atomic int *chan_fd;
	struct ibv_cq *rx_cq;
	struct ibv_cq *tx_cq;
	/* rx_cq, if it says when its frames came, by the counter of `stamps`; else
	 * NULL */
	struct ibv_cq_ex *rx_stamped;
	/* the same of tx_cq, which says when frames have left */
	struct ibv_cq_ex *tx_stamped;
	/* What qp belongs to that has a doorbell register of its own; else both are NULL, and it
	 * may share one with others. For kinds with `rings_bells`. */
	struct ibv_td *td;
	struct ibv_pd *domain;
	struct ibv_qp *qp;
	/* rx_cq, if what a completion says can be read part by part (ibv_start_poll), and
	 * qp, if a send can be written so (ibv_wr_start); else NULL. For kinds with
	 * `wants_parts`. */
	struct ibv_cq_ex *rx_parts;
	struct ibv_qp_ex *tx_parts;
	/* entries; the first is a power of two */
	uint32_t rx_size;
	uint32_t tx_size;
	/* bytes of a frame that the send queue takes inline */
	uint32_t inline_max;
};

/* A kind of rings. */
struct rdma_kind {
	/* "mlx5", also in VMA_RING */
	const char *name;
	/* Frames of the region from which one entry gathers what the card is to cut; 0:
	 * these rings leave nothing to be cut. */
	uint32_t tso_parts;
	/* It sends and receives by libibverbs, whose calls for single parts take fewer steps
	 * than those for whole structs; if the device has them. */
	bool wants_parts;
	/* It writes to doorbell registers itself, where libibverbs would lock those that queues
	 * share. */
	bool rings_bells;
	/* NULL: any device can do it */
	bool (*serves)(struct ibv_device *device);
	/* Once, before any ring is made. */
	void (*start)(void);
	/* What it wants of queues, as far as the device has it. */
	void (*size_queues)(const struct rdma_params *params,
			    struct rdma_queues *queues);
	/* The ring owns the queues from then on. Its pool is under no lock yet. */
	int (*ring_create)(struct rdma_dev *dev, struct rdma_queues *queues,
			   struct pkt_pool *pool, struct ring **ring_out)
		MUST_CHECK;
};

enum {
	RDMA_RULE_BUCKETS = 256,
	/* what a VLAN's tag adds to a frame */
	RDMA_VLAN_LEN = 4,
	/* the longest header of what is to be cut: Ethernet, IP, TCP with options */
	RDMA_TSO_HEADER_MAX = 14 + RDMA_VLAN_LEN + 20 + 60,
};

struct rdma_dev {
	struct dev dev;
	const struct rdma_params *params;
	const struct rdma_kind *kind;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	unsigned port;
	/* how many devices have these regions */
	unsigned sharer_cnt;
	uint32_t max_wr;
	uint32_t max_cqe;
	/* it verifies received checksums, and computes those of what we send */
	bool has_csum;
	/* how many bytes of TCP it cuts into segments; 0: it does not, or shall not */
	uint32_t tso_max;
	/* bytes of memory that the card has for all who ask */
	uint64_t dev_mem_max;
	struct stamps stamps;
	/* By the region's id. A region's key is there before the region gives any
	 * frame. */
	struct ibv_mr *mrs[REGION_SET_MAX];
	uint32_t lkeys[REGION_SET_MAX];
	/* Drawn by each process for the device, so that another one cannot have the same
	 * rule. The flows' tags are added. */
	uint32_t tag;
	struct list rules[RDMA_RULE_BUCKETS];
	/* The process is about to end (dev_ops.ending), and rules that the card does not
	 * have any more, though libibverbs takes them for some. */
	bool is_left;
	struct list dropped;
	/* Made when the interface was taken, to find out whether that is possible;
	 * for the first ring. */
	struct rdma_queues first;
	bool has_first;
	/* negative errno: it does not work any more. A ring may say so under its
	 * stack's lock. */
	_Atomic int failure;
};

/* queues.c: makes an fd of libibverbs an internal one. The number may change at any
 * time, so libibverbs has to be the one who uses it. If there is no room for it, it
 * stays as it is. */
void rdma_hide_fd(int *fd);
/* Makes it an ordinary one again, which libibverbs may close; or closes it, and -1 is left,
 * where the program has opened all that it may. */
void rdma_show_fd(int *fd);

/* queues.c: all objects, the queue pair ready to send. */
int rdma_queues_open(struct rdma_dev *dev, struct rdma_queues *queues)
	MUST_CHECK;
/* The same for a ring that only sends, at this pace. */
int rdma_queues_open_paced(struct rdma_dev *dev, const struct ring_pace *pace,
			   struct rdma_queues *queues) MUST_CHECK;
void rdma_queues_close(struct rdma_queues *queues);
/* queues.c: an op of paced rings. */
int rdma_set_pace(struct ring *ring, const struct ring_pace *pace) MUST_CHECK;
static inline uint32_t rdma_lkey(const struct rdma_dev *dev,
				 const struct pkt *pkt)
{
	return dev->lkeys[pkt->region_id];
}

/* What all kinds of rings begin with. */
struct rdma_ring {
	struct ring ring;
	struct rdma_dev *dev;
	struct rdma_queues queues;
	/* for who acknowledges */
	struct aim aim;
	/* what had been received when the ring was armed last */
	_Atomic uint64_t armed_pkts;
	_Atomic uint64_t armed_bytes;
	/* the last packet's time stamp, and that of the last frame that was followed; under
	 * the stack's lock */
	uint64_t stamped_ns;
	uint64_t left_ns;
	/* Why a poll has something to do although nothing came: bits of enum rdma_busy. Under
	 * the stack's lock. */
	uint8_t busy;
	/* the record of the frame that is sent next (ring_ops.tx_follow), or NULL */
	struct pkt *wish;
	/* for who acknowledges: somebody waits to hear when a frame has left */
	_Atomic bool has_followed;
	/* Of a VLAN's ring: the ops of its kind, and those ops with the tag, which are the
	 * ring's then. */
	const struct ring_ops *kind_ops;
	struct ring_ops vlan_ops;
};

enum rdma_busy {
	/* the pool had too few frames when some were to be posted */
	RDMA_SHORT = 1 << 0,
	/* frames are followed whose completions have not come yet */
	RDMA_FOLLOWS = 1 << 1,
};

/* queues.c: the packet was received when the card's counter had this value. Under the
 * stack's lock. */
void rdma_stamp(struct rdma_ring *own, struct pkt *pkt, uint64_t ticks);

/* queues.c: a frame that was followed has left then; no stamp if nobody knows what that
 * means. Under the stack's lock. */
void rdma_stamp_left(struct rdma_ring *own, struct pkt *record, uint64_t ticks);

/* -- followed.c; under the stack's lock -- */
/* The wish is for the frame that goes now, whose completion will say this number. */
void rdma_follow(struct rdma_ring *own, uint32_t number);
/* There is no wish any more. */
void rdma_unwish(struct rdma_ring *own);
/* The completion with this number has come. */
void rdma_has_left(struct rdma_ring *own, uint32_t number, uint64_t ticks);

/* vlan.c: the ring of a VLAN's device, which nobody knows yet, puts tags on and takes
 * them off from now on. */
void rdma_ring_add_vlan(struct ring *ring);

/* -- events -- */

/* Events of the two completion queues. */
struct rdma_events {
	unsigned rx_cnt;
	unsigned tx_cnt;
};

/* queues.c: reads the events that have made the channel readable, and now and then
 * adapts how interrupts are moderated. Without the stack's lock, by one thread at a
 * time. */
struct rdma_events rdma_queues_acknowledge(struct rdma_ring *own);

/* Before the ring is armed, under the stack's lock: the counters are for who
 * acknowledges, who does not have it. */
static inline void rdma_note_counts(struct rdma_ring *own)
{
	const struct stats_ring_counters *counts = own->ring.counts;

	atomic_store_explicit(&own->armed_pkts, counts->rx_pkts,
			      memory_order_relaxed);
	atomic_store_explicit(&own->armed_bytes, counts->rx_bytes,
			      memory_order_relaxed);
}

static inline struct ibv_qp *rdma_ring_qp(struct ring *ring)
{
	return CONTAINER_OF(ring, struct rdma_ring, ring)->queues.qp;
}

/* How many frames a ring of these queues posts: a quarter of its share. Those
 * stay in the processor's cache; when they run out, there will be another region. */
static inline uint32_t rdma_rx_post_max(const struct rdma_dev *dev,
					const struct rdma_queues *queues)
{
	uint32_t cnt = region_set_frame_cnt(&dev->dev.regions) / dev->sharer_cnt;

	return MIN(queues->rx_size, MAX(cnt / 4, 1u));
}

/* ring.tx_fits_max, of a queue that takes so many, and asks for a completion once in `each`
 * sends: those behind the last one that asked stay in it. What is paced has only the frames
 * of its pool, of which one may be where the next short frame is written. */
static inline uint32_t rdma_fits_max(const struct rdma_ring *own, uint32_t queue_max,
				     uint32_t each)
{
	uint32_t cnt = own->ring.is_paced ?
			       MIN(queue_max, own->ring.pool->total_cnt - 1) :
			       queue_max;

	return cnt > each ? cnt - each + 1 : 1;
}

/* Whether it could post more if there were more. */
static inline bool rdma_rx_may_grow(const struct rdma_dev *dev,
				    const struct rdma_queues *queues)
{
	return rdma_rx_post_max(dev, queues) < queues->rx_size &&
	       atomic_load(&dev->dev.regions.cnt) < REGION_SET_MAX;
}

/* The card does not do what it was asked to. */
static inline void rdma_has_failed(struct rdma_dev *dev)
{
	atomic_store_explicit(&dev->failure, -EIO, memory_order_relaxed);
}

extern const struct rdma_kind rdma_kind_verbs;
#ifdef RDMA_HAS_MLX5
extern const struct rdma_kind rdma_kind_mlx5;
#endif
#endif
