/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Send queues: executing entries; see qp.h. */
#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "card.h"
#include "check.h"
#include "cq.h"
#include "dma.h"
#include "mr.h"
#include "qp.h"

enum {
	BATCH = 64,           /* entries of one queue pair in one step */
	MAX_DS = 63,          /* 16-byte units of the longest entry */
	SEGMENT = 16,
	/* The Ethernet segment: its inline header begins inside it. */
	ETH_SEGMENT_MIN = 16,
	INLINE_HEADER_AT = 14,
	/* Of the kernel's header; rdma-core's has neither. In place of the
	 * inline header's size: the tag is in place of its bytes. */
	OPCODE_MULTI = 0x29,  /* "enhanced multi-packet": each segment a frame */
	INSERT_VLAN = 0x8000,
	TYPE_VLAN = 0x8100,
	VLAN_AT = 12,         /* behind both addresses */
	CTRL_CE_MASK = 3 << 2,
};

/* An entry taken apart. */
struct entry {
	uint8_t bytes[MAX_DS * SEGMENT];
	uint32_t len;          /* of bytes, from the control segment on */
	uint16_t index;
	uint16_t n_bbs;
	uint8_t opcode;
	bool is_signaled;
	uint8_t cs_flags;
	uint16_t mss;
	uint16_t header_len;   /* inline header */
	bool has_tag;          /* to be inserted */
	uint16_t tag;
	uint32_t data_at;      /* first data segment */
};

/* How an entry ended: executed, failed with a syndrome, or to be tried again. */
enum { RUN_AGAIN = -1, RUN_DONE = 0 };

/* Nothing is sent by a queue pair in this state. */
static bool check_state(struct qp *qp)
{
	static const char *const names[] = { "RESET", "INIT", "RTR" };

	if (qp->state <= IBV_QPS_RTR) {
		check_violation("bad-state",
				"queue pair %#x: an entry was posted for "
				"sending in state %s",
				qp->qpn, names[qp->state]);
		return false;
	}
	return qp->state == IBV_QPS_RTS;
}

static void set_target(struct qp *qp, uint16_t target)
{
	struct sq *sq = &qp->sq;

	if (!check_state(qp))
		return;
	if ((uint16_t)(target - sq->ci) > sq->n_bbs) {
		check_violation("sq-overrun",
				"queue pair %#x: %u blocks posted in a ring of "
				"%u",
				qp->qpn, (uint16_t)(target - sq->ci),
				sq->n_bbs);
		return;
	}
	sq->target = target;
}

void sq_ring(struct qp *qp, uint16_t index)
{
	uint16_t target = (uint16_t)dma_record_read(&qp->dbrec[QP_RECORD_SQ]);

	if (!qp->sq.n_bbs) {
		check_violation("bad-number",
				"doorbell for queue pair %#x, which has no "
				"send queue",
				qp->qpn);
		return;
	}
	if ((int16_t)(target - index) <= 0) {
		check_violation("doorbell-before-record",
				"queue pair %#x: doorbell for entry %u, but "
				"the doorbell record says %u",
				qp->qpn, index, target);
		return;
	}
	set_target(qp, target);
}

bool sq_ring_overtaken(struct qp *qp)
{
	uint16_t target;

	if (!qp->sq.n_bbs || qp->state != IBV_QPS_RTS)
		return false;
	target = (uint16_t)dma_record_read(&qp->dbrec[QP_RECORD_SQ]);
	if (target == qp->sq.target)
		return false;
	set_target(qp, target);
	return true;
}

/* The ring wraps inside an entry. */
static void copy_entry(const struct sq *sq, uint16_t index, uint8_t *to,
		       uint32_t len)
{
	size_t size = (size_t)sq->n_bbs * MLX5_SEND_WQE_BB;
	size_t at = (size_t)(index & (sq->n_bbs - 1)) * MLX5_SEND_WQE_BB;
	size_t first = MIN((size_t)len, size - at);

	dma_copy(to, sq->buf + at, first);
	dma_copy(to + first, sq->buf, len - first);
}

uint32_t sq_peek(const struct qp *qp, uint16_t index, uint8_t *to,
		 uint32_t size)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	uint32_t len;

	if (!qp->sq.n_bbs)
		return 0;
	copy_entry(&qp->sq, index, (uint8_t *)&ctrl, sizeof(ctrl));
	len = (be32toh(ctrl.qpn_ds) & 0x3f) * SEGMENT;
	copy_entry(&qp->sq, index, to, MIN(len, size));
	return len;
}

/* The control segment. 0 or a syndrome. */
static uint8_t read_control(struct qp *qp, struct entry *e)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	uint32_t word, ds, posted;

	copy_entry(&qp->sq, qp->sq.ci, (uint8_t *)&ctrl, sizeof(ctrl));
	word = be32toh(ctrl.opmod_idx_opcode);
	ds = be32toh(ctrl.qpn_ds) & 0x3f;
	posted = (uint16_t)(qp->sq.target - qp->sq.ci);
	e->index = qp->sq.ci;
	e->opcode = (uint8_t)word;
	e->n_bbs = (uint16_t)MAX(1u, (ds + 3) / 4);
	e->is_signaled = qp->sq_sig_all || (ctrl.fm_ce_se & CTRL_CE_MASK) ==
						   MLX5_WQE_CTRL_CQ_UPDATE;
	if (be32toh(ctrl.qpn_ds) >> 8 != qp->qpn) {
		check_violation("wrong-qp",
				"queue pair %#x: entry %u says it is of %#x",
				qp->qpn, e->index,
				be32toh(ctrl.qpn_ds) >> 8);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if ((uint16_t)(word >> 8) != e->index) {
		check_violation("wrong-index",
				"queue pair %#x: entry %u says it is entry %u",
				qp->qpn, e->index, (uint16_t)(word >> 8));
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if (!ds || e->n_bbs > posted) {
		check_violation("bad-size",
				"queue pair %#x: entry %u has %u segments, but "
				"%u blocks are posted",
				qp->qpn, e->index, ds, posted);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	e->len = ds * SEGMENT;
	copy_entry(&qp->sq, qp->sq.ci, e->bytes, e->len);
	return 0;
}

/* The Ethernet segment. 0 or a syndrome. */
static uint8_t read_ethernet(struct qp *qp, struct entry *e)
{
	struct mlx5_wqe_eth_seg eth;
	uint32_t size, needed;

	if (e->opcode != MLX5_OPCODE_SEND &&
	    (e->opcode != MLX5_OPCODE_TSO || !the_card->conf.has_tso) &&
	    (e->opcode != OPCODE_MULTI || the_card->conf.min_inline)) {
		check_violation("bad-opcode",
				"queue pair %#x: entry %u has opcode %#x",
				qp->qpn, e->index, e->opcode);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	memset(&eth, 0, sizeof(eth));
	memcpy(&eth, e->bytes + SEGMENT,
	       MIN(sizeof(eth), (size_t)(e->len - SEGMENT)));
	e->cs_flags = eth.cs_flags;
	e->mss = be16toh(eth.mss);
	e->has_tag = be16toh(eth.inline_hdr_sz) & INSERT_VLAN;
	e->tag = (uint16_t)(eth.inline_hdr_start[0] << 8 |
			    eth.inline_hdr_start[1]);
	e->header_len = e->has_tag ? 0 : be16toh(eth.inline_hdr_sz) & 0x3ff;
	size = ETH_SEGMENT_MIN;
	if (e->header_len > ETH_SEGMENT_MIN - INLINE_HEADER_AT)
		size = (INLINE_HEADER_AT + e->header_len + SEGMENT - 1u) &
		       ~(SEGMENT - 1u);
	e->data_at = SEGMENT + size;
	needed = e->opcode == MLX5_OPCODE_TSO ? CONF_INLINE_L2 :
						the_card->conf.min_inline;
	if (e->header_len < needed) {
		check_violation("inline-header",
				"queue pair %#x: entry %u has an inline header "
				"of %u bytes%s; this card needs %u",
				qp->qpn, e->index, e->header_len,
				e->has_tag ? " beside a tag to insert" : "",
				needed);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if (e->has_tag && be16toh(eth.inline_hdr_sz) != INSERT_VLAN) {
		check_violation("inline-header",
				"queue pair %#x: entry %u asks for a tag of "
				"another kind (%#x)",
				qp->qpn, e->index, be16toh(eth.inline_hdr_sz));
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if (e->data_at > e->len) {
		check_violation("bad-size",
				"queue pair %#x: the inline header of entry %u "
				"exceeds the entry",
				qp->qpn, e->index);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	return 0;
}

/* One data segment at *at, which is advanced; adds its bytes to the frame. */
static uint8_t gather_one(struct qp *qp, const struct entry *e, uint32_t *at,
			  uint8_t *frame, size_t size, size_t *len,
			  bool *has_pointers)
{
	struct mlx5_wqe_data_seg seg;
	const uint8_t *inline_data = e->bytes + *at + sizeof(seg.byte_count);
	bool is_inline;
	uint32_t n;

	memcpy(&seg, e->bytes + *at, sizeof(seg));
	n = be32toh(seg.byte_count);
	is_inline = n & MLX5_INLINE_SEG;
	if (is_inline) {
		n &= 0x3ff;
		*at += (uint32_t)((sizeof(seg.byte_count) + n + SEGMENT - 1u) &
				  ~(SEGMENT - 1u));
	} else {
		*at += SEGMENT;
		*has_pointers = true;
	}
	if (*at > e->len) {
		check_violation("bad-size",
				"queue pair %#x: inline data of entry %u "
				"exceeds the entry",
				qp->qpn, e->index);
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	if (n > size - *len) {
		check_violation("bad-size",
				"queue pair %#x: entry %u is a frame of more "
				"than %zu bytes",
				qp->qpn, e->index, size);
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	if (is_inline) {
		memcpy(frame + *len, inline_data, n);
	} else {
		struct mr_use use = {
			.dev = qp->ctx->dev,
			.pd = qp->pd,
			.lkey = be32toh(seg.lkey),
			.addr = be64toh(seg.addr),
			.len = n,
			.user = "a send entry",
		};

		if (!mr_read(&use, frame + *len))
			return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	}
	*len += n;
	return 0;
}

static uint8_t gather(struct qp *qp, const struct entry *e, uint8_t *frame,
		      size_t size, size_t *len_out)
{
	bool has_pointers = false;
	uint32_t at = e->data_at;
	uint8_t syndrome = 0;

	*len_out = e->header_len;
	memcpy(frame, e->bytes + SEGMENT + INLINE_HEADER_AT, e->header_len);
	while (at < e->len && !syndrome)
		syndrome = gather_one(qp, e, &at, frame, size, len_out,
				      &has_pointers);
	if (!has_pointers)
		qp->ctx->dev->stats.tx_inline++;
	return syndrome;
}

/* Puts the tag into a frame for which there is room; its new length. */
static size_t insert_tag(const struct entry *e, uint8_t *frame, size_t len)
{
	uint16_t type = htobe16(TYPE_VLAN), tag = htobe16(e->tag);

	if (!e->has_tag || len < VLAN_AT)
		return len;
	memmove(frame + VLAN_AT + FRAME_VLAN_LEN, frame + VLAN_AT,
		len - VLAN_AT);
	memcpy(frame + VLAN_AT, &type, sizeof(type));
	memcpy(frame + VLAN_AT + sizeof(type), &tag, sizeof(tag));
	return len + FRAME_VLAN_LEN;
}

static void put_checksums(struct dev *dev, uint8_t cs_flags, uint8_t *frame,
			  size_t len)
{
	struct frame_info info;

	if (!cs_flags)
		return;
	frame_parse(frame, len, &info);
	if (cs_flags & MLX5_ETH_WQE_L3_CSUM && info.key.l3 == FRAME_L3_IPV4) {
		frame_put_l3_csum(frame, &info);
		dev->stats.tx_l3_csum++;
	}
	if (cs_flags & MLX5_ETH_WQE_L4_CSUM && info.l4_offset) {
		frame_put_l4_csum(frame, &info);
		dev->stats.tx_l4_csum++;
	}
}

/* What was sent took so long at the rate. The frame that uses a burst up is the
 * last of it. */
static bool is_paced(const struct qp *qp, uint64_t now_ns)
{
	uint64_t ready_ns = qp->sq.ready_ns;

	return ready_ns > now_ns && ready_ns - now_ns >= qp->burst_ns;
}

/* Pacing: what was sent pushes back when the next may be. */
static void pace(struct qp *qp, size_t len, uint64_t now_ns)
{
	if (!qp->rate_kbps)
		return;
	qp->sq.ready_ns = MAX(qp->sq.ready_ns, now_ns) +
			  len * 8 * NS_PER_MS / qp->rate_kbps;
}

/* How long a frame of this entry may be before what the card adds. */
static size_t room_of(const struct entry *e)
{
	return e->has_tag ? FRAME_MAX_LEN - FRAME_VLAN_LEN : FRAME_MAX_LEN;
}

/* Room for one more frame of an entry that has begun to leave. NULL: the socket
 * is full, and the frame is lost as in a card's buffers. */
static uint8_t *reserve(struct dev *dev)
{
	uint8_t *frame = wire_tx_reserve(&dev->wire);

	if (frame)
		return frame;
	dev_flush_wire(the_card, dev);
	return wire_tx_reserve(&dev->wire);
}

static void commit(struct qp *qp, const struct entry *e, uint8_t *frame,
		   size_t len, uint64_t now_ns)
{
	struct dev *dev = qp->ctx->dev;

	len = insert_tag(e, frame, len);
	put_checksums(dev, e->cs_flags, frame, len);
	wire_tx_commit(&dev->wire, len);
	pace(qp, len, now_ns);
}

static int send_one(struct qp *qp, const struct entry *e, uint64_t now_ns)
{
	struct dev *dev = qp->ctx->dev;
	uint8_t *frame = wire_tx_reserve(&dev->wire);
	uint8_t syndrome;
	size_t len;

	if (!frame)
		return RUN_AGAIN;
	syndrome = gather(qp, e, frame, room_of(e), &len);
	if (syndrome)
		return syndrome;
	commit(qp, e, frame, len, now_ns);
	return RUN_DONE;
}

/* Each data segment is a frame. Those before one that is wrong have left. */
static int send_several(struct qp *qp, const struct entry *e, uint64_t now_ns)
{
	struct dev *dev = qp->ctx->dev;
	bool has_pointers = false;
	uint32_t at = e->data_at;

	while (at < e->len) {
		uint8_t *frame = reserve(dev);
		static uint8_t lost[FRAME_MAX_LEN];
		uint8_t syndrome;
		size_t len = 0;

		syndrome = gather_one(qp, e, &at, frame ? frame : lost,
				      room_of(e), &len, &has_pointers);
		if (syndrome)
			return syndrome;
		if (frame)
			commit(qp, e, frame, len, now_ns);
		else
			dev->stats.tx_failed++;
	}
	if (!has_pointers)
		dev->stats.tx_inline++;
	return RUN_DONE;
}

/* What is wrong with what is to be cut; NULL: nothing is. The header is what each segment
 * gets, so all of it, and nothing else, has to be inline. Its length may be any: the card
 * writes that of each segment. */
static const char *fault_of_segmentation(const struct entry *e,
					 const uint8_t *large, size_t payload_len)
{
	const uint8_t needed = MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM;
	uint8_t header[1024];
	struct frame_info info;
	const uint8_t *tcp;

	(void)frame_segment(header, large, e->header_len, large, 0, 0, 0, true);
	frame_parse(header, e->header_len, &info);
	tcp = header + info.l4_offset;
	if (info.key.l4 != FRAME_L4_TCP || info.is_fragment)
		return "no whole header of TCP inline";
	if (e->header_len != info.l4_offset + (size_t)(tcp[12] >> 4) * 4)
		return "other bytes inline than the headers up to TCP's options";
	if (tcp[13] & (FRAME_TCP_SYN | FRAME_TCP_RST | FRAME_TCP_URG))
		return "flags that are not every segment's (SYN, RST, URG)";
	if ((e->cs_flags & needed) != needed)
		return "no checksums to compute, where each segment needs its own";
	if (!payload_len)
		return "no bytes behind the header";
	return NULL;
}

/* All segments of an entry leave together, or none does yet. */
static int send_segments(struct qp *qp, const struct entry *e, uint64_t now_ns)
{
	static uint8_t large[QP_MAX_TSO + 1024];
	struct dev *dev = qp->ctx->dev;
	const char *fault;
	uint8_t syndrome;
	unsigned int n;
	size_t len;

	if (!e->mss) {
		check_violation("bad-size",
				"queue pair %#x: entry %u asks for "
				"segmentation by 0 bytes",
				qp->qpn, e->index);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	syndrome = gather(qp, e, large, sizeof(large), &len);
	if (syndrome)
		return syndrome;
	len -= e->header_len;
	if (e->header_len + MIN(len, (size_t)e->mss) > FRAME_MAX_LEN) {
		check_violation("bad-size",
				"queue pair %#x: entry %u asks for segments of "
				"more than %u bytes, header included",
				qp->qpn, e->index, FRAME_MAX_LEN);
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	if (len > QP_MAX_TSO) {
		check_violation("bad-size",
				"queue pair %#x: entry %u has %zu bytes to be cut; "
				"this card takes %u",
				qp->qpn, e->index, len, QP_MAX_TSO);
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	fault = fault_of_segmentation(e, large, len);
	if (fault) {
		check_violation("bad-segmentation",
				"queue pair %#x: entry %u, which is to be cut, "
				"has %s",
				qp->qpn, e->index, fault);
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	n = (unsigned int)((len + e->mss - 1) / e->mss);
	for (unsigned int i = 0; i < n; i++) {
		size_t at = (size_t)i * e->mss;
		size_t part = MIN(len - at, (size_t)e->mss);
		uint8_t *frame = reserve(dev);

		if (!frame) {
			dev->stats.tx_failed++;
			continue;
		}
		part = frame_segment(frame, large, e->header_len,
				     large + e->header_len + at, part, at, i,
				     i == n - 1);
		commit(qp, e, frame, part, now_ns);
	}
	dev->stats.tx_segments += n;
	return RUN_DONE;
}

static void complete(struct qp *qp, const struct entry *e)
{
	struct mlx5_cqe64 cqe = {
		.srqn_uidx = htobe32(qp->uidx),
		.sop_drop_qpn = htobe32((uint32_t)e->opcode << 24 | qp->qpn),
		.wqe_counter = htobe16(e->index),
		.op_own = MLX5_CQE_REQ << 4,
	};

	if (e->is_signaled)
		cq_post(qp->sq.cq, &cqe);
}

static int execute(struct qp *qp, struct entry *e, uint64_t now_ns)
{
	uint8_t syndrome = read_control(qp, e);

	if (syndrome)
		return syndrome;
	if (e->opcode == MLX5_OPCODE_NOP)
		return RUN_DONE;
	syndrome = read_ethernet(qp, e);
	if (syndrome)
		return syndrome;
	if (e->opcode == MLX5_OPCODE_TSO)
		return send_segments(qp, e, now_ns);
	if (e->opcode == OPCODE_MULTI)
		return send_several(qp, e, now_ns);
	return send_one(qp, e, now_ns);
}

/* One entry. False when it has to wait or the queue pair ended. */
static bool run_one(struct qp *qp, uint64_t now_ns)
{
	struct dev *dev = qp->ctx->dev;
	struct entry e;
	int ret = execute(qp, &e, now_ns);

	if (ret == RUN_AGAIN)
		return false;
	qp->sq.ci = (uint16_t)(qp->sq.ci + e.n_bbs);
	if (ret != RUN_DONE) {
		dev->stats.tx_bad_entries++;
		qp_post_error(qp, true, e.index, e.opcode, (uint8_t)ret);
		qp_stop(qp);
		return false;
	}
	dev->stats.tx_entries++;
	dev->stats.tx_entry_blocks += e.n_bbs;
	complete(qp, &e);
	return true;
}

int sq_run(struct qp *qp, uint64_t now_ns)
{
	int n = 0;

	while (n < BATCH && qp->state == IBV_QPS_RTS &&
	       qp->sq.ci != qp->sq.target && !is_paced(qp, now_ns) &&
	       run_one(qp, now_ns))
		n++;
	return n;
}
