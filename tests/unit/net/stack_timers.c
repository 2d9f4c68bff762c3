/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stack's engines and timers: when they run, and who is woken for them. */
#include "config.h"

#include "net/stack.h"

#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/unit/net/lone.h"

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
	stack_engine_due_locked(lone.stack, &echo.engine);
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
		timer_set(&lone.stack->timers, timer, at_ns + echo.period_ns);
	stack_engine_due_locked(lone.stack, &echo.engine);
}

static void begin_engine(void)
{
	lone_begin();
	memset(&echo, 0, sizeof(echo));
	list_init(&echo.batch);
	stack_engine_init(&echo.engine, engine_run);
	timer_init(&echo.timer, engine_fire);
	endpoint_init(&echo.end, engine_input);
	echo.end.proto = WIRE_PROTO_UDP;
	echo.end.key.local_port = htobe16(LONE_PORT);
	echo.end.key.local = ip_addr_from_v4(0);
	stack_lock(lone.stack);
	demux_remove(&lone.stack->demux, &lone.reader);
	CHECK_EQ(demux_add(&lone.stack->demux, &echo.end), 0);
	stack_unlock(lone.stack);
}

static void end_engine(void)
{
	stack_lock(lone.stack);
	timer_cancel(&lone.stack->timers, &echo.timer);
	demux_remove(&lone.stack->demux, &echo.end);
	CHECK_EQ(demux_add(&lone.stack->demux, &lone.reader), 0);
	stack_unlock(lone.stack);
	lone_end();
}

/* What one poll brings is one call of the engine. */
TEST(an_engine_gets_its_packets_by_batches)
{
	begin_engine();
	lone.nic.arriving_cnt = LONE_BATCH + 1;
	lone_poll();
	CHECK_EQ(echo.run_cnt, 1);
	CHECK_EQ(echo.last_cnt, LONE_BATCH);
	lone_poll();
	CHECK_EQ(echo.run_cnt, 2);
	CHECK_EQ(echo.last_cnt, 1);
	end_engine();
}

/* Whoever has called it need not see to that. */
TEST(an_engine_runs_before_the_lock_is_released)
{
	begin_engine();
	stack_lock(lone.stack);
	stack_engine_due_locked(lone.stack, &echo.engine);
	stack_engine_due_locked(lone.stack, &echo.engine);
	CHECK_EQ(echo.run_cnt, 0);
	stack_unlock(lone.stack);
	CHECK_EQ(echo.run_cnt, 1);
	end_engine();
}

/* -- timers ---------------------------------------------------------------------- */

/* As an engine does: directly, and then it is due. */
static void set_timer_in(uint64_t delay_ns)
{
	stack_lock(lone.stack);
	timer_set(&lone.stack->timers, &echo.timer, lone.now_ns + delay_ns);
	stack_engine_due_locked(lone.stack, &echo.engine);
	stack_unlock(lone.stack);
}

TEST(timers_fire_when_somebody_polls)
{
	begin_engine();
	set_timer_in(NS_PER_MS);
	lone_poll();
	CHECK_EQ(echo.fire_cnt, 0);
	lone.now_ns += NS_PER_MS + TIMER_TICK_NS;
	lone_poll();
	CHECK_EQ(echo.fire_cnt, 1);
	/* its engine has run, for the setting and for the timer */
	CHECK_EQ(echo.run_cnt, 2);
	CHECK_EQ(stack_next_timer_ns(lone.stack), TIMER_NEVER);
	end_engine();
}

/* Who looks again and again does not ask for the time each time. */
TEST(quick_looks_run_timers_now_and_then)
{
	static const _Atomic uint32_t silent;
	unsigned looks = 0;

	begin_engine();
	lone.nic.ring.rx_word = &silent;
	set_timer_in(NS_PER_MS);
	lone.now_ns += NS_PER_MS + TIMER_TICK_NS;
	while (!echo.fire_cnt && looks < 10 * STACK_LOOKS_PER_CLOCK) {
		stack_lock(lone.stack);
		stack_look_quickly_locked(lone.stack);
		stack_unlock(lone.stack);
		looks++;
	}
	CHECK_EQ(echo.fire_cnt, 1);
	CHECK(looks <= STACK_LOOKS_PER_CLOCK);
	ring_set_busy(&lone.nic.ring);
	end_engine();
}

/* Who looks whether there is anything to poll for sees them. */
TEST(a_stack_with_a_timer_is_not_quiet)
{
	begin_engine();
	lone_lose_nic();
	CHECK(stack_is_quiet(lone.stack));
	set_timer_in(NS_PER_MS);
	lone.now_ns += NS_PER_MS + TIMER_TICK_NS;
	CHECK(!stack_is_quiet(lone.stack));
	lone_poll();
	CHECK(stack_is_quiet(lone.stack));
	lone_open_nic();
	end_engine();
}

/* The library's thread is told once, and again after it has looked. */
TEST(who_sleeps_is_told_of_an_earlier_timer)
{
	begin_engine();
	CHECK_EQ(stack_sleep_until(lone.stack, 0), TIMER_NEVER);
	set_timer_in(10 * NS_PER_MS);
	CHECK_EQ(lone.sooner_cnt, 1);
	set_timer_in(5 * NS_PER_MS);
	CHECK_EQ(lone.sooner_cnt, 1);
	CHECK(stack_sleep_until(lone.stack, 0) <= lone.now_ns + 5 * NS_PER_MS + TIMER_TICK_NS);
	/* later, or cancelled: it wakes up for nothing */
	set_timer_in(20 * NS_PER_MS);
	CHECK_EQ(lone.sooner_cnt, 1);
	set_timer_in(NS_PER_MS);
	CHECK_EQ(lone.sooner_cnt, 2);
	/* it looks by itself */
	stack_sleep_over(lone.stack);
	set_timer_in(NS_PER_MS / 2);
	CHECK_EQ(lone.sooner_cnt, 2);
	end_engine();
}

/* Nobody else has done it. */
TEST(the_library_s_thread_runs_timers_that_are_late)
{
	begin_engine();
	set_timer_in(NS_PER_MS);
	stack_run_timers(lone.stack);
	CHECK_EQ(echo.fire_cnt, 0);
	lone.now_ns += NS_PER_SEC;
	stack_run_timers(lone.stack);
	CHECK_EQ(echo.fire_cnt, 1);
	CHECK_EQ(echo.fired_ns, lone.now_ns);
	stack_run_timers(lone.stack);
	CHECK_EQ(echo.fire_cnt, 1);
	end_engine();
}

TEST(a_timer_that_sets_itself_goes_on)
{
	begin_engine();
	echo.period_ns = 10 * NS_PER_MS;
	set_timer_in(10 * NS_PER_MS);
	for (unsigned i = 1; i <= 5; i++) {
		lone.now_ns += 10 * NS_PER_MS + TIMER_TICK_NS;
		lone_poll();
		CHECK_EQ(echo.fire_cnt, i);
		CHECK(stack_next_timer_ns(lone.stack) > lone.now_ns);
		CHECK(stack_next_timer_ns(lone.stack) <= lone.now_ns + 11 * NS_PER_MS);
	}
	end_engine();
}

/* The watcher alone sleeps for the stack. */
TEST(a_watcher_sleeps_until_the_next_timer)
{
	struct waiter *watcher = waiter_get(), *other = waiter_get();
	uint64_t deadline = lone.now_ns + 60 * NS_PER_SEC;

	begin_engine();
	set_timer_in(10 * NS_PER_MS);
	stack_lock(lone.stack);
	CHECK(wait_begin_locked(lone.stack, watcher));
	CHECK(!wait_begin_locked(lone.stack, other));
	CHECK(wait_until_locked(lone.stack, watcher, UINT64_MAX) <=
	      lone.now_ns + 10 * NS_PER_MS + TIMER_TICK_NS);
	CHECK_EQ(wait_until_locked(lone.stack, other, UINT64_MAX), UINT64_MAX);
	CHECK_EQ(wait_until_locked(lone.stack, other, deadline), deadline);
	/* its own deadline is earlier */
	CHECK_EQ(wait_until_locked(lone.stack, watcher, lone.now_ns + 1), lone.now_ns + 1);
	stack_unlock(lone.stack);
	/* the thread waits until he is late */
	CHECK_EQ(stack_sleep_until(lone.stack, NS_PER_MS),
		 stack_next_timer_ns(lone.stack) + NS_PER_MS);
	stack_lock(lone.stack);
	wait_end_locked(lone.stack, watcher);
	wait_end_locked(lone.stack, other);
	stack_unlock(lone.stack);
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
	stack_lock(lone.stack);
	CHECK(wait_begin_locked(lone.stack, watcher));
	wait_until_locked(lone.stack, watcher, UINT64_MAX);
	stack_unlock(lone.stack);
	set_timer_in(20 * NS_PER_MS);
	CHECK(!atomic_load(&watcher->is_woken));
	set_timer_in(5 * NS_PER_MS);
	CHECK(atomic_load(&watcher->is_woken));
	stack_lock(lone.stack);
	wait_end_locked(lone.stack, watcher);
	stack_unlock(lone.stack);
	waiter_put(watcher);
	end_engine();
}
