/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One lock and everything a received packet can reach under it: rings, endpoints,
 * waiters. Whoever has the lock may process what the rings bring; what that calls
 * for outside the lock, kicks and wake-ups, is done by stack_unlock.
 */
#ifndef NET_STACK_H
#define NET_STACK_H

#include "base/clock.h"
#include "dev/ring.h"
#include "event/timer_wheel.h"
#include "net/demux.h"
#include "net/spill.h"
#include "net/stack_lock.h"
#include "net/wait.h"

enum {
	STACK_RINGS_MAX = 32,
	/* the largest value of VMA_CQ_POLL_BATCH_MAX */
	STACK_BATCH = 128,
	STACK_FRAG_IDS = 256,
};

/* See stack.afterwards. */
#define STACK_WAKES (1ull << STACK_RINGS_MAX)
#define STACK_SHORT (STACK_WAKES << 1)
#define STACK_ENGINES (STACK_WAKES << 2)
#define STACK_SOONER (STACK_WAKES << 3)
#define STACK_LOOKUPS (STACK_WAKES << 4)

/* The stack's memory: what is received beyond the frames that sockets may hold, and
 * what engines are to send. */
enum { STACK_STOCKS = SPILL_SIZES + 1, STACK_SEND_SIZE = 2048 };

/* How many frames of a ring sockets may hold: from `soon` on there is memory for
 * copies, beyond `max` what arrives is copied, beyond `limit` what cannot be is
 * dropped. */
struct stack_hold {
	uint32_t soon, max, limit;
	/* With no more in its pool they hold fewer than `soon`. */
	uint32_t pool_max;
};

struct net;

/* A ring's packets. They go back there even when it is gone, so the pool and the
 * region outlive it, until the last one has come home. */
struct stack_pool {
	struct pkt_pool pool; /* the stack's lock */
	struct region_set regions; /* of an orphan */
	struct list link; /* of the stack's orphans */
};

/*
 * A protocol's part of a stack. Its endpoints collect the packets of a batch, and make
 * it due; so does who calls its engine. Then `run` is called under the lock, at the end
 * of the batch, after timers, or at the latest before the lock is released: it gives the
 * engine the batch, and tells sockets what the engine has to say. It may send, set
 * timers and wake waiters, but makes nothing due.
 */
struct stack_engine {
	void (*run)(struct stack_engine *engine, struct stack *stack);
	struct list link; /* of those that are due */
};

struct stack_params {
	enum stack_lock_kind lock_kind;
	/* packets taken from a ring at a time, 1 to STACK_BATCH */
	unsigned poll_batch;
	/* of the demultiplexer's tables and of fragments' identifications */
	uint64_t seed;
	struct net *net; /* NULL in tests that need none */
	unsigned index;
	/* packets to send that there may be */
	uint32_t send_max;
	/* NULL: clock_monotonic_ns */
	uint64_t (*clock_ns)(void);
	/* A timer is due before the time that stack_sleep_until said: called without the
	 * lock, by any thread. NULL: nobody sleeps so. */
	void (*sooner)(struct stack *stack);
};

struct stack {
	struct stack_lock lock;

	/* fixed */
	struct net *net;
	/* the network's number for it */
	unsigned index;
	uint64_t (*clock_ns)(void);
	void (*sooner)(struct stack *stack);

	/* An epoll set with the fds of all rings, by which one fd wakes who
	 * sleeps for them, however many there are and whatever comes and goes. */
	_Atomic int fd;

	/* under the lock; a ring is added for ever, as long as its device
	 * lives */
	struct ring *rings[STACK_RINGS_MAX];
	struct demux_from froms[STACK_RINGS_MAX];
	unsigned ring_cnt;
	unsigned poll_batch;
	/* the only one; NULL: there are several, or none */
	struct ring *only;
	const struct demux_from *only_from;
	struct list wakes; /* waiters */
	struct list waiters;
	struct waiter *watcher;
	/* What the unlock has to do: a bit for each ring that wants a kick,
	 * STACK_WAKES when there are `wakes`, STACK_SHORT when memory is short,
	 * STACK_ENGINES when there are `engines`, STACK_SOONER when `sooner` is to
	 * be called, STACK_LOOKUPS when there are `lookups`. */
	uint64_t afterwards;
	struct list engines; /* that are due */
	/* Of sockets and engines. Whoever sets one directly makes an engine due, or
	 * calls stack_note_timers_locked. */
	struct timer_wheel timers;
	/* Not later than the first timer is due. */
	_Atomic uint64_t next_timer_ns;
	/* until when the watcher sleeps, and the library's own thread as far as this
	 * stack goes; 0: it looks by itself before long */
	uint64_t watch_until_ns;
	_Atomic uint64_t thread_until_ns;
	/* dst_lookup.h: destinations to be looked up, and those whose neighbour the
	 * kernel asks for; and whether somebody looks them up */
	struct list lookups, unanswered;
	bool is_looking_up;
	/* who holds the control mutex has left some to its release */
	_Atomic bool has_lookups_left;
	/* one of the rings is to be told what has woken who slept for it */
	_Atomic bool needs_ack;
	/* somebody has polled since the progress thread looked */
	_Atomic bool was_polled;

	/* stack_pool: of rings that are gone, whose frames sockets still hold */
	struct list orphans;
	struct stack_hold holds[STACK_RINGS_MAX];
	struct spill spill;
	struct pkt_stock send;
	struct demux demux;

	/* The next identification of a datagram that is cut, by source and
	 * destination. */
	uint64_t frag_seed;
	uint16_t frag_ids[STACK_FRAG_IDS];
};

int stack_create(const struct stack_params *params, struct stack **stack_out)
	MUST_CHECK;
/* Nobody uses it any more, its rings are closed. */
void stack_destroy(struct stack *stack);

static inline void stack_lock(struct stack *stack) ACQUIRES(stack->lock)
{
	stack_lock_acquire(&stack->lock);
}

/* Out of line: kicks, wake-ups. Releases the lock. */
void stack_unlock_slow(struct stack *stack) RELEASES(stack->lock);

static inline void stack_unlock(struct stack *stack)
	RELEASES(stack->lock)
{
	if (UNLIKELY(stack->afterwards))
		stack_unlock_slow(stack);
	else
		stack_lock_release(&stack->lock);
}

/* Kicks of a ring are made outside the lock, by one thread at a time. It leaves
 * idle under the lock only. */
enum stack_kick_state { STACK_KICK_IDLE, STACK_KICKING, STACK_KICK_AGAIN };

/* Somebody kicked a moment ago. */
bool stack_kick_begin_slow(struct ring *ring);

/* Whether the caller has become the one who kicks; otherwise that one has been
 * told that there is more. Under the stack's lock. */
static inline bool stack_kick_begin(struct ring *ring)
{
	if (UNLIKELY(atomic_load_explicit(&ring->kick_state,
					  memory_order_acquire)))
		return stack_kick_begin_slow(ring);
	atomic_store_explicit(&ring->kick_state, STACK_KICKING,
			      memory_order_relaxed);
	return true;
}

/* False: there is more, and the caller still is the one. */
static inline bool stack_kick_end(struct ring *ring)
{
	int state = STACK_KICKING;

	return LIKELY(atomic_compare_exchange_strong(&ring->kick_state, &state,
						     STACK_KICK_IDLE));
}

/* What is left of stack_kick after a kick with this result. */
void stack_kick_on(struct stack *stack, struct ring *ring,
		   enum ring_kick result) EXCLUDES(stack->lock);

/* By the one who kicks. */
static inline void stack_kick(struct stack *stack, struct ring *ring)
	EXCLUDES(stack->lock)
{
	enum ring_kick result = ring->ops->kick(ring);

	if (UNLIKELY(result != RING_KICKED || !stack_kick_end(ring)))
		stack_kick_on(stack, ring, result);
}

/* Makes this stack's ring of a device: under the control mutex. -ENOSPC: no more
 * rings. */
int stack_add_ring(struct stack *stack, struct dev *dev,
		   const struct demux_from *from, struct ring **ring_out)
	MUST_CHECK EXCLUDES(stack->lock);
/* Registers another region with the ring's device, which all its rings use from then on;
 * what the device says. Under the control mutex. */
int stack_add_region(struct stack *stack, struct ring *ring, uint32_t frame_cnt)
	MUST_CHECK EXCLUDES(stack->lock);
/* The device is about to close. Under the control mutex. */
void stack_remove_ring(struct stack *stack, struct ring *ring)
	EXCLUDES(stack->lock);

static inline void stack_note_kick(struct stack *stack, const struct ring *ring)
{
	stack->afterwards |= (uint64_t)ring->wants_kick << ring->slot;
}

/* Processes what a ring that is not quiet has, at most one batch. */
unsigned stack_poll_ring_locked(struct stack *stack, struct ring *ring)
	REQUIRES(stack->lock);

/* -- engines and timers ------------------------------------------------------- */

static inline void stack_engine_init(struct stack_engine *engine,
				     void (*run)(struct stack_engine *engine,
						 struct stack *stack))
{
	engine->run = run;
	list_init(&engine->link);
}

/* It has work: a packet, or something to say. */
static inline void stack_engine_due_locked(struct stack *stack,
					   struct stack_engine *engine)
	REQUIRES(stack->lock)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "made due without the lock");
	if (list_is_linked(&engine->link))
		return;
	list_push_back(&stack->engines, &engine->link);
	stack->afterwards |= STACK_ENGINES;
}

/* Runs those that are due, for who wants to see what has come of it. */
void stack_run_engines_locked(struct stack *stack) REQUIRES(stack->lock);

/* A timer has been set: whoever sleeps until a later time is told. */
void stack_note_timers_locked(struct stack *stack) REQUIRES(stack->lock);

static inline uint64_t stack_now_ns(const struct stack *stack)
{
	return stack->clock_ns();
}

static inline uint64_t stack_next_timer_ns(const struct stack *stack)
{
	return atomic_load_explicit(&stack->next_timer_ns,
				    memory_order_relaxed);
}

/* The clock is read only while timers are set. */
static inline bool stack_has_timer_due(const struct stack *stack)
{
	uint64_t next = stack_next_timer_ns(stack);

	return UNLIKELY(next != TIMER_NEVER) && stack_now_ns(stack) >= next;
}

/* Lets the timers fire that are due. */
void stack_run_timers_locked(struct stack *stack) REQUIRES(stack->lock);
/* The same for the library's own thread, if nobody else has done it. */
void stack_run_timers(struct stack *stack) EXCLUDES(stack->lock);

/* The library's own thread sleeps until a timer is due, and longer by `grace_ns` if
 * somebody is there who sees to it in time. When to end the sleep; from now on `sooner` is
 * called if that is too late. TIMER_NEVER: there is no timer. */
uint64_t stack_sleep_until(struct stack *stack, uint64_t grace_ns)
	EXCLUDES(stack->lock);
/* It looks at the stack before long in any case. */
static inline void stack_sleep_over(struct stack *stack)
{
	atomic_store_explicit(&stack->thread_until_ns, 0,
			      memory_order_relaxed);
}

/* -- polling ------------------------------------------------------------------ */

/* Whether a poll would find nothing. While a timer is set it is not said: to read the
 * clock here costs those more who have none. */
static inline bool stack_is_quiet(const struct stack *stack)
{
	if (UNLIKELY(stack_next_timer_ns(stack) != TIMER_NEVER))
		return false;
	if (LIKELY(stack->only))
		return LIKELY(ring_is_quiet(stack->only));
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		const struct ring *ring = stack->rings[i];

		if (UNLIKELY(ring && !ring_is_quiet(ring)))
			return false;
	}
	return true;
}

/* Processes what has arrived, at most one batch of each ring. Returns how many
 * packets that were. */
static inline unsigned stack_poll_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	unsigned sum = 0;

	INVARIANT(stack_lock_is_mine(&stack->lock), "polled without the lock");
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];

		if (UNLIKELY(ring && !ring_is_quiet(ring)))
			sum += stack_poll_ring_locked(stack, ring);
	}
	if (stack_has_timer_due(stack))
		stack_run_timers_locked(stack);
	return sum;
}

/* Processes what the rings had when it was called. What arrives meanwhile may stay:
 * under the lock nothing goes on for as long as others send. */
void stack_drain_locked(struct stack *stack) REQUIRES(stack->lock);

/* The same for the library's own thread, which leaves the packets to the watcher
 * if there is one. */
unsigned stack_poll_unwatched(struct stack *stack) EXCLUDES(stack->lock);

/* Readable when a frame arrives at any of the rings, once they are armed. */
static inline int stack_fd(const struct stack *stack)
{
	return atomic_load_explicit(&stack->fd, memory_order_relaxed);
}

/* Arms the rings for the library's own thread. False: something has come already; if
 * there is a watcher it is his, and he is woken for it, since the arming may have
 * taken back what was about to wake him. */
bool stack_arm_unwatched(struct stack *stack) EXCLUDES(stack->lock);

/* Its stocks by number, for who does the same with all. */
static inline struct pkt_stock *stack_stock(struct stack *stack, int i)
{
	return i < SPILL_SIZES ? &stack->spill.stocks[i] : &stack->send;
}

/* A packet of STACK_SEND_SIZE bytes for what an engine is to send, or NULL: there is
 * none now, and will be more after the unlock unless there are as many as there may be. */
static inline struct pkt *stack_send_alloc_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	struct pkt *pkt = pkt_stock_take(&stack->send);

	INVARIANT(stack_lock_is_mine(&stack->lock), "taken without the lock");
	if (UNLIKELY(stack->send.is_wanted))
		stack->afterwards |= STACK_SHORT;
	return pkt;
}

/* What has to be looked at now and then: memory that is not needed any more. */
void stack_check(struct stack *stack) EXCLUDES(stack->lock);

/* Sends a frame by one of the stack's rings; ring_ops.tx. */
static inline int stack_tx_locked(struct stack *stack, struct ring *ring,
				  const struct ring_tx *tx)
	REQUIRES(stack->lock)
{
	int err = ring->ops->tx(ring, tx);

	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	stack_note_kick(stack, ring);
	return err;
}

/* Where a short frame can be written, or NULL; ring.tx_frame. */
static inline uint8_t *stack_tx_frame_locked(struct stack *stack UNUSED,
					     struct ring *ring)
	REQUIRES(stack->lock)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	if (UNLIKELY(!ring->tx_frame)) {
		ring->ops->reap(ring);
		ring->counts->tx_full += !ring->tx_frame;
	}
	return ring->tx_frame;
}

/* Sends what was written there. */
static inline void stack_tx_commit_locked(struct stack *stack,
					  struct ring *ring, size_t len)
	REQUIRES(stack->lock)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	ring->ops->tx_commit(ring, len);
	ring->wants_kick |= ring->needs_kick;
	stack_note_kick(stack, ring);
}

/* The unlock after that, when there is more to do. */
void stack_unlock_kick_slow(struct stack *stack, struct ring *ring)
	RELEASES(stack->lock);

/* The same, and the unlock; of what stack_lock_try_plain has locked. */
static ALWAYS_INLINE void stack_tx_commit_unlock(struct stack *stack,
						 struct ring *ring, size_t len)
	RELEASES(stack->lock)
{
	ring->ops->tx_commit(ring, len);
	if (UNLIKELY(stack->afterwards)) {
		stack_unlock_kick_slow(stack, ring);
		return;
	}
	if (UNLIKELY(!ring->needs_kick || !stack_kick_begin(ring))) {
		stack_lock_release_plain(&stack->lock);
		return;
	}
	stack_lock_release_plain(&stack->lock);
	stack_kick(stack, ring);
}

bool stack_has_rings(struct stack *stack) EXCLUDES(stack->lock);

void stack_acknowledge_slow(struct stack *stack) EXCLUDES(stack->lock);

/* By whoever has slept on the stack's fd, or is about to, before the rings are armed. */
static inline void stack_acknowledge(struct stack *stack) EXCLUDES(stack->lock)
{
	if (UNLIKELY(atomic_load_explicit(&stack->needs_ack,
					  memory_order_relaxed)))
		stack_acknowledge_slow(stack);
}

/* The identification of a packet between two hosts that may be fragmented: one that none
 * before it had for as long as possible, whichever socket sends it. */
__be16 stack_frag_id_locked(struct stack *stack, __be32 src, __be32 dst)
	REQUIRES(stack->lock);

/* Whether all rings are still empty, now that somebody is about to sleep. */
bool stack_arm_locked(struct stack *stack) REQUIRES(stack->lock);

#endif
