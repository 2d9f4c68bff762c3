/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* epoll_ctl: the kernel's set changes, and ours follows (epoll_set.h). */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "fd/fd_table.h"
#include "iomux/epoll_item.h"
#include "os/file.h"
#include "sock/user_msg.h"

static long change_kernels(int epfd, int op, int fd, struct epoll_event *event)
{
	return real.epoll_ctl(epfd, op, fd, event) ? -errno : 0;
}

/* The next look asks the kernel as well, which may report a new member, too. */
static void changed(struct epoll_set *set)
{
	atomic_store(&set->skips_left, 0);
}

/* How a set hears of a member. */
struct followed {
	struct endpoint *end; /* NULL: of a set */
	struct stack *stack;
};

/* False: the kernel alone has it. One that has left is followed as long as something is
 * queued. */
static bool follow(struct fd_object *obj, struct followed *way)
{
	*way = (struct followed){ NULL, NULL };
	if (epoll_is_set(obj))
		return true;
	way->end = obj->ops->follow(obj, &way->stack);
	return way->end;
}

/* The kernel says what it would say if it had the member that we hide from it. */
static COLD long judge_by_kernel(struct epoll_item *item, int epfd, int op, int fd,
				 struct epoll_event *event)
{
	long err = epoll_item_show(item, epfd);

	if (err)
		return err;
	err = change_kernels(epfd, op, fd, event);
	if (err)
		epoll_item_hide(item, epfd);
	return err;
}

static long add_to_kernels(struct epoll_set *set, int epfd, struct fd_object *obj,
			   int fd, struct epoll_event *event)
{
	struct epoll_item *item = epoll_item_find(set, obj, fd);

	if (UNLIKELY(item && item->is_hidden))
		return judge_by_kernel(item, epfd, EPOLL_CTL_ADD, fd, event);
	return change_kernels(epfd, EPOLL_CTL_ADD, fd, event);
}

/* Those that EPOLLEXCLUSIVE goes together with. */
enum {
	EXCLUSIVE_FLAGS = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP |
			  (int)EPOLLET | EPOLLEXCLUSIVE,
};

/* What the kernel would say of a member that it must not have. */
static long judge_alone(struct epoll_set *set, struct fd_object *obj, int fd,
			const struct epoll_event *event)
{
	if (!user_is_plausible(event, sizeof(*event)))
		return -EFAULT;
	if (event->events & EPOLLEXCLUSIVE &&
	    event->events & ~(uint32_t)EXCLUSIVE_FLAGS)
		return -EINVAL;
	return epoll_item_find(set, obj, fd) ? -EEXIST : 0;
}

static bool is_alone(const struct fd_object *obj)
{
	return obj->ops->word(obj) == FD_WORD_ALL;
}

/* A member whose twin would mislead. The kernel's set has never had it, or has it for
 * the moment. */
static COLD long add_alone(struct epoll_set *set, int epfd,
			   struct fd_object *obj, int fd,
			   const struct followed *way,
			   struct epoll_event *event, bool has_kernel)
{
	struct epoll_item *item;
	long err;

	mutex_acquire_unbarred(&set->changes);
	err = judge_alone(set, obj, fd, event);
	if (!err)
		err = epoll_item_add(set, obj, fd, way->end, way->stack, event,
				     true);
	item = err ? NULL : epoll_item_find(set, obj, fd);
	if (has_kernel)
		(void)!real.epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
	/* it may have been decided meanwhile whose it is; what is decided from now on, the
	 * item hears of */
	if (item && !epoll_item_is_alone(item))
		err = epoll_item_show(item, epfd);
	changed(set);
	mutex_release_unbarred(&set->changes);
	return err;
}

/* Its member is not in the kernel's set. If it becomes the kernel's meanwhile, as the note of
 * that may be lost with those of the old events, it is put there here. */
static COLD long modify_alone(struct epoll_item *item, int epfd,
			      struct epoll_event *event)
{
	if (!user_is_plausible(event, sizeof(*event)))
		return -EFAULT;
	if ((item->event.events | event->events) & EPOLLEXCLUSIVE)
		return -EINVAL;
	(void)epoll_item_modify(item, event, true);
	return epoll_item_is_alone(item) ? 0 : epoll_item_show(item, epfd);
}

/* The kernel has the member in its set already, or gets it now. */
static long add_to(struct epoll_set *set, int epfd, struct fd_object *obj, int fd,
		   const struct followed *way, struct epoll_event *event,
		   bool has_kernel)
{
	int failed = 0;
	long err = 0;

	if (UNLIKELY(is_alone(obj)))
		return add_alone(set, epfd, obj, fd, way, event, has_kernel);
	mutex_acquire_unbarred(&set->changes);
	if (!has_kernel)
		err = add_to_kernels(set, epfd, obj, fd, event);
	if (!err)
		failed = epoll_item_add(set, obj, fd, way->end, way->stack,
					event, false);
	changed(set);
	mutex_release_unbarred(&set->changes);
	/* from now on it is seen from outside */
	if (epoll_is_set(obj)) {
		epoll_items_hide_spent(epoll_set_of(obj), fd);
		epoll_items_show_left(epoll_set_of(obj), fd);
	}
	if (failed)
		obj->ops->leave(obj, fd, REASON_MEMORY, STATS_BY_EPOLL);
	return err;
}

/* A set that we have not seen made becomes known at its first member of ours. */
static long add_to_unknown(int epfd, struct fd_object *obj, int fd,
			   const struct followed *way, struct epoll_event *event)
{
	long err = change_kernels(epfd, EPOLL_CTL_ADD, fd, event);
	struct epoll_set *set;

	if (err)
		return err;
	set = epoll_set_make(epfd);
	if (!set) {
		obj->ops->leave(obj, fd, REASON_MEMORY, STATS_BY_EPOLL);
		return 0;
	}
	err = add_to(set, epfd, obj, fd, way, event, true);
	fd_object_put(&set->obj);
	return err;
}

_Atomic uint64_t mux_noted_sets[MUX_NOTED_FDS / 64];
_Atomic bool mux_has_noted;

struct fd_object *epoll_noted_set(int fd)
{
	struct epoll_set *set;
	char path[32];

	/* before a filter everything has been forgotten, for good */
	if (!mux_is_noted(fd) || fd_table_is_closed())
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!file_leads_to(path, "anon_inode:[eventpoll]"))
		return NULL;
	set = epoll_set_make(fd);
	return set ? &set->obj : NULL;
}

/* Threads that sleep in the kernel for the set, and are woken by its new member, find that
 * it is ours, as it is known before the kernel has the member. */
static struct epoll_set *known_from_now(int epfd)
{
	struct fd_object *obj = epoll_noted_set(epfd);

	return obj ? epoll_set_of(obj) : NULL;
}

/* The kernel's set may lack it still, though the program has put it in: its socket has become
 * the kernel's since the set was looked at last, or is a one-shot that was reported. */
static long add_kernels(int epfd, struct fd_object *obj, int fd,
			struct epoll_event *event)
{
	struct epoll_set *set = epoll_set_get(epfd);
	struct epoll_item *item = NULL;
	long err = 0;

	if (set) {
		mutex_acquire_unbarred(&set->changes);
		item = epoll_item_find(set, obj, fd);
		if (item && item->is_hidden)
			err = judge_alone(set, obj, fd, event);
		mutex_release_unbarred(&set->changes);
		fd_object_put(&set->obj);
	}
	return err ? err : change_kernels(epfd, EPOLL_CTL_ADD, fd, event);
}

static long add(int epfd, struct fd_object *obj, int fd, struct epoll_event *event)
{
	struct epoll_set *set;
	struct followed way;
	long err;

	if (!follow(obj, &way))
		return add_kernels(epfd, obj, fd, event);
	set = epoll_set_get(epfd);
	if (!set)
		set = known_from_now(epfd);
	if (!set)
		return add_to_unknown(epfd, obj, fd, &way, event);
	err = add_to(set, epfd, obj, fd, &way, event, false);
	fd_object_put(&set->obj);
	return err;
}

/* Nobody else can arm it meanwhile. */
static COLD long modify_hidden(struct epoll_item *item, int epfd, int fd,
			       struct epoll_event *event)
{
	long err = judge_by_kernel(item, epfd, EPOLL_CTL_MOD, fd, event);

	if (err)
		return err;
	(void)epoll_item_modify(item, event, true);
	epoll_item_note_change(item);
	return 0;
}

/* Our events change before the kernel's: an event that the kernel reports in between
 * belongs to the new ones. */
static long modify(struct epoll_item *item, int epfd, int fd,
		   struct epoll_event *event)
{
	struct epoll_event was = item->event;
	bool was_armed;
	long err;

	if (epoll_item_is_alone(item)) {
		epoll_item_hide(item, epfd);
		return modify_alone(item, epfd, event);
	}
	if (UNLIKELY(item->is_hidden))
		return modify_hidden(item, epfd, fd, event);
	/* what the kernel refuses for sure changes nothing, for no moment */
	if (!user_is_plausible(event, sizeof(*event)) ||
	    (item->event.events | event->events) & EPOLLEXCLUSIVE)
		return change_kernels(epfd, EPOLL_CTL_MOD, fd, event);
	was_armed = epoll_item_modify(item, event, true);
	err = change_kernels(epfd, EPOLL_CTL_MOD, fd, event);
	if (err)
		(void)epoll_item_modify(item, &was, was_armed);
	epoll_item_note_change(item);
	return err;
}

static long change(struct epoll_set *set, struct fd_object *obj, int epfd, int op,
		   int fd, struct epoll_event *event)
{
	struct epoll_item *item;
	long err;

	mutex_acquire_unbarred(&set->changes);
	item = epoll_item_find(set, obj, fd);
	if (item && op == EPOLL_CTL_MOD)
		err = modify(item, epfd, fd, event);
	else if (item && item->is_hidden && op == EPOLL_CTL_DEL)
		err = 0;
	else
		err = change_kernels(epfd, op, fd, event);
	if (!err && item && op == EPOLL_CTL_DEL)
		epoll_item_remove(item);
	changed(set);
	mutex_release_unbarred(&set->changes);
	return err;
}

static long change_member(struct fd_object *obj, int epfd, int op, int fd,
			  struct epoll_event *event)
{
	struct epoll_set *set;
	long err;

	if (op == EPOLL_CTL_ADD)
		return add(epfd, obj, fd, event);
	set = epoll_set_get(epfd);
	if (!set) {
		epoll_set_ask_parent(epfd, true);
		return change_kernels(epfd, op, fd, event);
	}
	err = change(set, obj, epfd, op, fd, event);
	fd_object_put(&set->obj);
	return err;
}

long mux_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return mux_epoll_ctl_at(fd_table_entry(fd), epfd, op, fd, event);
}

long mux_epoll_ctl_at(_Atomic(struct fd_object *) *entry, int epfd, int op, int fd,
		      struct epoll_event *event)
{
	struct fd_object *obj = entry ? fd_table_get_settled(entry) : NULL;
	long err;

	if (!obj && op == EPOLL_CTL_ADD)
		obj = epoll_noted_set(fd);
	if (!obj)
		return change_kernels(epfd, op, fd, event);
	/* to the program, one of our own is not open */
	err = LIKELY(!obj->ops->is_internal) ?
		      change_member(obj, epfd, op, fd, event) :
		      change_kernels(epfd, op, FD_TABLE_LIMIT, event);
	fd_object_put(obj);
	return err;
}

void mux_epoll_copied(int epfd)
{
	if (!fd_table_has(epfd))
		fd_object_put(epoll_noted_set(epfd));
}
