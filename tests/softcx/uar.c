/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Watching for doorbells; see uar.h. */
#include "config.h"

#include "uar.h"

#include <endian.h>
#include <stdlib.h>

#include "base/clock.h"
#include "card.h"
#include "check.h"
#include "cq.h"
#include "guard.h"
#include "qp.h"
#include "sys.h"

static const unsigned int bf_words[UAR_N_BF_WORDS] = {
	0x800 / 8, 0x900 / 8, 0xa00 / 8, 0xb00 / 8,
};

static int map_page(struct ctx *ctx, struct uar *uar)
{
	off_t offset = (off_t)uar->page_id * UAR_PAGE_SIZE;
	int ret = (int)SYS(__NR_ftruncate, ctx->uar_fd, offset + UAR_PAGE_SIZE);

	if (ret)
		return ret;
	uar->words = sys_mmap(NULL, UAR_PAGE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_SHARED, ctx->uar_fd, offset);
	return uar->words ? 0 : -ENOMEM;
}

int uar_create(struct ctx *ctx, struct uar **uar_out)
{
	struct uar *uar = calloc(1, sizeof(*uar));
	int ret = -ENOMEM;

	if (!uar)
		return ret;
	list_init(&uar->qps);
	list_init(&uar->cqs);
	if (idtab_add(&ctx->uars, uar, &uar->page_id))
		goto err_free;
	ret = -ENOSPC;
	if (uar->page_id >= UAR_MAX_PAGES)
		goto err_page;
	ret = map_page(ctx, uar);
	if (ret)
		goto err_page;
	ret = obj_add(ctx, &uar->obj, OBJ_UAR);
	if (ret)
		goto err_unmap;
	list_push_back(&ctx->uar_list, &uar->link);
	*uar_out = uar;
	return 0;

err_unmap:
	sys_munmap((void *)uar->words, UAR_PAGE_SIZE);
err_page:
	idtab_remove(&ctx->uars, uar->page_id);
err_free:
	free(uar);
	return ret;
}

void uar_set_guard(struct uar *uar, bool is_guarded)
{
	if (uar->user_at)
		guard_set(the_card->guard_fd, uar->user_at, is_guarded);
}

void uar_destroy(struct ctx *ctx, struct uar *uar)
{
	/* A store that waits now would wait for ever. */
	uar_set_guard(uar, false);
	list_remove(&uar->link);
	obj_remove(ctx, &uar->obj);
	idtab_remove(&ctx->uars, uar->page_id);
	sys_munmap((void *)uar->words, UAR_PAGE_SIZE);
	free(uar);
}

uint64_t uar_mmap_offset(const struct uar *uar)
{
	return (uint64_t)(UAR_FIRST_MMAP_PAGE + uar->page_id) * UAR_PAGE_SIZE;
}

void *uar_mmap(struct ctx *ctx, uint64_t offset, void *addr, size_t len,
	       int prot, int flags)
{
	uint64_t page = offset / UAR_PAGE_SIZE - UAR_FIRST_MMAP_PAGE;
	struct uar *uar = page < UAR_MAX_PAGES ?
				  idtab_get(&ctx->uars, (uint32_t)page) : NULL;
	void *at;

	if (len != UAR_PAGE_SIZE || !uar)
		return NULL;
	at = sys_mmap(addr, len, prot, flags, ctx->uar_fd,
		      (off_t)(page * UAR_PAGE_SIZE));
	/* Of several mappings of one page the last one wakes. */
	uar_set_guard(uar, false);
	uar->user_at = NULL;
	if (at && the_card->guard_fd >= 0 && guard_add(the_card->guard_fd, at))
		uar->user_at = at;
	return at;
}

/* Takes what was written; 0 when there was nothing. The acquire pairs with the
 * program's store to the register: entries and records before it are visible. */
static uint64_t take_word(_Atomic uint64_t *word)
{
	if (!atomic_load_explicit(word, memory_order_relaxed))
		return 0;
	return be64toh(atomic_exchange_explicit(word, 0, memory_order_acq_rel));
}

/* Why a doorbell for a queue that is not there is wrong. */
static void stray(const struct idtab *tab, const char *what, uint32_t number)
{
	if (idtab_was_used(tab, number))
		check_violation("use-after-destroy",
				"doorbell for %s %#x, which was destroyed", what,
				number);
	else
		check_violation("bad-number",
				"doorbell for %s %#x, which never existed",
				what, number);
}

/* Whether words behind the doorbell's have changed, which are then seen. */
static bool see_register(struct uar *uar, unsigned int i)
{
	struct uar_bf *bf = &uar->bf[i];
	bool is_new = false;

	for (unsigned int k = 1; k < UAR_BF_SIZE / 8; k++) {
		uint64_t word = atomic_load_explicit(
			&uar->words[bf_words[i] + k], memory_order_relaxed);

		is_new |= word != bf->seen[k];
		bf->seen[k] = word;
	}
	return is_new;
}

/* The first byte in which register and entry differ, or the length. */
static uint32_t first_difference(const struct uar_bf *bf)
{
	const uint8_t *seen = (const uint8_t *)bf->seen;
	uint32_t at = 8;

	while (at < bf->len && seen[at] == bf->entry[at])
		at++;
	return at;
}

/* The words of the last doorbell may have come. */
static void check_bf(struct dev *dev, struct uar *uar, unsigned int i,
		     bool is_late)
{
	struct uar_bf *bf = &uar->bf[i];
	uint32_t at;

	if (!bf->len)
		return;
	bf->is_written |= see_register(uar, i);
	at = first_difference(bf);
	if (bf->is_written && at == bf->len) {
		dev->stats.bf_entries++;
		bf->len = 0;
		return;
	}
	if (!is_late)
		return;
	if (bf->is_written && bf->is_unsure)
		dev->stats.bf_unsure++;
	else if (bf->is_written)
		check_violation("blueflame",
				"queue pair %#x: byte %u in the BlueFlame "
				"register is not that of entry %u in the ring",
				bf->qpn, at, bf->index);
	/* Otherwise it was a doorbell and nothing else. */
	bf->len = 0;
}

/* How long the program's thread may be off the processor between a word of the
 * register and the doorbell, which may be the first or the last that it writes. */
static const uint64_t bf_grace_ns = 5 * NS_PER_SEC;

static void poll_bf(struct dev *dev, struct uar *uar, unsigned int i)
{
	struct uar_bf *bf = &uar->bf[i];

	if (bf->len)
		check_bf(dev, uar, i, the_card->conf.is_manual ||
			 clock_monotonic_ns() - bf->since_ns > bf_grace_ns);
}

/* A doorbell that carries an entry of `qp`, or the beginning of one. `is_alone`: no other
 * entry is new to the card. */
static void start_bf(struct dev *dev, struct uar *uar, unsigned int i,
		     const struct qp *qp, uint16_t index, bool is_alone)
{
	struct uar_bf *bf = &uar->bf[i];
	uint32_t len;

	/* The last one's words may still be coming, or those of this one were
	 * seen before its doorbell: nobody knows whose those are that are new.
	 * Nor if others are new to the card: the doorbell of one may have been
	 * written here, or to the other half, and overwritten since. */
	bf->is_unsure = bf->len || bf->is_stale || !is_alone;
	bf->is_stale = false;
	uar->bf[i ^ 1].is_stale |= !is_alone;
	len = sq_peek(qp, index, bf->entry, UAR_BF_SIZE);
	bf->qpn = qp->qpn;
	bf->index = index;
	bf->is_written = false;
	bf->since_ns = clock_monotonic_ns();
	/* A longer one is not for the register. */
	bf->len = len <= UAR_BF_SIZE ? len : 0;
	poll_bf(dev, uar, i);
}

static void ring_sq(struct ctx *ctx, struct uar *uar, unsigned int bf,
		    uint64_t bell)
{
	struct dev *dev = ctx->dev;
	uint32_t qpn = (uint32_t)bell >> 8;
	uint16_t index = (uint16_t)(bell >> 40);
	struct qp *rung = idtab_get(&dev->qps, qpn), *qp;
	bool is_alone;

	dev->stats.bells++;
	if (!rung || rung->ctx != ctx) {
		stray(&dev->qps, "queue pair", qpn);
		return;
	}
	is_alone = index == rung->sq.target;
	rung->sq.bf = (int)bf / 2;
	sq_ring(rung, index);
	LIST_FOR_EACH(qp, &uar->qps, uar_link) {
		bool may_share = qp->sq.bf < 0 || qp->sq.bf == (int)bf / 2;

		if (qp != rung && may_share && sq_ring_overtaken(qp)) {
			dev->stats.bells_overtaken++;
			is_alone = false;
		}
	}
	start_bf(dev, uar, bf, rung, index, is_alone);
}

static void ring_cq(struct ctx *ctx, struct uar *uar, uint64_t bell)
{
	struct dev *dev = ctx->dev;
	uint32_t cqn = (uint32_t)bell & 0xffffff;
	struct cq *rung = idtab_get(&dev->cqs, cqn), *cq;

	dev->stats.bells++;
	if (!rung || rung->ctx != ctx) {
		stray(&dev->cqs, "completion queue", cqn);
		return;
	}
	cq_arm(rung, (uint32_t)(bell >> 32));
	/* that of the same queue, too: several threads may arm it */
	LIST_FOR_EACH(cq, &uar->cqs, uar_link)
		if (cq_arm_overtaken(cq))
			dev->stats.bells_overtaken++;
}

int uar_poll(struct ctx *ctx, struct uar *uar)
{
	uint64_t bell;
	int n = 0;

	for (unsigned int i = 0; i < UAR_N_BF_WORDS; i++) {
		bell = take_word(&uar->words[bf_words[i]]);
		if (bell) {
			ring_sq(ctx, uar, i, bell);
			n++;
		} else {
			poll_bf(ctx->dev, uar, i);
		}
	}
	bell = take_word(&uar->words[UAR_CQ_WORD]);
	if (bell) {
		ring_cq(ctx, uar, bell);
		n++;
	}
	return n;
}
