/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages applied to the tables, and the generations that follow from it. */
#include "config.h"

#include "nl/netlink_msg.h"

#include <errno.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "nl/netlink_parse.h"

const struct nlmsghdr *netlink_next(const uint8_t **at, size_t *left)
{
	const struct nlmsghdr *msg = (const struct nlmsghdr *)*at;
	size_t step;

	if (*left < sizeof(*msg) || msg->nlmsg_len < sizeof(*msg) ||
	    msg->nlmsg_len > *left)
		return NULL;
	step = MIN((size_t)NLMSG_ALIGN(msg->nlmsg_len), *left);
	*at += step;
	*left -= step;
	return msg;
}

int netlink_error(const struct nlmsghdr *msg)
{
	int error = 0;

	if (msg->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, NLMSG_DATA(msg), sizeof(error));
	return error;
}

/* What the tables' setters return: 1 changed, 0 known, or a negative errno. */
static int note_routes(struct net_view *view, int rc)
{
	if (rc > 0)
		net_view_routes_changed(view);
	return rc < 0 ? rc : 0;
}

static int note_neighs(struct net_view *view, int rc)
{
	if (rc > 0)
		net_view_neighs_changed(view);
	return rc < 0 ? rc : 0;
}

/* Everything that stood on the link goes with it. */
static void remove_link(struct net_view *view, int ifindex)
{
	if (!link_tab_remove(&view->links, ifindex))
		return;
	addr_tab_remove_link(&view->addrs, ifindex);
	neigh_tab_remove_link(&view->neighs, ifindex);
	net_view_routes_changed(view);
	net_view_neighs_changed(view);
}

/* The kernel drops and revives routes with their links, and tells nobody. */
static bool moves_routes(const struct net_view *view,
			 const struct link_info *info)
{
	const struct link *link = link_tab_find(&view->links, info->ifindex);
	uint32_t bits = IFF_UP | IFF_RUNNING;

	return link && ((link->info.flags ^ info->flags) & bits);
}

static int apply_link(struct net_view *view, const struct nlmsghdr *msg,
		      struct netlink_effect *effect)
{
	struct link_info info;
	int rc = netlink_parse_link(msg, &info);

	if (rc)
		return rc;
	if (msg->nlmsg_type == RTM_DELLINK) {
		remove_link(view, info.ifindex);
		effect->stale |= NETLINK_BIT(NETLINK_ROUTES);
		return 0;
	}
	if (moves_routes(view, &info))
		effect->stale |= NETLINK_BIT(NETLINK_ROUTES);
	return note_routes(view, link_tab_set(&view->links, &info));
}

/* An address takes the routes along that prefer it as a source, and one that
 * comes revives next hops; again, nobody is told. */
static int apply_addr(struct net_view *view, const struct nlmsghdr *msg,
		      struct netlink_effect *effect)
{
	struct addr_info info;
	int rc = netlink_parse_addr(msg, &info);

	if (rc)
		return rc;
	if (msg->nlmsg_type == RTM_DELADDR)
		rc = addr_tab_remove(&view->addrs, &info);
	else
		rc = addr_tab_set(&view->addrs, &info);
	if (rc > 0 && ip_addr_is_v4(&info.local))
		effect->stale |= NETLINK_BIT(NETLINK_ROUTES);
	return note_routes(view, rc);
}

static enum route_place place_of(const struct nlmsghdr *msg, bool is_dump)
{
	if (is_dump || (msg->nlmsg_flags & NLM_F_APPEND))
		return ROUTE_LAST;
	return msg->nlmsg_flags & NLM_F_REPLACE ? ROUTE_REPLACE : ROUTE_FIRST;
}

/* Not a route, but what the kernel has learned of a path. */
static int apply_path_mtu(struct net_view *view, const struct nlmsghdr *msg)
{
	struct path_mtu_info info;
	int rc = netlink_parse_path_mtu(msg, &info);

	return rc ? rc :
		    note_neighs(view, path_mtu_tab_set(&view->path_mtus, &info));
}

static int apply_route(struct net_view *view, const struct nlmsghdr *msg,
		       bool is_dump, struct netlink_effect *effect)
{
	struct netlink_route parsed;
	int rc = netlink_parse_route(msg, &parsed);

	if (rc == NETLINK_NOT_OURS && msg->nlmsg_type == RTM_NEWROUTE)
		return apply_path_mtu(view, msg);
	if (rc)
		return rc;
	if (msg->nlmsg_type == RTM_NEWROUTE)
		return note_routes(view, route_tab_insert(&view->routes,
							  &parsed.route,
							  place_of(msg,
								   is_dump)));
	if (route_tab_remove(&view->routes, &parsed.route))
		return note_routes(view, 1);
	/* Somebody missed something. */
	effect->stale |= NETLINK_BIT(NETLINK_ROUTES);
	return 0;
}

static int apply_policy(struct net_view *view, const struct nlmsghdr *msg,
			bool is_dump)
{
	struct policy policy;
	int rc = netlink_parse_policy(msg, &policy);

	if (rc)
		return rc;
	if (msg->nlmsg_type == RTM_DELRULE)
		return note_routes(view, policy_tab_remove(&view->policies,
							   &policy));
	if (is_dump)
		return note_routes(view,
				   policy_tab_meet(&view->policies, &policy));
	rc = policy_tab_add(&view->policies, &policy);
	return note_routes(view, rc ? rc : 1);
}

static int apply_neigh(struct net_view *view, const struct nlmsghdr *msg)
{
	struct neigh_info info;
	int rc = netlink_parse_neigh(msg, &info);

	if (rc)
		return rc;
	if (msg->nlmsg_type == RTM_DELNEIGH)
		rc = neigh_tab_drop(&view->neighs, info.ifindex, &info.addr);
	else
		rc = neigh_tab_set(&view->neighs, &info);
	return note_neighs(view, rc);
}

/* A next hop that goes takes its routes along, silently. One that changes has its
 * routes told anew. */
static void apply_nexthop(const struct nlmsghdr *msg,
			  struct netlink_effect *effect)
{
	if (msg->nlmsg_type == RTM_DELNEXTHOP)
		effect->stale |= NETLINK_BIT(NETLINK_ROUTES);
}

static int apply_netconf(struct net_view *view, const struct nlmsghdr *msg,
			 bool is_dump, struct netlink_effect *effect)
{
	struct netlink_netconf conf;
	int rc = netlink_parse_netconf(msg, &conf);

	if (rc)
		return rc;
	if (msg->nlmsg_type == RTM_DELNETCONF)
		return note_routes(view,
				   rpf_tab_remove(&view->rpf, conf.ifindex));
	/* A dump shows everything, whether it has changed or not. */
	if (conf.has_linkdown && !is_dump)
		effect->stale |= NETLINK_BIT(NETLINK_ROUTES);
	return conf.rp_filter < 0 ?
		       0 :
		       note_routes(view, rpf_tab_set(&view->rpf, conf.ifindex,
						     conf.rp_filter));
}

static int apply(struct net_view *view, const struct nlmsghdr *msg,
		 bool is_dump, struct netlink_effect *effect)
{
	switch (msg->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		effect->part = NETLINK_LINKS;
		return apply_link(view, msg, effect);
	case RTM_NEWADDR:
	case RTM_DELADDR:
		effect->part = NETLINK_ADDRS;
		return apply_addr(view, msg, effect);
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		effect->part = NETLINK_ROUTES;
		return apply_route(view, msg, is_dump, effect);
	case RTM_NEWRULE:
	case RTM_DELRULE:
		effect->part = NETLINK_POLICIES;
		return apply_policy(view, msg, is_dump);
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		effect->part = NETLINK_NEIGHS;
		return apply_neigh(view, msg);
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		apply_nexthop(msg, effect);
		return 0;
	case RTM_NEWNETCONF:
	case RTM_DELNETCONF:
		effect->part = NETLINK_NETCONFS;
		return apply_netconf(view, msg, is_dump, effect);
	default:
		return 0;
	}
}

int netlink_apply(struct net_view *view, const struct nlmsghdr *msg,
		  bool is_dump, struct netlink_effect *effect_out)
{
	int rc;

	*effect_out = (struct netlink_effect){ .part = NETLINK_PARTS };
	rc = apply(view, msg, is_dump, effect_out);
	return rc == NETLINK_NOT_OURS ? 0 : rc;
}

void netlink_part_begin(struct net_view *view, enum netlink_part part)
{
	switch (part) {
	case NETLINK_LINKS:
		link_tab_mark(&view->links);
		break;
	case NETLINK_ADDRS:
		addr_tab_mark(&view->addrs);
		break;
	case NETLINK_ROUTES:
		route_tab_mark(&view->routes);
		break;
	case NETLINK_POLICIES:
		policy_tab_mark(&view->policies);
		break;
	case NETLINK_NEIGHS:
		neigh_tab_mark(&view->neighs);
		break;
	case NETLINK_NETCONFS:
		rpf_tab_mark(&view->rpf);
		break;
	case NETLINK_PARTS:
		break;
	}
}

static bool sweep(struct net_view *view, enum netlink_part part)
{
	switch (part) {
	case NETLINK_LINKS:
		return link_tab_sweep(&view->links);
	case NETLINK_ADDRS:
		return addr_tab_sweep(&view->addrs);
	case NETLINK_ROUTES:
		return route_tab_sweep(&view->routes);
	case NETLINK_POLICIES:
		return policy_tab_sweep(&view->policies);
	case NETLINK_NEIGHS:
		return neigh_tab_sweep(&view->neighs);
	case NETLINK_NETCONFS:
		return rpf_tab_sweep(&view->rpf);
	case NETLINK_PARTS:
		break;
	}
	return false;
}

void netlink_part_end(struct net_view *view, enum netlink_part part)
{
	if (!sweep(view, part))
		return;
	if (part == NETLINK_NEIGHS)
		net_view_neighs_changed(view);
	else
		net_view_routes_changed(view);
}
