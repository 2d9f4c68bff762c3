/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives what leaves by an interface a tag, as a VLAN on it would: beside the bytes. */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int tag(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 7);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
