/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stack and its ring: frames that arrive, kicks, fds, regions, announcements. */
#include "config.h"

#include "net/stack.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/unit/net/lone.h"

/* More than there are places for rings. */
TEST(a_lost_ring_leaves_its_frames_to_who_holds_them)
{
	enum { LOSSES = 40 };

	lone_begin();
	for (uint32_t i = 0; i < LOSSES; i++) {
		lone_arrive(1);
		CHECK_EQ(lone.nic.ring.slot, 0);
		CHECK_EQ(lone.queued_cnt, i + 1);
		lone_lose_nic();
		lone_open_nic();
		/* each says how often its own ring has received */
		lone.nic.arrived_cnt = i + 1;
	}
	CHECK(!list_is_empty(&lone.stack->orphans));
	for (uint32_t i = 0; i < LOSSES; i++)
		CHECK_EQ(lone_read(), i);
	CHECK(!list_is_empty(&lone.stack->orphans));
	stack_check(lone.stack);
	CHECK(list_is_empty(&lone.stack->orphans));
	lone_end();
}

/* The largest value of VMA_CQ_POLL_BATCH_MAX. */
TEST(a_poll_takes_up_to_128_frames)
{
	enum { MOST = 128 };

	lone_begin_polling(MOST);
	/* so that sockets may hold all of them */
	CHECK_EQ(stack_add_region(lone.stack, &lone.nic.ring, 4 * LONE_FRAMES), 0);
	lone.nic.arriving_cnt = MOST + 1;
	lone_poll();
	CHECK_EQ(lone.queued_cnt, MOST);
	lone_poll();
	CHECK_EQ(lone.queued_cnt, MOST + 1);
	CHECK_EQ(lone.nic.ring.counts->rx_spilled, 0);
	for (uint32_t i = 0; i <= MOST; i++)
		CHECK_EQ(lone_read(), i);
	lone_end();
}

static uint32_t frames_left(void)
{
	return region_free_cnt(lone.nic.dev.region) + lone.nic.ring.pool->free_cnt;
}

TEST(sockets_hold_half_of_the_frames_at_most)
{
	lone_begin();
	lone_arrive(LONE_HELD_MAX);
	CHECK_EQ(lone.nic.ring.counts->rx_spilled, 0);
	lone_arrive(10 * LONE_FRAMES);
	CHECK_EQ(lone.nic.ring.counts->rx_spill_drops, 0);
	CHECK(lone.nic.ring.counts->rx_spilled > 9 * LONE_FRAMES);
	CHECK_EQ(lone.queued_cnt, LONE_HELD_MAX + 10 * LONE_FRAMES);
	CHECK(frames_left() >= LONE_FRAMES - LONE_POSTED - LONE_HELD_MAX);
	for (uint32_t i = 0; i < LONE_HELD_MAX + 10 * LONE_FRAMES; i++)
		CHECK_EQ(lone_read(), i);
	CHECK_EQ(frames_left(), LONE_FRAMES - LONE_POSTED);
	lone_end();
}

TEST(frames_are_held_again_once_there_are_enough)
{
	uint64_t spilled;

	lone_begin();
	lone_arrive(2 * LONE_FRAMES);
	spilled = lone.nic.ring.counts->rx_spilled;
	while (lone.queued_cnt)
		lone_read();
	lone_arrive(LONE_HELD_MAX);
	CHECK_EQ(lone.nic.ring.counts->rx_spilled, spilled);
	lone_end();
}

TEST(packets_of_several_frames_are_copied_as_well)
{
	lone_begin();
	lone.nic.part_cnt = 2;
	lone_arrive(10 * LONE_FRAMES);
	CHECK(lone.nic.ring.counts->rx_spilled > 9 * LONE_FRAMES);
	CHECK_EQ(lone.nic.ring.counts->rx_spill_drops, 0);
	CHECK_EQ(lone.queued_cnt, 10 * LONE_FRAMES);
	CHECK(frames_left() >= LONE_FRAMES - LONE_POSTED - LONE_HELD_MAX - 1);
	for (uint32_t i = 0; i < 10 * LONE_FRAMES; i++)
		CHECK_EQ(lone_read(), i);
	lone_end();
}

/* So many in one batch that there is no memory yet for the copies. */
TEST(what_cannot_be_copied_is_dropped)
{
	lone_begin();
	lone.nic.part_cnt = 4;
	lone.nic.arriving_cnt = LONE_BATCH;
	lone_poll();
	CHECK_EQ(lone.nic.ring.counts->rx_spilled, 0);
	CHECK(lone.nic.ring.counts->rx_spill_drops > 0);
	CHECK_EQ(lone.queued_cnt + lone.nic.ring.counts->rx_spill_drops, LONE_BATCH);
	CHECK(frames_left() >= LONE_FRAMES - LONE_POSTED - LONE_HELD_MAX - LONE_HELD_MAX / 4 - 4);
	lone_end();
}

static void note_frame_to_kick(void)
{
	stack_lock(lone.stack);
	lone.nic.ring.wants_kick = true;
	stack_note_kick(lone.stack, &lone.nic.ring);
	stack_unlock(lone.stack);
}

TEST(a_kick_that_finds_no_room_is_repeated_by_who_unlocks_next)
{
	static const enum ring_kick kicks[] = { RING_KICK_LATER,
						RING_KICK_LATER, RING_KICKED };

	lone_begin();
	lone.nic.kicks = kicks;
	note_frame_to_kick();
	CHECK_EQ(lone.nic.kick_cnt, 1);
	lone_poll();
	CHECK_EQ(lone.nic.kick_cnt, 2);
	lone_poll();
	CHECK_EQ(lone.nic.kick_cnt, 3);
	lone_poll();
	CHECK_EQ(lone.nic.kick_cnt, 3);
	lone_end();
}

/* If nobody does, the timers of the stack bring somebody. */
TEST(a_kick_that_finds_no_room_is_repeated_soon)
{
	static const enum ring_kick kicks[] = { RING_KICK_LATER, RING_KICKED };

	lone_begin();
	lone.nic.kicks = kicks;
	CHECK_EQ(stack_next_timer_ns(lone.stack), TIMER_NEVER);
	note_frame_to_kick();
	CHECK(stack_next_timer_ns(lone.stack) <= stack_now_ns(lone.stack) + 2 * NS_PER_MS);
	lone_poll();
	CHECK_EQ(lone.nic.kick_cnt, 2);
	lone_end();
}

TEST(a_kick_with_more_to_do_is_repeated_at_once)
{
	static const enum ring_kick kicks[] = { RING_KICK_MORE, RING_KICK_MORE,
						RING_KICKED };

	lone_begin();
	lone.nic.kicks = kicks;
	note_frame_to_kick();
	CHECK_EQ(lone.nic.kick_cnt, 3);
	lone_poll();
	CHECK_EQ(lone.nic.kick_cnt, 3);
	lone_end();
}

/* -- fds ------------------------------------------------------------------------ */

/* What has woken us is taken note of before the ring is armed: it must not take the next
 * arrival's place. */
TEST(a_queue_is_acknowledged_before_it_is_armed)
{
	lone.needs_ack = true;
	lone_begin();
	lone.needs_ack = false;
	CHECK(atomic_load(&lone.stack->needs_ack));
	CHECK(stack_arm_unwatched(lone.stack));
	CHECK_EQ(lone.nic.acknowledge_cnt, 1);
	CHECK(lone.nic.is_armed);
	CHECK_EQ(atomic_load(&lone.nic.ring.kick_state), STACK_KICK_IDLE);
	lone_lose_nic();
	CHECK(!atomic_load(&lone.stack->needs_ack));
	lone_open_nic();
	lone_end();
}

static void begin_with_ack(void (*at_acknowledge)(void))
{
	lone.needs_ack = true;
	lone_begin();
	lone.needs_ack = false;
	lone.nic.at_acknowledge = at_acknowledge;
}

static void kick_meanwhile(void)
{
	static const enum ring_kick kicks[] = { RING_KICKED };

	lone.nic.kicks = kicks;
	note_frame_to_kick();
	CHECK_EQ(lone.nic.kick_cnt, 1);
	CHECK_EQ(atomic_load(&lone.nic.ring.kick_state), STACK_KICK_IDLE);
}

/* Who sends meanwhile does not wait for the calls that it takes. */
TEST(a_queue_is_kicked_while_it_is_acknowledged)
{
	begin_with_ack(kick_meanwhile);
	stack_acknowledge(lone.stack);
	CHECK_EQ(lone.nic.acknowledge_cnt, 1);
	CHECK_EQ(lone.nic.kick_cnt, 1);
	lone_end();
}

static void acknowledge_meanwhile(void)
{
	stack_acknowledge(lone.stack);
	CHECK_EQ(lone.nic.acknowledge_cnt, 1);
}

TEST(a_queue_is_acknowledged_by_one_at_a_time)
{
	begin_with_ack(acknowledge_meanwhile);
	stack_acknowledge(lone.stack);
	lone.nic.at_acknowledge = NULL;
	stack_acknowledge(lone.stack);
	CHECK_EQ(lone.nic.acknowledge_cnt, 2);
	lone_end();
}

static void keep_lock(void) NO_LOCK_ANALYSIS
{
	stack_lock(lone.stack);
}

static void take_back_lock(void) NO_LOCK_ANALYSIS
{
	stack_unlock(lone.stack);
}

/* Whoever is about to sleep does so with all rings, so the lock is not asked for once more
 * behind each. */
TEST(one_hold_of_the_lock_finds_what_is_to_be_acknowledged)
{
	begin_with_ack(keep_lock);
	stack_acknowledge(lone.stack);
	CHECK(stack_lock_is_mine(&lone.stack->lock));
	take_back_lock();
	CHECK_EQ(lone.nic.acknowledge_cnt, 1);
	lone_end();
}

static atomic_bool is_inside;

static void take_time(void)
{
	atomic_store(&is_inside, true);
	usleep(20000);
	CHECK(!lone.nic.is_stopped);
}

static void *acknowledge_slowly(void *arg UNUSED)
{
	stack_acknowledge(lone.stack);
	return NULL;
}

TEST(a_ring_that_is_acknowledged_is_not_stopped)
{
	pthread_t thread;

	begin_with_ack(take_time);
	atomic_store(&is_inside, false);
	CHECK_EQ(pthread_create(&thread, NULL, acknowledge_slowly, NULL), 0);
	while (!atomic_load(&is_inside))
		usleep(100);
	lone_lose_nic();
	pthread_join(thread, NULL);
	lone_open_nic();
	lone_end();
}

TEST(other_rings_are_not)
{
	lone_begin();
	CHECK(stack_arm_unwatched(lone.stack));
	CHECK_EQ(lone.nic.acknowledge_cnt, 0);
	CHECK(lone.nic.is_armed);
	lone_end();
}

/* -- regions --------------------------------------------------------------------- */

TEST(with_a_further_region_sockets_hold_more)
{
	lone_begin();
	CHECK_EQ(stack_add_region(lone.stack, &lone.nic.ring, LONE_FRAMES), 0);
	lone_arrive(LONE_HELD_MAX + LONE_FRAMES / 2);
	CHECK_EQ(lone.nic.ring.counts->rx_spilled, 0);
	lone_arrive(LONE_FRAMES);
	CHECK(lone.nic.ring.counts->rx_spilled > 0);
	/* the frames of either go home, also of a ring that is lost */
	lone_lose_nic();
	lone_open_nic();
	while (lone.queued_cnt)
		lone_read();
	stack_check(lone.stack);
	CHECK(list_is_empty(&lone.stack->orphans));
	lone_end();
}

TEST(a_ring_that_runs_low_wants_a_region)
{
	lone_begin();
	CHECK(!stack_wants_region(lone.stack, &lone.nic.ring));
	lone.nic.ring.wants_region = true;
	CHECK(stack_wants_region(lone.stack, &lone.nic.ring));
	lone.nic.grow_cnt = 0;
	lone.nic.grow_by = 2;
	CHECK_EQ(stack_add_region(lone.stack, &lone.nic.ring, LONE_FRAMES), 0);
	CHECK_EQ(lone.nic.grow_cnt, 1);
	/* what it posts now is not for sockets to hold */
	CHECK_EQ(lone.stack->holds[lone.nic.ring.slot].max,
		 (2 * LONE_FRAMES - lone.nic.ring.rx_post_max) / 2);
	CHECK(!stack_wants_region(lone.stack, &lone.nic.ring));
	lone.nic.grow_by = 0;
	lone_end();
}

/* -- the end ---------------------------------------------------------------------- */

TEST(what_was_sent_has_left)
{
	static const enum ring_kick kicks[] = { RING_KICKED };

	lone_begin();
	lone.nic.kicks = kicks;
	lone.nic.kick_cnt = 0;
	CHECK(stack_has_sent(lone.stack));
	CHECK_EQ(lone.nic.kick_cnt, 0);
	lone.nic.undone_cnt = 2;
	CHECK(!stack_has_sent(lone.stack));
	CHECK(!stack_has_sent(lone.stack));
	CHECK_EQ(lone.nic.kick_cnt, 2);
	CHECK(stack_has_sent(lone.stack));
	lone_end();
}

static bool is_awake(void)
{
	struct pollfd pfd = { .fd = stack_fd(lone.stack), .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

/* However many queues there are, each wakes who sleeps for the stack; and one that has
 * gone does not. */
TEST(each_of_many_queues_wakes_who_sleeps)
{
	for (lone.queue_cnt = 0; lone.queue_cnt < LONE_QUEUES; lone.queue_cnt++) {
		lone.queue_fds[lone.queue_cnt] = eventfd(0, EFD_NONBLOCK);
		CHECK(lone.queue_fds[lone.queue_cnt] >= 0);
	}
	lone_begin();
	CHECK(stack_arm_unwatched(lone.stack));
	CHECK(!is_awake());
	for (unsigned i = 0; i < LONE_QUEUES; i++) {
		CHECK_EQ(eventfd_write(lone.queue_fds[i], 1), 0);
		CHECK(is_awake());
		CHECK_EQ(eventfd_read(lone.queue_fds[i], &(eventfd_t){ 0 }), 0);
		CHECK(!is_awake());
	}
	lone_lose_nic();
	CHECK_EQ(eventfd_write(lone.queue_fds[0], 1), 0);
	CHECK(!is_awake());
	for (unsigned i = 0; i < LONE_QUEUES; i++)
		close(lone.queue_fds[i]);
	lone.queue_cnt = 0;
	lone_open_nic();
	lone_end();
}

/* While nobody sleeps, the kernel does not look for sleepers at each frame. */
TEST(a_queue_wakes_those_who_sleep_and_costs_others_nothing)
{
	lone.queue_fds[0] = eventfd(1, EFD_NONBLOCK);
	CHECK(lone.queue_fds[0] >= 0);
	lone.queue_cnt = 1;
	lone_begin();
	CHECK(!is_awake());
	CHECK(stack_arm_unwatched(lone.stack));
	CHECK(is_awake());
	/* somebody slept since the last look */
	stack_unwatch_unused(lone.stack);
	CHECK(is_awake());
	stack_unwatch_unused(lone.stack);
	CHECK(!is_awake());
	/* what came meanwhile wakes the next one */
	CHECK(stack_arm_unwatched(lone.stack));
	CHECK(is_awake());
	stack_unwatch_unused(lone.stack);
	/* somebody sleeps */
	stack_lock(lone.stack);
	lone.stack->watcher = &(struct waiter){ .stack = lone.stack };
	stack_unlock(lone.stack);
	stack_unwatch_unused(lone.stack);
	CHECK(is_awake());
	stack_lock(lone.stack);
	lone.stack->watcher = NULL;
	stack_unlock(lone.stack);
	/* a ring that comes later is watched with the others */
	lone_lose_nic();
	CHECK(!is_awake());
	lone_open_nic();
	CHECK(is_awake());
	close(lone.queue_fds[0]);
	lone.queue_cnt = 0;
	lone_end();
}

/* Under the lock it takes what was there, whoever goes on sending. */
TEST(a_drain_ends)
{
	lone_begin();
	lone.nic.arriving_cnt = 1;
	lone.nic.never_ends = true;
	stack_lock(lone.stack);
	stack_drain_locked(lone.stack);
	stack_unlock(lone.stack);
	/* as many as the region can have had at most, and the rest of a batch */
	CHECK(lone.nic.arrived_cnt >= LONE_HELD_MAX);
	CHECK(lone.nic.arrived_cnt <= LONE_FRAMES + LONE_BATCH);
	lone.nic.never_ends = false;
	lone.nic.arriving_cnt = 0;
	lone_end();
}

/* A card with further regions can have had frames of all of them. */
TEST(a_drain_takes_what_further_regions_hold)
{
	lone_begin();
	CHECK_EQ(stack_add_region(lone.stack, &lone.nic.ring, 4 * LONE_FRAMES), 0);
	lone.nic.arriving_cnt = 3 * LONE_FRAMES;
	stack_lock(lone.stack);
	stack_drain_locked(lone.stack);
	stack_unlock(lone.stack);
	CHECK_EQ(lone.nic.arriving_cnt, 0);
	lone_end();
}

/* -- announcements --------------------------------------------------------------- */

static struct endpoint *foreseen;
static struct watch hearer;
static unsigned fired_cnt;
static bool hears_level;

static struct endpoint *foresee(struct endpoint *end,
				const struct ring_frame *frame)
{
	CHECK(end == &lone.reader);
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
	lone_begin();
	lone_arrive(1);
	lone_read();
	lone.reader.foresee = foresee;
	foreseen = &lone.reader;
	hears_level = true;
	fired_cnt = 0;
	hearer = (struct watch){ .fire = fire, .is_level = is_level };
	/* TCP's, which alone foresees anything */
	stack_engine_init(&idle, nothing_to_run);
	atomic_store(&lone.stack->tcp, &idle);
	stack_lock(lone.stack);
	endpoint_add_watch(&lone.reader, &hearer);
	stack_unlock(lone.stack);
}

static void look_at(uint32_t arriving_cnt)
{
	lone.nic.arriving_cnt = arriving_cnt;
	stack_lock(lone.stack);
	stack_look_locked(lone.stack);
	stack_unlock(lone.stack);
}

static void end_announcing(void)
{
	list_remove(&hearer.link);
	lone_end();
}

TEST(a_single_frame_is_announced_and_stays)
{
	begin_announcing();
	look_at(1);
	CHECK_EQ(lone.nic.arriving_cnt, 1);
	CHECK(endpoint_ready(&lone.reader) & READY_IN);
	CHECK_EQ(fired_cnt, 1);
	/* who looks again without reading has it taken */
	look_at(1);
	CHECK_EQ(lone.nic.arriving_cnt, 0);
	CHECK_EQ(lone.queued_cnt, 1);
	/* what the frame has made of the endpoint is the endpoint's own word */
	CHECK(!endpoint_ready(&lone.reader));
	CHECK(!lone.stack->announced);
	end_announcing();
}

TEST(who_looks_otherwise_has_it_settled)
{
	begin_announcing();
	look_at(1);
	stack_lock(lone.stack);
	stack_settle_locked(lone.stack);
	stack_unlock(lone.stack);
	CHECK_EQ(lone.queued_cnt, 1);
	CHECK(!lone.stack->announced);
	stack_lock(lone.stack);
	stack_settle_locked(lone.stack);
	stack_unlock(lone.stack);
	CHECK_EQ(lone.queued_cnt, 1);
	end_announcing();
}

TEST(only_what_is_alone_and_sure_is_announced)
{
	begin_announcing();
	look_at(2);
	CHECK_EQ(lone.queued_cnt, 2);
	foreseen = NULL;
	look_at(1);
	CHECK_EQ(lone.queued_cnt, 3);
	foreseen = &lone.reader;
	/* to this one, a second call would be another arrival */
	hears_level = false;
	look_at(1);
	CHECK_EQ(lone.queued_cnt, 4);
	hearer.is_level = NULL;
	look_at(1);
	CHECK_EQ(lone.queued_cnt, 5);
	CHECK_EQ(fired_cnt, 0);
	CHECK(!lone.stack->announced);
	end_announcing();
}

TEST(a_ring_that_goes_takes_its_announcement_along)
{
	begin_announcing();
	look_at(1);
	lone_lose_nic();
	CHECK(!lone.stack->announced);
	CHECK(!endpoint_ready(&lone.reader));
	lone_open_nic();
	end_announcing();
}
