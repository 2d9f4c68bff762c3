/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data path by portable verbs: frames in and out of a queue pair by the calls
 * that libibverbs has for every device. None of these calls is a system call on
 * devices with queues in user space.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dev/rdma/rdma_priv.h"
#include "dev/ring_tx.h"
#include "pkt/wire.h"

enum {
	/* completions taken at once, and frames posted by one call */
	POLL_BATCH = 16,
	POST_BATCH = 32,
	MARKER_TYPE = 0x88b5,
	MARKER_LEN = 60,
};

struct verbs_ring {
	struct rdma_ring base;
	/* How many frames are posted, how many shall be, and of how many missing ones
	 * we take note. */
	uint32_t rx_posted;
	uint32_t rx_target;
	uint32_t rx_batch;
	/* How many frames came since the queue was empty. */
	uint32_t rx_run;
	/* The completion that rx_peek has shown, and nobody has taken yet. No other one
	 * is read ahead: none of them would raise an event any more, so who sleeps
	 * would not hear of them. */
	struct ibv_wc held;
	bool has_held;
	/* What the next call will post; it counts as posted. With so many of rx_done that
	 * call is due. Each request leads to the next one, with one part of the same
	 * length. */
	struct ibv_recv_wr wrs[POST_BATCH];
	struct ibv_sge sges[POST_BATCH];
	uint32_t wr_cnt;
	uint32_t done_max;
	/* How many events were read. Who arms, under the stack's lock, sees by it that
	 * one was read meanwhile, which needs no lock. */
	_Atomic uint32_t event_cnt;
	/* What was sent and is not known to be complete: the frames in the order of
	 * sending, NULL for one that was copied into the queue. Counters that run
	 * on. */
	struct pkt **sent;
	uint32_t sent_mask;
	uint32_t sent_head;
	uint32_t sent_tail;
	uint32_t sent_pkts; /* those that are not NULL */
	/* a send whose number has none of these bits set asks for a completion; and the same
	 * while no frame is followed */
	uint32_t signal_mask;
	uint32_t signal_mask_usual;
	uint32_t inline_max;
	/* the flag of what the device computes of a frame in place */
	unsigned csum;
	/* sent_head behind the last send that a completion was asked for */
	uint32_t signaled_head;
	/* the packet whose buffer is ring.tx_frame */
	struct pkt *tx_pkt;
};

static struct verbs_ring *ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct verbs_ring, base.ring);
}

/* -- receiving --------------------------------------------------------------------- */

/* Takes a packet that counts as posted. There is room. */
static inline void add_wr(struct verbs_ring *own, struct pkt *pkt)
{
	uint32_t i = own->wr_cnt++;

	own->wrs[i].wr_id = (uintptr_t)pkt;
	own->sges[i].addr = (uintptr_t)pkt->data;
	own->sges[i].lkey = rdma_lkey(own->base.dev, pkt);
}

static COLD void take_back_wrs(struct verbs_ring *own, struct ibv_recv_wr *bad)
{
	for (; bad; bad = bad->next) {
		struct pkt *pkt = (struct pkt *)(uintptr_t)bad->wr_id;

		own->rx_posted--;
		pkt->flags = 0;
		pkt_put(pkt);
	}
	rdma_has_failed(own->base.dev);
}

static void post_wrs(struct verbs_ring *own)
{
	struct ibv_recv_wr *last = &own->wrs[own->wr_cnt - 1], *bad = NULL;

	own->wr_cnt = 0;
	last->next = NULL;
	if (UNLIKELY(ibv_post_recv(own->base.queues.qp, own->wrs, &bad) != 0))
		take_back_wrs(own, bad);
	last->next = last + 1;
}

/* Posts a packet, at the latest by the next post_wrs. */
static void post_pkt(struct verbs_ring *own, struct pkt *pkt)
{
	if (own->wr_cnt == POST_BATCH)
		post_wrs(own);
	pkt->flags = PKT_WITH_DEVICE;
	own->rx_posted++;
	add_wr(own, pkt);
}

/* Takes so many frames of the pool, or as many as there are, and posts them. How many. */
static uint32_t post_frames(struct verbs_ring *own, uint32_t cnt)
{
	uint32_t taken;

	for (taken = 0; taken < cnt; taken++) {
		struct pkt *pkt = ring_pkt_alloc(&own->base.ring);

		if (!pkt)
			break;
		post_pkt(own, pkt);
	}
	if (own->wr_cnt)
		post_wrs(own);
	return taken;
}

/* Whether most of what the device had was full before we looked. */
static void look_back(struct verbs_ring *own)
{
	if (UNLIKELY(own->rx_run > own->rx_target - own->rx_target / 4))
		own->base.ring.wants_region =
			rdma_rx_may_grow(own->base.dev, &own->base.queues);
}

static void reap_if_short(struct verbs_ring *own);

static COLD void refill_slowly(struct verbs_ring *own)
{
	look_back(own);
	reap_if_short(own);
	own->base.busy &= (uint8_t)~RDMA_SHORT;
	while (own->rx_target - own->rx_posted >= own->rx_batch) {
		uint32_t cnt = MIN((uint32_t)POST_BATCH, own->rx_batch);

		if (post_frames(own, cnt) < cnt ||
		    atomic_load(&own->base.dev->failure)) {
			own->base.busy |= RDMA_SHORT;
			own->base.ring.counts->rx_no_frame++;
			return;
		}
	}
}

static inline void refill(struct verbs_ring *own)
{
	if (UNLIKELY(own->rx_target - own->rx_posted >= own->rx_batch))
		refill_slowly(own);
}

/* Without other frames, that of a received packet is posted again, so that the
 * queue does not run dry. */
static COLD bool is_kept(struct verbs_ring *own, struct pkt *pkt)
{
	if (!own->base.dev->params->is_kept_full || own->base.ring.pool->free ||
	    own->rx_posted > own->rx_batch)
		return false;
	pkt->data = pkt->buf + own->base.ring.pool->headroom;
	pkt->len = 0;
	own->base.ring.counts->rx_errors++;
	post_pkt(own, pkt);
	post_wrs(own);
	return true;
}

/* Of a frame that is not right the device does not say what is wrong. */
static inline uint8_t csum_of(const struct verbs_ring *own, const struct ibv_wc *wc)
{
	return own->base.dev->has_csum && wc->wc_flags & IBV_WC_IP_CSUM_OK ?
		       PKT_CSUM_GOOD :
		       PKT_CSUM_UNKNOWN;
}

/* What a completion brings; NULL: no packet for the caller. */
static struct pkt *receive(struct verbs_ring *own, const struct ibv_wc *wc)
{
	struct stats_ring_counters *counts = own->base.ring.counts;
	struct pkt *pkt = (struct pkt *)(uintptr_t)wc->wr_id;

	own->rx_posted--;
	pkt->flags &= (uint8_t)~PKT_WITH_DEVICE;
	if (UNLIKELY(wc->status != IBV_WC_SUCCESS)) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			counts->rx_errors++;
		rdma_has_failed(own->base.dev);
		pkt_put(pkt);
		return NULL;
	}
	if (UNLIKELY(own->base.busy & RDMA_SHORT) && is_kept(own, pkt))
		return NULL;
	pkt->len = wc->byte_len;
	pkt->csum_verdict = csum_of(own, wc);
	counts->rx_pkts++;
	counts->rx_bytes += wc->byte_len;
	return pkt;
}

/* What a completion says, which is being read, and its time stamp if somebody asks. */
static inline void read_parts(struct verbs_ring *own, struct ibv_cq_ex *cq,
			      struct ibv_wc *wc)
{
	wc->wr_id = cq->wr_id;
	wc->status = cq->status;
	if (UNLIKELY(wc->status != IBV_WC_SUCCESS))
		return;
	wc->byte_len = ibv_wc_read_byte_len(cq);
	wc->wc_flags = ibv_wc_read_wc_flags(cq);
	if (UNLIKELY(own->base.ring.wants_stamps && own->base.queues.rx_stamped))
		rdma_stamp(&own->base, (struct pkt *)(uintptr_t)wc->wr_id,
			   ibv_wc_read_completion_ts(cq));
}

/* ibv_poll_cq(), part by part. */
static inline int read_wcs_by_parts(struct verbs_ring *own, struct ibv_cq_ex *cq,
				    struct ibv_wc *wcs, unsigned cnt)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int err = ibv_start_poll(cq, &attr), n = 0;

	/* then there is nothing to be ended */
	if (err)
		return err == ENOENT ? 0 : -err;
	do {
		read_parts(own, cq, &wcs[n++]);
		err = (unsigned)n < cnt ? ibv_next_poll(cq) : ENOENT;
	} while (!err);
	ibv_end_poll(cq);
	return err == ENOENT ? n : -err;
}

/* Reads completions; returns how many. */
static ALWAYS_INLINE unsigned read_wcs(struct verbs_ring *own, struct ibv_wc *wcs,
				       unsigned cnt)
{
	struct ibv_cq_ex *parts = own->base.queues.rx_parts;
	int n = LIKELY(parts) ?
			read_wcs_by_parts(own, parts, wcs, cnt) :
			ibv_poll_cq(own->base.queues.rx_cq, (int)cnt, wcs);

	if (UNLIKELY(n < 0)) {
		rdma_has_failed(own->base.dev);
		n = 0;
	}
	own->rx_run = (unsigned)n < cnt ? 0 : own->rx_run + (unsigned)n;
	return (unsigned)n;
}

/* Takes completions, the one that was shown first; returns how many. */
static unsigned take_wcs(struct verbs_ring *own, struct ibv_wc *wcs, unsigned cnt)
{
	unsigned held_cnt = own->has_held;

	if (held_cnt)
		wcs[0] = own->held;
	own->has_held = false;
	return held_cnt == cnt ? cnt :
				 held_cnt + read_wcs(own, wcs + held_cnt,
						     cnt - held_cnt);
}

static void post_done(struct verbs_ring *own)
{
	look_back(own);
	post_wrs(own);
}

static void look_for_followed(struct verbs_ring *own);

static unsigned verbs_rx_poll(struct ring *ring, struct pkt **batch,
			      unsigned cnt)
{
	struct verbs_ring *own = ring_of(ring);
	struct ibv_wc wcs[POLL_BATCH];
	unsigned got = 0, taken = 0, asked, n;

	do {
		asked = MIN(cnt - taken, (unsigned)POLL_BATCH);
		n = take_wcs(own, wcs, asked);
		taken += n;
		for (unsigned i = 0; i < n; i++) {
			struct pkt *pkt = receive(own, &wcs[i]);

			if (LIKELY(pkt))
				batch[got++] = pkt;
		}
	} while (n == asked && taken < cnt);
	refill(own);
	if (UNLIKELY(own->base.busy & RDMA_FOLLOWS))
		look_for_followed(own);
	return got;
}

/* Whether another frame waits could be found out only by reading its completion. */
static struct ring_frame verbs_rx_peek(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);
	const struct ibv_wc *wc = &own->held;

	if (!own->has_held)
		own->has_held = read_wcs(own, &own->held, 1);
	if (!own->has_held || UNLIKELY(wc->status != IBV_WC_SUCCESS ||
				       own->base.busy))
		return RING_NO_FRAME;
	return (struct ring_frame){
		((const struct pkt *)(uintptr_t)wc->wr_id)->data, wc->byte_len,
		csum_of(own, wc), true
	};
}

static void verbs_rx_done(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);
	const struct ibv_wc *wc = &own->held;

	own->has_held = false;
	ring->counts->rx_pkts++;
	ring->counts->rx_bytes += wc->byte_len;
	add_wr(own, (struct pkt *)(uintptr_t)wc->wr_id);
	if (UNLIKELY(own->wr_cnt >= own->done_max))
		post_done(own);
}

static void arm(struct verbs_ring *own, struct ibv_cq *cq)
{
	if (ibv_req_notify_cq(cq, 0) != 0)
		rdma_has_failed(own->base.dev);
}

/* -- sending ----------------------------------------------------------------------- */

static inline uint32_t sending_cnt(const struct verbs_ring *own)
{
	return own->sent_head - own->sent_tail;
}

static inline bool has_room(const struct verbs_ring *own, uint32_t cnt)
{
	return sending_cnt(own) + cnt <= own->sent_mask + 1;
}

/* Frames are complete up to that one, and including it. */
static void complete_up_to(struct verbs_ring *own, uint32_t last)
{
	while ((int32_t)(last - own->sent_tail) >= 0) {
		struct pkt *pkt = own->sent[own->sent_tail++ & own->sent_mask];

		if (!pkt)
			continue;
		pkt->flags = 0;
		pkt_put_quick(pkt);
		own->sent_pkts--;
	}
}

/* A completion that is being read. */
static void read_followed(struct verbs_ring *own, struct ibv_cq_ex *cq)
{
	uint32_t number = (uint32_t)cq->wr_id;

	complete_up_to(own, number);
	if (cq->status == IBV_WC_SUCCESS)
		rdma_has_left(&own->base, number, ibv_wc_read_completion_ts(cq));
	else
		rdma_has_failed(own->base.dev);
}

/* reap_sent() with time stamps. */
static COLD void reap_followed(struct verbs_ring *own)
{
	struct ibv_cq_ex *cq = own->base.queues.tx_stamped;
	struct ibv_poll_cq_attr attr = { 0 };
	int err = ibv_start_poll(cq, &attr);
	bool is_open = !err;

	for (int n = 0; !err; err = ++n < POLL_BATCH ? ibv_next_poll(cq) : ENOENT)
		read_followed(own, cq);
	if (is_open)
		ibv_end_poll(cq);
	if (err != ENOENT)
		rdma_has_failed(own->base.dev);
}

static void reap_sent(struct verbs_ring *own)
{
	struct ibv_wc wcs[POLL_BATCH];
	int n;

	if (UNLIKELY(own->base.busy & RDMA_FOLLOWS)) {
		reap_followed(own);
		return;
	}
	n = ibv_poll_cq(own->base.queues.tx_cq, POLL_BATCH, wcs);
	if (UNLIKELY(n < 0))
		rdma_has_failed(own->base.dev);
	for (int i = 0; i < n; i++) {
		complete_up_to(own, (uint32_t)wcs[i].wr_id);
		if (wcs[i].status != IBV_WC_SUCCESS)
			rdma_has_failed(own->base.dev);
	}
}

/* Frames that have been sent may be all that there are. */
static void reap_if_short(struct verbs_ring *own)
{
	if (UNLIKELY(!own->base.ring.pool->free))
		reap_sent(own);
}

/* There is always a place where a frame can be written while the queue has room. */
static void take_tx_frame(struct verbs_ring *own)
{
	if (!own->tx_pkt)
		own->tx_pkt = ring_pkt_alloc(&own->base.ring);
	if (own->tx_pkt)
		own->tx_pkt->flags = PKT_WITH_DEVICE;
	own->base.ring.tx_frame = own->tx_pkt && has_room(own, 1) ?
					  own->tx_pkt->buf :
					  NULL;
}

static COLD void look_for_followed(struct verbs_ring *own)
{
	reap_sent(own);
	if (!own->base.ring.tx_frame)
		take_tx_frame(own);
}

static void verbs_reap(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);

	reap_sent(own);
	take_tx_frame(own);
}

/* A frame with the number, as post_frame has it. */
static inline int send_by_parts(struct ibv_qp_ex *qp, uint32_t number,
				const uint8_t *frame, size_t len, bool is_inline,
				uint32_t lkey, unsigned flags)
{
	ibv_wr_start(qp);
	qp->wr_id = number;
	qp->wr_flags = flags;
	ibv_wr_send(qp);
	if (is_inline)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)frame, len);
	else
		ibv_wr_set_sge(qp, lkey, (uintptr_t)frame, (uint32_t)len);
	return ibv_wr_complete(qp);
}

/* The same where only whole requests can be posted. */
static NOINLINE int send_whole(struct ibv_qp *qp, uint32_t number,
			       const uint8_t *frame, size_t len, bool is_inline,
			       uint32_t lkey, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)frame,
		.length = (uint32_t)len,
		.lkey = lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags | (is_inline ? IBV_SEND_INLINE : 0),
	};

	return ibv_post_send(qp, &wr, &bad);
}

/* Posts a frame; there is room. `pkt` is given back when it is complete; NULL: the
 * frame is copied at once. */
static inline bool post_frame(struct verbs_ring *own, const uint8_t *frame,
			      size_t len, struct pkt *pkt, uint32_t lkey,
			      unsigned flags)
{
	uint32_t number = own->sent_head++;
	struct ibv_qp_ex *parts = own->base.queues.tx_parts;
	int err;

	own->sent[number & own->sent_mask] = pkt;
	own->sent_pkts += pkt != NULL;
	if (!(own->sent_head & own->signal_mask))
		flags |= IBV_SEND_SIGNALED;
	if (UNLIKELY(flags & IBV_SEND_SIGNALED)) {
		own->signaled_head = own->sent_head;
		if (UNLIKELY(own->base.wish))
			rdma_follow(&own->base, number);
	}
	if (LIKELY(parts))
		err = send_by_parts(parts, number, frame, len, !pkt, lkey, flags);
	else
		err = send_whole(own->base.queues.qp, number, frame, len, !pkt, lkey,
				 flags);
	if (LIKELY(!err))
		return true;
	rdma_has_failed(own->base.dev);
	return false;
}

static void post(struct verbs_ring *own, const uint8_t *frame, size_t len,
		 struct pkt *pkt, uint32_t lkey, unsigned flags)
{
	struct stats_ring_counters *counts = own->base.ring.counts;

	if (UNLIKELY(!post_frame(own, frame, len, pkt, lkey, flags)))
		return;
	counts->tx_pkts++;
	counts->tx_bytes += len;
}

static void verbs_tx_commit(struct ring *ring, size_t len)
{
	struct verbs_ring *own = ring_of(ring);

	if (LIKELY(len <= own->inline_max)) {
		post(own, ring->tx_frame, len, NULL, 0, own->csum);
	} else {
		post(own, ring->tx_frame, len, own->tx_pkt,
		     rdma_lkey(own->base.dev, own->tx_pkt), own->csum);
		own->tx_pkt = NULL;
	}
	if (UNLIKELY(sending_cnt(own) > own->sent_mask / 2))
		reap_sent(own);
	if (UNLIKELY(!own->tx_pkt || !has_room(own, 1)))
		take_tx_frame(own);
}

static int verbs_tx(struct ring *ring, const struct ring_tx *tx)
{
	struct verbs_ring *own = ring_of(ring);
	unsigned flags = 0;
	struct pkt *pkt = NULL;

	if (UNLIKELY(sending_cnt(own) > own->sent_mask / 2))
		reap_sent(own);
	else
		reap_if_short(own);
	if (LIKELY(has_room(own, 1)))
		pkt = ring_tx_wrap(ring, tx, !own->base.dev->has_csum);
	else
		pkt_put(tx->payload);
	if (UNLIKELY(!pkt)) {
		ring->counts->tx_full++;
		return -EAGAIN;
	}
	if (tx->flags & RING_TX_CSUM && own->base.dev->has_csum)
		flags = IBV_SEND_IP_CSUM;
	pkt->flags = PKT_WITH_DEVICE;
	post(own, pkt->data, pkt->len, pkt, rdma_lkey(own->base.dev, pkt),
	     flags);
	if (UNLIKELY(!has_room(own, 1)))
		ring->tx_frame = NULL;
	return 0;
}

/* What sleeps does so for frames that come, and for this one. */
static COLD void verbs_tx_follow(struct ring *ring, struct pkt *record)
{
	struct verbs_ring *own = ring_of(ring);

	own->signal_mask = record ? 0 : own->signal_mask_usual;
	if (!record) {
		rdma_unwish(&own->base);
		return;
	}
	pkt_get(record);
	own->base.wish = record;
	arm(own, own->base.queues.tx_cq);
}

static bool verbs_tx_fits(struct ring *ring, uint32_t cnt, uint32_t copied)
{
	struct verbs_ring *own = ring_of(ring);

	if (LIKELY(has_room(own, cnt) && ring_has_pkts(ring, copied)))
		return true;
	reap_sent(own);
	return has_room(own, cnt) && ring_has_pkts(ring, copied);
}

/* The queue says that it has sent what it had when it is asked to send something more:
 * a frame from the interface to itself, of a type that nobody takes (IEEE 802, local
 * experiments). */
static void send_marker(struct verbs_ring *own)
{
	const struct dev *dev = &own->base.dev->dev;
	struct pkt *pkt = ring_pkt_alloc(&own->base.ring);
	struct wire_eth *eth;

	if (!pkt)
		return;
	eth = (void *)pkt_append(pkt, MARKER_LEN);
	memset(eth, 0, MARKER_LEN);
	memcpy(eth->dst, dev->mac, sizeof(eth->dst));
	memcpy(eth->src, dev->mac, sizeof(eth->src));
	eth->type = htobe16(MARKER_TYPE);
	pkt->flags = PKT_WITH_DEVICE;
	(void)post_frame(own, pkt->data, pkt->len, pkt,
			 rdma_lkey(own->base.dev, pkt), IBV_SEND_SIGNALED);
}

static bool verbs_tx_is_done(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);

	reap_sent(own);
	if (!sending_cnt(own) || atomic_load(&own->base.dev->failure))
		return true;
	if (own->signaled_head != own->sent_head && has_room(own, 1))
		send_marker(own);
	return false;
}

/* -- sleeping ---------------------------------------------------------------------- */

static unsigned verbs_fds(struct ring *ring, int *fds, unsigned cnt)
{
	if (cnt)
		*fds = atomic_load(ring_of(ring)->base.queues.chan_fd);
	return 1;
}

/* An arming has the number of events that were read before. If that changes
 * meanwhile, it counts for nothing, and there is another one. A frame that has come
 * before is found by the poll that follows. */
static bool verbs_arm(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);
	uint32_t cnt;

	rdma_note_counts(&own->base);
	do {
		cnt = atomic_load(&own->event_cnt);
		arm(own, own->base.queues.rx_cq);
		if (UNLIKELY(own->base.busy & RDMA_FOLLOWS))
			arm(own, own->base.queues.tx_cq);
	} while (atomic_load(&own->event_cnt) != cnt);
	return !own->has_held;
}

/* Somebody may sleep on the fd whose event we read, so it is armed again for him:
 * what he waits for raises an event at once. */
static void verbs_acknowledge(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);
	struct rdma_events events = rdma_queues_acknowledge(&own->base);

	atomic_fetch_add(&own->event_cnt, events.rx_cnt + events.tx_cnt);
	if (events.rx_cnt)
		arm(own, own->base.queues.rx_cq);
	if (events.tx_cnt && atomic_load_explicit(&own->base.has_followed,
						  memory_order_relaxed))
		arm(own, own->base.queues.tx_cq);
}

static void verbs_rx_grow(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);

	ring->rx_post_max = rdma_rx_post_max(own->base.dev, &own->base.queues);
	own->rx_target = ring->rx_post_max;
}

static uint32_t verbs_device_cnt(const struct ring *ring)
{
	const struct verbs_ring *own =
		CONTAINER_OF(ring, const struct verbs_ring, base.ring);

	return own->rx_posted + own->sent_pkts + (own->tx_pkt != NULL);
}

/* -- life -------------------------------------------------------------------------- */

/* Takes back the frames that only the queue knew of. */
static void take_back_of(struct verbs_ring *own, struct region *region)
{
	for (uint32_t id = 0; id < region->frame_cnt; id++) {
		struct pkt *pkt = &region->pkts[id];

		if (!(pkt->flags & PKT_WITH_DEVICE) ||
		    pkt->pool != own->base.ring.pool)
			continue;
		pkt->flags = 0;
		pkt_put(pkt);
	}
}

static void verbs_stop(struct ring *ring)
{
	rdma_queues_close(&ring_of(ring)->base.queues);
}

static void verbs_take_back(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);
	struct region_set *set = &own->base.dev->dev.regions;

	for (uint32_t i = 0; i < atomic_load(&set->cnt); i++)
		take_back_of(own, set->regions[i]);
}

static void verbs_close(struct ring *ring)
{
	struct verbs_ring *own = ring_of(ring);

	free(own->sent);
	free(own);
}

static struct ring_ops ring_ops = {
	.rx_poll = verbs_rx_poll,
	.rx_peek = verbs_rx_peek,
	.rx_done = verbs_rx_done,
	.tx = verbs_tx,
	.tx_commit = verbs_tx_commit,
	.tx_follow = verbs_tx_follow,
	.tx_fits = verbs_tx_fits,
	.tx_is_done = verbs_tx_is_done,
	.reap = verbs_reap,
	.fds = verbs_fds,
	.arm = verbs_arm,
	.acknowledge = verbs_acknowledge,
	.rx_grow = verbs_rx_grow,
	.device_cnt = verbs_device_cnt,
	.stop = verbs_stop,
	.take_back = verbs_take_back,
	.close = verbs_close,
};

/* Of a ring that only sends. */
static struct ring_ops paced_ops = {
	.tx = verbs_tx,
	.tx_commit = verbs_tx_commit,
	.tx_fits = verbs_tx_fits,
	.tx_is_done = verbs_tx_is_done,
	.reap = verbs_reap,
	.set_pace = rdma_set_pace,
	.device_cnt = verbs_device_cnt,
	.stop = verbs_stop,
	.take_back = verbs_take_back,
	.close = verbs_close,
};

static void start(void)
{
	ring_ops_fill(&ring_ops);
	ring_ops_fill(&paced_ops);
}

/* Each request of the batch leads to the next one. */
static void init_wrs(struct verbs_ring *own, uint32_t len)
{
	for (uint32_t i = 0; i < POST_BATCH; i++) {
		own->sges[i].length = len;
		own->wrs[i] = (struct ibv_recv_wr){
			.next = &own->wrs[i + 1],
			.sg_list = &own->sges[i],
			.num_sge = 1,
		};
	}
}

static void size_queues(const struct rdma_params *params,
			struct rdma_queues *queues)
{
	queues->rx_size = params->rx_max;
	queues->tx_size = params->tx_max;
	queues->inline_max = params->inline_max;
}

/* The largest power of two that is no larger; of 0, 1. */
static uint32_t floor_power(uint32_t n)
{
	return n ? 1u << (31 - __builtin_clz(n)) : 1;
}

static int ring_create(struct rdma_dev *dev, struct rdma_queues *queues,
		       struct pkt_pool *pool, struct ring **ring_out)
{
	struct verbs_ring *own = calloc(1, sizeof(*own));
	/* the frames that a paced one has for itself are all on their way at times */
	uint32_t batch_max = queues->rx_cq ? UINT32_MAX : pool->total_cnt / 4;
	uint32_t batch = floor_power(MIN(dev->params->tx_batch, batch_max));

	if (!own)
		return -ENOMEM;
	own->sent = calloc(queues->tx_size, sizeof(*own->sent));
	if (!own->sent) {
		free(own);
		return -ENOMEM;
	}
	own->base.ring.is_paced = !queues->rx_cq;
	own->base.ring.ops = queues->rx_cq ? &ring_ops : &paced_ops;
	own->base.ring.dev = &dev->dev;
	own->base.ring.pool = pool;
	own->base.ring.needs_ack = queues->rx_cq;
	own->base.ring.follows_tx = queues->tx_stamped;
	list_init(&own->base.ring.followed);
	own->base.ring.counts = &own->base.ring.own_counts;
	own->base.ring.rx_post_max = rdma_rx_post_max(dev, queues);
	own->base.dev = dev;
	own->base.queues = *queues;
	own->base.aim.now = dev->params->moderation;
	own->sent_mask = queues->tx_size - 1;
	/* completions are asked for twice in the queue at least */
	own->signal_mask_usual = MIN(batch, MAX(queues->tx_size / 2, 1u)) - 1;
	own->signal_mask = own->signal_mask_usual;
	own->base.ring.tx_fits_max = rdma_fits_max(&own->base, queues->tx_size,
						   own->signal_mask + 1);
	own->inline_max = queues->inline_max;
	own->csum = dev->has_csum ? IBV_SEND_IP_CSUM : 0;
	own->base.ring.fills_csum = dev->has_csum;
	own->rx_target = own->base.ring.rx_post_max;
	own->rx_batch = MAX(MIN(dev->params->rx_batch, own->rx_target / 4), 1u);
	own->done_max = MIN(own->rx_batch, (uint32_t)POST_BATCH);
	init_wrs(own, dev->dev.region->frame_size - pool->headroom);
	take_tx_frame(own);
	if (own->base.ring.is_paced) {
		ring_set_silent(&own->base.ring);
	} else {
		ring_set_busy(&own->base.ring);
		refill_slowly(own);
		/* somebody may sleep on the stack's fds since before this ring was
		 * there */
		(void)verbs_arm(&own->base.ring);
	}
	*ring_out = &own->base.ring;
	return 0;
}

/* Nothing is left to the device to be cut (IBV_WR_TSO): where the header would go on at the
 * beginning of the queue, libmlx5 (rdma-core 44) writes an entry of which the peer receives
 * other bytes, and no checksum notices. */
const struct rdma_kind rdma_kind_verbs = {
	.name = "verbs",
	.wants_parts = true,
	.start = start,
	.size_queues = size_queues,
	.ring_create = ring_create,
};
