/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The card's free-running counter, and what the kernel publishes to turn its
 * values into time: the core clock page and the clock info page. It may be set
 * off and run fast or slow; the published conversion knows the nominal rate only,
 * as the real one does.
 */
#ifndef SOFTCX_HCA_CLOCK_H
#define SOFTCX_HCA_CLOCK_H

#include <stdint.h>

#include "base/compiler.h"

struct hca_clock {
	uint64_t khz;
	int64_t ppm;
	uint64_t offset;     /* count at start_ns */
	uint64_t start_ns;   /* card time */
	uint64_t start_real_ns;
	uint64_t info_cycles; /* as last published */
	uint64_t info_ns;
	uint64_t info_frac;   /* of a nanosecond, in units of 2^-shift */
};

/* The two pages, in this order. */
enum { HCA_CLOCK_PAGE = 0, HCA_CLOCK_INFO_PAGE = 1, HCA_CLOCK_PAGES = 2 };

void hca_clock_init(struct hca_clock *clock, uint64_t khz, int64_t ppm,
		    uint64_t offset, uint64_t now_ns, uint64_t real_ns);
uint64_t hca_clock_cycles(const struct hca_clock *clock, uint64_t now_ns);

/* Writes the counter into the core clock page: big-endian, high word first. */
void hca_clock_publish(const struct hca_clock *clock, uint64_t now_ns,
		       void *page);
/* Advances the clock info (at least once a second is needed) and writes it. */
void hca_clock_advance_info(struct hca_clock *clock, uint64_t now_ns);
void hca_clock_publish_info(const struct hca_clock *clock, void *page);

#endif
