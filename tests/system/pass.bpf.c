/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Somebody else's XDP program, which leaves everything to the kernel. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
