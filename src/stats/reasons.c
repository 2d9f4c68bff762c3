/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names and texts of the reasons. */
#include "config.h"

#include "stats/reasons.h"

#include "base/compiler.h"

struct reason_text {
	const char *name;
	const char *why;
	const char *remedy;
};

static const struct reason_text texts[] = {
	[REASON_NONE] = { "NONE", "", "" },
#define REASON(name, why, remedy) [REASON_##name] = { #name, why, remedy },
#include "stats/reasons.def"
};

static const struct reason_text *text_of(enum reason reason)
{
	return &texts[(unsigned)reason < ARRAY_LEN(texts) ? reason :
							    REASON_NONE];
}

const char *reason_name(enum reason reason)
{
	return text_of(reason)->name;
}

const char *reason_why(enum reason reason)
{
	return text_of(reason)->why;
}

const char *reason_remedy(enum reason reason)
{
	return text_of(reason)->remedy;
}
