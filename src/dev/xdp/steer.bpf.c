/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs for each received frame, before the kernel's stack. It hands our socket the
 * frames that a rule names, and leaves everything else as it was. UDP that our
 * stack does not take (fragments, IP options, tags, other destinations) is the
 * kernel's. TCP is different: a frame that a rule for the ring names must never
 * reach the kernel, which knows of no connection there and would answer RST.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "dev/xdp/steer.h"

/* The headers of the distribution's kernel have no names for them. */
enum { NO_TAG = -61 /* ENODATA */, VLAN_ID = 0x0fff };

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, STEER_QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEER_RULES_FIRST);
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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_counts);
} counts SEC(".maps");

/* Functions of the kernel. steer.c puts in their numbers for the running kernel. */
static struct steer_xdp_buff *(*const to_kern_ctx)(struct xdp_md *ctx) =
	(void *)STEER_BLANK_KERN_CTX;
static const void *(*const to_readable)(const void *address, __u64 type) =
	(void *)STEER_BLANK_RDONLY_CAST;
static int (*const read_tag)(struct xdp_md *ctx, __be16 *proto, __u16 *tci) =
	(void *)STEER_BLANK_RX_VLAN_TAG;

#define BLANK(number)                                          \
	({                                                     \
		__u64 value;                                   \
		asm volatile("%0 = %1" : "=r"(value) : "i"(number)); \
		value;                                         \
	})

struct ports {
	__be16 src;
	__be16 dst;
};

/* clang would turn three comparisons into a call of memcmp, which does not exist
 * here. */
static __always_inline int is_mac(const __u8 *a, const __u8 *b)
{
	const __u16 *x = (const void *)a, *y = (const void *)b;

	return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

/* Whether the most specific rule for the frame gives it to the ring. */
static __always_inline int is_for_ring(const struct iphdr *ip,
				       const struct ports *ports,
				       const struct steer_config *c)
{
	struct steer_key key = {
		.dst = ip->daddr,
		.src = ip->saddr,
		.dport = ports->dst,
		.sport = ports->src,
		.proto = ip->protocol,
	};
	const __u32 *verdict = NULL;

	if (c->has_connected)
		verdict = bpf_map_lookup_elem(&rules, &key);
	if (!verdict) {
		key.src = 0;
		key.sport = 0;
		verdict = bpf_map_lookup_elem(&rules, &key);
	}
	return verdict && *verdict == STEER_TO_RING;
}

/* In generic mode, the kernel's packet lies behind the frame. A frame that we have
 * given back is the kernel's. So are datagrams that a sender on this host has left
 * for a card to split. */
static __always_inline int is_for_kernel(struct xdp_md *ctx, int is_tcp)
{
	const struct steer_xdp_buff *xdp = to_kern_ctx(ctx);
	const struct steer_shared_info *info;

	info = to_readable(xdp->data_hard_start + xdp->frame_sz -
				   BLANK(STEER_BLANK_SHARED_INFO_SIZE),
			   BLANK(STEER_BLANK_SHARED_INFO));
	return info->meta_len == STEER_GIVEN_BACK_META ||
	       (!is_tcp && info->gso_size != 0);
}

/* Whether the device has taken a tag off. A tag that names no VLAN but only a
 * priority does not count; neither does it for the kernel. */
static __always_inline int is_tagged(struct xdp_md *ctx,
				     struct steer_counts *counted)
{
	__be16 proto = 0;
	__u16 tci = 0;
	int err = read_tag(ctx, &proto, &tci);

	if (!err)
		return tci & VLAN_ID;
	if (err == NO_TAG)
		return 0;
	counted->untold++;
	return 1;
}

static __always_inline int is_fragment(const struct iphdr *ip)
{
	return ip->frag_off & bpf_htons(0x3fff);
}

static __always_inline int is_later_fragment(const struct iphdr *ip)
{
	return ip->frag_off & bpf_htons(0x1fff);
}

static __always_inline int steer(struct xdp_md *ctx, enum steer_sight sight)
{
	const struct ethhdr *eth = (void *)(long)ctx->data;
	const struct iphdr *ip = (const void *)(eth + 1);
	const struct ports *ports = (const void *)(ip + 1);
	const void *end = (void *)(long)ctx->data_end;
	struct steer_counts *counted;
	const struct steer_config *c;
	__u32 zero = 0;
	int is_tcp;

	if ((const void *)(ports + 1) > end)
		return XDP_PASS;
	c = bpf_map_lookup_elem(&config, &zero);
	if (!c || eth->h_proto != bpf_htons(ETH_P_IP) ||
	    !is_mac(eth->h_dest, c->mac) || ip->version != 4)
		return XDP_PASS;
	is_tcp = ip->protocol == IPPROTO_TCP;
	if (!is_tcp && ip->protocol != IPPROTO_UDP)
		return XDP_PASS;
	if (ip->ihl != 5 || is_fragment(ip)) {
		/* A later fragment names no port. It is useless without the first
		 * one. */
		if (!is_tcp || ip->ihl < 5 || is_later_fragment(ip))
			return XDP_PASS;
		ports = (const void *)ip + ip->ihl * 4;
		if ((const void *)(ports + 1) > end)
			return XDP_PASS;
	}
	if (!is_for_ring(ip, ports, c))
		return XDP_PASS;
	if (sight == STEER_SIGHT_GSO && is_for_kernel(ctx, is_tcp))
		return XDP_PASS;
	if (sight == STEER_SIGHT_TAG || is_tcp) {
		counted = bpf_map_lookup_elem(&counts, &zero);
		if (!counted)
			return XDP_ABORTED;
		if (sight == STEER_SIGHT_TAG && is_tagged(ctx, counted))
			return XDP_PASS;
		if (is_tcp && is_fragment(ip)) {
			__sync_fetch_and_add(&counted->tcp_fragments, 1);
			return XDP_DROP;
		}
	}
	/* Otherwise, if the queue is not (any more) one of ours. */
	return bpf_redirect_map(&queues, ctx->rx_queue_index,
				is_tcp ? XDP_DROP : XDP_PASS);
}

/* Whether they are for packets of several buffers is said when they are loaded. */
SEC("xdp")
int steer_by_bytes(struct xdp_md *ctx)
{
	return steer(ctx, STEER_SIGHT_BYTES);
}

SEC("xdp")
int steer_by_gso(struct xdp_md *ctx)
{
	return steer(ctx, STEER_SIGHT_GSO);
}

SEC("xdp")
int steer_by_tag(struct xdp_md *ctx)
{
	return steer(ctx, STEER_SIGHT_TAG);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
