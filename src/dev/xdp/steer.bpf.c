/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs for each received frame, before the kernel's stack: hands to our socket
 * what a rule names, and leaves everything else as it was. What our stack does not
 * take (fragments, IP options, tags, other destinations) is none of its business.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "dev/xdp/steer.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, STEER_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEER_RULES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct steer_key);
	__type(value, __u32);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_config);
} config SEC(".maps");

struct ports {
	__be16 src;
	__be16 dst;
};

struct headers {
	struct ethhdr eth;
	struct iphdr ip;
	struct ports ports;
} __attribute__((packed));

/* There is no memcmp here, which clang would make of three comparisons. */
static __always_inline int is_mac(const __u8 *a, const __u8 *b)
{
	const __u16 *x = (const void *)a, *y = (const void *)b;

	return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

static __always_inline int is_ours(const struct headers *h,
				   const struct steer_config *c)
{
	return h->eth.h_proto == bpf_htons(ETH_P_IP) &&
	       is_mac(h->eth.h_dest, c->mac) &&
	       h->ip.version == 4 && h->ip.ihl == 5 &&
	       !(h->ip.frag_off & bpf_htons(0x3fff)) &&
	       (h->ip.protocol == IPPROTO_UDP ||
		h->ip.protocol == IPPROTO_TCP);
}

static __always_inline int has_rule(const struct headers *h,
				    const struct steer_config *c)
{
	struct steer_key key = {
		.dst = h->ip.daddr,
		.src = h->ip.saddr,
		.dport = h->ports.dst,
		.sport = h->ports.src,
		.proto = h->ip.protocol,
	};

	if (c->connected_cnt && bpf_map_lookup_elem(&rules, &key))
		return 1;
	key.src = 0;
	key.sport = 0;
	return bpf_map_lookup_elem(&rules, &key) != NULL;
}

/* whether it is one for packets of several buffers is said when it is loaded */
SEC("xdp")
int steer(struct xdp_md *ctx)
{
	const struct headers *h = (void *)(long)ctx->data;
	const struct steer_config *c;
	__u32 zero = 0;

	if ((void *)(h + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	c = bpf_map_lookup_elem(&config, &zero);
	if (!c || !is_ours(h, c) || !has_rule(h, c))
		return XDP_PASS;
	/* The kernel, if the queue is not (any more) one of ours. */
	return bpf_redirect_map(&queues, ctx->rx_queue_index, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
