/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data path of AF_XDP: frames in and out of the rings of the sockets on all
 * queues of the interface. Frames are received from the queue that the hardware
 * chose, and sent through the first one.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall_raw.h"
#include "dev/ring_tx.h"
#include "dev/xdp/xdp_priv.h"

enum {
	RX_SIZE = 2048,
	TX_SIZE = 1024,
	/* Frames are given to the kernel, and taken back, in batches. A queue that has few
	 * gets them a quarter at a time, so that it does not run out before. */
	FILL_BATCH = 32,
	FILL_SIZE_MIN = 2,
	REAP_BATCH = 32,
	/* The number of frames that the kernel moves at one kick. */
	KICK_BATCH = 32,
};

static struct xdp_ring *ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct xdp_ring, ring);
}

/* -- what was sent ------------------------------------------------------------- */

/* The number of frames that were posted for sending and have not come back. Some of
 * them may have been sent already without our having seen it. */
static inline uint32_t sending_cnt(const struct xdp_ring *own)
{
	return own->queues[0].tx.next - own->queues[0].done.next;
}

/* Takes back what has been sent. */
static void reap_sent(struct xdp_ring *own)
{
	struct region *region = own->ring.dev->region;
	struct xsk_ring *done = &own->queues[0].done;
	uint32_t cnt = xsk_available(done, UINT32_MAX);

	for (uint32_t i = 0; i < cnt; i++) {
		struct pkt *pkt = region_pkt(region,
					     *xsk_offset(done, done->next++));

		pkt->flags = 0;
		pkt_put_quick(pkt);
	}
	if (cnt)
		xsk_consumed(done);
}

/* The pool is empty: one of these. */
static COLD struct pkt *find_sent(struct xdp_ring *own)
{
	reap_sent(own);
	return ring_pkt_alloc(&own->ring);
}

/* -- receiving ---------------------------------------------------------------- */

static void resize_fill(struct xsk *xsk, uint32_t size)
{
	xsk->fill.size = size;
	xsk->fill_batch = MIN((uint32_t)FILL_BATCH, MAX(size / 4, 1u));
}

/* The kernel has used most of the frames that it had. From now on it gets twice as
 * many, as far as the ring has room and they are its share, or other queues have left
 * some. */
static COLD void post_more(struct xdp_ring *own, struct xsk *xsk)
{
	uint32_t size = xsk->fill.size, room = xsk->fill.mask + 1 - size;
	uint32_t due = size < own->rx_share ? own->rx_share - size : 0;
	uint32_t more = MIN(MIN(size, room), own->reserve + due);

	own->reserve -= more - MIN(more, due);
	xsk->was_full = false;
	xsk->fill.end += more;
	resize_fill(xsk, size + more);
	if (room && !more)
		own->poorest = own->poorest ? MIN(own->poorest, size) : size;
}

/* A queue ran short when nothing was in reserve. One that has more than its share, and
 * more than that one, leaves it the frames that it would have posted next. What lies in
 * the kernel cannot be taken back, so a queue to which nothing comes keeps what it has. */
static COLD bool give_way(struct xdp_ring *own, struct xsk *xsk)
{
	uint32_t batch = xsk->fill_batch, rest = xsk->fill.size - batch;

	if (rest < own->rx_share || rest < own->poorest + batch)
		return false;
	own->poorest = 0;
	own->reserve += batch;
	xsk->fill.end -= batch;
	resize_fill(xsk, rest);
	return true;
}

static inline void note_posted(struct xdp_ring *own, struct xsk_ring *fill)
{
	xsk_produced(fill);
	/* a driver that had no frames has stopped looking for new ones */
	own->ring.wants_kick |= xsk_needs_wakeup(fill);
}

/* Posts a batch of frames, or leaves it to another queue; returns how many these are. 0:
 * there is no room for a batch, or there are too few frames. */
static inline uint32_t refill(struct xdp_ring *own, struct xsk *xsk, bool may_grow)
{
	struct xsk_ring *fill = &xsk->fill;
	uint32_t batch = xsk->fill_batch;
	uint32_t room = xsk_room(fill, batch);

	if (LIKELY(room < batch))
		return 0;
	if (UNLIKELY(room > fill->size - fill->size / 4 && xsk->was_full && may_grow))
		post_more(own, xsk);
	else if (UNLIKELY(own->poorest) && give_way(own, xsk))
		return batch;
	for (uint32_t cnt = 0; cnt < batch; cnt++) {
		struct pkt *pkt = ring_pkt_alloc(&own->ring);

		if (UNLIKELY(!pkt))
			pkt = find_sent(own);
		if (UNLIKELY(!pkt)) {
			own->ring.counts->rx_no_frame++;
			own->is_short = true;
			note_posted(own, fill);
			return 0;
		}
		pkt->flags = PKT_WITH_DEVICE;
		*xsk_offset(fill, fill->next++) =
			region_offset(own->ring.dev->region, pkt);
	}
	note_posted(own, fill);
	xsk->was_full |= xsk_room(fill, batch) < batch;
	return batch;
}

/* If there is a single queue and it has frames posted, the position of its producer
 * tells whether there is anything to do. */
static inline void set_quiet(struct xdp_ring *own)
{
	bool is_plain = own->queue_cnt == 1 && !own->is_short;

	own->can_peek = is_plain && !own->queues[0].partial;
	if (UNLIKELY(!is_plain)) {
		ring_set_busy(&own->ring);
		return;
	}
	own->ring.rx_word = own->queues[0].rx.producer;
	own->ring.rx_quiet = own->queues[0].rx.next;
}

/* When few frames are used in turn, each of them is still in the processor's cache
 * when the next packet is received into it. */
static void fill_up(struct xdp_ring *own, struct xsk *xsk, uint32_t few)
{
	few = MAX(few, (uint32_t)FILL_SIZE_MIN);
	resize_fill(xsk, MIN(own->rx_share, few));
	own->reserve -= own->rx_share;
	while (refill(own, xsk, false))
		;
}

/* The packet of a received frame, whose descriptor was made when it was posted. */
static struct pkt *to_pkt(struct xdp_ring *own, const struct xdp_desc *desc)
{
	struct region *region = own->ring.dev->region;
	struct pkt *pkt = region_pkt(region, desc->addr);

	pkt->flags = 0;
	pkt->data = region->mem + desc->addr;
	pkt->len = desc->len;
	return pkt;
}

/* Joins the frames of one packet; NULL until the last of them has come. */
static struct pkt *assemble(struct xsk *xsk, struct pkt *pkt, bool is_last)
{
	struct pkt **at = &xsk->partial;

	while (*at)
		at = &(*at)->next_part;
	*at = pkt;
	if (!is_last)
		return NULL;
	pkt = xsk->partial;
	xsk->partial = NULL;
	return pkt;
}

/* A packet has taken a great part of the frames that the queue has. The kernel drops one that is
 * longer than what is posted, of which nothing is seen here, and others may be longer. */
static COLD void make_room_for_longer(struct xdp_ring *own, struct xsk *xsk,
				      const struct pkt *pkt)
{
	uint32_t cnt = 1;

	while ((pkt = pkt->next_part))
		cnt++;
	if (cnt > xsk->fill.size / 4)
		post_more(own, xsk);
}

static inline unsigned poll_queue(struct xdp_ring *own, struct xsk *xsk,
				  bool was_short, struct pkt **batch,
				  unsigned cnt)
{
	uint32_t available = xsk_available(&xsk->rx, cnt);
	uint32_t wanted = MAX(2 * available, (uint32_t)FILL_BATCH), posted = 0, last;
	unsigned got = 0;

	if (!available && LIKELY(!was_short))
		return 0;
	for (uint32_t i = 0; i < available; i++) {
		const struct xdp_desc *desc = xsk_desc(&xsk->rx, xsk->rx.next++);
		bool is_last = !(desc->options & XDP_PKT_CONTD);
		struct pkt *pkt = to_pkt(own, desc);

		own->ring.counts->rx_bytes += desc->len;
		if (UNLIKELY(!is_last || xsk->partial)) {
			pkt = assemble(xsk, pkt, is_last);
			if (!pkt)
				continue;
			make_room_for_longer(own, xsk, pkt);
		}
		batch[got++] = pkt;
	}
	xsk_consumed(&xsk->rx);
	own->ring.counts->rx_pkts += got;
	/* As many as were taken, so that a large batch does not use them up, and as many
	 * more to make up for what came before. A queue to which frames were wanting does
	 * not run short for having few. */
	do {
		last = refill(own, xsk, !was_short);
		posted += last;
	} while (UNLIKELY(last && posted < wanted));
	return got;
}

static unsigned xdp_rx_poll(struct ring *ring, struct pkt **batch, unsigned cnt)
{
	struct xdp_ring *own = ring_of(ring);
	bool was_short = own->is_short;
	uint32_t at = own->first, left = own->queue_cnt;
	unsigned got = 0;

	own->is_short = false;
	for (; left && got < cnt; left--) {
		got += poll_queue(own, &own->queues[at], was_short, batch + got,
				  cnt - got);
		at = at + 1 < own->queue_cnt ? at + 1 : 0;
	}
	/* it begins where this one has stopped, with what may be short of frames there */
	own->first = at;
	if (UNLIKELY(left))
		own->is_short |= was_short;
	set_quiet(own);
	return got;
}

static struct ring_frame xdp_rx_peek(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);
	struct xsk_ring *rx = &own->queues[0].rx;
	const struct xdp_desc *desc = xsk_desc(rx, rx->next);

	if (UNLIKELY(!own->can_peek || !xsk_available(rx, 1) ||
		     desc->options & XDP_PKT_CONTD))
		return RING_NO_FRAME;
	return (struct ring_frame){ own->mem + desc->addr, desc->len,
				    PKT_CSUM_UNKNOWN, rx->end - rx->next > 1 };
}

/* The frame is posted again at once, without a look at its packet; only a full
 * fill ring has no room for it. */
static void xdp_rx_done(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);
	struct xsk_ring *fill = &own->queues[0].fill, *rx = &own->queues[0].rx;
	struct stats_ring_counters *counts = ring->counts;
	const struct xdp_desc *desc = xsk_desc(rx, rx->next);
	uint64_t addr = desc->addr;

	counts->rx_pkts++;
	counts->rx_bytes += desc->len;
	ring->rx_quiet = ++rx->next;
	xsk_consumed(rx);
	if (UNLIKELY(!xsk_room(fill, 1))) {
		struct pkt *pkt = region_pkt(ring->dev->region, addr);

		pkt->flags = 0;
		pkt_put(pkt);
		return;
	}
	*xsk_offset(fill, fill->next++) = addr & own->frame_mask;
	xsk_produced(fill);
	if (UNLIKELY(xsk_needs_wakeup(fill)))
		ring->wants_kick = true;
}

/* -- sending ------------------------------------------------------------------ */

/* Whether so many frames can be posted. A frame that was posted counts until it
 * comes back, whether the kernel has read it or not. ring.tx_frame has its place,
 * because who commits it does not ask again. */
static inline bool has_room(const struct xdp_ring *own, uint32_t cnt)
{
	cnt += own->ring.tx_frame != NULL;
	return LIKELY(sending_cnt(own) + cnt <= own->queues[0].tx.size);
}

static COLD void take_tx_frame(struct xdp_ring *own)
{
	struct pkt *pkt;

	own->ring.tx_frame = NULL;
	reap_sent(own);
	if (!has_room(own, 1))
		return;
	pkt = ring_pkt_alloc(&own->ring);
	if (!pkt)
		return;
	pkt->flags = PKT_WITH_DEVICE;
	own->ring.tx_frame = pkt->buf;
}

/* A frame that has been sent is written again at once, without a look at its
 * packet, unless there are so many that the pool may miss them. */
static inline void next_tx_frame(struct xdp_ring *own)
{
	struct xsk_ring *done = &own->queues[0].done;

	uint32_t next = done->next;

	if (UNLIKELY(xsk_available(done, UINT32_MAX) - 1 >= REAP_BATCH)) {
		take_tx_frame(own);
		return;
	}
	own->ring.tx_frame =
		own->mem + (*xsk_offset(done, next) & own->frame_mask);
	done->next = next + 1;
	xsk_consumed(done);
}

static void xdp_reap(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);

	if (ring->tx_frame)
		reap_sent(own);
	else
		take_tx_frame(own);
	/* what has not come back may wait for a kick that failed */
	ring->wants_kick = sending_cnt(own) > 0;
}

/* The kernel has it from the next kick on. */
static inline void post(struct xdp_ring *own, const uint8_t *frame, size_t len)
{
	struct ring *ring = &own->ring;
	struct stats_ring_counters *counts = ring->counts;
	struct xsk_ring *tx = &own->queues[0].tx;
	uint32_t at = tx->next;
	struct xdp_desc *desc = xsk_desc(tx, at);

	INVARIANT(sending_cnt(own) < tx->size, "nothing is overwritten");
	desc->addr = (uint64_t)(frame - own->mem);
	desc->len = (uint32_t)len;
	/* desc->options is 0 from the beginning */
	tx->next = at + 1;
	xsk_produced(tx);
	counts->tx_pkts++;
	counts->tx_bytes += len;
}

static void xdp_tx_commit(struct ring *ring, size_t len)
{
	struct xdp_ring *own = ring_of(ring);

	post(own, ring->tx_frame, len);
	next_tx_frame(own);
}

static int xdp_tx(struct ring *ring, const struct ring_tx *tx)
{
	struct xdp_ring *own = ring_of(ring);
	struct pkt *pkt = NULL;

	/* a small pool may have no others than those few */
	if (sending_cnt(own) >= REAP_BATCH || UNLIKELY(!ring->pool->free_cnt))
		reap_sent(own);
	if (has_room(own, 1))
		pkt = ring_tx_wrap(ring, tx, true);
	else
		pkt_put(tx->payload);
	if (UNLIKELY(!pkt)) {
		ring->counts->tx_full++;
		/* a kick that failed may have left it full */
		ring->wants_kick |= sending_cnt(own) > 0;
		return -EAGAIN;
	}
	pkt->flags = PKT_WITH_DEVICE;
	post(own, pkt->data, pkt->len);
	ring->wants_kick = true;
	return 0;
}

static bool xdp_tx_fits(struct ring *ring, uint32_t cnt, uint32_t copied)
{
	struct xdp_ring *own = ring_of(ring);

	if (LIKELY(has_room(own, cnt) && ring_has_pkts(ring, copied)))
		return true;
	reap_sent(own);
	return has_room(own, cnt) && ring_has_pkts(ring, copied);
}

/* Some drivers wait for this call after they had no frames to receive into. */
static COLD void wake_receivers(struct xdp_ring *own)
{
	for (uint32_t i = 0; i < own->queue_cnt; i++) {
		struct xsk *xsk = &own->queues[i];

		if (!xsk_needs_wakeup(&xsk->fill))
			continue;
		own->ring.counts->kicks++;
		syscall_raw(SYS_recvfrom,
			    atomic_load_explicit(&xsk->fd,
						 memory_order_relaxed),
			    0, 0, MSG_DONTWAIT, 0, 0);
	}
}

/* Whether the kernel refused because the device has no room. */
static COLD enum ring_kick refused(struct xdp_ring *own)
{
	uint32_t taken = atomic_load_explicit(own->queues[0].tx.consumer,
					      memory_order_relaxed);
	bool is_further = taken != own->tx_refused_at;

	own->tx_refused_at = taken;
	return is_further ? RING_KICK_MORE : RING_KICK_LATER;
}

/* One call moves KICK_BATCH frames, or fails for a moment while the kernel is
 * working on the queue. We call again as long as that moves frames. */
static enum ring_kick xdp_kick(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);
	struct xsk *xsk = &own->queues[0];
	long err;

	if (UNLIKELY(atomic_load_explicit(own->wake_word,
					  memory_order_relaxed) &
		     XDP_RING_NEED_WAKEUP))
		wake_receivers(own);
	if (!xsk_needs_wakeup(&xsk->tx))
		return RING_KICKED;
	ring->counts->kicks++;
	err = syscall_raw(SYS_sendto,
			  atomic_load_explicit(&xsk->fd, memory_order_relaxed), 0, 0,
			  MSG_DONTWAIT, 0, 0);
	if (LIKELY(err >= 0))
		return RING_KICKED;
	/* it is down or gone, and another kick would change nothing */
	if (err == -ENETDOWN || err == -ENXIO)
		return RING_KICKED;
	return refused(own);
}

/* In the kernel's rings it is ours: it goes with the process. */
static bool xdp_tx_is_done(struct ring *ring)
{
	xdp_reap(ring);
	return !ring->wants_kick;
}

/* -- sleeping ----------------------------------------------------------------- */

static unsigned xdp_fds(struct ring *ring, int *fds, unsigned cnt)
{
	struct xdp_ring *own = ring_of(ring);

	for (uint32_t i = 0; i < own->queue_cnt && i < cnt; i++)
		fds[i] = atomic_load(&own->queues[i].fd);
	return own->queue_cnt;
}

/* The fds are readable while there are entries: nothing to arm. */
static bool xdp_arm(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);

	for (uint32_t i = 0; i < own->queue_cnt; i++)
		if (xsk_available(&own->queues[i].rx, 1))
			return false;
	return true;
}

/* What was posted, and has not been received or sent. */
static uint32_t xdp_device_cnt(const struct ring *ring)
{
	const struct xdp_ring *own =
		CONTAINER_OF(ring, const struct xdp_ring, ring);
	uint32_t cnt = sending_cnt(own) + (ring->tx_frame != NULL);

	for (uint32_t i = 0; i < own->queue_cnt; i++)
		cnt += own->queues[i].fill.next - own->queues[i].rx.next;
	return cnt;
}

/* -- life --------------------------------------------------------------------- */

/* Takes back the frames that only the kernel's rings know. After the sockets are
 * closed nobody writes to them. */
static void take_back(struct xdp_ring *own)
{
	struct region *region = own->ring.dev->region;

	for (uint32_t id = 0; id < region->frame_cnt; id++) {
		struct pkt *pkt = &region->pkts[id];

		if (!(pkt->flags & PKT_WITH_DEVICE))
			continue;
		pkt->flags = 0;
		pkt_put(pkt);
	}
}

static void xdp_stop(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);

	for (uint32_t i = 0; i < own->queue_cnt; i++)
		xsk_destroy(&own->queues[i]);
}

static void xdp_take_back(struct ring *ring)
{
	struct xdp_ring *own = ring_of(ring);

	for (uint32_t i = 0; i < own->queue_cnt; i++)
		pkt_put(own->queues[i].partial);
	take_back(own);
}

void xdp_ring_destroy(struct xdp_ring *own)
{
	xdp_stop(&own->ring);
	xdp_take_back(&own->ring);
	free(own);
}

static void xdp_close(struct ring *ring)
{
	struct xdp_dev *dev = CONTAINER_OF(ring->dev, struct xdp_dev, dev);

	dev->ring = NULL;
	dev->is_ring_taken = false;
	free(ring_of(ring));
}

static struct ring_ops xdp_ring_ops = {
	.rx_poll = xdp_rx_poll,
	.rx_peek = xdp_rx_peek,
	.rx_done = xdp_rx_done,
	.tx = xdp_tx,
	.tx_commit = xdp_tx_commit,
	.tx_fits = xdp_tx_fits,
	.reap = xdp_reap,
	.tx_is_done = xdp_tx_is_done,
	.kick = xdp_kick,
	.fds = xdp_fds,
	.arm = xdp_arm,
	.device_cnt = xdp_device_cnt,
	.stop = xdp_stop,
	.take_back = xdp_take_back,
	.close = xdp_close,
};

void xdp_ring_module(void)
{
	ring_ops_fill(&xdp_ring_ops);
}

/* The room of each queue's ring: the largest power of two when half of the frames are
 * kept for sending and for sockets to hold. */
static uint32_t fill_size(const struct xdp_dev *dev)
{
	uint32_t half = dev->dev.region->frame_cnt / 2;
	uint32_t size = FILL_SIZE_MIN;

	while (size * 2 <= half && size < RX_SIZE)
		size *= 2;
	return size;
}

/* How many frames all queues together have at most, and how many each has for certain.
 * What several queues begin with is not all: a quarter is for those that run short. */
static void share_out(struct xdp_ring *own, uint32_t size, uint32_t queue_cnt)
{
	uint32_t half = own->ring.dev->region->frame_cnt / 2;
	uint32_t all = MIN(half, size * queue_cnt);

	own->rx_share = queue_cnt == 1 ? size : all / 4 * 3 / queue_cnt;
	own->rx_share = MAX(own->rx_share, (uint32_t)FILL_SIZE_MIN);
	own->ring.rx_post_max = MAX(all, own->rx_share * queue_cnt);
}

/* After the end of the process that had the queues before, they stay busy for some
 * milliseconds; on a busy system, where the kernel's clean-up waits for its turn, for a
 * second and more. Our program is attached, so nobody receives by them. Somebody who says
 * that he has them may be about to end, and is not waited for that long. In the same way the
 * memory of a socket counts for its user's limit (without CAP_IPC_LOCK) for a while after the
 * socket is closed, also that of a try before. */
enum {
	BUSY_RETRIES = 50,
	BUSY_RETRIES_OWNERLESS = 5000,
	FULL_RETRIES = 250,
	BUSY_NAP_US = 1000,
};

static int create_xsk(struct xsk *xsk, const struct xsk_params *params)
{
	int err = xsk_create(xsk, params);
	bool was_busy = err == -EBUSY;

	for (int i = 0; (err == -EBUSY || err == -ENOBUFS) && i < BUSY_RETRIES_OWNERLESS;
	     i++) {
		if (was_busy ? i >= BUSY_RETRIES && owner_ask(params->ifindex) :
			       i >= FULL_RETRIES)
			break;
		usleep(BUSY_NAP_US);
		err = xsk_create(xsk, params);
		was_busy |= err == -EBUSY;
	}
	return err;
}

/* The parameters of the first queue's socket. */
static struct xsk_params xsk_params_of(const struct xdp_dev *dev,
				       uint16_t bind_flags)
{
	struct region *region = dev->dev.region;

	return (struct xsk_params){
		.ifindex = dev->dev.ifindex,
		.mem = region->mem,
		.mem_size = (size_t)region->frame_cnt * region->frame_size,
		.frame_size = region->frame_size,
		.shared_fd = -1,
		.bind_flags = bind_flags,
		.rx_size = RX_SIZE,
		.tx_size = TX_SIZE,
		.fill_size = fill_size(dev),
		.done_size = TX_SIZE,
	};
}

bool xdp_queue_is_taken(struct xdp_dev *dev, uint16_t bind_flags)
{
	struct xsk_params params = xsk_params_of(dev, bind_flags);
	struct xsk xsk;
	int err = xsk_create(&xsk, &params);

	if (!err)
		xsk_destroy(&xsk);
	return err == -EBUSY;
}

int xdp_ring_create(struct xdp_dev *dev, uint16_t bind_flags,
		    struct xdp_ring **ring_out)
{
	static _Atomic uint32_t ask_each = XDP_RING_NEED_WAKEUP;
	struct region *region = dev->dev.region;
	struct xdp_ring *own = calloc(1, sizeof(*own) + dev->queue_cnt *
							sizeof(struct xsk));
	struct xsk_params params = xsk_params_of(dev, bind_flags);
	int err;

	if (!own)
		return -ENOMEM;
	own->ring.ops = &xdp_ring_ops;
	own->ring.dev = &dev->dev;
	own->ring.needs_kick = true;
	own->ring.counts = &own->ring.own_counts;
	own->mem = region->mem;
	own->frame_mask = -(uint64_t)region->frame_size;
	share_out(own, params.fill_size, dev->queue_cnt);
	for (uint32_t i = 0; i < dev->queue_cnt; i++) {
		params.queue = i;
		err = create_xsk(&own->queues[i], &params);
		if (!err) {
			own->queue_cnt++;
			err = steer_set_queue(dev->steer, i,
					      atomic_load(&own->queues[i].fd));
		}
		if (err) {
			xdp_ring_destroy(own);
			return err;
		}
		params.shared_fd = atomic_load(&own->queues[0].fd);
	}
	own->wake_word = own->queue_cnt == 1 ? own->queues[0].fill.flags :
					       &ask_each;
	*ring_out = own;
	return 0;
}

void xdp_ring_start(struct xdp_ring *own, struct pkt_pool *pool)
{
	const struct xdp_dev *dev =
		CONTAINER_OF(own->ring.dev, const struct xdp_dev, dev);

	own->ring.pool = pool;
	/* one place is tx_frame's */
	own->ring.tx_fits_max = own->queues[0].tx.size - 1;
	own->reserve = own->ring.rx_post_max;
	for (uint32_t i = 0; i < own->queue_cnt; i++)
		fill_up(own, &own->queues[i], dev->rx_post_first);
	wake_receivers(own);
	take_tx_frame(own);
	set_quiet(own);
}
