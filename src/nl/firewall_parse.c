/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers about filters and policies, turned into names. */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/xfrm.h>
#include <string.h>

#include "base/text.h"
#include "nl/firewall.h"
#include "nl/netlink_attr.h"

/* Longest name we show; nftables allows 256. */
enum { NAME_SIZE = 64 };

static void add_separator(struct text *out)
{
	if (out->len)
		text_add(out, ", ");
}

/* The families whose chains see IPv4 packets of this host. */
static const char *family_name(uint8_t family)
{
	switch (family) {
	case NFPROTO_INET:
		return "inet";
	case NFPROTO_IPV4:
		return "ip";
	case NFPROTO_NETDEV:
		return "netdev";
	default:
		return NULL;
	}
}

static void add_name(const struct attr *attr, struct text *out)
{
	text_add(out, " ");
	for (size_t i = 0; i < attr->len && i < NAME_SIZE && attr->data[i]; i++)
		text_add(out, "%c",
			 attr->data[i] > ' ' && attr->data[i] < 0x7f
				 ? attr->data[i]
				 : '?');
}

int firewall_name_chain(const struct nlmsghdr *msg, struct text *out)
{
	struct attr attrs[NFTA_CHAIN_HOOK + 1], hook[NFTA_HOOK_HOOKNUM + 1];
	struct nfgenmsg head;
	uint32_t hook_num = 0;
	const char *family;

	if (attr_sort_message(msg, &head, sizeof(head), attrs,
			      NFTA_CHAIN_HOOK) < 0 ||
	    attr_sort_nested(&attrs[NFTA_CHAIN_HOOK], hook,
			     NFTA_HOOK_HOOKNUM) < 0 ||
	    !attr_get_u32(&hook[NFTA_HOOK_HOOKNUM], &hook_num))
		return -EBADMSG;
	family = family_name(head.nfgen_family);
	/* A chain without a hook is only jumped to. */
	if (!family || !attr_is_present(&attrs[NFTA_CHAIN_HOOK]))
		return 0;
	if (head.nfgen_family != NFPROTO_NETDEV &&
	    be32toh(hook_num) == NF_INET_FORWARD)
		return 0;
	add_separator(out);
	text_add(out, "nftables %s", family);
	add_name(&attrs[NFTA_CHAIN_TABLE], out);
	add_name(&attrs[NFTA_CHAIN_NAME], out);
	return 1;
}

int firewall_name_policies(const struct nlmsghdr *msg, struct text *out)
{
	struct attr attrs[XFRMA_SPD_INFO + 1];
	struct xfrmu_spdinfo info = { 0 };
	size_t len = 0;
	uint32_t flags;
	uint64_t cnt;

	if (attr_sort_message(msg, &flags, sizeof(flags), attrs,
			      XFRMA_SPD_INFO) < 0 ||
	    !attr_get_bytes(&attrs[XFRMA_SPD_INFO], &info, sizeof(info), &len))
		return -EBADMSG;
	cnt = (uint64_t)info.incnt + info.outcnt;
	if (!cnt)
		return 0;
	add_separator(out);
	text_add(out, "%llu xfrm polic%s", (unsigned long long)cnt,
		 cnt == 1 ? "y" : "ies");
	return 1;
}

int firewall_name_tables(const char *lines, struct text *out)
{
	int cnt = 0;

	while (*lines) {
		size_t len = strcspn(lines, "\n");

		if (len) {
			add_separator(out);
			text_add(out, "iptables %.*s",
				 (int)MIN(len, (size_t)NAME_SIZE), lines);
			cnt++;
		}
		lines += len;
		lines += *lines == '\n';
	}
	return cnt;
}
