/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting for a lock, keeping cancellation off meanwhile, and the witness of debug
 * builds, which knows who holds which lock and in which order. */
#include "config.h"

#include "base/lock.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "base/syscall_raw.h"

static _Thread_local struct {
	unsigned depth;
	int state; /* as it was outside */
} cancellation;

void lock_bar_cancellation(void)
{
	if (cancellation.depth++ == 0)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
				       &cancellation.state);
}

void lock_unbar_cancellation(void)
{
	if (--cancellation.depth == 0)
		pthread_setcancelstate(cancellation.state, NULL);
}

enum { YIELDS = 4, NAP_NS = 20000, NAPS_DOUBLE = 8, NAP_SHIFT_MAX = 6 };

void lock_give_way(unsigned turn)
{
	unsigned shift = turn / NAPS_DOUBLE < NAP_SHIFT_MAX ?
				 turn / NAPS_DOUBLE :
				 NAP_SHIFT_MAX;
	struct timespec nap = { .tv_nsec = (long)NAP_NS << shift };

	if (turn <= YIELDS)
		sched_yield();
	else
		syscall_raw(SYS_nanosleep, (long)(uintptr_t)&nap, 0, 0, 0, 0,
			    0);
}

void spinlock_acquire_slow(struct spinlock *lock)
{
	unsigned spins = 0;

	do
		lock_spin(&spins, LOCK_SPINS);
	while (!spinlock_try_acquire(lock));
}

#ifdef VMA_LOCK_JITTER

enum { JITTER_EVERY = 24, JITTER_NS_MAX = 150000 };

void lock_jitter(void)
{
	static _Thread_local uint32_t seed;
	struct timespec nap = { 0 };

	if (!seed)
		seed = (uint32_t)(uintptr_t)&nap * UINT32_C(2654435761) | 1;
	seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
	nap.tv_nsec = (seed >> 8) % JITTER_NS_MAX;
	if ((seed >> 16) % JITTER_EVERY == 0)
		syscall_raw(SYS_nanosleep, (long)(uintptr_t)&nap, 0, 0, 0, 0,
			    0);
}

#endif

#ifdef VMA_DEBUG

#include <unistd.h>

/* The ranks of the locks that the calling thread holds: bit n is rank n. A thread
 * holds one lock of a rank at a time. */
static _Thread_local unsigned held_ranks;
static _Thread_local int my_tid;

_Static_assert(LOCK_RANK_COUNT <= 8 * sizeof(held_ranks), "a bit for each rank");

static int tid(void)
{
	if (!my_tid)
		my_tid = (int)gettid();
	return my_tid;
}

void lock_witness_init(struct lock_witness *w, enum lock_rank rank)
{
	w->rank = rank;
	atomic_init(&w->owner_tid, 0);
}

void lock_witness_check(const struct lock_witness *w)
{
	INVARIANT(w->rank != LOCK_RANK_NONE, "every lock has a rank");
	INVARIANT(!lock_witness_is_mine(w), "no lock is recursive");
	INVARIANT(held_ranks >> w->rank == 0,
		  "locks are taken in the order of lock_rank.h");
}

void lock_witness_acquired(struct lock_witness *w)
{
	TSAN_ACQUIRED(w);
	held_ranks |= 1u << w->rank;
	atomic_store_explicit(&w->owner_tid, tid(), memory_order_relaxed);
}

void lock_witness_released(struct lock_witness *w)
{
	INVARIANT(lock_witness_is_mine(w), "only its owner releases a lock");
	atomic_store_explicit(&w->owner_tid, 0, memory_order_relaxed);
	held_ranks &= ~(1u << w->rank);
	TSAN_RELEASED(w);
}

bool lock_witness_is_mine(const struct lock_witness *w)
{
	return atomic_load_explicit(&w->owner_tid, memory_order_relaxed) ==
	       tid();
}

void lock_witness_forked(struct lock_witness *w)
{
	my_tid = 0;
	if (held_ranks & 1u << w->rank)
		atomic_store_explicit(&w->owner_tid, tid(),
				      memory_order_relaxed);
}

int lock_witness_held_cnt(void)
{
	return __builtin_popcount(held_ranks);
}

#endif
