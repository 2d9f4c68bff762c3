/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internet checksums of memory (checksum.h), out of line. */
#include "base/checksum.h"

uint32_t csum_partial(const void *data, size_t len, uint32_t sum)
{
	return csum_bytes(NULL, data, len, sum, false);
}

uint32_t csum_copy(void *dst, const void *src, size_t len, uint32_t sum)
{
	return csum_bytes(dst, src, len, sum, true);
}
