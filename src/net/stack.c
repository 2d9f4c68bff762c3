/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks (stack.h): polling, and what follows an unlock. */
#include "config.h"

#include "net/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "net/strays.h"
#include "os/real.h"
#include "stats/stats_publish.h"

/* The room in front of a packet's data: the longest headers. */
enum { POOL_HEADROOM = 128 };

/* How many fds a ring may have. It has one for each queue of the device. */
enum { RING_FDS_MAX = 256 };

/* Makes the epoll set for the fds of the rings. */
static int open_set(struct stack *stack)
{
	int fd = real.epoll_create1(EPOLL_CLOEXEC);

	atomic_init(&stack->fd, fd);
	if (fd < 0)
		return -errno;
	/* If the fd cannot be moved out of the program's way, it stays where it is. */
	(void)!fd_internal_adopt(fd, &stack->fd);
	return 0;
}

/* The unlock kicks. */
static void kick_is_noted(struct timer *timer UNUSED, uint64_t now_ns UNUSED)
{
}

int stack_create(const struct stack_params *params, struct stack **stack_out)
{
	struct stack *stack = calloc(1, sizeof(*stack));
	int err;

	if (!stack)
		return -ENOMEM;
	stack->net = params->net;
	stack->index = params->index;
	stack->sooner = params->sooner;
	stack->clock_ns = params->clock_ns ? params->clock_ns :
					     clock_monotonic_ns;
	tick_clock_init(&stack->ticks, stack->clock_ns, params->has_ticks);
	timer_wheel_init(&stack->timers, stack_now_ns(stack));
	timer_init(&stack->kick, kick_is_noted);
	atomic_init(&stack->next_timer_ns, TIMER_NEVER);
	/* `sooner` is called for the first timer in any case. */
	atomic_init(&stack->thread_until_ns, TIMER_NEVER);
	err = open_set(stack);
	if (err)
		goto err_free;
	err = demux_init(&stack->demux, params->seed);
	if (err)
		goto err_set;
	stack->frag_seed = params->seed;
	for (unsigned i = 0; i < STACK_FRAG_IDS; i++)
		stack->frag_ids[i] = (uint16_t)hash_u64(params->seed, i);
	if (stats_drops())
		stack->demux.drops = stats_drops();
	stack_lock_init(&stack->lock, params->lock_kind);
	spill_init(&stack->spill);
	stack->drain_ns = params->drain_ns;
	stack->drained_ns = stack_now_ns(stack);
	stack->poll_batch = MIN(params->poll_batch, (unsigned)STACK_BATCH);
	pkt_stock_init(&stack->send, STACK_SEND_SIZE,
		       MAX(params->send_max, (uint32_t)STACK_SEND_LEAST));
	list_init(&stack->engines);
	list_init(&stack->lookups);
	list_init(&stack->unanswered);
	list_init(&stack->wakes);
	list_init(&stack->orphans);
	strays_init(stack);
	list_init(&stack->waiters);
	*stack_out = stack;
	return 0;
err_set:
	fd_internal_close(&stack->fd);
err_free:
	free(stack);
	return err;
}

static unsigned free_slot(const struct stack *stack)
{
	unsigned i;

	for (i = 0; i < STACK_RINGS_MAX; i++)
		if (!stack->rings[i])
			break;
	return i;
}

/* Called when a ring has been added or removed. */
static void find_only(struct stack *stack) REQUIRES(stack->lock)
{
	bool needs_ack = false;
	unsigned cnt = 0;

	stack->only = NULL;
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		if (!stack->rings[i] || stack->rings[i]->is_paced)
			continue;
		if (cnt++ == 0)
			stack->only = stack->rings[i];
		needs_ack |= stack->rings[i]->needs_ack;
	}
	atomic_store_explicit(&stack->needs_ack, needs_ack,
			      memory_order_relaxed);
	if (cnt > 1)
		stack->only = NULL;
	if (stack->only)
		stack->only_from = &stack->froms[stack->only->slot];
}

/* Adds the ring's fds to the set by which sleepers are woken, or removes them. */
static void watch_ring(struct stack *stack, struct ring *ring, int op)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fds[RING_FDS_MAX];
	unsigned cnt = MIN(ring->ops->fds(ring, fds, RING_FDS_MAX),
			   (unsigned)RING_FDS_MAX);

	for (unsigned i = 0; i < cnt; i++)
		if (real.epoll_ctl(stack_fd(stack), op, fds[i], &event) != 0)
			log_dbg("a queue of %s is not watched: %s",
				ring->dev->name, strerror(errno));
}

/* Lets the ring count in the statistics file. Nobody else knows the ring yet. */
static void count_in_region(struct ring *ring)
{
	ring->stats = stats_ring_open(ring->dev->name, ring->dev->ops->name,
				      ring->is_paced ? "a paced socket's" :
						       ring->dev->mode);
	if (!ring->stats)
		return;
	ring->stats->dev_mem = ring->dev_mem;
	ring->stats->counters = *ring->counts;
	ring->counts = &ring->stats->counters;
}

/* Half of the frames that are not posted are for sockets to hold, the other half is
 * for sending. */
static struct stack_hold hold_of(const struct ring *ring)
{
	uint32_t frame_cnt = region_set_frame_cnt(&ring->dev->regions);
	uint32_t max = (frame_cnt - ring->rx_post_max) / 2;

	return (struct stack_hold){
		.soon = max / 2,
		.max = max,
		.limit = max + max / 4,
		.pool_max = max / 2 + ring->rx_post_max,
	};
}

/* -- pools ------------------------------------------------------------------ */

static struct stack_pool *make_pool(void)
{
	struct stack_pool *pool = calloc(1, sizeof(*pool));

	if (pool)
		pkt_pool_init(&pool->pool, POOL_HEADROOM);
	return pool;
}

/* Returns packets that have come back to pools without a ring to their regions, and
 * frees the pools that have all of theirs. */
static void reclaim(struct stack *stack)
{
	struct stack_pool *pool, *following;
	struct list whole;

	list_init(&whole);
	stack_lock(stack);
	LIST_FOR_EACH_SAFE(pool, following, &stack->orphans, link) {
		region_set_give(&pool->regions, &pool->pool, UINT32_MAX);
		if (pool->pool.total_cnt)
			continue;
		list_remove(&pool->link);
		list_push_back(&whole, &pool->link);
	}
	stack_unlock(stack);
	LIST_FOR_EACH_SAFE(pool, following, &whole, link) {
		region_set_put(&pool->regions);
		free(pool);
	}
}

void stack_destroy(struct stack *stack)
{
	if (!stack)
		return;
	strays_drop(stack);
	reclaim(stack);
	demux_destroy(&stack->demux);
	fd_internal_close(&stack->fd);
	for (int i = 0; i < STACK_STOCKS; i++)
		(void)!pkt_stock_destroy(stack_stock(stack, i));
	free(stack);
}

/* -- rings ------------------------------------------------------------------ */

/* What a paced ring is made by. */
struct pacing {
	const struct ring_pace *pace;
	uint32_t frame_cnt;
};

static int create_paced(struct dev *dev, const struct pacing *pacing,
			struct pkt_pool *pool, struct ring **ring_out)
{
	uint32_t taken = region_set_take(&dev->regions, pool, pacing->frame_cnt);

	return taken < pacing->frame_cnt ?
		       -ENOMEM :
		       dev->ops->paced_ring_create(dev, pacing->pace, pool, ring_out);
}

/* `from`: where its frames come from; or its pace, and it only sends. */
static int add_ring(struct stack *stack, struct dev *dev,
		    const struct demux_from *from, const struct pacing *pacing,
		    struct ring **ring_out)
{
	/* Rings are added and removed under the control mutex alone, so the slot
	 * stays free although we do not hold the lock. */
	unsigned slot = free_slot(stack);
	struct stack_pool *pool;
	struct ring *ring;
	int err;

	if (slot == STACK_RINGS_MAX)
		return -ENOSPC;
	pool = make_pool();
	if (!pool)
		return -ENOMEM;
	err = pacing ? create_paced(dev, pacing, &pool->pool, &ring) :
		       dev->ops->ring_create(dev, &pool->pool, &ring);
	if (err) {
		region_set_give(&dev->regions, &pool->pool, UINT32_MAX);
		free(pool);
		return err;
	}
	ring->slot = (uint8_t)slot;
	count_in_region(ring);
	stack_lock(stack);
	if (stack->is_watched)
		watch_ring(stack, ring, EPOLL_CTL_ADD);
	ring->wants_stamps = stack->wants_stamps;
	stack->rings[slot] = ring;
	stack->froms[slot] = *from;
	stack->froms[slot].has_tags = ring->has_tags;
	stack->holds[slot] = hold_of(ring);
	stack->ring_cnt = MAX(stack->ring_cnt, slot + 1);
	find_only(stack);
	/* The watcher sleeps, and has not armed this ring. */
	if (stack->watcher)
		waiter_wake_locked(stack->watcher);
	stack_unlock(stack);
	*ring_out = ring;
	return 0;
}

int stack_add_ring(struct stack *stack, struct dev *dev,
		   const struct demux_from *from, struct ring **ring_out)
{
	return add_ring(stack, dev, from, NULL, ring_out);
}

int stack_add_paced_ring(struct stack *stack, struct dev *dev,
			 const struct ring_pace *pace, uint32_t frame_cnt,
			 struct ring **ring_out)
{
	static const struct demux_from nowhere;
	struct pacing pacing = { pace, frame_cnt };

	return add_ring(stack, dev, &nowhere, &pacing, ring_out);
}

int stack_add_region(struct stack *stack, struct ring *ring, uint32_t frame_cnt)
{
	int err = ring->dev->ops->region_add(ring->dev, frame_cnt);

	if (err)
		return err;
	stack_lock(stack);
	ring->ops->rx_grow(ring);
	ring->wants_region = false;
	stack->holds[ring->slot] = hold_of(ring);
	stack_unlock(stack);
	return 0;
}

bool stack_wants_region(struct stack *stack, const struct ring *ring)
{
	bool result;

	stack_lock(stack);
	result = ring->wants_region;
	stack_unlock(stack);
	return result;
}

void stack_remove_ring(struct stack *stack, struct ring *ring)
{
	struct stack_pool *pool =
		CONTAINER_OF(ring->pool, struct stack_pool, pool);
	struct stats_ring *stats = ring->stats;
	unsigned slot;

	region_set_get(&pool->regions, &ring->dev->regions);
	stack_lock(stack);
	for (slot = 0; slot < stack->ring_cnt; slot++)
		if (stack->rings[slot] == ring)
			break;
	stack->rings[slot] = NULL;
	ring_forget_followed(ring);
	if (stack->is_watched)
		watch_ring(stack, ring, EPOLL_CTL_DEL);
	if (stack->announced)
		stack_unannounce_locked(stack);
	while (stack->ring_cnt && !stack->rings[stack->ring_cnt - 1])
		stack->ring_cnt--;
	find_only(stack);
	stack_unlock(stack);
	/* No new kick or acknowledgment can begin; we wait for those that may be under
	 * way. */
	for (unsigned spins = 0; atomic_load(&ring->kick_state) ||
				 atomic_load(&ring->is_acknowledged);)
		lock_spin(&spins, LOCK_SPINS);
	ring->ops->stop(ring);
	stack_lock(stack);
	ring->ops->take_back(ring);
	stack_unlock(stack);
	ring->ops->close(ring);
	stats_ring_close(stats);
	stack_lock(stack);
	list_push_back(&stack->orphans, &pool->link);
	stack_unlock(stack);
	reclaim(stack);
}

void stack_want_stamps_locked(struct stack *stack)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "wished without the lock");
	if (stack->wants_stamps)
		return;
	stack->wants_stamps = true;
	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i])
			stack->rings[i]->wants_stamps = true;
}

/* Sockets hold many of the ring's frames. Copies what they may not hold any more,
 * and drops what cannot be copied. Returns how many packets of the batch are left. */
static COLD unsigned spare_frames(struct stack *stack, struct ring *ring,
				  struct pkt **batch, unsigned cnt)
{
	const struct stack_hold *hold = &stack->holds[ring->slot];
	uint32_t with_device = ring->ops->device_cnt(ring);
	unsigned left = 0;

	for (unsigned i = 0; i < cnt; i++) {
		struct pkt *pkt = batch[i], *copy = NULL;
		uint32_t held = ring->pool->total_cnt - ring->pool->free_cnt -
				with_device;

		INVARIANT(held <= ring->pool->total_cnt,
			  "the device has no more frames than there are");
		if (held > hold->soon &&
		    spill_prepare(&stack->spill, pkt))
			stack->afterwards |= STACK_SHORT;
		if (held > hold->max)
			copy = spill_copy(&stack->spill, pkt);
		if (copy) {
			ring->counts->rx_spilled++;
			batch[left++] = copy;
		} else if (held <= hold->limit) {
			batch[left++] = pkt;
			continue;
		} else {
			ring->counts->rx_spill_drops++;
		}
		pkt_put(pkt);
	}
	return left;
}

unsigned stack_poll_ring_locked(struct stack *stack, struct ring *ring)
{
	struct pkt *batch[STACK_BATCH];
	unsigned cnt;

	INVARIANT(stack_lock_is_mine(&stack->lock), "polled without the lock");
	if (UNLIKELY(stack->announced))
		stack_unannounce_locked(stack);
	cnt = ring->ops->rx_poll(ring, batch, stack->poll_batch);
	if (UNLIKELY(ring->pool->total_cnt >
		     stack->holds[ring->slot].pool_max))
		cnt = spare_frames(stack, ring, batch, cnt);
	for (unsigned i = 0; i < cnt; i++)
		demux_input(&stack->demux, batch[i],
			    &stack->froms[ring->slot]);
	if (UNLIKELY(stack->afterwards & STACK_ENGINES))
		stack_run_engines_locked(stack);
	stack_note_kick(stack, ring);
	return cnt;
}

static bool are_level(const struct list *watches)
{
	const struct watch *watch;

	LIST_FOR_EACH(watch, watches, link)
		if (!watch->is_level || !watch->is_level(watch))
			return false;
	return true;
}

bool stack_announce_locked(struct stack *stack)
{
	struct ring *ring = stack->only;
	struct endpoint *end = stack->demux.last.end;
	struct ring_frame frame;

	INVARIANT(stack_lock_is_mine(&stack->lock), "looked without the lock");
	if (!end || !end->foresee || stack->announced ||
	    stack->afterwards & STACK_ENGINES)
		return false;
	frame = demux_peek(&stack->demux, ring->ops->rx_peek(ring),
			   stack->only_from);
	if (!frame.data || frame.has_more)
		return false;
	end = end->foresee(end, &frame);
	if (!end || !are_level(&end->watches))
		return false;
	stack->announced = end;
	stack->announced_frame = frame;
	atomic_store_explicit(&stack->was_polled, true, memory_order_relaxed);
	endpoint_set_ready(end, READY_IN);
	return true;
}

COLD bool stack_poll_due_locked(struct stack *stack)
{
	uint64_t now = stack_now_locked_ns(stack);

	INVARIANT(stack_lock_is_mine(&stack->lock), "polled without the lock");
	if (now - stack->drained_ns < stack->drain_ns)
		return false;
	stack->drained_ns = now;
	(void)stack_poll_locked(stack);
	return true;
}

void stack_drain_locked(struct stack *stack)
{
	unsigned left = 0;

	INVARIANT(stack_lock_is_mine(&stack->lock), "drained without the lock");
	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i])
			left += region_set_frame_cnt(&stack->rings[i]->dev->regions);
	while (left) {
		unsigned cnt = stack_poll_locked(stack);

		if (!cnt)
			return;
		left -= MIN(cnt, left);
	}
}

bool stack_has_watcher(struct stack *stack)
{
	bool result;

	stack_lock(stack);
	result = stack->watcher != NULL;
	stack_unlock(stack);
	return result;
}

unsigned stack_poll_unwatched(struct stack *stack)
{
	unsigned cnt = 0;

	stack_lock(stack);
	if (!stack->watcher)
		cnt = stack_poll_locked(stack);
	stack_unlock(stack);
	return cnt;
}

/* Of a stock that some use. Who takes a packet meanwhile may find none of those that are
 * set aside, and asks again. */
static void shrink_stock(struct stack *stack, struct pkt_stock *stock)
{
	struct pkt_slab *gone = NULL;
	struct stack_engine *tcp;
	struct pkt_aside aside;
	bool is_aside;

	stack_lock(stack);
	is_aside = pkt_stock_begin_shrink(stock, &aside);
	stack_unlock(stack);
	if (!is_aside)
		return;
	pkt_stock_sort(stock, &aside);
	stack_lock(stack);
	tcp = atomic_load_explicit(&stack->tcp, memory_order_acquire);
	if (UNLIKELY(pkt_stock_is_used_up(stock)) && tcp)
		stack_engine_due_locked(stack, tcp);
	gone = pkt_stock_end_shrink(stock, &aside);
	stack_unlock(stack);
	pkt_slabs_free(gone);
}

void stack_check(struct stack *stack)
{
	struct stack_engine *tcp =
		atomic_load_explicit(&stack->tcp, memory_order_acquire);
	struct pkt_slab *idle[STACK_STOCKS];

	stack_lock(stack);
	for (int i = 0; i < STACK_STOCKS; i++)
		idle[i] = pkt_stock_shrink(stack_stock(stack, i));
	if (UNLIKELY(pkt_stock_take_refusal(&stack->send)) && tcp)
		stack_engine_due_locked(stack, tcp);
	stack_unlock(stack);
	for (int i = 0; i < STACK_STOCKS; i++) {
		pkt_slabs_free(idle[i]);
		shrink_stock(stack, stack_stock(stack, i));
	}
	reclaim(stack);
}

bool stack_has_rings(struct stack *stack)
{
	bool result;

	stack_lock(stack);
	result = stack->ring_cnt != 0;
	stack_unlock(stack);
	return result;
}

bool stack_has_sent(struct stack *stack)
{
	bool result = true;

	stack_lock(stack);
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];

		if (!ring)
			continue;
		result &= ring->ops->tx_is_done(ring);
		stack_note_kick(stack, ring);
	}
	stack_unlock(stack);
	return result;
}

__be16 stack_frag_id_locked(struct stack *stack, __be32 src, __be32 dst)
{
	uint64_t hash = hash_u64x2(stack->frag_seed, src, dst);

	INVARIANT(stack_lock_is_mine(&stack->lock), "numbered without the lock");
	return htobe16(stack->frag_ids[hash % ARRAY_LEN(stack->frag_ids)]++);
}

static COLD void watch_rings(struct stack *stack, int op)
{
	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i])
			watch_ring(stack, stack->rings[i], op);
	stack->is_watched = op == EPOLL_CTL_ADD;
}

/* For each frame of a ring in the set the kernel would look whom to wake. */
void stack_unwatch_unused(struct stack *stack)
{
	stack_lock(stack);
	if (stack->is_watched && !stack->watcher && !stack->was_armed)
		watch_rings(stack, EPOLL_CTL_DEL);
	stack->was_armed = false;
	stack_unlock(stack);
}

bool stack_arm_locked(struct stack *stack)
{
	bool is_empty = true;

	INVARIANT(stack_lock_is_mine(&stack->lock), "armed without the lock");
	stack->was_armed = true;
	if (UNLIKELY(!stack->is_watched))
		watch_rings(stack, EPOLL_CTL_ADD);
	for (unsigned i = 0; i < stack->ring_cnt; i++)
		if (stack->rings[i] &&
		    !stack->rings[i]->ops->arm(stack->rings[i]))
			is_empty = false;
	return is_empty;
}

/* Makes the caller the one who acknowledges, unless another thread does so already. */
static bool begin_to_acknowledge(struct ring *ring)
{
	/* acquire pairs with end_to_acknowledge() */
	if (atomic_load_explicit(&ring->is_acknowledged, memory_order_acquire))
		return false;
	TSAN_ACQUIRED(&ring->is_acknowledged);
	atomic_store_explicit(&ring->is_acknowledged, true, memory_order_relaxed);
	return true;
}

static void end_to_acknowledge(struct ring *ring)
{
	TSAN_RELEASED(&ring->is_acknowledged);
	atomic_store_explicit(&ring->is_acknowledged, false, memory_order_release);
}

/* A ring that another thread acknowledges at this moment is left out. Its fd stays
 * readable, so whoever sleeps on it wakes up, and comes here again at once. */
COLD void stack_acknowledge_slow(struct stack *stack)
{
	struct ring *rings[STACK_RINGS_MAX];
	unsigned cnt = 0;

	stack_lock(stack);
	for (unsigned i = 0; i < stack->ring_cnt; i++) {
		struct ring *ring = stack->rings[i];

		if (ring && ring->needs_ack && begin_to_acknowledge(ring))
			rings[cnt++] = ring;
	}
	stack_unlock(stack);
	for (unsigned i = 0; i < cnt; i++) {
		rings[i]->ops->acknowledge(rings[i]);
		end_to_acknowledge(rings[i]);
	}
}

bool stack_arm_unwatched(struct stack *stack)
{
	bool is_empty;

	stack_acknowledge(stack);
	stack_lock(stack);
	is_empty = stack_arm_locked(stack);
	if (!is_empty && stack->watcher)
		waiter_wake_locked(stack->watcher);
	stack_unlock(stack);
	return is_empty;
}
