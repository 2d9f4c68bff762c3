/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Applies rows to the tables, and moves the generations accordingly. */
#include "config.h"

#include "nl/net_feed.h"

#include <net/if.h>

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

/* Everything that belongs to the link goes with it. */
static void remove_link(struct net_view *view, int ifindex)
{
	if (!link_tab_remove(&view->links, ifindex))
		return;
	addr_tab_remove_link(&view->addrs, ifindex);
	neigh_tab_remove_link(&view->neighs, ifindex);
	net_view_routes_changed(view);
	net_view_neighs_changed(view);
}

/* The kernel drops and revives routes together with their links, without a message. */
static bool moves_routes(const struct net_view *view,
			 const struct link_info *info)
{
	const struct link *link = link_tab_find(&view->links, info->ifindex);
	uint32_t bits = IFF_UP | IFF_RUNNING;

	return link && ((link->info.flags ^ info->flags) & bits);
}

static int take_link(struct net_view *view, const struct net_row *row,
		     unsigned *stale)
{
	if (row->is_gone) {
		remove_link(view, row->link.ifindex);
		*stale |= NET_BIT(NET_ROUTES);
		return 0;
	}
	/* what an event has said since the reading began is newer */
	if (row->is_dump && link_tab_is_met(&view->links, row->link.ifindex))
		return 0;
	if (moves_routes(view, &row->link))
		*stale |= NET_BIT(NET_ROUTES);
	return note_routes(view, link_tab_set(&view->links, &row->link));
}

/* When an address goes, the routes that prefer it as a source go, too. When one
 * comes, next hops may become usable. The kernel sends no message about either. */
static int take_addr(struct net_view *view, const struct net_row *row,
		     unsigned *stale)
{
	int rc;

	if (row->is_gone)
		rc = addr_tab_remove(&view->addrs, &row->addr);
	else
		rc = addr_tab_set(&view->addrs, &row->addr);
	if (rc > 0 && ip_addr_is_v4(&row->addr.local))
		*stale |= NET_BIT(NET_ROUTES);
	return note_routes(view, rc);
}

/* Goes once more at the end of the reading, which may show it still. */
static void remember_gone(struct net_view *view, const struct route *route, unsigned *stale)
{
	if (route_tab_insert(&view->gone_routes, route, ROUTE_FIRST) < 0)
		*stale |= NET_BIT(NET_ROUTES);
}

static int remove_route(struct net_view *view, const struct route *route, unsigned *stale)
{
	if (view->is_reading_routes)
		remember_gone(view, route, stale);
	if (route_tab_remove(&view->routes, route))
		return note_routes(view, 1);
	/* We do not have this route, so a message was lost, or it is yet to be shown. */
	if (!view->is_reading_routes)
		*stale |= NET_BIT(NET_ROUTES);
	return 0;
}

static int take_route(struct net_view *view, const struct net_row *row,
		      unsigned *stale)
{
	struct route replaced;

	if (row->is_gone)
		return remove_route(view, &row->route, stale);
	if (view->is_reading_routes && !row->is_dump) {
		if (row->place == ROUTE_REPLACE) {
			unsigned cnt = route_tab_rivals(&view->routes, &row->route, &replaced);

			if (cnt == 1)
				remember_gone(view, &replaced, stale);
			else if (cnt > 1)
				/* the reading may have parted them: which is the first? */
				*stale |= NET_BIT(NET_ROUTES);
		}
		(void)!route_tab_remove(&view->gone_routes, &row->route);
	}
	return note_routes(view, route_tab_insert(&view->routes, &row->route, row->place));
}

static void forget_gone(struct net_view *view)
{
	route_tab_mark(&view->gone_routes);
	(void)!route_tab_sweep(&view->gone_routes);
}

static void begin_routes(struct net_view *view)
{
	/* of a reading that did not end */
	forget_gone(view);
	view->is_reading_routes = true;
	route_tab_mark(&view->routes);
}

static void remove_again(void *ctx, const struct route *route)
{
	struct net_view *view = ctx;

	(void)!route_tab_remove(&view->routes, route);
}

static bool end_routes(struct net_view *view)
{
	uint32_t before = view->routes.route_cnt;

	view->is_reading_routes = false;
	route_tab_visit(&view->gone_routes, remove_again, view);
	forget_gone(view);
	(void)!route_tab_sweep(&view->routes);
	return view->routes.route_cnt != before;
}

/* A reading does not wait for the kernel to say what it has added: one that we have may be the
 * same, or a second one. */
static int take_policy(struct net_view *view, const struct net_row *row, unsigned *stale)
{
	int rc;

	if (row->is_gone)
		return note_routes(view, policy_tab_remove(&view->policies,
							   &row->policy));
	if (row->is_dump)
		return note_routes(view, policy_tab_meet(&view->policies,
							 &row->policy));
	if (policy_tab_has(&view->policies, &row->policy))
		*stale |= NET_BIT(NET_POLICIES);
	rc = policy_tab_add(&view->policies, &row->policy);
	return note_routes(view, rc ? rc : 1);
}

static int take_neigh(struct net_view *view, const struct net_row *row)
{
	const struct neigh_info *info = &row->neigh;

	if (row->is_dump && neigh_tab_is_met(&view->neighs, info))
		return 0;
	return note_neighs(view, row->is_gone ?
					 neigh_tab_drop(&view->neighs,
							info->ifindex,
							&info->addr) :
					 neigh_tab_set(&view->neighs, info));
}

static int take_netconf(struct net_view *view, const struct net_row *row,
			unsigned *stale)
{
	const struct netconf_info *conf = &row->netconf;

	if (row->is_gone)
		return note_routes(view,
				   rpf_tab_remove(&view->rpf, conf->ifindex));
	/* A dump shows all settings, so what is in it need not have changed. */
	if (conf->has_linkdown && !row->is_dump)
		*stale |= NET_BIT(NET_ROUTES);
	if (conf->rp_filter < 0)
		return 0;
	return note_routes(view, rpf_tab_set(&view->rpf, conf->ifindex,
					     conf->rp_filter));
}

int net_feed_take(struct net_view *view, const struct net_row *row,
		  unsigned *stale)
{
	switch (row->kind) {
	case NET_ROW_LINK:
		return take_link(view, row, stale);
	case NET_ROW_ADDR:
		return take_addr(view, row, stale);
	case NET_ROW_ROUTE:
		return take_route(view, row, stale);
	case NET_ROW_POLICY:
		return take_policy(view, row, stale);
	case NET_ROW_NEIGH:
		return take_neigh(view, row);
	case NET_ROW_NETCONF:
		return take_netconf(view, row, stale);
	case NET_ROW_PATH_MTU:
		return note_neighs(view, path_mtu_tab_set(&view->path_mtus,
							  &row->path_mtu));
	case NET_ROW_NEXTHOP:
		/* A next hop object that goes takes its routes along without a
		 * message. When one changes, the kernel sends its routes again. */
		if (row->is_gone)
			*stale |= NET_BIT(NET_ROUTES);
		return 0;
	}
	return 0;
}

void net_feed_begin(struct net_view *view, enum net_part part)
{
	switch (part) {
	case NET_LINKS:
		link_tab_mark(&view->links);
		break;
	case NET_ADDRS:
		addr_tab_mark(&view->addrs);
		break;
	case NET_ROUTES:
		begin_routes(view);
		break;
	case NET_POLICIES:
		policy_tab_mark(&view->policies);
		break;
	case NET_NEIGHS:
		neigh_tab_mark(&view->neighs);
		break;
	case NET_NETCONFS:
		rpf_tab_mark(&view->rpf);
		break;
	case NET_PARTS:
		break;
	}
}

static bool sweep(struct net_view *view, enum net_part part)
{
	switch (part) {
	case NET_LINKS:
		return link_tab_sweep(&view->links);
	case NET_ADDRS:
		return addr_tab_sweep(&view->addrs);
	case NET_ROUTES:
		return end_routes(view);
	case NET_POLICIES:
		return policy_tab_sweep(&view->policies);
	case NET_NEIGHS:
		return neigh_tab_sweep(&view->neighs);
	case NET_NETCONFS:
		return rpf_tab_sweep(&view->rpf);
	case NET_PARTS:
		break;
	}
	return false;
}

void net_feed_end(struct net_view *view, enum net_part part)
{
	if (!sweep(view, part))
		return;
	if (part == NET_NEIGHS)
		net_view_neighs_changed(view);
	else
		net_view_routes_changed(view);
}

static int take(void *ctx, const struct net_row *row, unsigned *stale)
{
	return net_feed_take(ctx, row, stale);
}

static void begin(void *ctx, enum net_part part)
{
	net_feed_begin(ctx, part);
}

static void end(void *ctx, enum net_part part)
{
	net_feed_end(ctx, part);
}

const struct net_sink net_feed_sink = {
	.take = take,
	.begin = begin,
	.end = end,
};
