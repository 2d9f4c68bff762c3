/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UAR pages: the windows into the card through which doorbells are rung. Here a
 * page is shared memory that the card watches. A word that was consumed is set
 * to zero, which no doorbell is: each names a queue.
 *
 * A store that overwrites another before the card looked loses the first, which
 * hardware never does. So a doorbell on a register counts for every queue that
 * may share the register and has a newer doorbell record than the card knows.
 */
#ifndef SOFTCX_UAR_H
#define SOFTCX_UAR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "obj.h"

struct ctx;

enum {
	UAR_PAGE_SIZE = 4096,
	UAR_CQ_WORD = 0x20 / 8,
	UAR_N_BF_WORDS = 4,      /* two BlueFlame registers of two halves */
	UAR_BF_SIZE = 256,       /* of a half */
	UAR_MAX_PAGES = 4096,    /* of one context */
	UAR_FIRST_MMAP_PAGE = 0x1000000, /* beyond libmlx5's own offsets */
};

/*
 * One half of a BlueFlame register. What is written there must be the entry in the
 * ring, since hardware takes either. The words arrive one after the other, in
 * any order, and stay; so what is new is what differs from what was seen.
 */
struct uar_bf {
	uint64_t seen[UAR_BF_SIZE / 8];
	uint8_t entry[UAR_BF_SIZE]; /* of the last doorbell, as in the ring */
	uint32_t len;               /* of it; 0: nothing to compare */
	uint32_t qpn;
	uint16_t index;
	bool is_written;            /* more than the doorbell's word is new */
	bool is_unsure;             /* some of it may be of one before */
	bool is_stale;              /* that of one before may be here at the next doorbell */
	uint64_t since_ns;
};

struct uar {
	struct obj obj;
	struct list link;        /* ctx->uar_list */
	uint32_t page_id;
	_Atomic uint64_t *words; /* the card's view of the page */
	void *user_at;           /* the program's, if stores there can wake us */
	struct list qps;
	struct list cqs;
	struct uar_bf bf[UAR_N_BF_WORDS];
};

/* Also gives it a handle. */
MUST_CHECK int uar_create(struct ctx *ctx, struct uar **uar_out);
void uar_destroy(struct ctx *ctx, struct uar *uar);
uint64_t uar_mmap_offset(const struct uar *uar);
/* Maps the page for the program, or NULL. */
void *uar_mmap(struct ctx *ctx, uint64_t offset, void *addr, size_t len,
	       int prot, int flags);
/* Whether the next store of the program is to wake the card (guard.h). */
void uar_set_guard(struct uar *uar, bool is_guarded);
/* Looks for doorbells; returns how many were rung. */
int uar_poll(struct ctx *ctx, struct uar *uar);

#endif
