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
#include <sys/eventfd.h>
#include <unistd.h>

#include "iomux/epoll_item.h"
#include "os/event_fd.h"
#include "os/real.h"
#include "tests/support/test.h"
#include "tests/unit/iomux/things.h"

/* What others do before the kernel of the next look is asked, and after. */
static void (*others_before)(void), (*others_after)(void);
/* The same of one who does it when he has called ask_now(). */
static void (*others_around)(void);

static struct {
	int epfd;
	struct epoll_event *events;
	int cnt;
	long found;
} question;

static void let(void (**others)(void))
{
	void (*act)(void) = *others;

	*others = NULL;
	if (act)
		act();
}

static void ask_now(void)
{
	question.found = inside_epoll_wait(question.epfd, question.events, question.cnt);
}

static long ask_kernel(int epfd, struct epoll_event *events, int cnt)
{
	let(&others_before);
	question.epfd = epfd;
	question.events = events;
	question.cnt = cnt;
	if (others_around)
		let(&others_around);
	else
		ask_now();
	let(&others_after);
	return question.found;
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

/* -- one shot ------------------------------------------------------------------------ */

enum { ONCE = EPOLLIN | EPOLLONESHOT };

/* Our queue has reported the first thing, and its twin has something since, of which the
 * kernel's set still tells. */
static void begin_spent(void)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, ONCE);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	thing_make_unready(0);
	thing_make_twin_ready(0);
}

static void arm_again(void)
{
	things_change(EPOLL_CTL_MOD, 0, ONCE);
}

static int ask_and_change(int epfd, int op, int fd, struct epoll_event *event)
{
	ask_now();
	real_resolve();
	return real.epoll_ctl(epfd, op, fd, event);
}

/* The kernel is asked when our side is armed already, and its own is not. */
static void arm_again_around(void)
{
	real.epoll_ctl = ask_and_change;
	arm_again();
}

/* The next looks up to its arming find nothing, and it tells the same after it. */
static void check_told(void)
{
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 0);
	arm_again();
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
}

/* What the kernel tells before its own arming is ours of the new one, and the only one. */
TEST(one_shot_that_is_armed_while_the_kernel_tells_is_told_once)
{
	for (int is_around = 0; is_around < 2; is_around++) {
		begin_spent();
		if (is_around)
			others_around = arm_again_around;
		else
			others_after = arm_again;
		CHECK_EQ(things_look(4), 1);
		check_told();
		things_end();
	}
}

static void drain_twin(void)
{
	thing_make_twin_unready(0);
}

/* Whoever was told of it has read what the kernel tells us of. */
TEST(one_shot_that_is_read_meanwhile_is_not_told_again)
{
	begin_spent();
	others_after = drain_twin;
	CHECK_EQ(things_look(4), 0);
	check_told();
	things_end();
}

static void hide(void)
{
	struct epoll_set *set = epoll_set_get(things_epfd);

	epoll_items_hide_spent_slow(set, things_epfd);
	fd_object_put(&set->obj);
}

/* For the sake of those who see the set from outside. */
TEST(one_shot_that_is_hidden_meanwhile_is_not_told_again)
{
	begin_spent();
	others_after = hide;
	CHECK_EQ(things_look(4), 0);
	check_told();
	things_end();
}

/* The kernel alone has the other one. */
TEST(spent_one_shot_takes_nothing_of_another_fd_with_its_word)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 0 };
	int fd;

	begin_spent();
	thing_make_twin_unready(0);
	fd = eventfd(1, EFD_NONBLOCK);
	CHECK_EQ(real.epoll_ctl(things_epfd, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	/* nor is it disarmed by that */
	arm_again();
	event_fd_signal(fd);
	CHECK_EQ(things_look(4), 1);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	close(fd);
	things_end();
}
