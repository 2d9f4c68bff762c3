/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of epoll and things to put into it, whose kernel's side is an eventfd. */
#include "config.h"

#include "tests/unit/iomux/things.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "iomux/mux.h"
#include "os/thread.h"
#include "tests/support/test.h"

struct thing *things[THINGS_MAX];
static struct fd_pool pool = FD_POOL_INIT(struct thing);
struct stack *things_stack, *things_other_stack;
int things_epfd;
struct epoll_event things_events[THINGS_MAX + 1];

static struct thing *thing_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct thing, obj);
}

static struct endpoint *follow(struct fd_object *obj, struct stack **stack_out)
{
	struct thing *thing = thing_of(obj);

	*stack_out = thing->stack;
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
static void last_close(struct fd_object *obj, int fd UNUSED)
{
	struct watch *watch, *following;

	stack_lock(thing_of(obj)->stack);
	LIST_FOR_EACH_SAFE(watch, following, &thing_of(obj)->end.watches, link)
		watch->closed(watch);
	stack_unlock(thing_of(obj)->stack);
}

static void release(struct fd_object *obj)
{
	CHECK(list_is_empty(&thing_of(obj)->end.watches));
	fd_pool_put(&pool, thing_of(obj));
}

static enum fd_await await(struct fd_object *obj, struct endpoint **end_out,
			   struct stack **stack_out)
{
	*end_out = &thing_of(obj)->end;
	*stack_out = thing_of(obj)->stack;
	return FD_AWAIT_STACK;
}

static enum fd_word word(const struct fd_object *obj)
{
	return CONTAINER_OF(obj, const struct thing, obj)->word;
}

static void twin_event(struct fd_object *obj, uint32_t events UNUSED)
{
	thing_of(obj)->told_cnt++;
}

static struct fd_ops ops = {
	.name = "thing",
	.twin_event = twin_event,
	.word = word,
	.await = await,
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
	thing->told_cnt = 0;
	thing->stack = things_stack;
	thing->word = FD_WORD_PART;
	thing->fd = eventfd(0, EFD_NONBLOCK);
	endpoint_init(&thing->end, NULL);
	fd_object_init(&thing->obj, &ops, 0);
	CHECK_EQ(fd_table_install(thing->fd, &thing->obj), 0);
	things[i] = thing;
}

void things_begin(void)
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
	CHECK_EQ(stack_create(&stack_params, &things_stack), 0);
	CHECK_EQ(stack_create(&stack_params, &things_other_stack), 0);
	things_epfd = epoll_create1(0);
	CHECK(things_epfd >= 0);
	for (int i = 0; i < THINGS_MAX; i++)
		make_thing(i);
	os_enter();
}

void thing_close(int i)
{
	int fd = things[i]->fd;

	fd_table_forget(fd);
	close(fd);
}

void things_end(void)
{
	for (int i = 0; i < THINGS_MAX; i++)
		thing_close(i);
	fd_table_forget(things_epfd);
	close(things_epfd);
	os_leave();
	stack_destroy(things_stack);
	stack_destroy(things_other_stack);
}

void things_change(int op, int i, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)i };

	CHECK_EQ(mux_epoll_ctl(things_epfd, op, things[i]->fd, &event), 0);
}

void things_add(int i)
{
	things_change(EPOLL_CTL_ADD, i, EPOLLIN);
}

void thing_make_ready(int i)
{
	stack_lock(things[i]->stack);
	endpoint_set_ready(&things[i]->end, READY_IN);
	stack_unlock(things[i]->stack);
}

void thing_make_unready(int i)
{
	stack_lock(things[i]->stack);
	endpoint_clear_ready(&things[i]->end, READY_IN);
	stack_unlock(things[i]->stack);
}

void thing_make_twin_ready(int i)
{
	const uint64_t one = 1;

	CHECK_EQ(write(things[i]->fd, &one, sizeof(one)), sizeof(one));
}

void thing_make_twin_unready(int i)
{
	uint64_t cnt;

	CHECK_EQ(read(things[i]->fd, &cnt, sizeof(cnt)), sizeof(cnt));
}

unsigned things_look_at(int set, int cnt)
{
	static const struct timespec none;
	struct signals_mark mark = signals_mark();
	unsigned found = 0;
	long n = mux_epoll_wait(set, things_events, cnt, &none, &mark);

	CHECK(n >= 0 && n <= cnt);
	for (long i = 0; i < n; i++)
		found = found * 10 + (unsigned)things_events[i].data.u64 + 1;
	return found;
}

unsigned things_look(int cnt)
{
	return things_look_at(things_epfd, cnt);
}

int things_make_outer(uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = 6 };
	int outer = epoll_create1(0);

	CHECK(outer >= 0);
	mux_note_set(things_epfd);
	CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, things_epfd, &event), 0);
	return outer;
}

void things_close_outer(int outer)
{
	fd_table_forget(outer);
	close(outer);
}
