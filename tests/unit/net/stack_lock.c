/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "net/stack_lock.h"

#include <pthread.h>

#include "tests/support/test.h"

enum { ROUNDS = 20000 };

static struct stack_lock lock;
static int guarded; /* plain, so that a broken lock loses counts */
static _Atomic bool is_over;

static void *count_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		stack_lock_acquire(&lock);
		guarded++;
		stack_lock_release(&lock);
	}
	return NULL;
}

/* As the quick calls do it. Returns how often that way was there. */
static int count_up_plainly(void) NO_LOCK_ANALYSIS
{
	int plain = 0;

	for (int i = 0; i < ROUNDS; i++) {
		if (stack_lock_try_plain(&lock)) {
			guarded++;
			plain++;
			stack_lock_release_plain(&lock);
		} else {
			stack_lock_acquire(&lock);
			guarded++;
			stack_lock_release(&lock);
		}
	}
	return plain;
}

static void *thread_counts_plainly(void *arg)
{
	*(int *)arg = count_up_plainly();
	return NULL;
}

/* Three threads in this way, and how often it was there. */
static int count_plainly_with_threads(enum stack_lock_kind kind)
{
	pthread_t threads[3];
	int plain[3], sum = 0;

	stack_lock_init(&lock, kind);
	guarded = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL,
					thread_counts_plainly, &plain[i]),
			 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		sum += plain[i];
	}
	CHECK_EQ(guarded, 3 * ROUNDS);
	CHECK_EQ(atomic_load(&lock.word), 0);
	return sum;
}

static void *count_up_as_guest(void *arg)
{
	int *rounds = arg;

	os_thread.is_internal = true;
	while (!atomic_load(&is_over)) {
		stack_lock_acquire(&lock);
		guarded++;
		stack_lock_release(&lock);
		(*rounds)++;
	}
	return NULL;
}

static void count_with_threads(enum stack_lock_kind kind)
{
	pthread_t threads[3];

	stack_lock_init(&lock, kind);
	guarded = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, count_up, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(guarded, 3 * ROUNDS);
	CHECK_EQ(atomic_load(&lock.word), 0);
}

TEST(spinning_threads_exclude_each_other)
{
	count_with_threads(STACK_LOCK_SPIN);
}

TEST(sleeping_threads_exclude_each_other)
{
	count_with_threads(STACK_LOCK_SLEEP);
}

TEST(yielding_threads_exclude_each_other)
{
	count_with_threads(STACK_LOCK_YIELD);
}

TEST(owner_needs_no_word)
{
	stack_lock_init(&lock, STACK_LOCK_BIASED);
	stack_lock_acquire(&lock);
	stack_lock_release(&lock);
	CHECK(atomic_load(&lock.owner) == &os_thread);
	stack_lock_acquire(&lock);
	CHECK_EQ(atomic_load(&lock.word), 0);
	CHECK(atomic_load(&lock.is_owner_inside));
	stack_lock_release(&lock);
	CHECK(!atomic_load(&lock.is_owner_inside));
}

TEST(second_thread_ends_the_bias)
{
	count_with_threads(STACK_LOCK_BIASED);
	CHECK_EQ(atomic_load(&lock.kind), STACK_LOCK_SPIN);
	CHECK(atomic_load(&lock.owner) == NULL);
}

TEST(plain_ways_exclude_each_other)
{
	CHECK(count_plainly_with_threads(STACK_LOCK_SPIN) > 0);
	CHECK(count_plainly_with_threads(STACK_LOCK_YIELD) > 0);
	CHECK_EQ(count_plainly_with_threads(STACK_LOCK_SLEEP), 0);
	count_plainly_with_threads(STACK_LOCK_BIASED);
	CHECK_EQ(atomic_load(&lock.kind), STACK_LOCK_SPIN);
}

TEST(owner_has_the_plain_way)
{
	stack_lock_init(&lock, STACK_LOCK_BIASED);
	guarded = 0;
	/* the first one makes it the owner */
	CHECK_EQ(count_up_plainly(), ROUNDS - 1);
	CHECK_EQ(atomic_load(&lock.word), 0);
	CHECK(!atomic_load(&lock.is_owner_inside));
}

TEST(guest_leaves_the_bias)
{
	int guest_rounds = 0;
	pthread_t guest;

	stack_lock_init(&lock, STACK_LOCK_BIASED);
	guarded = 0;
	atomic_store(&is_over, false);
	count_up(NULL);
	CHECK_EQ(pthread_create(&guest, NULL, count_up_as_guest, &guest_rounds),
		 0);
	for (int i = 0; i < 10; i++) {
		count_up(NULL);
		count_up_plainly();
	}
	atomic_store(&is_over, true);
	pthread_join(guest, NULL);
	CHECK_EQ(guarded, 21 * ROUNDS + guest_rounds);
	CHECK_EQ(atomic_load(&lock.kind), STACK_LOCK_BIASED);
	CHECK(atomic_load(&lock.owner) == &os_thread);
	CHECK(!atomic_load(&lock.is_revoked));
}
