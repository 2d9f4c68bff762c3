/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stack on a ring that does what a case says. */
#include "net/stack.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pkt/wire.h"
#include "tests/support/test.h"

enum {
	FRAMES = 256,
	POSTED = 128,
	HELD_MAX = (FRAMES - POSTED) / 2,
	/* what a poll takes; few beside what sockets may hold */
	BATCH = 32,
	PORT = 7000,
};

struct frame {
	struct wire_eth eth;
	struct wire_ipv4 ip;
	struct wire_udp udp;
	uint32_t number;
} WIRE_PACKED;

static struct {
	struct dev dev;
	struct ring ring;
	struct pkt *posted[POSTED];
	/* frames that arrive, numbered, each in so many parts */
	uint32_t arriving_cnt, arrived_cnt, part_cnt;
	/* what kick returns, the last one for ever */
	const enum ring_kick *kicks;
	unsigned kick_cnt;
	unsigned acknowledge_cnt;
	bool is_armed, is_stopped;
	/* how often it is not done yet with what was sent, and how often and by how
	 * much it grew */
	unsigned undone_cnt, grow_cnt, grow_by;
	/* for each frame that is taken another one arrives */
	bool never_ends;
} nic;

/* Of its queues; none unless a case opens them. */
enum { QUEUES = 200 };
static int queue_fds[QUEUES];
static unsigned queue_cnt;

static struct stack *stack;
static struct endpoint reader;
static struct list queue;
static uint32_t queued_cnt;

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	list_push_back(&queue, &pkt->link);
	queued_cnt++;
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
		.udp.dst_port = htobe16(PORT),
		.udp.len = htobe16(sizeof(f.udp) + sizeof(f.number)),
		.number = nic.arrived_cnt,
	};

	f.ip.check = csum_fold(csum_partial(&f.ip, sizeof(f.ip), 0));
	return f;
}

static struct pkt *receive_frame(void)
{
	struct pkt *pkt = ring_pkt_alloc(&nic.ring);
	struct frame f = make_frame();

	if (!pkt)
		return NULL;
	memcpy(pkt_append(pkt, sizeof(f)), &f, sizeof(f));
	for (uint32_t i = 1; i < nic.part_cnt; i++) {
		struct pkt *part = ring_pkt_alloc(&nic.ring);

		if (part)
			part->next_part = pkt->next_part;
		pkt->next_part = part;
	}
	nic.arrived_cnt++;
	return pkt;
}

static unsigned rx_poll(struct ring *ring UNUSED, struct pkt **batch,
			unsigned cnt)
{
	unsigned got = 0;

	while (got < cnt && nic.arriving_cnt) {
		batch[got] = receive_frame();
		if (!batch[got])
			break;
		nic.arriving_cnt -= !nic.never_ends;
		got++;
	}
	return got;
}

static struct ring_frame rx_peek(struct ring *ring UNUSED)
{
	static struct frame f;

	if (!nic.arriving_cnt)
		return RING_NO_FRAME;
	f = make_frame();
	return (struct ring_frame){ (const uint8_t *)&f, sizeof(f),
				    PKT_CSUM_UNKNOWN, nic.arriving_cnt > 1 };
}

static enum ring_kick kick(struct ring *ring UNUSED)
{
	enum ring_kick result = *nic.kicks;

	nic.kick_cnt++;
	if (result != RING_KICKED)
		nic.kicks++;
	return result;
}

static uint32_t device_cnt(const struct ring *ring UNUSED)
{
	return POSTED;
}

/* The end is slow but for the frames, whose pool others use. */
static void stop(struct ring *ring UNUSED)
{
	CHECK(!stack_lock_is_mine(&stack->lock));
	nic.is_stopped = true;
}

static void take_back(struct ring *ring UNUSED)
{
	CHECK(nic.is_stopped);
	CHECK(stack_lock_is_mine(&stack->lock));
	for (int i = 0; i < POSTED; i++)
		pkt_put(nic.posted[i]);
}

static void close_ring(struct ring *ring UNUSED)
{
	CHECK(!stack_lock_is_mine(&stack->lock));
}

/* As those of a completion queue. */
static void acknowledge(struct ring *ring)
{
	CHECK(!stack_lock_is_mine(&stack->lock));
	/* nobody kicks meanwhile */
	CHECK(atomic_load(&ring->kick_state));
	nic.is_armed = false;
	nic.acknowledge_cnt++;
}

/* Wants a kick to go on. */
static bool tx_is_done(struct ring *ring)
{
	CHECK(stack_lock_is_mine(&stack->lock));
	if (!nic.undone_cnt)
		return true;
	nic.undone_cnt--;
	ring->wants_kick = true;
	return false;
}

static void rx_grow(struct ring *ring)
{
	CHECK(stack_lock_is_mine(&stack->lock));
	nic.grow_cnt++;
	ring->rx_post_max += nic.grow_by;
}

static unsigned fds(struct ring *ring UNUSED, int *out, unsigned cnt)
{
	memcpy(out, queue_fds, MIN(cnt, queue_cnt) * sizeof(*out));
	return queue_cnt;
}

static bool arm(struct ring *ring UNUSED)
{
	nic.is_armed = true;
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
	nic.ring.ops = &ring_ops;
	nic.ring.dev = dev;
	nic.ring.pool = pool;
	nic.ring.rx_post_max = POSTED;
	nic.ring.counts = &nic.ring.own_counts;
	ring_set_busy(&nic.ring);
	for (int i = 0; i < POSTED; i++)
		nic.posted[i] = ring_pkt_alloc(&nic.ring);
	*ring_out = &nic.ring;
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

static bool does_need_ack;

static void open_nic(void)
{
	static const struct demux_from from = { .ifindex = 7 };
	struct ring *ring;

	memset(&nic, 0, sizeof(nic));
	nic.part_cnt = 1;
	nic.ring.needs_ack = does_need_ack;
	nic.dev.ops = &dev_ops;
	CHECK_EQ(region_create(FRAMES, 2048, REGION_SMALL_PAGES,
			       &nic.dev.region),
		 0);
	CHECK_EQ(region_set_add(&nic.dev.regions, nic.dev.region), 0);
	ring_ops_fill(&ring_ops);
	dev_ops_fill(&dev_ops);
	CHECK_EQ(stack_add_ring(stack, &nic.dev, &from, &ring), 0);
}

/* As a device does when its interface is gone. */
static void lose_nic(void)
{
	stack_remove_ring(stack, &nic.ring);
	region_set_put(&nic.dev.regions);
}

static uint64_t now_ns;
static unsigned sooner_cnt;

static uint64_t virtual_clock(void)
{
	return now_ns;
}

static void note_sooner(struct stack *which)
{
	CHECK(which == stack);
	CHECK(!stack_lock_is_mine(&stack->lock));
	sooner_cnt++;
}

static void begin_polling(unsigned poll_batch)
{
	const struct stack_params params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = poll_batch,
		.clock_ns = virtual_clock,
		.sooner = note_sooner,
	};

	now_ns = NS_PER_SEC;
	sooner_cnt = 0;

	CHECK_EQ(stack_create(&params, &stack), 0);
	open_nic();
	list_init(&queue);
	queued_cnt = 0;
	endpoint_init(&reader, input);
	reader.proto = WIRE_PROTO_UDP;
	reader.key.local_port = htobe16(PORT);
	reader.key.local = ip_addr_from_v4(0);
	stack_lock(stack);
	CHECK_EQ(demux_add(&stack->demux, &reader), 0);
	stack_unlock(stack);
}

static void begin(void)
{
	begin_polling(BATCH);
}

static void poll_once(void)
{
	stack_lock(stack);
	stack_poll_locked(stack);
	stack_unlock(stack);
}

static void arrive(uint32_t cnt)
{
	nic.arriving_cnt = cnt;
	while (nic.arriving_cnt) {
		uint32_t before = nic.arriving_cnt;

		poll_once();
		CHECK(nic.arriving_cnt < before);
	}
}

static uint32_t read_one(void)
{
	struct pkt *pkt = pkt_from_link(list_pop_front(&queue));
	uint32_t number;

	memcpy(&number, pkt->data + sizeof(struct wire_udp), sizeof(number));
	stack_lock(stack);
	pkt_put(pkt);
	stack_unlock(stack);
	queued_cnt--;
	return number;
}

static void end(void)
{
	while (queued_cnt)
		read_one();
	stack_lock(stack);
	demux_remove(&stack->demux, &reader);
	stack_unlock(stack);
	stack_remove_ring(stack, &nic.ring);
	CHECK_EQ(region_free_cnt(nic.dev.region), nic.dev.region->frame_cnt);
	region_set_put(&nic.dev.regions);
	stack_check(stack);
	for (int i = 0; i < STACK_STOCKS; i++)
		CHECK_EQ(stack_stock(stack, i)->pool.total_cnt, 0);
	stack_destroy(stack);
}

/* More than there are places for rings. */
TEST(a_lost_ring_leaves_its_frames_to_who_holds_them)
{
	enum { LOSSES = 40 };

	begin();
	for (uint32_t i = 0; i < LOSSES; i++) {
		arrive(1);
		CHECK_EQ(nic.ring.slot, 0);
		CHECK_EQ(queued_cnt, i + 1);
		lose_nic();
		open_nic();
		/* each says how often its own ring has received */
		nic.arrived_cnt = i + 1;
	}
	CHECK(!list_is_empty(&stack->orphans));
	for (uint32_t i = 0; i < LOSSES; i++)
		CHECK_EQ(read_one(), i);
	CHECK(!list_is_empty(&stack->orphans));
	stack_check(stack);
	CHECK(list_is_empty(&stack->orphans));
	end();
}

/* The largest value of VMA_CQ_POLL_BATCH_MAX. */
TEST(a_poll_takes_up_to_128_frames)
{
	enum { MOST = 128 };

	begin_polling(MOST);
	/* so that sockets may hold all of them */
	CHECK_EQ(stack_add_region(stack, &nic.ring, 4 * FRAMES), 0);
	nic.arriving_cnt = MOST + 1;
	poll_once();
	CHECK_EQ(queued_cnt, MOST);
	poll_once();
	CHECK_EQ(queued_cnt, MOST + 1);
	CHECK_EQ(nic.ring.counts->rx_spilled, 0);
	for (uint32_t i = 0; i <= MOST; i++)
		CHECK_EQ(read_one(), i);
	end();
}

static uint32_t frames_left(void)
{
	return region_free_cnt(nic.dev.region) + nic.ring.pool->free_cnt;
}

TEST(sockets_hold_half_of_the_frames_at_most)
{
	begin();
	arrive(HELD_MAX);
	CHECK_EQ(nic.ring.counts->rx_spilled, 0);
	arrive(10 * FRAMES);
	CHECK_EQ(nic.ring.counts->rx_spill_drops, 0);
	CHECK(nic.ring.counts->rx_spilled > 9 * FRAMES);
	CHECK_EQ(queued_cnt, HELD_MAX + 10 * FRAMES);
	CHECK(frames_left() >= FRAMES - POSTED - HELD_MAX);
	for (uint32_t i = 0; i < HELD_MAX + 10 * FRAMES; i++)
		CHECK_EQ(read_one(), i);
	CHECK_EQ(frames_left(), FRAMES - POSTED);
	end();
}

TEST(frames_are_held_again_once_there_are_enough)
{
	uint64_t spilled;

	begin();
	arrive(2 * FRAMES);
	spilled = nic.ring.counts->rx_spilled;
	while (queued_cnt)
		read_one();
	arrive(HELD_MAX);
	CHECK_EQ(nic.ring.counts->rx_spilled, spilled);
	end();
}

/* Nothing longer than a frame is copied under the lock. */
TEST(packets_of_several_frames_are_dropped_beyond_that)
{
	begin();
	nic.part_cnt = 2;
	arrive(FRAMES);
	CHECK_EQ(nic.ring.counts->rx_spilled, 0);
	CHECK(nic.ring.counts->rx_spill_drops > 0);
	CHECK_EQ(queued_cnt + nic.ring.counts->rx_spill_drops, FRAMES);
	CHECK(frames_left() >= FRAMES - POSTED - HELD_MAX - HELD_MAX / 4);
	end();
}

static void note_frame_to_kick(void)
{
	stack_lock(stack);
	nic.ring.wants_kick = true;
	stack_note_kick(stack, &nic.ring);
	stack_unlock(stack);
}

TEST(a_kick_that_finds_no_room_is_repeated_by_who_unlocks_next)
{
	static const enum ring_kick kicks[] = { RING_KICK_LATER,
						RING_KICK_LATER, RING_KICKED };

	begin();
	nic.kicks = kicks;
	note_frame_to_kick();
	CHECK_EQ(nic.kick_cnt, 1);
	poll_once();
	CHECK_EQ(nic.kick_cnt, 2);
	poll_once();
	CHECK_EQ(nic.kick_cnt, 3);
	poll_once();
	CHECK_EQ(nic.kick_cnt, 3);
	end();
}

TEST(a_kick_with_more_to_do_is_repeated_at_once)
{
	static const enum ring_kick kicks[] = { RING_KICK_MORE, RING_KICK_MORE,
						RING_KICKED };

	begin();
	nic.kicks = kicks;
	note_frame_to_kick();
	CHECK_EQ(nic.kick_cnt, 3);
	poll_once();
	CHECK_EQ(nic.kick_cnt, 3);
	end();
}

/* -- fds ------------------------------------------------------------------------ */

/* What has woken us is taken note of before the ring is armed: it must not take the next
 * arrival's place. */
TEST(a_queue_is_acknowledged_before_it_is_armed)
{
	does_need_ack = true;
	begin();
	does_need_ack = false;
	CHECK(atomic_load(&stack->needs_ack));
	CHECK(stack_arm_unwatched(stack));
	CHECK_EQ(nic.acknowledge_cnt, 1);
	CHECK(nic.is_armed);
	CHECK_EQ(atomic_load(&nic.ring.kick_state), STACK_KICK_IDLE);
	lose_nic();
	CHECK(!atomic_load(&stack->needs_ack));
	open_nic();
	end();
}

TEST(other_rings_are_not)
{
	begin();
	CHECK(stack_arm_unwatched(stack));
	CHECK_EQ(nic.acknowledge_cnt, 0);
	CHECK(nic.is_armed);
	end();
}

/* -- regions --------------------------------------------------------------------- */

TEST(with_a_further_region_sockets_hold_more)
{
	begin();
	CHECK_EQ(stack_add_region(stack, &nic.ring, FRAMES), 0);
	arrive(HELD_MAX + FRAMES / 2);
	CHECK_EQ(nic.ring.counts->rx_spilled, 0);
	arrive(FRAMES);
	CHECK(nic.ring.counts->rx_spilled > 0);
	/* the frames of either go home, also of a ring that is lost */
	lose_nic();
	open_nic();
	while (queued_cnt)
		read_one();
	stack_check(stack);
	CHECK(list_is_empty(&stack->orphans));
	end();
}

TEST(a_ring_that_runs_low_wants_a_region)
{
	begin();
	CHECK(!stack_wants_region(stack, &nic.ring));
	nic.ring.wants_region = true;
	CHECK(stack_wants_region(stack, &nic.ring));
	nic.grow_cnt = 0;
	nic.grow_by = 2;
	CHECK_EQ(stack_add_region(stack, &nic.ring, FRAMES), 0);
	CHECK_EQ(nic.grow_cnt, 1);
	/* what it posts now is not for sockets to hold */
	CHECK_EQ(stack->holds[nic.ring.slot].max,
		 (2 * FRAMES - nic.ring.rx_post_max) / 2);
	CHECK(!stack_wants_region(stack, &nic.ring));
	nic.grow_by = 0;
	end();
}

/* -- the end ---------------------------------------------------------------------- */

TEST(what_was_sent_has_left)
{
	static const enum ring_kick kicks[] = { RING_KICKED };

	begin();
	nic.kicks = kicks;
	nic.kick_cnt = 0;
	CHECK(stack_has_sent(stack));
	CHECK_EQ(nic.kick_cnt, 0);
	nic.undone_cnt = 2;
	CHECK(!stack_has_sent(stack));
	CHECK(!stack_has_sent(stack));
	CHECK_EQ(nic.kick_cnt, 2);
	CHECK(stack_has_sent(stack));
	end();
}

static bool is_awake(void)
{
	struct pollfd pfd = { .fd = stack_fd(stack), .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* However many queues there are, each wakes who sleeps for the stack; and one that has
 * gone does not. */
TEST(each_of_many_queues_wakes_who_sleeps)
{
	for (queue_cnt = 0; queue_cnt < QUEUES; queue_cnt++) {
		queue_fds[queue_cnt] = eventfd(0, EFD_NONBLOCK);
		CHECK(queue_fds[queue_cnt] >= 0);
	}
	begin();
	CHECK(stack_arm_unwatched(stack));
	CHECK(!is_awake());
	for (unsigned i = 0; i < QUEUES; i++) {
		CHECK_EQ(eventfd_write(queue_fds[i], 1), 0);
		CHECK(is_awake());
		CHECK_EQ(eventfd_read(queue_fds[i], &(eventfd_t){ 0 }), 0);
		CHECK(!is_awake());
	}
	lose_nic();
	CHECK_EQ(eventfd_write(queue_fds[0], 1), 0);
	CHECK(!is_awake());
	for (unsigned i = 0; i < QUEUES; i++)
		close(queue_fds[i]);
	queue_cnt = 0;
	open_nic();
	end();
}

/* While nobody sleeps, the kernel does not look for sleepers at each frame. */
TEST(a_queue_wakes_those_who_sleep_and_costs_others_nothing)
{
	queue_fds[0] = eventfd(1, EFD_NONBLOCK);
	CHECK(queue_fds[0] >= 0);
	queue_cnt = 1;
	begin();
	CHECK(!is_awake());
	CHECK(stack_arm_unwatched(stack));
	CHECK(is_awake());
	/* somebody slept since the last look */
	stack_unwatch_unused(stack);
	CHECK(is_awake());
	stack_unwatch_unused(stack);
	CHECK(!is_awake());
	/* what came meanwhile wakes the next one */
	CHECK(stack_arm_unwatched(stack));
	CHECK(is_awake());
	stack_unwatch_unused(stack);
	/* somebody sleeps */
	stack_lock(stack);
	stack->watcher = &(struct waiter){ .stack = stack };
	stack_unlock(stack);
	stack_unwatch_unused(stack);
	CHECK(is_awake());
	stack_lock(stack);
	stack->watcher = NULL;
	stack_unlock(stack);
	/* a ring that comes later is watched with the others */
	lose_nic();
	CHECK(!is_awake());
	open_nic();
	CHECK(is_awake());
	close(queue_fds[0]);
	queue_cnt = 0;
	end();
}

/* Under the lock it takes what was there, whoever goes on sending. */
TEST(a_drain_ends)
{
	begin();
	nic.arriving_cnt = 1;
	nic.never_ends = true;
	stack_lock(stack);
	stack_drain_locked(stack);
	stack_unlock(stack);
	/* as many as the region can have had at most, and the rest of a batch */
	CHECK(nic.arrived_cnt >= HELD_MAX);
	CHECK(nic.arrived_cnt <= FRAMES + BATCH);
	nic.never_ends = false;
	nic.arriving_cnt = 0;
	end();
}

/* -- engines --------------------------------------------------------------------- */

/* A protocol that collects its packets and sets one timer. */
static struct {
	struct stack_engine engine;
	struct endpoint end;
	struct timer timer;
	/* packets that wait for it, and how many each run found */
	struct list batch;
	uint32_t batch_cnt, last_cnt;
	unsigned run_cnt, fire_cnt;
	uint64_t fired_ns;
	/* the timer is set again from its callback, so much later */
	uint64_t period_ns;
} echo;

/* With the lock; the way here is through callbacks. */
NO_LOCK_ANALYSIS static void engine_input(struct endpoint *end UNUSED,
					  struct pkt *pkt)
{
	list_push_back(&echo.batch, &pkt->link);
	echo.batch_cnt++;
	stack_engine_due_locked(stack, &echo.engine);
}

static void engine_run(struct stack_engine *engine UNUSED, struct stack *which)
{
	CHECK(stack_lock_is_mine(&which->lock));
	pkt_put_list(&echo.batch);
	echo.last_cnt = echo.batch_cnt;
	echo.batch_cnt = 0;
	echo.run_cnt++;
}

NO_LOCK_ANALYSIS static void engine_fire(struct timer *timer, uint64_t at_ns)
{
	echo.fire_cnt++;
	echo.fired_ns = at_ns;
	if (echo.period_ns)
		timer_set(&stack->timers, timer, at_ns + echo.period_ns);
	stack_engine_due_locked(stack, &echo.engine);
}

static void begin_engine(void)
{
	begin();
	memset(&echo, 0, sizeof(echo));
	list_init(&echo.batch);
	stack_engine_init(&echo.engine, engine_run);
	timer_init(&echo.timer, engine_fire);
	endpoint_init(&echo.end, engine_input);
	echo.end.proto = WIRE_PROTO_UDP;
	echo.end.key.local_port = htobe16(PORT);
	echo.end.key.local = ip_addr_from_v4(0);
	stack_lock(stack);
	demux_remove(&stack->demux, &reader);
	CHECK_EQ(demux_add(&stack->demux, &echo.end), 0);
	stack_unlock(stack);
}

static void end_engine(void)
{
	stack_lock(stack);
	timer_cancel(&stack->timers, &echo.timer);
	demux_remove(&stack->demux, &echo.end);
	CHECK_EQ(demux_add(&stack->demux, &reader), 0);
	stack_unlock(stack);
	end();
}

/* What one poll brings is one call of the engine. */
TEST(an_engine_gets_its_packets_by_batches)
{
	begin_engine();
	nic.arriving_cnt = BATCH + 1;
	poll_once();
	CHECK_EQ(echo.run_cnt, 1);
	CHECK_EQ(echo.last_cnt, BATCH);
	poll_once();
	CHECK_EQ(echo.run_cnt, 2);
	CHECK_EQ(echo.last_cnt, 1);
	end_engine();
}

/* Whoever has called it need not see to that. */
TEST(an_engine_runs_before_the_lock_is_released)
{
	begin_engine();
	stack_lock(stack);
	stack_engine_due_locked(stack, &echo.engine);
	stack_engine_due_locked(stack, &echo.engine);
	CHECK_EQ(echo.run_cnt, 0);
	stack_unlock(stack);
	CHECK_EQ(echo.run_cnt, 1);
	end_engine();
}

/* -- timers ---------------------------------------------------------------------- */

/* As an engine does: directly, and then it is due. */
static void set_timer_in(uint64_t delay_ns)
{
	stack_lock(stack);
	timer_set(&stack->timers, &echo.timer, now_ns + delay_ns);
	stack_engine_due_locked(stack, &echo.engine);
	stack_unlock(stack);
}

TEST(timers_fire_when_somebody_polls)
{
	begin_engine();
	set_timer_in(NS_PER_MS);
	poll_once();
	CHECK_EQ(echo.fire_cnt, 0);
	now_ns += NS_PER_MS + TIMER_TICK_NS;
	poll_once();
	CHECK_EQ(echo.fire_cnt, 1);
	/* its engine has run, for the setting and for the timer */
	CHECK_EQ(echo.run_cnt, 2);
	CHECK_EQ(stack_next_timer_ns(stack), TIMER_NEVER);
	end_engine();
}

/* Who looks again and again does not ask for the time each time. */
TEST(quick_looks_run_timers_now_and_then)
{
	static const _Atomic uint32_t silent;
	unsigned looks = 0;

	begin_engine();
	nic.ring.rx_word = &silent;
	set_timer_in(NS_PER_MS);
	now_ns += NS_PER_MS + TIMER_TICK_NS;
	while (!echo.fire_cnt && looks < 10 * STACK_LOOKS_PER_CLOCK) {
		stack_lock(stack);
		stack_look_quickly_locked(stack);
		stack_unlock(stack);
		looks++;
	}
	CHECK_EQ(echo.fire_cnt, 1);
	CHECK(looks <= STACK_LOOKS_PER_CLOCK);
	ring_set_busy(&nic.ring);
	end_engine();
}

/* Who looks whether there is anything to poll for sees them. */
TEST(a_stack_with_a_timer_is_not_quiet)
{
	begin_engine();
	lose_nic();
	CHECK(stack_is_quiet(stack));
	set_timer_in(NS_PER_MS);
	now_ns += NS_PER_MS + TIMER_TICK_NS;
	CHECK(!stack_is_quiet(stack));
	poll_once();
	CHECK(stack_is_quiet(stack));
	open_nic();
	end_engine();
}

/* The library's thread is told once, and again after it has looked. */
TEST(who_sleeps_is_told_of_an_earlier_timer)
{
	begin_engine();
	CHECK_EQ(stack_sleep_until(stack, 0), TIMER_NEVER);
	set_timer_in(10 * NS_PER_MS);
	CHECK_EQ(sooner_cnt, 1);
	set_timer_in(5 * NS_PER_MS);
	CHECK_EQ(sooner_cnt, 1);
	CHECK(stack_sleep_until(stack, 0) <= now_ns + 5 * NS_PER_MS + TIMER_TICK_NS);
	/* later, or cancelled: it wakes up for nothing */
	set_timer_in(20 * NS_PER_MS);
	CHECK_EQ(sooner_cnt, 1);
	set_timer_in(NS_PER_MS);
	CHECK_EQ(sooner_cnt, 2);
	/* it looks by itself */
	stack_sleep_over(stack);
	set_timer_in(NS_PER_MS / 2);
	CHECK_EQ(sooner_cnt, 2);
	end_engine();
}

/* Nobody else has done it. */
TEST(the_library_s_thread_runs_timers_that_are_late)
{
	begin_engine();
	set_timer_in(NS_PER_MS);
	stack_run_timers(stack);
	CHECK_EQ(echo.fire_cnt, 0);
	now_ns += NS_PER_SEC;
	stack_run_timers(stack);
	CHECK_EQ(echo.fire_cnt, 1);
	CHECK_EQ(echo.fired_ns, now_ns);
	stack_run_timers(stack);
	CHECK_EQ(echo.fire_cnt, 1);
	end_engine();
}

TEST(a_timer_that_sets_itself_goes_on)
{
	begin_engine();
	echo.period_ns = 10 * NS_PER_MS;
	set_timer_in(10 * NS_PER_MS);
	for (unsigned i = 1; i <= 5; i++) {
		now_ns += 10 * NS_PER_MS + TIMER_TICK_NS;
		poll_once();
		CHECK_EQ(echo.fire_cnt, i);
		CHECK(stack_next_timer_ns(stack) > now_ns);
		CHECK(stack_next_timer_ns(stack) <= now_ns + 11 * NS_PER_MS);
	}
	end_engine();
}

/* The watcher alone sleeps for the stack. */
TEST(a_watcher_sleeps_until_the_next_timer)
{
	struct waiter *watcher = waiter_get(), *other = waiter_get();
	uint64_t deadline = now_ns + 60 * NS_PER_SEC;

	begin_engine();
	set_timer_in(10 * NS_PER_MS);
	stack_lock(stack);
	CHECK(wait_begin_locked(stack, watcher));
	CHECK(!wait_begin_locked(stack, other));
	CHECK(wait_until_locked(stack, watcher, UINT64_MAX) <=
	      now_ns + 10 * NS_PER_MS + TIMER_TICK_NS);
	CHECK_EQ(wait_until_locked(stack, other, UINT64_MAX), UINT64_MAX);
	CHECK_EQ(wait_until_locked(stack, other, deadline), deadline);
	/* its own deadline is earlier */
	CHECK_EQ(wait_until_locked(stack, watcher, now_ns + 1), now_ns + 1);
	stack_unlock(stack);
	/* the thread waits until he is late */
	CHECK_EQ(stack_sleep_until(stack, NS_PER_MS),
		 stack_next_timer_ns(stack) + NS_PER_MS);
	stack_lock(stack);
	wait_end_locked(stack, watcher);
	wait_end_locked(stack, other);
	stack_unlock(stack);
	waiter_put(watcher);
	waiter_put(other);
	end_engine();
}

TEST(an_earlier_timer_wakes_the_watcher)
{
	struct waiter *watcher = waiter_get();

	begin_engine();
	set_timer_in(10 * NS_PER_MS);
	wait_rearm(watcher);
	stack_lock(stack);
	CHECK(wait_begin_locked(stack, watcher));
	wait_until_locked(stack, watcher, UINT64_MAX);
	stack_unlock(stack);
	set_timer_in(20 * NS_PER_MS);
	CHECK(!atomic_load(&watcher->is_woken));
	set_timer_in(5 * NS_PER_MS);
	CHECK(atomic_load(&watcher->is_woken));
	stack_lock(stack);
	wait_end_locked(stack, watcher);
	stack_unlock(stack);
	waiter_put(watcher);
	end_engine();
}

/* -- announcements --------------------------------------------------------------- */

static struct endpoint *foreseen;
static struct watch hearer;
static unsigned fired_cnt;
static bool hears_level;

static struct endpoint *foresee(struct endpoint *end,
				const struct ring_frame *frame)
{
	CHECK(end == &reader);
	CHECK_EQ(frame->len, sizeof(struct wire_udp) + sizeof(uint32_t));
	return endpoint_ready(end) & READY_IN ? NULL : foreseen;
}

static bool fire(struct watch *watch UNUSED, uint32_t bits)
{
	CHECK(bits & READY_IN);
	fired_cnt++;
	return true;
}

static bool is_level(const struct watch *watch UNUSED)
{
	return hears_level;
}

static struct stack_engine idle;

static void nothing_to_run(struct stack_engine *engine UNUSED,
			   struct stack *which UNUSED)
{
}

static void begin_announcing(void)
{
	begin();
	arrive(1);
	read_one();
	reader.foresee = foresee;
	foreseen = &reader;
	hears_level = true;
	fired_cnt = 0;
	hearer = (struct watch){ .fire = fire, .is_level = is_level };
	/* TCP's, which alone foresees anything */
	stack_engine_init(&idle, nothing_to_run);
	atomic_store(&stack->tcp, &idle);
	stack_lock(stack);
	endpoint_add_watch(&reader, &hearer);
	stack_unlock(stack);
}

static void look_at(uint32_t arriving_cnt)
{
	nic.arriving_cnt = arriving_cnt;
	stack_lock(stack);
	stack_look_locked(stack);
	stack_unlock(stack);
}

static void end_announcing(void)
{
	list_remove(&hearer.link);
	end();
}

TEST(a_single_frame_is_announced_and_stays)
{
	begin_announcing();
	look_at(1);
	CHECK_EQ(nic.arriving_cnt, 1);
	CHECK(endpoint_ready(&reader) & READY_IN);
	CHECK_EQ(fired_cnt, 1);
	/* who looks again without reading has it taken */
	look_at(1);
	CHECK_EQ(nic.arriving_cnt, 0);
	CHECK_EQ(queued_cnt, 1);
	/* what the frame has made of the endpoint is the endpoint's own word */
	CHECK(!endpoint_ready(&reader));
	CHECK(!stack->announced);
	end_announcing();
}

TEST(who_looks_otherwise_has_it_settled)
{
	begin_announcing();
	look_at(1);
	stack_lock(stack);
	stack_settle_locked(stack);
	stack_unlock(stack);
	CHECK_EQ(queued_cnt, 1);
	CHECK(!stack->announced);
	stack_lock(stack);
	stack_settle_locked(stack);
	stack_unlock(stack);
	CHECK_EQ(queued_cnt, 1);
	end_announcing();
}

TEST(only_what_is_alone_and_sure_is_announced)
{
	begin_announcing();
	look_at(2);
	CHECK_EQ(queued_cnt, 2);
	foreseen = NULL;
	look_at(1);
	CHECK_EQ(queued_cnt, 3);
	foreseen = &reader;
	/* to this one, a second call would be another arrival */
	hears_level = false;
	look_at(1);
	CHECK_EQ(queued_cnt, 4);
	hearer.is_level = NULL;
	look_at(1);
	CHECK_EQ(queued_cnt, 5);
	CHECK_EQ(fired_cnt, 0);
	CHECK(!stack->announced);
	end_announcing();
}

TEST(a_ring_that_goes_takes_its_announcement_along)
{
	begin_announcing();
	look_at(1);
	lose_nic();
	CHECK(!stack->announced);
	CHECK(!endpoint_ready(&reader));
	open_nic();
	end_announcing();
}
