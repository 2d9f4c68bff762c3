/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues: writing completions into the program's ring, arming, and
 * the events that follow.
 */
#ifndef SOFTCX_CQ_H
#define SOFTCX_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "chan.h"
#include "obj.h"
#include "uar.h"
#include "umem.h"

struct mlx5_cqe64;

/* The largest ring: what query_device reports as max_cqe, plus one. */
enum { CQ_MAX_ENTRIES = 1 << 22 };

struct cq_params {
	void *buf;
	uint32_t n_cqes;     /* a power of two */
	uint32_t cqe_size;   /* 64 or 128 */
	_Atomic uint32_t *dbrec; /* consumer index, arm word */
	struct uar *uar;
	bool is_compressing; /* runs of completions that are alike */
	struct chan *chan;   /* NULL: no events */
	uint64_t user_handle; /* what events say */
};

/* What query_device reports: completions in one compressed run. */
enum { CQ_MAX_RUN = 64 };

struct cq {
	struct obj obj;
	struct list uar_link;
	struct ctx *ctx;
	struct cq_params params;
	struct umem ring_umem;
	struct umem dbrec_umem;
	uint32_t cqn;
	uint32_t pi;            /* completions written so far */
	struct list late;       /* completions held back, in order */
	struct mlx5_cqe64 *run; /* of CQ_MAX_RUN, or NULL: not yet written, all
				   alike but for length and entry */
	uint32_t n_run;
	uint64_t last_due_ns;
	bool is_armed;
	bool is_armed_solicited; /* only errors fire, as nothing here is
				    solicited */
	bool has_fired;
	bool has_error;         /* overrun, or failed by the test */
	uint8_t fired_sn;       /* of the request that fired last */
	uint8_t armed_sn;
	uint16_t moderate_cnt;  /* fire after so many completions... */
	uint16_t moderate_us;   /* ...or so long after the first */
	uint32_t n_since_event;
	uint64_t first_since_ns;
	uint64_t record_seen_ns; /* since when the arm record waits for its
				    doorbell; 0: it does not */
	uint32_t n_comp_events;
	uint32_t n_async_events;
};

MUST_CHECK int cq_create(struct ctx *ctx, const struct cq_params *params,
			 struct cq **cq_out);
/* Reports the events the program has read, for it waits until it has
 * acknowledged as many. */
void cq_destroy(struct cq *cq, uint32_t *n_comp_events_out,
		uint32_t *n_async_events_out);

/* Whether cq_post would find room now; held back completions count. */
bool cq_has_room(const struct cq *cq);
/* Writes a completion; owner bit and time stamp are filled in here. */
void cq_post(struct cq *cq, struct mlx5_cqe64 *cqe);
/* A doorbell with this arm word was rung. */
void cq_arm(struct cq *cq, uint32_t word);
/* A doorbell may have been overwritten: arms if the record says more than is
 * known. */
bool cq_arm_overtaken(struct cq *cq);
/* Completions held back whose time has come, moderation that ran out, a record
 * without its doorbell. Returns how many things were done. */
int cq_poll(struct cq *cq, uint64_t now_ns);
/* Writes what waits for more of its kind; at the end of each step. */
void cq_flush_run(struct cq *cq);
/* Completions of this queue pair will not be written any more. */
void cq_forget_qp(struct cq *cq, uint32_t uidx);
/* The queue stops, with IBV_EVENT_CQ_ERR. */
void cq_fail(struct cq *cq);

#endif
