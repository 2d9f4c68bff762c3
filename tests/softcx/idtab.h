/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers for things: a growing array from which QP numbers, CQ numbers, keys
 * and command handles are given out. It remembers which numbers were once in
 * use, so that a use after destroy can be told from a number made up.
 */
#ifndef SOFTCX_IDTAB_H
#define SOFTCX_IDTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct idtab {
	void **slots;     /* NULL: free */
	uint32_t n_slots; /* allocated */
	uint32_t n_used;  /* numbers below this have been given out */
	uint32_t first;   /* the number of slot 0 */
};

void idtab_init(struct idtab *tab, uint32_t first);
void idtab_free(struct idtab *tab);
/* Gives the next number never given out before to `ptr`; -ENOMEM. Numbers are
 * not reused: 2^24 of them outlast any test. */
MUST_CHECK int idtab_add(struct idtab *tab, void *ptr, uint32_t *id_out);
/* NULL when the number is free. */
void *idtab_get(const struct idtab *tab, uint32_t id);
void idtab_remove(struct idtab *tab, uint32_t id);
/* Whether the number was once given out; true for numbers in use, too. */
bool idtab_was_used(const struct idtab *tab, uint32_t id);
/* The first pointer whose number is `*id` or above, which becomes its number;
 * NULL after the last. Start with *id = 0. */
void *idtab_next(const struct idtab *tab, uint32_t *id);

#endif
