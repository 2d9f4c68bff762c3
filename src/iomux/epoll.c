/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * epoll (mux.h). A set with sockets of ours is a set of the kernel, too. The
 * kernel's set has the twins, and knows whether they can be written to and what the
 * kernel has brought. Our set knows what our own queues have.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <sys/single_threaded.h>

#include "base/clock.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_wait.h"
#include "iomux/mux_wait.h"
#include "os/event_fd.h"
#include "os/inside.h"
#include "sock/user_msg.h"

/* One socket of ours in a set. All under the stack's lock. */
struct item {
	struct list in_set;
	struct list in_ready;
	struct watch watch;
	struct epoll_set *set;
	struct endpoint *end;
	/* the object that was added; without a reference, since the item goes when
	 * the socket closes */
	struct fd_object *obj;
	int fd;
	struct epoll_event event;
};

struct epoll_set {
	struct fd_object obj;
	/* the stack of all its sockets; fixed by the first one */
	_Atomic(struct stack *) stack;
	/* the stack's lock */
	struct list items;
	struct list ready; /* items that may be, the next to report first */
	struct list sleepers; /* epoll_call */
	_Atomic unsigned item_cnt;
	/* how many further looks do without the kernel; any thread */
	_Atomic unsigned skips_left;
	/* counts the looks with room for one event; our events and the kernel's
	 * take turns */
	_Atomic unsigned turns;
	/* This fd is in the kernel's set and readable as long as threads may sleep
	 * there that have not seen yet that the set is ours; -1: it is not. It
	 * stays until the time below, on the monotonic clock, unless we know before
	 * that no thread sleeps. */
	_Atomic int wake_fd;
	_Atomic uint64_t wake_until_ns;
	struct stats_mux *stats;
};

/* An epoll_wait in progress. */
struct epoll_call {
	struct mux_call call;
	struct list in_sleepers;
	struct epoll_set *set; /* with a reference */
	struct epoll_event *events; /* the program's */
	int cnt;
	int epfd;
	struct pollfd fds[1 + WAIT_FDS_MAX];
};

static struct fd_pool sets = FD_POOL_INIT(struct epoll_set);
static struct fd_pool items = FD_POOL_INIT(struct item);
static struct fd_pool calls = FD_POOL_INIT(struct epoll_call);
static struct fd_ops set_ops;

static struct epoll_set *set_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct epoll_set, obj);
}

static bool is_set(const struct fd_object *obj)
{
	return obj->ops == &set_ops;
}

/* -- items ----------------------------------------------------------------------- */

static void item_destroy(struct item *item)
{
	list_remove(&item->in_set);
	list_remove(&item->in_ready);
	list_remove(&item->watch.link);
	atomic_fetch_sub(&item->set->item_cnt, 1);
	fd_pool_put(&items, item);
}

static void make_ready(struct item *item)
{
	struct epoll_call *sleeper;

	if (!list_is_linked(&item->in_ready))
		list_push_back(&item->set->ready, &item->in_ready);
	LIST_FOR_EACH(sleeper, &item->set->sleepers, in_sleepers)
		waiter_wake_locked(sleeper->call.wait.waiter);
}

static void item_fire(struct watch *watch)
{
	make_ready(CONTAINER_OF(watch, struct item, watch));
}

static void item_closed(struct watch *watch)
{
	item_destroy(CONTAINER_OF(watch, struct item, watch));
}

static struct item *find_item(struct epoll_set *set, const struct fd_object *obj,
			      int fd)
{
	struct item *item;

	LIST_FOR_EACH(item, &set->items, in_set)
		if (item->fd == fd && item->obj == obj)
			return item;
	return NULL;
}

static uint32_t ready_events(const struct item *item)
{
	uint32_t ready = endpoint_ready(item->end);

	if (!(ready & item->event.events))
		return 0;
	/* The kernel reports these two together, and UDP can be written to. */
	if (ready & READY_IN)
		ready |= EPOLLRDNORM;
	ready |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	return ready & item->event.events;
}

/* Returns whether it is the first item. A socket that another thread has closed
 * meanwhile is not added: its last close has looked for watches, or will, under the
 * lock. */
static bool add_item(struct epoll_set *set, struct stack *stack,
		     struct fd_object *obj, struct endpoint *end, int fd,
		     const struct epoll_event *event)
{
	struct item *item = fd_pool_get(&items);
	bool is_first;

	if (!item) {
		obj->ops->leave(obj, fd, REASON_MEMORY, STATS_BY_EPOLL);
		return false;
	}
	*item = (struct item){
		.set = set,
		.end = end,
		.obj = obj,
		.fd = fd,
		.event = *event,
		.watch = { .fire = item_fire, .closed = item_closed },
	};
	list_init(&item->in_ready);
	stack_lock(stack);
	if (!atomic_load(&obj->fd_cnt)) {
		stack_unlock(stack);
		fd_pool_put(&items, item);
		return false;
	}
	list_push_back(&set->items, &item->in_set);
	list_push_back(&end->watches, &item->watch.link);
	is_first = atomic_fetch_add(&set->item_cnt, 1) == 0;
	if (ready_events(item))
		make_ready(item);
	stack_unlock(stack);
	return is_first;
}

/* -- threads that sleep in the kernel ---------------------------------------------- */

struct mux_sleepers mux_sleepers[MUX_SLEEPER_PLACES];

/* After this time, a count belongs to another set or to a thread that has jumped
 * out of its wait. Until then, waits for the set do not sleep. */
#define WAKE_NS NS_PER_SEC

static uint64_t wake_data(const struct epoll_set *set)
{
	return (uint64_t)(uintptr_t)set;
}

static void end_wake(struct epoll_set *set)
{
	/* this is its last fd, so the kernel takes it out of the set */
	fd_internal_close(&set->wake_fd);
}

/* The first socket of ours is in the set now. Threads that sleep in the kernel for
 * the set would not hear about it, so we wake them. The fd stays readable, since
 * there may be several. */
static void wake_sleepers(struct epoll_set *set, int epfd)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = wake_data(set) };
	int fd;

	/* They counted themselves before they looked at item_cnt. */
	if (!atomic_load(mux_sleepers_of(epfd)) ||
	    atomic_load(&set->wake_fd) >= 0)
		return;
	fd = event_fd_open();
	if (fd < 0)
		return;
	event_fd_signal(fd);
	atomic_store(&set->wake_until_ns, clock_monotonic_ns() + WAKE_NS);
	if (fd_internal_adopt(fd, &set->wake_fd) != 0)
		inside_close(fd);
	else if (real.epoll_ctl(epfd, EPOLL_CTL_ADD, atomic_load(&set->wake_fd),
				&event) != 0)
		end_wake(set);
}

/* Returns how many events are left. */
static int take_wake(struct epoll_set *set, int epfd,
		     struct epoll_event *events, int n)
{
	int rest = 0;

	for (int i = 0; i < n; i++)
		if (events[i].data.u64 != wake_data(set))
			events[rest++] = events[i];
	if (rest < n && (!atomic_load(mux_sleepers_of(epfd)) ||
			 clock_monotonic_ns() >=
				 atomic_load(&set->wake_until_ns)))
		end_wake(set);
	return rest;
}

/* -- sets ------------------------------------------------------------------------ */

static struct epoll_set *create_set(int epfd)
{
	struct epoll_set *set = fd_pool_get(&sets);

	if (!set)
		return NULL;
	atomic_init(&set->stack, NULL);
	list_init(&set->items);
	list_init(&set->ready);
	list_init(&set->sleepers);
	atomic_init(&set->item_cnt, 0);
	atomic_init(&set->skips_left, 0);
	atomic_init(&set->turns, 0);
	atomic_init(&set->wake_fd, -1);
	set->stats = stats_mux_open(epfd);
	fd_object_init(&set->obj, &set_ops, 0);
	if (fd_table_install(epfd, &set->obj) != 0) {
		fd_object_put(&set->obj);
		return NULL;
	}
	return set;
}

/* Returns the set that epfd names, with a reference. It is made if there is none. */
static struct epoll_set *get_set(int epfd)
{
	struct fd_object *obj = fd_table_get(epfd);

	if (!obj)
		return create_set(epfd);
	if (is_set(obj))
		return set_of(obj);
	fd_object_put(obj);
	return NULL;
}

static void set_release(struct fd_object *obj)
{
	struct epoll_set *set = set_of(obj);
	struct stack *stack = atomic_load(&set->stack);
	struct item *item, *following;

	end_wake(set);
	if (stack) {
		stack_lock(stack);
		LIST_FOR_EACH_SAFE(item, following, &set->items, in_set)
			item_destroy(item);
		stack_unlock(stack);
	}
	stats_mux_close(set->stats);
	fd_pool_put(&sets, set);
}

/* Gives all sockets of the set back to the kernel. They are taken one by one, since
 * leaving takes outer locks. */
static void leave_all(struct epoll_set *set, enum reason reason,
		      enum stats_decider decider)
{
	struct stack *stack = atomic_load(&set->stack);
	struct fd_object *obj;
	struct item *item;
	int fd = -1;

	if (!stack)
		return;
	do {
		obj = NULL;
		stack_lock(stack);
		LIST_FOR_EACH(item, &set->items, in_set) {
			if (item->event.events & EPOLLET)
				continue; /* marked: has left already */
			item->event.events |= EPOLLET;
			fd = item->fd;
			obj = fd_table_get(fd);
			if (obj == item->obj)
				break;
			fd_object_put(obj);
			obj = NULL;
		}
		stack_unlock(stack);
		if (obj)
			obj->ops->leave(obj, fd, reason, decider);
		fd_object_put(obj);
	} while (obj);
}

static void set_leave(struct fd_object *obj, int fd UNUSED,
		      enum reason reason, enum stats_decider decider)
{
	end_wake(set_of(obj));
	leave_all(set_of(obj), reason, decider);
}

/* Somebody is about to wait for the set as a whole, which the kernel can do only if
 * all its sockets are the kernel's. */
static enum fd_await set_await(struct fd_object *obj,
			       struct endpoint **end_out UNUSED,
			       struct stack **stack_out UNUSED)
{
	set_leave(obj, -1, REASON_EPOLL_FLAGS, STATS_BY_EPOLL);
	return FD_AWAIT_KERNEL;
}

static struct endpoint *set_follow(struct fd_object *obj,
				   struct stack **stack_out UNUSED)
{
	set_leave(obj, -1, REASON_EPOLL_FLAGS, STATS_BY_EPOLL);
	return NULL;
}

static struct fd_ops set_ops = {
	.name = "epoll",
	.leave = set_leave,
	.await = set_await,
	.follow = set_follow,
	.release = set_release,
};

/* -- changes --------------------------------------------------------------------- */

/* What level-triggered sets cannot express. */
static bool is_beyond_us(const struct epoll_event *event)
{
	return event->events & (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE);
}

static void added(int epfd, struct fd_object *obj, int fd,
		  const struct epoll_event *event)
{
	struct epoll_set *set;
	struct endpoint *end;
	struct stack *stack;

	if (is_beyond_us(event))
		obj->ops->leave(obj, fd, REASON_EPOLL_FLAGS,
				STATS_BY_EPOLL);
	/* one that has left is followed as long as something is queued */
	end = obj->ops->follow(obj, &stack);
	if (!end)
		return;
	set = get_set(epfd);
	if (!set) {
		obj->ops->leave(obj, fd, REASON_MEMORY, STATS_BY_EPOLL);
		return;
	}
	atomic_store(&set->stack, stack);
	if (add_item(set, stack, obj, end, fd, event))
		wake_sleepers(set, epfd);
	fd_object_put(&set->obj);
}

static void modified(struct epoll_set *set, struct fd_object *obj, int fd,
		     const struct epoll_event *event)
{
	struct stack *stack = atomic_load(&set->stack);
	struct item *item;

	if (!stack)
		return;
	stack_lock(stack);
	item = find_item(set, obj, fd);
	if (item) {
		item->event = *event;
		if (ready_events(item))
			make_ready(item);
	}
	stack_unlock(stack);
	if (is_beyond_us(event))
		obj->ops->leave(obj, fd, REASON_EPOLL_FLAGS,
				STATS_BY_EPOLL);
}

static void removed(struct epoll_set *set, struct fd_object *obj, int fd)
{
	struct stack *stack = atomic_load(&set->stack);
	struct item *item;

	if (!stack)
		return;
	stack_lock(stack);
	item = find_item(set, obj, fd);
	if (item)
		item_destroy(item);
	stack_unlock(stack);
}

static void changed(int epfd, int op, struct fd_object *obj, int fd,
		    const struct epoll_event *event)
{
	struct epoll_set *set;

	if (op == EPOLL_CTL_ADD) {
		added(epfd, obj, fd, event);
		return;
	}
	set = get_set(epfd);
	if (!set)
		return;
	if (op == EPOLL_CTL_MOD)
		modified(set, obj, fd, event);
	else
		removed(set, obj, fd);
	fd_object_put(&set->obj);
}

void mux_epoll_changed(int epfd, int op, int fd, const struct epoll_event *event)
{
	struct fd_object *obj = fd_table_get(fd);

	if (!obj)
		return;
	changed(epfd, op, obj, fd, event);
	fd_object_put(obj);
}

/* -- waiting --------------------------------------------------------------------- */

static struct epoll_call *call_of(struct mux_call *call)
{
	return CONTAINER_OF(call, struct epoll_call, call);
}

/* Stores the events of our queues. Each item comes once, and they take turns. */
static int harvest(struct epoll_set *set, struct epoll_event *events, int cnt)
{
	struct list again = LIST_INIT(again), *link;
	int n = 0;

	while (n < cnt && (link = list_pop_front(&set->ready))) {
		struct item *item = LIST_ENTRY(link, struct item, in_ready);
		uint32_t ready = ready_events(item);

		if (!ready)
			continue;
		events[n] = item->event;
		events[n++].events = ready;
		list_push_back(&again, link);
	}
	/* The set is level-triggered, so what was reported is looked at again,
	 * after the others. */
	list_splice_back(&set->ready, &again);
	return n;
}

/* Joins the events of a socket that both the kernel and we report. To a program,
 * fds with the same data look the same. Returns how many events there are in all. */
static int merge(struct epoll_event *events, int own, int all)
{
	int n = own;

	for (int i = own; i < all; i++) {
		int j = 0;

		while (j < own && events[j].data.u64 != events[i].data.u64)
			j++;
		if (j < own)
			events[j].events |= events[i].events;
		else
			events[n++] = events[i];
	}
	return n;
}

/* How many of our events are reported when so many were found. The last place is
 * for the kernel's events, however busy our sockets are; if there is a single
 * place, they take turns. What is not reported now is still ready. */
static int leave_room(struct epoll_set *set, int own, int cnt)
{
	if (own < cnt || (cnt == 1 && atomic_fetch_add(&set->turns, 1) & 1))
		return own;
	return own - 1;
}

static int harvest_own(struct epoll_call *wait)
{
	struct stack *stack = wait->call.wait.stack;
	int own;

	stack_lock(stack);
	stack_poll_locked(stack);
	own = harvest(wait->set, wait->events, wait->cnt);
	stack_unlock(stack);
	return own;
}

/* Puts the kernel's events behind the first `own` ones. The event at that place was
 * found as well, and stays if the kernel has none. */
static int harvest_kernels(struct epoll_call *wait, int own, int found)
{
	struct epoll_event *at = wait->events + own;
	struct epoll_event last = found > own ? *at : (struct epoll_event){ 0 };
	int n = (int)inside_epoll_wait(wait->epfd, at, wait->cnt - own);

	if (n > 0)
		n = take_wake(wait->set, wait->epfd, at, n);
	if (n > 0 || found == own)
		return n;
	*at = last;
	return found - own;
}

static long epoll_look(struct mux_call *call, bool with_kernel)
{
	struct epoll_call *wait = call_of(call);
	struct epoll_set *set = wait->set;
	int found = harvest_own(wait), own, n;

	call->own_cnt = (unsigned)found;
	if (found && atomic_load(&set->skips_left)) {
		atomic_fetch_sub(&set->skips_left, 1);
		return found;
	}
	if (!found && !with_kernel)
		return 0;
	if (found)
		atomic_store(&set->skips_left, mux_params.skip_os);
	own = leave_room(set, found, wait->cnt);
	if (own == wait->cnt)
		return own;
	n = harvest_kernels(wait, own, found);
	if (n < 0)
		return own ? own : n;
	return merge(wait->events, own, own + n);
}

static bool epoll_watch(struct mux_call *call)
{
	struct epoll_call *wait = call_of(call);
	struct item *item;

	list_push_back(&wait->set->sleepers, &wait->in_sleepers);
	LIST_FOR_EACH(item, &wait->set->ready, in_ready)
		if (ready_events(item))
			return true;
	return false;
}

static void epoll_unwatch(struct mux_call *call)
{
	list_remove(&call_of(call)->in_sleepers);
}

static void epoll_abandoned(struct mux_call *call)
{
	fd_object_put(&call_of(call)->set->obj);
	fd_pool_put(&calls, call_of(call));
}

bool mux_epoll_is_ours(int epfd)
{
	struct fd_object *obj;
	bool is_ours;

	if (LIKELY(!fd_table_has(epfd)))
		return false;
	obj = fd_table_get(epfd);
	is_ours = obj && is_set(obj) && atomic_load(&set_of(obj)->item_cnt);
	fd_object_put(obj);
	return is_ours;
}

static const struct mux_ops epoll_mux_ops = {
	.look = epoll_look,
	.watch = epoll_watch,
	.unwatch = epoll_unwatch,
	.abandoned = epoll_abandoned,
};

static struct epoll_call *make(struct epoll_set *set, int epfd,
			       struct epoll_event *events, int cnt)
{
	struct epoll_call *wait = fd_pool_get(&calls);

	if (!wait)
		return NULL;
	wait->call = (struct mux_call){
		.wait = {
			.stack = atomic_load(&set->stack),
			.fds = wait->fds,
			.fd_cnt = 1,
		},
		.ops = &epoll_mux_ops,
		.stats = set->stats,
	};
	list_init(&wait->in_sleepers);
	wait->set = set;
	wait->events = events;
	wait->cnt = cnt;
	wait->epfd = epfd;
	wait->fds[0] = (struct pollfd){ .fd = epfd, .events = POLLIN };
	return wait;
}

long mux_epoll_wait(int epfd, struct epoll_event *events, int cnt,
		    const struct timespec *timeout,
		    const struct signals_mark *mark)
{
	struct epoll_set *set = get_set(epfd);
	struct epoll_call *wait;
	long n;

	if (!set)
		return -EBADF;
	if (cnt <= 0 || cnt > INT_MAX / (int)sizeof(*events) ||
	    !user_is_plausible(events, (size_t)cnt * sizeof(*events))) {
		fd_object_put(&set->obj);
		return cnt <= 0 || cnt > INT_MAX / (int)sizeof(*events) ?
			       -EINVAL :
			       -EFAULT;
	}
	wait = make(set, epfd, events, cnt);
	if (!wait) {
		fd_object_put(&set->obj);
		return -ENOMEM;
	}
	n = mux_wait(&wait->call, timeout, mark);
	if (n != FD_ABANDONED)
		epoll_abandoned(&wait->call);
	return n;
}

int mux_epoll_woken(int epfd, struct epoll_event *events, int n)
{
	struct fd_object *obj = fd_table_get(epfd);
	int rest = n;

	if (obj && is_set(obj))
		rest = take_wake(set_of(obj), epfd, events, n);
	fd_object_put(obj);
	return rest ? rest : MUX_WOKEN;
}

void mux_start(const struct mux_params *params)
{
	mux_params = *params;
	fd_ops_fill(&set_ops);
}

void mux_forked(void)
{
	fd_pool_forked(&sets);
	fd_pool_forked(&items);
	fd_pool_forked(&calls);
	/* A process with one thread has counted nobody, and then a fork need not
	 * touch four pages. */
	for (int i = 0; i < MUX_SLEEPER_PLACES && !__libc_single_threaded; i++)
		atomic_store(&mux_sleepers[i].cnt, 0);
	poll_forked();
}
