/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens interfaces and gives them up (netif.h). */
#include "config.h"

#include "net/netif.h"

#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "dev/bond/bond.h"
#include "net/paced.h"
#include "pkt/wire.h"
#include "stats/stats_publish.h"

enum {
	/* What a line says of back ends that do not drive an interface. */
	PASSED_SIZE = 256,
	/* An interface has so many, whatever others have. */
	FRAMES_LEAST = 128,
};

/* Whether a list of names with commas between them has this name. */
static bool is_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, name, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

static bool is_allowed(const struct net *net, const char *name)
{
	return strcmp(net->params.interfaces, "all") == 0 ||
	       is_listed(net->params.interfaces, name);
}

/* Why only the kernel knows what a VLAN's frames are to look like, or whose they are.
 * NULL: we know it, too. */
static const char *why_no_vlan(const struct net *net, const struct link *link)
{
	const struct link *lower = link_tab_find(&net->view.links, link->info.lower);

	if (link_tab_has_vlan(&net->view.links, link->info.ifindex))
		return "a VLAN with VLANs on it";
	if (!lower)
		return "the interface below the VLAN is in another network namespace";
	if (lower->info.kind == LINK_VLAN)
		return "a VLAN on a VLAN";
	if (link_is_port(lower))
		return "a VLAN on a port of a bridge, bond or team";
	if (link->info.vlan_proto != WIRE_ETH_VLAN)
		return "a VLAN that is not of 802.1Q";
	if (!link->info.vlan_id || link->info.vlan_id > WIRE_VLAN_ID_MAX)
		return "a VLAN without number";
	if (link->info.has_far_priorities)
		return "a VLAN whose egress map has priorities above 15";
	return NULL;
}

/* Whether we may take frames of this interface at all, whatever the back end.
 * REASON_NONE: we may. *text_out: more about it. */
static enum reason reason_by_link(const struct net *net, const struct link *link,
				  const char **text_out)
{
	const char *text = NULL;

	*text_out = "";
	if (link_is_loopback(link))
		return REASON_LOCAL;
	if (!is_allowed(net, link->info.name))
		return REASON_NOT_ALLOWED;
	if (link->info.hw_type != ARPHRD_ETHER || link->info.addr_len != 6 ||
	    link_is_port(link) ||
	    link_tab_has_upper(&net->view.links, link->info.ifindex))
		return REASON_INTERFACE_KIND;
	if (link->info.kind == LINK_VLAN)
		text = why_no_vlan(net, link);
	if (!text)
		return REASON_NONE;
	*text_out = text;
	return REASON_INTERFACE_KIND;
}

static enum reason reason_of(const struct dev_verdict *why)
{
	switch (why->refusal) {
	case DEV_REFUSED_IN_USE:
		return REASON_INTERFACE_IN_USE;
	case DEV_REFUSED_FOREIGN_PROGRAM:
		return REASON_FOREIGN_PROGRAM;
	case DEV_REFUSED_KIND:
		return REASON_INTERFACE_KIND;
	case DEV_REFUSED_RIGHTS:
		return REASON_RIGHTS;
	case DEV_REFUSED_MEMORY:
		return REASON_MEMORY;
	default:
		return REASON_INTERFACE_ERROR;
	}
}

struct netif *netif_find(struct net *net, int ifindex)
{
	struct netif *netif;

	LIST_FOR_EACH(netif, &net->netifs, link)
		if (netif->ifindex == ifindex)
			return netif;
	return NULL;
}

/* Names change, and the number of an interface that has gone may become another's. */
static void take_name(struct netif *netif, const char *name)
{
	snprintf(netif->name, sizeof(netif->name), "%s", name);
}

static struct netif *add(struct net *net, int ifindex, const char *name)
{
	struct netif *netif = calloc(1, sizeof(*netif));

	if (!netif)
		return NULL;
	netif->ifindex = ifindex;
	take_name(netif, name);
	list_init(&netif->paced);
	list_push_back(&net->netifs, &netif->link);
	return netif;
}

/* The region may live longer than its device, so it must forget the pool. */
static void forget_pool(struct region *region)
{
	struct stats_pool *pool = region->stats;

	region_set_stats(region, NULL);
	stats_pool_close(pool);
}

int netif_ring(struct netif *netif, struct stack *stack, struct ring **ring_out)
{
	struct ring **at = &netif->rings[stack->index];
	struct demux_from from = {
		.ifindex = (uint32_t)netif->ifindex,
		.rx_partial_csum = netif->dev->caps.rx_partial_csum,
		.is_local = netif->is_local,
	};
	int err = *at ? 0 : stack_add_ring(stack, netif->dev, &from, at);

	*ring_out = *at;
	return err;
}

/* The interface has a device. The first stack gets its ring at once, so that an
 * interface that gives none is refused as a whole. */
static int start(struct net *net, struct netif *netif)
{
	struct ring *ring;

	region_set_stats(netif->dev->region,
			 stats_pool_open(netif->name,
					 netif->dev->region->frame_cnt));
	return netif_ring(netif, net->stacks[0], &ring);
}

static void refuse(struct net *net, struct netif *netif, enum reason reason,
		   const char *text)
{
	/* That loopback, or an interface that the user has excluded, stays with the
	 * kernel is no news to anybody. */
	bool is_news = netif->reason != reason && reason != REASON_LOCAL &&
		       reason != REASON_NOT_ALLOWED;

	netif->reason = reason;
	snprintf(netif->why, sizeof(netif->why), "%s%s%s", netif->name,
		 *text ? ", " : "", text);
	netif->refused_gen = net_view_route_gen(&net->view);
	if (is_news)
		log_info("%s stays with the kernel: %s%s%s", netif->name,
			 reason_why(reason), *text ? ": " : "", text);
}

/* Notes that a better back end does not drive the interface, and why. */
static void note_refusal(char passed[PASSED_SIZE], const char *name,
			 const struct dev_verdict *why)
{
	size_t len = strlen(passed);

	snprintf(passed + len, PASSED_SIZE - len, "; not by %s: %s", name,
		 why->text);
}

/* How many frames all interfaces may still get. */
static uint32_t frames_left(const struct net *net)
{
	const struct netif *netif;
	uint32_t cnt = 0;

	if (!net->params.frame_max)
		return UINT32_MAX;
	LIST_FOR_EACH(netif, &net->netifs, link)
		if (netif->dev && !netif->is_local)
			cnt += region_set_frame_cnt(&netif->dev->regions);
	return net->params.frame_max - MIN(cnt, net->params.frame_max);
}

static void note_limit(const struct net *net, struct netif *netif)
{
	if (!netif->is_at_limit)
		log_dbg("%s: no further frames: the interfaces may have %u",
			netif->name, net->params.frame_max);
	netif->is_at_limit = true;
}

int netif_add_frames(struct net *net, struct netif *netif)
{
	struct dev *dev = netif->dev;
	uint32_t cnt = dev->region->frame_cnt;
	int err;

	INVARIANT(net_control_is_mine(net), "added without the mutex");
	if (frames_left(net) < cnt) {
		note_limit(net, netif);
		return -ENOMEM;
	}
	err = dev->ops->region_add(dev, cnt);
	log_dbg("%s: another %u frames for sockets with a pace%s%s", netif->name, cnt,
		err ? ": " : "", err ? strerror(-err) : "");
	return err;
}

static bool has_vlans(const struct net *net, const struct netif *netif)
{
	return link_tab_has_vlan(&net->view.links, netif->ifindex);
}

/* The bond that the link is, or that it is a VLAN on; NULL: there is none. */
static const struct link *bond_of(const struct net *net, const struct link *link)
{
	if (link->info.kind == LINK_VLAN)
		link = link_tab_find(&net->view.links, link->info.lower);
	return link && link->info.kind == LINK_BOND ? link : NULL;
}

/* The longest packet that may come: whatever below the interface has a larger MTU lets
 * through what others send. */
static uint32_t rx_mtu_of(const struct net *net, const struct link *link)
{
	const struct link *bond = bond_of(net, link), *port;
	uint32_t mtu = link->info.mtu;

	if (link->info.kind == LINK_VLAN)
		mtu = MAX(mtu, link_tab_find(&net->view.links,
					     link->info.lower)->info.mtu);
	if (!bond)
		return mtu;
	LIST_FOR_EACH(port, &net->view.links.links, in_tab)
		if (port->info.master == bond->info.ifindex)
			mtu = MAX(mtu, port->info.mtu);
	return mtu;
}

static void read_bond(const struct net *net, const struct link *link,
		      struct backend_bond *out)
{
	const struct link *port;

	*out = (struct backend_bond){
		.name = link->info.name,
		.mode = link->info.bond_mode,
		.policy = link->info.bond_policy,
	};
	LIST_FOR_EACH(port, &net->view.links.links, in_tab) {
		struct backend_port *to = &out->ports[out->port_cnt];

		if (port->info.master != link->info.ifindex)
			continue;
		if (out->port_cnt++ >= BACKEND_PORTS_MAX)
			continue;
		to->ifindex = port->info.ifindex;
		memcpy(to->name, port->info.name, sizeof(to->name));
		if (port->info.is_active_port)
			out->active |= 1u << (out->port_cnt - 1);
	}
}

/* Whether it is made of the same ports, in the same way. */
static bool is_same_bond(const struct backend_bond *a, const struct backend_bond *b)
{
	bool result = a->mode == b->mode && a->policy == b->policy &&
		      a->port_cnt == b->port_cnt;

	for (unsigned i = 0; i < a->port_cnt && result; i++)
		result = a->ports[i].ifindex == b->ports[i].ifindex;
	return result;
}

static int open_by(struct backend *backend, struct backend_request *request,
		   const struct backend_bond *bond, struct netif *netif,
		   struct dev_verdict *why)
{
	bool is_bond = bond->name && backend->shares_regions;
	int err;

	netif->bond = (struct backend_bond){ 0 };
	if (!is_bond)
		return backend->open(backend, request, &netif->dev, why);
	request->bond = bond;
	err = bond_open(backend, request, &netif->dev, why);
	if (!err)
		netif->bond = *bond;
	netif->bond.name = NULL; /* the link's, which may go */
	request->bond = NULL;
	return err;
}

static int try_backends(struct net *net, struct netif *netif,
			const struct link *link, struct dev_verdict *why,
			char passed[PASSED_SIZE])
{
	uint32_t cnt = MIN(net->params.frame_cnt, frames_left(net));
	struct backend_request request = {
		.ifindex = netif->ifindex,
		.name = netif->name,
		.mtu = link->info.mtu,
		.rx_mtu = rx_mtu_of(net, link),
		.rx_queue_max = link->info.rx_queue_max,
		.is_virtual = link->info.kind != LINK_PLAIN,
		.has_vlans = has_vlans(net, netif),
		.frame_cnt = MAX(cnt, (uint32_t)FRAMES_LEAST),
		.pages = net->params.pages,
	};
	const struct link *bond_link = bond_of(net, link);
	struct backend_bond bond = { 0 };
	int err = -ENODEV;

	if (bond_link)
		read_bond(net, bond_link, &bond);
	if (link->info.kind == LINK_VLAN) {
		request.vlan_id = link->info.vlan_id;
		request.lower = link->info.lower;
		request.lower_name = link_tab_find(&net->view.links,
						   link->info.lower)->info.name;
	}
	memcpy(request.mac, link->info.addr, sizeof(request.mac));
	for (unsigned i = 0; i < net->params.backend_cnt && err; i++) {
		struct backend *backend = net->params.backends[i];

		*why = (struct dev_verdict){ .refusal = DEV_REFUSED_KIND };
		err = open_by(backend, &request, &bond, netif, why);
		if (err)
			note_refusal(passed, backend->name, why);
	}
	return err;
}

static void open_netif(struct net *net, struct netif *netif,
		       const struct link *link)
{
	const char *text;
	enum reason reason = reason_by_link(net, link, &text);
	struct dev_verdict why = { .text = "" };
	char passed[PASSED_SIZE] = "";
	int err;

	take_name(netif, link->info.name);
	if (reason == REASON_NONE && !net->params.backend_cnt)
		reason = REASON_NO_BACK_END;
	if (reason != REASON_NONE) {
		refuse(net, netif, reason, text);
		return;
	}
	if (try_backends(net, netif, link, &why, passed) != 0) {
		refuse(net, netif, reason_of(&why), why.text);
		return;
	}
	err = start(net, netif);
	if (err) {
		forget_pool(netif->dev->region);
		netif->dev->ops->close(netif->dev);
		netif->dev = NULL;
		refuse(net, netif, REASON_INTERFACE_ERROR, strerror(-err));
		return;
	}
	netif->reason = REASON_NONE;
	netif->lower = netif->dev->vlan_id ? link->info.lower : 0;
	net->is_rpf_stale = true;
	log_info("%s is driven by %s (%s)%s; VMA_XDP_INTERFACES chooses interfaces",
		 netif->name, netif->dev->ops->name, netif->dev->mode, passed);
	if (net->params.wants_tso && !netif->dev->caps.tso_max)
		log_warn("%s does not cut segments of TCP by %s, so they are sent one by one, in spite of VMA_TSO=on",
			 netif->name, netif->dev->ops->name);
}

struct netif *netif_get(struct net *net, int ifindex)
{
	const struct link *link = link_tab_find(&net->view.links, ifindex);
	struct netif *netif = netif_find(net, ifindex);

	if (netif && (netif->dev ||
		      netif->refused_gen == net_view_route_gen(&net->view)))
		return netif;
	if (!link)
		return NULL;
	if (!netif)
		netif = add(net, ifindex, link->info.name);
	if (netif)
		open_netif(net, netif, link);
	return netif;
}

struct netif *netif_get_local(struct net *net)
{
	struct dev *dev = net->params.local_dev;
	struct netif *netif;

	if (!dev)
		return NULL;
	netif = netif_find(net, dev->ifindex);
	if (netif)
		return netif;
	netif = add(net, dev->ifindex, dev->name);
	if (!netif)
		return NULL;
	netif->dev = dev;
	netif->is_local = true;
	if (start(net, netif) != 0)
		netif->dev = NULL;
	return netif;
}

void netif_close(struct net *net, struct netif *netif)
{
	if (!netif->dev)
		return;
	paced_end_all(netif);
	netif->paced_refusals = 0;
	for (unsigned i = 0; i < net_stack_cnt(net); i++) {
		if (netif->rings[i])
			stack_remove_ring(net->stacks[i], netif->rings[i]);
		netif->rings[i] = NULL;
	}
	forget_pool(netif->dev->region);
	netif->dev->ops->close(netif->dev);
	netif->dev = NULL;
	if (netif->is_failing)
		atomic_fetch_sub(&net->failing_cnt, 1);
	netif->is_failing = false;
}

/* Whether it is still the VLAN that the device was made for: another one may have the
 * number of the interface. */
static bool is_of_vlan(const struct netif *netif, const struct link *link)
{
	bool is_vlan = link->info.kind == LINK_VLAN;

	return netif->dev->vlan_id == (is_vlan ? link->info.vlan_id : 0) &&
	       netif->lower == (is_vlan ? link->info.lower : 0);
}

/* Those that are active, by their names. */
static void say_ports(const struct netif *netif, const struct backend_bond *bond)
{
	char text[BACKEND_PORTS_MAX * (sizeof(bond->ports[0].name) + 1)] = "";
	size_t len = 0;

	for (unsigned i = 0; i < bond->port_cnt; i++)
		if (bond->active >> i & 1)
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %s",
						bond->ports[i].name);
	log_info("%s: active ports:%s", netif->name, len ? text : " none");
}

/* Takes over which ports are active. False: it is made of other ones now. */
static bool follow_bond(const struct net *net, struct netif *netif,
			const struct link *link)
{
	const struct link *bond_link = bond_of(net, link);
	struct backend_bond bond;

	if (!netif->bond.port_cnt)
		return true;
	if (!bond_link)
		return false;
	read_bond(net, bond_link, &bond);
	if (!is_same_bond(&netif->bond, &bond))
		return false;
	if (netif->bond.active != bond.active) {
		say_ports(netif, &bond);
		netif->dev->ops->ports_changed(netif->dev, bond.active);
	}
	netif->bond.active = bond.active;
	return true;
}

/* Takes over a new hardware address or MTU, or that of what is below. */
static int follow_link(const struct net *net, struct netif *netif,
		       const struct link *link)
{
	struct dev *dev = netif->dev;
	uint32_t rx_mtu = rx_mtu_of(net, link);

	if (memcmp(dev->mac, link->info.addr, sizeof(dev->mac)) == 0 &&
	    dev->mtu == link->info.mtu && dev->rx_mtu == rx_mtu)
		return 0;
	memcpy(dev->mac, link->info.addr, sizeof(dev->mac));
	dev->mtu = link->info.mtu;
	dev->rx_mtu = rx_mtu;
	log_dbg("%s: MTU %u, up to %u may come, address %02x:%02x:%02x:%02x:%02x:%02x",
		netif->name, dev->mtu, dev->rx_mtu, dev->mac[0], dev->mac[1], dev->mac[2],
		dev->mac[3], dev->mac[4], dev->mac[5]);
	return dev->ops->link_changed(dev);
}

/* Gives more frames to a ring that has run out of them, as many as it began with. */
static void feed_rings(struct net *net, struct netif *netif)
{
	for (unsigned i = 0; i < net_stack_cnt(net); i++) {
		struct ring *ring = netif->rings[i];
		uint32_t cnt = netif->dev->region->frame_cnt;
		int err;

		if (!ring || !stack_wants_region(net->stacks[i], ring))
			continue;
		if (frames_left(net) < cnt) {
			note_limit(net, netif);
			continue;
		}
		err = stack_add_region(net->stacks[i], ring, cnt);
		log_dbg("%s: another %u frames%s%s", netif->name, cnt,
			err ? ": " : "", err ? strerror(-err) : "");
	}
}

/* So long a device that has failed may wait for its connections. */
#define FAILING_NS (2 * NS_PER_SEC)

/* Those whose connections can leave in peace. */
static void begin_to_fail(struct net *net, struct netif *netif)
{
	netif->is_failing = true;
	netif->closes_at_ns = clock_monotonic_ns() + FAILING_NS;
	atomic_fetch_add(&net->failing_cnt, 1);
}

static bool has_failed(struct net *net, struct netif *netif)
{
	unsigned left = 0;

	for (unsigned i = 0; i < net_stack_cnt(net); i++)
		left += stack_leave(net->stacks[i], netif->ifindex);
	return !left || clock_monotonic_ns() >= netif->closes_at_ns;
}

/* Why the device is not that of this interface any more; NULL: it is. */
static const char *why_another(const struct net *net, struct netif *netif,
			       const struct link *link)
{
	const char *text;
	enum reason reason = reason_by_link(net, link, &text);

	if (reason != REASON_NONE)
		return *text ? text : reason_why(reason);
	if (!is_of_vlan(netif, link))
		return "it is another VLAN now";
	if (!follow_bond(net, netif, link))
		return "it is a bond of other ports now";
	if (has_vlans(net, netif) && !netif->dev->caps.bears_vlans)
		return "there are VLANs on it now";
	return NULL;
}

/* Why it cannot be driven any more; NULL: it can. */
static const char *why_no_more(const struct net *net, struct netif *netif,
			       const struct link *link)
{
	const char *text = link ? why_another(net, netif, link) : strerror(ENODEV);
	int err;

	if (text)
		return text;
	err = follow_link(net, netif, link);
	if (!err)
		err = netif->dev->ops->check(netif->dev);
	return err ? strerror(-err) : NULL;
}

bool netif_check(struct net *net, struct netif *netif)
{
	const struct link *link;
	const char *text;

	if (!netif->dev || netif->dev == net->params.local_dev)
		return false;
	if (netif->is_failing)
		return has_failed(net, netif);
	link = link_tab_find(&net->view.links, netif->ifindex);
	if (link)
		take_name(netif, link->info.name);
	text = why_no_more(net, netif, link);
	if (!text) {
		feed_rings(net, netif);
		return false;
	}
	log_warn("%s cannot be driven any more (%s); its sockets go on with the kernel",
		 netif->name, text);
	netif->reason = REASON_INTERFACE_ERROR;
	snprintf(netif->why, sizeof(netif->why), "%s, %s", netif->name, text);
	netif->refused_gen = net_view_route_gen(&net->view);
	if (!link || !netif->dev->caps.rules_outlast_failure)
		return true;
	begin_to_fail(net, netif);
	return false;
}

void netif_destroy_all(struct net *net)
{
	struct list *link;

	while ((link = list_pop_front(&net->netifs))) {
		struct netif *netif = LIST_ENTRY(link, struct netif, link);

		netif_close(net, netif);
		free(netif);
	}
}
