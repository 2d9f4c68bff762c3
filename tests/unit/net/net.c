/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attachments, flows and interfaces of a network. */
#include "config.h"

#include "net/net.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <net/if.h>
#include <stdio.h>

#include "net/flow.h"
#include "pkt/wire.h"
#include "tests/support/inherited.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"
#include "tests/unit/nl/build.h"

enum { PORT = 7000 };

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	pkt_put(pkt);
}

struct receiver {
	struct endpoint end;
	struct attachment att;
	struct stats_handle stats;
};

static enum reason attach_by(struct receiver *r, uint8_t proto, struct ip_addr local,
			     int ifindex)
{
	struct attach_where where = {
		.stack = net_choose_stack(net),
		.proto = proto,
		.local = local,
		.ifindex = ifindex,
		.local_port = htobe16(PORT),
		.is_shared = true,
		.stats = &r->stats,
		.decider = STATS_BY_BIND,
	};

	memset(r, 0, sizeof(*r));
	endpoint_init(&r->end, input);
	stats_socket_open(&r->stats, -1, 0, proto);
	return net_attach(net, &r->att, &r->end, &where);
}

static enum reason attach_as(struct receiver *r, uint8_t proto)
{
	return attach_by(r, proto, nic_addr(), 0);
}

static enum reason attach(struct receiver *r)
{
	return attach_as(r, WIRE_PROTO_UDP);
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

	nic_begin("all");
	CHECK_EQ(attach(&one), REASON_NONE);
	CHECK_EQ(attach(&two), REASON_NONE);
	CHECK_EQ(nic.added, 1);
	CHECK_EQ(nic.rule.dst_port, htobe16(PORT));
	CHECK(one.end.is_reachable && two.end.is_reachable);
	detach(&one);
	CHECK_EQ(nic.removed, 0);
	CHECK(!one.end.is_reachable);
	detach(&two);
	CHECK_EQ(nic.removed, 1);
	nic_end();
}

/* What comes to an interface of a VRF is for those who name one. */
TEST(a_vrf_is_for_those_who_name_it)
{
	struct link_info link = nic_link();
	struct receiver any, named, bound;

	nic_begin("all");
	/* from before, by its address */
	CHECK_EQ(attach(&bound), REASON_NONE);
	link.master = 4;
	link.master_kind = LINK_VRF;
	CHECK_EQ(link_tab_set(&net->view.links, &link), 1);
	net_view_routes_changed(&net->view);
	net_check(net);
	CHECK_EQ(nic.removed, 1);
	detach(&bound);
	CHECK(attach_by(&any, WIRE_PROTO_UDP, (struct ip_addr){ 0 }, 0) != REASON_NONE);
	stats_socket_close(&any.stats);
	CHECK_EQ(attach_by(&named, WIRE_PROTO_UDP, (struct ip_addr){ 0 }, NIC_IFINDEX),
		 REASON_NONE);
	CHECK_EQ(nic.added, 2);
	detach(&named);
	nic_end();
}

/* Each connection has its own, so there may be many. */
TEST(children_have_nothing_of_flows)
{
	struct receiver one;
	const struct held_flow *held;

	nic_begin("all");
	CHECK_EQ(attach(&one), REASON_NONE);
	held = LIST_ENTRY(one.att.flows.next, struct held_flow, link);
	CHECK(!is_inherited(held));
	CHECK(!is_inherited(held->flow));
	detach(&one);
	nic_end();
}

/* Senders look under the stack's lock whether a destination still holds, and then use its
 * ring: none may find one valid when the ring goes. */
TEST(destinations_end_before_their_ring)
{
	struct receiver r;
	uint64_t gen;

	nic_begin("all");
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
	nic_end();
}

static unsigned polls_before;

static void is_not_polled_yet(void)
{
	CHECK_EQ(nic.polls, polls_before);
}

/* When no flow brings anything more, what has come still goes to the sockets. */
TEST(a_ring_is_emptied_before_it_goes)
{
	struct receiver r;

	nic_begin("all");
	CHECK_EQ(attach(&r), REASON_NONE);
	polls_before = nic.polls;
	nic.at_rule = is_not_polled_yet;
	nic.health = -ENODEV;
	net_check(net);
	CHECK_EQ(nic.removed, 1);
	CHECK_EQ(nic.rings, 0);
	CHECK(nic.polls > polls_before);
	detach(&r);
	nic_end();
}

static unsigned connection_cnt;

static unsigned leave(struct stack_engine *engine UNUSED, int ifindex)
{
	CHECK_EQ(ifindex, NIC_IFINDEX);
	return connection_cnt;
}

static void nothing_to_run(struct stack_engine *engine UNUSED,
			   struct stack *stack UNUSED)
{
}

/* The rules of a device that has failed keep its frames from the kernel, so those of TCP
 * stay until the connections have gone back. */
TEST(a_device_that_failed_waits_for_its_connections)
{
	struct stack_engine engine = { .leave = leave };
	struct receiver datagrams, listener;
	uint64_t gen;

	nic_begin("all");
	stack_engine_init(&engine, nothing_to_run);
	atomic_store(&net->stacks[0]->tcp, &engine);
	CHECK_EQ(attach(&datagrams), REASON_NONE);
	CHECK_EQ(attach_as(&listener, WIRE_PROTO_TCP), REASON_NONE);
	nic.dev.caps.rules_outlast_failure = true;
	CHECK_EQ(nic.added, 2);
	connection_cnt = 2;
	nic.health = -EIO;
	gen = net_view_gen(&net->view);
	net_check(net);
	CHECK(net_is_failing(net));
	CHECK(!net_drives(net, NIC_IFINDEX));
	CHECK(gen != net_view_gen(&net->view));
	CHECK_EQ(nic.removed, 1);
	net_close_failed(net);
	CHECK_EQ(nic.rings, 1);
	CHECK_EQ(nic.removed, 1);
	connection_cnt = 0;
	net_close_failed(net);
	CHECK(!net_is_failing(net));
	CHECK_EQ(nic.rings, 0);
	CHECK_EQ(nic.removed, 2);
	detach(&listener);
	detach(&datagrams);
	atomic_store(&net->stacks[0]->tcp, NULL);
	nic_end();
}

/* It is driven again when it works again and something has changed. */
TEST(an_interface_comes_back)
{
	struct receiver r;

	nic_begin("all");
	CHECK_EQ(attach(&r), REASON_NONE);
	nic.health = -ENODEV;
	net_check(net);
	nic.health = 0;
	net_view_routes_changed(&net->view);
	net_check(net);
	CHECK_EQ(nic.rings, 1);
	CHECK_EQ(nic.added, 2);
	detach(&r);
	nic_end();
}

/* A ring that says which rule has brought what gets a tag for each rule, as long as the rule
 * is there. */
TEST(rules_have_tags_where_the_ring_says_them)
{
	struct receiver one, two;
	uint32_t tag;

	nic_begin("all");
	CHECK_EQ(attach(&one), REASON_NONE);
	CHECK_EQ(nic.tag, 0);
	detach(&one);
	nic.ring.has_tags = true;
	CHECK_EQ(attach(&one), REASON_NONE);
	tag = nic.tag;
	CHECK(tag);
	CHECK_EQ(attach_as(&two, WIRE_PROTO_TCP), REASON_NONE);
	CHECK(nic.tag && nic.tag != tag);
	detach(&one);
	nic.is_full = true;
	CHECK_EQ(attach(&one), REASON_RULES_FULL);
	nic.is_full = false;
	stats_socket_close(&one.stats);
	CHECK_EQ(attach(&one), REASON_NONE);
	CHECK_EQ(nic.tag, tag);
	detach(&one);
	detach(&two);
	nic_end();
}

static struct flow_key peer(unsigned i)
{
	return (struct flow_key){
		.local = nic_addr(),
		.local_port = htobe16(PORT),
		.remote = ip_addr_from_v4(htobe32(0x0a000002 + i % 3)),
		.remote_port = htobe16((uint16_t)(1024 + i / 3)),
	};
}

static struct receiver *moved;

/* What peer(0) sends: some rule is for it, and it finds its endpoint. */
static void is_heard(void)
{
	struct demux *demux = &net_choose_stack(net)->demux;
	struct flow_key key = peer(0);

	CHECK(nic.added > nic.removed);
	CHECK(demux_find(demux, &key, WIRE_PROTO_UDP, NIC_IFINDEX) ==
	      &moved->end);
}

/* Connects it to the peer; NULL: disconnects it. */
static enum reason move(struct receiver *r, const struct flow_key *to)
{
	struct attach_where where = r->att.where;

	where.remote = to ? to->remote : ip_addr_from_v4(0);
	where.remote_port = to ? to->remote_port : 0;
	where.decider = STATS_BY_CONNECT;
	return net_attach(net, &r->att, &r->end, &where);
}

/* What comes by the old name and by the new one comes to it all the time; what comes by the
 * old one alone does not any more. */
TEST(a_name_changes_without_a_gap)
{
	struct flow_key one = peer(0), other = peer(1);
	struct demux *demux;
	struct receiver r;

	nic_begin("all");
	demux = &net_choose_stack(net)->demux;
	moved = &r;
	CHECK_EQ(attach(&r), REASON_NONE);
	nic.at_rule = is_heard;
	CHECK_EQ(move(&r, &one), REASON_NONE);
	CHECK_EQ(nic.added, 2);
	CHECK_EQ(nic.removed, 1);
	CHECK_EQ(nic.rule.src_port, one.remote_port);
	CHECK(!demux_find(demux, &other, WIRE_PROTO_UDP, NIC_IFINDEX));
	CHECK_EQ(move(&r, &one), REASON_NONE);
	CHECK_EQ(nic.added, 2);
	CHECK_EQ(move(&r, NULL), REASON_NONE);
	CHECK_EQ(nic.added, 3);
	CHECK_EQ(nic.removed, 2);
	CHECK(demux_find(demux, &other, WIRE_PROTO_UDP, NIC_IFINDEX) == &r.end);
	nic.at_rule = NULL;
	detach(&r);
	CHECK_EQ(nic.removed, 3);
	nic_end();
}

/* Where the kernel finds no way to the peer for such a socket, nothing comes from there. */
TEST(the_way_is_that_of_the_sockets_mark)
{
	struct policy policy = rule(1, 0);
	struct flow_key one = peer(0);
	struct receiver r;

	nic_begin("all");
	policy.mark = policy.mark_mask = 7;
	policy.action = FR_ACT_UNREACHABLE;
	CHECK_EQ(policy_tab_add(&net->view.policies, &policy), 0);
	net_view_routes_changed(&net->view);
	CHECK_EQ(attach(&r), REASON_NONE);
	CHECK_EQ(move(&r, &one), REASON_NONE);
	r.att.where.mark = 7;
	CHECK(move(&r, &one) != REASON_NONE);
	stats_socket_close(&r.stats);
	nic_end();
}

/* Where there is no room for both, the old rule goes first; where there is none at all, the
 * socket is the kernel's. */
TEST(a_name_changes_without_room)
{
	struct flow_key one = peer(0);
	struct receiver r;

	nic_begin("all");
	nic.room = 1;
	CHECK_EQ(attach(&r), REASON_NONE);
	CHECK_EQ(move(&r, &one), REASON_NONE);
	CHECK_EQ(nic.added, 2);
	CHECK_EQ(nic.removed, 1);
	CHECK(r.end.is_reachable);
	nic.is_full = true;
	CHECK_EQ(move(&r, NULL), REASON_RULES_FULL);
	CHECK_EQ(nic.added, nic.removed);
	CHECK(!r.end.is_reachable && !attachment_is_made(&r.att));
	detach(&r);
	nic_end();
}

static void except_all(struct receiver *r, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		struct flow_key key = peer(i);

		CHECK_EQ(net_except(net, &r->att, &key), 0);
	}
}

/* Each is the kernel's once, ends alone, or with the attachment. */
TEST(connections_of_a_port_are_excepted)
{
	enum { CNT = 5000 };
	struct flow_key some = peer(CNT / 2);
	struct receiver r;

	nic_begin("all");
	CHECK_EQ(attach(&r), REASON_NONE);
	CHECK_EQ(net_except(net, &r.att, &some), -EOPNOTSUPP);
	nic.dev.caps.kernel_verdicts = true;
	except_all(&r, CNT);
	CHECK_EQ(nic.added, 1 + CNT);
	except_all(&r, CNT);
	CHECK_EQ(nic.added, 1 + CNT);
	net_unexcept(net, &r.att, &some);
	net_unexcept(net, &r.att, &some);
	CHECK_EQ(nic.removed, 1);
	except_all(&r, CNT);
	CHECK_EQ(nic.added, 2 + CNT);
	detach(&r);
	CHECK_EQ(nic.removed, 2 + CNT);
	nic_end();
}

/* The kernel's connections are the kernel's also where the port's rule comes back, or comes
 * to another interface. */
TEST(connections_are_excepted_again)
{
	enum { CNT = 3 };
	struct receiver r;

	nic_begin("all");
	nic.dev.caps.kernel_verdicts = true;
	CHECK_EQ(attach(&r), REASON_NONE);
	except_all(&r, CNT);
	CHECK_EQ(nic.added, 1 + CNT);
	for (int i = 2; i < 4; i++) {
		struct flow_key gone = peer(i - 2);

		nic.health = -ENODEV;
		net_check(net);
		CHECK_EQ(nic.added, nic.removed);
		net_unexcept(net, &r.att, &gone);
		nic.health = 0;
		net_view_routes_changed(&net->view);
		nic.added = nic.removed = 0;
		net_check(net);
		CHECK_EQ(nic.added, 1 + CNT - (i - 1));
	}
	detach(&r);
	CHECK_EQ(nic.added, nic.removed);
	nic_end();
}

/* What no device has room for, or can say, is not remembered either: any number may come. */
TEST(connections_without_room_are_not_excepted)
{
	struct flow_key one = peer(0), other = peer(1);
	struct receiver r;

	nic_begin("all");
	CHECK_EQ(attach(&r), REASON_NONE);
	CHECK_EQ(net_except(net, &r.att, &one), -EOPNOTSUPP);
	nic.dev.caps.kernel_verdicts = true;
	nic.is_full = true;
	CHECK_EQ(net_except(net, &r.att, &other), -EOPNOTSUPP);
	CHECK(list_is_empty(&r.att.exceptions));
	nic.is_full = false;
	CHECK_EQ(net_except(net, &r.att, &other), 0);
	CHECK_EQ(nic.added, 2);
	detach(&r);
	CHECK_EQ(nic.removed, 2);
	nic_end();
}

static void set_link(int ifindex, uint32_t flags)
{
	struct link_info info = nic_link();

	info.ifindex = ifindex;
	info.flags = flags;
	info.lower = 0;
	snprintf(info.name, sizeof(info.name), "other%d", ifindex);
	CHECK_EQ(link_tab_set(&net->view.links, &info), 1);
}

/* Nobody else can get what comes by the only interface, or by those that have a rule. */
TEST(all_frames_are_kept_where_no_other_interface_is)
{
	struct flow_key key = peer(0), other;
	struct receiver r = { 0 };

	nic_begin("all");
	CHECK(!net_keeps_all(net, &r.att, &key));
	CHECK_EQ(attach(&r), REASON_NONE);
	CHECK(net_keeps_all(net, &r.att, &key));
	other = key;
	other.local.byte[15]++;
	CHECK(!net_keeps_all(net, &r.att, &other));
	set_link(1, IFF_UP | IFF_LOOPBACK);
	set_link(8, 0);
	CHECK(net_keeps_all(net, &r.att, &key));
	set_link(8, IFF_UP);
	CHECK(!net_keeps_all(net, &r.att, &key));
	set_link(8, 0);
	CHECK(net_keeps_all(net, &r.att, &key));
	/* its flows go with the device */
	nic.health = -ENODEV;
	net_check(net);
	CHECK(!net_keeps_all(net, &r.att, &key));
	detach(&r);
	CHECK(!net_keeps_all(net, &r.att, &key));
	nic_end();
}
