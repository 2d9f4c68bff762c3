/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's own thread, on a network that does what a case says. */
#include "config.h"

#include "core/progress.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/real.h"
#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

#define PATIENCE_NS (10 * NS_PER_SEC)

static _Atomic unsigned fire_cnt, second_cnt;
static _Atomic uint64_t fired_ns;
static struct timer timer;
static struct stack_engine engine;
static int event_fd;

static void fire(struct timer *which UNUSED, uint64_t now_ns)
{
	atomic_store(&fired_ns, now_ns);
	atomic_fetch_add(&fire_cnt, 1);
}

static void run_engine(struct stack_engine *which UNUSED,
		       struct stack *stack UNUSED)
{
}

static void count_second(void)
{
	atomic_fetch_add(&second_cnt, 1);
}

static void begin(unsigned interval_ms)
{
	struct progress_params params = {
		.interval_ms = interval_ms,
		.batch_max = 16,
		.each_second = count_second,
	};

	real_resolve();
	atomic_store(&fire_cnt, 0);
	atomic_store(&second_cnt, 0);
	nic_begin("all");
	net->stacks[0]->sooner = progress_timer_is_sooner;
	nic.event_fd = event_fd = eventfd(0, EFD_CLOEXEC);
	timer_init(&timer, fire);
	stack_engine_init(&engine, run_engine);
	params.net = net;
	CHECK_EQ(progress_start(&params), 0);
}

static void end(void)
{
	progress_stop();
	close(event_fd);
	nic_end();
}

/* As an engine sets it. Returns when. */
static uint64_t set_timer_in(uint64_t delay_ns)
{
	struct stack *stack = net->stacks[0];
	uint64_t now_ns = clock_monotonic_ns();

	stack_lock(stack);
	timer_set(&stack->timers, &timer, now_ns + delay_ns);
	stack_engine_due_locked(stack, &engine);
	stack_unlock(stack);
	return now_ns;
}

/* Not before its time, and not a great while after. */
static void expect_fire(uint64_t set_ns, uint64_t delay_ns, unsigned cnt)
{
	while (atomic_load(&fire_cnt) < cnt) {
		usleep(500);
		CHECK(clock_monotonic_ns() - set_ns < delay_ns + PATIENCE_NS);
	}
	CHECK_EQ(atomic_load(&fire_cnt), cnt);
	CHECK(atomic_load(&fired_ns) >= set_ns + delay_ns);
}

/* Until the thread has said for how long it sleeps, and hears of what is earlier. */
static void until_it_sleeps(void)
{
	uint64_t start_ns = clock_monotonic_ns();

	while (!atomic_load(&net->stacks[0]->thread_until_ns)) {
		usleep(500);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
}

static void check_timers(unsigned interval_ms)
{
	uint64_t set_ns;

	begin(interval_ms);
	set_ns = set_timer_in(30 * NS_PER_MS);
	expect_fire(set_ns, 30 * NS_PER_MS, 1);
	until_it_sleeps();
	set_ns = set_timer_in(30 * NS_PER_MS);
	expect_fire(set_ns, 30 * NS_PER_MS, 2);
	end();
}

TEST(a_timer_fires_though_nobody_polls)
{
	check_timers(10);
}

/* VMA_PROGRESS_ENGINE_INTERVAL=0 is about packets. */
TEST(so_it_does_where_the_thread_takes_no_packets)
{
	check_timers(0);
}

/* The thread sleeps until the first one, and hears of an earlier one. */
TEST(a_timer_that_becomes_earlier_is_in_time)
{
	uint64_t set_ns;

	begin(0);
	(void)set_timer_in(3600 * NS_PER_SEC);
	until_it_sleeps();
	set_ns = set_timer_in(20 * NS_PER_MS);
	expect_fire(set_ns, 20 * NS_PER_MS, 1);
	end();
}

/* Somebody polls all the time: the timers are his, and the thread only sees to those
 * that he leaves. */
TEST(who_polls_runs_the_timers)
{
	struct stack *stack;
	uint64_t set_ns;

	begin(10);
	stack = net->stacks[0];
	set_ns = set_timer_in(30 * NS_PER_MS);
	while (!atomic_load(&fire_cnt)) {
		stack_lock(stack);
		stack_poll_locked(stack);
		stack_unlock(stack);
		CHECK(clock_monotonic_ns() - set_ns < PATIENCE_NS);
	}
	CHECK(atomic_load(&fired_ns) >= set_ns + 30 * NS_PER_MS);
	end();
}

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	pkt_put(pkt);
}

static void frame_comes(void)
{
	uint64_t once = 1;

	CHECK_EQ(write(nic.ring_fd, &once, sizeof(once)), (long)sizeof(once));
}

/* What was announced is known once somebody polls. */
static void until_polled(unsigned before)
{
	uint64_t start_ns = clock_monotonic_ns(), cnt;

	while (atomic_load(&nic.polls) == before) {
		usleep(100);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
	CHECK_EQ(read(nic.ring_fd, &cnt, sizeof(cnt)), (long)sizeof(cnt));
}

/* A connection has gone back, and no rule of the device can say so: whoever has it waits
 * in the kernel. The thread takes each packet as it comes, and never at intervals, though
 * it is to take none for the program. */
TEST(packets_for_the_kernel_do_not_wait_for_a_look)
{
	struct attach_where where = {
		.proto = WIRE_PROTO_TCP,
		.local = nic_addr(),
		.local_port = htobe16(7000),
		.decider = STATS_BY_BIND,
	};
	struct flow_key key = { .local = nic_addr(), .remote = nic_addr() };
	struct stats_handle stats;
	struct attachment att = { 0 };
	struct endpoint point;
	struct stack *stack;

	begin(0);
	nic.ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	endpoint_init(&point, input);
	stats_socket_open(&stats, -1, 0, WIRE_PROTO_TCP);
	where.stack = stack = net_choose_stack(net);
	where.stats = &stats;
	CHECK_EQ(net_attach(net, &att, &point, &where), REASON_NONE);
	nic.is_full = true;
	CHECK_EQ(net_except(net, &att, &key), -EOPNOTSUPP);
	until_it_sleeps();
	for (int i = 0; i < 20; i++) {
		unsigned before = atomic_load(&nic.polls);

		frame_comes();
		until_polled(before);
		CHECK(!stack_is_slept_over(stack));
	}
	net_detach(net, &att);
	stats_socket_close(&stats);
	close(nic.ring_fd);
	end();
}

TEST(each_second_is_told)
{
	uint64_t start_ns = clock_monotonic_ns();

	begin(10);
	while (atomic_load(&second_cnt) < 3) {
		usleep(1000);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
	/* the first one at once */
	CHECK(clock_monotonic_ns() - start_ns >= 2 * NS_PER_SEC - NS_PER_MS);
	end();
}

static uint64_t process_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

/* What cannot be read stays readable. */
TEST(tables_that_are_lost_are_not_asked_for_ever)
{
	uint64_t one = 1, before_ns;

	begin(10);
	nic.tables_err = -ENOBUFS;
	CHECK_EQ(write(event_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	usleep(100 * 1000);
	before_ns = process_ns();
	usleep(500 * 1000);
	CHECK(process_ns() - before_ns < 250 * NS_PER_MS);
	nic.tables_err = 0;
	end();
}
