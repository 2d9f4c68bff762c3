/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looking destinations up (dst.h). */
#include "config.h"

#include "net/dst.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "net/netif.h"
#include "net/paced.h"

/* IP_PACKET_MAX is the largest number that fits the length field of the IP header. */
enum { TTL_DEFAULT = 64, IP_PACKET_MAX = 65535 };

static bool has_df(const struct dst_query *query, const struct net_path *path)
{
	return query->df == DST_DF_ALWAYS ||
	       (query->df == DST_DF_USUAL && !path->is_mtu_locked);
}

/* Sets how much fits one frame, and whether more may go in several fragments. We cut
 * as the kernel would, whose frames are as long as the path allows. */
static void set_lengths(struct dst *dst, const struct dev *dev,
			const struct net_path *path)
{
	uint32_t path_mtu = dst->query.is_mtu_of_link ? path->link_mtu :
							path->mtu;
	uint32_t link_mtu = MIN(dev->mtu, (uint32_t)IP_PACKET_MAX);
	uint32_t mtu = MIN(path_mtu, link_mtu);
	uint32_t frame_max = dev->caps.tx_len_max -
			     (uint32_t)sizeof(dst->header.eth);

	dst->packet_max = MIN(mtu, frame_max);
	dst->cut_mtu = dst->query.may_cut && mtu <= frame_max ? mtu : 0;
}

static void build_header(struct dst *dst, const struct dev *dev,
			 const uint8_t *mac, const struct net_path *path)
{
	const struct dst_query *query = &dst->query;
	struct dst_header *header = &dst->header;
	bool is_by_route = path->hop_limit && !query->has_own_ttl;
	uint8_t own_ttl = query->ttl ? query->ttl : TTL_DEFAULT;

	memset(header, 0, sizeof(*header));
	memcpy(header->eth.dst, mac, sizeof(header->eth.dst));
	memcpy(header->eth.src, dev->mac, sizeof(header->eth.src));
	header->eth.type = htobe16(WIRE_ETH_IPV4);
	header->ip.version_ihl = 0x45;
	header->ip.tos = query->tos;
	header->ip.frag = has_df(query, path) ? htobe16(WIRE_IPV4_DF) : 0;
	header->ip.ttl = is_by_route ? path->hop_limit : own_ttl;
	header->ip.proto = query->proto;
	header->ip.src = ip_addr_v4(&path->src);
	header->ip.dst = ip_addr_v4(&query->remote);
	set_lengths(dst, dev, path);
	dst->tcp = path->tcp;
}

/* Sets the tag's word, which the ring of a VLAN expects instead of the type. */
static void set_tag(struct dst *dst, const struct net *net, const struct dev *dev)
{
	const struct link *link = link_tab_find(&net->view.links, dev->ifindex);
	unsigned pcp = link ? link_vlan_pcp(link, dst->query.priority) : 0;

	dst->header.eth.type = htobe16(
		(uint16_t)(pcp << WIRE_VLAN_PCP_SHIFT | dev->vlan_id));
}

static enum reason reason_of_error(int err)
{
	return err == -EOPNOTSUPP ? REASON_ROUTE : REASON_NO_ROUTE;
}

/* Refuses addresses that we never send to by a ring of ours. */
static enum reason reason_by_address(const struct ip_addr *addr)
{
	if (!ip_addr_is_v4(addr))
		return REASON_IPV6_PEER;
	if (ip_addr_is_multicast(addr))
		return REASON_MULTICAST;
	if (ip_addr_v4(addr) == (__be32)~0u)
		return REASON_BROADCAST;
	return REASON_NONE;
}

/* The path ends on this host. Finds the local device's ring if one of our sockets is
 * the receiver. */
static enum reason resolve_local(struct dst *dst, struct net *net,
				 struct net_path *path) REQUIRES(net->control)
{
	static const uint8_t nobody[6];
	struct flow_key key = {
		.local = dst->query.remote,
		.remote = path->src,
		.local_port = dst->query.remote_port,
		.remote_port = dst->query.local_port,
	};
	struct netif *local = netif_get_local(net);
	struct ring *ring;

	if (dst->query.paced)
		return REASON_PACE;
	/* without ports it is the way of several connections, whose ends are ours */
	if (!netif_is_driven(local) ||
	    (key.local_port &&
	     !net_is_local_locked(net, &key, dst->query.proto)) ||
	    netif_ring(local, dst->query.stack, &ring) != 0)
		return REASON_LOCAL;
	path->mtu = path->link_mtu = ring->dev->mtu;
	build_header(dst, ring->dev, nobody, path);
	dst->ring = ring;
	return REASON_NONE;
}

/* Has the kernel look for the neighbour if the caller wants that. */
static void await_neighbour(struct dst *dst, struct net *net,
			    const struct net_path *path) REQUIRES(net->control)
{
	if (dst->query.ask == DST_ASK_NOT)
		return;
	dst->is_awaited = netlink_resolve(&net->netlink, path->ifindex,
					  &path->next_hop) == 0;
}

/* Has the kernel find out whether the neighbour is still there. Each new connection comes
 * by here for as long as the kernel has not begun: one question a second is enough. */
static void confirm_neighbour(const struct dst *dst, struct net *net,
			      const struct net_path *path, const struct neigh *neigh)
	REQUIRES(net->control)
{
	uint64_t now = stack_now_ns(dst->query.stack);
	int err;

	if (neigh_is_asked(neigh, now))
		return;
	err = netlink_resolve(&net->netlink, path->ifindex, &path->next_hop);
	if (!err || (err == -EPERM &&
		     confirm_later(net, path->ifindex, &path->next_hop)))
		neigh_tab_note_asked(&net->view.neighs, path->ifindex,
				     &path->next_hop, now);
}

/* The hardware address of the neighbour. NULL: the kernel has to find it out first. */
static const uint8_t *neighbour_mac(struct dst *dst, struct net *net,
				    const struct net_path *path)
	REQUIRES(net->control)
{
	const struct neigh *neigh = neigh_tab_find(
		&net->view.neighs, path->ifindex, &path->next_hop);
	enum neigh_advice advice = neigh_advice(neigh);

	if (advice == NEIGH_FAILED && dst->query.ask == DST_ASK_ONCE)
		return NULL;
	switch (advice) {
	case NEIGH_CONFIRM:
		/* Until there is an answer, the old address is the best that we
		 * have. */
		confirm_neighbour(dst, net, path, neigh);
		break;
	case NEIGH_USABLE:
		break;
	default:
		await_neighbour(dst, net, path);
		return NULL;
	}
	return neigh->info.hw_len == 6 ? neigh->info.hw_addr : NULL;
}

static enum reason resolve_remote(struct dst *dst, struct net *net,
				  struct net_path *path) REQUIRES(net->control)
{
	struct netif *netif = netif_get(net, path->ifindex);
	struct ring *ring;
	const uint8_t *mac;

	if (!netif_is_driven(netif))
		return netif ? netif->reason : REASON_MEMORY;
	if (net->params.mtu_max) {
		path->mtu = MIN(path->mtu, net->params.mtu_max);
		path->link_mtu = MIN(path->link_mtu, net->params.mtu_max);
	}
	mac = neighbour_mac(dst, net, path);
	if (!mac)
		return REASON_NO_NEIGHBOUR;
	if (dst->query.paced && paced_ring(dst->query.paced, netif,
					   dst->query.stack, &ring) != 0)
		return REASON_PACE;
	if (!dst->query.paced && netif_ring(netif, dst->query.stack, &ring) != 0)
		return REASON_MEMORY;
	build_header(dst, netif->dev, mac, path);
	if (netif->dev->vlan_id)
		set_tag(dst, net, netif->dev);
	dst->ring = ring;
	return REASON_NONE;
}

static enum reason resolve(struct dst *dst, struct net *net)
	REQUIRES(net->control)
{
	const struct dst_query *query = &dst->query;
	enum reason reason = reason_by_address(&query->remote);
	struct net_path path;
	struct net_flow flow = {
		.dst = query->remote,
		.src = query->local,
		.oif = query->ifindex,
		.mark = query->mark,
		.uid = query->uid,
		.sport = be16toh(query->local_port),
		.dport = be16toh(query->remote_port),
		.proto = query->proto,
		.tos = query->tos,
		.is_on_link_only = query->is_on_link_only,
	};
	int err;

	if (reason != REASON_NONE)
		return reason;
	if (net->broken)
		return REASON_NETLINK;
	err = net_view_route(&net->view, &flow, &path);
	if (err)
		return reason_of_error(err);
	dst->source = path.src;
	switch (path.type) {
	case RTN_LOCAL:
		return resolve_local(dst, net, &path);
	case RTN_UNICAST:
		dst->serves = net_view_stretch(&net->view, &flow, &path);
		return resolve_remote(dst, net, &path);
	case RTN_BROADCAST:
		return REASON_BROADCAST;
	default:
		return REASON_ROUTE;
	}
}

void dst_resolve(struct dst *dst, struct net *net)
{
	net_control_acquire(net);
	/* We read the generation before we ask. If the view changes meanwhile, the
	 * answer counts as old, and we ask again. */
	dst->view_gen = net_view_gen(&net->view);
	dst_refuse(dst, REASON_NONE);
	dst->source = (struct ip_addr){ 0 };
	dst->serves = (struct route_stretch){ 1, 0 };
	dst->reason = resolve(dst, net);
	net_control_release(net);
}
