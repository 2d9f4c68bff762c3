/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where frames for a socket arrive (alignment.h). */
#include "config.h"

#include "net/alignment.h"

#include <errno.h>

#include "net/flow.h"
#include "net/netif.h"
#include "pkt/wire.h"

static void note_reason(struct alignment *a, enum reason reason,
			const struct netif *netif)
{
	if (a->reason != REASON_NONE)
		return;
	a->reason = reason;
	a->blamed = netif;
}

/* Every function here runs under the control mutex of a->net. The
 * lock analysis does not see that this is the mutex that the caller has. */
NO_LOCK_ANALYSIS static void want_flow(struct alignment *a,
				       struct netif *netif,
				       const struct ip_addr *local)
{
	const struct attach_where *where = &a->att->where;
	struct flow_rule rule = {
		.dst = *local,
		.dst_port = where->local_port,
		.src = where->remote,
		.src_port = where->remote_port,
		.proto = where->proto,
	};
	int err;

	if (!netif_is_driven(netif)) {
		note_reason(a, netif ? netif->reason : REASON_NO_ROUTE, netif);
		return;
	}
	err = flow_hold(a->net, a->att, netif, &rule);
	if (!err)
		a->held_cnt++;
	else
		note_reason(a,
			    err == -ENOMEM ? REASON_MEMORY :
			    err == -ENOSPC ? REASON_RULES_FULL :
					     REASON_INTERFACE_ERROR,
			    netif);
}

static bool want_address(void *ctx, const struct addr_info *info)
{
	struct alignment *a = ctx;

	if (ip_addr_is_v4(&info->local))
		want_flow(a, a->netif, &info->local);
	return true;
}

/* Wants a flow for each address of an interface. As to the analysis, see
 * want_flow(). */
NO_LOCK_ANALYSIS static void want_interface(struct alignment *a,
					    const struct link *link)
{
	a->netif = netif_get(a->net, link->info.ifindex);
	if (netif_is_driven(a->netif))
		addr_tab_visit(&a->net->view.addrs, link->info.ifindex,
			       want_address, a);
	else if (!link_is_loopback(link))
		note_reason(a, a->netif ? a->netif->reason : REASON_MEMORY,
			    a->netif);
}

/* As to the analysis, see want_flow(). */
NO_LOCK_ANALYSIS static void want_wildcard(struct alignment *a)
{
	const struct link *link;
	struct netif *local = netif_get_local(a->net);

	LIST_FOR_EACH(link, &a->net->view.links.links, in_tab) {
		if (a->att->where.ifindex &&
		    a->att->where.ifindex != link->info.ifindex)
			continue;
		/* who names no interface hears nothing of a VRF */
		if (!a->att->where.ifindex && link_is_in_vrf(link))
			continue;
		want_interface(a, link);
		if (!local)
			continue;
		a->netif = local;
		addr_tab_visit(&a->net->view.addrs, link->info.ifindex,
			       want_address, a);
	}
	note_reason(a, REASON_LOCAL, NULL);
}

static bool is_in_vrf(const struct net *net, int ifindex)
{
	const struct link *link = link_tab_find(&net->view.links, ifindex);

	return link && link_is_in_vrf(link);
}

/* The interface by which the peer of a connected socket is reached. For other
 * sockets, the interface that has the socket's address. 0: there is none. */
static int interface_of(const struct net *net, const struct attach_where *where)
{
	const struct addr *addr;
	struct net_path path;
	struct net_flow flow = {
		.dst = where->remote,
		.src = where->local,
		.oif = where->ifindex,
		.mark = where->mark,
		.uid = where->uid,
		.sport = be16toh(where->local_port),
		.dport = be16toh(where->remote_port),
		.proto = where->proto,
		.tos = where->tos,
		.is_on_link_only = where->is_on_link_only,
	};

	if (where->remote_port)
		return net_view_route(&net->view, &flow, &path) == 0 ?
			       path.ifindex :
			       0;
	addr = addr_tab_find(&net->view.addrs, &where->local);
	if (!addr || (!where->ifindex && is_in_vrf(net, addr->info.ifindex)))
		return 0;
	return addr->info.ifindex;
}

/* As to the analysis, see want_flow(). */
NO_LOCK_ANALYSIS static void want_one_address(struct alignment *a)
{
	const struct attach_where *where = &a->att->where;
	struct netif *local = netif_get_local(a->net);
	int ifindex = interface_of(a->net, where);

	if (local && net_view_is_ours(&a->net->view, &where->local) &&
	    (!where->remote_port ||
	     net_view_is_ours(&a->net->view, &where->remote)))
		want_flow(a, local, &where->local);
	if (where->ifindex && ifindex && where->ifindex != ifindex)
		ifindex = 0;
	if (ifindex)
		want_flow(a, netif_get(a->net, ifindex), &where->local);
	else if (!a->held_cnt)
		note_reason(a,
			    net_view_is_ours(&a->net->view, &where->local) ?
				    REASON_LOCAL :
				    REASON_NO_ROUTE,
			    NULL);
}

/* What a rule of a failing device names does not come to the kernel. Datagrams are the
 * kernel's at once, connections have to go back first. */
static bool outlasts_its_device(const struct held_flow *held)
{
	return held->flow->netif->is_failing &&
	       held->flow->rule.proto == WIRE_PROTO_TCP;
}

void alignment_hold(struct alignment *a)
{
	struct held_flow *held;

	LIST_FOR_EACH(held, &a->att->flows, link)
		held->is_wanted = false;
	if (ip_addr_is_any(&a->att->where.local))
		want_wildcard(a);
	else
		want_one_address(a);
}

/* As to the analysis, see want_flow(). */
NO_LOCK_ANALYSIS void alignment_give_up(struct alignment *a)
{
	struct held_flow *held, *following;

	LIST_FOR_EACH_SAFE(held, following, &a->att->flows, link)
		if (!held->is_wanted && !outlasts_its_device(held))
			flow_release(a->net, held);
}

void alignment_make(struct alignment *a)
{
	alignment_hold(a);
	alignment_give_up(a);
}

void alignment_tell(const struct alignment *a, enum stats_decider decider)
{
	struct stats_handle *stats = a->att->where.stats;
	struct held_flow *held;
	uint32_t rings = 0;
	bool has_flow = false;

	LIST_FOR_EACH(held, &a->att->flows, link) {
		has_flow = true;
		rings |= stats_ring_bit(held->flow->ring->stats);
	}
	if (has_flow)
		stats_set_rx(stats, REASON_NONE, decider, rings, "");
	else
		stats_set_rx(stats, a->reason, decider, 0,
			     a->blamed ? a->blamed->why : "");
}
