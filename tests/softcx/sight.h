/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program on a socket has to know of the running kernel to see the metadata in front of
 * a frame, which is beyond what the kernel shows it. From the kernel's own description of its
 * types (base/btf.h).
 */
#ifndef SOFTCX_SIGHT_H
#define SOFTCX_SIGHT_H

#include <stdint.h>

#include "base/compiler.h"

struct sight {
	/* the number of bpf_cast_to_kern_ctx() */
	int32_t cast;
	/* where members are: of struct sk_buff, and of the struct skb_shared_info that begins
	 * `end` bytes behind `head` */
	int16_t head, end;
	int32_t meta_len;
};

/* -ENOTSUP: the kernel does not say. */
MUST_CHECK int sight_find(struct sight *sight);

#endif
