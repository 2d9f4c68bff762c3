/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of epoll with objects of ours in them, on a stack without rings. Each object's
 * twin is an eventfd, so that the kernel's side can be made ready as well.
 */
#include "config.h"

#include "iomux/mux.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "iomux/epoll_set.h"
#include "net/stack.h"
#include "os/thread.h"
#include "tests/support/sleeper.h"
#include "tests/support/test.h"

enum { THINGS_MAX = 8 };

struct thing {
	struct fd_object obj;
	struct endpoint end;
	struct stack *stack;
	int fd;
	/* another thread closes it while it is added to a set */
	bool closes_while_followed;
	unsigned leave_cnt;
	enum reason reason;
};

static struct thing *things[THINGS_MAX];
static struct fd_pool pool = FD_POOL_INIT(struct thing);
static struct stack *stack, *other_stack;
static int epfd;

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

static struct fd_ops ops = {
	.name = "thing",
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
	thing->stack = stack;
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
	CHECK_EQ(stack_create(&stack_params, &other_stack), 0);
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
	stack_destroy(other_stack);
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
	stack_lock(things[i]->stack);
	endpoint_set_ready(&things[i]->end, READY_IN);
	stack_unlock(things[i]->stack);
}

static void make_unready(int i)
{
	stack_lock(things[i]->stack);
	endpoint_clear_ready(&things[i]->end, READY_IN);
	stack_unlock(things[i]->stack);
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

static void fire(int i, uint32_t bits)
{
	stack_lock(things[i]->stack);
	endpoint_fire(&things[i]->end, bits);
	stack_unlock(things[i]->stack);
}

/* Whoever asks for what the twin says hears it from the twin, and only from him. */
TEST(an_edge_that_the_twin_tells_is_told_once)
{
	begin();
	make_ready(0);
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(look(4), 1);
	fire(0, READY_BY_TWIN | READY_IN | READY_RDHUP);
	CHECK_EQ(look(4), 0);
	fire(0, READY_BY_TWIN | READY_OUT);
	CHECK_EQ(look(4), 1);
	fire(0, READY_ANY);
	CHECK_EQ(look(4), 1);
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

/* Its number is another file's by now, which is not ready; a duplicate keeps it alive. */
TEST(one_shot_without_its_number_is_told_once)
{
	int copy, fd;

	begin();
	change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	copy = dup(things[0]->fd);
	CHECK_EQ(fd_table_install(copy, &things[0]->obj), 0);
	fd = eventfd(0, EFD_NONBLOCK);
	make_ready(0);
	make_twin_ready(0);
	fd_table_remove(things[0]->fd);
	CHECK_EQ(dup2(fd, things[0]->fd), things[0]->fd);
	CHECK_EQ(look(4), 1);
	CHECK_EQ(look(4), 0);
	fd_table_forget(copy);
	close(copy);
	close(fd);
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

/* What the kernel answers. */
static int refused_with;

static int refuse(int epfd_ UNUSED, int op UNUSED, int fd UNUSED,
		  struct epoll_event *event UNUSED)
{
	errno = refused_with;
	return -1;
}

/* The user's watches are used up, or there is no memory. */
TEST(what_the_kernel_has_no_room_for_is_no_member)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 0 };

	begin();
	for (int known = 0; known < 2; known++) {
		refused_with = known ? ENOSPC : ENOMEM;
		real.epoll_ctl = refuse;
		CHECK_EQ(mux_epoll_ctl(epfd, EPOLL_CTL_ADD, things[0]->fd,
				       &event),
			 -refused_with);
		real_resolve();
		CHECK(list_is_empty(&things[0]->end.watches));
		CHECK_EQ(things[0]->leave_cnt, 0);
		make_ready(0);
		CHECK_EQ(known ? look(4) : 0, 0);
		make_unready(0);
		/* from now on there is a set of ours */
		add(1);
		change(EPOLL_CTL_DEL, 1, 0);
	}
	add(0);
	make_ready(0);
	CHECK_EQ(look(4), 1);
	end();
}

/* -- sets with many members --------------------------------------------------------- */

enum { MEMBERS = 100000, FEW = 10 };

/* The members are things by many numbers, of which those in `numbers` are open. Others
 * may be another thing's by now, and what was added by them is a member all the same. */
static int numbers[MEMBERS + FEW];
static int number_cnt, member_cnt;

/* As many as this user may open. */
static int most_numbers(void)
{
	struct rlimit limit;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return (int)MIN(limit.rlim_cur - 100, (rlim_t)MEMBERS);
}

static void change_number(int op, int i, bool has_word)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = has_word ?
							 (uint64_t)numbers[i] :
							 0 };

	CHECK_EQ(mux_epoll_ctl(epfd, op, numbers[i], &event), 0);
}

static void open_number(struct thing *thing)
{
	int fd = dup(thing->fd);

	CHECK(fd >= 0);
	CHECK_EQ(fd_table_install(fd, &thing->obj), 0);
	numbers[number_cnt++] = fd;
}

static void add_numbers(struct thing *thing, int cnt, bool has_word)
{
	while (number_cnt < cnt && member_cnt < MEMBERS) {
		open_number(thing);
		change_number(EPOLL_CTL_ADD, number_cnt - 1, has_word);
		member_cnt++;
	}
}

static void close_numbers(int rest)
{
	while (number_cnt > rest) {
		fd_table_forget(numbers[--number_cnt]);
		close(numbers[number_cnt]);
	}
}

/* As many as there may be, each thing but the last one by each number. */
static void add_many(bool has_word)
{
	int most = most_numbers();

	for (int i = 0; i < THINGS_MAX - 1 && member_cnt < MEMBERS; i++) {
		close_numbers(FEW);
		add_numbers(things[i], most, has_word);
	}
}

/* The instructions of a call, done by a child. The kernel's set is the parent's, too. */
static long steps_of(int op, int i, bool has_word)
{
	long steps = 0;
	int status;
	pid_t pid;

	/* a sanitizer's child writes what is there at its end */
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
		raise(SIGSTOP);
		change_number(op, i, has_word);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status)) {
		CHECK_EQ(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		steps++;
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return steps;
}

/* What one of many costs may differ by what lies in its bucket. */
static void check_steps(const char *what, int op, int i, bool has_word, long *few)
{
	long steps = steps_of(op, i, has_word);

	test_note("%s of %d, %s data words: %ld", what, member_cnt,
		  has_word ? "different" : "equal", steps);
	if (member_cnt == FEW)
		*few = steps;
	else
		CHECK(steps <= *few + *few / 4);
}

/* Of a new member, and of an early one: it is last in its bucket. */
static void count_changes(bool has_word, int early, long few[3])
{
	open_number(things[THINGS_MAX - 1]);
	check_steps("ADD", EPOLL_CTL_ADD, number_cnt - 1, has_word, &few[0]);
	/* the kernel has it */
	CHECK_EQ(real.epoll_ctl(epfd, EPOLL_CTL_DEL, numbers[number_cnt - 1],
				NULL),
		 0);
	check_steps("MOD", EPOLL_CTL_MOD, early, has_word, &few[1]);
	check_steps("DEL", EPOLL_CTL_DEL, early, has_word, &few[2]);
	close_numbers(number_cnt - 1);
}

static void count_changes_with(bool has_word)
{
	long few[3];

	begin();
	member_cnt = 0;
	add_numbers(things[THINGS_MAX - 1], FEW, has_word);
	count_changes(has_word, 0, few);
	add_many(has_word);
	count_changes(has_word, 1, few);
	close_numbers(0);
	end();
}

TEST(a_change_costs_the_same_in_a_set_of_many)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && strstr(preload, "vgpreload"))
		test_skip("not under a sanitizer");
	count_changes_with(true);
	count_changes_with(false);
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

/* What the inner set has not told yet is no news when it is asked for anew. */
TEST(an_outer_edge_does_not_come_with_a_change_of_what_is_told)
{
	int outer;

	begin();
	add(0);
	outer = make_outer(EPOLLIN | EPOLLET);
	make_ready(0);
	CHECK_EQ(look_at(outer, 4), 7);
	change(EPOLL_CTL_MOD, 0, EPOLLRDNORM);
	CHECK_EQ(look_at(outer, 4), 0);
	make_unready(0);
	CHECK_EQ(look(4), 0);
	make_ready(0);
	CHECK_EQ(look_at(outer, 4), 7);
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

/* -- several stacks ------------------------------------------------------------------ */

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
	struct pollfd fds[THINGS_MAX], set = { .fd = epfd, .events = POLLIN };

	for (int i = 0; i < THINGS_MAX; i++)
		fds[i] = (struct pollfd){ .fd = things[i]->fd, .events = POLLIN };
	os_enter();
	atomic_store(&me->tid, gettid());
	switch (me->how) {
	case BY_EPOLL:
		me->found = wait_in(epfd);
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

TEST(two_stacks_make_one_set_ready)
{
	begin();
	things[1]->stack = other_stack;
	add(0);
	add(1);
	CHECK_EQ(look(4), 0);
	make_ready(1);
	CHECK_EQ(look(4), 2);
	make_ready(0);
	CHECK_EQ(look(4), 21);
	close_thing(1);
	CHECK_EQ(look(4), 1);
	close_thing(0);
	CHECK(!mux_epoll_is_ours(epfd));
	end();
}

/* Whichever stack brings it, whoever waits by whatever call. */
TEST(a_sleeper_hears_of_every_stack)
{
	for (unsigned how = 0; how < WAYS; how++)
		for (int which = 0; which < 2; which++) {
			struct sleeper sleeper = { .how = how, .outer = -1 };

			begin();
			things[1]->stack = other_stack;
			add(0);
			add(1);
			if (how == BY_OUTER)
				sleeper.outer = make_outer(EPOLLIN);
			begin_sleeper(&sleeper);
			make_ready(which);
			CHECK_EQ(end_sleeper(&sleeper),
				 how == BY_POLL_OF_SET ? 1u :
				 how == BY_OUTER       ? 7u :
							 (unsigned)which + 1);
			CHECK(list_is_empty(&stack->waiters));
			CHECK(list_is_empty(&other_stack->waiters));
			CHECK(!stack->watcher && !other_stack->watcher);
			if (how == BY_OUTER)
				close_outer(sleeper.outer);
			end();
		}
}

/* The set gets its first socket of that stack while somebody sleeps. */
TEST(a_sleeper_hears_of_a_stack_that_comes_later)
{
	static const unsigned hows[] = { BY_EPOLL, BY_POLL_OF_SET, BY_OUTER };

	for (size_t i = 0; i < ARRAY_LEN(hows); i++) {
		struct sleeper sleeper = { .how = hows[i], .outer = -1 };

		begin();
		things[1]->stack = other_stack;
		add(0);
		if (sleeper.how == BY_OUTER)
			sleeper.outer = make_outer(EPOLLIN);
		begin_sleeper(&sleeper);
		add(1);
		CHECK(sleeper_await(atomic_load(&sleeper.tid)));
		make_ready(1);
		CHECK(end_sleeper(&sleeper) > 0);
		if (sleeper.how == BY_OUTER)
			close_outer(sleeper.outer);
		end();
	}
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

/* -- other threads ------------------------------------------------------------------- */

/* The set becomes ours while somebody sleeps for it in the kernel, who counts himself. */
static int wake_one(void)
{
	atomic_fetch_add(mux_sleepers_of(epfd), 1);
	add(0);
	return epoll_wait(epfd, events, THINGS_MAX, 0);
}

TEST(who_is_woken_for_a_set_does_not_see_by_what)
{
	begin();
	CHECK_EQ(wake_one(), 1);
	CHECK(mux_has_woken);
	CHECK_EQ(mux_epoll_woken(epfd, events, 1), MUX_WOKEN);
	atomic_fetch_sub(mux_sleepers_of(epfd), 1);
	end();
}

/* Another thread has been faster. */
TEST(who_is_woken_for_a_set_that_is_closed_sees_nothing)
{
	begin();
	CHECK_EQ(wake_one(), 1);
	atomic_fetch_sub(mux_sleepers_of(epfd), 1);
	fd_table_forget(epfd);
	close(epfd);
	CHECK_EQ(mux_epoll_woken(epfd, (struct epoll_event[]){ events[0] }, 1), MUX_WOKEN);
	/* a new set, which has the number */
	CHECK_EQ(epoll_create1(0), epfd);
	add(1);
	CHECK_EQ(mux_epoll_woken(epfd, events, 1), MUX_WOKEN);
	end();
}

/* The set was not ours for a moment, in which somebody else has gone to sleep. He relies on
 * what is in the kernel's set, which is not for the one who was woken by it to take out. */
TEST(what_wakes_stays_for_who_has_come_since)
{
	struct epoll_set *set;

	begin();
	CHECK_EQ(wake_one(), 1);
	set = epoll_set_get(epfd);
	/* the first one takes his time */
	atomic_store(&set->wake_until_ns, 0);
	change(EPOLL_CTL_DEL, 0, 0);
	add(0);
	CHECK_EQ(mux_epoll_woken(epfd, events, 1), MUX_WOKEN);
	CHECK_EQ(epoll_wait(epfd, events, THINGS_MAX, 0), 1);
	CHECK_EQ(mux_epoll_woken(epfd, events, 1), MUX_WOKEN);
	atomic_fetch_sub(mux_sleepers_of(epfd), 1);
	/* the last one */
	CHECK_EQ(mux_epoll_woken(epfd, (struct epoll_event[]){ events[0] }, 1), MUX_WOKEN);
	CHECK_EQ(epoll_wait(epfd, events, THINGS_MAX, 0), 0);
	fd_object_put(&set->obj);
	end();
}

static _Atomic bool is_closed;

static void *close_set(void *arg UNUSED)
{
	CHECK(fd_table_remove(epfd));
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

	begin();
	is_closed = false;
	add(0);
	set = epoll_set_get(epfd);
	CHECK_EQ(epoll_set_begin_use(set, epfd), epfd);
	CHECK(!pthread_create(&closer, NULL, close_set, NULL));
	while (fd_table_has(epfd))
		sched_yield();
	for (int i = 0; i < LOOKS && !is_closed; i++)
		sched_yield();
	CHECK(!is_closed);
	/* it is nobody's to use any more */
	CHECK_EQ(epoll_set_begin_use(set, epfd), -1);
	epoll_set_end_use(set, epfd);
	pthread_join(closer, NULL);
	CHECK(is_closed);
	fd_object_put(&set->obj);
	end();
}
