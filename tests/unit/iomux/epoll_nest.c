/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is told that a set has got a stack (src/iomux/epoll_nest.c). A poll that is woken
 * here has left at once, before the next one is looked for.
 */
#include "config.h"

#define waiter_signal leave_at_once

#include "iomux/epoll_nest.c"

#include <sys/epoll.h>
#include <unistd.h>

#include "iomux/mux.h"
#include "os/thread.h"
#include "tests/support/test.h"

enum { POLLS = 4 };

static struct poller {
	struct epoll_watch watch;
	struct waiter waiter;
	unsigned woken_cnt;
} pollers[POLLS];

void leave_at_once(struct waiter *waiter)
{
	struct poller *poller = CONTAINER_OF(waiter, struct poller, waiter);

	epoll_set_unwatch(&poller->watch);
	poller->woken_cnt++;
}

static void begin_to_poll(struct poller *poller, struct epoll_set *set)
{
	poller->watch = (struct epoll_watch){ .waiter = &poller->waiter };
	poller->woken_cnt = 0;
	CHECK(epoll_set_watch(set, &poller->watch,
			      atomic_load(&set->stacks_gen)));
}

static void begin(void)
{
	real_resolve();
	mux_load();
	os_enter();
}

static struct epoll_set *make_set(int *epfd_out)
{
	struct epoll_set *set;

	*epfd_out = epoll_create1(0);
	CHECK(*epfd_out >= 0);
	set = epoll_set_make(*epfd_out);
	CHECK(set);
	return set;
}

static void close_set(struct epoll_set *set, int epfd)
{
	fd_object_put(&set->obj);
	fd_table_forget(epfd);
	close(epfd);
}

TEST(each_poll_is_woken_though_others_leave)
{
	struct epoll_set *set;
	int epfd;

	begin();
	set = make_set(&epfd);
	for (int i = 0; i < POLLS; i++)
		begin_to_poll(&pollers[i], set);
	epoll_nest_wake_for_stack(set, false);
	for (int i = 0; i < POLLS; i++)
		CHECK_EQ(pollers[i].woken_cnt, 1);
	/* who polls again is woken again */
	begin_to_poll(&pollers[0], set);
	epoll_nest_wake_for_stack(set, false);
	CHECK_EQ(pollers[0].woken_cnt, 1);
	close_set(set, epfd);
	os_leave();
}

/* The set that comes first on the list is about to be released. */
TEST(a_set_that_ends_hides_no_other)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct epoll_set *inner, *outer, *ending;
	int inner_fd, outer_fd, ending_fd, refs;

	begin();
	inner = make_set(&inner_fd);
	outer = make_set(&outer_fd);
	ending = make_set(&ending_fd);
	CHECK_EQ(mux_epoll_ctl(outer_fd, EPOLL_CTL_ADD, inner_fd, &event), 0);
	CHECK_EQ(mux_epoll_ctl(ending_fd, EPOLL_CTL_ADD, inner_fd, &event), 0);
	CHECK(epoll_item_of_outer(LIST_ENTRY(list_first(&inner->outers),
					     struct epoll_watch, link))->set ==
	      ending);
	begin_to_poll(&pollers[0], outer);
	refs = atomic_exchange(&ending->obj.refs, 0);
	epoll_nest_wake_for_stack(inner, false);
	atomic_store(&ending->obj.refs, refs);
	CHECK_EQ(pollers[0].woken_cnt, 1);
	close_set(ending, ending_fd);
	close_set(outer, outer_fd);
	close_set(inner, inner_fd);
	os_leave();
}
