/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks all tables together: which rule, which route, which of its next hops, which
 * source address. The steps have the order of Linux's output path, because the
 * order of each can be observed from outside.
 */
#include "config.h"

#include "nl/net_view.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include "base/hash.h"

/* Of 224.0.0.0/4: shorter prefixes were not meant for groups. */
enum { MULTICAST_LEN = IP_PREFIX_V4 + 4 };
/* The longest IP packet. */
enum { MTU_MAX = 65535 };
/* The loopback has this index in every namespace. */
enum { LOOPBACK_IFINDEX = 1 };

void net_view_init(struct net_view *view, uint64_t hash_seed)
{
	link_tab_init(&view->links);
	addr_tab_init(&view->addrs);
	route_tab_init(&view->routes);
	route_tab_init(&view->gone_routes);
	view->is_reading_routes = false;
	policy_tab_init(&view->policies);
	neigh_tab_init(&view->neighs);
	path_mtu_tab_init(&view->path_mtus);
	rpf_tab_init(&view->rpf);
	view->hash_seed = hash_seed;
	atomic_init(&view->route_gen, 1);
	atomic_init(&view->gen, 1);
}

void net_view_destroy(struct net_view *view)
{
	rpf_tab_destroy(&view->rpf);
	path_mtu_tab_destroy(&view->path_mtus);
	neigh_tab_destroy(&view->neighs);
	policy_tab_destroy(&view->policies);
	route_tab_destroy(&view->gone_routes);
	route_tab_destroy(&view->routes);
	addr_tab_destroy(&view->addrs);
	link_tab_destroy(&view->links);
}

void net_view_routes_changed(struct net_view *view)
{
	uint32_t now =
		atomic_load_explicit(&view->route_gen, memory_order_relaxed);

	atomic_store_explicit(&view->route_gen, now == UINT32_MAX ? 1 : now + 1,
			      memory_order_release);
	net_view_neighs_changed(view);
}

void net_view_neighs_changed(struct net_view *view)
{
	atomic_store_explicit(
		&view->gen,
		atomic_load_explicit(&view->gen, memory_order_relaxed) + 1,
		memory_order_release);
}

static bool is_broadcast(const struct ip_addr *addr)
{
	return ip_addr_v4(addr) == (__be32)UINT32_MAX;
}

static bool is_to_many(const struct ip_addr *addr)
{
	return ip_addr_is_multicast(addr) || is_broadcast(addr);
}

static uint8_t type_to_many(const struct ip_addr *addr)
{
	return is_broadcast(addr) ? RTN_BROADCAST : RTN_MULTICAST;
}

/* 224.0.0.0/24 */
static bool is_link_multicast(const struct ip_addr *addr)
{
	return addr->byte[12] == 224 && addr->byte[13] == 0 &&
	       addr->byte[14] == 0;
}

/* The state of a look-up. */
struct walk {
	const struct net_view *view;
	const struct net_flow *flow;
	struct route_query query;
	struct route_match match;
};

static int look_in(struct walk *walk, const uint32_t *tables, unsigned cnt)
{
	return route_tab_lookup(&walk->view->routes, tables, cnt, &walk->query,
				&walk->view->links, &walk->match);
}

/* In a namespace that never had rules of its own, the kernel keeps local and main
 * in one table. */
static const uint32_t merged_tables[] = { RT_TABLE_LOCAL, RT_TABLE_MAIN };

static int walk_default(struct walk *walk)
{
	static const uint32_t last = RT_TABLE_DEFAULT;
	int err = look_in(walk, merged_tables, ARRAY_LEN(merged_tables));

	return err == -EAGAIN ? look_in(walk, &last, 1) : err;
}

static bool is_suppressed(const struct walk *walk, const struct policy *policy)
{
	const struct link *link;

	if (walk->match.route.prefix_len <= policy->suppress_len)
		return true;
	link = link_tab_find(&walk->view->links, walk->match.hop->ifindex);
	return link && policy->suppress_group == link->info.group;
}

/* -EAGAIN: go on with the next rule. */
static int obey(struct walk *walk, const struct policy *policy)
{
	int err;

	switch (policy->action) {
	case FR_ACT_TO_TBL:
		err = look_in(walk, &policy->table, 1);
		return !err && is_suppressed(walk, policy) ? -EAGAIN : err;
	case FR_ACT_NOP:
		return -EAGAIN;
	case FR_ACT_UNREACHABLE:
		return -ENETUNREACH;
	case FR_ACT_PROHIBIT:
		return -EACCES;
	default:
		return -EINVAL;
	}
}

/* The first rule of this priority, or NULL. */
static const struct policy_entry *find_target(const struct policy_tab *tab,
					      uint32_t priority)
{
	const struct policy_entry *entry;

	LIST_FOR_EACH(entry, &tab->policies, in_tab) {
		if (entry->policy.priority == priority)
			return entry;
	}
	return NULL;
}

static const struct list *after(const struct walk *walk,
				const struct policy_entry *entry)
{
	const struct policy *policy = &entry->policy;
	const struct policy_entry *target = NULL;

	/* A jump only leads forward, since otherwise the walk might never end. */
	if (policy->action == FR_ACT_GOTO && policy->target > policy->priority)
		target = find_target(&walk->view->policies, policy->target);
	return target ? &target->in_tab : entry->in_tab.next;
}

static int walk_policies(struct walk *walk)
{
	const struct policy_tab *tab = &walk->view->policies;
	const struct list *link = tab->policies.next;

	while (link != &tab->policies) {
		const struct policy_entry *entry =
			CONTAINER_OF(link, struct policy_entry, in_tab);
		int err = -EAGAIN;

		link = entry->in_tab.next;
		switch (policy_match(&entry->policy, walk->flow,
				     &walk->view->links)) {
		case POLICY_UNKNOWN:
			return -EOPNOTSUPP;
		case POLICY_PASSES:
			continue;
		case POLICY_MATCHES:
			break;
		}
		if (entry->policy.action == FR_ACT_GOTO)
			link = after(walk, entry);
		else
			err = obey(walk, &entry->policy);
		if (err != -EAGAIN)
			return err;
	}
	return -EAGAIN;
}

static int walk_all(struct walk *walk)
{
	int err = policy_tab_is_default(&walk->view->policies)
			  ? walk_default(walk)
			  : walk_policies(walk);

	return err == -EAGAIN ? -ENETUNREACH : err;
}

/* The result of inet_select_addr(), which may be the wildcard. */
static struct ip_addr select_src(const struct net_view *view, int ifindex,
				 const struct ip_addr *dst, uint8_t scope)
{
	__be32 to = dst && ip_addr_is_v4(dst) ? ip_addr_v4(dst) : 0;
	__be32 src = addr_tab_select_v4(&view->addrs, ifindex, to, scope);

	return src ? ip_addr_from_v4(src) : (struct ip_addr){ 0 };
}

static bool has_src(const struct net_flow *flow)
{
	return !ip_addr_is_any(&flow->src);
}

/* Whether packets by this hop have the source of the flow when they choose none. */
static bool is_by_src(const struct net_view *view, const struct net_flow *flow,
		      const struct route *route, const struct route_hop *hop)
{
	struct ip_addr own = select_src(view, hop->ifindex, &hop->gateway,
					route->scope);

	return ip_addr_eq(&own, &flow->src);
}

/* The usable hops of a route; if some of them are by the flow's source, those, as Linux has
 * it since 6.16. */
struct choice {
	const struct net_view *view;
	const struct net_flow *flow;
	const struct route *route;
	bool is_by_src;
};

static bool is_eligible(const struct choice *c, const struct route_hop *hop)
{
	return route_hop_is_usable(c->route, hop, &c->view->links) &&
	       (!c->is_by_src || is_by_src(c->view, c->flow, c->route, hop));
}

static uint64_t weigh(const struct choice *c)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < c->route->hop_cnt; i++)
		if (is_eligible(c, &c->route->hops[i]))
			total += c->route->hops[i].weight;
	return total;
}

/* Chooses one of several next hops, by the destination: once the source is that of the hop,
 * the choice is the same. The first one is known to be usable. */
static const struct route_hop *choose_hop(const struct net_view *view,
					  const struct net_flow *flow,
					  const struct route_match *match)
{
	struct choice c = { view, flow, &match->route, has_src(flow) };
	uint64_t hash, total = weigh(&c);

	if (!total) {
		c.is_by_src = false;
		total = weigh(&c);
	}
	hash = hash_u64x2(view->hash_seed, 0, flow->dst.half[1]) >> 32;
	hash = hash * total >> 32;
	for (unsigned i = 0; i < c.route->hop_cnt; i++) {
		const struct route_hop *hop = &c.route->hops[i];

		if (!is_eligible(&c, hop))
			continue;
		if (hash < hop->weight)
			return hop;
		hash -= hop->weight;
	}
	return match->hop;
}

/* Makes a path that leads to the destination without a gateway. */
static void lead_on_link(struct net_path *path, uint8_t type, int ifindex,
			 const struct net_flow *flow)
{
	*path = (struct net_path){
		.type = type,
		.ifindex = ifindex,
		.next_hop = flow->dst,
		.src = flow->src,
	};
}

static struct ip_addr choose_src(const struct net_view *view,
				 const struct net_flow *flow,
				 const struct route *route,
				 const struct route_hop *hop)
{
	if (has_src(flow))
		return flow->src;
	if (!ip_addr_is_any(&route->prefsrc))
		return route->prefsrc;
	if (route->type == RTN_LOCAL)
		return flow->dst;
	return select_src(view, hop->ifindex, &hop->gateway, route->scope);
}

/* Whether a packet needs no gateway: it is for everybody on the link, or it is for
 * a group and the route was not made for groups. */
static bool is_beyond_routes(const struct net_flow *flow,
			     const struct route *route)
{
	return is_broadcast(&flow->dst) ||
	       (ip_addr_is_multicast(&flow->dst) &&
		route->prefix_len < MULTICAST_LEN);
}

static void follow_route(const struct net_view *view,
			 const struct net_flow *flow,
			 const struct route_match *match, struct net_path *path)
{
	const struct route *route = &match->route;
	const struct route_hop *hop = match->hop;
	/* The packet is for this host, whatever interface has the address. */
	bool is_home = route->type == RTN_LOCAL;

	bool is_one_of_many = route->hop_cnt > 1 && !flow->oif && !is_home;

	if (is_one_of_many)
		hop = choose_hop(view, flow, match);
	lead_on_link(path, route->type,
		     is_home ? LOOPBACK_IFINDEX : hop->ifindex, flow);
	path->is_one_of_many = is_one_of_many;
	path->src = choose_src(view, flow, route, hop);
	path->table = route->table;
	if (is_to_many(&flow->dst))
		path->type = type_to_many(&flow->dst);
	if (is_beyond_routes(flow, route))
		return;
	path->mtu = route->mtu;
	path->is_mtu_locked = route->is_mtu_locked;
	path->hop_limit = route->hop_limit;
	path->tcp = route->tcp;
	path->has_gateway = !is_home && !ip_addr_is_any(&hop->gateway);
	if (path->has_gateway)
		path->next_hop = hop->gateway;
}

/* A sender that names an interface may send even where no route leads. Linux takes
 * the destination to be on the link then. */
static int find_route(const struct net_view *view, const struct net_flow *flow,
		      struct net_path *path)
{
	struct walk walk = {
		.view = view,
		.flow = flow,
		.query = {
			.dst = flow->dst,
			.tos = flow->tos,
			.oif = flow->oif,
			.scope = flow->is_on_link_only ? RT_SCOPE_LINK : 0,
		},
	};
	int err = walk_all(&walk);

	if (!err) {
		follow_route(view, flow, &walk.match, path);
		return 0;
	}
	if (!flow->oif || err == -EOPNOTSUPP)
		return err;
	lead_on_link(path, ip_addr_is_multicast(&flow->dst) ? RTN_MULTICAST
							    : RTN_UNICAST,
		     flow->oif, flow);
	if (!has_src(flow))
		path->src = select_src(view, flow->oif, NULL, RT_SCOPE_LINK);
	return 0;
}

/* The interface that has the address, or that a local route names for it. 0: the
 * address is not ours. */
static int find_owner(const struct net_view *view, const struct ip_addr *addr)
{
	const struct addr *own = addr_tab_find(&view->addrs, addr);
	unsigned table_cnt = policy_tab_is_default(&view->policies) ? 2 : 1;
	struct route_query query = { .dst = *addr };
	struct route_match match;

	if (own)
		return own->info.ifindex;
	if (route_tab_lookup(&view->routes, merged_tables, table_cnt,
			     &query, &view->links, &match) ||
	    match.route.type != RTN_LOCAL)
		return 0;
	return match.hop->ifindex;
}

bool net_view_is_ours(const struct net_view *view, const struct ip_addr *addr)
{
	return find_owner(view, addr);
}

enum { IS_SETTLED = 1 };

/* IS_SETTLED: the path is known. The source address chooses the interface for
 * multicast and broadcast, even where routes say otherwise. */
static int heed_src(const struct net_view *view, const struct net_flow *flow,
		    struct net_path *path)
{
	int owner;

	if (!has_src(flow))
		return 0;
	if (is_to_many(&flow->src))
		return -EINVAL;
	owner = find_owner(view, &flow->src);
	if (!flow->oif && is_to_many(&flow->dst)) {
		lead_on_link(path, type_to_many(&flow->dst), owner, flow);
		return owner ? IS_SETTLED : -ENETUNREACH;
	}
	return owner || flow->is_any_src ? 0 : -ENETUNREACH;
}

/* Does the same for the interface that the flow names. It may choose the source,
 * which rules look at afterwards. */
static int heed_oif(const struct net_view *view, struct net_flow *flow,
		    struct net_path *path)
{
	uint8_t scope = flow->is_on_link_only ? RT_SCOPE_LINK
					      : RT_SCOPE_UNIVERSE;
	const struct link *link;

	if (!flow->oif)
		return 0;
	link = link_tab_find(&view->links, flow->oif);
	if (!link)
		return -ENODEV;
	if (link_is_in_vrf(link))
		return -EOPNOTSUPP;
	if (!link_is_up(link))
		return -ENETUNREACH;
	if (is_link_multicast(&flow->dst) || is_broadcast(&flow->dst)) {
		lead_on_link(path, type_to_many(&flow->dst), flow->oif, flow);
		if (!has_src(flow))
			path->src = select_src(view, flow->oif, NULL,
					       RT_SCOPE_LINK);
		return IS_SETTLED;
	}
	if (has_src(flow))
		return 0;
	if (ip_addr_is_multicast(&flow->dst))
		flow->src = select_src(view, flow->oif, NULL, scope);
	else if (ip_addr_is_any(&flow->dst))
		flow->src = select_src(view, flow->oif, NULL, RT_SCOPE_HOST);
	return 0;
}

static int find_path(const struct net_view *view, struct net_flow *flow,
		     struct net_path *path)
{
	int rc = heed_src(view, flow, path);

	if (!rc)
		rc = heed_oif(view, flow, path);
	if (rc)
		return rc == IS_SETTLED ? 0 : rc;
	if (ip_addr_is_any(&flow->dst)) {
		/* A packet without a destination goes to this host. */
		flow->dst = has_src(flow) ? flow->src
					  : ip_addr_from_v4(
						    htobe32(INADDR_LOOPBACK));
		flow->src = flow->dst;
		lead_on_link(path, RTN_LOCAL, LOOPBACK_IFINDEX, flow);
		return 0;
	}
	return find_route(view, flow, path);
}

static void heed_path_mtu(const struct net_view *view,
			  const struct ip_addr *dst, struct net_path *path)
{
	const struct path_mtu *learned =
		path_mtu_tab_find(&view->path_mtus, path->ifindex, dst);

	if (path->type != RTN_UNICAST || !learned)
		return;
	path->mtu = MIN(path->mtu, learned->info.mtu);
	path->is_mtu_locked |= learned->info.is_locked;
}

/* Completes the path with what the interface decides. */
static int settle(const struct net_view *view, struct net_path *path)
{
	const struct link *link = link_tab_find(&view->links, path->ifindex);

	if (!link)
		return -ENODEV;
	if (ip_addr_is_loopback(&path->src) && !link_is_loopback(link))
		return -EINVAL;
	path->link_mtu = MIN(link->info.mtu, (uint32_t)MTU_MAX);
	path->mtu = path->mtu ? MIN(path->mtu, path->link_mtu) : path->link_mtu;
	return 0;
}

static bool is_v4_or_any(const struct ip_addr *addr)
{
	return ip_addr_is_v4(addr) || ip_addr_is_any(addr);
}

int net_view_route(const struct net_view *view, const struct net_flow *flow,
		   struct net_path *path_out)
{
	struct net_flow settled = *flow;
	int err;

	if (!is_v4_or_any(&flow->dst) || !is_v4_or_any(&flow->src))
		return -EAFNOSUPPORT;
	err = find_path(view, &settled, path_out);
	if (!err)
		err = settle(view, path_out);
	if (!err)
		heed_path_mtu(view, &settled.dst, path_out);
	return err;
}

/* Unicast addresses but for 0.0.0.0, which stands for this host. */
static struct route_stretch unicast_around(uint32_t dst)
{
	const uint32_t groups = 0xe0000000, behind_groups = 0xf0000000;

	return dst < groups ?
		       (struct route_stretch){ 1, groups - 1 } :
		       (struct route_stretch){ behind_groups, UINT32_MAX - 1 };
}

struct route_stretch net_view_stretch(const struct net_view *view,
				      const struct net_flow *flow,
				      const struct net_path *path)
{
	uint32_t dst = be32toh(ip_addr_v4(&flow->dst));
	struct route_stretch stretch, unicast = unicast_around(dst);

	/* What else is asked for each destination. */
	if (path->type != RTN_UNICAST || !path->has_gateway ||
	    path->is_one_of_many || view->path_mtus.cnt ||
	    !policy_tab_is_default(&view->policies))
		return (struct route_stretch){ dst, dst };
	stretch = route_tab_stretch(&view->routes, &flow->dst);
	return (struct route_stretch){ MAX(stretch.first, unicast.first),
				       MIN(stretch.last, unicast.last) };
}

int net_view_route_connect(const struct net_view *view,
			   const struct net_flow *flow,
			   struct net_path *path_out)
{
	struct net_flow with_src = *flow;
	int err = net_view_route(view, flow, path_out);

	if (err || (has_src(flow) && !ip_addr_is_any(&flow->dst)))
		return err;
	with_src.src = path_out->src;
	if (ip_addr_is_any(&flow->dst))
		with_src.dst = path_out->next_hop;
	return net_view_route(view, &with_src, path_out);
}

static bool uses_link(const struct route *route, int ifindex)
{
	for (unsigned i = 0; i < route->hop_cnt; i++)
		if (route->hops[i].ifindex == ifindex)
			return true;
	return false;
}

bool net_view_admits(const struct net_view *view, int ifindex,
		     const struct ip_addr *src, const struct ip_addr *dst)
{
	enum rpf_mode mode = rpf_tab_mode(&view->rpf, ifindex);
	const struct link *link = link_tab_find(&view->links, ifindex);
	struct net_flow back = { .dst = *src, .src = *dst };
	struct walk walk = {
		.view = view,
		.flow = &back,
		.query = { .dst = *src },
	};
	int err;

	/* the tables of a VRF are the kernel's to ask */
	if (mode == RPF_OFF || (link && link_is_in_vrf(link)))
		return true;
	err = walk_all(&walk);
	if (err)
		return err == -EOPNOTSUPP;
	return walk.match.route.type == RTN_UNICAST &&
	       (mode == RPF_LOOSE || uses_link(&walk.match.route, ifindex));
}
