/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory near the end of what a process can have. */
#ifndef SUPPORT_HIGH_PAGE_H
#define SUPPORT_HIGH_PAGE_H

#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>

enum { HIGH_PAGE_SIZE = 4096 };

/* INT_MAX bytes do not begin there. Any other memory where there is none like that. The caller
 * unmaps it. */
static inline char *high_page(void)
{
	const uint64_t end = UINT64_C(1) << 47, step = 16 << 20;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *page = MAP_FAILED;

	for (uint64_t at = end - step; page == MAP_FAILED && at > end - INT_MAX; at -= step)
		page = mmap((void *)(uintptr_t)at, HIGH_PAGE_SIZE, PROT_READ | PROT_WRITE,
			    flags | MAP_FIXED_NOREPLACE, -1, 0);
	return page != MAP_FAILED ? page :
				    mmap(NULL, HIGH_PAGE_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
}

#endif
