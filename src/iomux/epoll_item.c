/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The members of sets (epoll_item.h). */
#include "config.h"

#include "iomux/epoll_item.h"

#include <errno.h>

#include "base/hash.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "iomux/epoll_nest.h"
#include "iomux/epoll_ready.h"
#include "os/file.h"

static struct fd_pool items = FD_POOL_INIT(struct epoll_item);

static uint64_t hash_key(const struct fd_object *obj, int fd)
{
	return hash_u64x2(0, (uintptr_t)obj, (uint64_t)fd);
}

static uint64_t hash_word(uint64_t word)
{
	return hash_u64(0, word);
}

/* The one that is in the table. */
static struct epoll_item *first_by_word(struct epoll_set *set, uint64_t word)
{
	struct hash_link *link;

	HASH_FOR_EACH(link, &set->by_word, hash_word(word)) {
		struct epoll_item *item =
			CONTAINER_OF(link, struct epoll_item, by_word);

		if (item->event.data.u64 == word)
			return item;
	}
	return NULL;
}

struct epoll_item *epoll_item_next_by_word(struct epoll_item *item)
{
	do
		item = LIST_ENTRY(item->same_word.next, struct epoll_item,
				  same_word);
	while (item->is_dead && !item->is_by_word);
	return item->is_by_word ? NULL : item;
}

struct epoll_item *epoll_item_by_word(struct epoll_set *set, uint64_t word)
{
	struct epoll_item *item = first_by_word(set, word);

	return item && item->is_dead ? epoll_item_next_by_word(item) : item;
}

void epoll_item_tell_twins(struct epoll_item *item, uint32_t events)
{
	struct list *link = &item->same_word;

	do {
		struct epoll_item *other =
			LIST_ENTRY(link, struct epoll_item, same_word);

		if (LIKELY(!other->is_dead))
			other->obj->ops->twin_event(other->obj, events);
		link = link->next;
	} while (UNLIKELY(link != &item->same_word));
}

static int insert_by_word(struct epoll_set *set, struct epoll_item *item,
			  uint64_t word)
{
	struct epoll_item *first = first_by_word(set, word);

	item->is_by_word = !first;
	if (!first)
		return hash_tab_insert(&set->by_word, &item->by_word,
				       hash_word(word));
	list_push_back(&first->same_word, &item->same_word);
	return 0;
}

static void remove_by_word(struct epoll_set *set, struct epoll_item *item)
{
	struct epoll_item *heir = LIST_ENTRY(item->same_word.next,
					     struct epoll_item, same_word);

	list_remove(&item->same_word);
	if (item->is_by_word && heir != item) {
		hash_tab_replace(&set->by_word, &item->by_word, &heir->by_word);
		heir->is_by_word = true;
	} else if (item->is_by_word) {
		hash_tab_remove(&set->by_word, &item->by_word);
	}
}

COLD void epoll_items_reap_slow(struct epoll_set *set)
{
	struct list *link;

	atomic_store(&set->has_dead, false);
	do {
		spinlock_acquire(&set->lock);
		link = list_pop_front(&set->dead);
		spinlock_release(&set->lock);
		if (link) {
			struct epoll_item *item =
				LIST_ENTRY(link, struct epoll_item, in_ready);

			hash_tab_remove(&set->by_key, &item->by_key);
			remove_by_word(set, item);
			list_remove(&item->in_set);
			fd_pool_put(&items, item);
		}
	} while (link);
}

struct epoll_item *epoll_item_find(struct epoll_set *set,
				   const struct fd_object *obj, int fd)
{
	struct hash_link *link;

	epoll_items_reap(set);
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
		spinlock_acquire(&epoll_nesting);
}

static void unlock_watch(struct epoll_item *item) NO_LOCK_ANALYSIS /* two kinds */
{
	if (item->end)
		stack_unlock(item->stack);
	else
		spinlock_release(&epoll_nesting);
}

/* Called under the lock of its watch. Afterwards another thread may free the item, and
 * even the set. */
static void die(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	list_remove(&item->watch.link);
	spinlock_acquire(&set->lock);
	list_remove(&item->in_ready);
	list_remove(&item->in_spent);
	item->is_dead = true;
	list_push_back(&set->dead, &item->in_ready);
	atomic_store(&set->has_dead, true);
	spinlock_release(&set->lock);
}

/* The last number of a listener is being closed. Its twin may outlive that, as it has the port
 * of connections, and would stay in the kernel's set and tell of its own end. The number
 * is open until we are done. If the member was added by another one, which is gone, nothing
 * takes it out. */
static COLD void take_out(const struct epoll_item *item)
{
	struct epoll_set *set = item->set;
	int epfd;

	if (file_identify(item->fd).ino != item->obj->inode)
		return;
	epfd = epoll_set_begin_use(set, epoll_set_number(set));
	if (epfd >= 0)
		(void)!real.epoll_ctl(epfd, EPOLL_CTL_DEL, item->fd, NULL);
	epoll_set_end_use(set, epfd);
}

/* Called under the lock of the stack when the last fd of the socket is closed. */
static void closed(struct watch *watch)
{
	struct epoll_item *item = epoll_item_of(watch);

	if (UNLIKELY(item->has_word && !item->is_hidden && !atomic_load(&item->obj->fd_cnt) &&
		     item->obj->ops->word(item->obj) == FD_WORD_BESIDE))
		take_out(item);
	spinlock_acquire(&epoll_nesting);
	epoll_nest_drop_live(item->set, item->stack);
	spinlock_release(&epoll_nesting);
	die(item);
}

void epoll_item_closed_nested(struct epoll_item *item)
	NO_LOCK_ANALYSIS /* the lock of nested sets is the caller's */
{
	epoll_nest_drop_inner(item->set, epoll_set_of(item->obj));
	die(item);
}

/* What has changed for a set by a new item. */
struct news {
	bool is_first; /* it had nothing of ours */
	bool has_stack; /* it has a new stack */
};

/* Makes the item known to its socket, under the stack's lock. */
static struct news link_socket(struct epoll_item *item)
	NO_LOCK_ANALYSIS /* the lock of the stack is the caller's */
{
	struct news news;

	stack_settle_locked(item->stack);
	endpoint_add_watch(item->end, &item->watch);
	spinlock_acquire(&epoll_nesting);
	news.is_first = !atomic_load(&item->set->live_cnt);
	news.has_stack = epoll_nest_add_live(item->set, item->stack);
	spinlock_release(&epoll_nesting);
	epoll_item_rouse_socket(item);
	return news;
}

/* The same for a set in a set, under the lock of nested sets. The kernel allows no
 * circle; but if another thread has given the numbers to other files, it had others
 * before it. */
static struct news link_set(struct epoll_item *item)
	NO_LOCK_ANALYSIS /* the lock of nested sets is the caller's */
{
	struct epoll_set *inner = epoll_set_of(item->obj), *set = item->set;
	struct news news = { false, false };

	if (inner == set || epoll_nest_is_within(set, inner)) {
		die(item);
		return news;
	}
	list_push_front(&inner->outers, &item->outer.link);
	atomic_store(&inner->has_outers, true);
	news.is_first = !atomic_load(&set->live_cnt);
	news.has_stack = epoll_nest_add_inner(set, inner);
	return news;
}

static struct news link_item(struct epoll_item *item)
{
	struct news news = { false, false };

	lock_watch(item);
	if (!atomic_load(&item->obj->fd_cnt))
		die(item);
	else if (item->end)
		news = link_socket(item);
	else
		news = link_set(item);
	unlock_watch(item);
	return news;
}

static int put_in_tables(struct epoll_set *set, struct epoll_item *item)
{
	int err = hash_tab_insert(&set->by_key, &item->by_key,
				  hash_key(item->obj, item->fd));

	if (err)
		return err;
	err = insert_by_word(set, item, item->event.data.u64);
	if (err)
		hash_tab_remove(&set->by_key, &item->by_key);
	else
		list_push_front(&set->items, &item->in_set);
	return err;
}

static void arm(struct epoll_item *item, const struct epoll_event *event)
{
	if (item->end && event->events & EPOLLET && event->events & EPOLL_OUT_NAMES)
		item->obj->ops->await_room(item->obj);
	list_remove(&item->in_spent);
	item->event = *event;
	item->wanted = event->events | EPOLL_ALWAYS;
	item->is_armed_in_kernel = true;
	item->is_out_due = !item->has_word && event->events & EPOLL_OUT_NAMES;
	item->is_out_said = false;
}

int epoll_item_add(struct epoll_set *set, struct fd_object *obj, int fd,
		   struct endpoint *end, struct stack *stack,
		   const struct epoll_event *event, bool is_hidden)
{
	struct epoll_item *item = fd_pool_get(&items);
	struct news news;
	int err;

	if (!item)
		return -ENOMEM;
	*item = (struct epoll_item){
		.set = set,
		.obj = obj,
		.fd = fd,
		.end = end,
		.stack = stack,
		.has_word = end && obj->ops->word(obj) != FD_WORD_PART,
		.is_hidden = is_hidden,
	};
	if (end)
		item->watch = (struct watch){
			.fire = epoll_item_fire,
			.closed = closed,
			.is_level = epoll_item_is_level,
			.is_exclusive = event->events & EPOLLEXCLUSIVE,
		};
	list_init(&item->in_ready);
	list_init(&item->in_spent);
	list_init(&item->watch.link);
	list_init(&item->same_word);
	list_init(&item->in_set);
	arm(item, event);
	epoll_item_note_change(item);
	epoll_items_reap(set);
	err = put_in_tables(set, item);
	if (err) {
		fd_pool_put(&items, item);
		return err;
	}
	news = link_item(item);
	if (news.has_stack)
		epoll_nest_wake_for_stack(set, news.is_first);
	if (!end)
		epoll_item_rouse_set(item);
	return 0;
}

/* Never fails: a table that had the element has room for it. */
static void change_word(struct epoll_item *item, uint64_t word)
{
	remove_by_word(item->set, item);
	(void)!insert_by_word(item->set, item, word);
}

/* Under the lock of the item's watch. */
static inline bool give_events(struct epoll_item *item,
			       const struct epoll_event *event, bool is_armed)
{
	struct epoll_set *set = item->set;
	bool was_armed;

	spinlock_acquire(&set->lock);
	was_armed = item->wanted;
	arm(item, event);
	if (!is_armed)
		item->wanted = 0;
	spinlock_release(&set->lock);
	return was_armed;
}

static bool modify_set(struct epoll_item *item, const struct epoll_event *event,
		       bool is_armed)
{
	bool was_armed;

	spinlock_acquire(&epoll_nesting);
	was_armed = give_events(item, event, is_armed);
	spinlock_release(&epoll_nesting);
	epoll_item_rouse_set(item);
	return was_armed;
}

bool epoll_item_modify(struct epoll_item *item, const struct epoll_event *event,
		       bool is_armed)
{
	bool was_armed;

	if (UNLIKELY(item->event.data.u64 != event->data.u64))
		change_word(item, event->data.u64);
	if (UNLIKELY(!item->end))
		return modify_set(item, event, is_armed);
	stack_lock(item->stack);
	stack_settle_locked(item->stack);
	was_armed = give_events(item, event, is_armed);
	epoll_item_rouse_socket(item);
	stack_unlock(item->stack);
	return was_armed;
}

/* It is freed by who reaps. */
static void unlink_item(struct epoll_item *item)
{
	lock_watch(item);
	if (!item->is_dead) {
		if (item->end)
			closed(&item->watch);
		else
			epoll_item_closed_nested(item);
	}
	unlock_watch(item);
}

void epoll_item_remove(struct epoll_item *item)
{
	struct epoll_set *set = item->set;

	unlink_item(item);
	epoll_items_reap(set);
}

void epoll_items_remove_all(struct epoll_set *set)
{
	struct epoll_item *item;

	LIST_FOR_EACH(item, &set->items, in_set)
		unlink_item(item);
	epoll_items_reap(set);
}

/* -- one-shot items that are disarmed ---------------------------------------------- */

static bool names(int fd, const struct fd_object *obj)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry && atomic_load(entry) == obj;
}

bool epoll_item_has_number(const struct epoll_item *item)
{
	return names(item->fd, item->obj);
}

/* Changes the kernel's set by the number of the member: -EBADF if it has none. A close of it
 * waits meanwhile, since another file may have the number at once, and be in the set as well. A
 * member that has died may be another object by now, which has the number. */
static long change_kernels(const struct epoll_item *item, int epfd, int op,
			   struct epoll_event *event)
{
	struct fd_visit visit;
	long err = -EBADF;

	if (!fd_visit_begin(&visit, item->fd, item->obj))
		return err;
	if (LIKELY(!item->is_dead))
		err = real.epoll_ctl(epfd, op, item->fd, event) ? -errno : 0;
	fd_visit_end(&visit);
	return err;
}

/* If its number is another file's by now, it stays where it is. */
void epoll_item_hide(struct epoll_item *item, int epfd)
{
	if (item->is_hidden || !names(epfd, &item->set->obj) ||
	    change_kernels(item, epfd, EPOLL_CTL_DEL, NULL) != 0)
		return;
	item->is_hidden = true;
	epoll_item_note_change(item);
}

COLD static int find_duplicate(const struct fd_object *obj)
{
	int fd = fd_table_next(0);

	while (fd >= 0 && !names(fd, obj))
		fd = fd_table_next((unsigned)fd + 1);
	return fd;
}

/* A number that is closed before it is looked at may leave another one. Each round takes a close
 * by another thread. */
struct fd_object *epoll_item_get(const struct epoll_item *item, int *fd_out)
{
	struct fd_object *obj;

	do {
		*fd_out = epoll_item_has_number(item) ? item->fd : find_duplicate(item->obj);
		obj = *fd_out >= 0 ? fd_table_get(*fd_out) : NULL;
		/* A member that has died may be another object by now, with this address. */
		if (obj == item->obj && !item->is_dead)
			return obj;
		fd_object_put(obj);
	} while (*fd_out >= 0 && !item->is_dead);
	return NULL;
}

/* The number by which it was added is gone. The kernel tells members apart by their numbers as
 * well. A number of our own, which is closed at once, is in the way of none of the program's. */
static COLD long add_by_duplicate(const struct epoll_item *item, int epfd,
				  struct epoll_event *event)
{
	_Atomic int copy = -1;
	int fd = find_duplicate(item->obj);
	long err = fd >= 0 ? fd_internal_copy(fd, &copy) : -EBADF;

	if (err)
		return err;
	/* it may have been given to another file before it was copied */
	err = -EBADF;
	if (names(fd, item->obj) && !item->is_dead)
		err = real.epoll_ctl(epfd, EPOLL_CTL_ADD, copy, event) ? -errno : 0;
	fd_internal_close(&copy);
	return err;
}

long epoll_item_show(struct epoll_item *item, int epfd)
{
	struct epoll_event event = item->event;
	long err;

	if (LIKELY(!item->is_hidden))
		return 0;
	err = change_kernels(item, epfd, EPOLL_CTL_ADD, &event);
	if (UNLIKELY(err == -EBADF))
		err = add_by_duplicate(item, epfd, &event);
	if (err)
		return err;
	item->is_hidden = false;
	epoll_item_note_change(item);
	return 0;
}

static struct epoll_item *pop_spent(struct epoll_set *set)
{
	struct list *link;

	spinlock_acquire(&set->lock);
	link = list_pop_front(&set->spent);
	spinlock_release(&set->lock);
	return link ? LIST_ENTRY(link, struct epoll_item, in_spent) : NULL;
}

/* A set has no errors that would be told all the same. So it stays a member without
 * events, and the kernel goes on to see what is in what. */
static void silence_set(struct epoll_item *item, int epfd)
{
	struct epoll_event event = item->event;

	event.events = 0;
	if (!names(epfd, &item->set->obj) ||
	    change_kernels(item, epfd, EPOLL_CTL_MOD, &event) != 0)
		return;
	spinlock_acquire(&item->set->lock);
	item->is_armed_in_kernel = false;
	spinlock_release(&item->set->lock);
	epoll_item_note_change(item);
}

/* An item that dies meanwhile is freed by who has `changes`. */
COLD void epoll_items_hide_spent_slow(struct epoll_set *set, int epfd)
{
	struct epoll_item *item;

	mutex_acquire_unbarred(&set->changes);
	epfd = epoll_set_begin_use(set, epfd);
	atomic_store(&set->has_spent, false);
	while ((item = pop_spent(set)))
		if (item->end)
			epoll_item_hide(item, epfd);
		else
			silence_set(item, epfd);
	epoll_set_end_use(set, epfd);
	mutex_release_unbarred(&set->changes);
}

static struct epoll_item *pop_left(struct epoll_set *set)
{
	struct list *link;

	spinlock_acquire(&set->lock);
	link = list_pop_front(&set->left);
	spinlock_release(&set->lock);
	return link ? LIST_ENTRY(link, struct epoll_item, in_spent) : NULL;
}

/* A one-shot item that has reported tells nothing until it is armed again; the kernel would
 * tell errors and ends of it all the same. */
static bool is_spent(const struct epoll_item *item)
{
	bool result;

	spinlock_acquire(&item->set->lock);
	result = item->event.events & EPOLLONESHOT && !item->wanted;
	spinlock_release(&item->set->lock);
	return result;
}

/* A set inside that has something to show, with a reference, and the number by which it was
 * added; or NULL. */
static struct epoll_set *inner_with_left(struct epoll_set *set, int *fd_out)
{
	struct epoll_set *inner = NULL;
	struct epoll_item *item;

	mutex_acquire_unbarred(&set->changes);
	LIST_FOR_EACH(item, &set->items, in_set) {
		/* one that has died may be another set's by now, which has it as well */
		if (item->end || !atomic_load(&epoll_set_of(item->obj)->has_left) ||
		    !fd_object_try_hold(item->obj))
			continue;
		inner = epoll_set_of(item->obj);
		*fd_out = item->fd;
		break;
	}
	mutex_release_unbarred(&set->changes);
	return inner;
}

static void show_left_inside(struct epoll_set *set)
{
	struct epoll_set *inner;
	int fd;

	while ((inner = inner_with_left(set, &fd))) {
		fd = epoll_set_begin_use(inner, fd);
		epoll_items_show_left(inner, fd);
		epoll_set_end_use(inner, fd);
		fd_object_put(&inner->obj);
	}
}

COLD void epoll_items_show_left_slow(struct epoll_set *set, int epfd)
{
	struct epoll_item *item;

	mutex_acquire_unbarred(&set->changes);
	epfd = epoll_set_begin_use(set, epfd);
	atomic_store(&set->has_left, false);
	while ((item = pop_left(set)))
		if (epoll_item_is_alone(item) || is_spent(item))
			epoll_item_hide(item, epfd);
		else
			(void)!epoll_item_show(item, epfd);
	epoll_set_end_use(set, epfd);
	mutex_release_unbarred(&set->changes);
	if (atomic_exchange(&set->has_left_inside, false))
		show_left_inside(set);
}

void epoll_items_forked(void)
{
	fd_pool_forked(&items);
}
