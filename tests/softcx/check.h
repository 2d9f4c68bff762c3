/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the device speaks: one line on stderr, through no stream and no symbol of
 * the program's. A broken rule of the card's interface ends the process, because
 * a test that goes on after it proves nothing.
 */
#ifndef SOFTCX_CHECK_H
#define SOFTCX_CHECK_H

#include <stdbool.h>

#include "base/compiler.h"

/* "softcx: ..." and a newline. */
void check_say(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The device itself cannot go on: a bad option, a missing privilege. */
NO_RETURN void check_die(const char *fmt, ...) PRINTF_LIKE(1, 2);

/*
 * A rule of the card was broken by its user. Strict (the default): one line
 * "softcx: RULE: ..." and abort(). Otherwise the violation is counted and the
 * caller goes on to do what a card does: error completion, or nothing.
 */
void check_violation(const char *rule, const char *fmt, ...) PRINTF_LIKE(2, 3);

void check_set_strict(bool is_strict);
/* Violations passed over while not strict. */
unsigned int check_violations(void);

#endif
