/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tagged frames that came to an interface without tag: whatever becomes of them, their
 * packets come back. */
#include "config.h"

#include "net/strays.h"

#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

enum { FRAMES = 100, AT_ONCE = 64 };

static struct pkt_pool pool;
static struct stack *stack;

static void begin(void)
{
	nic_begin("all");
	stack = net_choose_stack(net);
	pkt_pool_init(&pool, 64);
	CHECK_EQ(pkt_pool_grow(&pool, FRAMES, 256), 0);
}

static void end(void)
{
	nic_end();
	CHECK(pkt_pool_is_full(&pool));
	CHECK_EQ(pkt_pool_destroy(&pool), 0);
}

static uint64_t dropped(void)
{
	return stack->demux.drops[DEMUX_NOT_IP];
}

/* Frames with the tag 100 arrive; the caller unlocks. */
static void receive(unsigned cnt) ACQUIRES(stack->lock)
{
	static const uint8_t frame[60] = { [12] = 0x81, [15] = 100, [16] = 8 };
	static const struct demux_from from = { .ifindex = NIC_IFINDEX };

	stack_lock(stack);
	for (unsigned i = 0; i < cnt; i++) {
		struct pkt *pkt = pkt_alloc(&pool);

		CHECK(pkt);
		memcpy(pkt_append(pkt, sizeof(frame)), frame, sizeof(frame));
		demux_input(&stack->demux, pkt, &from);
	}
}

TEST(those_that_the_kernel_does_not_take_are_counted)
{
	uint64_t before;

	begin();
	before = dropped();
	receive(1);
	CHECK_EQ(dropped(), before);
	CHECK(!pkt_pool_is_full(&pool));
	stack_unlock(stack);
	CHECK_EQ(dropped(), before + 1);
	CHECK(pkt_pool_is_full(&pool));
	end();
}

TEST(a_flood_holds_few_frames)
{
	uint64_t before;

	begin();
	before = dropped();
	receive(FRAMES);
	CHECK_EQ(dropped(), before + FRAMES - AT_ONCE);
	stack_unlock(stack);
	CHECK_EQ(dropped(), before + FRAMES);
	/* and the next ones are taken again */
	receive(1);
	CHECK_EQ(dropped(), before + FRAMES);
	stack_unlock(stack);
	end();
}

TEST(who_has_the_control_mutex_does_it_later)
{
	uint64_t before;

	begin();
	before = dropped();
	net_control_acquire(net);
	receive(1);
	stack_unlock(stack);
	CHECK_EQ(dropped(), before);
	net_control_release(net);
	CHECK_EQ(dropped(), before + 1);
	end();
}

TEST(a_stack_ends_with_some_left)
{
	begin();
	net_control_acquire(net);
	receive(1);
	stack_unlock(stack);
	atomic_store(&stack->has_strays_left, false);
	net_control_release(net);
	end();
}
