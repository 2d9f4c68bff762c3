/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of epoll with objects of ours in them, on a stack without rings. Each object's
 * twin is an eventfd, so that the kernel's side can be made ready as well.
 */
#include "config.h"

#include "iomux/mux.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "net/stack.h"
#include "os/thread.h"
#include "tests/support/test.h"

enum { THINGS_MAX = 4 };

struct thing {
	struct fd_object obj;
	struct endpoint end;
	int fd;
	/* another thread closes it while it is added to a set */
	bool closes_while_followed;
	unsigned leave_cnt;
	enum reason reason;
};

static struct thing *things[THINGS_MAX];
static struct fd_pool pool = FD_POOL_INIT(struct thing);
static struct stack *stack;
static int epfd;

static struct thing *thing_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct thing, obj);
}

static struct endpoint *follow(struct fd_object *obj, struct stack **stack_out)
{
	struct thing *thing = thing_of(obj);

	*stack_out = stack;
	if (thing->closes_while_followed)
		CHECK(fd_table_remove(thing->fd));
	return &thing->end;
}

static void leave(struct fd_object *obj, int fd, enum reason reason,
		  enum stats_decider decider UNUSED)
{
	CHECK_EQ(fd, thing_of(obj)->fd);
	thing_of(obj)->leave_cnt++;
	thing_of(obj)->reason = reason;
}

/* As sockets do. */
static void last_close(struct fd_object *obj)
{
	struct watch *watch, *following;

	stack_lock(stack);
	LIST_FOR_EACH_SAFE(watch, following, &thing_of(obj)->end.watches, link)
		watch->closed(watch);
	stack_unlock(stack);
}

static void release(struct fd_object *obj)
{
	CHECK(list_is_empty(&thing_of(obj)->end.watches));
	fd_pool_put(&pool, thing_of(obj));
}

static struct fd_ops ops = {
	.name = "thing",
	.follow = follow,
	.leave = leave,
	.last_close = last_close,
	.release = release,
};

static void make_thing(int i)
{
	struct thing *thing = fd_pool_get(&pool);

	CHECK(thing);
	thing->closes_while_followed = false;
	thing->leave_cnt = 0;
	thing->fd = eventfd(0, EFD_NONBLOCK);
	endpoint_init(&thing->end, NULL);
	fd_object_init(&thing->obj, &ops, 0);
	CHECK_EQ(fd_table_install(thing->fd, &thing->obj), 0);
	things[i] = thing;
}

static void begin(void)
{
	static const struct stack_params stack_params = {
		.lock_kind = STACK_LOCK_SPIN,
		.poll_batch = STACK_BATCH,
	};
	static const struct mux_params mux = { .os_ratio = 1 };

	real_resolve();
	fd_ops_fill(&ops);
	mux_load();
	mux_start(&mux);
	CHECK_EQ(stack_create(&stack_params, &stack), 0);
	epfd = epoll_create1(0);
	CHECK(epfd >= 0);
	for (int i = 0; i < THINGS_MAX; i++)
		make_thing(i);
	os_enter();
}

static void close_thing(int i)
{
	int fd = things[i]->fd;

	fd_table_forget(fd);
	close(fd);
}

/* In any order, things may be closed already. */
static void end(void)
{
	for (int i = 0; i < THINGS_MAX; i++)
		close_thing(i);
	fd_table_forget(epfd);
	close(epfd);
	os_leave();
	stack_destroy(stack);
}

static void change(int op, int i, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)i };

	CHECK_EQ(mux_epoll_ctl(epfd, op, things[i]->fd, &event), 0);
}

static void add(int i)
{
	change(EPOLL_CTL_ADD, i, EPOLLIN);
}

static void make_ready(int i)
{
	stack_lock(stack);
	endpoint_set_ready(&things[i]->end, READY_IN);
	stack_unlock(stack);
}

static void make_unready(int i)
{
	stack_lock(stack);
	endpoint_clear_ready(&things[i]->end, READY_IN);
	stack_unlock(stack);
}

/* The kernel's side of a thing. */
static void make_twin_ready(int i)
{
	const uint64_t one = 1;

	CHECK_EQ(write(things[i]->fd, &one, sizeof(one)), sizeof(one));
}

static void make_twin_unready(int i)
{
	uint64_t cnt;

	CHECK_EQ(read(things[i]->fd, &cnt, sizeof(cnt)), sizeof(cnt));
}

/* Of the last look. */
static struct epoll_event events[THINGS_MAX + 1];

/* What a look at a set with room for `cnt` finds, as decimal digits: 1 is the first
 * thing. */
static unsigned look_at(int set, int cnt)
{
	static const struct timespec none;
	struct signals_mark mark = signals_mark();
	unsigned found = 0;
	long n = mux_epoll_wait(set, events, cnt, &none, &mark);

	CHECK(n >= 0 && n <= cnt);
	for (long i = 0; i < n; i++)
		found = found * 10 + (unsigned)events[i].data.u64 + 1;
	return found;
}

static unsigned look(int cnt)
{
	return look_at(epfd, cnt);
}

TEST(set_is_ours_as_long_as_something_in_it_is)
{
	begin();
	CHECK(!mux_epoll_is_ours(epfd));
	add(0);
	add(1);
	CHECK(mux_epoll_is_ours(epfd));
	change(EPOLL_CTL_DEL, 0, 0);
	CHECK(mux_epoll_is_ours(epfd));
	close_thing(1);
	CHECK(!mux_epoll_is_ours(epfd));
	end();
}

TEST(reports_what_is_ready_while_it_is)
{
	begin();
	add(0);
	add(1);
	CHECK_EQ(look(4), 0);
	make_ready(1);
	CHECK_EQ(look(4), 2);
	CHECK_EQ(look(4), 2);
	make_unready(1);
	CHECK_EQ(look(4), 0);
	make_ready(1);
	CHECK_EQ(look(4), 2);
	end();
}

TEST(what_was_ready_before_is_found)
{
	begin();
	make_ready(2);
	add(2);
	CHECK_EQ(look(4), 3);
	end();
}

/* No item waits for more than a round. */
TEST(ready_ones_take_turns)
{
	begin();
	for (int i = 0; i < 3; i++) {
		add(i);
		make_ready(i);
	}
	CHECK_EQ(look(2), 12);
	CHECK_EQ(look(2), 31);
	CHECK_EQ(look(2), 23);
	end();
}

TEST(kernels_events_have_a_place_beside_ours)
{
	bool has_ours = false, has_kernels = false;

	begin();
	add(0);
	add(1);
	make_ready(0);
	make_twin_ready(1);
	for (int i = 0; i < 2; i++) {
		unsigned found = look(1);

		has_ours |= found == 1;
		has_kernels |= found == 2;
	}
	CHECK(has_ours && has_kernels);
	CHECK_EQ(look(4), 12);
	end();
}

/* Of one thing it is one event, whoever says so. */
TEST(no_event_comes_twice_in_a_look)
{
	begin();
	for (int i = 0; i < 3; i++) {
		add(i);
		make_ready(i);
	}
	CHECK_EQ(look(4), 123);
	CHECK_EQ(look(5), 123);
	end();
}

TEST(both_sides_of_a_thing_are_one_event)
{
	begin();
	add(0);
	make_ready(0);
	make_twin_ready(0);
	CHECK_EQ(look(4), 1);
	end();
}

TEST(changes_count_from_the_next_look)
{
	begin();
	add(0);
	make_ready(0);
	change(EPOLL_CTL_MOD, 0, 0);
	CHECK_EQ(look(4), 0);
	change(EPOLL_CTL_MOD, 0, EPOLLIN);
	CHECK_EQ(look(4), 1);
	change(EPOLL_CTL_DEL, 0, 0);
	CHECK(list_is_empty(&things[0]->end.watches));
	end();
}

/* -- edges ------------------------------------------------------------------------- */

TEST(an_edge_is_told_once_and_each_arrival_is_one)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(look(4), 0);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	make_ready(0);
	make_unready(0);
	CHECK_EQ(look(4), 0);
	end();
}

TEST(a_change_tells_what_is_there_once_more)
{
	begin();
	make_ready(0);
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	end();
}

TEST(the_kernels_edges_are_edges_too)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	make_twin_ready(0);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	make_ready(0);
	make_twin_ready(0);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	end();
}

/* Linux says it once for both. The kernel, which is asked later, says it again. */
TEST(that_one_can_write_is_told_with_what_has_come)
{
	begin();
	make_ready(0);
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLOUT | EPOLLET);
	for (int i = 0; i < 2 && !look(1); i++)
		;
	CHECK_EQ(events[0].events, EPOLLIN | EPOLLOUT);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(look(1), 0);
	change(EPOLL_CTL_MOD, 0, EPOLLOUT | EPOLLET);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(events[0].events, EPOLLOUT);
	CHECK_EQ(look(4), 0);
	end();
}

TEST(both_names_of_readable_are_known)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLRDNORM);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(events[0].events, EPOLLRDNORM);
	end();
}

/* -- one shot ---------------------------------------------------------------------- */

TEST(one_shot_is_told_once_until_it_is_armed)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	make_ready(0);
	CHECK_EQ(look(4), 0);
	change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLONESHOT);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	end();
}

TEST(one_shot_of_the_kernel_disarms_ours)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	make_twin_ready(0);
	CHECK_EQ(look(4), 1);
	make_ready(0);
	CHECK_EQ(look(4), 0);
	end();
}

TEST(one_shot_of_ours_disarms_the_kernels)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	make_twin_ready(0);
	CHECK_EQ(look(4), 0);
	make_twin_unready(0);
	make_unready(0);
	change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLONESHOT);
	CHECK_EQ(look(4), 0);
	make_twin_ready(0);
	CHECK_EQ(look(4), 1);
	end();
}

/* To the program the two look the same; to us it is the other one that is disarmed. */
TEST(one_shots_with_one_word_are_told_apart)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	begin();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(mux_epoll_ctl(epfd, EPOLL_CTL_ADD, things[i]->fd,
				       &event), 0);
	make_twin_ready(1);
	CHECK_EQ(look(4), 1);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	make_ready(0);
	make_ready(1);
	CHECK_EQ(look(4), 0);
	end();
}

TEST(a_change_that_fails_changes_nothing)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };

	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(mux_epoll_ctl(epfd, EPOLL_CTL_MOD, things[0]->fd, &event),
		 -EINVAL);
	make_ready(0);
	CHECK_EQ(look(4), 0);
	CHECK_EQ(mux_epoll_ctl(epfd, EPOLL_CTL_ADD, things[0]->fd, &event),
		 -EEXIST);
	event.events = EPOLLIN;
	CHECK_EQ(mux_epoll_ctl(epfd, EPOLL_CTL_MOD, things[1]->fd, &event),
		 -ENOENT);
	CHECK_EQ(mux_epoll_ctl(epfd, EPOLL_CTL_DEL, things[1]->fd, NULL),
		 -ENOENT);
	end();
}

/* -- sets in sets ------------------------------------------------------------------- */

/* Makes a set with epfd in it. */
static int make_outer(uint32_t events_)
{
	struct epoll_event event = { .events = events_, .data.u64 = 6 };
	int outer = epoll_create1(0);

	CHECK(outer >= 0);
	mux_note_set(epfd);
	CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, epfd, &event), 0);
	return outer;
}

static void close_outer(int outer)
{
	fd_table_forget(outer);
	close(outer);
}

TEST(a_set_in_a_set_is_ready_while_something_in_it_is)
{
	int outer;

	begin();
	add(0);
	outer = make_outer(EPOLLIN);
	CHECK(mux_epoll_is_ours(outer));
	CHECK_EQ(look_at(outer, 4), 0);
	make_ready(0);
	CHECK_EQ(look_at(outer, 4), 7);
	CHECK_EQ(look_at(outer, 4), 7);
	CHECK_EQ(look(4), 1);
	make_unready(0);
	CHECK_EQ(look_at(outer, 4), 0);
	close_outer(outer);
	end();
}

TEST(a_set_that_gets_something_makes_the_outer_one_ours)
{
	int outer, outermost;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 2 };

	begin();
	outer = make_outer(EPOLLIN);
	outermost = epoll_create1(0);
	mux_note_set(outer);
	CHECK_EQ(mux_epoll_ctl(outermost, EPOLL_CTL_ADD, outer, &event), 0);
	CHECK(!mux_epoll_is_ours(outermost));
	make_ready(0);
	add(0);
	CHECK(mux_epoll_is_ours(outer));
	CHECK(mux_epoll_is_ours(outermost));
	CHECK_EQ(look_at(outermost, 4), 3);
	change(EPOLL_CTL_DEL, 0, 0);
	CHECK(!mux_epoll_is_ours(outer));
	CHECK(!mux_epoll_is_ours(outermost));
	close_outer(outermost);
	close_outer(outer);
	end();
}

TEST(an_outer_edge_comes_with_each_arrival)
{
	int outer;

	begin();
	add(0);
	add(1);
	outer = make_outer(EPOLLIN | EPOLLET);
	make_ready(0);
	CHECK_EQ(look_at(outer, 4), 7);
	CHECK_EQ(look_at(outer, 4), 0);
	make_ready(1);
	CHECK_EQ(look_at(outer, 4), 7);
	CHECK_EQ(look_at(outer, 4), 0);
	close_outer(outer);
	end();
}

TEST(an_inner_set_that_is_closed_is_gone)
{
	int outer, inner;

	begin();
	add(0);
	make_ready(0);
	outer = make_outer(EPOLLIN);
	inner = epfd;
	fd_table_forget(inner);
	close(inner);
	CHECK(!mux_epoll_is_ours(outer));
	CHECK(list_is_empty(&things[0]->end.watches));
	close_outer(outer);
	epfd = epoll_create1(0);
	end();
}

/* A number that was a set's is another file's by now. */
TEST(a_number_that_was_a_sets_is_not_taken_for_one)
{
	int outer, fd;
	struct epoll_event event = { .events = EPOLLIN };

	begin();
	fd = eventfd(0, 0);
	mux_note_set(fd);
	outer = epoll_create1(0);
	CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK(!fd_table_has(fd));
	close(fd);
	close(outer);
	end();
}

/* -- lives --------------------------------------------------------------------------- */

/* Its last close finds nothing to take out of the set, and comes only once. */
TEST(closed_while_it_is_added)
{
	struct thing *thing;

	begin();
	thing = things[0];
	thing->closes_while_followed = true;
	make_ready(0);
	add(0);
	CHECK(list_is_empty(&thing->end.watches));
	CHECK(!mux_epoll_is_ours(epfd));
	end();
}

TEST(closed_while_it_is_ready)
{
	begin();
	add(0);
	add(1);
	make_ready(0);
	make_ready(1);
	close_thing(0);
	CHECK_EQ(look(4), 2);
	end();
}

/* The set goes first: things are followed by nobody then. */
TEST(closed_set_lets_go)
{
	begin();
	add(0);
	make_ready(0);
	fd_table_forget(epfd);
	CHECK(list_is_empty(&things[0]->end.watches));
	make_ready(0);
	end();
}
