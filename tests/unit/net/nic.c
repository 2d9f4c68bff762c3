/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network over one interface, whose device and whose kernel do what a case says. */
#include "config.h"

#include "tests/unit/net/nic.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>

#include "tests/support/test.h"

struct net *net;
struct nic nic;

/* -- the kernel, of which nothing is heard ------------------------------------------ */

static struct netlink_conn *const a_conn = (void *)&net;

static int open_conn(const struct netlink_params *params UNUSED,
		     const struct net_sink *sink UNUSED, void *ctx UNUSED,
		     struct netlink_conn **conn_out)
{
	*conn_out = a_conn;
	return 0;
}

static void close_conn(struct netlink_conn *conn UNUSED)
{
}

static int event_fd(const struct netlink_conn *conn UNUSED)
{
	return nic.event_fd;
}

static int poll_nothing(struct netlink_conn *conn UNUSED)
{
	return nic.tables_err;
}

static bool is_synced(const struct netlink_conn *conn UNUSED)
{
	return true;
}

static int resolve(struct netlink_conn *conn UNUSED, int ifindex,
		   const struct ip_addr *addr UNUSED)
{
	CHECK_EQ(ifindex, NIC_IFINDEX);
	nic.resolve_cnt++;
	if (nic.while_resolving)
		nic.while_resolving();
	return nic.resolve_err;
}

static const struct netlink_ops netlink = {
	.resolve = resolve,
	.open = open_conn,
	.close = close_conn,
	.event_fd = event_fd,
	.poll = poll_nothing,
	.is_synced = is_synced,
};

/* -- the device --------------------------------------------------------------------- */

static unsigned poll_no_frame(struct ring *ring UNUSED,
			      struct pkt **batch UNUSED, unsigned cnt UNUSED)
{
	atomic_fetch_add(&nic.polls, 1);
	return 0;
}

static unsigned ring_fds(struct ring *ring UNUSED, int *fds, unsigned cnt UNUSED)
{
	*fds = nic.ring_fd;
	return nic.ring_fd >= 0;
}

static void close_ring(struct ring *ring UNUSED)
{
	nic.gen_at_close = net_view_gen(&net->view);
	nic.rings--;
}

static struct ring_ops ring_ops = {
	.rx_poll = poll_no_frame,
	.fds = ring_fds,
	.close = close_ring,
};

static int ring_create(struct dev *dev, struct pkt_pool *pool,
		       struct ring **ring_out)
{
	if (nic.ring_err)
		return nic.ring_err;
	nic.ring.ops = &ring_ops;
	nic.ring.dev = dev;
	nic.ring.pool = pool;
	nic.ring.counts = &nic.ring.own_counts;
	ring_set_busy(&nic.ring);
	nic.rings++;
	*ring_out = &nic.ring;
	return 0;
}

static bool has_sent(struct ring *ring UNUSED)
{
	return nic.is_sent;
}

static int set_pace(struct ring *ring UNUSED, const struct ring_pace *pace)
{
	if (!nic.paced_err)
		nic.pace = *pace;
	return nic.paced_err;
}

static void close_paced(struct ring *ring UNUSED)
{
	nic.paced_ended++;
}

static struct ring_ops paced_ops = {
	.tx_is_done = has_sent,
	.set_pace = set_pace,
	.close = close_paced,
};

static int paced_ring_create(struct dev *dev, const struct ring_pace *pace,
			     struct pkt_pool *pool, struct ring **ring_out)
{
	struct ring *ring = &nic.paced_rings[nic.paced_begun];

	if (nic.paced_err)
		return nic.paced_err;
	CHECK(nic.paced_begun < NIC_PACED_MAX);
	nic.paced_frames = pool->free_cnt;
	ring->ops = &paced_ops;
	ring->dev = dev;
	ring->pool = pool;
	ring->counts = &ring->own_counts;
	ring->is_paced = true;
	ring_set_silent(ring);
	nic.pace = *pace;
	nic.paced_begun++;
	*ring_out = ring;
	return 0;
}

static int flow_add(struct dev *dev UNUSED, const struct flow_rule *rule,
		    struct ring *ring, uint32_t tag)
{
	CHECK(ring == (rule->verdict == FLOW_TO_KERNEL ? NULL : &nic.ring));
	if (nic.is_full || (nic.room && nic.added - nic.removed >= nic.room))
		return -ENOSPC;
	nic.rule = *rule;
	nic.tag = tag;
	nic.added++;
	if (nic.at_rule)
		nic.at_rule();
	return 0;
}

static void flow_remove(struct dev *dev UNUSED,
			const struct flow_rule *rule UNUSED)
{
	nic.removed++;
	if (nic.at_rule)
		nic.at_rule();
}

static int link_changed(struct dev *dev UNUSED)
{
	nic.changes++;
	return 0;
}

static int region_add(struct dev *dev, uint32_t frame_cnt)
{
	struct region *region;

	CHECK_EQ(region_create(frame_cnt, 2048, REGION_SMALL_PAGES, &region), 0);
	nic.region_adds++;
	return region_set_add(&dev->regions, region);
}

static int check(struct dev *dev UNUSED)
{
	return nic.health;
}

static void close_dev(struct dev *dev)
{
	region_set_put(&dev->regions);
	nic.open_cnt--;
}

static struct dev_ops dev_ops = {
	.name = "script",
	.ring_create = ring_create,
	.paced_ring_create = paced_ring_create,
	.flow_add = flow_add,
	.flow_remove = flow_remove,
	.region_add = region_add,
	.link_changed = link_changed,
	.check = check,
	.close = close_dev,
};

static int open_dev(struct backend *backend UNUSED,
		    const struct backend_request *request,
		    struct dev **dev_out, struct dev_verdict *why_out)
{
	nic.ask_cnt++;
	if (nic.health) {
		*why_out = nic.verdict;
		return nic.health;
	}
	nic.open_cnt++;
	nic.dev.ops = &dev_ops;
	nic.dev.ifindex = request->ifindex;
	nic.dev.mtu = request->mtu;
	nic.dev.rx_mtu = request->rx_mtu;
	nic.dev.vlan_id = request->vlan_id;
	nic.vlan_id = request->vlan_id;
	nic.lower = request->lower;
	snprintf(nic.name, sizeof(nic.name), "%s", request->name);
	nic.has_vlans = request->has_vlans;
	nic.has_bond = request->bond;
	nic.dev.caps.bears_vlans = nic.bears_vlans;
	snprintf(nic.lower_name, sizeof(nic.lower_name), "%s",
		 request->lower_name ? request->lower_name : "");
	memcpy(nic.dev.mac, request->mac, sizeof(nic.dev.mac));
	nic.frame_cnt = request->frame_cnt;
	CHECK_EQ(region_create(request->frame_cnt, 2048, REGION_SMALL_PAGES,
			       &nic.dev.region),
		 0);
	CHECK_EQ(region_set_add(&nic.dev.regions, nic.dev.region), 0);
	*dev_out = &nic.dev;
	return 0;
}

static struct backend backend = { .name = "script", .open = open_dev };

/* -- a case ------------------------------------------------------------------------- */

struct ip_addr nic_addr(void)
{
	return ip_addr_from_v4(htobe32(0x0a000001));
}

struct link_info nic_link(void)
{
	return (struct link_info){
		.ifindex = NIC_IFINDEX,
		.name = "eth7",
		.flags = IFF_UP | IFF_RUNNING,
		.mtu = 1500,
		.hw_type = ARPHRD_ETHER,
		.addr_len = 6,
	};
}

struct link_info nic_vlan(void)
{
	struct link_info lower = nic_link(), vlan = nic_link();

	lower.ifindex = 3;
	strcpy(lower.name, "eth3");
	CHECK(link_tab_set(&net->view.links, &lower) >= 0);
	vlan.kind = LINK_VLAN;
	vlan.vlan_id = 100;
	vlan.vlan_proto = 0x8100;
	vlan.lower = lower.ifindex;
	return vlan;
}

static void add_interface(void)
{
	struct link_info link = nic_link();
	struct addr_info addr = {
		.local = nic_addr(),
		.prefix = nic_addr(),
		.ifindex = NIC_IFINDEX,
		.prefix_len = IP_PREFIX_V4 + 24,
	};

	struct route_hop hop = { .ifindex = NIC_IFINDEX, .weight = 1 };
	struct route route = {
		.dst = ip_addr_from_v4(htobe32(0x0a000000)),
		.prefix_len = IP_PREFIX_V4 + 24,
		.table = RT_TABLE_MAIN,
		.type = RTN_UNICAST,
		.scope = RT_SCOPE_LINK,
		.hop_cnt = 1,
		.hops = &hop,
	};
	struct policy policy = {
		.priority = 32766,
		.table = RT_TABLE_MAIN,
		.action = FR_ACT_TO_TBL,
		.uid_last = UINT32_MAX,
		.suppress_group = -1,
		.suppress_len = -1,
	};

	CHECK_EQ(link_tab_set(&net->view.links, &link), 1);
	CHECK_EQ(addr_tab_set(&net->view.addrs, &addr), 1);
	CHECK_EQ(route_tab_insert(&net->view.routes, &route, ROUTE_LAST), 1);
	CHECK_EQ(policy_tab_add(&net->view.policies, &policy), 0);
}

void nic_begin(const char *interfaces)
{
	struct net_params params = {
		.stack = { .lock_kind = STACK_LOCK_SPIN, .poll_batch = 16 },
		.backends = { &backend },
		.backend_cnt = 1,
		.netlink = &netlink,
		.interfaces = interfaces,
	};

	memset(&nic, 0, sizeof(nic));
	nic.verdict.refusal = DEV_REFUSED_ERROR;
	nic.event_fd = -1;
	nic.ring_fd = -1;
	ring_ops_fill(&ring_ops);
	ring_ops_fill(&paced_ops);
	dev_ops_fill(&dev_ops);
	CHECK_EQ(net_create(&params, &net), 0);
	add_interface();
}

void nic_end(void)
{
	net_destroy(net);
	CHECK_EQ(nic.rings, 0);
	CHECK_EQ(nic.open_cnt, 0);
}
