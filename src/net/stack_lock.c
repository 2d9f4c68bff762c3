/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The slow ways into a stack's lock (stack_lock.h). */
#include "config.h"

#include "net/stack_lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"
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
	atomic_init(&lock->has_seen_revocation, false);
	atomic_init(&lock->owner, NULL);
	set_kind(lock, kind);
	lock->has_guest = false;
	lock_witness_init(&lock->witness, LOCK_RANK_STACK);
	/* Without this barrier a biased lock is not possible. */
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
	/* acquire pairs with the release in stack_lock_release */
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire))
		real.syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2,
			     NULL);
}

/* A thread that spins gives way in the end: the holder of the lock may be waiting
 * for this processor. The library's own do so soon: a program that is pinned to one processor
 * has them there, and what they spin is its time. */
enum { SPINS_BEFORE_YIELD = 100, SPINS_AT_MOST = 20000 };

static unsigned spins_of(enum stack_lock_kind kind)
{
	return kind == STACK_LOCK_YIELD || os_thread.is_internal ?
		       SPINS_BEFORE_YIELD :
		       SPINS_AT_MOST;
}

static void take_word(struct stack_lock *lock)
{
	enum stack_lock_kind kind =
		atomic_load_explicit(&lock->kind, memory_order_relaxed);
	unsigned spins = 0, spins_max = spins_of(kind);

	if (kind == STACK_LOCK_SLEEP) {
		sleep_for_word(lock);
		return;
	}
	while (!try_word(lock, 1))
		lock_spin(&spins, spins_max);
}

static bool is_biased(const struct stack_lock *lock)
{
	return atomic_load_explicit(&lock->kind, memory_order_relaxed) ==
	       STACK_LOCK_BIASED;
}

/* How often a thread has lost its processor so far. -1: it has none at this moment,
 * or has ended. Another negative errno: we cannot find out. */
static long switch_cnt(int tid)
{
	char path[64], text[4096];
	const char *state, *some, *others;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	len = file_peek(path, text, sizeof(text) - 1);
	if (len < 0)
		return len == -ENOENT || len == -ESRCH ? -1 : -EACCES;
	text[len] = '\0';
	state = strstr(text, "\nState:\t");
	some = strstr(text, "\nvoluntary_ctxt_switches:\t");
	others = strstr(text, "\nnonvoluntary_ctxt_switches:\t");
	if (!state || !some || !others)
		return -EACCES;
	if (state[sizeof("\nState:\t") - 1] != 'R')
		return -1;
	return atol(some + sizeof("\nvoluntary_ctxt_switches:\t") - 1) +
	       atol(others + sizeof("\nnonvoluntary_ctxt_switches:\t") - 1);
}

/*
 * Replaces the kernel's barrier, which a filter of system calls may forbid at any
 * time. Waits until the owner has said that it saw the revocation, or has lost its
 * processor since, which is a barrier as well. An owner that does neither, because
 * it computes for ever on a processor of its own, keeps others waiting.
 */
static COLD void await_barrier(struct stack_lock *lock)
{
	int tid = lock->owner_tid;
	unsigned spins = 0;
	long before, now;

	atomic_thread_fence(memory_order_seq_cst);
	before = switch_cnt(tid);
	now = before;
	while (now != -1 && (now < 0 || now == before) &&
	       !atomic_load_explicit(&lock->has_seen_revocation,
				     memory_order_acquire)) {
		lock_spin(&spins, SPINS_BEFORE_YIELD);
		if (spins % SPINS_BEFORE_YIELD == 0)
			now = switch_cnt(tid);
	}
	atomic_thread_fence(memory_order_seq_cst);
}

/* With the word: makes the owner take the word in future, and waits until it is
 * outside. */
static void keep_owner_out(struct stack_lock *lock)
{
	unsigned spins = 0, spins_max = spins_of(STACK_LOCK_BIASED);

	atomic_store_explicit(&lock->has_seen_revocation, false,
			      memory_order_relaxed);
	/* release, so that the owner cannot set the flag before it is cleared above */
	atomic_store_explicit(&lock->is_revoked, true, memory_order_release);
	/* The owner stores and then loads, and so do we. A full barrier orders the
	 * two steps on both sides, so at least one of us sees the other. */
	if (UNLIKELY(real.syscall(SYS_membarrier,
				  MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0))
		await_barrier(lock);
	/* acquire pairs with the owner's release. Naps come late: the owner would wait for
	 * us. */
	while (atomic_load_explicit(&lock->is_owner_inside,
				    memory_order_acquire)) {
		if (++spins % spins_max == 0)
			lock_give_way(spins / SPINS_AT_MOST);
		cpu_relax();
	}
	/* the sanitizer does not know what the kernel's barrier orders */
	TSAN_ACQUIRED(&lock->owner_tid);
}

/* With the word. A thread of the program becomes the owner if there is none; a
 * second one ends the bias for good. A thread of the library keeps the owner out for
 * as long as it has the lock. */
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
		lock->owner_tid = (int)gettid();
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
	/* An owner that comes here is outside, has seen the revocation, and does not
	 * enter without the word. release pairs with the acquire in await_barrier. */
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) ==
	    &os_thread)
		atomic_store_explicit(&lock->has_seen_revocation, true,
				      memory_order_release);
	take_word(lock);
	/* The witness is told when we have the whole lock, not only its word. */
	TSAN_ACQUIRED(&lock->witness);
	if (is_biased(lock))
		settle_bias(lock);
}

bool stack_lock_is_free_within(struct stack_lock *lock, uint64_t ns)
{
	uint64_t end_ns = clock_monotonic_ns() + ns;
	unsigned spins = 0;

	while (atomic_load(&lock->word) ||
	       atomic_load(&lock->is_owner_inside)) {
		if (clock_monotonic_ns() > end_ns)
			return false;
		lock_spin(&spins, SPINS_BEFORE_YIELD);
	}
	return true;
}

/* Under the word: lets the owner enter again. */
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
		/* release pairs with the acquire in keep_owner_out */
		atomic_store_explicit(&lock->is_owner_inside, false,
				      memory_order_release);
		return;
	}
	if (lock->has_guest)
		dismiss_guest(lock);
	/* This comes after the witness, which was told when we gave up the rest of
	 * the lock. */
	TSAN_RELEASED(&lock->witness);
	if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
		real.syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1);
}
