/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks with ranks (lock_rank.h). None is recursive. Debug builds check at each
 * acquire that the rank is further in than everything the thread holds, and at
 * each release that the thread is the owner; release builds pay nothing.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/lock_rank.h"

/* What debug builds remember of a lock. */
struct lock_witness {
#ifdef VMA_DEBUG
	enum lock_rank rank;
	_Atomic int owner_tid; /* 0: nobody */
#endif
};

#ifdef VMA_DEBUG
void lock_witness_init(struct lock_witness *w, enum lock_rank rank);
/* Checks rank and recursion, before the thread waits for the lock. */
void lock_witness_check(const struct lock_witness *w);
void lock_witness_acquired(struct lock_witness *w);
void lock_witness_released(struct lock_witness *w);
bool lock_witness_is_mine(const struct lock_witness *w);
/* In the child of a fork, which inherits the forking thread's locks under a
 * new thread id. */
void lock_witness_forked(struct lock_witness *w);
/* How many locks the calling thread holds. */
int lock_witness_held_cnt(void);
#else
static inline void lock_witness_init(struct lock_witness *w UNUSED,
				     enum lock_rank rank UNUSED) {}
static inline void lock_witness_check(const struct lock_witness *w UNUSED) {}
static inline void lock_witness_acquired(struct lock_witness *w)
{
	TSAN_ACQUIRED(w);
}
static inline void lock_witness_released(struct lock_witness *w)
{
	TSAN_RELEASED(w);
}
static inline bool lock_witness_is_mine(const struct lock_witness *w UNUSED)
{
	return true;
}
static inline void lock_witness_forked(struct lock_witness *w UNUSED) {}
static inline int lock_witness_held_cnt(void)
{
	return 0;
}
#endif

/* For critical sections of a few dozen instructions. */
struct CAPABILITY("spinlock") spinlock {
	_Atomic int is_held;
	struct lock_witness witness;
};

/* For locks that exist before any code runs. */
#ifdef VMA_DEBUG
#define LOCK_WITNESS_INIT(rank_) { .rank = (rank_) }
#else
#define LOCK_WITNESS_INIT(rank_) {}
#endif
#define SPINLOCK_INIT(rank_) { 0, LOCK_WITNESS_INIT(rank_) }
#define MUTEX_INIT(rank_) { PTHREAD_MUTEX_INITIALIZER, LOCK_WITNESS_INIT(rank_) }

static inline void spinlock_init(struct spinlock *lock, enum lock_rank rank)
{
	atomic_init(&lock->is_held, 0);
	lock_witness_init(&lock->witness, rank);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/*
 * One more turn of waiting, without libc, for something that another thread is about
 * to do. `spins` counts the turns, from 0. After `spins_max` of them the processor goes
 * to others: first to those that want it as much, and then, by short sleeps, to all.
 * The holder may be of a lower priority than a waiter that runs in real time, which a
 * yield would never let run.
 */
COLD void lock_give_way(unsigned turn);

static inline void lock_spin(unsigned *spins, unsigned spins_max)
{
	if (UNLIKELY(++*spins % spins_max == 0))
		lock_give_way(*spins / spins_max);
	cpu_relax();
}

/* This is far more than a critical section of this kind takes. */
enum { LOCK_SPINS = 2000 };

static inline bool spinlock_try_acquire(struct spinlock *lock)
	TRY_ACQUIRES(true, lock)
{
	/* acquire pairs with the release store in spinlock_release */
	if (atomic_load_explicit(&lock->is_held, memory_order_relaxed) ||
	    atomic_exchange_explicit(&lock->is_held, 1, memory_order_acquire))
		return false;
	lock_witness_acquired(&lock->witness);
	return true;
}

/* Spins until it has the lock. */
COLD void spinlock_acquire_slow(struct spinlock *lock) ACQUIRES(lock);

static inline void spinlock_acquire(struct spinlock *lock)
	ACQUIRES(lock)
{
	lock_witness_check(&lock->witness);
	if (UNLIKELY(!spinlock_try_acquire(lock)))
		spinlock_acquire_slow(lock);
}

static inline void spinlock_release(struct spinlock *lock)
	RELEASES(lock) PART_OF_LOCK
{
	lock_witness_released(&lock->witness);
	atomic_store_explicit(&lock->is_held, 0, memory_order_release);
}

/* If a thread is cancelled while it holds a mutex, the mutex stays taken for ever,
 * and what the control plane calls (netlink, BPF, the dynamic loader) is full of
 * cancellation points. So there are none between these two calls. They nest. */
void lock_bar_cancellation(void);
void lock_unbar_cancellation(void);

/* In builds that look for what others may do between two locks (HACKING): a thread
 * sleeps now and then before it takes one and after it has released one. */
#ifdef VMA_LOCK_JITTER
void lock_jitter(void);
#else
static inline void lock_jitter(void)
{
}
#endif

/* For the control plane, where the holder may sleep. */
struct CAPABILITY("mutex") mutex {
	pthread_mutex_t native;
	struct lock_witness witness;
};

static inline void mutex_init(struct mutex *lock, enum lock_rank rank)
{
	pthread_mutex_init(&lock->native, NULL);
	lock_witness_init(&lock->witness, rank);
}

/* For holders that call nothing that is a cancellation point, and do not go on for long:
 * bars cost more than the mutex. */
static inline void mutex_acquire_unbarred(struct mutex *lock)
	ACQUIRES(lock) PART_OF_LOCK
{
	lock_witness_check(&lock->witness);
	lock_jitter();
	pthread_mutex_lock(&lock->native);
	lock_witness_acquired(&lock->witness);
}

static inline void mutex_release_unbarred(struct mutex *lock)
	RELEASES(lock) PART_OF_LOCK
{
	lock_witness_released(&lock->witness);
	pthread_mutex_unlock(&lock->native);
}

static inline void mutex_acquire(struct mutex *lock)
	ACQUIRES(lock) PART_OF_LOCK
{
	lock_witness_check(&lock->witness);
	lock_jitter();
	lock_bar_cancellation();
	pthread_mutex_lock(&lock->native);
	lock_witness_acquired(&lock->witness);
}

/* For who has something better to do than to wait. */
static inline bool mutex_try_acquire(struct mutex *lock)
	TRY_ACQUIRES(true, lock) PART_OF_LOCK
{
	lock_jitter();
	lock_bar_cancellation();
	if (pthread_mutex_trylock(&lock->native) != 0) {
		lock_unbar_cancellation();
		return false;
	}
	lock_witness_acquired(&lock->witness);
	return true;
}

static inline void mutex_release(struct mutex *lock)
	RELEASES(lock) PART_OF_LOCK
{
	lock_witness_released(&lock->witness);
	pthread_mutex_unlock(&lock->native);
	lock_unbar_cancellation();
	lock_jitter();
}

#endif
