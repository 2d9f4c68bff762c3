/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network over one interface, whose device and whose kernel do what a case says. */
#include "config.h"

#include "net/net.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>

#include "pkt/wire.h"
#include "tests/support/test.h"

enum { IFINDEX = 7, FRAMES = 64, PORT = 7000 };

static struct net *net;

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

static int no_fd(const struct netlink_conn *conn UNUSED)
{
	return -1;
}

static int poll_nothing(struct netlink_conn *conn UNUSED)
{
	return 0;
}

static bool is_synced(const struct netlink_conn *conn UNUSED)
{
	return true;
}

static const struct netlink_ops netlink = {
	.open = open_conn,
	.close = close_conn,
	.event_fd = no_fd,
	.poll = poll_nothing,
	.is_synced = is_synced,
};

/* -- the device --------------------------------------------------------------------- */

static struct {
	struct dev dev;
	struct ring ring;
	unsigned added, removed, rings;
	/* 0: it works */
	int health;
	/* the view's generation when the ring was closed */
	uint64_t gen_at_close;
} nic;

static unsigned poll_no_frame(struct ring *ring UNUSED,
			      struct pkt **batch UNUSED, unsigned cnt UNUSED)
{
	return 0;
}

static void close_ring(struct ring *ring UNUSED)
{
	nic.gen_at_close = net_view_gen(&net->view);
	nic.rings--;
}

static struct ring_ops ring_ops = {
	.rx_poll = poll_no_frame,
	.close = close_ring,
};

static int ring_create(struct dev *dev, struct pkt_pool *pool,
		       struct ring **ring_out)
{
	nic.ring.ops = &ring_ops;
	nic.ring.dev = dev;
	nic.ring.pool = pool;
	nic.ring.counts = &nic.ring.own_counts;
	ring_set_busy(&nic.ring);
	nic.rings++;
	*ring_out = &nic.ring;
	return 0;
}

static int flow_add(struct dev *dev UNUSED, const struct flow_rule *rule,
		    struct ring *ring, uint32_t tag UNUSED)
{
	CHECK(ring == &nic.ring);
	CHECK_EQ(rule->dst_port, htobe16(PORT));
	nic.added++;
	return 0;
}

static void flow_remove(struct dev *dev UNUSED,
			const struct flow_rule *rule UNUSED)
{
	nic.removed++;
}

static int check(struct dev *dev UNUSED)
{
	return nic.health;
}

static void close_dev(struct dev *dev)
{
	region_set_put(&dev->regions);
}

static struct dev_ops dev_ops = {
	.name = "script",
	.ring_create = ring_create,
	.flow_add = flow_add,
	.flow_remove = flow_remove,
	.check = check,
	.close = close_dev,
};

static int open_dev(struct backend *backend UNUSED,
		    const struct backend_request *request,
		    struct dev **dev_out, struct dev_verdict *why_out)
{
	if (nic.health) {
		*why_out = (struct dev_verdict){ .refusal = DEV_REFUSED_ERROR,
						 .err = nic.health };
		return nic.health;
	}
	nic.dev.ops = &dev_ops;
	nic.dev.ifindex = request->ifindex;
	nic.dev.mtu = request->mtu;
	memcpy(nic.dev.mac, request->mac, sizeof(nic.dev.mac));
	CHECK_EQ(region_create(FRAMES, 2048, REGION_SMALL_PAGES,
			       &nic.dev.region),
		 0);
	CHECK_EQ(region_set_add(&nic.dev.regions, nic.dev.region), 0);
	*dev_out = &nic.dev;
	return 0;
}

static struct backend backend = { .name = "script", .open = open_dev };

/* -- a case ------------------------------------------------------------------------- */

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	pkt_put(pkt);
}

static struct ip_addr own_addr(void)
{
	return ip_addr_from_v4(htobe32(0x0a000001));
}

static void add_interface(void)
{
	struct link_info link = {
		.ifindex = IFINDEX,
		.name = "eth7",
		.flags = IFF_UP | IFF_RUNNING,
		.mtu = 1500,
		.hw_type = ARPHRD_ETHER,
		.addr_len = 6,
	};
	struct addr_info addr = {
		.local = own_addr(),
		.prefix = own_addr(),
		.ifindex = IFINDEX,
		.prefix_len = IP_PREFIX_V4 + 24,
	};

	CHECK_EQ(link_tab_set(&net->view.links, &link), 1);
	CHECK_EQ(addr_tab_set(&net->view.addrs, &addr), 1);
}

static void begin(void)
{
	struct net_params params = {
		.stack = { .lock_kind = STACK_LOCK_SPIN, .poll_batch = 16 },
		.backends = { &backend },
		.backend_cnt = 1,
		.netlink = &netlink,
		.interfaces = "all",
	};

	memset(&nic, 0, sizeof(nic));
	ring_ops_fill(&ring_ops);
	dev_ops_fill(&dev_ops);
	CHECK_EQ(net_create(&params, &net), 0);
	add_interface();
}

static void end(void)
{
	net_destroy(net);
	CHECK_EQ(nic.rings, 0);
}

struct receiver {
	struct endpoint end;
	struct attachment att;
	struct stats_handle stats;
};

static enum reason attach(struct receiver *r)
{
	struct attach_where where = {
		.stack = net_choose_stack(net),
		.proto = WIRE_PROTO_UDP,
		.local = own_addr(),
		.local_port = htobe16(PORT),
		.is_shared = true,
		.stats = &r->stats,
		.decider = STATS_BY_BIND,
	};

	memset(r, 0, sizeof(*r));
	endpoint_init(&r->end, input);
	stats_socket_open(&r->stats, -1, 0, WIRE_PROTO_UDP);
	return net_attach(net, &r->att, &r->end, &where);
}

static void detach(struct receiver *r)
{
	net_detach(net, &r->att);
	stats_socket_close(&r->stats);
}

/* A rule is the device's once, however many sockets it is for, and goes with the last. */
TEST(sockets_share_a_flow)
{
	struct receiver one, two;

	begin();
	CHECK_EQ(attach(&one), REASON_NONE);
	CHECK_EQ(attach(&two), REASON_NONE);
	CHECK_EQ(nic.added, 1);
	CHECK(one.end.is_reachable && two.end.is_reachable);
	detach(&one);
	CHECK_EQ(nic.removed, 0);
	CHECK(!one.end.is_reachable);
	detach(&two);
	CHECK_EQ(nic.removed, 1);
	end();
}

/* Senders look under the stack's lock whether a destination still holds, and then use its
 * ring: none may find one valid when the ring goes. */
TEST(destinations_end_before_their_ring)
{
	struct receiver r;
	uint64_t gen;

	begin();
	CHECK_EQ(attach(&r), REASON_NONE);
	CHECK_EQ(nic.rings, 1);
	gen = net_view_gen(&net->view);
	nic.health = -ENODEV;
	net_check(net);
	CHECK_EQ(nic.rings, 0);
	CHECK(nic.gen_at_close != gen);
	/* the socket waits for another interface */
	CHECK(attachment_is_made(&r.att));
	detach(&r);
	end();
}

/* It is driven again when it works again and something has changed. */
TEST(an_interface_comes_back)
{
	struct receiver r;

	begin();
	CHECK_EQ(attach(&r), REASON_NONE);
	nic.health = -ENODEV;
	net_check(net);
	nic.health = 0;
	net_view_routes_changed(&net->view);
	net_check(net);
	CHECK_EQ(nic.rings, 1);
	CHECK_EQ(nic.added, 2);
	detach(&r);
	end();
}
