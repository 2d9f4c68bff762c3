/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring on ConnectX (src/dev/rdma/mlx5_ring.c, mlx5_tx.c), with a card that
 * the test is: its queues are memory, into which the test writes completions and from
 * which it reads what is posted.
 */
#ifndef UNIT_DEV_RDMA_MLX5_CARD_H
#define UNIT_DEV_RDMA_MLX5_CARD_H

#include "dev/rdma/mlx5_ring.c"
#include "tests/support/test.h"

enum {
	FRAMES = 256, FRAME = 2048, HEADROOM = 128, RX = 64, TX = 256, BATCH = 8,
	LEN = 60, OWNER = 1,
};

static struct card {
	struct mlx5_cqe64 rx_cqes[RX], tx_cqes[TX];
	struct mlx5_wqe_data_seg rq[RX];
	uint8_t sq[TX * WQE_BLOCK];
	uint32_t qp_record[2], rx_record[2], tx_record[2];
	uint64_t uar[512] CACHE_ALIGNED;
	uint32_t come_cnt;
} CACHE_ALIGNED card;

static struct ibv_cq rx_cq, tx_cq;
static struct ibv_qp qp = { .qp_num = 7 };
static struct rdma_params params = { .rx_batch = BATCH, .tx_max = TX, .tx_batch = 16,
				     .inline_max = 256 };
static struct rdma_dev dev;
static struct pkt_pool pool;
static struct ring *ring;

/* -- the card ---------------------------------------------------------------------- */

static inline void describe_cq(struct mlx5dv_cq *dv, struct mlx5_cqe64 *cqes, uint32_t cnt,
			uint32_t *record)
{
	*dv = (struct mlx5dv_cq){
		.buf = cqes,
		.dbrec = (__be32 *)record,
		.cqe_cnt = cnt,
		.cqe_size = sizeof(*cqes),
		.cq_uar = card.uar,
	};
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	if (obj->cq.in == &rx_cq)
		describe_cq(obj->cq.out, card.rx_cqes, RX, card.rx_record);
	else
		describe_cq(obj->cq.out, card.tx_cqes, TX, card.tx_record);
	if (type & MLX5DV_OBJ_QP)
		*obj->qp.out = (struct mlx5dv_qp){
			.dbrec = (__be32 *)card.qp_record,
			.sq = { card.sq, TX, WQE_BLOCK },
			.rq = { card.rq, RX, sizeof(card.rq[0]) },
			.bf = { &card.uar[256], 256 },
		};
	return 0;
}

/* The memory of the card is the test's own (dev_mem.c tests the rest). */
int ibv_dereg_mr(struct ibv_mr *mr UNUSED)
{
	return 0;
}

bool mlx5dv_is_supported(struct ibv_device *device UNUSED)
{
	return true;
}

static struct rdma_events events;

struct rdma_events rdma_queues_acknowledge(struct rdma_ring *own UNUSED)
{
	struct rdma_events result = events;

	events = (struct rdma_events){ 0 };
	return result;
}

void rdma_queues_close(struct rdma_queues *queues UNUSED)
{
}

int rdma_set_pace(struct ring *paced UNUSED, const struct ring_pace *pace UNUSED)
{
	return 0;
}

static unsigned stamped_cnt;

void rdma_stamp(struct rdma_ring *own, struct pkt *pkt, uint64_t ticks)
{
	CHECK(&own->ring == ring);
	pkt->card_ns = ticks;
	pkt->flags |= PKT_CARD_STAMPED;
	stamped_cnt++;
}

void rdma_stamp_left(struct rdma_ring *own, struct pkt *record, uint64_t ticks)
{
	CHECK(&own->ring == ring);
	record->card_ns = ticks;
	if (ticks)
		record->flags |= PKT_CARD_STAMPED;
}

static inline uint32_t posted_cnt(void)
{
	return be32toh(card.qp_record[MLX5_RCV_DBR]);
}

/* How many frames the card can still receive. */
static inline uint32_t left_cnt(void)
{
	return (uint16_t)(posted_cnt() - card.come_cnt);
}

static inline void frame_comes(void)
{
	struct mlx5_cqe64 *cqe = &card.rx_cqes[card.come_cnt % RX];
	uint8_t lap = card.come_cnt / RX & OWNER;

	CHECK(left_cnt() > 0);
	cqe->byte_cnt = htobe32(LEN);
	cqe->timestamp = htobe64(UINT64_C(0x1122334400000000) + card.come_cnt);
	cqe->wqe_counter = htobe16((uint16_t)card.come_cnt);
	cqe->op_own = (uint8_t)(MLX5_CQE_RESP_SEND << 4 | lap);
	card.come_cnt++;
}

/* -- the ring ---------------------------------------------------------------------- */

/* Whether its doorbell register is no other ring's. */
static struct ibv_pd own_register;
static bool has_register = true;

/* The ring of one of so many devices that share the region. `own_cnt` is not 0: it only sends,
 * and has so many frames for itself. */
static inline void set_up_any(unsigned sharer_cnt, uint32_t own_cnt)
{
	struct rdma_queues queues = {
		.rx_cq = own_cnt ? NULL : &rx_cq, .tx_cq = &tx_cq, .qp = &qp,
		.rx_size = own_cnt ? 0 : RX, .tx_size = TX,
		.tx_stamped = (struct ibv_cq_ex *)&tx_cq,
		.domain = has_register ? &own_register : NULL,
	};

	memset(&card, 0, sizeof(card));
	memset(&dev, 0, sizeof(dev));
	/* as libmlx5 leaves them */
	for (int i = 0; i < RX; i++)
		card.rx_cqes[i].op_own = MLX5_CQE_INVALID << 4;
	for (int i = 0; i < TX; i++)
		card.tx_cqes[i].op_own = MLX5_CQE_INVALID << 4;
	dev.params = &params;
	dev.sharer_cnt = sharer_cnt;
	CHECK_EQ(region_create(FRAMES, FRAME, REGION_SMALL_PAGES,
			       &dev.dev.region), 0);
	CHECK_EQ(region_set_add(&dev.dev.regions, dev.dev.region), 0);
	pkt_pool_init(&pool, HEADROOM);
	region_take(dev.dev.region, &pool, own_cnt);
	rdma_kind_mlx5.start();
	CHECK_EQ(rdma_kind_mlx5.ring_create(&dev, &queues, &pool, &ring), 0);
}

static inline void set_up_sharer(unsigned sharer_cnt)
{
	set_up_any(sharer_cnt, 0);
}

static inline void set_up(void)
{
	set_up_sharer(1);
}

static inline void tear_down(void)
{
	ring_end(ring);
	region_set_give(&dev.dev.regions, &pool, FRAMES);
	CHECK_EQ(region_free_cnt(dev.dev.region), FRAMES);
	region_set_put(&dev.dev.regions);
}

static inline void send_short(void)
{
	memset(ring->tx_frame, 0, LEN);
	ring->ops->tx_commit(ring, LEN);
}

/* The card completes the entry at this block, with its counter at `ticks`. */
static inline void entry_is_sent(uint32_t number, uint16_t block, uint64_t ticks)
{
	struct mlx5_cqe64 *cqe = &card.tx_cqes[number % TX];

	cqe->timestamp = htobe64(ticks);
	cqe->wqe_counter = htobe16(block);
	cqe->op_own = (uint8_t)(MLX5_CQE_REQ << 4 | (number / TX & OWNER));
}

static inline bool is_signaled_at(uint16_t block)
{
	const struct mlx5_wqe_ctrl_seg *ctrl =
		(const void *)(card.sq + (size_t)(block % TX) * WQE_BLOCK);

	return ctrl->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE;
}

#endif
