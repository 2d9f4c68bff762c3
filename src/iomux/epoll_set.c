/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lives of sets (epoll_set.h). */
#include "config.h"

#include "iomux/epoll_set.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "iomux/epoll_item.h"
#include "iomux/epoll_nest.h"
#include "iomux/epoll_wake.h"
#include "os/file.h"
#include "sock/kin.h"

static struct fd_pool sets = FD_POOL_INIT(struct epoll_set);

/* Without an fd yet, but with a reference. */
static struct epoll_set *create(int epfd)
{
	struct epoll_set *set = fd_pool_get(&sets);

	if (!set)
		return NULL;
	atomic_store_explicit(&set->fd, epfd, memory_order_relaxed);
	for (int i = 0; i < NET_STACKS_MAX; i++)
		set->places[i] = (struct epoll_place){ NULL, 0 };
	atomic_init(&set->place_cnt, 0);
	atomic_init(&set->stacks_gen, 0);
	atomic_init(&set->live_cnt, 0);
	mutex_init(&set->changes, LOCK_RANK_EPOLL_CHANGES);
	set->by_key = set->by_word = (struct hash_tab){ 0 };
	list_init(&set->items);
	spinlock_init(&set->lock, LOCK_RANK_EPOLL_SET);
	list_init(&set->ready);
	list_init(&set->dead);
	atomic_init(&set->has_dead, false);
	list_init(&set->spent);
	list_init(&set->left);
	atomic_init(&set->has_left, false);
	atomic_init(&set->has_left_inside, false);
	atomic_init(&set->has_spent, false);
	list_init(&set->sleepers);
	set->left_cnt = 0;
	set->kernels_watcher = NULL;
	atomic_init(&set->looking_cnt, 0);
	atomic_init(&set->user_cnt, 0);
	atomic_init(&set->caller_cnt, 0);
	atomic_init(&set->kept_fd, -1);
	atomic_init(&set->sleeper_cnt, 0);
	atomic_init(&set->waiting_cnt, 0);
	atomic_init(&set->looks, 0);
	atomic_init(&set->change_cnt, 0);
	list_init(&set->outers);
	atomic_init(&set->has_outers, false);
	atomic_init(&set->skips_left, 0);
	atomic_init(&set->turns, 0);
	atomic_init(&set->wake_fd, -1);
	set->stats = NULL;
	set->heir = NULL;
	fd_object_init(&set->obj, &epoll_set_ops, 0);
	return set;
}

void epoll_set_ask_parent(int epfd, bool is_change)
{
	struct fd_object *obj = fd_table_get(epfd);

	if (obj && kin_is_heir(obj))
		kin_ask(obj, is_change);
	fd_object_put(obj);
}

/* Two threads may find at once that they need it: what one has put into it, the other
 * must see. */
struct epoll_set *epoll_set_make(int epfd)
{
	struct epoll_set *set = create(epfd), *other;
	int err;

	if (!set)
		return NULL;
	epoll_set_ask_parent(epfd, true);
	err = fd_table_exchange(epfd, NULL, &set->obj);
	if (!err)
		return set;
	other = epoll_set_get(epfd);
	/* not a set: what had the number was closed by a way that we do not see */
	if (!other && err == -EEXIST)
		err = fd_table_install(epfd, &set->obj);
	if (!other && !err)
		return set;
	fd_object_put(&set->obj);
	return other;
}

int epoll_set_fd(const struct epoll_set *set)
{
	int fd = epoll_set_number(set);

	if (LIKELY(epoll_set_has_number(set, fd)))
		return fd;
	for (fd = fd_table_next(0); fd >= 0 && !epoll_set_has_number(set, fd);
	     fd = fd_table_next((unsigned)fd + 1))
		;
	return fd;
}

/* All threads see the count, the number and what who closes it does with both in one order.
 * So either we see that the number is gone, or the closer sees us. */
int epoll_set_begin_use(struct epoll_set *set, int fd)
{
	atomic_fetch_add(&set->user_cnt, 1);
	if (UNLIKELY(fd >= 0 && !epoll_set_has_number(set, fd) &&
		     fd != atomic_load(&set->kept_fd)))
		fd = epoll_set_fd(set);
	if (UNLIKELY(fd < 0))
		fd = atomic_load(&set->kept_fd);
	if (UNLIKELY(fd < 0))
		atomic_fetch_sub(&set->user_cnt, 1);
	return fd;
}

struct epoll_set *epoll_set_get(int epfd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(epfd);
	struct fd_object *obj = entry ? fd_table_get_at(entry) : NULL;

	if (obj && epoll_is_set(obj))
		return epoll_set_of(obj);
	fd_object_put(obj);
	return NULL;
}

/* Who waits in the set does so until his time is over, as under Linux, where the file lives as
 * long as a call on it. The number may be another file's already, if the program has closed ours
 * by a raw call. */
static void keep_for_callers(struct epoll_set *set, int fd)
{
	int err;

	if (fd < 0 || fd_table_has(fd) || file_identify(fd).mode & S_IFMT)
		return;
	err = fd_internal_copy(fd, &set->kept_fd);
	if (err)
		log_dbg("fd %d: a wait goes on without the kernel's part of its set (%s)",
			fd, strerror(-err));
}

/* Nobody begins to use the number any more. Whoever has the set as a member lets go of it. */
static void set_last_close(struct fd_object *obj, int fd)
{
	struct epoll_set *set = epoll_set_of(obj);
	struct epoll_watch *watch, *following;

	for (unsigned spins = 0; atomic_load(&set->user_cnt);)
		lock_spin(&spins, LOCK_SPINS);
	if (atomic_load(&set->caller_cnt))
		keep_for_callers(set, fd);
	spinlock_acquire(&epoll_nesting);
	LIST_FOR_EACH_SAFE(watch, following, &set->outers, link)
		if (!watch->waiter)
			epoll_item_closed_nested(epoll_item_of_outer(watch));
	spinlock_release(&epoll_nesting);
}

static void set_release(struct fd_object *obj)
{
	struct epoll_set *set = epoll_set_of(obj);

	fd_internal_close(&set->wake_fd);
	fd_internal_close(&set->kept_fd);
	epoll_items_remove_all(set);
	hash_tab_release(&set->by_key);
	hash_tab_release(&set->by_word);
	if (set->stats)
		stats_mux_close(set->stats);
	fd_pool_put(&sets, set);
}

/* An item that nobody has taken to the kernel, or is taking there, or NULL. */
static struct epoll_item *item_that_stays(struct epoll_set *set)
{
	struct list *link = list_first(&set->items);
	struct epoll_item *item;

	item = link ? LIST_ENTRY(link, struct epoll_item, in_set) : NULL;
	return item && !item->is_leaving ? item : NULL;
}

/* A member that has not left yet, with a reference, or NULL. */
static struct fd_object *next_to_leave(struct epoll_set *set, int *fd_out)
{
	struct fd_object *obj = NULL;
	struct epoll_item *item;

	mutex_acquire_unbarred(&set->changes);
	epoll_items_reap(set);
	while (!obj && (item = item_that_stays(set))) {
		item->is_leaving = true;
		list_remove(&item->in_set);
		list_push_back(&set->items, &item->in_set);
		obj = epoll_item_get(item, fd_out);
	}
	mutex_release_unbarred(&set->changes);
	return obj;
}

/* Gives all that is in the set to the kernel. One by one, since leaving takes outer
 * locks. */
static void set_leave(struct fd_object *obj, int fd, enum reason reason,
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
	epoll_items_show_left(set, fd);
}

static bool show_left(struct fd_object *obj, int fd)
{
	epoll_items_show_left(epoll_set_of(obj), fd);
	return false;
}

void epoll_sets_show_left(void)
{
	fd_visit(&epoll_set_ops, show_left);
}

static bool leave_at_exit(struct fd_object *obj, int fd)
{
	set_leave(obj, fd, REASON_EXIT, STATS_BY_EXIT);
	return false;
}

void epoll_sets_leave(void)
{
	fd_visit(&epoll_set_ops, leave_at_exit);
}

static struct fd_object *set_heir(struct fd_object *obj, int fd)
{
	struct epoll_set *set = epoll_set_of(obj);

	return list_is_empty(&set->items) ?
		       NULL :
		       kin_make_heir(obj, &set->heir, fd, kin_use_of_sets());
}

static _Atomic uint64_t numbers;

struct fd_ops epoll_set_ops = {
	.name = "epoll",
	.numbers = &numbers,
	.heir = set_heir,
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
	spinlock_init(&epoll_nesting, LOCK_RANK_EPOLL_NESTING);
	fd_pool_forked(&sets);
	epoll_items_forked();
}
