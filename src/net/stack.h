/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One lock, and everything that a received packet can reach under it: rings,
 * endpoints, waiters. Whoever holds the lock may process what the rings bring. Some
 * of what follows from that, kicks and wake-ups, must not be done under the lock;
 * stack_unlock does it.
 */
#ifndef NET_STACK_H
#define NET_STACK_H

#include "base/clock.h"
#include "base/tick_clock.h"
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

/* See stack_is_clock_due_locked. */
enum { STACK_LOOKS_PER_CLOCK = 16 };

/* See stack.afterwards. */
#define STACK_WAKES (1ull << STACK_RINGS_MAX)
#define STACK_SHORT (STACK_WAKES << 1)
#define STACK_ENGINES (STACK_WAKES << 2)
#define STACK_SOONER (STACK_WAKES << 3)
#define STACK_LOOKUPS (STACK_WAKES << 4)
#define STACK_STRAYS (STACK_WAKES << 5)

/* The stocks of the stack: some for copies of received packets (spill.h), one for
 * the packets that engines send. */
enum {
	STACK_STOCKS = SPILL_SIZES + 1,
	STACK_SEND_SIZE = 2048,
	/* the stock grows by so many */
	STACK_SEND_LEAST = PKT_STOCK_SLAB_SIZE / STACK_SEND_SIZE,
};

/* How many frames of a ring sockets may hold. When they hold more than `soon`, we
 * get memory for copies. Beyond `max` received packets are copied. Beyond `limit`
 * those that cannot be copied are dropped. */
struct stack_hold {
	uint32_t soon, max, limit;
	/* While the ring's pool has no more packets than this, sockets hold fewer
	 * than `soon`. */
	uint32_t pool_max;
};

struct net;

/* The pool of a ring's packets. Packets return to it even when the ring is gone, so
 * the pool and its regions live on until the last packet has come back. */
struct stack_pool {
	struct pkt_pool pool; /* the stack's lock */
	struct region_set regions; /* set when it becomes an orphan */
	struct list link; /* of the stack's orphans */
};

struct ip_icmp;

/*
 * A protocol's part of a stack. Its endpoints collect the packets of a batch, and
 * make the engine due; whoever calls the engine makes it due as well. Then `run` is
 * called under the lock: at the end of the batch, after timers, or at the latest
 * before the lock is released. It gives the engine the batch, and tells sockets what
 * the engine has to say. It may send, set timers and wake waiters, but must not make
 * an engine due.
 */
struct stack_engine {
	void (*run)(struct stack_engine *engine, struct stack *stack);
	/* Does what must not be done under the lock, as to close fds: called without
	 * it by the library's own thread, soon after stack_engine_tidy. */
	void (*tidy)(struct stack_engine *engine, struct stack *stack);
	/* An ICMP error quotes a packet of the protocol; who forged it may be anybody.
	 * Called under the lock. */
	void (*icmp)(struct stack_engine *engine, struct stack *stack,
		     const struct ip_icmp *icmp);
	/* The device of an interface has failed, and will be given up soon: connections
	 * whose way leads over it are to leave for the kernel. How many of them there
	 * still are. Called under the lock, again and again. */
	unsigned (*leave)(struct stack_engine *engine, int ifindex);
	struct list link; /* in the stack's list of those that are due */
};

struct stack_params {
	enum stack_lock_kind lock_kind;
	/* how many packets we take from a ring at a time, 1 to STACK_BATCH */
	unsigned poll_batch;
	/* Who finds data polls all the same, once in so many nanoseconds; 0: never */
	uint64_t drain_ns;
	/* the seed of the demultiplexer's tables and of the fragments'
	 * identifications */
	uint64_t seed;
	struct net *net; /* NULL in tests that need none */
	unsigned index;
	/* how many packets to send there may be at most; STACK_SEND_LEAST if less */
	uint32_t send_max;
	/* NULL: clock_monotonic_ns */
	uint64_t (*clock_ns)(void);
	/* the processor's counter may be used instead, under the lock */
	bool has_ticks;
	/* Called when a timer is due before the time that stack_sleep_until
	 * returned, or an engine has to tidy up; without the lock, by any thread.
	 * NULL: nobody calls stack_sleep_until and stack_tidy. */
	void (*sooner)(struct stack *stack);
};

struct stack {
	struct stack_lock lock;

	/* fixed */
	struct net *net;
	/* its place in the network's array */
	unsigned index;
	uint64_t (*clock_ns)(void);
	void (*sooner)(struct stack *stack);

	/* An epoll set with the fds of all rings. So one fd wakes those who sleep,
	 * however many rings there are, and although rings come and go. */
	_Atomic int fd;

	/* under the lock; a ring stays as long as its device */
	struct ring *rings[STACK_RINGS_MAX];
	struct demux_from froms[STACK_RINGS_MAX];
	unsigned ring_cnt;
	unsigned poll_batch;
	/* As in the parameters, and when that was last. */
	uint64_t drain_ns, drained_ns;
	/* stack_now_locked_ns */
	struct tick_clock ticks;
	/* Each ring's wants_stamps is the same. */
	bool wants_stamps;
	/* the ring by which frames come, if there is only one; else NULL */
	struct ring *only;
	const struct demux_from *only_from;
	/* It has READY_IN because of the frame at the head of `only`, which lies there
	 * still (stack_announce_locked). NULL: there is none. */
	struct endpoint *announced;
	/* what lies there behind the IP header; `foresee` has found it right */
	struct ring_frame announced_frame;
	struct list wakes; /* waiters */
	struct list waiters;
	struct waiter *watcher;
	/* The rings' fds are in the set; rings have been armed (stack_unwatch_unused). */
	bool is_watched, was_armed;
	/* What the unlock has to do. There is a bit for each ring that wants a kick.
	 * STACK_WAKES: there are `wakes`. STACK_SHORT: memory is short.
	 * STACK_ENGINES: there are `engines`. STACK_SOONER: `sooner` is to be
	 * called. STACK_LOOKUPS: there are `lookups`. STACK_STRAYS: there are
	 * `strays`. */
	uint64_t afterwards;
	struct list engines; /* those that are due */
	/* TCP's, which sock/tcp makes for the first socket that needs it and which
	 * stays; NULL until then. Set under the lock, read by anybody. */
	_Atomic(struct stack_engine *) tcp;
	/* its `tidy` is wanted */
	_Atomic bool is_untidy;
	/* Packets come that are the kernel's, since no rule of the device can say so. Who
	 * waits for them waits for the kernel, and not here. Set once. */
	_Atomic bool has_guests;
	/* The timers of sockets and engines. Whoever sets one directly makes an
	 * engine due, or calls stack_note_timers_locked. */
	struct timer_wheel timers;
	/* makes sure that somebody unlocks again soon, and repeats a kick; when it was set last,
	 * and for how long */
	struct timer kick;
	uint64_t kick_set_ns, kick_pause_ns;
	/* The first timer is due at this time or later. */
	_Atomic uint64_t next_timer_ns;
	/* counts looks that have found nothing */
	uint8_t looks_in_vain;
	/* Until when the watcher sleeps, and until when the library's own thread
	 * sleeps as far as this stack is concerned. 0: that thread looks at the
	 * stack soon anyway. */
	uint64_t watch_until_ns;
	_Atomic uint64_t thread_until_ns;
	/* Requests of dst_lookup.h: those to be looked up, and those that wait for
	 * the kernel to find a neighbour; and whether a thread looks them up now. */
	struct list lookups, unanswered;
	bool is_looking_up;
	/* the holder of the control mutex looks some up when he releases it */
	_Atomic bool has_lookups_left;
	/* frames of strays.h; and whether the holder of the control mutex gives some back
	 * when he releases it */
	struct list strays;
	unsigned stray_cnt;
	_Atomic bool has_strays_left;
	/* one of the rings has to be told when its fd has woken a sleeper */
	_Atomic bool needs_ack;
	/* somebody has polled since the progress thread looked last */
	_Atomic bool was_polled;

	/* the pools (stack_pool) of rings that are gone, whose frames sockets still
	 * hold */
	struct list orphans;
	struct stack_hold holds[STACK_RINGS_MAX];
	struct spill spill;
	struct pkt_stock send;
	struct demux demux;

	/* The next identification of a datagram that is cut into fragments. The hash
	 * of source and destination chooses the place. */
	uint64_t frag_seed;
	uint16_t frag_ids[STACK_FRAG_IDS];
};

int stack_create(const struct stack_params *params, struct stack **stack_out)
	MUST_CHECK;
/* Nobody uses the stack any more, and its rings are closed. */
void stack_destroy(struct stack *stack);

static inline void stack_lock(struct stack *stack) ACQUIRES(stack->lock)
{
	stack_lock_acquire(&stack->lock);
}

/* The unlock if there are kicks, wake-ups or the like. Releases the lock. */
void stack_unlock_slow(struct stack *stack) RELEASES(stack->lock);

static inline void stack_unlock(struct stack *stack)
	RELEASES(stack->lock)
{
	if (UNLIKELY(stack->afterwards))
		stack_unlock_slow(stack);
	else
		stack_lock_release(&stack->lock);
}

/* A ring is kicked outside the lock, by one thread at a time. The state leaves idle
 * under the lock only. */
enum stack_kick_state { STACK_KICK_IDLE, STACK_KICKING, STACK_KICK_AGAIN };

/* stack_kick_begin, if another thread seems to be kicking. */
bool stack_kick_begin_slow(struct ring *ring);

/* True: the caller has become the one who kicks. False: another thread kicks, and
 * has been told that there is more. Under the stack's lock. */
static inline bool stack_kick_begin(struct ring *ring)
{
	if (UNLIKELY(atomic_load_explicit(&ring->kick_state,
					  memory_order_acquire)))
		return stack_kick_begin_slow(ring);
	atomic_store_explicit(&ring->kick_state, STACK_KICKING,
			      memory_order_relaxed);
	TSAN_ACQUIRED(&ring->kick_state);
	return true;
}

/* False: there is more, and the caller still is the one who kicks. */
static inline bool stack_kick_end(struct ring *ring)
{
	int state = STACK_KICKING;

	TSAN_RELEASED(&ring->kick_state);
	return LIKELY(atomic_compare_exchange_strong(&ring->kick_state, &state,
						     STACK_KICK_IDLE));
}

/* The rest of stack_kick, after a kick with this result. */
void stack_kick_on(struct stack *stack, struct ring *ring,
		   enum ring_kick result) EXCLUDES(stack->lock);

/* Kicks the ring. Called by the thread that became the one who kicks. */
static inline void stack_kick(struct stack *stack, struct ring *ring)
	EXCLUDES(stack->lock)
{
	enum ring_kick result = ring->ops->kick(ring);

	if (UNLIKELY(result != RING_KICKED || !stack_kick_end(ring)))
		stack_kick_on(stack, ring, result);
}

/* Makes this stack's ring of a device. Under the control mutex. -ENOSPC: there is no
 * place for another ring. */
int stack_add_ring(struct stack *stack, struct dev *dev,
		   const struct demux_from *from, struct ring **ring_out)
	MUST_CHECK EXCLUDES(stack->lock);
/* Makes a ring of the device that only sends, at this pace (dev_ops.paced_ring_create), with
 * so many frames for itself. In the same way; -ENOMEM: the device has too few of them. */
int stack_add_paced_ring(struct stack *stack, struct dev *dev,
			 const struct ring_pace *pace, uint32_t frame_cnt,
			 struct ring **ring_out)
	MUST_CHECK EXCLUDES(stack->lock);
/* Registers another region with the ring's device. From then on all rings of the
 * device use it. Returns what the device says. Under the control mutex. */
int stack_add_region(struct stack *stack, struct ring *ring, uint32_t frame_cnt)
	MUST_CHECK EXCLUDES(stack->lock);
/* Whether the ring would be better off with one. */
bool stack_wants_region(struct stack *stack, const struct ring *ring)
	EXCLUDES(stack->lock);
/* Removes a ring whose device is about to close. Under the control mutex. */
void stack_remove_ring(struct stack *stack, struct ring *ring)
	EXCLUDES(stack->lock);

/* What is received has the card's time stamps from now on, where the card has any. */
void stack_want_stamps_locked(struct stack *stack) REQUIRES(stack->lock);

static inline void stack_note_kick(struct stack *stack, const struct ring *ring)
{
	stack->afterwards |= (uint64_t)ring->wants_kick << ring->slot;
}

/* Processes at most one batch of a ring that is not quiet. Returns how many packets
 * that were. */
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

/* The engine has work: a packet to process, or something to tell. */
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

/* TCP's engine has something to tidy up. Under the lock. */
static inline void stack_engine_tidy(struct stack *stack)
{
	atomic_store_explicit(&stack->is_untidy, true, memory_order_relaxed);
	stack->afterwards |= STACK_SOONER;
}

/* Asks the engine of TCP, if there is one, to leave an interface. How many connections
 * still use it. */
unsigned stack_leave(struct stack *stack, int ifindex) EXCLUDES(stack->lock);
/* Tells the engine of an ICMP error. Without the lock. */
void stack_take_icmp(struct stack *stack, const struct ip_icmp *icmp);

/* Has it tidy up if it has to; by the library's own thread. */
void stack_tidy(struct stack *stack) EXCLUDES(stack->lock);

/* Runs the engines that are due. For a caller that wants to see the result at once. */
void stack_run_engines_locked(struct stack *stack) REQUIRES(stack->lock);

/* A timer has been set. Wakes those who would sleep for longer than it allows. */
void stack_note_new_timers_locked(struct stack *stack) REQUIRES(stack->lock);
static inline void stack_note_timers_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	if (UNLIKELY(stack->timers.news_tick != TIMER_NO_NEWS))
		stack_note_new_timers_locked(stack);
}

static inline uint64_t stack_now_ns(const struct stack *stack)
{
	return stack->clock_ns();
}

/* The same time at lower cost. It may be behind or ahead of the other by as much as base/
 * tick_clock.h says, so what an engine is told comes from here alone: it counts on it that
 * its time never goes back. */
static ALWAYS_INLINE uint64_t stack_now_locked_ns(struct stack *stack)
	REQUIRES(stack->lock)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "its clock was read without the lock");
	return tick_clock_ns(&stack->ticks);
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

static inline bool stack_has_timer_due_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	uint64_t next = stack_next_timer_ns(stack);

	return UNLIKELY(next != TIMER_NEVER) && stack_now_locked_ns(stack) >= next;
}

/* The same for who has found nothing, and may look again at once. Reading the clock takes
 * as long as the rest of such a look, so only every sixteenth one does: timers wait for a
 * few more looks, or for the library's own thread if these are far apart. */
static inline bool stack_is_clock_due_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	return UNLIKELY(++stack->looks_in_vain % STACK_LOOKS_PER_CLOCK == 0);
}

/* Fires the timers that are due. */
void stack_run_timers_locked(struct stack *stack) REQUIRES(stack->lock);
/* The same for the library's own thread, unless another thread has done it. */
void stack_run_timers(struct stack *stack) EXCLUDES(stack->lock);

/* Until when the library's own thread may sleep: until the next timer is due, and
 * for `grace_ns` longer if there is a watcher who should be in time for the timer.
 * TIMER_NEVER: there is no timer. From now on `sooner` is called if a timer is set
 * that is due before that. */
uint64_t stack_sleep_until(struct stack *stack, uint64_t grace_ns)
	EXCLUDES(stack->lock);
/* The library's own thread looks at the stack soon anyway, so it need not be told of
 * timers. */
static inline void stack_sleep_over(struct stack *stack)
{
	atomic_store_explicit(&stack->thread_until_ns, 0,
			      memory_order_relaxed);
}
static inline bool stack_is_slept_over(const struct stack *stack)
{
	return !atomic_load_explicit(&stack->thread_until_ns,
				     memory_order_relaxed);
}

static inline void stack_note_guests(struct stack *stack)
{
	atomic_store_explicit(&stack->has_guests, true, memory_order_relaxed);
}
static inline bool stack_has_guests(const struct stack *stack)
{
	return atomic_load_explicit(&stack->has_guests, memory_order_relaxed);
}

/* -- polling ------------------------------------------------------------------ */

/* True: no ring has anything. */
static inline bool stack_has_quiet_rings(const struct stack *stack)
{
	if (LIKELY(stack->only))
		return LIKELY(ring_is_quiet(stack->only));
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		const struct ring *ring = stack->rings[i];

		if (UNLIKELY(ring && !ring_is_quiet(ring)))
			return false;
	}
	return true;
}

/* True: a poll would find nothing. Always false while a timer is set; reading the
 * clock here would cost those more who have no timer. */
static inline bool stack_is_quiet(const struct stack *stack)
{
	return LIKELY(stack_next_timer_ns(stack) == TIMER_NEVER) &&
	       stack_has_quiet_rings(stack);
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
	if (stack_has_timer_due_locked(stack))
		stack_run_timers_locked(stack);
	return sum;
}

/* For who has data, and would not poll: does so if it is time (stack_params.drain_ns).
 * True: it has. */
bool stack_poll_due_locked(struct stack *stack) REQUIRES(stack->lock);
static inline bool stack_poll_beside_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	return UNLIKELY(stack->drain_ns) && stack_poll_due_locked(stack);
}

/*
 * stack_poll_locked with fewer steps for who waits for readiness: a single frame stays in its
 * ring if it makes an endpoint readable for sure. The endpoint is told so; whoever then
 * reads takes the frame from the ring. Whoever looks at an endpoint in another way calls
 * stack_settle_locked before. The next poll takes the frame in any case.
 */
bool stack_announce_locked(struct stack *stack) REQUIRES(stack->lock);
static inline void stack_look_locked(struct stack *stack) REQUIRES(stack->lock)
{
	/* nobody but TCP foresees anything */
	if (!atomic_load_explicit(&stack->tcp, memory_order_relaxed) ||
	    !stack->only || ring_is_quiet(stack->only) ||
	    !stack_announce_locked(stack))
		(void)stack_poll_locked(stack);
}

/* The same for who has another look behind this one, unless it finds something. */
static inline void stack_look_quickly_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	if (UNLIKELY(!stack->only || !ring_is_quiet(stack->only) ||
		     stack_is_clock_due_locked(stack)))
		stack_look_locked(stack);
	else
		atomic_store_explicit(&stack->was_polled, true,
				      memory_order_relaxed);
}

static inline void stack_settle_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	if (UNLIKELY(stack->announced))
		(void)stack_poll_locked(stack);
}

/* The endpoint's word is again what it would be without the frame. */
static inline void stack_unannounce_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	endpoint_clear_ready(stack->announced, READY_IN);
	stack->announced = NULL;
}

/* Processes what is in the rings at the time of the call. Later packets may stay
 * there: otherwise it would not end while others go on sending. */
void stack_drain_locked(struct stack *stack) REQUIRES(stack->lock);

/* Whether a sleeper takes what comes. */
bool stack_has_watcher(struct stack *stack) EXCLUDES(stack->lock);
/* One poll by the library's own thread. If there is a watcher it does nothing, since
 * the packets are the watcher's. */
unsigned stack_poll_unwatched(struct stack *stack) EXCLUDES(stack->lock);

/* An fd that is readable when a frame arrives at any of the rings, once they are
 * armed. */
static inline int stack_fd(const struct stack *stack)
{
	return atomic_load_explicit(&stack->fd, memory_order_relaxed);
}

/* Nobody has armed the rings since the last call: they leave the set until somebody
 * does. Called by the library's own thread now and then, unless it sleeps on them. */
void stack_unwatch_unused(struct stack *stack) EXCLUDES(stack->lock);

/* Arms the rings for the library's own thread. False: a packet is there already. If
 * there is a watcher, the packet is his; we wake him, since the arming may have
 * taken back the event that was about to wake him. */
bool stack_arm_unwatched(struct stack *stack) EXCLUDES(stack->lock);

/* The stack's stocks by number, for code that does the same to each. */
static inline struct pkt_stock *stack_stock(struct stack *stack, int i)
{
	return i < SPILL_SIZES ? &stack->spill.stocks[i] : &stack->send;
}

/* A packet of STACK_SEND_SIZE bytes for an engine to send. NULL: there is none now.
 * There will be more after the unlock, unless there are as many as are allowed. */
static inline struct pkt *stack_send_alloc_locked(struct stack *stack)
	REQUIRES(stack->lock)
{
	struct pkt *pkt = pkt_stock_take(&stack->send);

	INVARIANT(stack_lock_is_mine(&stack->lock), "taken without the lock");
	if (UNLIKELY(stack->send.is_wanted))
		stack->afterwards |= STACK_SHORT;
	return pkt;
}

/* Gives back memory that is not needed any more, and lets the engines ask again for what
 * was refused. Called from time to time. */
void stack_check(struct stack *stack) EXCLUDES(stack->lock);

/* Whether all are taken, and there are as many as are allowed, or no memory for more: the
 * next one is there when somebody puts one, or after a stack_check that finds memory. */
static inline bool stack_send_is_used_up_locked(const struct stack *stack)
	REQUIRES(stack->lock)
{
	return pkt_stock_is_used_up(&stack->send);
}

/* Sends a frame by one of the stack's rings (ring_ops.tx). */
static inline int stack_tx_locked(struct stack *stack, struct ring *ring,
				  const struct ring_tx *tx)
	REQUIRES(stack->lock)
{
	int err = ring->ops->tx(ring, tx);

	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	stack_note_kick(stack, ring);
	return err;
}

/* Where a short frame can be written (ring.tx_frame), or NULL. */
static inline uint8_t *stack_tx_frame_locked(struct stack *stack,
					     struct ring *ring)
	REQUIRES(stack->lock)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	if (UNLIKELY(!ring->tx_frame)) {
		ring->ops->reap(ring);
		ring->counts->tx_full += !ring->tx_frame;
		stack_note_kick(stack, ring);
	}
	return ring->tx_frame;
}

/* Sends the frame that was written there. */
static inline void stack_tx_commit_locked(struct stack *stack,
					  struct ring *ring, size_t len)
	REQUIRES(stack->lock)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "sent without the lock");
	ring->ops->tx_commit(ring, len);
	ring->wants_kick |= ring->needs_kick;
	stack_note_kick(stack, ring);
}

/* The unlock of the next function, when there is more to do. */
void stack_unlock_kick_slow(struct stack *stack, struct ring *ring)
	RELEASES(stack->lock);

/* The same, and then the unlock. The lock was taken by stack_lock_try_plain. */
static ALWAYS_INLINE void stack_tx_commit_unlock(struct stack *stack,
						 struct ring *ring, size_t len)
	RELEASES(stack->lock)
{
	ring->ops->tx_commit(ring, len);
	if (UNLIKELY(stack->afterwards | ring->wants_kick)) {
		stack_unlock_kick_slow(stack, ring);
		return;
	}
	if (!ring->needs_kick || UNLIKELY(!stack_kick_begin(ring))) {
		stack_lock_release_plain(&stack->lock);
		return;
	}
	stack_lock_release_plain(&stack->lock);
	stack_kick(stack, ring);
}

bool stack_has_rings(struct stack *stack) EXCLUDES(stack->lock);
/* Whether everything that was sent has left the rings; called until it has. */
bool stack_has_sent(struct stack *stack) EXCLUDES(stack->lock);

void stack_acknowledge_slow(struct stack *stack) EXCLUDES(stack->lock);

/* Tells the rings that a sleeper has been woken by their fds. Called by whoever has
 * slept on the stack's fd, or is about to, before the rings are armed. */
static inline void stack_acknowledge(struct stack *stack) EXCLUDES(stack->lock)
{
	if (UNLIKELY(atomic_load_explicit(&stack->needs_ack,
					  memory_order_relaxed)))
		stack_acknowledge_slow(stack);
}

/* The identification of a packet between two hosts that may be fragmented. It does
 * not repeat for as long as possible, whichever sockets send. */
__be16 stack_frag_id_locked(struct stack *stack, __be32 src, __be32 dst)
	REQUIRES(stack->lock);

/* Arms all rings for somebody who is about to sleep. True: all of them are still
 * empty. */
bool stack_arm_locked(struct stack *stack) REQUIRES(stack->lock);

#endif
