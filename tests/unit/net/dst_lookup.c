/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Destinations for who sends under the lock. */
#include "config.h"

#include "net/dst_lookup.h"

#include <errno.h>
#include <linux/neighbour.h>

#include "base/clock.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

enum { PORT = 7000 };

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

static void set_neighbour(uint16_t state)
{
	struct neigh_info info = {
		.addr = peer_addr(),
		.ifindex = NIC_IFINDEX,
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
	CHECK(net_events(net));
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
	nic_begin("all");
	nic.dev.caps.tx_len_max = 2000;
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
	set_neighbour(NUD_REACHABLE);
	begin_lookup();
	CHECK_EQ(nic.resolve_cnt, 0);
	check_way();
	nic_end();
}

/* The kernel's answer comes later, and is told at once. */
TEST(an_unknown_neighbour_is_asked_for)
{
	begin_asker();
	begin_lookup();
	CHECK_EQ(nic.resolve_cnt, 1);
	CHECK(dst_lookup_is_pending(&asker.lookup));
	hear_of_neighbour(NUD_INCOMPLETE);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_REACHABLE);
	check_way();
	nic_end();
}

/* Nobody has answered the kernel. One that has failed before is asked for anew. */
TEST(a_neighbour_that_is_not_there_is_an_answer)
{
	begin_asker();
	set_neighbour(NUD_FAILED);
	begin_lookup();
	CHECK_EQ(nic.resolve_cnt, 1);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_INCOMPLETE);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_FAILED);
	CHECK_EQ(asker.answers, 1);
	CHECK(!asker.dst.ring);
	CHECK_EQ(asker.dst.reason, REASON_NO_NEIGHBOUR);
	nic_end();
}

/* The kernel does not say that it asks one that has failed once more. */
TEST(a_neighbour_that_is_still_not_there_is_an_answer)
{
	begin_asker();
	set_neighbour(NUD_FAILED);
	begin_lookup();
	CHECK_EQ(nic.resolve_cnt, 1);
	CHECK_EQ(asker.answers, 0);
	hear_of_neighbour(NUD_FAILED);
	CHECK_EQ(asker.answers, 1);
	CHECK_EQ(asker.dst.reason, REASON_NO_NEIGHBOUR);
	nic_end();
}

static void answer_at_once(void)
{
	nic.while_resolving = NULL;
	set_neighbour(NUD_REACHABLE);
}

/* The news are there before the request waits for them: it is not forgotten. */
TEST(news_that_come_during_the_look_are_not_missed)
{
	begin_asker();
	nic.while_resolving = answer_at_once;
	begin_lookup();
	check_way();
	nic_end();
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
	nic.while_resolving = cancel;
	begin_lookup();
	CHECK_EQ(nic.resolve_cnt, 1);
	hear_of_neighbour(NUD_REACHABLE);
	CHECK_EQ(asker.answers, 0);
	nic_end();
}

TEST(a_request_is_cancelled_while_it_waits)
{
	begin_asker();
	begin_lookup();
	cancel();
	hear_of_neighbour(NUD_REACHABLE);
	CHECK_EQ(asker.answers, 0);
	nic_end();
}

/* The control mutex is the outermost lock: who has it, and releases a stack's, looks up
 * afterwards. */
TEST(who_has_the_control_mutex_looks_up_later)
{
	begin_asker();
	set_neighbour(NUD_REACHABLE);
	net_control_acquire(net);
	begin_lookup();
	CHECK_EQ(asker.answers, 0);
	CHECK(dst_lookup_is_pending(&asker.lookup));
	net_control_release(net);
	check_way();
	nic_end();
}

/* The time of the stack. */
static uint64_t now_ns;

static uint64_t read_now(void)
{
	return now_ns;
}

/* The kernel has not heard of the neighbour for some time. */
static void begin_stale(void)
{
	begin_asker();
	now_ns = 5 * NS_PER_SEC;
	net_choose_stack(net)->clock_ns = read_now;
	set_neighbour(NUD_REACHABLE);
	set_neighbour(NUD_STALE);
}

/* Each of so many new destinations has the address that is known. */
static void find_stale(int times)
{
	for (int i = 0; i < times; i++) {
		asker.answers = 0;
		begin_lookup();
		CHECK_EQ(asker.answers, 1);
		CHECK(asker.dst.ring == &nic.ring);
		CHECK_MEM(asker.dst.header.eth.dst, "peer", 5);
	}
}

/* The kernel takes five seconds before it begins, and does not say that it will. */
TEST(a_stale_neighbour_is_asked_for_once_a_second)
{
	begin_stale();
	find_stale(5);
	CHECK_EQ(nic.resolve_cnt, 1);
	now_ns += NS_PER_SEC - 1;
	find_stale(5);
	CHECK_EQ(nic.resolve_cnt, 1);
	now_ns++;
	find_stale(5);
	CHECK_EQ(nic.resolve_cnt, 2);
	nic_end();
}

TEST(a_neighbour_that_is_stale_once_more_is_asked_for_at_once)
{
	begin_stale();
	find_stale(2);
	hear_of_neighbour(NUD_REACHABLE);
	find_stale(2);
	CHECK_EQ(nic.resolve_cnt, 1);
	hear_of_neighbour(NUD_STALE);
	find_stale(2);
	CHECK_EQ(nic.resolve_cnt, 2);
	nic_end();
}

TEST(a_question_that_the_kernel_refused_is_put_again)
{
	begin_stale();
	nic.resolve_err = -ENOBUFS;
	find_stale(3);
	CHECK_EQ(nic.resolve_cnt, 3);
	nic.resolve_err = 0;
	find_stale(3);
	CHECK_EQ(nic.resolve_cnt, 4);
	nic_end();
}

/* Without rights it is put later, unless there is no room for it. */
TEST(a_question_that_is_put_later_is_one)
{
	begin_stale();
	nic.resolve_err = -EPERM;
	net->confirms.cnt = CONFIRMS_MAX;
	find_stale(2);
	CHECK_EQ(nic.resolve_cnt, 2);
	net->confirms.cnt = 0;
	find_stale(3);
	CHECK_EQ(nic.resolve_cnt, 3);
	CHECK_EQ(net->confirms.cnt, 1);
	nic_end();
}

/* The egress map says which priority is in the tag. */
TEST(the_header_of_a_vlan_has_the_tag)
{
	struct link_info link;

	begin_asker();
	link = nic_vlan();
	link.vlan_pcps[3] = 5;
	CHECK_EQ(link_tab_set(&net->view.links, &link), 1);
	net_view_routes_changed(&net->view);
	set_neighbour(NUD_REACHABLE);
	begin_lookup();
	check_way();
	CHECK_EQ(asker.dst.header.eth.type, htobe16(100));
	asker.dst.query.priority = 3;
	asker.answers = 0;
	begin_lookup();
	CHECK_EQ(asker.dst.header.eth.type, htobe16(5 << 13 | 100));
	/* the line goes */
	link.vlan_pcps[3] = 0;
	CHECK_EQ(link_tab_set(&net->view.links, &link), 1);
	net_view_routes_changed(&net->view);
	asker.answers = 0;
	begin_lookup();
	CHECK_EQ(asker.dst.header.eth.type, htobe16(100));
	nic_end();
}
