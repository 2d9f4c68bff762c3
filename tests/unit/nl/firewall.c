/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/firewall.h"

#include <errno.h>
#include <linux/netfilter.h>

#include "base/text.h"
#include "nl/netlink.h"
#include "tests/support/test.h"

static char buf[FIREWALL_TEXT_SIZE];
static struct text text;

static struct firewall_row chain(uint8_t family, const char *name)
{
	struct firewall_row row = { .family = family, .table = "filter" };

	text = text_in(buf, sizeof(buf));
	strncpy(row.chain, name, sizeof(row.chain) - 1);
	return row;
}

static struct firewall_row chain_in_hook(uint8_t family, const char *name,
					 uint32_t hook)
{
	struct firewall_row row = chain(family, name);

	row.has_hook = true;
	row.hook = hook;
	return row;
}

static int name(struct firewall_row row)
{
	return firewall_name_row(&row, &text);
}

TEST(chains_in_hooks_of_local_packets)
{
	struct firewall_row row =
		chain_in_hook(NFPROTO_INET, "input", NF_INET_LOCAL_IN);

	CHECK_EQ(name(row), 1);
	CHECK_EQ(name(row), 1);
	CHECK_STR(buf, "nftables inet filter input, "
		       "nftables inet filter input");
	CHECK_EQ(name(chain_in_hook(NFPROTO_NETDEV, "ingress",
				    NF_NETDEV_EGRESS + 1)), 1);
}

TEST(other_chains_do_not_count)
{
	CHECK_EQ(name(chain(NFPROTO_IPV4, "aside")), 0);
	CHECK_EQ(name(chain_in_hook(NFPROTO_IPV4, "forward", NF_INET_FORWARD)),
		 0);
	CHECK_EQ(name(chain_in_hook(NFPROTO_IPV6, "input", NF_INET_LOCAL_IN)),
		 0);
	CHECK_STR(buf, "");
}

TEST(names_are_fit_to_be_shown)
{
	CHECK_EQ(name(chain_in_hook(NFPROTO_INET, "a\x1b[2J b",
				    NF_INET_LOCAL_OUT)), 1);
	CHECK_STR(buf, "nftables inet filter a?[2J?b");
}

TEST(xfrm_policies)
{
	struct firewall_row row = { .kind = FIREWALL_POLICIES };

	text = text_in(buf, sizeof(buf));
	CHECK_EQ(name(row), 0);
	row.policy_cnt = 1;
	CHECK_EQ(name(row), 1);
	CHECK_STR(buf, "1 xfrm policy");
	row.policy_cnt = 2;
	CHECK_EQ(name(row), 1);
	CHECK_STR(buf, "1 xfrm policy, 2 xfrm policies");
}

TEST(filters_of_tc)
{
	struct firewall_row row = { .kind = FIREWALL_FILTERS, .link = "e\n0" };

	text = text_in(buf, sizeof(buf));
	CHECK_EQ(name(row), 1);
	row.is_egress = true;
	CHECK_EQ(name(row), 1);
	CHECK_STR(buf, "tc ingress e?0, tc egress e?0");
	row.kind = FIREWALL_LINK;
	CHECK_EQ(name(row), 0);
	CHECK_STR(buf, "tc ingress e?0, tc egress e?0");
}

TEST(iptables_tables)
{
	text = text_in(buf, sizeof(buf));
	CHECK_EQ(firewall_name_tables("", &text), 0);
	CHECK_EQ(firewall_name_tables("filter\n\nnat", &text), 2);
	CHECK_STR(buf, "iptables filter, iptables nat");
}

static int chains_error, policies_error;

static int read_chains(firewall_take_fn *take UNUSED, void *ctx UNUSED)
{
	return chains_error;
}

static int read_policies(firewall_take_fn *take, void *ctx)
{
	struct firewall_row row = { .kind = FIREWALL_POLICIES, .policy_cnt = 3 };

	if (!policies_error)
		take(ctx, &row);
	return policies_error;
}

static int read_filters(firewall_take_fn *take UNUSED, void *ctx UNUSED)
{
	return -EOPNOTSUPP;
}

TEST(a_denial_counts_where_nothing_was_found)
{
	static const struct netlink_ops ops = {
		.read_chains = read_chains,
		.read_policies = read_policies,
		.read_filters = read_filters,
	};

	chains_error = -EPERM;
	policies_error = 0;
	CHECK(firewall_read(&ops, false, buf, sizeof(buf)) >= 1);
	CHECK(strstr(buf, "3 xfrm policies"));
	policies_error = -EPROTONOSUPPORT;
	/* this machine may have tables of iptables */
	if (firewall_read(&ops, false, buf, sizeof(buf)) <= 0)
		CHECK_EQ(firewall_read(&ops, false, buf, sizeof(buf)), -EPERM);
}
