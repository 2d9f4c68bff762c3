/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks at a set of epoll, and what other threads do while such a look asks the kernel,
 * where it holds no lock. */
#include "config.h"

#include "os/inside.h"

static long ask_kernel(int epfd, struct epoll_event *events, int cnt);
#define inside_epoll_wait ask_kernel
#include "iomux/epoll_wait.c"
#undef inside_epoll_wait

#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/iomux/things.h"

/* What others do before the kernel of the next look is asked, and after. */
static void (*others_before)(void), (*others_after)(void);

static void let(void (**others)(void))
{
	void (*act)(void) = *others;

	*others = NULL;
	if (act)
		act();
}

static long ask_kernel(int epfd, struct epoll_event *events, int cnt)
{
	long n;

	let(&others_before);
	n = inside_epoll_wait(epfd, events, cnt);
	let(&others_after);
	return n;
}

/* What another thread's look finds, as things_look() says it. */
static unsigned found_by_other;

static void other_looks(void)
{
	struct epoll_event events[ARRAY_LEN(things_events)];

	memcpy(events, things_events, sizeof(events));
	found_by_other = things_look(THINGS_MAX);
	memcpy(things_events, events, sizeof(events));
}

/* -- a member comes once in a look -------------------------------------------------- */

/* It stays ready, and there is room for more of ours when the kernel has been asked. */
TEST(what_another_look_reports_too_comes_once)
{
	things_begin();
	things_add(0);
	thing_make_ready(0);
	others_before = other_looks;
	CHECK_EQ(things_look(2), 1);
	CHECK_EQ(found_by_other, 1);
	things_end();
}

/* The kernel has something of the same member for us. */
TEST(what_another_look_reports_too_is_one_event_with_the_kernels)
{
	things_begin();
	things_add(0);
	thing_make_ready(0);
	things_change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLOUT);
	others_before = other_looks;
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(found_by_other, 1);
	CHECK_EQ(things_events[0].events, EPOLLIN | EPOLLOUT);
	things_end();
}

/* Who looks later does not take it from a look that has nothing yet. */
TEST(what_another_look_reports_is_not_taken_from_ours)
{
	things_begin();
	things_add(0);
	CHECK_EQ(things_look(1), 0);
	thing_make_ready(0);
	for (int i = 0; i < 2; i++) {
		others_before = other_looks;
		CHECK_EQ(things_look(1), 1);
		let(&others_before);
		CHECK_EQ(found_by_other, 1);
	}
	things_end();
}
