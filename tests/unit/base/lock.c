/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

static struct spinlock spin;
static long counter;

static void *add_many(void *arg UNUSED)
{
	for (int i = 0; i < 100000; i++) {
		spinlock_acquire(&spin);
		counter++;
		spinlock_release(&spin);
	}
	return NULL;
}

TEST(spinlock_excludes)
{
	pthread_t threads[4];

	counter = 0;
	spinlock_init(&spin, LOCK_RANK_TEST);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(counter, 400000);
	CHECK_EQ(lock_witness_held_cnt(), 0);
}

/* What the lock analysis would not let a function do. */
static bool try_while_held(void) NO_LOCK_ANALYSIS
{
	return spinlock_try_acquire(&spin);
}

TEST(try_acquire_declines_a_held_lock)
{
	spinlock_init(&spin, LOCK_RANK_TEST);
	CHECK(spinlock_try_acquire(&spin));
	CHECK(!try_while_held());
	spinlock_release(&spin);
	CHECK(spinlock_try_acquire(&spin));
	spinlock_release(&spin);
}

/* Whether fn aborts, tried in a child. */
static bool aborts(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		fn();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void take_in_wrong_order(void) NO_LOCK_ANALYSIS
{
	struct spinlock inner, outer;

	spinlock_init(&outer, LOCK_RANK_CONTROL);
	spinlock_init(&inner, LOCK_RANK_STACK);
	spinlock_acquire(&inner);
	spinlock_acquire(&outer);
}

static void take_in_right_order(void) NO_LOCK_ANALYSIS
{
	struct spinlock inner, outer;

	spinlock_init(&outer, LOCK_RANK_CONTROL);
	spinlock_init(&inner, LOCK_RANK_STACK);
	spinlock_acquire(&outer);
	spinlock_acquire(&inner);
	spinlock_release(&inner);
	spinlock_release(&outer);
}

static void take_twice(void) NO_LOCK_ANALYSIS
{
	struct mutex lock;

	mutex_init(&lock, LOCK_RANK_TEST);
	mutex_acquire(&lock);
	mutex_acquire(&lock);
}

static void release_unheld(void) NO_LOCK_ANALYSIS
{
	struct spinlock lock;

	spinlock_init(&lock, LOCK_RANK_TEST);
	spinlock_release(&lock);
}

static void take_without_rank(void) NO_LOCK_ANALYSIS
{
	struct spinlock lock;

	spinlock_init(&lock, LOCK_RANK_NONE);
	spinlock_acquire(&lock);
}

TEST(witness_catches_misuse)
{
	CHECK(!aborts(take_in_right_order));
	CHECK(aborts(take_in_wrong_order));
	CHECK(aborts(take_twice));
	CHECK(aborts(release_unheld));
	CHECK(aborts(take_without_rank));
}
