/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as netlink messages. What was understood is known: the same again
 * changes nothing; and every question has an answer. A message is taken as part of
 * a dump when its sequence number is odd, and NLMSG_DONE begins and ends the reading
 * of a table.
 */
#include "config.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "nl/firewall.h"
#include "nl/netlink_msg.h"
#include "tests/support/fuzz.h"

static struct net_view view;

/* What may be said twice without a change: not a rule, and nothing that is put in
 * front of what was put in its place. */
static bool is_repeatable(const struct nlmsghdr *msg)
{
	switch (msg->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_NEWADDR:
	case RTM_NEWNEIGH:
	case RTM_NEWROUTE:
	case RTM_DELLINK:
	case RTM_DELADDR:
	case RTM_DELNEIGH:
		return true;
	default:
		return false;
	}
}

static void apply(const struct nlmsghdr *msg)
{
	bool is_dump = msg->nlmsg_seq & 1;
	struct netlink_effect effect;
	uint64_t gen;
	int rc;

	rc = netlink_apply(&view, msg, is_dump, &effect);
	FUZZ_CHECK(rc == 0 || rc == -EBADMSG);
	FUZZ_CHECK(effect.part <= NETLINK_PARTS);
	FUZZ_CHECK(effect.stale < NETLINK_BIT(NETLINK_PARTS));
	if (!is_repeatable(msg))
		return;
	gen = net_view_gen(&view);
	FUZZ_CHECK(netlink_apply(&view, msg, is_dump, &effect) == rc);
	FUZZ_CHECK(net_view_gen(&view) == gen);
}

static void name(const struct nlmsghdr *msg)
{
	char buf[FIREWALL_TEXT_SIZE];
	struct text text = text_in(buf, sizeof(buf));
	int rc = firewall_name_chain(msg, &text);

	FUZZ_CHECK(rc == -EBADMSG || (rc == 0) == (text.len == 0));
	rc = firewall_name_policies(msg, &text);
	FUZZ_CHECK(rc >= -EBADMSG && rc <= 1);
}

static void take(const struct nlmsghdr *msg, enum netlink_part *part)
{
	if (msg->nlmsg_type == NLMSG_DONE) {
		if (*part != NETLINK_PARTS)
			netlink_part_end(&view, *part);
		*part = msg->nlmsg_seq % (NETLINK_PARTS + 1);
		if (*part != NETLINK_PARTS)
			netlink_part_begin(&view, *part);
		return;
	}
	apply(msg);
	name(msg);
}

/* Flows made of the same bytes, so that they hit what is there. */
static void ask(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 16 <= size && at < 2048; at += 12) {
		struct net_path path;
		struct net_flow flow = {
			.oif = data[at + 8] & 3,
			.mark = data[at + 9],
			.tos = data[at + 10],
			.proto = data[at + 11],
			.is_on_link_only = data[at + 12] & 1,
			.is_any_src = data[at + 12] & 2,
		};
		__be32 v4;
		int rc;

		memcpy(&v4, data + at, sizeof(v4));
		flow.dst = ip_addr_from_v4(v4);
		memcpy(&v4, data + at + 4, sizeof(v4));
		if (data[at + 12] & 4)
			flow.src = ip_addr_from_v4(v4);
		rc = net_view_route(&view, &flow, &path);
		FUZZ_CHECK(rc <= 0);
		FUZZ_CHECK(rc || (path.ifindex > 0 && path.mtu <= 65535));
		neigh_advice(neigh_tab_find(&view.neighs, flow.oif,
					    &flow.dst));
	}
}

static void count(void *ctx, const struct route *route)
{
	uint32_t *cnt = ctx;

	FUZZ_CHECK(route->hop_cnt <= ROUTE_HOPS_MAX);
	++*cnt;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum netlink_part part = NETLINK_PARTS;
	uint8_t *copy = malloc(size);
	const uint8_t *at = copy;
	const struct nlmsghdr *msg;
	uint32_t route_cnt = 0;
	size_t left = size;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	net_view_init(&view, 0);
	while ((msg = netlink_next(&at, &left)))
		take(msg, &part);
	route_tab_visit(&view.routes, count, &route_cnt);
	FUZZ_CHECK(route_cnt == view.routes.route_cnt);
	ask(copy, size);
	net_view_destroy(&view);
	free(copy);
	return 0;
}
