/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* epoll_ctl: the kernel's set changes, and ours follows (epoll_set.h). */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "fd/fd_table.h"
#include "iomux/epoll_set.h"
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

/* The kernel has the member in its set already, or gets it now. */
static long add_to(struct epoll_set *set, int epfd, struct fd_object *obj, int fd,
		   const struct followed *way, struct epoll_event *event,
		   bool has_kernel)
{
	int failed = 0;
	long err = 0;

	mutex_acquire(&set->changes);
	if (!has_kernel)
		err = change_kernels(epfd, EPOLL_CTL_ADD, fd, event);
	if (!err)
		failed = epoll_item_add(set, obj, fd, way->end, way->stack,
					event);
	changed(set);
	mutex_release(&set->changes);
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

static long add(int epfd, struct fd_object *obj, int fd, struct epoll_event *event)
{
	struct epoll_set *set;
	struct followed way;
	long err;

	if (!follow(obj, &way))
		return change_kernels(epfd, EPOLL_CTL_ADD, fd, event);
	set = epoll_set_get(epfd);
	if (!set)
		return add_to_unknown(epfd, obj, fd, &way, event);
	err = add_to(set, epfd, obj, fd, &way, event, false);
	fd_object_put(&set->obj);
	return err;
}

/* Our events change before the kernel's: an event that the kernel reports in between
 * belongs to the new ones. */
static long modify(struct epoll_item *item, int epfd, int fd,
		   struct epoll_event *event)
{
	struct epoll_event was = item->event;
	bool was_armed;
	long err;

	/* what the kernel refuses for sure changes nothing, for no moment */
	if (!user_is_plausible(event, sizeof(*event)) ||
	    (item->event.events | event->events) & EPOLLEXCLUSIVE)
		return change_kernels(epfd, EPOLL_CTL_MOD, fd, event);
	was_armed = epoll_item_modify(item, event, true);
	err = change_kernels(epfd, EPOLL_CTL_MOD, fd, event);
	if (err)
		(void)epoll_item_modify(item, &was, was_armed);
	return err;
}

static long change(struct epoll_set *set, struct fd_object *obj, int epfd, int op,
		   int fd, struct epoll_event *event)
{
	struct epoll_item *item;
	long err;

	mutex_acquire(&set->changes);
	item = epoll_item_find(set, obj, fd);
	if (item && op == EPOLL_CTL_MOD)
		err = modify(item, epfd, fd, event);
	else
		err = change_kernels(epfd, op, fd, event);
	if (!err && item && op == EPOLL_CTL_DEL)
		epoll_item_remove(item);
	changed(set);
	mutex_release(&set->changes);
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
	if (!set)
		return change_kernels(epfd, op, fd, event);
	err = change(set, obj, epfd, op, fd, event);
	fd_object_put(&set->obj);
	return err;
}

_Atomic uint64_t mux_noted_sets[MUX_NOTED_FDS / 64];

/* What a member that is no socket of ours is, with a reference: a set, or NULL. */
static struct fd_object *noted_set(int fd)
{
	struct epoll_set *set;
	char path[32];

	if (!mux_is_noted(fd))
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!file_leads_to(path, "anon_inode:[eventpoll]"))
		return NULL;
	set = epoll_set_make(fd);
	return set ? &set->obj : NULL;
}

long mux_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct fd_object *obj = fd_table_get(fd);
	long err;

	if (!obj && op == EPOLL_CTL_ADD)
		obj = noted_set(fd);
	if (!obj)
		return change_kernels(epfd, op, fd, event);
	err = change_member(obj, epfd, op, fd, event);
	fd_object_put(obj);
	return err;
}

void mux_epoll_copied(int epfd)
{
	if (!fd_table_has(epfd))
		fd_object_put(noted_set(epfd));
}
