/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the steering program has to know about the running kernel to look behind its
 * frame (steer.bpf.c). We find it in the kernel's own description of its types
 * (base/btf.h). No I/O.
 */
#ifndef DEV_XDP_KERNEL_BTF_H
#define DEV_XDP_KERNEL_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of types and functions; 0: the kernel has none of that name. */
struct kernel_btf {
	uint32_t cast_to_kern_ctx;
	uint32_t rdonly_cast;
	uint32_t rx_vlan_tag;
	uint32_t shared_info;
	/* bytes of struct skb_shared_info */
	uint32_t shared_info_size;
	/* Members of struct xdp_buff and struct skb_shared_info are where the
	 * program expects them. */
	bool has_known_layout;
};

/* All zero when the bytes are no BTF, or end too early. */
struct kernel_btf kernel_btf_parse(const void *bytes, size_t len);

#endif
