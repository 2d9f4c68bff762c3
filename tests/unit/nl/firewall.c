/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/firewall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/xfrm.h>

#include "base/text.h"
#include "tests/unit/nl/build.h"

static struct message m;
static char buf[FIREWALL_TEXT_SIZE];
static struct text text;

static void make_chain(uint8_t family, const char *name)
{
	struct nfgenmsg head = { .nfgen_family = family };

	text = text_in(buf, sizeof(buf));
	msg_begin(&m, NFT_MSG_NEWCHAIN, &head, sizeof(head));
	msg_put_text(&m, NFTA_CHAIN_TABLE, "filter");
	msg_put_text(&m, NFTA_CHAIN_NAME, name);
}

static void put_hook(uint32_t hook)
{
	struct nlattr *nest = msg_put(&m, NFTA_CHAIN_HOOK, NULL, 0);

	msg_put_u32(&m, NFTA_HOOK_HOOKNUM, htonl(hook));
	msg_nest_end(&m, nest);
}

TEST(chains_in_hooks_of_local_packets)
{
	make_chain(NFPROTO_INET, "input");
	put_hook(NF_INET_LOCAL_IN);
	CHECK_EQ(firewall_name_chain(&m.head, &text), 1);
	CHECK_EQ(firewall_name_chain(&m.head, &text), 1);
	CHECK_STR(buf, "nftables inet filter input, "
		       "nftables inet filter input");
	make_chain(NFPROTO_NETDEV, "ingress");
	put_hook(NF_NETDEV_EGRESS + 1);
	CHECK_EQ(firewall_name_chain(&m.head, &text), 1);
}

TEST(other_chains_do_not_count)
{
	make_chain(NFPROTO_IPV4, "aside");
	CHECK_EQ(firewall_name_chain(&m.head, &text), 0);
	make_chain(NFPROTO_IPV4, "forward");
	put_hook(NF_INET_FORWARD);
	CHECK_EQ(firewall_name_chain(&m.head, &text), 0);
	make_chain(NFPROTO_IPV6, "input");
	put_hook(NF_INET_LOCAL_IN);
	CHECK_EQ(firewall_name_chain(&m.head, &text), 0);
	CHECK_STR(buf, "");
}

TEST(names_are_fit_to_be_shown)
{
	make_chain(NFPROTO_INET, "a\x1b[2J b");
	put_hook(NF_INET_LOCAL_OUT);
	CHECK_EQ(firewall_name_chain(&m.head, &text), 1);
	CHECK_STR(buf, "nftables inet filter a?[2J?b");
}

TEST(xfrm_policies)
{
	struct xfrmu_spdinfo info = { .incnt = 1, .fwdcnt = 7 };
	uint32_t flags = 0;

	text = text_in(buf, sizeof(buf));
	msg_begin(&m, XFRM_MSG_NEWSPDINFO, &flags, sizeof(flags));
	CHECK_EQ(firewall_name_policies(&m.head, &text), 0);
	msg_put(&m, XFRMA_SPD_INFO, &info, sizeof(info));
	CHECK_EQ(firewall_name_policies(&m.head, &text), 1);
	CHECK_STR(buf, "1 xfrm policy");
	info.incnt = 0;
	msg_begin(&m, XFRM_MSG_NEWSPDINFO, &flags, sizeof(flags));
	msg_put(&m, XFRMA_SPD_INFO, &info, sizeof(info));
	CHECK_EQ(firewall_name_policies(&m.head, &text), 0);
}

TEST(iptables_tables)
{
	text = text_in(buf, sizeof(buf));
	CHECK_EQ(firewall_name_tables("", &text), 0);
	CHECK_EQ(firewall_name_tables("filter\n\nnat", &text), 2);
	CHECK_STR(buf, "iptables filter, iptables nat");
}

TEST(nonsense_is_refused)
{
	text = text_in(buf, sizeof(buf));
	msg_begin(&m, NFT_MSG_NEWCHAIN, "x", 1);
	CHECK_EQ(firewall_name_chain(&m.head, &text), -EBADMSG);
	CHECK_EQ(firewall_name_policies(&m.head, &text), -EBADMSG);
	make_chain(NFPROTO_INET, "input");
	msg_put(&m, NFTA_CHAIN_HOOK, "\x09\0\1\0", 4);
	CHECK_EQ(firewall_name_chain(&m.head, &text), -EBADMSG);
}
