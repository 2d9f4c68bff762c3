/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of epoll with objects of ours in them: threads that sleep for one, and others that
 * change or close it meanwhile. */
#include "config.h"

#include "iomux/mux.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <unistd.h>

#include "fd/fd_table.h"
#include "iomux/epoll_item.h"
#include "os/real.h"
#include "os/thread.h"
#include "tests/support/sleeper.h"
#include "tests/support/test.h"
#include "tests/unit/iomux/things.h"

enum { BY_EPOLL, BY_POLL, BY_SELECT, BY_POLL_OF_SET, BY_OUTER, WAYS };

/* A thread that waits for whatever comes. */
struct sleeper {
	unsigned how;
	int outer;
	_Atomic pid_t tid;
	unsigned found;
	pthread_t thread;
};

static unsigned poll_things(struct pollfd *fds, nfds_t cnt)
{
	struct signals_mark mark = signals_mark();
	unsigned found = 0;

	CHECK(mux_poll(fds, cnt, NULL, &mark) > 0);
	for (nfds_t i = 0; i < cnt; i++)
		if (fds[i].revents)
			found = found * 10 + (unsigned)i + 1;
	return found;
}

static unsigned select_things(void)
{
	struct signals_mark mark = signals_mark();
	unsigned found = 0;
	fd_set in;
	int max = 0;

	FD_ZERO(&in);
	for (int i = 0; i < THINGS_MAX; i++) {
		FD_SET(things[i]->fd, &in);
		max = MAX(max, things[i]->fd);
	}
	CHECK(mux_select(max + 1, &in, NULL, NULL, NULL, &mark) > 0);
	for (int i = 0; i < THINGS_MAX; i++)
		if (FD_ISSET(things[i]->fd, &in))
			found = found * 10 + (unsigned)i + 1;
	return found;
}

static unsigned wait_in(int set)
{
	struct signals_mark mark = signals_mark();
	struct epoll_event event;

	CHECK_EQ(mux_epoll_wait(set, &event, 1, NULL, &mark), 1);
	return (unsigned)event.data.u64 + 1;
}

static void *sleep_by(void *arg)
{
	struct sleeper *me = arg;
	struct pollfd fds[THINGS_MAX], set = { .fd = things_epfd, .events = POLLIN };

	for (int i = 0; i < THINGS_MAX; i++)
		fds[i] = (struct pollfd){ .fd = things[i]->fd, .events = POLLIN };
	os_enter();
	atomic_store(&me->tid, gettid());
	switch (me->how) {
	case BY_EPOLL:
		me->found = wait_in(things_epfd);
		break;
	case BY_POLL:
		me->found = poll_things(fds, THINGS_MAX);
		break;
	case BY_SELECT:
		me->found = select_things();
		break;
	case BY_POLL_OF_SET:
		me->found = poll_things(&set, 1);
		break;
	default:
		me->found = wait_in(me->outer);
	}
	os_leave();
	return NULL;
}

static void begin_sleeper(struct sleeper *sleeper)
{
	alarm(20);
	CHECK_EQ(pthread_create(&sleeper->thread, NULL, sleep_by, sleeper), 0);
	while (!atomic_load(&sleeper->tid))
		sched_yield();
	CHECK(sleeper_await(atomic_load(&sleeper->tid)));
}

static unsigned end_sleeper(struct sleeper *sleeper)
{
	pthread_join(sleeper->thread, NULL);
	alarm(0);
	return sleeper->found;
}

/* Whichever stack brings it, whoever waits by whatever call. */
TEST(a_sleeper_hears_of_every_stack)
{
	for (unsigned how = 0; how < WAYS; how++)
		for (int which = 0; which < 2; which++) {
			struct sleeper sleeper = { .how = how, .outer = -1 };

			things_begin();
			things[1]->stack = things_other_stack;
			things_add(0);
			things_add(1);
			if (how == BY_OUTER)
				sleeper.outer = things_make_outer(EPOLLIN);
			begin_sleeper(&sleeper);
			thing_make_ready(which);
			CHECK_EQ(end_sleeper(&sleeper),
				 how == BY_POLL_OF_SET ? 1u :
				 how == BY_OUTER       ? 7u :
							 (unsigned)which + 1);
			CHECK(list_is_empty(&things_stack->waiters));
			CHECK(list_is_empty(&things_other_stack->waiters));
			CHECK(!things_stack->watcher && !things_other_stack->watcher);
			if (how == BY_OUTER)
				things_close_outer(sleeper.outer);
			things_end();
		}
}

/* The set gets its first socket of that stack while somebody sleeps. */
TEST(a_sleeper_hears_of_a_stack_that_comes_later)
{
	static const unsigned hows[] = { BY_EPOLL, BY_POLL_OF_SET, BY_OUTER };

	for (size_t i = 0; i < ARRAY_LEN(hows); i++) {
		struct sleeper sleeper = { .how = hows[i], .outer = -1 };

		things_begin();
		things[1]->stack = things_other_stack;
		things_add(0);
		if (sleeper.how == BY_OUTER)
			sleeper.outer = things_make_outer(EPOLLIN);
		begin_sleeper(&sleeper);
		things_add(1);
		CHECK(sleeper_await(atomic_load(&sleeper.tid)));
		thing_make_ready(1);
		CHECK(end_sleeper(&sleeper) > 0);
		if (sleeper.how == BY_OUTER)
			things_close_outer(sleeper.outer);
		things_end();
	}
}

/* -- sets that become ours, and others that go ------------------------------------- */

/* What the kernel reports. */
static struct epoll_event events[THINGS_MAX];

/* The set becomes ours while somebody sleeps for it in the kernel, who counts himself. */
static int wake_one(void)
{
	atomic_fetch_add(mux_sleepers_of(things_epfd), 1);
	things_add(0);
	return epoll_wait(things_epfd, events, THINGS_MAX, 0);
}

TEST(who_is_woken_for_a_set_does_not_see_by_what)
{
	things_begin();
	CHECK_EQ(wake_one(), 1);
	CHECK(mux_has_wake(events, 1));
	CHECK_EQ(mux_epoll_woken(things_epfd, events, 1), MUX_WOKEN);
	atomic_fetch_sub(mux_sleepers_of(things_epfd), 1);
	things_end();
}

/* Another thread has been faster. */
TEST(who_is_woken_for_a_set_that_is_closed_sees_nothing)
{
	things_begin();
	CHECK_EQ(wake_one(), 1);
	atomic_fetch_sub(mux_sleepers_of(things_epfd), 1);
	fd_table_forget(things_epfd);
	close(things_epfd);
	CHECK_EQ(mux_epoll_woken(things_epfd, (struct epoll_event[]){ events[0] }, 1), MUX_WOKEN);
	/* a new set, which has the number */
	CHECK_EQ(epoll_create1(0), things_epfd);
	things_add(1);
	CHECK_EQ(mux_epoll_woken(things_epfd, events, 1), MUX_WOKEN);
	things_end();
}

/* The set was not ours for a moment, in which somebody else has gone to sleep. He relies on
 * what is in the kernel's set, which is not for the one who was woken by it to take out. */
TEST(what_wakes_stays_for_who_has_come_since)
{
	struct epoll_set *set;

	things_begin();
	CHECK_EQ(wake_one(), 1);
	set = epoll_set_get(things_epfd);
	/* the first one takes his time */
	atomic_store(&set->wake_until_ns, 0);
	things_change(EPOLL_CTL_DEL, 0, 0);
	things_add(0);
	CHECK_EQ(mux_epoll_woken(things_epfd, events, 1), MUX_WOKEN);
	CHECK_EQ(epoll_wait(things_epfd, events, THINGS_MAX, 0), 1);
	CHECK_EQ(mux_epoll_woken(things_epfd, events, 1), MUX_WOKEN);
	atomic_fetch_sub(mux_sleepers_of(things_epfd), 1);
	/* the last one */
	CHECK_EQ(mux_epoll_woken(things_epfd, (struct epoll_event[]){ events[0] }, 1), MUX_WOKEN);
	CHECK_EQ(epoll_wait(things_epfd, events, THINGS_MAX, 0), 0);
	fd_object_put(&set->obj);
	things_end();
}

static _Atomic bool is_closed;

static void *close_set(void *arg UNUSED)
{
	CHECK(fd_table_remove(things_epfd));
	is_closed = true;
	return NULL;
}

/* As often as a closer that does not wait needs to be seen. */
enum { LOOKS = 2000 };

/* The kernel would give the number to another set, whose events a look would take. */
TEST(the_last_close_waits_for_who_uses_the_number)
{
	struct epoll_set *set;
	pthread_t closer;

	things_begin();
	is_closed = false;
	things_add(0);
	set = epoll_set_get(things_epfd);
	CHECK_EQ(epoll_set_begin_use(set, things_epfd), things_epfd);
	CHECK(!pthread_create(&closer, NULL, close_set, NULL));
	while (fd_table_has(things_epfd))
		sched_yield();
	for (int i = 0; i < LOOKS && !is_closed; i++)
		sched_yield();
	CHECK(!is_closed);
	/* it is nobody's to use any more */
	CHECK_EQ(epoll_set_begin_use(set, things_epfd), -1);
	epoll_set_end_use(set, things_epfd);
	pthread_join(closer, NULL);
	CHECK(is_closed);
	fd_object_put(&set->obj);
	things_end();
}

/* -- numbers of members that close meanwhile ----------------------------------------- */

/* Another thread gives the first thing's number to a file that is ready, and makes that a member
 * of the set, if it has a word. */
static struct {
	pthread_t thread;
	int word; /* -1: none */
	_Atomic bool has_given;
} giver;

static void *give_number(void *arg UNUSED)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)giver.word };
	int fd = eventfd(1, EFD_NONBLOCK), number = things[0]->fd;

	CHECK(fd_table_remove(number));
	CHECK_EQ(dup2(fd, number), number);
	close(fd);
	if (giver.word >= 0)
		CHECK_EQ(epoll_ctl(things_epfd, EPOLL_CTL_ADD, number, &event), 0);
	giver.has_given = true;
	return NULL;
}

/* The number is looked at, and the kernel is about to hear of it. */
static int change_late(int epfd, int op, int fd, struct epoll_event *event)
{
	CHECK(!pthread_create(&giver.thread, NULL, give_number, NULL));
	while (fd_table_has(fd))
		sched_yield();
	for (int i = 0; i < LOOKS && !giver.has_given; i++)
		sched_yield();
	real_resolve();
	return real.epoll_ctl(epfd, op, fd, event);
}

static void begin_to_give(int word)
{
	giver.word = word;
	giver.has_given = false;
	real.epoll_ctl = change_late;
}

static struct epoll_set *hold_set(void)
{
	struct epoll_set *set = epoll_set_get(things_epfd);

	CHECK(set);
	return set;
}

/* It stays a member, as nobody has taken it out. */
TEST(who_gets_the_number_of_a_disarmed_one_shot_is_told)
{
	struct epoll_set *set;

	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	set = hold_set();
	begin_to_give(5);
	epoll_items_hide_spent(set, things_epfd);
	pthread_join(giver.thread, NULL);
	CHECK_EQ(things_look(4), 6);
	fd_object_put(&set->obj);
	things_end();
}

/* A socket that was alone with us, and is the kernel's now. */
static void begin_with_one_that_is_left(void)
{
	things_begin();
	things[0]->word = FD_WORD_ALL;
	things_add(0);
	CHECK_EQ(things_look(4), 0);
	things[0]->word = FD_WORD_NOTHING;
	thing_make_ready(0);
}

/* Nobody has made it a member. */
TEST(who_gets_the_number_of_one_that_leaves_is_not_told)
{
	begin_with_one_that_is_left();
	begin_to_give(-1);
	CHECK_EQ(things_look(4), 0);
	pthread_join(giver.thread, NULL);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

/* Who polls a set has it, and may not know yet that its number is another set's. */
TEST(a_set_that_gets_a_number_gets_no_members_with_it)
{
	struct epoll_set *set;
	int epfd;

	begin_with_one_that_is_left();
	thing_make_twin_ready(0);
	set = hold_set();
	CHECK(fd_table_remove(things_epfd));
	epfd = epoll_create1(0);
	CHECK_EQ(dup2(epfd, things_epfd), things_epfd);
	close(epfd);
	epoll_items_show_left(set, things_epfd);
	CHECK_EQ(epoll_wait(things_epfd, events, THINGS_MAX, 0), 0);
	fd_object_put(&set->obj);
	things_end();
}
