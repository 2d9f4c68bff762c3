/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data path on ConnectX: entries are written into the queues and completions are
 * read from them here, without a call of libmlx5 (wqe.h, cqe.h, mmio.h). This is
 * receiving, sleeping, and the ring's life; mlx5_tx.c sends.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dev/rdma/mlx5_priv.h"
#include "dev/rdma/wqe.h"

enum {
	BLOCKS_MIN = 64,
	BLOCKS_MAX = 32768,	/* half of what a counter of 16 bits can tell */
};

/* The next completion raises an event, if the number of events is right. */
static void cq_arm(struct mlx5_cq *cq, uint32_t event_cnt)
{
	uint32_t word = (event_cnt & 3) << 28 | (mlx5_cq_ci(cq) & MLX5_INDEX_MASK);
	uint32_t bell[2] = { htobe32(word), htobe32(cq->number) };

	mlx5_set_record(&cq->record[1], word);
	mmio_before_bell();
	mmio_write64(cq->uar + MLX5_CQ_DOORBELL, bell);
	mmio_flush();
}

COLD void mlx5_note_error(struct mlx5_ring *own, const struct mlx5_cqe64 *cqe,
			  uint32_t word)
{
	log_dbg("%s: completion %#x, syndrome %#x", own->base.dev->dev.name,
		cqe_opcode(word), cqe_syndrome(cqe));
	rdma_has_failed(own->base.dev);
}

/* -- receiving --------------------------------------------------------------------- */

static inline uint8_t *rq_at(const struct mlx5_ring *own, uint32_t number)
{
	return own->rq + (size_t)(number & own->rq_mask) * own->rq_stride;
}

/* The completion that is next: rx_word is its last word. */
static inline const struct mlx5_cqe64 *next_cqe(const struct mlx5_ring *own)
{
	return (const void *)((const uint8_t *)own->base.ring.rx_word -
			      CQE_WORD_AT);
}

/* This one is next. A poll has nothing to do until the card writes it, unless the ring is
 * busy: then the word is never quiet. */
static inline void set_next(struct mlx5_ring *own, const struct mlx5_cqe64 *cqe)
{
	struct ring *ring = &own->base.ring;

	ring->rx_word = mlx5_cq_word(cqe);
	ring->rx_quiet = cqe_old_word(mlx5_cq_load(ring->rx_word), own->rx_old);
	if (UNLIKELY(own->base.busy))
		ring->rx_quiet = ~ring->rx_quiet;
}

/* After a poll. */
static inline void set_quiet(struct mlx5_ring *own)
{
	uint32_t ci = mlx5_cq_ci(&own->rx_cq);

	own->rx_old = cqe_old_owner(ci, own->rx_cq.size);
	set_next(own, mlx5_cq_at(&own->rx_cq, ci));
}

COLD void mlx5_busy_changed(struct mlx5_ring *own)
{
	set_quiet(own);
}

/* Posts again what rx_done has left for later: packets and entries are copied from where
 * they were in the queue to its other end, as many at once as lie in one piece at both
 * places. These are the same, or overlap, when all entries of the queue are in use. */
static NOINLINE void repost(struct mlx5_ring *own)
{
	uint32_t ci = mlx5_cq_ci(&own->rx_cq);

	while (own->rq_ci != ci) {
		uint32_t from = own->rq_ci & own->rq_mask;
		uint32_t to = own->rq_pi & own->rq_mask;
		uint32_t cnt = MIN(ci - own->rq_ci,
				   own->rq_mask + 1 - MAX(from, to));

		memmove(&own->rq_pkts[to], &own->rq_pkts[from],
			cnt * sizeof(*own->rq_pkts));
		memmove(rq_at(own, to), rq_at(own, from),
			(size_t)cnt * own->rq_stride);
		own->rq_ci += cnt;
		own->rq_pi += cnt;
	}
}

static inline void repost_left(struct mlx5_ring *own)
{
	if (UNLIKELY(own->rq_ci != mlx5_cq_ci(&own->rx_cq)))
		repost(own);
}

/* Tells the card what it has to receive into. The completions that we have read go
 * first, so that there is room for as many as there are entries. */
static inline void tell_posted(struct mlx5_ring *own)
{
	repost_left(own);
	own->rx_to_tell = own->rx_batch;
	mlx5_set_record(own->rx_cq.record, mlx5_cq_ci(&own->rx_cq) & MLX5_INDEX_MASK);
	mlx5_set_record(own->rq_record, own->rq_pi & 0xffff);
	own->rq_told = own->rq_pi;
}

static inline void post_pkt(struct mlx5_ring *own, struct pkt *pkt)
{
	wqe_put_recv(rq_at(own, own->rq_pi), pkt->data, own->rx_len_max,
		     rdma_lkey(own->base.dev, pkt));
	own->rq_pkts[own->rq_pi & own->rq_mask] = pkt;
	own->rq_pi++;
}

static COLD void is_short_of_frames(struct mlx5_ring *own)
{
	own->base.busy |= RDMA_SHORT;
	own->base.ring.counts->rx_no_frame++;
}

/* Whether the card has filled most of what it had, although we have not seen it yet:
 * it has written that far ahead. */
static inline bool runs_low(const struct mlx5_ring *own)
{
	const struct mlx5_cq *cq = &own->rx_cq;
	uint32_t ahead = mlx5_cq_ci(cq) + own->rx_target - own->rx_target / 4;

	return cqe_is_new(atomic_load_explicit(mlx5_cq_word(mlx5_cq_at(cq, ahead)),
					       memory_order_relaxed),
			  ahead, cq->size);
}

static inline void look_ahead(struct mlx5_ring *own)
{
	if (UNLIKELY(runs_low(own)))
		own->base.ring.wants_region =
			rdma_rx_may_grow(own->base.dev, &own->base.queues);
}

/* Frames that have been sent may be all that there are. */
static COLD struct pkt *take_sent_frame(struct mlx5_ring *own)
{
	mlx5_reap(&own->base.ring);
	return pkt_alloc(own->base.ring.pool);
}

/* Posts frames up to the target. */
static void refill(struct mlx5_ring *own)
{
	own->base.busy &= (uint8_t)~RDMA_SHORT;
	while (own->rq_pi - own->rq_ci < own->rx_target) {
		struct pkt *pkt = ring_pkt_alloc(&own->base.ring);

		if (UNLIKELY(!pkt))
			pkt = take_sent_frame(own);
		if (UNLIKELY(!pkt)) {
			is_short_of_frames(own);
			break;
		}
		post_pkt(own, pkt);
	}
	tell_posted(own);
}

/* Posts frames if there is room for a batch. */
static inline void refill_batch(struct mlx5_ring *own)
{
	uint32_t missing = own->rx_target - (own->rq_pi - own->rq_ci);

	if (LIKELY(missing < own->rx_batch))
		return;
	look_ahead(own);
	refill(own);
}

/* Without other frames, that of a received packet is posted again, so that the
 * queue does not run dry. */
static COLD bool is_kept(struct mlx5_ring *own, struct pkt *pkt)
{
	if (!own->base.dev->params->is_kept_full || own->base.ring.pool->free ||
	    own->rq_pi - own->rq_ci > own->rx_batch)
		return false;
	own->base.ring.counts->rx_errors++;
	post_pkt(own, pkt);
	tell_posted(own);
	return true;
}

/* A completion that brings no frame: the queue ends. */
static COLD void end_of_queue(struct mlx5_ring *own, struct pkt *pkt,
			      const struct mlx5_cqe64 *cqe, uint32_t word)
{
	if (cqe_opcode(word) == MLX5_CQE_RESP_ERR)
		own->base.ring.counts->rx_errors++;
	mlx5_note_error(own, cqe, word);
	pkt_put(pkt);
}

/* The packet of the completion that is next in both queues; NULL: there is none for
 * the caller. */
static inline struct pkt *take(struct mlx5_ring *own,
			       const struct mlx5_cqe64 *cqe, uint32_t word)
{
	struct pkt *pkt = own->rq_pkts[own->rq_ci & own->rq_mask];
	uint32_t len = cqe_len(cqe);

	mlx5_cq_advance(&own->rx_cq);
	own->rq_ci++;
	if (UNLIKELY(!cqe_is_frame(word) || len > own->rx_len_max)) {
		end_of_queue(own, pkt, cqe, word);
		return NULL;
	}
	if (UNLIKELY(own->base.busy & RDMA_SHORT) && is_kept(own, pkt))
		return NULL;
	pkt->len = len;
	pkt->csum_verdict = (uint8_t)cqe_csum(cqe);
	pkt->flow_tag = cqe_tag(cqe) - own->base.dev->tag;
	if (UNLIKELY(own->base.ring.wants_stamps))
		rdma_stamp(&own->base, pkt, cqe_ticks(cqe));
	own->base.ring.counts->rx_bytes += len;
	return pkt;
}

static unsigned mlx5_rx_poll(struct ring *ring, struct pkt **batch, unsigned cnt)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	struct mlx5_cqe64 *cqe;
	unsigned got = 0, taken = 0;
	uint32_t word;

	repost_left(own);
	/* A card that lies cannot bring more than was posted. */
	while (taken++ < cnt && own->rq_ci != own->rq_told &&
	       mlx5_cq_next(&own->rx_cq, &cqe, &word)) {
		struct pkt *pkt = take(own, cqe, word);

		if (LIKELY(pkt))
			batch[got++] = pkt;
	}
	ring->counts->rx_pkts += got;
	if (LIKELY(!atomic_load_explicit(&own->base.dev->failure,
					 memory_order_relaxed)))
		refill_batch(own);
	if (UNLIKELY(own->base.busy & RDMA_FOLLOWS))
		mlx5_tx_look(own);
	set_quiet(own);
	return got;
}

static struct ring_frame mlx5_rx_peek(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	uint32_t word = mlx5_cq_load(ring->rx_word), len;
	uint32_t ci = mlx5_cq_ci(&own->rx_cq);
	const struct mlx5_wqe_data_seg *seg;
	const struct mlx5_cqe64 *cqe;

	if (UNLIKELY(word == ring->rx_quiet || !cqe_is_frame(word)))
		return RING_NO_FRAME;
	cqe = next_cqe(own);
	len = cqe_len(cqe);
	if (UNLIKELY(len > own->rx_len_max || own->base.busy ||
		     ci == own->rq_told))
		return RING_NO_FRAME;
	seg = (const void *)rq_at(own, ci);
	return (struct ring_frame){
		(const void *)(uintptr_t)be64toh(seg->addr), len, cqe_csum(cqe),
		false
	};
}

static NOINLINE void tell_batch(struct mlx5_ring *own)
{
	look_ahead(own);
	tell_posted(own);
}

/* The frame is posted again without a look at its packet, together with others, before
 * the card is told. */
static void mlx5_rx_done(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	const struct mlx5_cqe64 *cqe = next_cqe(own);
	const uint8_t *next = (const uint8_t *)cqe + own->rx_cq.stride;

	ring->counts->rx_pkts++;
	ring->counts->rx_bytes += cqe_len(cqe);
	mlx5_cq_advance(&own->rx_cq);
	if (UNLIKELY(next == own->rx_cq.end)) {
		next = own->rx_cq.entries;
		own->rx_old ^= CQE_OWNER;
	}
	set_next(own, (const void *)next);
	if (UNLIKELY(--own->rx_to_tell == 0))
		tell_batch(own);
}

/* -- sleeping ---------------------------------------------------------------------- */

static unsigned mlx5_fds(struct ring *ring, int *fds, unsigned cnt)
{
	if (cnt)
		*fds = atomic_load(mlx5_ring_of(ring)->base.queues.chan_fd);
	return 1;
}

/* The number of events may change while we use it. */
void mlx5_cq_arm(struct mlx5_cq *cq, _Atomic uint32_t *event_cnt)
{
	uint32_t cnt;

	do {
		cnt = atomic_load(event_cnt);
		cq_arm(cq, cnt);
	} while (atomic_load(event_cnt) != cnt);
}

static bool mlx5_arm(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	struct mlx5_cqe64 *cqe;
	uint32_t word;

	tell_posted(own);
	rdma_note_counts(&own->base);
	mlx5_cq_arm(&own->rx_cq, &own->event_cnt);
	if (UNLIKELY(own->base.busy & RDMA_FOLLOWS))
		mlx5_cq_arm(&own->tx_cq, &own->tx_event_cnt);
	return !mlx5_cq_next(&own->rx_cq, &cqe, &word);
}

/* Somebody may sleep on the fd whose event we read: he has armed by the number that
 * counts no more, so we do it for him. What he waits for raises an event at once. */
static void mlx5_acknowledge(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	struct rdma_events events = rdma_queues_acknowledge(&own->base);

	if (events.rx_cnt)
		cq_arm(&own->rx_cq,
		       atomic_fetch_add(&own->event_cnt, events.rx_cnt) +
			       events.rx_cnt);
	if (!events.tx_cnt)
		return;
	atomic_fetch_add(&own->tx_event_cnt, events.tx_cnt);
	if (atomic_load_explicit(&own->base.has_followed, memory_order_relaxed))
		mlx5_cq_arm(&own->tx_cq, &own->tx_event_cnt);
}

static void mlx5_rx_grow(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);

	ring->rx_post_max = rdma_rx_post_max(own->base.dev, &own->base.queues);
	own->rx_target = ring->rx_post_max;
}

static uint32_t mlx5_device_cnt(const struct ring *ring)
{
	const struct mlx5_ring *own =
		CONTAINER_OF(ring, const struct mlx5_ring, base.ring);

	return own->rq_pi - own->rq_ci + own->sent_frames;
}

/* -- life -------------------------------------------------------------------------- */

static void free_memory(struct mlx5_ring *own)
{
	free(own->sent);
	free(own->rq_pkts);
	free(own);
}

/* After this the card reads and writes nothing. */
static void mlx5_stop(struct ring *ring)
{
	rdma_queues_close(&mlx5_ring_of(ring)->base.queues);
}

static void mlx5_take_back(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);

	mlx5_tx_end(own);
	for (; own->rq_ci != own->rq_pi; own->rq_ci++)
		pkt_put(own->rq_pkts[own->rq_ci & own->rq_mask]);
}

static void mlx5_close(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);

	dev_mem_close(&own->mem, own->base.dev);
	free_memory(own);
}

static struct ring_ops ring_ops = {
	.rx_poll = mlx5_rx_poll,
	.rx_peek = mlx5_rx_peek,
	.rx_done = mlx5_rx_done,
	.tx = mlx5_tx,
	.tx_commit = mlx5_tx_commit,
	.tx_follow = mlx5_tx_follow,
	.tx_fits = mlx5_tx_fits,
	.tx_is_done = mlx5_tx_is_done,
	.reap = mlx5_reap,
	.kick = mlx5_kick,
	.fds = mlx5_fds,
	.arm = mlx5_arm,
	.acknowledge = mlx5_acknowledge,
	.rx_grow = mlx5_rx_grow,
	.device_cnt = mlx5_device_cnt,
	.stop = mlx5_stop,
	.take_back = mlx5_take_back,
	.close = mlx5_close,
};

/* Of a ring that only sends. */
static struct ring_ops paced_ops = {
	.tx = mlx5_tx,
	.tx_commit = mlx5_tx_commit,
	.tx_fits = mlx5_tx_fits,
	.tx_is_done = mlx5_tx_is_done,
	.reap = mlx5_reap,
	.kick = mlx5_kick,
	.set_pace = rdma_set_pace,
	.device_cnt = mlx5_device_cnt,
	.stop = mlx5_stop,
	.take_back = mlx5_take_back,
	.close = mlx5_close,
};

static void start(void)
{
	ring_ops_fill(&ring_ops);
	ring_ops_fill(&paced_ops);
}

static bool serves(struct ibv_device *device)
{
	return mlx5dv_is_supported(device);
}

/* A send that only gathers is one block, an inline one two to six of them. */
static void size_queues(const struct rdma_params *params,
			struct rdma_queues *queues)
{
	queues->rx_size = params->rx_max;
	queues->tx_size = MIN(MAX(params->tx_max, (uint32_t)BLOCKS_MIN),
			      (uint32_t)BLOCKS_MAX / 2) * 2;
	queues->inline_max = 0;
}

static void open_cq(struct mlx5_cq *cq, const struct mlx5dv_cq *dv)
{
	cq->entries = (uint8_t *)dv->buf + dv->cqe_size -
		      sizeof(struct mlx5_cqe64);
	cq->size = dv->cqe_cnt;
	cq->stride = dv->cqe_size;
	cq->end = cq->entries + (size_t)cq->size * cq->stride;
	cq->record = (_Atomic uint32_t *)dv->dbrec;
	cq->uar = dv->cq_uar;
	cq->number = dv->cqn;
}

/* Reads where the queues are. */
static int look(struct mlx5_ring *own)
{
	const struct rdma_params *params = own->base.dev->params;
	struct rdma_queues *queues = &own->base.queues;
	struct mlx5dv_cq rx_cq = { 0 }, tx_cq = { 0 };
	struct mlx5dv_qp qp = { 0 };
	struct mlx5dv_obj tx = {
		.qp = { queues->qp, &qp }, .cq = { queues->tx_cq, &tx_cq },
	};
	struct mlx5dv_obj rx = { .cq = { queues->rx_cq, &rx_cq } };
	int err = mlx5dv_init_obj(&tx, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ);

	if (!err && queues->rx_cq)
		err = mlx5dv_init_obj(&rx, MLX5DV_OBJ_CQ);
	if (err)
		return -err;
	open_cq(&own->tx_cq, &tx_cq);
	if (queues->rx_cq) {
		open_cq(&own->rx_cq, &rx_cq);
		own->rq = qp.rq.buf;
		own->rq_mask = qp.rq.wqe_cnt - 1;
		own->rq_stride = qp.rq.stride;
		own->rq_record = (_Atomic uint32_t *)&qp.dbrec[MLX5_RCV_DBR];
	}
	own->sq = qp.sq.buf;
	own->sq_blocks = MIN(qp.sq.wqe_cnt, (uint32_t)BLOCKS_MAX);
	own->sq_mask = qp.sq.wqe_cnt - 1;
	own->sq_record = (_Atomic uint32_t *)&qp.dbrec[MLX5_SND_DBR];
	own->qpn = queues->qp->qp_num;
	own->bell = (uintptr_t)qp.bf.reg;
	own->bell_half = qp.bf.size;
	/* Entries that two queues write into one register at once would mix. Doorbells are
	 * single writes, which do not. */
	own->bf_blocks = params->has_blue_flame && queues->domain ?
				 qp.bf.size / WQE_BLOCK :
				 0;
	log_dbg("%s: queue pair %u rings at %p%s", own->base.dev->dev.name, own->qpn,
		qp.bf.reg, own->bf_blocks ? ", by BlueFlame" : "");
	return 0;
}

/* Entries with room for several pointers end behind the first. */
static void end_recv_entries(struct mlx5_ring *own)
{
	struct mlx5_wqe_data_seg end = {
		.lkey = htobe32(MLX5_INVALID_LKEY),
	};

	if (own->rq_stride == sizeof(end))
		return;
	for (uint32_t i = 0; i <= own->rq_mask; i++)
		memcpy(rq_at(own, i) + sizeof(end), &end, sizeof(end));
}

static void init_ring(struct mlx5_ring *own, struct pkt_pool *pool)
{
	struct rdma_dev *dev = own->base.dev;
	struct ring *ring = &own->base.ring;

	ring->is_paced = !own->base.queues.rx_cq;
	ring->ops = ring->is_paced ? &paced_ops : &ring_ops;
	ring->dev = &dev->dev;
	ring->pool = pool;
	ring->needs_ack = !ring->is_paced;
	ring->follows_tx = own->base.queues.tx_stamped;
	ring->has_tags = true;
	list_init(&ring->followed);
	ring->counts = &ring->own_counts;
	ring->rx_post_max = rdma_rx_post_max(dev, &own->base.queues);
	own->rx_len_max = dev->dev.region->frame_size - pool->headroom;
	own->rx_target = ring->rx_post_max;
	own->rx_batch = MAX(MIN(dev->params->rx_batch, own->rx_target / 4), 1u);
}

/* The card has written nothing yet, for which libmlx5's mark is an opcode. By the owner's
 * bit alone all of it is old then, too. */
static void make_completions_old(struct mlx5_cq *cq)
{
	for (uint32_t i = 0; i < cq->size; i++)
		mlx5_cq_at(cq, i)->op_own |= MLX5_CQE_OWNER_MASK;
}

static void start_receiving(struct mlx5_ring *own)
{
	make_completions_old(&own->rx_cq);
	end_recv_entries(own);
	refill(own);
	set_quiet(own);
	/* somebody may sleep on the stack's fds since before this ring was there */
	cq_arm(&own->rx_cq, 0);
}

static int ring_create(struct rdma_dev *dev, struct rdma_queues *queues,
		       struct pkt_pool *pool, struct ring **ring_out)
{
	struct mlx5_ring *own = calloc(1, sizeof(*own));
	int err;

	if (!own)
		return -ENOMEM;
	own->base.dev = dev;
	own->base.queues = *queues;
	own->base.aim.now = dev->params->moderation;
	err = look(own);
	if (err)
		goto err_free;
	err = -ENOMEM;
	own->rq_pkts = calloc(own->rq_mask + 1, sizeof(*own->rq_pkts));
	own->sent = calloc(own->sq_mask + 1, sizeof(*own->sent));
	if (!own->rq_pkts || !own->sent)
		goto err_free;
	init_ring(own, pool);
	mlx5_tx_start(own);
	if (own->base.ring.is_paced)
		ring_set_silent(&own->base.ring);
	else
		start_receiving(own);
	*ring_out = &own->base.ring;
	return 0;
err_free:
	free_memory(own);
	return err;
}

const struct rdma_kind rdma_kind_mlx5 = {
	.name = "mlx5",
	.tso_parts = MLX5_TSO_PARTS,
	.rings_bells = true,
	.start = start,
	.serves = serves,
	.size_queues = size_queues,
	.ring_create = ring_create,
};
