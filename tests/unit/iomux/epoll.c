/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of epoll with objects of ours in them, on a stack without rings. Each object's
 * twin is an eventfd, so that the kernel's side can be made ready as well.
 */
#include "config.h"

#include "iomux/mux.h"

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

	fd_ops_fill(&ops);
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

	CHECK_EQ(epoll_ctl(epfd, op, things[i]->fd, &event), 0);
	mux_epoll_changed(epfd, op, things[i]->fd, &event);
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

/* What a look with room for `cnt` finds, as decimal digits: 1 is the first thing. */
static unsigned look(int cnt)
{
	static const struct timespec none;
	struct signals_mark mark = signals_mark();
	struct epoll_event events[THINGS_MAX + 1];
	unsigned found = 0;
	long n = mux_epoll_wait(epfd, events, cnt, &none, &mark);

	CHECK(n >= 0 && n <= cnt);
	for (long i = 0; i < n; i++) {
		CHECK_EQ(events[i].events, EPOLLIN);
		found = found * 10 + (unsigned)events[i].data.u64 + 1;
	}
	return found;
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
	const uint64_t one = 1;
	bool has_ours = false, has_kernels = false;

	begin();
	add(0);
	add(1);
	make_ready(0);
	CHECK_EQ(write(things[1]->fd, &one, sizeof(one)), sizeof(one));
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
TEST(both_sides_of_a_thing_are_one_event)
{
	const uint64_t one = 1;

	begin();
	add(0);
	make_ready(0);
	CHECK_EQ(write(things[0]->fd, &one, sizeof(one)), sizeof(one));
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

TEST(what_level_triggered_sets_cannot_say_is_the_kernels)
{
	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(things[0]->leave_cnt, 1);
	CHECK_EQ(things[0]->reason, REASON_EPOLL_FLAGS);
	add(1);
	change(EPOLL_CTL_MOD, 1, EPOLLIN | EPOLLONESHOT);
	CHECK_EQ(things[1]->leave_cnt, 1);
	end();
}

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
