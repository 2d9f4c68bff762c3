/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is in a set, what is ready in it, and who is woken (epoll_set.h). */
#include "config.h"

#include "iomux/epoll_set.h"

#include <errno.h>

#include "base/hash.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"

static struct fd_pool sets = FD_POOL_INIT(struct epoll_set);
static struct fd_pool items = FD_POOL_INIT(struct epoll_item);
/* Guards the `outers` of all sets, and all live_cnt. */
static struct spinlock nesting = SPINLOCK_INIT(LOCK_RANK_EPOLL_NESTING);

enum { ALWAYS = EPOLLERR | EPOLLHUP };

static struct epoll_item *item_of(struct watch *watch)
{
	return CONTAINER_OF(watch, struct epoll_item, watch);
}

/* -- readiness ------------------------------------------------------------------- */

static uint32_t wants(const struct epoll_item *item)
{
	return item->is_armed ? item->event.events | ALWAYS : 0;
}

static uint32_t state_of(const struct epoll_item *item)
{
	return endpoint_poll_events(endpoint_ready(item->end));
}

/* What an item of a socket reports now, after something has come. As in Linux, an
 * edge-triggered set is told of it even if another thread has read it meanwhile. A
 * socket of ours that something comes to can be written to as well. */
static uint32_t ready_events(const struct epoll_item *item)
{
	uint32_t ready = state_of(item);

	if (!(ready & wants(item)) && !(item->event.events & EPOLLET))
		return 0;
	return (ready | EPOLL_OUT_NAMES) & wants(item);
}

/* The same of a set, if it is ready. */
static uint32_t nested_events(const struct epoll_item *item)
{
	return wants(item) & (EPOLLIN | EPOLLRDNORM);
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

static void note_report(struct epoll_item *item, uint64_t look, int at)
{
	item->look = look;
	item->at = at;
	if (item->event.events & EPOLLONESHOT)
		item->is_armed = false;
	item->is_out_said = item->is_out_due;
}

uint32_t epoll_item_join_report(struct epoll_item *item, uint64_t look, int at)
{
	uint32_t events = 0;

	if (item->end && list_is_linked(&item->in_ready))
		events = ready_events(item);
	if (item->event.events & (EPOLLET | EPOLLONESHOT))
		list_remove(&item->in_ready);
	note_report(item, look, at);
	return events;
}

static void report(struct epoll_item *item, uint64_t look, uint32_t ready,
		   struct epoll_event *events, int at)
{
	events[at] = item->event;
	events[at].events = ready;
	note_report(item, look, at);
	if (item->event.events & (EPOLLET | EPOLLONESHOT))
		list_remove(&item->in_ready);
}

/* Each item comes once in a look. What stays ready is looked at again, after those that
 * have found no place. */
int epoll_set_harvest(struct epoll_set *set, uint64_t look,
		      struct epoll_event *events, int at, int cnt)
{
	struct list *link, *following;
	uint32_t ready;
	int n = 0;

	spinlock_acquire(&set->lock);
	for (link = set->ready.next; link != &set->ready && n < cnt;
	     link = following) {
		struct epoll_item *item = item_at(link);

		following = link->next;
		if (UNLIKELY(item->look == look))
			continue;
		ready = LIKELY(item->end) ? ask_socket(item) :
					    ask_nested(set, item);
		if (ready)
			report(item, look, ready, events, at + n++);
		if (UNLIKELY(!item->end))
			following = set->ready.next;
	}
	list_begin_at(&set->ready, link);
	if (list_is_empty(&set->ready))
		set->left_cnt = 0;
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
	call->is_counted = false;
	set_counted(set, call, true);
}

void epoll_set_end_wait(struct epoll_set *set, struct epoll_call *call)
{
	set_counted(set, call, false);
}

bool epoll_set_try_end_wait(struct epoll_set *set, struct epoll_call *call)
{
	bool may_end;

	spinlock_acquire(&set->lock);
	may_end = list_is_empty(&set->ready);
	if (may_end)
		set_counted(set, call, false);
	spinlock_release(&set->lock);
	return may_end;
}

static struct epoll_call *pop_sleeper(struct epoll_set *set)
	REQUIRES(set->lock)
{
	struct list *link = list_pop_front(&set->sleepers);
	struct epoll_call *call;

	if (!link)
		return NULL;
	call = LIST_ENTRY(link, struct epoll_call, in_sleepers);
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

bool epoll_set_begin_sleep(struct epoll_set *set, struct epoll_call *call)
{
	bool is_ready;

	spinlock_acquire(&set->lock);
	list_push_back(&set->sleepers, &call->in_sleepers);
	atomic_fetch_add(&set->sleeper_cnt, 1);
	set_counted(set, call, true);
	is_ready = !list_is_empty(&set->ready);
	if (!set->kernels_watcher)
		set->kernels_watcher = call;
	call->fds[0].fd = set->kernels_watcher == call ? call->query.epfd : -1;
	spinlock_release(&set->lock);
	return is_ready;
}

/* Somebody else has to hear of the kernel's events. */
static void pass_kernels_watch(struct epoll_set *set) REQUIRES(set->lock)
{
	struct list *first = list_first(&set->sleepers);

	set->kernels_watcher = NULL;
	if (first)
		waiter_wake_locked(LIST_ENTRY(first, struct epoll_call,
					      in_sleepers)->call.wait.waiter);
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

/* -- arrivals -------------------------------------------------------------------- */

/* One of those that wait hears of it. If somebody is looking, it is he. Returns whether
 * somebody waited who had not been told of anything yet. */
static bool wake_one(struct epoll_set *set) REQUIRES(set->lock)
{
	bool has_waiter = atomic_load(&set->waiting_cnt) > set->left_cnt;
	struct epoll_call *sleeper = NULL;

	if (!atomic_load(&set->looking_cnt))
		sleeper = pop_sleeper(set);
	if (sleeper)
		waiter_wake_locked(sleeper->call.wait.waiter);
	else
		set->left_cnt += has_waiter;
	return has_waiter;
}

static bool make_ready(struct epoll_item *item)
{
	struct epoll_set *set = item->set;
	bool has_waiter = true;

	spinlock_acquire(&set->lock);
	if (item->is_armed) {
		if (!list_is_linked(&item->in_ready))
			list_push_back(&set->ready, &item->in_ready);
		has_waiter = wake_one(set);
	}
	spinlock_release(&set->lock);
	return has_waiter;
}

static bool fire_nested(struct watch *watch, uint32_t bits);

static void fire_outers(struct epoll_set *set) REQUIRES(nesting)
{
	struct watch *watch;

	LIST_FOR_EACH(watch, &set->outers, link)
		watch->fire(watch, READY_IN);
}

static bool fire(struct watch *watch, uint32_t bits)
{
	struct epoll_item *item = item_of(watch);
	bool has_waiter;

	if (!(bits & (item->event.events | ALWAYS)))
		return false;
	has_waiter = make_ready(item);
	if (UNLIKELY(atomic_load_explicit(&item->set->has_outers,
					  memory_order_relaxed))) {
		spinlock_acquire(&nesting);
		fire_outers(item->set);
		spinlock_release(&nesting);
	}
	return has_waiter;
}

static bool fire_nested(struct watch *watch, uint32_t bits)
	NO_LOCK_ANALYSIS /* the lock of nested sets is the caller's */
{
	struct epoll_item *item = item_of(watch);
	bool has_waiter;

	if (!(bits & item->event.events))
		return false;
	has_waiter = make_ready(item);
	fire_outers(item->set);
	return has_waiter;
}

/* -- what is alive ----------------------------------------------------------------- */

static void add_live(struct epoll_set *set, struct stack *stack)
	REQUIRES(nesting)
{
	struct watch *watch;

	if (!set->stats)
		set->stats = stats_mux_open(set->fd);
	atomic_store(&set->stack, stack);
	if (atomic_fetch_add(&set->live_cnt, 1))
		return;
	LIST_FOR_EACH(watch, &set->outers, link)
		if (watch->fire == fire_nested)
			add_live(item_of(watch)->set, stack);
}

static void drop_live(struct epoll_set *set) REQUIRES(nesting)
{
	struct watch *watch;

	if (atomic_fetch_sub(&set->live_cnt, 1) != 1)
		return;
	LIST_FOR_EACH(watch, &set->outers, link)
		if (watch->fire == fire_nested)
			drop_live(item_of(watch)->set);
}

/* The set that has the k-th item on the list, with a reference. */
static struct epoll_set *outer_at(struct epoll_set *set, unsigned k)
{
	struct epoll_set *outer = NULL;
	struct watch *watch;

	spinlock_acquire(&nesting);
	LIST_FOR_EACH(watch, &set->outers, link)
		if (watch->fire == fire_nested && k-- == 0) {
			outer = item_of(watch)->set;
			break;
		}
	if (outer && !fd_object_try_hold(&outer->obj))
		outer = NULL;
	spinlock_release(&nesting);
	return outer;
}

/* The set has its first live item. */
static void has_come_alive(struct epoll_set *set)
{
	struct epoll_set *outer;

	epoll_wake_sleepers(set);
	for (unsigned k = 0; (outer = outer_at(set, k)); k++) {
		has_come_alive(outer);
		fd_object_put(&outer->obj);
	}
}

/* -- members --------------------------------------------------------------------- */

static uint64_t hash_key(const struct fd_object *obj, int fd)
{
	return hash_u64x2(0, (uintptr_t)obj, (uint64_t)fd);
}

static uint64_t hash_word(uint64_t word)
{
	return hash_u64(0, word);
}

static struct epoll_item *by_word(struct hash_link *link, uint64_t word)
{
	for (; link; link = hash_next(link->next, link->hash)) {
		struct epoll_item *item =
			CONTAINER_OF(link, struct epoll_item, by_word);

		if (item->event.data.u64 == word && !item->is_dead)
			return item;
	}
	return NULL;
}

struct epoll_item *epoll_item_by_word(struct epoll_set *set, uint64_t word)
{
	return by_word(hash_tab_first(&set->by_word, hash_word(word)), word);
}

struct epoll_item *epoll_item_next_by_word(struct epoll_item *item)
{
	return by_word(hash_next(item->by_word.next, item->by_word.hash),
		       item->event.data.u64);
}

/* Frees the items whose members were closed. */
static void reap(struct epoll_set *set)
{
	struct list *link;

	if (LIKELY(!atomic_load_explicit(&set->has_dead, memory_order_relaxed)))
		return;
	atomic_store(&set->has_dead, false);
	do {
		spinlock_acquire(&set->lock);
		link = list_pop_front(&set->dead);
		spinlock_release(&set->lock);
		if (link) {
			struct epoll_item *item =
				LIST_ENTRY(link, struct epoll_item, in_ready);

			hash_tab_remove(&set->by_key, &item->by_key);
			hash_tab_remove(&set->by_word, &item->by_word);
			fd_pool_put(&items, item);
		}
	} while (link);
}

struct epoll_item *epoll_item_find(struct epoll_set *set,
				   const struct fd_object *obj, int fd)
{
	struct hash_link *link;

	reap(set);
	HASH_FOR_EACH(link, &set->by_key, hash_key(obj, fd)) {
		struct epoll_item *item =
			CONTAINER_OF(link, struct epoll_item, by_key);

		if (item->obj == obj && item->fd == fd && !item->is_dead)
			return item;
	}
	return NULL;
}

/* The lock of the list that the item's watch is on. */
static void lock_watch(struct epoll_item *item) NO_LOCK_ANALYSIS /* two kinds */
{
	if (item->end)
		stack_lock(item->stack);
	else
		spinlock_acquire(&nesting);
}

static void unlock_watch(struct epoll_item *item) NO_LOCK_ANALYSIS /* two kinds */
{
	if (item->end)
		stack_unlock(item->stack);
	else
		spinlock_release(&nesting);
}

/* Called under the lock of its watch. Afterwards another thread may free the item, and
 * even the set. */
static void die(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	list_remove(&item->watch.link);
	spinlock_acquire(&set->lock);
	list_remove(&item->in_ready);
	item->is_dead = true;
	list_push_back(&set->dead, &item->in_ready);
	atomic_store(&set->has_dead, true);
	spinlock_release(&set->lock);
}

/* Called under the lock of the stack when the last fd of the socket is closed. */
static void closed(struct watch *watch)
{
	struct epoll_item *item = item_of(watch);

	spinlock_acquire(&nesting);
	drop_live(item->set);
	spinlock_release(&nesting);
	die(item);
}

/* The same for a set that is closed, under the lock of nested sets. */
static void closed_nested(struct watch *watch)
	NO_LOCK_ANALYSIS /* the lock of nested sets is the caller's */
{
	struct epoll_item *item = item_of(watch);

	if (atomic_load(&epoll_set_of(item->obj)->live_cnt))
		drop_live(item->set);
	die(item);
}

/* The program has given its events: what is there already is reported. Of a socket, it
 * is called under the stack's lock. */
static void rouse_socket(struct epoll_item *item)
{
	if (!item->is_dead && state_of(item) & wants(item))
		fire(&item->watch, UINT32_MAX);
}

/* Of a set, without a lock. */
static void rouse_set(struct epoll_item *item)
{
	struct epoll_set *inner = epoll_set_of(item->obj);
	struct stack *stack = atomic_load(&inner->stack);

	if (!stack || !epoll_set_is_ready(inner))
		return;
	stack_lock(stack);
	spinlock_acquire(&nesting);
	if (!item->is_dead)
		fire_nested(&item->watch, UINT32_MAX);
	spinlock_release(&nesting);
	stack_unlock(stack);
}

/* Makes the item known to its socket, under the stack's lock. Returns whether the set
 * has come alive. */
static bool link_socket(struct epoll_item *item)
{
	bool is_first;

	endpoint_add_watch(item->end, &item->watch);
	spinlock_acquire(&nesting);
	is_first = !atomic_load(&item->set->live_cnt);
	add_live(item->set, item->stack);
	spinlock_release(&nesting);
	rouse_socket(item);
	return is_first;
}

/* Whether `set` is in `outer`, or in a set that is. */
static bool is_within(const struct epoll_set *set, const struct epoll_set *outer)
	REQUIRES(nesting)
{
	const struct watch *watch;

	LIST_FOR_EACH(watch, &set->outers, link) {
		const struct epoll_set *next =
			CONTAINER_OF(watch, struct epoll_item, watch)->set;

		if (watch->fire == fire_nested &&
		    (next == outer || is_within(next, outer)))
			return true;
	}
	return false;
}

/* The same for a set in a set, under the lock of nested sets. The kernel allows no
 * circle; but if another thread has given the numbers to other files, it had others
 * before it. */
static bool link_set(struct epoll_item *item)
	NO_LOCK_ANALYSIS /* the lock of nested sets is the caller's */
{
	struct epoll_set *inner = epoll_set_of(item->obj), *set = item->set;
	bool is_first;

	if (inner == set || is_within(set, inner)) {
		die(item);
		return false;
	}
	list_push_front(&inner->outers, &item->watch.link);
	atomic_store(&inner->has_outers, true);
	if (!atomic_load(&inner->live_cnt))
		return false;
	is_first = !atomic_load(&set->live_cnt);
	add_live(set, atomic_load(&inner->stack));
	return is_first;
}

/* Returns whether the set has come alive. */
static bool link_item(struct epoll_item *item)
{
	bool is_first = false;

	lock_watch(item);
	if (!atomic_load(&item->obj->fd_cnt))
		die(item);
	else if (item->end)
		is_first = link_socket(item);
	else
		is_first = link_set(item);
	unlock_watch(item);
	return is_first;
}

static int put_in_tables(struct epoll_set *set, struct epoll_item *item)
{
	int err = hash_tab_insert(&set->by_key, &item->by_key,
				  hash_key(item->obj, item->fd));

	if (err)
		return err;
	err = hash_tab_insert(&set->by_word, &item->by_word,
			      hash_word(item->event.data.u64));
	if (err)
		hash_tab_remove(&set->by_key, &item->by_key);
	return err;
}

static void arm(struct epoll_item *item, const struct epoll_event *event)
{
	item->event = *event;
	item->is_armed = true;
	item->is_armed_in_kernel = true;
	item->is_out_due = event->events & EPOLL_OUT_NAMES;
	item->is_out_said = false;
}

int epoll_item_add(struct epoll_set *set, struct fd_object *obj, int fd,
		   struct endpoint *end, struct stack *stack,
		   const struct epoll_event *event)
{
	struct epoll_item *item = fd_pool_get(&items);
	int err;

	if (!item)
		return -ENOMEM;
	*item = (struct epoll_item){
		.set = set,
		.obj = obj,
		.fd = fd,
		.end = end,
		.stack = stack,
		.watch = { .fire = end ? fire : fire_nested,
			   .closed = end ? closed : closed_nested,
			   .is_exclusive = event->events & EPOLLEXCLUSIVE },
	};
	list_init(&item->in_ready);
	list_init(&item->watch.link);
	arm(item, event);
	reap(set);
	err = put_in_tables(set, item);
	if (err) {
		fd_pool_put(&items, item);
		return err;
	}
	if (link_item(item))
		has_come_alive(set);
	if (!end)
		rouse_set(item);
	return 0;
}

/* Never fails: a table that had the element has room for it. */
static void change_word(struct epoll_item *item, uint64_t word)
{
	struct hash_tab *tab = &item->set->by_word;

	hash_tab_remove(tab, &item->by_word);
	(void)!hash_tab_insert(tab, &item->by_word, hash_word(word));
}

bool epoll_item_modify(struct epoll_item *item, const struct epoll_event *event,
		       bool is_armed)
{
	struct epoll_set *set = item->set;
	bool was_armed;

	if (item->event.data.u64 != event->data.u64)
		change_word(item, event->data.u64);
	lock_watch(item);
	spinlock_acquire(&set->lock);
	was_armed = item->is_armed;
	arm(item, event);
	item->is_armed = is_armed;
	spinlock_release(&set->lock);
	if (item->end)
		rouse_socket(item);
	unlock_watch(item);
	if (!item->end)
		rouse_set(item);
	return was_armed;
}

void epoll_item_remove(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	lock_watch(item);
	if (!item->is_dead) {
		if (item->end)
			closed(&item->watch);
		else
			closed_nested(&item->watch);
	}
	unlock_watch(item);
	reap(set);
}

/* -- polls --------------------------------------------------------------------------- */

void epoll_set_watch(struct epoll_set *set, struct watch *watch)
{
	spinlock_acquire(&nesting);
	list_push_back(&set->outers, &watch->link);
	atomic_store(&set->has_outers, true);
	spinlock_release(&nesting);
}

void epoll_set_unwatch(struct watch *watch)
{
	spinlock_acquire(&nesting);
	list_remove(&watch->link);
	spinlock_release(&nesting);
}

/* -- life ------------------------------------------------------------------------------ */

struct epoll_set *epoll_set_make(int epfd)
{
	struct epoll_set *set = fd_pool_get(&sets);

	if (!set)
		return NULL;
	set->fd = epfd;
	atomic_init(&set->stack, NULL);
	atomic_init(&set->live_cnt, 0);
	mutex_init(&set->changes, LOCK_RANK_EPOLL_CHANGES);
	set->by_key = set->by_word = (struct hash_tab){ 0 };
	spinlock_init(&set->lock, LOCK_RANK_EPOLL_SET);
	list_init(&set->ready);
	list_init(&set->dead);
	atomic_init(&set->has_dead, false);
	list_init(&set->sleepers);
	set->left_cnt = 0;
	set->kernels_watcher = NULL;
	atomic_init(&set->looking_cnt, 0);
	atomic_init(&set->sleeper_cnt, 0);
	atomic_init(&set->waiting_cnt, 0);
	atomic_init(&set->looks, 0);
	list_init(&set->outers);
	atomic_init(&set->has_outers, false);
	atomic_init(&set->skips_left, 0);
	atomic_init(&set->turns, 0);
	atomic_init(&set->wake_fd, -1);
	set->stats = NULL;
	fd_object_init(&set->obj, &epoll_set_ops, 0);
	if (fd_table_install(epfd, &set->obj) != 0) {
		fd_object_put(&set->obj);
		return NULL;
	}
	return set;
}

struct epoll_set *epoll_set_get(int epfd)
{
	struct fd_object *obj = fd_table_get(epfd);

	if (obj && epoll_is_set(obj))
		return epoll_set_of(obj);
	fd_object_put(obj);
	return NULL;
}

/* Whoever has it as a member lets go of it. */
static void set_last_close(struct fd_object *obj)
{
	struct epoll_set *set = epoll_set_of(obj);
	struct watch *watch, *following;

	spinlock_acquire(&nesting);
	LIST_FOR_EACH_SAFE(watch, following, &set->outers, link)
		if (watch->closed)
			watch->closed(watch);
	spinlock_release(&nesting);
}

static void set_release(struct fd_object *obj)
{
	struct epoll_set *set = epoll_set_of(obj);
	struct hash_link *link;

	epoll_end_wake(set);
	reap(set);
	while ((link = hash_tab_walk(&set->by_key, NULL)))
		epoll_item_remove(
			CONTAINER_OF(link, struct epoll_item, by_key));
	hash_tab_release(&set->by_key);
	hash_tab_release(&set->by_word);
	if (set->stats)
		stats_mux_close(set->stats);
	fd_pool_put(&sets, set);
}

/* A member that has not left yet, with a reference, or NULL. */
static struct fd_object *next_to_leave(struct epoll_set *set, int *fd_out)
{
	struct fd_object *obj = NULL;
	struct hash_link *link = NULL;

	mutex_acquire(&set->changes);
	reap(set);
	while (!obj && (link = hash_tab_walk(&set->by_key, link))) {
		struct epoll_item *item =
			CONTAINER_OF(link, struct epoll_item, by_key);

		if (item->is_leaving)
			continue;
		item->is_leaving = true;
		*fd_out = item->fd;
		obj = fd_table_get(item->fd);
		if (obj && obj != item->obj) {
			fd_object_put(obj);
			obj = NULL;
		}
	}
	mutex_release(&set->changes);
	return obj;
}

/* Gives all that is in the set to the kernel. One by one, since leaving takes outer
 * locks. */
static void set_leave(struct fd_object *obj, int fd UNUSED, enum reason reason,
		      enum stats_decider decider)
{
	struct epoll_set *set = epoll_set_of(obj);
	struct fd_object *member;
	int member_fd;

	epoll_end_wake(set);
	while ((member = next_to_leave(set, &member_fd))) {
		member->ops->leave(member, member_fd, reason, decider);
		fd_object_put(member);
	}
}

struct fd_ops epoll_set_ops = {
	.name = "epoll",
	.leave = set_leave,
	.last_close = set_last_close,
	.release = set_release,
};

void epoll_sets_load(void)
{
	fd_ops_fill(&epoll_set_ops);
}

void epoll_sets_forked(void)
{
	spinlock_init(&nesting, LOCK_RANK_EPOLL_NESTING);
	fd_pool_forked(&sets);
	fd_pool_forked(&items);
}
