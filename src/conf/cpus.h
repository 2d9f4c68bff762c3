/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of CPUs as VMA_INTERNAL_THREAD_AFFINITY spells it: -1 for none chosen, a
 * hexadecimal mask (0x3), or a list of numbers and ranges (0,2,4-6).
 */
#ifndef CONF_CPUS_H
#define CONF_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum { CPUS_MAX = 1024 };

struct cpus {
	bool is_chosen; /* false: any CPU will do, and the set is empty */
	uint64_t bits[CPUS_MAX / 64];
};

static inline bool cpus_has(const struct cpus *cpus, unsigned cpu)
{
	return cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

/* -EINVAL: not such a text, or a set without members. -ERANGE: a CPU number of
 * CPUS_MAX or more. Then *cpus_out is undefined. */
int cpus_parse(const char *text, struct cpus *cpus_out) MUST_CHECK;

#endif
