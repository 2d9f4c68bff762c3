/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending on ConnectX. A short frame is written to where it is sent from:
 * ring.tx_frame is the inline part of the next entry. A longer one is gathered from
 * its packet, behind a header that is inline. A send that is alone rings the doorbell
 * at once, several under one lock ring it once, by the kick. A card with memory of its own
 * may gather from that (dev_mem.h). What the card is to cut into
 * segments lies in ordinary memory, which the card does not know: it is copied to frames,
 * from which one entry gathers it.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "dev/rdma/mlx5_priv.h"
#include "dev/rdma/wqe.h"
#include "dev/ring_tx.h"

enum {
	/* The longest frame that is written in place, and the blocks of its entry. */
	FRAME_LEN_MAX = RING_TX_FRAME_LEN + RDMA_VLAN_LEN,
	FRAME_BLOCKS = (WQE_FRAME_AT + FRAME_LEN_MAX + WQE_BLOCK - 1) / WQE_BLOCK,
	/* Those of an entry that gathers: the longest header, the parts. */
	PARTS_MAX = 4,
	HEADER_MAX = 256,
	GATHER_BLOCKS = (WQE_FRAME_AT + HEADER_MAX + PARTS_MAX * WQE_SEGMENT +
			 WQE_BLOCK) / WQE_BLOCK,
	/* Those of one of both. */
	BLOCKS_OF_ONE = GATHER_BLOCKS > FRAME_BLOCKS ? GATHER_BLOCKS : FRAME_BLOCKS,
	/* Those of the longest entry that there may be, which has so many segments. */
	SEGMENTS_MAX = 63,
	LONGEST_BLOCKS = (SEGMENTS_MAX + 3) / 4,
	REAP_MAX = 64,
};
_Static_assert((WQE_FRAME_AT + RDMA_TSO_HEADER_MAX + WQE_SEGMENT - 1) / WQE_SEGMENT +
		       MLX5_TSO_PARTS <= SEGMENTS_MAX,
	       "what is to be cut fits into an entry");

static inline uint8_t *sq_at(const struct mlx5_ring *own, uint16_t block)
{
	return own->sq + (size_t)(block & own->sq_mask) * WQE_BLOCK;
}

static inline uint32_t sq_used(const struct mlx5_ring *own)
{
	return (uint16_t)(own->sq_pi - own->sq_ci);
}

static inline bool sq_has_room(const struct mlx5_ring *own, uint32_t blocks)
{
	return sq_used(own) + blocks <= own->sq_blocks;
}

/* How many frames it has. */
static inline uint32_t parts_of(const struct pkt *pkt)
{
	uint32_t cnt = 0;

	for (; pkt; pkt = pkt->next_part)
		cnt++;
	return cnt;
}

static void give_back_sent(struct mlx5_ring *own)
{
	while (own->sent_tail != own->sent_head) {
		struct mlx5_sent *sent = &own->sent[own->sent_tail & own->sq_mask];

		if ((int16_t)(own->sq_ci - sent->end) < 0)
			return;
		dev_mem_give(&own->mem, sent->mem_taken);
		if (LIKELY(sent->pkt)) {
			own->sent_frames -= parts_of(sent->pkt);
			pkt_put_quick(sent->pkt);
		}
		own->sent_tail++;
	}
}

/* A completion says that the entry at `block`, and all before it, are done. False: it
 * cannot be. */
static inline bool complete(struct mlx5_ring *own, uint16_t block)
{
	if (UNLIKELY((uint16_t)(block - own->sq_ci) >= sq_used(own)))
		return false;
	own->sq_ci = (uint16_t)(block + wqe_blocks(wqe_segments(sq_at(own,
								      block))));
	return true;
}

/* In signaled_at: a frame has asked for a completion since it was 0. */
enum { WISH_IS_SENT = 1 << 16 };

/* The frame that is to be followed has been sent. Not noted there, where a call would cost
 * every frame its registers. */
static inline void follow_if_sent(struct mlx5_ring *own)
{
	if (LIKELY(!own->base.wish) || !own->signaled_at)
		return;
	rdma_follow(&own->base, (uint16_t)own->signaled_at);
	mlx5_busy_changed(own);
}

/* The frame whose entry begins at `block` has left; it may be one that is followed. */
static COLD void note_left(struct mlx5_ring *own, uint16_t block, uint64_t ticks)
{
	rdma_has_left(&own->base, block, ticks);
	mlx5_busy_changed(own);
}

static void reap_sent(struct mlx5_ring *own)
{
	struct mlx5_cq *cq = &own->tx_cq;
	struct mlx5_cqe64 *cqe;
	uint32_t word;
	int i;

	follow_if_sent(own);
	for (i = 0; i < REAP_MAX && mlx5_cq_next(cq, &cqe, &word); i++) {
		mlx5_cq_advance(cq);
		if (UNLIKELY(!cqe_is_sent(word) ||
			     !complete(own, cqe_index(word)))) {
			mlx5_note_error(own, cqe, word);
			break;
		}
		if (UNLIKELY(own->base.busy & RDMA_FOLLOWS))
			note_left(own, cqe_index(word), cqe_ticks(cqe));
	}
	if (!i)
		return;
	mlx5_set_record(cq->record, mlx5_cq_ci(cq) & MLX5_INDEX_MASK);
	give_back_sent(own);
}

/* -- sending ----------------------------------------------------------------------- */

/* Tells the card of everything up to `pi`. `entry` is the last one, of `blocks`, in one
 * piece if it may be written into the card. */
static inline void ring_bell(struct mlx5_ring *own, uint16_t pi,
			     const uint8_t *entry, uint32_t blocks, bool may_write)
{
	uint8_t *reg = (uint8_t *)own->bell;

	mlx5_set_record(own->sq_record, pi);
	mmio_before_bell();
	if (LIKELY(may_write && blocks <= own->bf_blocks))
		mmio_copy_blocks(reg, entry, blocks);
	else
		mmio_write64(reg, entry);
	mmio_flush();
	own->bell ^= own->bell_half;
	own->rung = pi;
}

/* Whether the doorbell is ours, who hold the stack's lock. */
static inline bool may_ring(struct ring *ring)
{
	/* acquire pairs with the end of the kick: what it did to the doorbell is
	 * done. A kick begins under the lock. */
	if (UNLIKELY(atomic_load_explicit(&ring->kick_state,
					  memory_order_acquire)))
		return false;
	TSAN_ACQUIRED(&ring->kick_state);
	return true;
}

static COLD void find_tx_frame(struct mlx5_ring *own);

/* Whether the next send has to ask for a completion. */
static inline bool is_signaled(struct mlx5_ring *own)
{
	if (LIKELY(--own->to_signal > 0))
		return false;
	own->to_signal = own->signal_each;
	own->signaled_at = WISH_IS_SENT | own->sq_pi;
	return true;
}

/* What sleeps does so for frames that come, and for this one. */
COLD void mlx5_tx_follow(struct ring *ring, struct pkt *record)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);

	follow_if_sent(own);
	if (!record) {
		rdma_unwish(&own->base);
		return;
	}
	pkt_get(record);
	own->base.wish = record;
	own->signaled_at = 0;
	own->to_signal = 1;
	mlx5_cq_arm(&own->tx_cq, &own->tx_event_cnt);
}

COLD void mlx5_tx_look(struct mlx5_ring *own)
{
	reap_sent(own);
	if (!own->base.ring.tx_frame)
		find_tx_frame(own);
}

/* Fills the ring up to its end with entries that do nothing, so that the next frame
 * is in one piece. */
static void skip_edge(struct mlx5_ring *own)
{
	while (own->sq_pi & own->sq_mask) {
		struct wqe_head head = { .qpn = own->qpn, .index = own->sq_pi };

		wqe_put_nop(sq_at(own, own->sq_pi), &head);
		own->sq_pi++;
	}
	own->to_signal--;
}

/* The next short frame goes to where the queue is now. */
static inline void put_tx_frame(struct mlx5_ring *own)
{
	uint32_t block = own->sq_pi & own->sq_mask;

	own->sq_ahead = MIN((int32_t)(own->sq_edge - block),
			    (int32_t)(own->sq_busy - sq_used(own)));
	own->base.ring.tx_frame = own->sq + (size_t)block * WQE_BLOCK + WQE_FRAME_AT;
}

static COLD void find_tx_frame(struct mlx5_ring *own)
{
	struct ring *ring = &own->base.ring;

	ring->tx_frame = NULL;
	if (sq_used(own) > own->sq_busy)
		reap_sent(own);
	if (!sq_has_room(own, 2 * FRAME_BLOCKS))
		return;
	if ((own->sq_pi & own->sq_mask) > own->sq_edge)
		skip_edge(own);
	put_tx_frame(own);
}

/* Where the next short frame goes. */
static inline void next_tx_frame(struct mlx5_ring *own)
{
	if (UNLIKELY((own->sq_pi & own->sq_mask) > own->sq_edge ||
		     sq_used(own) > own->sq_busy))
		find_tx_frame(own);
	else
		put_tx_frame(own);
}

void mlx5_reap(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);

	reap_sent(own);
	find_tx_frame(own);
	/* what was written and not rung for; whoever kicks now may have begun before it was */
	ring->wants_kick |= !may_ring(ring) || own->rung != own->sq_pi;
}

/* The entry at `index` is written, and what follows it is free. */
static inline void leave_to_kick(struct mlx5_ring *own, uint16_t index)
{
	TSAN_RELEASED(&own->written);
	atomic_store_explicit(&own->written, (uint32_t)index << 16 | own->sq_pi,
			      memory_order_release);
	own->base.ring.wants_kick = true;
}

static inline void count_sent(struct mlx5_ring *own, size_t len)
{
	struct stats_ring_counters *counts = own->base.ring.counts;

	counts->tx_pkts++;
	counts->tx_bytes += len;
}

static COLD void commit_gathered(struct mlx5_ring *own, size_t len);

void mlx5_tx_commit(struct ring *ring, size_t len)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	uint8_t *frame = ring->tx_frame, *entry = frame - WQE_FRAME_AT;
	uint16_t index = own->sq_pi, pi;
	unsigned blocks;

	if (UNLIKELY(len > own->inline_max)) {
		commit_gathered(own, len);
		return;
	}
	blocks = wqe_blocks(wqe_wrap_inline(entry, &own->in_place, index,
					    is_signaled(own), len));
	own->sq_pi = pi = (uint16_t)(index + blocks);
	count_sent(own, len);
	if (may_ring(ring))
		ring_bell(own, pi, entry, blocks, own->rung == index);
	else
		leave_to_kick(own, index);
	own->sq_ahead -= (int32_t)blocks;
	if (LIKELY(own->sq_ahead >= 0))
		ring->tx_frame = frame + (size_t)blocks * WQE_BLOCK;
	else
		next_tx_frame(own);
}

/* Copies an entry to its place, around the end of the ring if need be. */
static void put_entry(struct mlx5_ring *own, const uint8_t *entry,
		      unsigned blocks)
{
	for (unsigned i = 0; i < blocks; i++)
		memcpy(sq_at(own, (uint16_t)(own->sq_pi + i)),
		       entry + (size_t)i * WQE_BLOCK, WQE_BLOCK);
}

/* Whether the card can read the packet where it is: in so few frames of this ring
 * that they fit into an entry, whose first has the bytes that have to be inline. */
static bool is_gatherable(const struct mlx5_ring *own, const struct ring_tx *tx)
{
	unsigned cnt = 0;

	if (tx->header_len > HEADER_MAX ||
	    tx->header_len + tx->payload->len < WQE_INLINE_MIN)
		return false;
	for (const struct pkt *part = tx->payload; part; part = part->next_part)
		if (++cnt > PARTS_MAX || part->pool != own->base.ring.pool)
			return false;
	return true;
}

/* Begins the entry of a frame that is gathered, with what is inline: the header, and the
 * first *skip_out bytes of the payload, where cards look at more. Returns the number of
 * segments. */
static unsigned begin_gather(const struct ring_tx *tx, const struct wqe_head *head,
			     uint8_t *entry, uint32_t *skip_out)
{
	uint8_t bytes[HEADER_MAX];
	uint32_t len = tx->header_len;

	*skip_out = 0;
	memcpy(bytes, tx->header, len);
	if (len < WQE_INLINE_MIN) {
		*skip_out = WQE_INLINE_MIN - len;
		memcpy(bytes + len, tx->payload->data, *skip_out);
		len = WQE_INLINE_MIN;
	}
	return wqe_begin_gather(entry, head, bytes, len);
}

/* Builds the entry of a frame that is gathered. The payload stays the caller's.
 * Returns the number of segments. */
static unsigned build_gather(struct mlx5_ring *own, const struct ring_tx *tx,
			     const struct wqe_head *head, uint8_t *entry)
{
	uint32_t skip;
	unsigned segments = begin_gather(tx, head, entry, &skip);

	for (const struct pkt *part = tx->payload; part;
	     part = part->next_part, skip = 0)
		if (part->len > skip)
			segments = wqe_add_data(entry, segments,
						part->data + skip,
						part->len - skip,
						rdma_lkey(own->base.dev, part));
	wqe_put_ctrl(entry, head, MLX5_OPCODE_SEND, segments);
	return segments;
}

/* Puts the entry of a frame that is gathered: of its packet, which is taken, or, without
 * one, of the card's memory, `mem_taken` of it. The entry's head is that of the queue's
 * next. */
static void put_gathered(struct mlx5_ring *own, const uint8_t *entry,
			 unsigned blocks, struct pkt *pkt, uint32_t mem_taken)
{
	uint16_t index = own->sq_pi;

	put_entry(own, entry, blocks);
	own->sq_pi = (uint16_t)(own->sq_pi + blocks);
	own->sent[own->sent_head++ & own->sq_mask] =
		(struct mlx5_sent){ pkt, mem_taken, own->sq_pi };
	own->sent_frames += parts_of(pkt);
	leave_to_kick(own, index);
	next_tx_frame(own);
}

/* Sends a frame whose payload is gathered; there is room. Takes the payload. */
static void send_gathered(struct mlx5_ring *own, const struct ring_tx *tx,
			  uint8_t csum)
{
	uint8_t entry[GATHER_BLOCKS * WQE_BLOCK] CACHE_ALIGNED = { 0 };
	struct wqe_head head = {
		.qpn = own->qpn, .index = own->sq_pi, .csum = csum,
	};
	unsigned segments = build_gather(own, tx, &head, entry);

	/* Somebody waits for the packet, and must not wait for later sends. */
	head.is_signaled = is_signaled(own) || tx->payload->refs > 1;
	wqe_put_ctrl(entry, &head, MLX5_OPCODE_SEND, segments);
	count_sent(own, tx->header_len + pkt_total_len(tx->payload));
	put_gathered(own, entry, wqe_blocks(segments), tx->payload, 0);
}

/* Memory of the card for so many bytes; 0: there is none. It is little, so the send that
 * follows asks for a completion when a quarter has been taken, or no more is left. */
static uint32_t take_mem(struct mlx5_ring *own, uint32_t len, uint32_t *at_out)
{
	uint32_t taken = dev_mem_take(&own->mem, len, at_out);

	if (!taken) {
		reap_sent(own);
		taken = dev_mem_take(&own->mem, len, at_out);
	}
	own->mem_unasked += taken;
	if (own->mem_unasked > (taken ? own->mem.size / 4 : 0)) {
		own->mem_unasked = 0;
		own->to_signal = 1;
	}
	return taken;
}

/* Sends a frame whose payload the card gathers from its own memory; there is room for the
 * entry. Takes the payload. False: it is too long, or the memory is in use; nothing has been
 * done. */
static bool send_from_mem(struct mlx5_ring *own, const struct ring_tx *tx,
			  uint8_t csum)
{
	uint8_t entry[GATHER_BLOCKS * WQE_BLOCK] CACHE_ALIGNED = { 0 };
	struct wqe_head head = {
		.qpn = own->qpn, .index = own->sq_pi, .csum = csum,
	};
	struct stats_ring_counters *counts = own->base.ring.counts;
	uint32_t skip, at, len = pkt_total_len(tx->payload), taken;
	unsigned segments;

	if (tx->header_len + tx->payload->len < WQE_INLINE_MIN)
		return false;
	segments = begin_gather(tx, &head, entry, &skip);
	len -= skip;
	taken = take_mem(own, len, &at);
	if (!taken) {
		counts->dev_mem_full++;
		return false;
	}
	dev_mem_write(&own->mem, at, tx->payload, skip);
	segments = wqe_add_data(entry, segments, (const void *)(uintptr_t)at, len,
				own->mem.lkey);
	head.is_signaled = is_signaled(own);
	wqe_put_ctrl(entry, &head, MLX5_OPCODE_SEND, segments);
	counts->dev_mem_pkts++;
	counts->dev_mem_bytes += len;
	count_sent(own, tx->header_len + skip + len);
	pkt_put(tx->payload);
	put_gathered(own, entry, wqe_blocks(segments), NULL, taken);
	return true;
}

/* A frame in place that is longer than the user wants to have inline. Without a
 * packet to copy it to, it is inline all the same. */
static COLD void commit_gathered(struct mlx5_ring *own, size_t len)
{
	struct ring *ring = &own->base.ring;
	struct ring_tx tx = { .header = ring->tx_frame,
			      .payload = ring_pkt_alloc(ring) };
	uint32_t inline_max = own->inline_max;

	if (tx.payload && sq_has_room(own, GATHER_BLOCKS) &&
	    len >= WQE_INLINE_MIN) {
		memcpy(pkt_append(tx.payload, (uint32_t)len), ring->tx_frame,
		       len);
		if (!own->mem.size || !send_from_mem(own, &tx, own->csum))
			send_gathered(own, &tx, own->csum);
		return;
	}
	pkt_put(tx.payload);
	own->inline_max = FRAME_LEN_MAX;
	mlx5_tx_commit(ring, len);
	own->inline_max = inline_max;
}

/* A short frame is copied to where the next one goes. */
static void send_copied(struct mlx5_ring *own, const struct ring_tx *tx,
			size_t len, uint8_t csum)
{
	struct ring *ring = &own->base.ring;
	uint8_t *at = ring->tx_frame, *entry = at - WQE_FRAME_AT;
	struct wqe_inline common = wqe_inline_of(own->qpn, csum);
	uint16_t index = own->sq_pi;
	unsigned segments;

	memcpy(at, tx->header, tx->header_len);
	at += tx->header_len;
	for (const struct pkt *part = tx->payload; part; part = part->next_part) {
		memcpy(at, part->data, part->len);
		at += part->len;
	}
	segments = wqe_wrap_inline(entry, &common, index, is_signaled(own), len);
	own->sq_pi = (uint16_t)(index + wqe_blocks(segments));
	pkt_put(tx->payload);
	count_sent(own, len);
	leave_to_kick(own, index);
	next_tx_frame(own);
}

static COLD int refuse(struct mlx5_ring *own, struct pkt *payload)
{
	pkt_put(payload);
	own->base.ring.counts->tx_full++;
	return -EAGAIN;
}

/* Frames that have been sent may be all that there are. */
static struct pkt *copy_run(struct mlx5_ring *own, const struct ring_tx *tx)
{
	struct pkt *copy = ring_tx_copy_run(&own->base.ring, tx);

	if (LIKELY(copy))
		return copy;
	reap_sent(own);
	return ring_tx_copy_run(&own->base.ring, tx);
}

/* Sends what the card is to cut. Its frames are many, so they come back as soon as it has
 * been sent. */
static int send_run(struct mlx5_ring *own, const struct ring_tx *tx)
{
	uint8_t entry[LONGEST_BLOCKS * WQE_BLOCK] CACHE_ALIGNED = { 0 };
	struct wqe_head head = {
		.qpn = own->qpn, .index = own->sq_pi,
		.csum = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM,
		.segment_len = tx->segment_len,
	};
	struct pkt *copy = sq_has_room(own, LONGEST_BLOCKS) ? copy_run(own, tx) :
							      NULL;
	unsigned segments;

	if (!copy)
		return refuse(own, NULL);
	segments = wqe_begin_gather(entry, &head, tx->header, tx->header_len);
	for (const struct pkt *part = copy; part; part = part->next_part)
		segments = wqe_add_data(entry, segments, part->data, part->len,
					rdma_lkey(own->base.dev, part));
	(void)is_signaled(own);
	head.is_signaled = true;
	wqe_put_ctrl(entry, &head, MLX5_OPCODE_TSO, segments);
	ring_count_run(&own->base.ring, tx);
	put_gathered(own, entry, wqe_blocks(segments), copy, 0);
	return 0;
}

int mlx5_tx(struct ring *ring, const struct ring_tx *given)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	size_t len = given->header_len + pkt_total_len(given->payload);
	struct ring_tx tx = *given;
	uint8_t header[HEADER_MAX], csum = 0;
	uint16_t check;

	/* frames that have been sent may be all that there are */
	if (sq_used(own) > own->sq_busy || UNLIKELY(!ring->pool->free))
		reap_sent(own);
	if (given->segment_len)
		return send_run(own, given);
	if (UNLIKELY(!sq_has_room(own, BLOCKS_OF_ONE) ||
		     tx.header_len > HEADER_MAX))
		return refuse(own, tx.payload);
	if (tx.flags & RING_TX_CSUM && own->base.dev->has_csum) {
		csum = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
	} else if (tx.flags & RING_TX_CSUM) {
		memcpy(header, tx.header, tx.header_len);
		tx.header = header;
		check = ring_tx_csum(given);
		memcpy(header + tx.csum_at, &check, sizeof(check));
	}
	if (len <= own->inline_max && len >= WQE_INLINE_MIN &&
	    len <= RING_TX_FRAME_LEN && ring->tx_frame) {
		send_copied(own, &tx, len, csum);
		return 0;
	}
	if (own->mem.size && send_from_mem(own, &tx, csum))
		return 0;
	if (!is_gatherable(own, &tx)) {
		struct ring_tx bare = { .payload = tx.payload };
		struct pkt *copy = ring_tx_copy(ring, &bare);

		if (!copy || tx.header_len + copy->len < WQE_INLINE_MIN) {
			pkt_put(copy);
			return refuse(own, tx.payload);
		}
		pkt_put(tx.payload);
		tx.payload = copy;
	}
	send_gathered(own, &tx, csum);
	return 0;
}

/* With room for those that are skipped at the queue's end. */
bool mlx5_tx_fits(struct ring *ring, uint32_t cnt, uint32_t copied)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	uint32_t blocks = (cnt + 1) * BLOCKS_OF_ONE;

	if (LIKELY(sq_has_room(own, blocks) && ring_has_pkts(ring, copied)))
		return true;
	reap_sent(own);
	return sq_has_room(own, blocks) && ring_has_pkts(ring, copied);
}

/* An entry that does nothing asks for a completion of all before it. */
bool mlx5_tx_is_done(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	struct wqe_head head = {
		.qpn = own->qpn, .index = own->sq_pi, .is_signaled = true,
	};

	reap_sent(own);
	if (!sq_used(own) || atomic_load(&own->base.dev->failure))
		return true;
	if (own->to_signal == own->signal_each || !sq_has_room(own, 2))
		return false;
	own->to_signal = own->signal_each;
	wqe_put_nop(sq_at(own, own->sq_pi), &head);
	own->sq_pi++;
	leave_to_kick(own, head.index);
	next_tx_frame(own);
	return false;
}

enum ring_kick mlx5_kick(struct ring *ring)
{
	struct mlx5_ring *own = mlx5_ring_of(ring);
	/* Acquire: the entries are written. It is taken, since the counters go around: half a
	 * lap of doorbells without a kick later, it would look like what is to come. */
	uint32_t written = atomic_exchange_explicit(&own->written, 0,
						    memory_order_acquire);
	uint16_t pi = (uint16_t)written;

	TSAN_ACQUIRED(&own->written);
	if (!written)
		return RING_KICKED;
	/* what was rung for in the meantime is not to be taken back */
	if ((int16_t)(pi - own->rung) > 0)
		ring_bell(own, pi, sq_at(own, (uint16_t)(written >> 16)), 0,
			  false);
	return RING_KICKED;
}

/* -- life -------------------------------------------------------------------------- */

void mlx5_tx_start(struct mlx5_ring *own)
{
	const struct rdma_dev *dev = own->base.dev;

	own->sq_edge = own->sq_blocks - FRAME_BLOCKS;
	own->sq_busy = own->sq_blocks / 2;
	own->signal_each = (int32_t)MAX(
		MIN(dev->params->tx_batch, own->sq_blocks / 4 / BLOCKS_OF_ONE), 1u);
	/* the frames that it has for itself are all on their way at times */
	if (own->base.ring.is_paced)
		own->signal_each = MIN(own->signal_each,
				       (int32_t)own->base.ring.pool->total_cnt / 4 + 1);
	own->to_signal = own->signal_each;
	own->base.ring.tx_fits_max =
		rdma_fits_max(&own->base, own->sq_blocks / BLOCKS_OF_ONE - 1,
			      (uint32_t)own->signal_each);
	own->csum = dev->has_csum ? MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM :
				    0;
	own->in_place = wqe_inline_of(own->qpn, own->csum);
	own->base.ring.fills_csum = dev->has_csum;
	own->inline_max = MIN(dev->params->inline_max, (uint32_t)WQE_INLINE_MAX);
	/* what is paced waits anyway */
	if (!own->base.ring.is_paced)
		dev_mem_open(&own->mem, own->base.dev, own->bf_blocks > 0);
	own->base.ring.dev_mem = own->mem.size;
	find_tx_frame(own);
}

void mlx5_tx_end(struct mlx5_ring *own)
{
	own->sq_ci = own->sq_pi;
	give_back_sent(own);
}
