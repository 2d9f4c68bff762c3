/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stack on a ring that does what a case says. */
#include "config.h"

#include "tests/unit/net/lone.h"

#include "pkt/wire.h"
#include "tests/support/test.h"

struct frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
	uint32_t number;
} WIRE_PACKED;

struct lone lone;
static struct list queue;

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	list_push_back(&queue, &pkt->link);
	lone.queued_cnt++;
}

static struct frame make_frame(void)
{
	struct frame f = {
		.eth.type = htobe16(WIRE_ETH_IPV4),
		.ip.version_ihl = 0x45,
		.ip.total_len = htobe16(sizeof(f) - sizeof(f.eth)),
		.ip.proto = WIRE_PROTO_UDP,
		.ip.src = htobe32(0x0a000002),
		.ip.dst = htobe32(0x0a000001),
		.udp.src_port = htobe16(1),
		.udp.dst_port = htobe16(LONE_PORT),
		.udp.len = htobe16(sizeof(f.udp) + sizeof(f.number)),
		.number = lone.nic.arrived_cnt,
	};

	f.ip.check = csum_fold(csum_partial(&f.ip, sizeof(f.ip), 0));
	return f;
}

static struct pkt *receive_frame(void)
{
	struct pkt *pkt = ring_pkt_alloc(&lone.nic.ring);
	struct frame f = make_frame();

	if (!pkt)
		return NULL;
	memcpy(pkt_append(pkt, sizeof(f)), &f, sizeof(f));
	for (uint32_t i = 1; i < lone.nic.part_cnt; i++) {
		struct pkt *part = ring_pkt_alloc(&lone.nic.ring);

		if (part)
			part->next_part = pkt->next_part;
		pkt->next_part = part;
	}
	lone.nic.arrived_cnt++;
	return pkt;
}

static unsigned rx_poll(struct ring *ring UNUSED, struct pkt **batch,
			unsigned cnt)
{
	unsigned got = 0;

	while (got < cnt && lone.nic.arriving_cnt) {
		batch[got] = receive_frame();
		if (!batch[got])
			break;
		lone.nic.arriving_cnt -= !lone.nic.never_ends;
		got++;
	}
	return got;
}

static struct ring_frame rx_peek(struct ring *ring UNUSED)
{
	static struct frame f;

	if (!lone.nic.arriving_cnt)
		return RING_NO_FRAME;
	f = make_frame();
	return (struct ring_frame){ (const uint8_t *)&f, sizeof(f),
				    PKT_CSUM_UNKNOWN, lone.nic.arriving_cnt > 1 };
}

static enum ring_kick kick(struct ring *ring UNUSED)
{
	enum ring_kick result = *lone.nic.kicks;

	lone.nic.kick_cnt++;
	if (result != RING_KICKED)
		lone.nic.kicks++;
	return result;
}

static uint32_t device_cnt(const struct ring *ring UNUSED)
{
	return LONE_POSTED;
}

/* The end is slow but for the frames, whose pool others use. */
static void stop(struct ring *ring UNUSED)
{
	CHECK(!stack_lock_is_mine(&lone.stack->lock));
	lone.nic.is_stopped = true;
}

static void take_back(struct ring *ring UNUSED)
{
	CHECK(lone.nic.is_stopped);
	CHECK(stack_lock_is_mine(&lone.stack->lock));
	for (int i = 0; i < LONE_POSTED; i++)
		pkt_put(lone.nic.posted[i]);
}

static void close_ring(struct ring *ring UNUSED)
{
	CHECK(!stack_lock_is_mine(&lone.stack->lock));
}

/* As those of a completion queue. */
static void acknowledge(struct ring *ring UNUSED)
{
	CHECK(!stack_lock_is_mine(&lone.stack->lock));
	lone.nic.is_armed = false;
	lone.nic.acknowledge_cnt++;
	if (lone.nic.at_acknowledge)
		lone.nic.at_acknowledge();
}

/* Wants a kick to go on. */
static bool tx_is_done(struct ring *ring)
{
	CHECK(stack_lock_is_mine(&lone.stack->lock));
	if (!lone.nic.undone_cnt)
		return true;
	lone.nic.undone_cnt--;
	ring->wants_kick = true;
	return false;
}

static void rx_grow(struct ring *ring)
{
	CHECK(stack_lock_is_mine(&lone.stack->lock));
	lone.nic.grow_cnt++;
	ring->rx_post_max += lone.nic.grow_by;
}

static unsigned fds(struct ring *ring UNUSED, int *out, unsigned cnt)
{
	memcpy(out, lone.queue_fds, MIN(cnt, lone.queue_cnt) * sizeof(*out));
	return lone.queue_cnt;
}

static bool arm(struct ring *ring UNUSED)
{
	lone.nic.is_armed = true;
	return true;
}

static struct ring_ops ring_ops = {
	.rx_poll = rx_poll,
	.rx_peek = rx_peek,
	.kick = kick,
	.fds = fds,
	.arm = arm,
	.acknowledge = acknowledge,
	.tx_is_done = tx_is_done,
	.rx_grow = rx_grow,
	.device_cnt = device_cnt,
	.stop = stop,
	.take_back = take_back,
	.close = close_ring,
};

static int ring_create(struct dev *dev, struct pkt_pool *pool,
		       struct ring **ring_out)
{
	lone.nic.ring.ops = &ring_ops;
	lone.nic.ring.dev = dev;
	lone.nic.ring.pool = pool;
	lone.nic.ring.rx_post_max = LONE_POSTED;
	lone.nic.ring.counts = &lone.nic.ring.own_counts;
	ring_set_busy(&lone.nic.ring);
	for (int i = 0; i < LONE_POSTED; i++)
		lone.nic.posted[i] = ring_pkt_alloc(&lone.nic.ring);
	*ring_out = &lone.nic.ring;
	return 0;
}

static int region_add(struct dev *dev, uint32_t frame_cnt)
{
	struct region *region;
	int err = region_create(frame_cnt, 2048, REGION_SMALL_PAGES, &region);

	return err ? err : region_set_add(&dev->regions, region);
}

static struct dev_ops dev_ops = {
	.name = "script",
	.region_add = region_add,
	.ring_create = ring_create,
};

void lone_open_nic(void)
{
	static const struct demux_from from = { .ifindex = 7 };
	struct ring *ring;

	memset(&lone.nic, 0, sizeof(lone.nic));
	lone.nic.part_cnt = 1;
	lone.nic.ring.needs_ack = lone.needs_ack;
	lone.nic.dev.ops = &dev_ops;
	CHECK_EQ(region_create(LONE_FRAMES, 2048, REGION_SMALL_PAGES,
			       &lone.nic.dev.region),
		 0);
	CHECK_EQ(region_set_add(&lone.nic.dev.regions, lone.nic.dev.region), 0);
	ring_ops_fill(&ring_ops);
	dev_ops_fill(&dev_ops);
	CHECK_EQ(stack_add_ring(lone.stack, &lone.nic.dev, &from, &ring), 0);
}

void lone_lose_nic(void)
{
	stack_remove_ring(lone.stack, &lone.nic.ring);
	region_set_put(&lone.nic.dev.regions);
}

static uint64_t virtual_clock(void)
{
	return lone.now_ns;
}

static void note_sooner(struct stack *which)
{
	CHECK(which == lone.stack);
	CHECK(!stack_lock_is_mine(&lone.stack->lock));
	lone.sooner_cnt++;
}

void lone_begin_polling(unsigned poll_batch)
{
	const struct stack_params params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = poll_batch,
		.clock_ns = virtual_clock,
		.sooner = note_sooner,
	};

	lone.now_ns = NS_PER_SEC;
	lone.sooner_cnt = 0;

	CHECK_EQ(stack_create(&params, &lone.stack), 0);
	lone_open_nic();
	list_init(&queue);
	lone.queued_cnt = 0;
	endpoint_init(&lone.reader, input);
	lone.reader.proto = WIRE_PROTO_UDP;
	lone.reader.key.local_port = htobe16(LONE_PORT);
	lone.reader.key.local = ip_addr_from_v4(0);
	stack_lock(lone.stack);
	CHECK_EQ(demux_add(&lone.stack->demux, &lone.reader), 0);
	stack_unlock(lone.stack);
}

void lone_begin(void)
{
	lone_begin_polling(LONE_BATCH);
}

void lone_poll(void)
{
	stack_lock(lone.stack);
	stack_poll_locked(lone.stack);
	stack_unlock(lone.stack);
}

void lone_arrive(uint32_t cnt)
{
	lone.nic.arriving_cnt = cnt;
	while (lone.nic.arriving_cnt) {
		uint32_t before = lone.nic.arriving_cnt;

		lone_poll();
		CHECK(lone.nic.arriving_cnt < before);
	}
}

uint32_t lone_read(void)
{
	struct pkt *pkt = pkt_from_link(list_pop_front(&queue));
	uint32_t number;

	memcpy(&number, pkt->data + sizeof(struct wire_udp), sizeof(number));
	stack_lock(lone.stack);
	pkt_put(pkt);
	stack_unlock(lone.stack);
	lone.queued_cnt--;
	return number;
}

void lone_end(void)
{
	while (lone.queued_cnt)
		lone_read();
	stack_lock(lone.stack);
	demux_remove(&lone.stack->demux, &lone.reader);
	stack_unlock(lone.stack);
	stack_remove_ring(lone.stack, &lone.nic.ring);
	CHECK_EQ(region_free_cnt(lone.nic.dev.region), lone.nic.dev.region->frame_cnt);
	region_set_put(&lone.nic.dev.regions);
	stack_check(lone.stack);
	for (int i = 0; i < STACK_STOCKS; i++)
		CHECK_EQ(stack_stock(lone.stack, i)->pool.total_cnt, 0);
	stack_destroy(lone.stack);
}
