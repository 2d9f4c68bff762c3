/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lock of a stack, in the four kinds that VMA_THREAD_MODE chooses from. It is
 * one word, which is 0 when the lock is free. The kinds differ in how they wait for
 * it. Only the biased kind has more: it has an owner, the thread that took it first,
 * which enters and leaves with plain stores. Other threads pay for that with a
 * barrier on all processors. The library's own threads borrow the lock; a second
 * thread of the program ends the bias.
 */
#ifndef NET_STACK_LOCK_H
#define NET_STACK_LOCK_H

#include "base/lock.h"
#include "os/thread.h"

/* The numbers are the values of VMA_THREAD_MODE. */
enum stack_lock_kind {
	/* one thread uses the sockets; a second one makes it SPIN for good */
	STACK_LOCK_BIASED,
	STACK_LOCK_SPIN,
	STACK_LOCK_SLEEP,
	/* for more threads than processors: spins, and gives way */
	STACK_LOCK_YIELD,
};

struct CAPABILITY("stack lock") stack_lock {
	/* 0 free, 1 held, 2 held and somebody sleeps */
	_Atomic int word;
	/* The owner of a biased lock is inside. Only the owner writes this. */
	_Atomic bool is_owner_inside;
	/* The owner has to take the word like every other thread. */
	_Atomic bool is_revoked;
	/* The owner, as the address of its os_thread. NULL: there is no bias.
	 * Changes under the word only. */
	_Atomic(const struct os_thread *) owner;
	int owner_tid; /* set with `owner` */
	/* The owner has seen the last revocation, and waits for the word. */
	_Atomic bool has_seen_revocation;
	_Atomic enum stack_lock_kind kind;
	/* Under the lock: whether the kind is a plain one (stack_lock_is_plain), for
	 * the release. */
	bool is_plain;
	/* Under the word: one of the library's own threads has the lock, and keeps
	 * the owner out meanwhile. */
	bool has_guest;
	struct lock_witness witness;
};

void stack_lock_init(struct stack_lock *lock, enum stack_lock_kind kind);

/* The slow way: another thread has the lock, or this thread has no bias yet. */
void stack_lock_acquire_slow(struct stack_lock *lock);
/* The release of the kinds that are not plain. */
void stack_lock_release_slow(struct stack_lock *lock);

/* Whether the lock is free at some moment within this time. Does not take it. */
bool stack_lock_is_free_within(struct stack_lock *lock, uint64_t ns);

static inline bool stack_lock_is_mine(const struct stack_lock *lock)
{
	return lock_witness_is_mine(&lock->witness);
}

/* The owner's way in. The store must not pass the load, although an ordinary
 * processor would allow that. The thread that revokes makes a barrier on the owner's
 * processor (membarrier), so here only the compiler has to be kept from it. */
static inline bool stack_lock_enter_biased(struct stack_lock *lock)
{
	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) !=
	    &os_thread)
		return false;
	atomic_store_explicit(&lock->is_owner_inside, true,
			      memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* acquire pairs with the release in dismiss_guest */
	if (LIKELY(!atomic_load_explicit(&lock->is_revoked,
					 memory_order_acquire)))
		return true;
	atomic_store_explicit(&lock->is_owner_inside, false,
			      memory_order_release);
	return false;
}

/* The plain kinds: those whose whole state is the word, which is 0 or 1. */
static inline bool stack_lock_is_plain(const struct stack_lock *lock)
{
	_Static_assert(STACK_LOCK_SPIN & 1 && STACK_LOCK_YIELD & 1 &&
			       !(STACK_LOCK_BIASED & 1) &&
			       !(STACK_LOCK_SLEEP & 1),
		       "one bit tells them");
	return LIKELY(atomic_load_explicit(&lock->kind, memory_order_relaxed) &
		      1);
}

static inline bool stack_lock_try_word(struct stack_lock *lock)
{
	int free = 0;

	/* acquire pairs with the release in stack_lock_release */
	return LIKELY(atomic_compare_exchange_strong_explicit(
		&lock->word, &free, 1, memory_order_acquire,
		memory_order_relaxed));
}

/* Tries to take the lock inline, without waiting. False: another thread has it, or
 * it is of the kind that sleeps. For callers that have another way. */
static inline bool stack_lock_try_plain(struct stack_lock *lock)
	TRY_ACQUIRES(true, lock)
{
	lock_witness_check(&lock->witness);
	lock_jitter();
	if (!(stack_lock_is_plain(lock) ? stack_lock_try_word(lock) :
					  stack_lock_enter_biased(lock)))
		return false;
	lock_witness_acquired(&lock->witness);
	return true;
}

static inline void stack_lock_acquire(struct stack_lock *lock)
	ACQUIRES(lock) PART_OF_LOCK
{
	lock_witness_check(&lock->witness);
	lock_jitter();
	if (UNLIKELY(!(stack_lock_is_plain(lock) ?
			       stack_lock_try_word(lock) :
			       stack_lock_enter_biased(lock))))
		stack_lock_acquire_slow(lock);
	lock_witness_acquired(&lock->witness);
}

/* Releases what stack_lock_try_plain has taken. The kind is still the same, since
 * whoever ends a bias waits for the owner first. */
static inline void stack_lock_release_plain(struct stack_lock *lock)
	RELEASES(lock) PART_OF_LOCK
{
	lock_witness_released(&lock->witness);
	if (LIKELY(lock->is_plain)) {
		atomic_store_explicit(&lock->word, 0, memory_order_release);
	} else {
		TSAN_RELEASED(&lock->owner_tid);
		/* release pairs with the acquire in keep_owner_out */
		atomic_store_explicit(&lock->is_owner_inside, false,
				      memory_order_release);
	}
}

static inline void stack_lock_release(struct stack_lock *lock)
	RELEASES(lock) PART_OF_LOCK
{
	lock_witness_released(&lock->witness);
	if (stack_lock_is_plain(lock))
		atomic_store_explicit(&lock->word, 0, memory_order_release);
	else
		stack_lock_release_slow(lock);
	lock_jitter();
}

#endif
