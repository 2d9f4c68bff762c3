/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slow ways into a stack's lock (stack_lock.h). */
#include "config.h"

#include "net/stack_lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "os/real.h"

static void set_kind(struct stack_lock *lock, enum stack_lock_kind kind)
{
	atomic_store(&lock->kind, kind);
	lock->is_plain = stack_lock_is_plain(lock);
}

void stack_lock_init(struct stack_lock *lock, enum stack_lock_kind kind)
{
	atomic_init(&lock->word, 0);
	atomic_init(&lock->is_owner_inside, false);
	atomic_init(&lock->is_revoked, false);
	atomic_init(&lock->owner, NULL);
	set_kind(lock, kind);
	lock->has_guest = false;
	lock_witness_init(&lock->witness, LOCK_RANK_STACK);
	/* Without it there is no bias to be had. */
	if (kind == STACK_LOCK_BIASED &&
	    real.syscall(SYS_membarrier,
			 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
		set_kind(lock, STACK_LOCK_SPIN);
}

static bool try_word(struct stack_lock *lock, int value)
{
	int free = 0;

	return atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
	       /* acquire pairs with the release in stack_lock_release */
	       atomic_compare_exchange_strong_explicit(
		       &lock->word, &free, value, memory_order_acquire,
		       memory_order_relaxed);
}

static void sleep_for_word(struct stack_lock *lock)
{
	if (try_word(lock, 1))
		return;
	/* acquire as above */
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire))
		real.syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2,
			     NULL);
}

/* Also who means to spin gives way in the end: the one that has the lock may be
 * waiting for this processor. */
enum { SPINS_BEFORE_YIELD = 100, SPINS_AT_MOST = 20000 };

static void take_word(struct stack_lock *lock)
{
	enum stack_lock_kind kind =
		atomic_load_explicit(&lock->kind, memory_order_relaxed);
	unsigned spins = 0, spins_max = kind == STACK_LOCK_YIELD ?
					SPINS_BEFORE_YIELD :
					SPINS_AT_MOST;

	if (kind == STACK_LOCK_SLEEP) {
		sleep_for_word(lock);
		return;
	}
	while (!try_word(lock, 1)) {
		if (++spins % spins_max == 0)
			sched_yield();
		cpu_relax();
	}
}

static bool is_biased(const struct stack_lock *lock)
{
	return atomic_load_explicit(&lock->kind, memory_order_relaxed) ==
	       STACK_LOCK_BIASED;
}

/* With the word: until the owner sees the revocation, or has left. */
static void keep_owner_out(struct stack_lock *lock)
{
	atomic_store_explicit(&lock->is_revoked, true, memory_order_relaxed);
	/* The owner's store and load, and our store and load, are ordered by a
	 * full barrier on both sides: one of us sees the other. */
	real.syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	/* acquire pairs with the owner's release */
	while (atomic_load_explicit(&lock->is_owner_inside,
				    memory_order_acquire))
		cpu_relax();
}

/* With the word. A thread of the program becomes the owner, or ends the bias for
 * good; one of ours keeps the owner out. */
static void settle_bias(struct stack_lock *lock)
{
	const struct os_thread *owner = atomic_load(&lock->owner);

	if (os_thread.is_internal) {
		if (!owner)
			return;
		keep_owner_out(lock);
		lock->has_guest = true;
		return;
	}
	if (!owner) {
		atomic_store(&lock->owner, &os_thread);
		return;
	}
	if (owner == &os_thread)
		return;
	keep_owner_out(lock);
	atomic_store(&lock->owner, NULL);
	set_kind(lock, STACK_LOCK_SPIN);
	LOG_ONCE(LOG_LEVEL_WARNING,
		 "VMA_THREAD_MODE=0 but a second thread uses the sockets; using 1 from now on");
}

void stack_lock_acquire_slow(struct stack_lock *lock)
{
	take_word(lock);
	if (is_biased(lock))
		settle_bias(lock);
}

/* Under the word: the owner may enter again. */
static void dismiss_guest(struct stack_lock *lock)
{
	lock->has_guest = false;
	/* release pairs with the owner's acquire load */
	atomic_store_explicit(&lock->is_revoked, false, memory_order_release);
}

void stack_lock_release_slow(struct stack_lock *lock)
{
	if (is_biased(lock) &&
	    atomic_load_explicit(&lock->owner, memory_order_relaxed) ==
		    &os_thread &&
	    atomic_load_explicit(&lock->is_owner_inside,
				 memory_order_relaxed)) {
		/* release pairs with the acquire of who has revoked */
		atomic_store_explicit(&lock->is_owner_inside, false,
				      memory_order_release);
		return;
	}
	if (lock->has_guest)
		dismiss_guest(lock);
	if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
		real.syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1);
}
