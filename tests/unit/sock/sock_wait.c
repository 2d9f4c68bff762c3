/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits that spin, on a stack without rings: when they give way, and when they open the
 * bracket. */
#include "config.h"

#include "sock/sock_wait.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/thread.h"
#include "tests/support/test.h"

enum { LOOKS = 20 };

static struct stack *stack;
static unsigned looks, yields;
static bool is_endless;
/* the look during which somebody else has the processor; 0: none */
static unsigned off_look;
static unsigned sleeps;

/* Only what the tests do takes time. */
enum { LOOK_NS = 100, OFF_NS = 2 * NS_PER_MS };
static _Atomic uint64_t now_ns = NS_PER_SEC;

/* In libc's place. */
int sched_yield(void)
{
	yields++;
	return 0;
}

/* In libc's place. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, ts);
	*ts = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SEC),
				 .tv_nsec = (long)(now_ns % NS_PER_SEC) };
	return 0;
}

static long look(struct sock_wait *wait UNUSED, enum sock_look how UNUSED)
{
	looks++;
	now_ns += looks == off_look ? OFF_NS : LOOK_NS;
	return looks < LOOKS || is_endless ? -EAGAIN : 1;
}

enum { HAS_SLEPT = -1000 };

static long prepare(struct sock_wait *wait UNUSED)
{
	sleeps++;
	return HAS_SLEPT;
}

static const struct sock_wait_ops ops = {
	.look = look,
	.prepare = prepare,
	.abandoned = sock_wait_nothing,
};

static void begin(void)
{
	static const struct stack_params params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = STACK_BATCH,
	};

	real_resolve();
	CHECK_EQ(stack_create(&params, &stack), 0);
	looks = yields = sleeps = off_look = 0;
	is_endless = false;
}

static long spin_so(bool does_yield, bool makes_room)
{
	static struct sock_wait wait;
	long n;

	os_enter();
	wait = (struct sock_wait){
		.ops = &ops,
		.stack = stack,
		.mark = signals_mark(),
		.polls_left = -1,
		.spin_until_ns = UINT64_MAX,
		.looks_per_clock = 1,
		.does_yield = does_yield,
		.makes_room = makes_room,
	};
	n = sock_wait(&wait);
	os_leave();
	return n;
}

static long spin(bool does_yield)
{
	return spin_so(does_yield, false);
}

static void stay_here(cpu_set_t *before)
{
	cpu_set_t one;

	CHECK_EQ(sched_getaffinity(0, sizeof(*before), before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* It has the processor to itself, and keeps it unless it is told otherwise. */
TEST(who_spins_alone_gives_no_way)
{
	begin();
	CHECK_EQ(spin(false), 1);
	CHECK_EQ(looks, LOOKS);
	CHECK_EQ(yields, 0);
	looks = 0;
	CHECK_EQ(spin(true), 1);
	CHECK_EQ(yields, LOOKS);
	stack_destroy(stack);
}

/* Before each look, from the first one on. */
TEST(who_spins_beside_another_gives_way_each_time)
{
	struct sock_spinner other = { .place = -1 };
	cpu_set_t before;

	begin();
	stay_here(&before);
	CHECK(!sock_crowd_is_here(&other));
	CHECK_EQ(spin(false), 1);
	CHECK_EQ(looks, LOOKS);
	CHECK_EQ(yields, LOOKS);
	/* it has left by its end */
	CHECK(!sock_crowd_is_here(&other));
	sock_crowd_leave(&other);
	looks = yields = 0;
	CHECK_EQ(spin(false), 1);
	CHECK_EQ(yields, 0);
	CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
	stack_destroy(stack);
}

/* Somebody computes on its processor: it leaves that to him, and so does the next one. Who is
 * to spin in any case goes on. */
TEST(who_is_kept_from_his_processor_sleeps)
{
	cpu_set_t before;

	begin();
	stay_here(&before);
	off_look = 5;
	CHECK_EQ(spin_so(false, true), HAS_SLEPT);
	CHECK_EQ(looks, 5);
	off_look = looks = 0;
	CHECK_EQ(spin_so(false, true), HAS_SLEPT);
	CHECK_EQ(looks, 0);
	CHECK_EQ(sleeps, 2);
	CHECK_EQ(spin_so(false, false), 1);
	CHECK_EQ(looks, LOOKS);
	now_ns += 20 * NS_PER_MS;
	looks = 0;
	CHECK_EQ(spin_so(false, true), 1);
	CHECK_EQ(sleeps, 2);
	CHECK_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
	stack_destroy(stack);
}

static void *spin_for_ever(void *arg UNUSED)
{
	(void)spin(false);
	return NULL;
}

/* It is counted nowhere then, and holds nothing. */
TEST(who_spins_for_ever_can_be_cancelled)
{
	pthread_t thread;
	void *result;

	/* which forgets the frames that a thread leaves by its end */
	if (HAS_ADDRESS_SANITIZER)
		test_skip("not under a sanitizer");
	begin();
	is_endless = true;
	CHECK_EQ(pthread_create(&thread, NULL, spin_for_ever, NULL), 0);
	CHECK_EQ(pthread_cancel(thread), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	for (int i = 0; i < SOCK_CROWD_PLACES; i++)
		CHECK_EQ(sock_crowd[i].cnt, 0);
	stack_destroy(stack);
}
