/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Routes out of messages: the one kind with lists in it; and what the kernel has
 * learned of a route's destinations, which looks like one. */
#include "config.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "nl/netlink_attr.h"
#include "nl/netlink_parse.h"

/* An address of another family than the route's: struct rtvia. */
static bool get_via(const struct attr *attr, struct ip_addr *out)
{
	uint16_t family;
	struct attr addr;

	if (!attr_is_present(attr))
		return true;
	if (attr->len < sizeof(family))
		return false;
	memcpy(&family, attr->data, sizeof(family));
	addr.data = attr->data + sizeof(family);
	addr.len = attr->len - sizeof(family);
	return attr_get_addr(&addr, family, out);
}

/* What a next hop and a route with a single one have in common. */
static bool get_hop(const struct attr *attrs, struct route *route,
		    struct route_hop *hop)
{
	if (attr_is_present(&attrs[RTA_ENCAP_TYPE]))
		route->is_foreign = true;
	return attr_get_addr(&attrs[RTA_GATEWAY], AF_INET, &hop->gateway) &&
	       get_via(&attrs[RTA_VIA], &hop->gateway);
}

static bool add_hop(struct netlink_route *out, const struct rtnexthop *head,
		    const uint8_t *data, size_t len)
{
	struct attr attrs[RTA_ENCAP + 1];
	struct route *route = &out->route;
	struct route_hop hop = {
		.ifindex = head->rtnh_ifindex,
		.weight = (uint32_t)head->rtnh_hops + 1,
		.flags = head->rtnh_flags,
	};

	if (head->rtnh_ifindex < 0 ||
	    attr_sort(data, len, attrs, RTA_ENCAP) < 0 ||
	    !get_hop(attrs, route, &hop))
		return false;
	if (route->hop_cnt < ROUTE_HOPS_MAX)
		out->hops[route->hop_cnt++] = hop;
	else
		route->is_foreign = true;
	return true;
}

static bool get_hops(const struct attr *list, struct netlink_route *out)
{
	const uint8_t *at = list->data;
	size_t left = list->len, step;
	struct rtnexthop head;

	while (left) {
		if (left < sizeof(head))
			return false;
		memcpy(&head, at, sizeof(head));
		if (head.rtnh_len < sizeof(head) || head.rtnh_len > left ||
		    !add_hop(out, &head, at + sizeof(head),
			     head.rtnh_len - sizeof(head)))
			return false;
		step = MIN((size_t)RTNH_ALIGN(head.rtnh_len), left);
		at += step;
		left -= step;
	}
	return true;
}

static bool get_single_hop(const struct rtmsg *head, const struct attr *attrs,
			   struct netlink_route *out)
{
	struct route_hop hop = {
		.weight = 1,
		.flags = (uint8_t)head->rtm_flags,
	};

	if (!attr_is_present(&attrs[RTA_OIF]))
		return true;
	if (!attr_get_index(&attrs[RTA_OIF], &hop.ifindex) ||
	    !get_hop(attrs, &out->route, &hop))
		return false;
	out->hops[out->route.hop_cnt++] = hop;
	return true;
}

static bool get_metrics(const struct attr *nest, struct route *route)
{
	struct attr attrs[RTAX_HOPLIMIT + 1];
	uint32_t locks = 0, hop_limit = 0;

	if (attr_sort_nested(nest, attrs, RTAX_HOPLIMIT) < 0 ||
	    !attr_get_u32(&attrs[RTAX_LOCK], &locks) ||
	    !attr_get_u32(&attrs[RTAX_MTU], &route->mtu) ||
	    !attr_get_u32(&attrs[RTAX_ADVMSS], &route->adv_mss) ||
	    !attr_get_u32(&attrs[RTAX_HOPLIMIT], &hop_limit))
		return false;
	route->is_mtu_locked = locks & 1u << RTAX_MTU;
	route->hop_limit = (uint8_t)MIN(hop_limit, (uint32_t)UINT8_MAX);
	return true;
}

static bool is_hop_needed(uint8_t type)
{
	return type == RTN_UNICAST || type == RTN_LOCAL ||
	       type == RTN_BROADCAST || type == RTN_ANYCAST ||
	       type == RTN_MULTICAST;
}

static bool get_route(const struct rtmsg *head, const struct attr *attrs,
		      struct netlink_route *out)
{
	struct route *route = &out->route;

	if (!attr_get_addr(&attrs[RTA_DST], AF_INET, &route->dst) ||
	    !attr_get_u32(&attrs[RTA_TABLE], &route->table) ||
	    !attr_get_u32(&attrs[RTA_PRIORITY], &route->priority) ||
	    !attr_get_addr(&attrs[RTA_PREFSRC], AF_INET, &route->prefsrc) ||
	    !get_metrics(&attrs[RTA_METRICS], route))
		return false;
	if (attr_is_present(&attrs[RTA_MULTIPATH])) {
		if (!get_hops(&attrs[RTA_MULTIPATH], out))
			return false;
	} else if (!get_single_hop(head, attrs, out)) {
		return false;
	}
	/* The kernel may be told to show a next hop's number alone. */
	if (is_hop_needed(route->type) && !route->hop_cnt)
		route->is_foreign = true;
	/* Bits outside the prefix would hide the route from look-ups. */
	route->dst = ip_addr_masked(&route->dst, route->prefix_len);
	return true;
}

int netlink_parse_route(const struct nlmsghdr *msg, struct netlink_route *out)
{
	struct attr attrs[RTA_ENCAP + 1];
	struct rtmsg head;

	if (attr_sort_message(msg, &head, sizeof(head), attrs, RTA_ENCAP) < 0)
		return -EBADMSG;
	/* A clone is an answer to a question, not a route. */
	if (head.rtm_family != AF_INET || (head.rtm_flags & RTM_F_CLONED))
		return NETLINK_NOT_OURS;
	if (head.rtm_dst_len > 32 ||
	    (head.rtm_dst_len && !attr_is_present(&attrs[RTA_DST])))
		return -EBADMSG;
	out->route = (struct route){
		.dst = ip_addr_from_v4(0),
		.prefix_len = IP_PREFIX_V4 + head.rtm_dst_len,
		.table = head.rtm_table,
		.tos = head.rtm_tos,
		.type = head.rtm_type,
		.scope = head.rtm_scope,
		.protocol = head.rtm_protocol,
		.hops = out->hops,
	};
	return get_route(&head, attrs, out) ? 0 : -EBADMSG;
}

/* Only what was learned expires; the metrics of the route itself are there, too. */
static bool has_expiry(const struct attr *attr)
{
	struct rta_cacheinfo info = { 0 };
	size_t len;

	return attr_is_present(attr) &&
	       attr_get_bytes(attr, &info, sizeof(info), &len) &&
	       info.rta_expires > 0;
}

static bool get_path_mtu(const struct attr *attrs, struct path_mtu_info *out)
{
	struct route metrics = { 0 };

	if (!attr_get_addr(&attrs[RTA_DST], AF_INET, &out->dst) ||
	    !attr_get_addr(&attrs[RTA_PREFSRC], AF_INET, &out->src) ||
	    !attr_get_addr(&attrs[RTA_SRC], AF_INET, &out->src) ||
	    !attr_get_index(&attrs[RTA_OIF], &out->ifindex) ||
	    !get_metrics(&attrs[RTA_METRICS], &metrics))
		return false;
	if (!has_expiry(&attrs[RTA_CACHEINFO]))
		return true;
	out->mtu = metrics.mtu;
	out->is_locked = metrics.is_mtu_locked;
	return true;
}

int netlink_parse_path_mtu(const struct nlmsghdr *msg,
			   struct path_mtu_info *out)
{
	struct attr attrs[RTA_ENCAP + 1];
	struct rtmsg head;

	if (attr_sort_message(msg, &head, sizeof(head), attrs, RTA_ENCAP) < 0)
		return -EBADMSG;
	if (head.rtm_family != AF_INET || !(head.rtm_flags & RTM_F_CLONED) ||
	    head.rtm_type != RTN_UNICAST)
		return NETLINK_NOT_OURS;
	*out = (struct path_mtu_info){ .src = ip_addr_from_v4(0) };
	if (!attr_is_present(&attrs[RTA_DST]) ||
	    !attr_is_present(&attrs[RTA_OIF]))
		return -EBADMSG;
	return get_path_mtu(attrs, out) ? 0 : -EBADMSG;
}
