/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets in sets (epoll_nest.h). */
#include "config.h"

#include "iomux/epoll_nest.h"

#include "fd/fd_table.h"
#include "iomux/epoll_item.h"
#include "iomux/epoll_ready.h"
#include "iomux/epoll_wake.h"

struct spinlock epoll_nesting = SPINLOCK_INIT(LOCK_RANK_EPOLL_NESTING);

static bool is_item(const struct epoll_watch *watch)
{
	return !watch->waiter;
}

/* The place of this stack; else an empty one, or the first one if none is left, which
 * cannot be: there are no more stacks than places. */
static struct epoll_place *place_for(struct epoll_set *set,
				     const struct stack *stack)
{
	unsigned cnt = epoll_set_place_cnt(set);
	struct epoll_place *empty = NULL;

	for (unsigned i = 0; i < cnt; i++) {
		struct stack *other = epoll_set_stack_at(set, i);

		if (other == stack)
			return &set->places[i];
		if (!other && !empty)
			empty = &set->places[i];
	}
	if (empty)
		return empty;
	INVARIANT(cnt < NET_STACKS_MAX, "more stacks than there can be");
	atomic_store_explicit(&set->place_cnt, cnt + 1, memory_order_release);
	return &set->places[cnt];
}

bool epoll_nest_add_live(struct epoll_set *set, struct stack *stack)
{
	struct epoll_place *place = place_for(set, stack);
	struct epoll_watch *watch;

	if (!set->stats)
		set->stats = stats_mux_open(epoll_set_number(set));
	atomic_fetch_add(&set->live_cnt, 1);
	if (place->live_cnt++)
		return false;
	atomic_store_explicit(&place->stack, stack, memory_order_release);
	atomic_fetch_add(&set->stacks_gen, 1);
	LIST_FOR_EACH(watch, &set->outers, link)
		if (is_item(watch))
			(void)epoll_nest_add_live(
				epoll_item_of_outer(watch)->set, stack);
	return true;
}

void epoll_nest_drop_live(struct epoll_set *set, struct stack *stack)
{
	struct epoll_place *place = place_for(set, stack);
	struct epoll_watch *watch;

	atomic_fetch_sub(&set->live_cnt, 1);
	if (--place->live_cnt)
		return;
	if (place != &set->places[0])
		atomic_store_explicit(&place->stack, NULL, memory_order_release);
	LIST_FOR_EACH(watch, &set->outers, link)
		if (is_item(watch))
			epoll_nest_drop_live(epoll_item_of_outer(watch)->set,
					     stack);
}

bool epoll_nest_add_inner(struct epoll_set *set, const struct epoll_set *inner)
{
	bool is_new = false;

	for (unsigned i = 0; i < epoll_set_place_cnt(inner); i++)
		if (inner->places[i].live_cnt)
			is_new |= epoll_nest_add_live(
				set, epoll_set_stack_at(inner, i));
	return is_new;
}

void epoll_nest_drop_inner(struct epoll_set *set, const struct epoll_set *inner)
{
	for (unsigned i = 0; i < epoll_set_place_cnt(inner); i++)
		if (inner->places[i].live_cnt)
			epoll_nest_drop_live(set, epoll_set_stack_at(inner, i));
}

struct stack *epoll_nest_live_stack(struct epoll_set *set)
{
	struct stack *stack = NULL;

	spinlock_acquire(&epoll_nesting);
	for (unsigned i = 0; i < epoll_set_place_cnt(set) && !stack; i++)
		if (set->places[i].live_cnt)
			stack = epoll_set_stack_at(set, i);
	spinlock_release(&epoll_nesting);
	return stack;
}

/* Who is woken leaves the list, perhaps at once, and a set may be about to be released. So
 * those that a walk came by have its number. */
static uint64_t last_walk GUARDED_BY(epoll_nesting);

static uint64_t begin_walk(void)
{
	uint64_t walk;

	spinlock_acquire(&epoll_nesting);
	walk = ++last_walk;
	spinlock_release(&epoll_nesting);
	return walk;
}

/* An item, or a poll, that the walk has not come by yet, or NULL. One with a later number is
 * being woken by another walk, which began when there was the same to tell. */
static struct epoll_watch *next_watch(struct epoll_set *set, uint64_t walk,
				      bool of_item) REQUIRES(epoll_nesting)
{
	struct epoll_watch *watch;

	LIST_FOR_EACH(watch, &set->outers, link)
		if (is_item(watch) == of_item && watch->walk < walk) {
			watch->walk = walk;
			return watch;
		}
	return NULL;
}

/* The set of the next item, with a reference. */
static struct epoll_set *next_outer(struct epoll_set *set, uint64_t walk)
{
	struct epoll_set *outer;
	struct epoll_watch *watch;

	spinlock_acquire(&epoll_nesting);
	do {
		watch = next_watch(set, walk, true);
		outer = watch ? epoll_item_of_outer(watch)->set : NULL;
	} while (outer && !fd_object_try_hold(&outer->obj));
	spinlock_release(&epoll_nesting);
	return outer;
}

/* The waiter of the next poll. Its memory is a waiter's for ever. */
static struct waiter *next_poll(struct epoll_set *set, uint64_t walk)
{
	struct epoll_watch *watch;
	struct waiter *waiter;

	spinlock_acquire(&epoll_nesting);
	watch = next_watch(set, walk, false);
	waiter = watch ? watch->waiter : NULL;
	spinlock_release(&epoll_nesting);
	return waiter;
}

static void wake_around(struct epoll_set *set, bool is_first, uint64_t walk)
{
	struct epoll_set *outer;
	struct waiter *waiter;

	if (is_first)
		epoll_wake_sleepers(set);
	epoll_set_wake_all(set);
	while ((waiter = next_poll(set, walk)))
		waiter_signal(waiter);
	while ((outer = next_outer(set, walk))) {
		wake_around(outer, is_first, walk);
		fd_object_put(&outer->obj);
	}
}

void epoll_nest_wake_for_stack(struct epoll_set *set, bool is_first)
{
	wake_around(set, is_first, begin_walk());
}

bool epoll_nest_is_within(const struct epoll_set *set,
			  const struct epoll_set *outer)
{
	struct epoll_watch *watch;

	LIST_FOR_EACH(watch, &set->outers, link) {
		const struct epoll_set *next;

		if (!is_item(watch))
			continue;
		next = epoll_item_of_outer(watch)->set;
		if (next == outer || epoll_nest_is_within(next, outer))
			return true;
	}
	return false;
}

static bool tells_once(const struct epoll_set *set) REQUIRES(epoll_nesting)
{
	struct epoll_watch *watch;

	LIST_FOR_EACH(watch, &set->outers, link) {
		const struct epoll_item *item;

		if (!is_item(watch))
			continue;
		item = epoll_item_of_outer(watch);
		if (item->event.events & EPOLLET || tells_once(item->set))
			return true;
	}
	return false;
}

bool epoll_nest_tells_once(const struct epoll_set *set)
{
	bool result;

	spinlock_acquire(&epoll_nesting);
	result = tells_once(set);
	spinlock_release(&epoll_nesting);
	return result;
}

void epoll_nest_fire_outers(struct epoll_set *set, struct stack *stack)
{
	struct epoll_watch *watch;
	struct waiter *waiter;

	LIST_FOR_EACH(watch, &set->outers, link) {
		if (is_item(watch)) {
			epoll_item_hear(epoll_item_of_outer(watch), stack);
			continue;
		}
		/* If it is not in this stack, the stack is new to the set, and it is
		 * being woken because of that. */
		waiter = waiter_in(watch->waiter, stack);
		if (waiter)
			waiter_wake_locked(waiter);
	}
}

void epoll_nest_note_left(struct epoll_set *set)
{
	struct epoll_watch *watch;
	struct epoll_set *outer;

	LIST_FOR_EACH(watch, &set->outers, link) {
		if (!is_item(watch))
			continue;
		outer = epoll_item_of_outer(watch)->set;
		atomic_store(&outer->has_left_inside, true);
		atomic_store(&outer->has_left, true);
		epoll_nest_note_left(outer);
	}
}

void epoll_nest_foretell_outers(struct epoll_set *set)
{
	struct epoll_watch *watch;

	LIST_FOR_EACH(watch, &set->outers, link)
		if (is_item(watch))
			epoll_item_foretell_set(epoll_item_of_outer(watch));
}

bool epoll_set_watch(struct epoll_set *set, struct epoll_watch *watch,
		     unsigned gen)
{
	bool is_same;

	spinlock_acquire(&epoll_nesting);
	list_push_back(&set->outers, &watch->link);
	atomic_store(&set->has_outers, true);
	is_same = atomic_load(&set->stacks_gen) == gen;
	spinlock_release(&epoll_nesting);
	return is_same;
}

void epoll_set_unwatch(struct epoll_watch *watch)
{
	spinlock_acquire(&epoll_nesting);
	list_remove(&watch->link);
	spinlock_release(&epoll_nesting);
}
