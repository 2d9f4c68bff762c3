/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rings of single senders: which paces have one, and when it ends. */
#include "config.h"

#include "net/paced.h"

#include <errno.h>

#include "net/netif.h"
#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

static const struct ring_pace slow = { .kbps = 100 }, fast = { .kbps = 1000 };

static struct endpoint point;
static struct stats_handle stats;
static struct attachment att;
static struct stack *stack;
static struct netif *netif;
static struct paced paced;

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	pkt_put(pkt);
}

/* The interface is driven, and its card keeps paces up to 1000 kbit/s. The network's
 * control mutex is the caller's until end(). */
static void begin(void) ACQUIRES(net->control)
{
	struct attach_where where = {
		.proto = WIRE_PROTO_UDP,
		.local = nic_addr(),
		.local_port = htobe16(7000),
		.is_shared = true,
		.stats = &stats,
		.decider = STATS_BY_BIND,
	};

	nic_begin("all");
	where.stack = stack = net_choose_stack(net);
	memset(&att, 0, sizeof(att));
	memset(&paced, 0, sizeof(paced));
	endpoint_init(&point, input);
	stats_socket_open(&stats, -1, 0, WIRE_PROTO_UDP);
	CHECK_EQ(net_attach(net, &att, &point, &where), REASON_NONE);
	nic.dev.caps.pace_min = 10;
	nic.dev.caps.pace_max = 1000;
	net_control_acquire(net);
	netif = netif_find(net, NIC_IFINDEX);
	CHECK(netif);
}

static void end(void) RELEASES(net->control)
{
	paced_set(net, &paced, NULL);
	net_control_release(net);
	net_detach(net, &att);
	stats_socket_close(&stats);
	nic_end();
	CHECK_EQ(nic.paced_ended, nic.paced_begun);
}

static int get_for(struct paced *who, struct ring **ring_out) REQUIRES(net->control)
{
	int err = paced_ring(who, netif, stack, ring_out);

	CHECK(err || (*ring_out)->is_paced);
	return err;
}

static int get(void) REQUIRES(net->control)
{
	struct ring *ring;

	return get_for(&paced, &ring);
}

TEST(a_ring_is_made_once_and_follows_the_pace)
{
	begin();
	paced_set(net, &paced, &slow);
	CHECK_EQ(get(), 0);
	CHECK_EQ(get(), 0);
	CHECK_EQ(nic.paced_begun, 1);
	CHECK_EQ(nic.pace.kbps, slow.kbps);
	paced_set(net, &paced, &fast);
	CHECK_EQ(nic.pace.kbps, fast.kbps);
	CHECK_EQ(get(), 0);
	CHECK_EQ(nic.paced_begun, 1);
	nic.is_sent = true;
	end();
}

TEST(what_no_device_keeps_has_no_ring)
{
	struct ring_pace low = { .kbps = 9 }, high = { .kbps = 1001 };

	begin();
	CHECK_EQ(get(), -ESTALE);
	paced_set(net, &paced, &low);
	CHECK_EQ(get(), -ERANGE);
	paced_set(net, &paced, &high);
	CHECK_EQ(get(), -ERANGE);
	nic.dev.caps.pace_max = 0;
	paced_set(net, &paced, &slow);
	CHECK_EQ(get(), -EOPNOTSUPP);
	nic.dev.caps.pace_max = 1000;
	nic.paced_err = -ENOSPC;
	CHECK_EQ(get(), -ENOSPC);
	CHECK_EQ(nic.paced_begun, 0);
	end();
}

/* Nor is one kept at a pace that the device refuses later. */
TEST(a_ring_that_cannot_follow_ends)
{
	begin();
	nic.is_sent = true;
	paced_set(net, &paced, &slow);
	CHECK_EQ(get(), 0);
	nic.paced_err = -EINVAL;
	paced_set(net, &paced, &fast);
	CHECK_EQ(nic.paced_ended, 1);
	CHECK_EQ(get(), -EINVAL);
	end();
}

TEST(what_was_sent_leaves_before_the_ring_ends)
{
	begin();
	paced_set(net, &paced, &slow);
	CHECK_EQ(get(), 0);
	paced_set(net, &paced, NULL);
	paced_check(netif);
	CHECK_EQ(nic.paced_ended, 0);
	nic.is_sent = true;
	paced_check(netif);
	CHECK_EQ(nic.paced_ended, 1);
	end();
}

/* One that is in use stays, however little it has to send. */
TEST(a_check_ends_no_ring_that_is_used)
{
	begin();
	nic.is_sent = true;
	paced_set(net, &paced, &slow);
	CHECK_EQ(get(), 0);
	paced_check(netif);
	CHECK_EQ(nic.paced_ended, 0);
	end();
}

TEST(an_interface_that_is_closed_takes_them_along)
{
	begin();
	paced_set(net, &paced, &slow);
	CHECK_EQ(get(), 0);
	netif_close(net, netif);
	CHECK_EQ(nic.paced_ended, 1);
	end();
}

/* The interface has 128 frames at first, and as many with each region more. */
enum { FRAMES = 128, EACH = FRAMES / 8 };

/* However slowly a ring sends, it holds no frames but those that it was made with. */
TEST(each_ring_has_frames_of_its_own)
{
	struct pkt *pkts[EACH];
	struct ring *ring;

	begin();
	nic.is_sent = true;
	paced_set(net, &paced, &slow);
	CHECK_EQ(get_for(&paced, &ring), 0);
	CHECK_EQ(nic.paced_frames, EACH);
	stack_lock(stack);
	for (int i = 0; i < EACH; i++) {
		pkts[i] = ring_pkt_alloc(ring);
		CHECK(pkts[i]);
	}
	CHECK(!ring_pkt_alloc(ring));
	for (int i = 0; i < EACH; i++)
		pkt_put(pkts[i]);
	stack_unlock(stack);
	CHECK_EQ(region_free_cnt(nic.dev.region), FRAMES - EACH);
	end();
	CHECK_EQ(nic.region_adds, 0);
}

/* All together have a quarter of the interface's, which gets more for them as far as it may;
 * then there is no further ring. */
TEST(rings_leave_frames_to_others)
{
	struct paced others[5];
	struct ring *ring;

	begin();
	nic.is_sent = true;
	net->params.frame_max = 2 * FRAMES;
	memset(others, 0, sizeof(others));
	for (int i = 0; i < 5; i++)
		paced_set(net, &others[i], &slow);
	for (unsigned i = 0; i < 4; i++) {
		CHECK_EQ(get_for(&others[i], &ring), 0);
		CHECK_EQ(nic.paced_frames, EACH);
		CHECK_EQ(nic.region_adds, i / 2);
	}
	CHECK_EQ(get_for(&others[4], &ring), -ENOMEM);
	CHECK_EQ(nic.region_adds, 1);
	/* one that ends leaves its place */
	paced_set(net, &others[0], NULL);
	CHECK_EQ(get_for(&others[4], &ring), 0);
	for (int i = 1; i < 5; i++)
		paced_set(net, &others[i], NULL);
	end();
}

/* Others have taken what it would have. */
TEST(frames_that_others_have_are_not_waited_for)
{
	struct pkt_pool pool;

	begin();
	nic.is_sent = true;
	paced_set(net, &paced, &slow);
	pkt_pool_init(&pool, 0);
	region_take(nic.dev.region, &pool, FRAMES);
	CHECK_EQ(get(), 0);
	CHECK_EQ(nic.region_adds, 1);
	CHECK_EQ(nic.paced_frames, EACH);
	region_give(nic.dev.region, &pool, FRAMES);
	end();
}
