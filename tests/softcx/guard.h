/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Doorbells wake the card. A doorbell is a plain store, which ends no sleep; so
 * before the card sleeps for long, the program's UAR pages are write-protected
 * (userfaultfd), and the first store waits for the card to get up. Where the
 * kernel does not let us, the card only looks now and then.
 */
#ifndef SOFTCX_GUARD_H
#define SOFTCX_GUARD_H

#include <stdbool.h>

/* A descriptor that is readable when a store waits, or negative errno. */
int guard_open(void);
/* A page of the program is to be guarded from now on, when that is asked for. */
bool guard_add(int fd, void *page);
/* Stores to it wait, or go on. A page that is no more is left alone. */
void guard_set(int fd, void *page, bool is_guarded);
/* Takes the news of stores that wait; whether there were any. */
bool guard_drain(int fd);

#endif
