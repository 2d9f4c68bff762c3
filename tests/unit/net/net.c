/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network over one interface, whose device and whose kernel do what a case says. */
#include "config.h"

#include "net/net.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>

#include "net/dst_lookup.h"
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

/* What the kernel is asked, and what happens meanwhile. */
static unsigned asked_cnt;
static void (*while_asked)(void);

static int resolve(struct netlink_conn *conn UNUSED, int ifindex,
		   const struct ip_addr *addr UNUSED)
{
	CHECK_EQ(ifindex, 7);
	asked_cnt++;
	if (while_asked)
		while_asked();
	return 0;
}

static const struct netlink_ops netlink = {
	.resolve = resolve,
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
	asked_cnt = 0;
	while_asked = NULL;
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

/* -- destinations for who sends under the lock ------------------------------------- */

static struct {
	struct dst dst;
	struct dst_lookup lookup;
	unsigned answers;
} asker;

static void take_answer(struct dst_lookup *lookup, struct stack *stack)
{
	CHECK(lookup == &asker.lookup);
	CHECK(stack_lock_is_mine(&stack->lock));
	asker.answers++;
}

static struct ip_addr peer_addr(void)
{
	return ip_addr_from_v4(htobe32(0x0a000002));
}

/* 10.0.0.0/24 by the interface. */
static void add_route(void)
{
	struct route_hop hop = { .ifindex = IFINDEX, .weight = 1 };
	struct route route = {
		.table = RT_TABLE_MAIN,
		.type = RTN_UNICAST,
		.scope = RT_SCOPE_LINK,
		.prefix_len = IP_PREFIX_V4 + 24,
		.hops = &hop,
		.hop_cnt = 1,
	};
	struct policy policy = {
		.priority = 32766,
		.table = RT_TABLE_MAIN,
		.action = FR_ACT_TO_TBL,
		.uid_last = UINT32_MAX,
		.suppress_len = -1,
		.suppress_group = -1,
	};
	struct ip_addr addr = own_addr();

	route.dst = ip_addr_masked(&addr, route.prefix_len);
	CHECK_EQ(policy_tab_add(&net->view.policies, &policy), 0);
	CHECK_EQ(route_tab_insert(&net->view.routes, &route, ROUTE_FIRST), 1);
	net_view_routes_changed(&net->view);
}

static void set_neighbour(uint16_t state)
{
	struct neigh_info info = {
		.addr = peer_addr(),
		.ifindex = IFINDEX,
		.state = state,
		.hw_len = state == NUD_REACHABLE ? 6 : 0,
		.hw_addr = "peer",
	};

	CHECK(neigh_tab_set(&net->view.neighs, &info) >= 0);
	net_view_neighs_changed(&net->view);
}

/* The kernel tells that, and we hear of it. */
static void hear_of_neighbour(uint16_t state)
{
	set_neighbour(state);
	net_events(net);
}

static void begin_lookup(void)
{
	struct stack *stack = net_choose_stack(net);

	stack_lock(stack);
	dst_lookup_begin_locked(stack, &asker.lookup);
	CHECK_EQ(asker.answers, 0);
	stack_unlock(stack);
}

static void begin_asker(void)
{
	begin();
	add_route();
	memset(&asker, 0, sizeof(asker));
	asker.dst.query = (struct dst_query){
		.proto = WIRE_PROTO_TCP,
		.stack = net_choose_stack(net),
		.remote = peer_addr(),
		.remote_port = htobe16(80),
		.local_port = htobe16(PORT),
		.df = DST_DF_ALWAYS,
	};
	dst_lookup_init(&asker.lookup, &asker.dst, take_answer);
}

static void check_way(void)
{
	CHECK_EQ(asker.answers, 1);
	CHECK(asker.dst.ring == &nic.ring);
	CHECK_EQ(asker.dst.packet_max, 1500);
	CHECK_MEM(asker.dst.header.eth.dst, "peer", 5);
	CHECK_EQ(asker.dst.header.ip.proto, WIRE_PROTO_TCP);
	CHECK(ip_addr_v4(&asker.dst.query.remote) == asker.dst.header.ip.dst);
	CHECK(!dst_lookup_is_pending(&asker.lookup));
	/* it can be asked for again */
	asker.answers = 0;
	begin_lookup();
	CHECK_EQ(asker.answers, 1);
}

TEST(a_destination_is_looked_up_at_the_unlock)
{
	begin_asker();
	nic.dev.caps.tx_len_max = 2000;
	set_neighbour(NUD_REACHABLE);
	begin_lookup();
	CHECK_EQ(asked_cnt, 0);
	check_way();
	end();
}

/* The kernel's answer comes later, and is told at once. */
TEST(an_unknown_neighbour_is_asked_for)
{
	begin_asker();
	nic.dev.caps.tx_len_max = 2000;
	begin_lookup();
	CHECK_EQ(asked_cnt, 1);
	CHECK(dst_lookup_is_pending(&asker.lookup));
	hear_of_neighbour(NUD_INCOMPLETE);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_REACHABLE);
	check_way();
	end();
}

/* Nobody has answered the kernel. One that has failed before is asked for anew. */
TEST(a_neighbour_that_is_not_there_is_an_answer)
{
	begin_asker();
	set_neighbour(NUD_FAILED);
	begin_lookup();
	CHECK_EQ(asked_cnt, 1);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_INCOMPLETE);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_FAILED);
	CHECK_EQ(asker.answers, 1);
	CHECK(!asker.dst.ring);
	CHECK_EQ(asker.dst.reason, REASON_NO_NEIGHBOUR);
	end();
}

static void answer_at_once(void)
{
	while_asked = NULL;
	set_neighbour(NUD_REACHABLE);
}

/* The news are there before the request waits for them: it is not forgotten. */
TEST(news_that_come_during_the_look_are_not_missed)
{
	begin_asker();
	nic.dev.caps.tx_len_max = 2000;
	while_asked = answer_at_once;
	begin_lookup();
	check_way();
	end();
}

static void cancel(void)
{
	struct stack *stack = net_choose_stack(net);

	stack_lock(stack);
	CHECK(dst_lookup_is_pending(&asker.lookup));
	dst_lookup_cancel_locked(stack, &asker.lookup);
	stack_unlock(stack);
	/* its owner is gone */
	memset(&asker, 0xee, sizeof(asker));
	asker.answers = 0;
}

TEST(a_request_is_cancelled_while_it_is_looked_up)
{
	begin_asker();
	while_asked = cancel;
	begin_lookup();
	CHECK_EQ(asked_cnt, 1);
	hear_of_neighbour(NUD_REACHABLE);
	CHECK_EQ(asker.answers, 0);
	end();
}

TEST(a_request_is_cancelled_while_it_waits)
{
	begin_asker();
	begin_lookup();
	cancel();
	hear_of_neighbour(NUD_REACHABLE);
	CHECK_EQ(asker.answers, 0);
	end();
}

/* The control mutex is the outermost lock: who has it, and releases a stack's, looks up
 * afterwards. */
TEST(who_has_the_control_mutex_looks_up_later)
{
	begin_asker();
	nic.dev.caps.tx_len_max = 2000;
	set_neighbour(NUD_REACHABLE);
	net_control_acquire(net);
	begin_lookup();
	CHECK_EQ(asker.answers, 0);
	CHECK(dst_lookup_is_pending(&asker.lookup));
	net_control_release(net);
	check_way();
	end();
}
