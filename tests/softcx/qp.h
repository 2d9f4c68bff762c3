/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Raw packet queue pairs: state, and what both of their queues share. sq.c
 * executes send entries, rq.c fills receive entries.
 */
#ifndef SOFTCX_QP_H
#define SOFTCX_QP_H

#include <infiniband/mlx5dv.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "frame.h"
#include "obj.h"
#include "umem.h"

struct cq;
struct uar;

/* Doorbell record words. */
enum { QP_RECORD_RQ = 0, QP_RECORD_SQ = 1 };
/* Limits that query_device and get_context report. */
enum {
	QP_MAX_SEND_BBS = 32768,
	QP_MAX_RECV_WRS = 32768,
	QP_MAX_SGE = 30,
	QP_MAX_TSO = 256 << 10,
};

struct sq {
	uint8_t *buf;
	uint32_t n_bbs;    /* basic blocks of 64 bytes; a power of two */
	struct cq *cq;
	uint16_t ci;       /* next block to execute */
	uint16_t target;   /* execute up to here; set by doorbells */
	int bf;            /* register its doorbells come through, or -1 */
	uint64_t ready_ns; /* pacing: when what was sent would have left */
};

struct rq {
	uint8_t *buf;
	uint32_t n_entries; /* a power of two, or 0: no receive queue */
	uint32_t stride;    /* bytes of one entry */
	struct cq *cq;
	uint16_t ci;        /* next entry to fill */
	uint16_t posted;    /* what its record said last */
};

struct qp {
	struct obj obj;
	struct list uar_link;
	struct ctx *ctx;
	struct pd *pd;
	struct uar *uar;        /* NULL: no send queue */
	uint32_t qpn;
	uint32_t uidx;          /* what completions call it */
	uint64_t user_handle;
	enum ibv_qp_state state;
	_Atomic uint32_t *dbrec;
	struct sq sq;
	struct rq rq;
	struct umem dbrec_umem, sq_umem, rq_umem;
	struct ibv_qp_cap cap;  /* as reported */
	bool sq_sig_all;
	bool strips_vlan;
	uint32_t rate_kbps;     /* 0: not limited */
	uint64_t burst_ns;      /* what may be sent ahead of it; 0: nothing */
	uint32_t n_async_events;
};

/* The members up to and including `user_handle`, the queues' memory, CQs and
 * flags are taken from `params`. */
MUST_CHECK int qp_create(struct ctx *ctx, const struct qp *params,
			 struct qp **qp_out);
void qp_destroy(struct qp *qp, uint32_t *n_async_events_out);

/* -EINVAL: no such transition. */
MUST_CHECK int qp_set_state(struct qp *qp, enum ibv_qp_state state);
/* The queue pair stops; what is posted is flushed from now on. */
void qp_stop(struct qp *qp);
/* As qp_stop, with IBV_EVENT_QP_FATAL. */
void qp_fail(struct qp *qp);
/* Completes what can be completed as flushed; returns how many entries. */
int qp_flush(struct qp *qp);
/* An error completion for entry `index`. */
void qp_post_error(struct qp *qp, bool is_send, uint16_t index, uint8_t opcode,
		   uint8_t syndrome);

/* Copies the entry at `index` of the ring, as far as there is room; its length. */
uint32_t sq_peek(const struct qp *qp, uint16_t index, uint8_t *to,
		 uint32_t size);
/* A doorbell was rung that carries the index of an entry. */
void sq_ring(struct qp *qp, uint16_t index);
/* A doorbell may have been overwritten; whether the record says so. */
bool sq_ring_overtaken(struct qp *qp);
/* Executes up to a batch of entries; returns how many. */
int sq_run(struct qp *qp, uint64_t now_ns);

/* A frame that steering gave to this queue pair. */
void rq_receive(struct qp *qp, const uint8_t *frame, size_t len,
		const struct frame_info *info, uint32_t tag);

#endif
