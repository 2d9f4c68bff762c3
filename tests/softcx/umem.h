/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges of the program's memory that the card was given: checked, brought in and
 * counted as the kernel's driver does when it pins them. The card shares the
 * program's addresses, so it notices memory that goes away later only when it
 * comes to use it, and cannot go on with the old pages as hardware would.
 */
#ifndef SOFTCX_UMEM_H
#define SOFTCX_UMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct umem {
	uint64_t n_pages;  /* 0: nothing is pinned */
};

/* -EFAULT: not all there, or not to be read or written. -ENOMEM: more than
 * RLIMIT_MEMLOCK, for who may not lock without limit. */
MUST_CHECK int umem_pin(struct umem *umem, const volatile void *at,
			uint64_t len, bool is_written);
void umem_unpin(struct umem *umem);
/* In a forked child: nothing is pinned for it. */
void umem_forget(void);

/* Copies between the card and the program. False, after part of the copy, when
 * the program has no such memory any more. */
MUST_CHECK bool umem_read(void *to, const void *from, size_t len);
MUST_CHECK bool umem_write(void *to, const void *from, size_t len);

#endif
