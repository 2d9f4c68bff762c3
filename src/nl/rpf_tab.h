/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings net.ipv4.conf.*.rp_filter. They say whether an interface takes
 * packets whose source is reached by another interface. The code is pure and takes
 * no lock.
 */
#ifndef NL_RPF_TAB_H
#define NL_RPF_TAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/list.h"

/* The interface "all". */
enum { RPF_ALL = -1 };

enum rpf_mode {
	RPF_OFF,
	/* the best way to the source leads out by the interface */
	RPF_STRICT,
	/* some way leads there */
	RPF_LOOSE,
};

struct rpf_tab {
	struct list entries;
	uint32_t epoch;
};

void rpf_tab_init(struct rpf_tab *tab);
void rpf_tab_destroy(struct rpf_tab *tab);

/* 1: changed, 0: known, -ENOMEM. */
int rpf_tab_set(struct rpf_tab *tab, int ifindex, int mode) MUST_CHECK;
/* Whether it was there. */
bool rpf_tab_remove(struct rpf_tab *tab, int ifindex);

/* The mode of an interface: the greater one of its own setting and that of "all". */
enum rpf_mode rpf_tab_mode(const struct rpf_tab *tab, int ifindex);

/* Around a new reading of all settings. The second function returns whether
 * anything was removed. */
void rpf_tab_mark(struct rpf_tab *tab);
bool rpf_tab_sweep(struct rpf_tab *tab);

#endif
