/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes rows of routes, the one kind of message with lists in it, and of what the
 * kernel has learned about a route's destinations, whose messages look like those
 * of routes. */
#include "config.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <string.h>

#include "nl/libnl/form.h"
#include "nl/libnl/rows.h"

/* Attributes up to the last one that is looked at. */
enum { RTA_LAST = RTA_ENCAP_TYPE };

/* -- the forms ---------------------------------------------------------------- */

/* What a next hop and a route with a single one have in common. */
#define HOP_LINES                            \
	[RTA_GATEWAY] = FORM_SIZE(4),        \
	[RTA_VIA] = FORM_BYTES(2 + 16),      \
	[RTA_ENCAP_TYPE] = FORM_U16

static const struct nla_policy hop_policy[RTA_LAST + 1] = { HOP_LINES };
static const struct form hop_form = { 0, RTA_LAST, hop_policy };

static const struct nla_policy route_policy[RTA_LAST + 1] = {
	HOP_LINES,
	[RTA_DST] = FORM_SIZE(4),
	[RTA_SRC] = FORM_SIZE(4),
	[RTA_OIF] = FORM_U32,
	[RTA_PRIORITY] = FORM_U32,
	[RTA_PREFSRC] = FORM_SIZE(4),
	[RTA_METRICS] = FORM_NEST,
	[RTA_MULTIPATH] = FORM_NEST,
	[RTA_CACHEINFO] = { .minlen = sizeof(struct rta_cacheinfo) },
	[RTA_TABLE] = FORM_U32,
};
static const struct form route_form = { sizeof(struct rtmsg), RTA_LAST,
					route_policy };

/* An address of another family than the route's: struct rtvia. */
static bool is_via_sound(const struct nlattr *attr)
{
	uint16_t family;
	struct ip_addr addr;

	if (!attr)
		return true;
	if (nla_len(attr) < (int)sizeof(family))
		return false;
	memcpy(&family, nla_data(attr), sizeof(family));
	switch (family) {
	case AF_INET:
		return nla_len(attr) == (int)sizeof(family) + 4;
	case AF_INET6:
		return nla_len(attr) ==
		       (int)(sizeof(family) + sizeof(addr.byte));
	default:
		return false;
	}
}

/* Whether a hop's attributes say that we cannot follow the route. */
static bool has_encap(struct nlattr *const *attrs)
{
	return attrs[RTA_ENCAP_TYPE];
}

static bool check_metrics(struct nlattr *nest)
{
	static const struct nla_policy policy[RTAX_RTO_MIN + 1] = {
		[RTAX_LOCK] = FORM_U32,
		[RTAX_MTU] = FORM_U32,
		[RTAX_ADVMSS] = FORM_U32,
		[RTAX_HOPLIMIT] = FORM_U32,
		[RTAX_INITCWND] = FORM_U32,
		[RTAX_RTO_MIN] = FORM_U32,
	};
	static const struct form form = { 0, RTAX_RTO_MIN, policy };
	struct nlattr *attrs[RTAX_RTO_MIN + 1];

	return !nest || form_check_nested(nest, &form, attrs) >= 0;
}

/* libnl 3.7 walks the list without checking whether a step leads beyond the end, or
 * nowhere at all. */
static bool check_hops(struct nlattr *list, struct route *route)
{
	struct rtnexthop *hop = nla_data(list);
	int left = nla_len(list), cnt = 0;
	struct nlattr *attrs[RTA_LAST + 1];

	while (left) {
		int step;

		if (left < (int)sizeof(*hop) || !RTNH_OK(hop, left) ||
		    hop->rtnh_ifindex < 0)
			return false;
		step = RTNH_ALIGN(hop->rtnh_len);
		if (step > left ||
		    form_check_bytes(RTNH_DATA(hop),
				     hop->rtnh_len - (int)sizeof(*hop),
				     &hop_form, attrs) < 0 ||
		    !is_via_sound(attrs[RTA_VIA]))
			return false;
		if (has_encap(attrs) || ++cnt > ROUTE_HOPS_MAX)
			route->is_foreign = true;
		left -= step;
		hop = RTNH_NEXT(hop);
	}
	return true;
}

/* Checks everything that the message says about next hops, so that libnl sees
 * either one or a list. */
static bool check_ways(struct nlattr **attrs, struct route *route)
{
	if (attrs[RTA_MULTIPATH]) {
		form_hide(attrs[RTA_OIF]);
		form_hide(attrs[RTA_GATEWAY]);
		form_hide(attrs[RTA_VIA]);
		return check_hops(attrs[RTA_MULTIPATH], route);
	}
	if (attrs[RTA_OIF]) {
		route->is_foreign |= has_encap(attrs);
		return is_via_sound(attrs[RTA_VIA]);
	}
	/* Without an interface there is no next hop. */
	form_hide(attrs[RTA_GATEWAY]);
	form_hide(attrs[RTA_VIA]);
	return true;
}

/* -- out of the object --------------------------------------------------------- */

static void take_metrics(struct rtnl_route *from, struct route *route)
{
	uint32_t locks = 0, hop_limit = 0;

	(void)rtnl_route_get_metric(from, RTAX_LOCK, &locks);
	(void)rtnl_route_get_metric(from, RTAX_HOPLIMIT, &hop_limit);
	(void)rtnl_route_get_metric(from, RTAX_MTU, &route->mtu);
	(void)rtnl_route_get_metric(from, RTAX_ADVMSS, &route->tcp.adv_mss);
	(void)rtnl_route_get_metric(from, RTAX_INITCWND, &route->tcp.initial_window);
	/* as in Linux, it is a lower limit only if it is locked, as ip(8) makes it */
	if (locks & 1u << RTAX_RTO_MIN)
		(void)rtnl_route_get_metric(from, RTAX_RTO_MIN,
					    &route->tcp.rto_min_ms);
	route->is_mtu_locked = locks & 1u << RTAX_MTU;
	route->hop_limit = (uint8_t)MIN(hop_limit, (uint32_t)UINT8_MAX);
}

struct hop_list {
	struct row_room *out;
	bool is_bad;
};

static void take_hop(struct rtnl_nexthop *from, void *ctx)
{
	struct hop_list *list = ctx;
	struct route *route = &list->out->row.route;
	const struct nl_addr *via = rtnl_route_nh_get_via(from);
	struct route_hop hop = {
		/* libnl has the kernel's number, which is one less */
		.weight = (uint32_t)rtnl_route_nh_get_weight(from) + 1,
		.flags = (uint8_t)rtnl_route_nh_get_flags(from),
	};

	if (route->hop_cnt == ROUTE_HOPS_MAX)
		return;
	if (!rows_get_index((uint32_t)rtnl_route_nh_get_ifindex(from),
			    &hop.ifindex) ||
	    !rows_get_addr(rtnl_route_nh_get_gateway(from), AF_INET,
			   &hop.gateway) ||
	    !rows_get_addr(via, via ? nl_addr_get_family(via) : AF_UNSPEC,
			   &hop.gateway)) {
		list->is_bad = true;
		return;
	}
	list->out->hops[route->hop_cnt++] = hop;
}

static bool is_hop_needed(uint8_t type)
{
	return type == RTN_UNICAST || type == RTN_LOCAL ||
	       type == RTN_BROADCAST || type == RTN_ANYCAST ||
	       type == RTN_MULTICAST;
}

static int take_route(struct rtnl_route *from, const struct rtmsg *head,
		      struct row_room *out)
{
	struct route *route = &out->row.route;
	struct hop_list list = { .out = out };
	const struct nl_addr *dst = rtnl_route_get_dst(from);

	if (head->rtm_dst_len &&
	    !rows_get_addr(dst, AF_INET, &route->dst))
		return -EBADMSG;
	if (!rows_get_addr(rtnl_route_get_pref_src(from), AF_INET,
			   &route->prefsrc))
		return -EBADMSG;
	route->table = rtnl_route_get_table(from);
	route->priority = rtnl_route_get_priority(from);
	take_metrics(from, route);
	rtnl_route_foreach_nexthop(from, take_hop, &list);
	if (list.is_bad)
		return -EBADMSG;
	/* The kernel can be set to show only the number of a next hop object. */
	if (is_hop_needed(route->type) && !route->hop_cnt)
		route->is_foreign = true;
	/* Bits outside the prefix would hide the route from look-ups. */
	route->dst = ip_addr_masked(&route->dst, route->prefix_len);
	return 0;
}

static enum route_place place_of(const struct nlmsghdr *msg, bool is_dump)
{
	if (is_dump || (msg->nlmsg_flags & NLM_F_APPEND))
		return ROUTE_LAST;
	return msg->nlmsg_flags & NLM_F_REPLACE ? ROUTE_REPLACE : ROUTE_FIRST;
}

static int read_route(struct nlmsghdr *msg, struct nlattr **attrs,
		      struct row_room *out)
{
	const struct rtmsg *head = nlmsg_data(msg);
	struct rtnl_route *parsed;
	int rc;

	if (head->rtm_dst_len > 32 || (head->rtm_dst_len && !attrs[RTA_DST]))
		return -EBADMSG;
	out->row.place = place_of(msg, out->row.is_dump);
	out->row.route = (struct route){
		.dst = ip_addr_from_v4(0),
		.prefix_len = (uint8_t)(IP_PREFIX_V4 + head->rtm_dst_len),
		.tos = head->rtm_tos,
		.type = head->rtm_type,
		.scope = head->rtm_scope,
		.protocol = head->rtm_protocol,
		.hops = out->hops,
	};
	if (!check_metrics(attrs[RTA_METRICS]) ||
	    !check_ways(attrs, &out->row.route))
		return -EBADMSG;
	rc = rtnl_route_parse(msg, &parsed);
	if (rc < 0)
		return rows_error(rc);
	rc = take_route(parsed, head, out);
	rtnl_route_put(parsed);
	return rc;
}

/* -- what was learned of a path ------------------------------------------------ */

/* Only an entry that was learned expires; the metrics of the route itself are in
 * the same attribute. libnl's object does not show the expiry. */
static bool has_expiry(const struct nlattr *attr)
{
	struct rta_cacheinfo info = { 0 };

	if (attr)
		nla_memcpy(&info, attr, sizeof(info));
	return info.rta_expires > 0;
}

static int take_path(struct rtnl_route *from, bool is_learned,
		     struct path_mtu_info *out)
{
	struct rtnl_nexthop *hop = rtnl_route_nexthop_n(from, 0);
	struct route metrics = { .mtu = 0 };

	*out = (struct path_mtu_info){ .src = ip_addr_from_v4(0) };
	if (!hop ||
	    !rows_get_addr(rtnl_route_get_dst(from), AF_INET, &out->dst) ||
	    !rows_get_addr(rtnl_route_get_pref_src(from), AF_INET, &out->src) ||
	    !rows_get_addr(rtnl_route_get_src(from), AF_INET, &out->src) ||
	    !rows_get_index((uint32_t)rtnl_route_nh_get_ifindex(hop),
			    &out->ifindex))
		return -EBADMSG;
	if (!is_learned)
		return 0;
	take_metrics(from, &metrics);
	out->mtu = metrics.mtu;
	out->is_locked = metrics.is_mtu_locked;
	return 0;
}

static int read_path(struct nlmsghdr *msg, struct nlattr **attrs,
		     struct net_row *row)
{
	struct rtnl_route *parsed;
	int rc;

	row->kind = NET_ROW_PATH_MTU;
	form_hide(attrs[RTA_MULTIPATH]);
	if (!attrs[RTA_DST] || !attrs[RTA_OIF] ||
	    !is_via_sound(attrs[RTA_VIA]) || !check_metrics(attrs[RTA_METRICS]))
		return -EBADMSG;
	rc = rtnl_route_parse(msg, &parsed);
	if (rc < 0)
		return rows_error(rc);
	rc = take_path(parsed, has_expiry(attrs[RTA_CACHEINFO]), &row->path_mtu);
	rtnl_route_put(parsed);
	return rc;
}

int rows_read_route(struct nl_msg *msg, struct row_room *out)
{
	const struct rtmsg *head = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *attrs[RTA_LAST + 1];

	/* other families have addresses of other sizes */
	if (nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof(*head)) &&
	    head->rtm_family != AF_INET)
		return ROWS_NONE;
	if (form_check(nlmsg_hdr(msg), &route_form, attrs) < 0)
		return -EBADMSG;
	/* A clone is an answer to a question, not a route. */
	if (!(head->rtm_flags & RTM_F_CLONED))
		return read_route(nlmsg_hdr(msg), attrs, out);
	if (out->row.is_gone || head->rtm_type != RTN_UNICAST)
		return ROWS_NONE;
	return read_path(nlmsg_hdr(msg), attrs, &out->row);
}
