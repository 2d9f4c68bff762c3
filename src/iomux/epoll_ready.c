/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is ready in a set, and who is woken (epoll_ready.h). */
#include "config.h"

#include "iomux/epoll_ready.h"

#include "fd/fd_table.h"
#include "iomux/epoll_nest.h"

static uint32_t state_of(const struct epoll_item *item)
{
	return endpoint_poll_events(endpoint_ready(item->end));
}

/* What an item of a socket reports now, after something has come. As in Linux, an
 * edge-triggered set is told of it even if another thread has read it meanwhile. A
 * socket of ours that something comes to can be written to as well. */
static inline uint32_t word_events(const struct epoll_item *item, uint32_t ready)
{
	uint32_t events = ready & item->wanted;

	if (!events || item->obj->ops->word(item->obj) == FD_WORD_NOTHING)
		return 0;
	return events;
}

static inline uint32_t ready_events(const struct epoll_item *item)
{
	uint32_t ready = state_of(item);

	if (item->has_word)
		return word_events(item, ready);

	if (!(ready & item->wanted) && !(item->event.events & EPOLLET))
		return 0;
	return (ready | EPOLL_OUT_NAMES) & item->wanted;
}

/* The same of a set, if it is ready. */
static uint32_t nested_events(const struct epoll_item *item)
{
	return item->wanted & (EPOLLIN | EPOLLRDNORM);
}

/* Whether the item is still there after the lock was released meanwhile, and stands for
 * the same set: its memory may be another item's by now. */
static bool is_still_ready(struct epoll_set *set, const struct epoll_item *item,
			   const struct fd_object *obj) REQUIRES(set->lock)
{
	const struct list *link = set->ready.next;

	while (link != &set->ready && link != &item->in_ready)
		link = link->next;
	return link != &set->ready && item->obj == obj;
}

/* What the item of a set reports; 0: nothing, or the item has gone meanwhile. The lock
 * of the inner set is not taken under this one's, so this one's is released, and
 * whoever walks the list begins anew. */
static COLD uint32_t ask_nested(struct epoll_set *set, struct epoll_item *item)
	REQUIRES(set->lock)
{
	uint32_t events = nested_events(item);
	struct fd_object *obj = item->obj;
	bool is_ready;

	if (!events || !fd_object_try_hold(obj)) {
		list_remove(&item->in_ready);
		return 0;
	}
	spinlock_release(&set->lock);
	is_ready = epoll_is_set(obj) && epoll_set_is_ready(epoll_set_of(obj));
	fd_object_put(obj);
	spinlock_acquire(&set->lock);
	if (!is_still_ready(set, item, obj))
		return 0;
	if (is_ready)
		return events;
	list_remove(&item->in_ready);
	return 0;
}

/* The same of a socket's item. */
static inline uint32_t ask_socket(struct epoll_item *item)
{
	uint32_t events = ready_events(item);

	if (!events)
		list_remove(&item->in_ready);
	return events;
}

static struct epoll_item *item_at(struct list *link)
{
	return LIST_ENTRY(link, struct epoll_item, in_ready);
}

void epoll_set_poll_rings(struct epoll_set *set)
{
	struct stack *stack;

	for (unsigned i = 0; i < epoll_set_place_cnt(set); i++) {
		stack = epoll_set_stack_at(set, i);
		if (LIKELY(stack))
			mux_poll_rings(stack);
	}
}

bool epoll_set_is_ready(struct epoll_set *set)
{
	bool is_ready = false;
	struct list *link;

	spinlock_acquire(&set->lock);
	while (!is_ready && (link = list_first(&set->ready)))
		is_ready = item_at(link)->end ? ask_socket(item_at(link)) :
						ask_nested(set, item_at(link));
	spinlock_release(&set->lock);
	return is_ready;
}

bool epoll_set_may_be_ready(struct epoll_set *set)
{
	bool may_be;

	spinlock_acquire(&set->lock);
	may_be = !list_is_empty(&set->ready);
	spinlock_release(&set->lock);
	return may_be;
}

static void disarm(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	item->wanted = 0;
	if (!item->is_armed_in_kernel || item->is_hidden ||
	    list_is_linked(&item->in_spent))
		return;
	list_push_back(&set->spent, &item->in_spent);
	atomic_store(&set->has_spent, true);
}

/* Of an item whose report is its only one, until something more comes or it is armed. */
static void end_report(struct epoll_item *item)
{
	list_remove(&item->in_ready);
	if (item->event.events & EPOLLONESHOT)
		disarm(item);
}

/* Several threads may look at once, and only one of their looks is noted. */
static inline void note_report(struct epoll_item *item, uint64_t look,
			       struct epoll_event *place)
{
	if (LIKELY(look > item->look)) {
		item->look = look;
		item->place = place;
	}
	item->is_out_said = item->is_out_due;
	if (UNLIKELY(item->event.events & (EPOLLET | EPOLLONESHOT)))
		end_report(item);
}

uint32_t epoll_item_join_report(struct epoll_item *item, uint64_t look,
				struct epoll_event *place)
{
	uint32_t events = 0;

	if (item->end && list_is_linked(&item->in_ready))
		events = ready_events(item);
	note_report(item, look, place);
	return events;
}

static inline void report(struct epoll_item *item, uint64_t look, uint32_t ready,
			  struct epoll_event *place)
{
	place->events = ready;
	place->data = item->event.data;
	note_report(item, look, place);
}

/* Returns how many events that are. The item may be gone after it. The walk goes on with the
 * first of the list, which is the next one: those before, and this one, come last. */
static COLD int report_nested(struct epoll_set *set, struct epoll_item *item,
			      uint64_t look, struct epoll_event *place)
	REQUIRES(set->lock)
{
	uint32_t ready;

	list_begin_at(&set->ready, &item->in_ready);
	ready = ask_nested(set, item);
	if (!ready)
		return 0;
	list_remove(&item->in_ready);
	list_push_back(&set->ready, &item->in_ready);
	report(item, look, ready, place);
	return 1;
}

static int walk_on(struct epoll_set *set, uint64_t look, struct epoll_event *places, int cnt)
	REQUIRES(set->lock);

/* What stays ready is looked at again, after those that have found no place. `has_some`: the
 * look has stored events already. It meets them again; and what a later look has reported may
 * be one of them, so that it is left out. */
static ALWAYS_INLINE int walk(struct epoll_set *set, uint64_t look,
			      struct epoll_event *places, int cnt, bool has_some)
	REQUIRES(set->lock)
{
	struct list *link = set->ready.next;
	struct epoll_item *item;
	uint32_t ready;
	int n = 0;

	while (link != &set->ready && n < cnt) {
		item = item_at(link);
		if (has_some && item->look >= look) {
			link = link->next;
			continue;
		}
		if (UNLIKELY(!item->end)) {
			n += report_nested(set, item, look, &places[n]);
			if (n && !has_some)
				return n + walk_on(set, look, &places[n], cnt - n);
			link = set->ready.next;
			continue;
		}
		ready = ready_events(item);
		link = link->next;
		if (LIKELY(ready))
			report(item, look, ready, &places[n++]);
		else
			list_remove(&item->in_ready);
	}
	list_begin_at(&set->ready, link);
	return n;
}

static COLD int walk_on(struct epoll_set *set, uint64_t look, struct epoll_event *places,
			int cnt)
{
	return walk(set, look, places, cnt, true);
}

/* Nothing is left to the calls that wait. */
static inline void end_walk(struct epoll_set *set) REQUIRES(set->lock)
{
	if (list_is_empty(&set->ready))
		set->left_cnt = 0;
}

/* Each item comes once in a look. */
int epoll_set_harvest(struct epoll_set *set, uint64_t look,
		      struct epoll_event *places, int cnt)
{
	int n;

	spinlock_acquire(&set->lock);
	n = walk(set, look, places, cnt, false);
	end_walk(set);
	spinlock_release(&set->lock);
	return n;
}

int epoll_set_harvest_more(struct epoll_set *set, uint64_t look,
			   struct epoll_event *places, int cnt)
{
	int n;

	spinlock_acquire(&set->lock);
	n = walk_on(set, look, places, cnt);
	end_walk(set);
	spinlock_release(&set->lock);
	return n;
}

/* -- sleepers -------------------------------------------------------------------- */

static void set_counted(struct epoll_set *set, struct epoll_call *call,
			bool is_counted)
{
	if (is_counted && !call->is_counted)
		atomic_fetch_add(&set->waiting_cnt, 1);
	else if (!is_counted && call->is_counted)
		atomic_fetch_sub(&set->waiting_cnt, 1);
	call->is_counted = is_counted;
}

void epoll_set_begin_wait(struct epoll_set *set, struct epoll_call *call)
{
	list_init(&call->in_sleepers);
	call->is_counted = call->is_heir = false;
	set_counted(set, call, true);
}

static struct epoll_call *sleeper_at(struct list *link)
{
	return LIST_ENTRY(link, struct epoll_call, in_sleepers);
}

/* The kernel's watch is nobody's, and is to be that of the first sleeper, or NULL. */
static struct waiter *choose_heir(struct epoll_set *set) REQUIRES(set->lock)
{
	struct list *first = list_first(&set->sleepers);

	if (!first)
		return NULL;
	sleeper_at(first)->is_heir = true;
	return sleeper_at(first)->call.wait.waiter;
}

/* It was woken to take the kernel's watch, and does not sleep again. */
static COLD void disinherit(struct epoll_set *set, struct epoll_call *call)
{
	struct waiter *waiter = NULL;

	spinlock_acquire(&set->lock);
	call->is_heir = false;
	if (!set->kernels_watcher)
		waiter = choose_heir(set);
	spinlock_release(&set->lock);
	/* as in epoll_set_pass_on() */
	if (waiter)
		waiter_signal(waiter);
}

void epoll_set_end_wait(struct epoll_set *set, struct epoll_call *call)
{
	set_counted(set, call, false);
	if (UNLIKELY(call->is_heir))
		disinherit(set, call);
}

bool epoll_set_try_end_wait(struct epoll_set *set, struct epoll_call *call)
{
	bool may_end;

	spinlock_acquire(&set->lock);
	may_end = list_is_empty(&set->ready);
	if (may_end)
		set_counted(set, call, false);
	spinlock_release(&set->lock);
	if (may_end && UNLIKELY(call->is_heir))
		disinherit(set, call);
	return may_end;
}

static struct epoll_call *pop_sleeper(struct epoll_set *set)
	REQUIRES(set->lock)
{
	struct list *link = list_pop_front(&set->sleepers);
	struct epoll_call *call;

	if (!link)
		return NULL;
	call = sleeper_at(link);
	atomic_fetch_sub(&set->sleeper_cnt, 1);
	set_counted(set, call, false);
	return call;
}

void epoll_set_pass_on(struct epoll_set *set)
{
	struct epoll_call *next = NULL;
	struct waiter *waiter = NULL;

	spinlock_acquire(&set->lock);
	if (!list_is_empty(&set->ready) && !atomic_load(&set->looking_cnt))
		next = pop_sleeper(set);
	if (next)
		waiter = next->call.wait.waiter;
	spinlock_release(&set->lock);
	/* If it has gone by itself meanwhile, somebody looks in vain. */
	if (waiter)
		waiter_signal(waiter);
}

void epoll_set_wake_all(struct epoll_set *set)
{
	struct epoll_call *call;
	struct waiter *waiter;

	do {
		spinlock_acquire(&set->lock);
		call = pop_sleeper(set);
		waiter = call ? call->call.wait.waiter : NULL;
		spinlock_release(&set->lock);
		if (waiter)
			waiter_signal(waiter);
	} while (waiter);
}

bool epoll_set_begin_sleep(struct epoll_set *set, struct epoll_call *call)
{
	bool is_ready;

	spinlock_acquire(&set->lock);
	list_push_back(&set->sleepers, &call->in_sleepers);
	atomic_fetch_add(&set->sleeper_cnt, 1);
	set_counted(set, call, true);
	is_ready = !list_is_empty(&set->ready) ||
		   atomic_load(&set->stacks_gen) != call->stacks_gen;
	if (!set->kernels_watcher)
		set->kernels_watcher = call;
	call->is_heir = false;
	call->fds[0].fd = set->kernels_watcher == call ? call->query.epfd : -1;
	spinlock_release(&set->lock);
	return is_ready;
}

/* Somebody else has to hear of the kernel's events. The set's first stack is the same to
 * all of them. */
static void pass_kernels_watch(struct epoll_set *set) REQUIRES(set->lock)
{
	struct waiter *waiter;

	set->kernels_watcher = NULL;
	waiter = choose_heir(set);
	if (waiter)
		waiter_wake_locked(waiter);
}

void epoll_set_end_sleep(struct epoll_set *set, struct epoll_call *call)
{
	spinlock_acquire(&set->lock);
	if (list_is_linked(&call->in_sleepers)) {
		list_remove(&call->in_sleepers);
		atomic_fetch_sub(&set->sleeper_cnt, 1);
	}
	if (set->kernels_watcher == call)
		pass_kernels_watch(set);
	spinlock_release(&set->lock);
}

void epoll_set_pause_sleep(struct epoll_set *set, struct epoll_call *call)
{
	epoll_set_end_sleep(set, call);
	if (UNLIKELY(call->is_heir))
		disinherit(set, call);
}

/* -- arrivals -------------------------------------------------------------------- */

/* One of those that wait hears of it. If somebody is looking, it is he. One who does not
 * sleep on this stack is being woken, because the stack is new to the set. Returns
 * whether somebody waited who had not been told of anything yet. */
static bool wake_one(struct epoll_set *set, struct stack *stack)
	REQUIRES(set->lock)
{
	bool has_waiter = atomic_load(&set->waiting_cnt) > set->left_cnt;
	struct list *first = list_first(&set->sleepers);
	struct waiter *waiter = NULL;

	if (first && !atomic_load(&set->looking_cnt))
		waiter = waiter_in(sleeper_at(first)->call.wait.waiter, stack);
	if (waiter) {
		(void)pop_sleeper(set);
		waiter_wake_locked(waiter);
	} else {
		set->left_cnt += has_waiter;
	}
	return has_waiter;
}

static bool make_ready(struct epoll_item *item, struct stack *stack)
{
	struct epoll_set *set = item->set;
	bool has_waiter = true;

	spinlock_acquire(&set->lock);
	if (item->wanted) {
		if (!list_is_linked(&item->in_ready))
			list_push_back(&set->ready, &item->in_ready);
		has_waiter = wake_one(set, stack);
	}
	spinlock_release(&set->lock);
	return has_waiter;
}

/* Has its member become the kernel's, or ours, whoever looks next lets the kernel's set
 * follow. Returns whether that is so. */
static bool note_left(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	if (item->is_hidden == epoll_item_is_alone(item))
		return false;
	spinlock_acquire(&set->lock);
	if (!item->is_dead) {
		list_remove(&item->in_spent);
		list_push_back(&set->left, &item->in_spent);
	}
	atomic_store(&set->has_left, true);
	spinlock_release(&set->lock);
	return true;
}

static void list_silently(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	spinlock_acquire(&set->lock);
	if (item->wanted && !list_is_linked(&item->in_ready))
		list_push_back(&set->ready, &item->in_ready);
	spinlock_release(&set->lock);
	/* what both sides tell becomes one event in one look */
	atomic_store(&set->skips_left, 0);
}

/* The kernel is about to list it, also in the sets around, and to wake who sleeps. So do
 * we but for the latter: a look that comes too early takes it off again. */
static COLD void foretell(struct epoll_item *item)
{
	list_silently(item);
	spinlock_acquire(&epoll_nesting);
	epoll_nest_foretell_outers(item->set);
	spinlock_release(&epoll_nesting);
}

void epoll_item_foretell_set(struct epoll_item *item)
{
	if (!(item->event.events & EPOLLIN))
		return;
	list_silently(item);
	epoll_nest_foretell_outers(item->set);
}

/* Whether an arrival by these bits is this item's, and ours to tell. */
static inline bool is_heard(const struct epoll_item *item, uint32_t bits)
{
	bool is_named = bits & (item->event.events | EPOLL_ALWAYS);

	if (LIKELY(!(bits & READY_BY_TWIN) || bits == READY_ANY))
		return is_named;
	return !is_named;
}

bool epoll_item_fire(struct watch *watch, uint32_t bits)
{
	struct epoll_item *item = epoll_item_of(watch);
	bool has_waiter, has_left = false;

	if (UNLIKELY(bits & READY_SOON && bits != READY_ANY)) {
		foretell(item);
		return false;
	}
	if (!is_heard(item, bits))
		return false;
	if (UNLIKELY(item->has_word))
		has_left = note_left(item);
	has_waiter = make_ready(item, item->stack);
	if (UNLIKELY(atomic_load_explicit(&item->set->has_outers,
					  memory_order_relaxed))) {
		spinlock_acquire(&epoll_nesting);
		if (UNLIKELY(has_left))
			epoll_nest_note_left(item->set);
		epoll_nest_fire_outers(item->set, item->stack);
		spinlock_release(&epoll_nesting);
	}
	return has_waiter;
}

/* A set around may be told of each arrival. */
bool epoll_item_is_level(const struct watch *watch)
{
	const struct epoll_item *item =
		CONTAINER_OF(watch, struct epoll_item, watch);

	return !(item->event.events & EPOLLET) &&
	       !atomic_load_explicit(&item->set->has_outers,
				     memory_order_relaxed);
}

static void make_nested_ready(struct epoll_item *item, struct stack *stack)
	REQUIRES(epoll_nesting)
{
	(void)make_ready(item, stack);
	epoll_nest_fire_outers(item->set, stack);
}

/* Under Linux, who asks for a set by other names is not told of arrivals. */
void epoll_item_hear(struct epoll_item *item, struct stack *stack)
{
	if (item->event.events & EPOLLIN)
		make_nested_ready(item, stack);
}

static bool is_listed(struct epoll_item *item)
{
	bool is_linked;

	spinlock_acquire(&item->set->lock);
	is_linked = list_is_linked(&item->in_ready);
	spinlock_release(&item->set->lock);
	return is_linked;
}

/* As under Linux, one that is on the list already is no news, also to a set around. */
void epoll_item_rouse_ready(struct epoll_item *item)
{
	if (!item->is_dead && state_of(item) & item->wanted && !is_listed(item))
		epoll_item_fire(&item->watch, READY_ANY);
}

/* What lies in the rings has come before, too. */
void epoll_item_rouse_set(struct epoll_item *item)
{
	struct epoll_set *inner = epoll_set_of(item->obj);
	struct stack *stack = epoll_nest_live_stack(inner);

	epoll_set_poll_rings(inner);
	if (!stack || !epoll_set_is_ready(inner))
		return;
	stack_lock(stack);
	spinlock_acquire(&epoll_nesting);
	if (!item->is_dead && item->event.events & (EPOLLIN | EPOLLRDNORM))
		make_nested_ready(item, stack);
	spinlock_release(&epoll_nesting);
	stack_unlock(stack);
}
