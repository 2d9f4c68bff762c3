/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What systemd attaches for IPAddressDeny=, but that this one lets everything through. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("cgroup_skb/ingress")
int deny_nothing(struct __sk_buff *skb)
{
	(void)skb;
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
