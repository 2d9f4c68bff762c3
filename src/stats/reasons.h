/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reasons why a socket stays with the kernel (reasons.def). */
#ifndef STATS_REASONS_H
#define STATS_REASONS_H

enum reason {
	REASON_NONE, /* it does not */
#define REASON(name, why, remedy) REASON_##name,
#include "stats/reasons.def"
	REASON_COUNT
};

/* "FAMILY"; "NONE" for what is no reason. */
const char *reason_name(enum reason reason);
/* The reason in words, as the end of a sentence. */
const char *reason_why(enum reason reason);
/* What the user can do, or "". */
const char *reason_remedy(enum reason reason);

#endif
