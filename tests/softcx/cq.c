/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion queues; see cq.h. */
#include "config.h"

#include "cq.h"

#include <infiniband/mlx5dv.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>

#include "base/clock.h"
#include "card.h"
#include "check.h"
#include "ctx.h"
#include "dma.h"

enum {
	RECORD_CI = 0,
	RECORD_ARM = 1,
	INDEX_MASK = 0xffffff,
};

/* A compressed run: a title, which is the first completion with the number of all
 * in place of its length, and small ones in groups, the first group behind the
 * title, the others where the completion of their first would be. Nothing is
 * written to the places in between. As the kernel's driver reads it. */
enum {
	FORMAT_COMPRESSED = 3 << 2,
	MINIS = 8,
	MIN_RUN = 2,
};

struct mini_cqe {
	uint32_t hash_be;
	uint32_t byte_cnt_be;
};
_Static_assert(sizeof(struct mini_cqe) * MINIS == sizeof(struct mlx5_cqe64),
	       "a group fills an entry");

/* No arm word: the bits between command and sequence number are zero in one. */
static const uint32_t no_arm_word = 0xffffffff;
/* How long software may take from the arm record to the doorbell: its thread may lose the
 * processor in between, on a busy machine for more than half a second. */
static const uint64_t arm_grace_ns = 5 * NS_PER_SEC;

/* A completion that is held back. */
struct late_cqe {
	struct list link;
	uint64_t due_ns;
	struct mlx5_cqe64 cqe;
};

/* The request in the record was heard. A newer one that the program wrote in the
 * meantime stays: its doorbell may yet be overwritten. */
static void clear_arm_record(struct cq *cq, uint32_t word_be)
{
	atomic_compare_exchange_strong_explicit(&cq->params.dbrec[RECORD_ARM],
						&word_be, no_arm_word,
						memory_order_relaxed,
						memory_order_relaxed);
	cq->record_seen_ns = 0;
}

static int pin(struct cq *cq)
{
	const struct cq_params *p = &cq->params;
	int ret = umem_pin(&cq->ring_umem, p->buf,
			   (uint64_t)p->n_cqes * p->cqe_size, true);

	if (ret)
		return ret;
	ret = umem_pin(&cq->dbrec_umem, p->dbrec, 2 * sizeof(*p->dbrec), true);
	if (ret)
		umem_unpin(&cq->ring_umem);
	return ret;
}

static void unpin(struct cq *cq)
{
	umem_unpin(&cq->dbrec_umem);
	umem_unpin(&cq->ring_umem);
}

int cq_create(struct ctx *ctx, const struct cq_params *params,
	      struct cq **cq_out)
{
	struct cq *cq = calloc(1, sizeof(*cq));
	int ret = -ENOMEM;

	if (!cq)
		return ret;
	cq->ctx = ctx;
	cq->params = *params;
	list_init(&cq->late);
	if (params->is_compressing) {
		cq->run = calloc(CQ_MAX_RUN, sizeof(*cq->run));
		if (!cq->run)
			goto err_free;
	}
	ret = pin(cq);
	if (ret)
		goto err_free;
	ret = -ENOMEM;
	if (idtab_add(&ctx->dev->cqs, cq, &cq->cqn))
		goto err_unpin;
	ret = obj_add(ctx, &cq->obj, OBJ_CQ);
	if (ret)
		goto err_number;
	list_push_back(&params->uar->cqs, &cq->uar_link);
	params->uar->obj.n_users++;
	if (params->chan)
		params->chan->n_users++;
	atomic_store_explicit(&params->dbrec[RECORD_ARM], no_arm_word,
			      memory_order_relaxed);
	*cq_out = cq;
	return 0;

err_number:
	idtab_remove(&ctx->dev->cqs, cq->cqn);
err_unpin:
	unpin(cq);
err_free:
	free(cq->run);
	free(cq);
	return ret;
}

static void drop_late(struct cq *cq, bool all, uint32_t uidx)
{
	struct late_cqe *late, *next;

	LIST_FOR_EACH_SAFE(late, next, &cq->late, link) {
		if (!all && be32toh(late->cqe.srqn_uidx) != uidx)
			continue;
		list_remove(&late->link);
		free(late);
	}
}

void cq_forget_qp(struct cq *cq, uint32_t uidx)
{
	drop_late(cq, false, uidx);
	if (cq->n_run && be32toh(cq->run[0].srqn_uidx) == uidx)
		cq->n_run = 0;
}

void cq_destroy(struct cq *cq, uint32_t *n_comp_events_out,
		uint32_t *n_async_events_out)
{
	struct ctx *ctx = cq->ctx;
	struct chan *chan = cq->params.chan;
	uint64_t element = cq->params.user_handle;

	drop_late(cq, true, 0);
	*n_comp_events_out = cq->n_comp_events;
	*n_async_events_out = cq->n_async_events;
	if (chan) {
		*n_comp_events_out -= chan_withdraw(chan, element);
		chan->n_users--;
	}
	*n_async_events_out -= ctx_withdraw_async(ctx, element);
	list_remove(&cq->uar_link);
	cq->params.uar->obj.n_users--;
	unpin(cq);
	idtab_remove(&ctx->dev->cqs, cq->cqn);
	obj_remove(ctx, &cq->obj);
	free(cq->run);
	free(cq);
}

static void fire(struct cq *cq)
{
	struct ib_uverbs_comp_event_desc event = {
		.cq_handle = cq->params.user_handle,
	};

	cq->is_armed = false;
	cq->has_fired = true;
	cq->fired_sn = cq->armed_sn;
	cq->n_since_event = 0;
	if (!cq->params.chan)
		return;
	if (!chan_raise(cq->params.chan, &event)) {
		check_say("an event channel is full; an event was lost");
		return;
	}
	cq->n_comp_events++;
	cq->ctx->dev->stats.comp_events++;
}

static bool is_moderated(const struct cq *cq, uint64_t now_ns)
{
	uint64_t wait_ns = cq->moderate_us * NS_PER_US;

	if (!cq->moderate_cnt && !cq->moderate_us)
		return false;
	if (cq->moderate_cnt && cq->n_since_event >= cq->moderate_cnt)
		return false;
	return !cq->moderate_us || now_ns - cq->first_since_ns < wait_ns;
}

static bool is_error(const struct mlx5_cqe64 *cqe)
{
	uint8_t opcode = cqe->op_own >> 4;

	return opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;
}

/* Whether one more completion would overwrite one that was not polled. */
static bool is_full(const struct cq *cq)
{
	uint32_t ci = dma_record_read(&cq->params.dbrec[RECORD_CI]);

	return ((cq->pi + cq->n_run - ci) & INDEX_MASK) >= cq->params.n_cqes;
}

bool cq_has_room(const struct cq *cq)
{
	return list_is_empty(&cq->late) && !is_full(cq);
}

void cq_fail(struct cq *cq)
{
	if (cq->has_error)
		return;
	cq->has_error = true;
	if (ctx_raise_async(cq->ctx, IBV_EVENT_CQ_ERR, cq->params.user_handle))
		cq->n_async_events++;
}

static uint8_t *slot_of(const struct cq *cq, uint32_t index)
{
	return (uint8_t *)cq->params.buf +
	       (size_t)(index & (cq->params.n_cqes - 1)) * cq->params.cqe_size;
}

/* The body first, then the byte with owner bit and opcode: the release pairs
 * with the program's acquire of that byte. */
static void write_cqe(struct cq *cq, struct mlx5_cqe64 *cqe)
{
	uint8_t *slot = slot_of(cq, cq->pi);
	struct mlx5_cqe64 *to;
	uint8_t owner = cq->pi & cq->params.n_cqes ? 1 : 0;

	/* The larger entry has its fields in its second half. */
	to = (struct mlx5_cqe64 *)(slot + cq->params.cqe_size - sizeof(*cqe));
	dma_copy(to, cqe, offsetof(struct mlx5_cqe64, op_own));
	atomic_store_explicit((_Atomic uint8_t *)&to->op_own,
			      (uint8_t)((cqe->op_own & 0xfe) | owner),
			      memory_order_release);
	cq->pi++;
	cq->ctx->dev->stats.cqes++;
}

/* `n` completions were written, the last of them this one. */
static void written(struct cq *cq, const struct mlx5_cqe64 *cqe, uint32_t n)
{
	uint64_t now_ns = card_now_ns(the_card);

	if (!cq->n_since_event)
		cq->first_since_ns = now_ns;
	cq->n_since_event += n;
	if (!cq->is_armed)
		return;
	if (is_error(cqe) ||
	    (!cq->is_armed_solicited && !is_moderated(cq, now_ns)))
		fire(cq);
}

static void write_minis(struct cq *cq)
{
	for (uint32_t i = 0; i < cq->n_run; i += MINIS) {
		struct mini_cqe minis[MINIS] = { 0 };
		uint32_t n = MIN(cq->n_run - i, (uint32_t)MINIS);

		for (uint32_t k = 0; k < n; k++)
			minis[k].byte_cnt_be = cq->run[i + k].byte_cnt;
		dma_copy(slot_of(cq, cq->pi + (i ? i : 1)), minis,
			 sizeof(minis));
	}
}

void cq_flush_run(struct cq *cq)
{
	uint32_t n = cq->n_run;
	struct mlx5_cqe64 title;

	if (!n)
		return;
	if (cq->has_error) {
		cq->n_run = 0;
		return;
	}
	title = cq->run[0];
	if (n >= MIN_RUN) {
		title.byte_cnt = htobe32(n);
		title.op_own |= FORMAT_COMPRESSED;
		write_minis(cq);
		cq->ctx->dev->stats.cqes_compressed += n;
	}
	cq->n_run = 0;
	write_cqe(cq, &title);
	cq->pi += n - 1;
	cq->ctx->dev->stats.cqes += n - 1;
	written(cq, &title, n);
}

/* Whether it may follow those of the run. */
static bool is_alike(const struct cq *cq, const struct mlx5_cqe64 *cqe)
{
	const struct mlx5_cqe64 *first = &cq->run[0];
	uint16_t next = (uint16_t)(be16toh(first->wqe_counter) + cq->n_run);

	return cqe->srqn_uidx == first->srqn_uidx &&
	       cqe->sop_drop_qpn == first->sop_drop_qpn &&
	       cqe->hds_ip_ext == first->hds_ip_ext &&
	       cqe->l4_hdr_type_etc == first->l4_hdr_type_etc &&
	       cqe->vlan_info == first->vlan_info &&
	       be16toh(cqe->wqe_counter) == next;
}

/* Whether the completion waits for others like it. */
static bool join_run(struct cq *cq, const struct mlx5_cqe64 *cqe)
{
	bool is_received = cqe->op_own >> 4 == MLX5_CQE_RESP_SEND;

	if (!cq->run)
		return false;
	if (cq->n_run == CQ_MAX_RUN || !is_received ||
	    (cq->n_run && !is_alike(cq, cqe)))
		cq_flush_run(cq);
	if (!is_received)
		return false;
	cq->run[cq->n_run++] = *cqe;
	return true;
}

static void post_now(struct cq *cq, struct mlx5_cqe64 *cqe)
{
	if (cq->has_error)
		return;
	if (is_full(cq)) {
		check_violation("cq-overrun",
				"completion queue %#x of %u entries is full",
				cq->cqn, cq->params.n_cqes);
		cq_fail(cq);
		return;
	}
	if (join_run(cq, cqe))
		return;
	write_cqe(cq, cqe);
	written(cq, cqe, 1);
}

static void hold_back(struct cq *cq, const struct mlx5_cqe64 *cqe,
		      uint64_t due_ns)
{
	struct late_cqe *late = malloc(sizeof(*late));

	if (!late)
		check_die("out of memory");
	late->cqe = *cqe;
	late->due_ns = cq->last_due_ns = MAX(due_ns, cq->last_due_ns);
	list_push_back(&cq->late, &late->link);
	cq->ctx->dev->stats.cqes_late++;
}

void cq_post(struct cq *cq, struct mlx5_cqe64 *cqe)
{
	struct dev *dev = cq->ctx->dev;
	uint64_t now_ns = card_now_ns(the_card);
	uint64_t late_ns = the_card->conf.late_ns;

	/* An error completion has its syndrome where others have the time. */
	if (!is_error(cqe))
		cqe->timestamp =
			htobe64(hca_clock_cycles(&dev->clock, now_ns));
	if (late_ns)
		late_ns = rand_below(&dev->late_rand, late_ns + 1);
	if (late_ns || !list_is_empty(&cq->late))
		hold_back(cq, cqe, now_ns + late_ns);
	else
		post_now(cq, cqe);
}

/*
 * A request with the sequence number of one that fired is old: the program has
 * not yet taken that event, which will wake it. Completions that are there
 * already, beyond those the program says it has seen, fire at once.
 */
void cq_arm(struct cq *cq, uint32_t word)
{
	uint8_t sn = word >> 28 & 3;
	uint32_t ci = word & INDEX_MASK;

	clear_arm_record(cq, htobe32(word));
	if (cq->has_fired && sn == cq->fired_sn) {
		cq->ctx->dev->stats.arms_stale++;
		return;
	}
	cq->ctx->dev->stats.arms++;
	cq->is_armed = true;
	cq->is_armed_solicited = word & MLX5_CQ_DB_REQ_NOT_SOL;
	cq->armed_sn = sn;
	/* what has come before is waited for no longer than other completions */
	if (((cq->pi - ci) & INDEX_MASK) != 0 && !cq->n_since_event)
		cq->n_since_event = 1;
	if (((cq->pi - ci) & INDEX_MASK) != 0 && !cq->is_armed_solicited &&
	    !is_moderated(cq, card_now_ns(the_card)))
		fire(cq);
}

bool cq_arm_overtaken(struct cq *cq)
{
	uint32_t word = atomic_load_explicit(&cq->params.dbrec[RECORD_ARM],
					     memory_order_acquire);

	if (word == no_arm_word)
		return false;
	cq_arm(cq, be32toh(word));
	return true;
}

static void check_record(struct cq *cq, uint64_t now_ns)
{
	uint32_t word = atomic_load_explicit(&cq->params.dbrec[RECORD_ARM],
					     memory_order_relaxed);

	if (word == no_arm_word) {
		cq->record_seen_ns = 0;
	} else if (!cq->record_seen_ns) {
		cq->record_seen_ns = now_ns;
	} else if (now_ns - cq->record_seen_ns > arm_grace_ns) {
		check_violation("arm-without-doorbell",
				"completion queue %#x was armed in its record, "
				"but no doorbell followed",
				cq->cqn);
		clear_arm_record(cq, word);
	}
}

int cq_poll(struct cq *cq, uint64_t now_ns)
{
	struct late_cqe *late, *next;
	int n = 0;

	LIST_FOR_EACH_SAFE(late, next, &cq->late, link) {
		if (late->due_ns > now_ns)
			break;
		list_remove(&late->link);
		post_now(cq, &late->cqe);
		free(late);
		n++;
	}
	if (cq->is_armed && !cq->is_armed_solicited && cq->n_since_event &&
	    cq->moderate_us && !is_moderated(cq, now_ns)) {
		fire(cq);
		n++;
	}
	check_record(cq, now_ns);
	return n;
}
