/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers for things; see idtab.h. */
#include "config.h"

#include "idtab.h"

#include <errno.h>
#include <stdlib.h>

void idtab_init(struct idtab *tab, uint32_t first)
{
	*tab = (struct idtab){ .first = first };
}

void idtab_free(struct idtab *tab)
{
	free(tab->slots);
	idtab_init(tab, tab->first);
}

static int grow(struct idtab *tab)
{
	uint32_t n_slots = MAX(64u, 2 * tab->n_slots);
	void **slots = realloc(tab->slots, n_slots * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	tab->slots = slots;
	tab->n_slots = n_slots;
	return 0;
}

int idtab_add(struct idtab *tab, void *ptr, uint32_t *id_out)
{
	if (tab->n_used == tab->n_slots && grow(tab))
		return -ENOMEM;
	tab->slots[tab->n_used] = ptr;
	*id_out = tab->first + tab->n_used++;
	return 0;
}

bool idtab_was_used(const struct idtab *tab, uint32_t id)
{
	return id >= tab->first && id - tab->first < tab->n_used;
}

void *idtab_get(const struct idtab *tab, uint32_t id)
{
	return idtab_was_used(tab, id) ? tab->slots[id - tab->first] : NULL;
}

void idtab_remove(struct idtab *tab, uint32_t id)
{
	if (idtab_was_used(tab, id))
		tab->slots[id - tab->first] = NULL;
}

void *idtab_next(const struct idtab *tab, uint32_t *id)
{
	uint32_t i = *id > tab->first ? *id - tab->first : 0;

	for (; i < tab->n_used; i++) {
		if (tab->slots[i]) {
			*id = tab->first + i;
			return tab->slots[i];
		}
	}
	return NULL;
}
