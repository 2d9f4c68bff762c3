/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of epoll with objects of ours in them: what a look at one reports. */
#include "config.h"

#include "iomux/mux.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd/fd_table.h"
#include "os/file.h"
#include "tests/support/test.h"
#include "tests/unit/iomux/things.h"

TEST(set_is_ours_as_long_as_something_in_it_is)
{
	things_begin();
	CHECK(!mux_epoll_is_ours(things_epfd));
	things_add(0);
	things_add(1);
	CHECK(mux_epoll_is_ours(things_epfd));
	things_change(EPOLL_CTL_DEL, 0, 0);
	CHECK(mux_epoll_is_ours(things_epfd));
	thing_close(1);
	CHECK(!mux_epoll_is_ours(things_epfd));
	things_end();
}

TEST(reports_what_is_ready_while_it_is)
{
	things_begin();
	things_add(0);
	things_add(1);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(1);
	CHECK_EQ(things_look(4), 2);
	CHECK_EQ(things_look(4), 2);
	thing_make_unready(1);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(1);
	CHECK_EQ(things_look(4), 2);
	things_end();
}

TEST(what_was_ready_before_is_found)
{
	things_begin();
	thing_make_ready(2);
	things_add(2);
	CHECK_EQ(things_look(4), 3);
	things_end();
}

/* No item waits for more than a round. */
TEST(ready_ones_take_turns)
{
	things_begin();
	for (int i = 0; i < 3; i++) {
		things_add(i);
		thing_make_ready(i);
	}
	CHECK_EQ(things_look(2), 12);
	CHECK_EQ(things_look(2), 31);
	CHECK_EQ(things_look(2), 23);
	things_end();
}

TEST(kernels_events_have_a_place_beside_ours)
{
	bool has_ours = false, has_kernels = false;

	things_begin();
	things_add(0);
	things_add(1);
	thing_make_ready(0);
	thing_make_twin_ready(1);
	for (int i = 0; i < 2; i++) {
		unsigned found = things_look(1);

		has_ours |= found == 1;
		has_kernels |= found == 2;
	}
	CHECK(has_ours && has_kernels);
	CHECK_EQ(things_look(4), 12);
	things_end();
}

/* Of one thing it is one event, whoever says so. */
TEST(no_event_comes_twice_in_a_look)
{
	things_begin();
	for (int i = 0; i < 3; i++) {
		things_add(i);
		thing_make_ready(i);
	}
	CHECK_EQ(things_look(4), 123);
	CHECK_EQ(things_look(5), 123);
	things_end();
}

TEST(both_sides_of_a_thing_are_one_event)
{
	things_begin();
	things_add(0);
	thing_make_ready(0);
	thing_make_twin_ready(0);
	CHECK_EQ(things_look(4), 1);
	things_end();
}

TEST(changes_count_from_the_next_look)
{
	things_begin();
	things_add(0);
	thing_make_ready(0);
	things_change(EPOLL_CTL_MOD, 0, 0);
	CHECK_EQ(things_look(4), 0);
	things_change(EPOLL_CTL_MOD, 0, EPOLLIN);
	CHECK_EQ(things_look(4), 1);
	things_change(EPOLL_CTL_DEL, 0, 0);
	CHECK(list_is_empty(&things[0]->end.watches));
	things_end();
}

/* -- edges ------------------------------------------------------------------------- */

TEST(an_edge_is_told_once_and_each_arrival_is_one)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	thing_make_ready(0);
	thing_make_unready(0);
	CHECK_EQ(things_look(4), 0);
	things_end();
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
	things_begin();
	thing_make_ready(0);
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(things_look(4), 1);
	fire(0, READY_BY_TWIN | READY_IN | READY_RDHUP);
	CHECK_EQ(things_look(4), 0);
	fire(0, READY_BY_TWIN | READY_OUT);
	CHECK_EQ(things_look(4), 1);
	fire(0, READY_ANY);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

TEST(a_change_tells_what_is_there_once_more)
{
	things_begin();
	thing_make_ready(0);
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	things_change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLET);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

TEST(the_kernels_edges_are_edges_too)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLET);
	thing_make_twin_ready(0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(0);
	thing_make_twin_ready(0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

/* Linux says it once for both. The kernel, which is asked later, says it again. */
TEST(that_one_can_write_is_told_with_what_has_come)
{
	things_begin();
	thing_make_ready(0);
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLOUT | EPOLLET);
	for (int i = 0; i < 2 && !things_look(1); i++)
		;
	CHECK_EQ(things_events[0].events, EPOLLIN | EPOLLOUT);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(things_look(1), 0);
	things_change(EPOLL_CTL_MOD, 0, EPOLLOUT | EPOLLET);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_events[0].events, EPOLLOUT);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

TEST(both_names_of_readable_are_known)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLRDNORM);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_events[0].events, EPOLLRDNORM);
	things_end();
}

/* -- one shot ---------------------------------------------------------------------- */

TEST(one_shot_is_told_once_until_it_is_armed)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 0);
	things_change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLONESHOT);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

TEST(one_shot_of_the_kernel_disarms_ours)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	thing_make_twin_ready(0);
	CHECK_EQ(things_look(4), 1);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

TEST(one_shot_of_ours_disarms_the_kernels)
{
	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	thing_make_twin_ready(0);
	CHECK_EQ(things_look(4), 0);
	thing_make_twin_unready(0);
	thing_make_unready(0);
	things_change(EPOLL_CTL_MOD, 0, EPOLLIN | EPOLLONESHOT);
	CHECK_EQ(things_look(4), 0);
	thing_make_twin_ready(0);
	CHECK_EQ(things_look(4), 1);
	things_end();
}

/* To the program the two look the same; to us it is the other one that is disarmed. */
TEST(one_shots_with_one_word_are_told_apart)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	things_begin();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_ADD, things[i]->fd,
				       &event), 0);
	thing_make_twin_ready(1);
	CHECK_EQ(things_look(4), 1);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	thing_make_ready(0);
	thing_make_ready(1);
	CHECK_EQ(things_look(4), 0);
	things_end();
}

/* To the kernel the two are one as well, and the program looks at both. */
TEST(each_with_the_word_hears_of_its_twin)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	things_begin();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_ADD, things[i]->fd,
				       &event), 0);
	things_add(2);
	thing_make_twin_ready(1);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things[0]->told_cnt, 1);
	CHECK_EQ(things[1]->told_cnt, 1);
	CHECK_EQ(things[2]->told_cnt, 0);
	things_end();
}

/* Its number is another file's by now, which is not ready; a duplicate keeps it alive. */
TEST(one_shot_without_its_number_is_told_once)
{
	int copy, fd;

	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	copy = dup(things[0]->fd);
	CHECK_EQ(fd_table_install(copy, &things[0]->obj), 0);
	fd = eventfd(0, EFD_NONBLOCK);
	thing_make_ready(0);
	thing_make_twin_ready(0);
	fd_table_remove(things[0]->fd);
	CHECK_EQ(dup2(fd, things[0]->fd), things[0]->fd);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(things_look(4), 0);
	fd_table_forget(copy);
	close(copy);
	close(fd);
	things_end();
}

TEST(a_change_that_fails_changes_nothing)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };

	things_begin();
	things_change(EPOLL_CTL_ADD, 0, EPOLLIN | EPOLLONESHOT);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_MOD, things[0]->fd, &event),
		 -EINVAL);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 0);
	CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_ADD, things[0]->fd, &event),
		 -EEXIST);
	event.events = EPOLLIN;
	CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_MOD, things[1]->fd, &event),
		 -ENOENT);
	CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_DEL, things[1]->fd, NULL),
		 -ENOENT);
	things_end();
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

	things_begin();
	for (int known = 0; known < 2; known++) {
		refused_with = known ? ENOSPC : ENOMEM;
		real.epoll_ctl = refuse;
		CHECK_EQ(mux_epoll_ctl(things_epfd, EPOLL_CTL_ADD, things[0]->fd,
				       &event),
			 -refused_with);
		real_resolve();
		CHECK(list_is_empty(&things[0]->end.watches));
		CHECK_EQ(things[0]->leave_cnt, 0);
		thing_make_ready(0);
		CHECK_EQ(known ? things_look(4) : 0, 0);
		thing_make_unready(0);
		/* from now on there is a set of ours */
		things_add(1);
		things_change(EPOLL_CTL_DEL, 1, 0);
	}
	things_add(0);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 1);
	things_end();
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

	CHECK_EQ(mux_epoll_ctl(things_epfd, op, numbers[i], &event), 0);
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
	CHECK_EQ(real.epoll_ctl(things_epfd, EPOLL_CTL_DEL, numbers[number_cnt - 1],
				NULL),
		 0);
	check_steps("MOD", EPOLL_CTL_MOD, early, has_word, &few[1]);
	check_steps("DEL", EPOLL_CTL_DEL, early, has_word, &few[2]);
	close_numbers(number_cnt - 1);
}

static void count_changes_with(bool has_word)
{
	long few[3];

	things_begin();
	member_cnt = 0;
	add_numbers(things[THINGS_MAX - 1], FEW, has_word);
	count_changes(has_word, 0, few);
	add_many(has_word);
	count_changes(has_word, 1, few);
	close_numbers(0);
	things_end();
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

/* Another set in the outer one, with this thing in it. */
static int make_inner(struct epoll_event *as, int outer, int i)
{
	struct epoll_event event = { .events = EPOLLIN };
	int inner = epoll_create1(0);

	CHECK(inner >= 0);
	mux_note_set(inner);
	CHECK_EQ(mux_epoll_ctl(inner, EPOLL_CTL_ADD, things[i]->fd, &event), 0);
	CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, inner, as), 0);
	return inner;
}

TEST(a_set_in_a_set_is_ready_while_something_in_it_is)
{
	int outer;

	things_begin();
	things_add(0);
	outer = things_make_outer(EPOLLIN);
	CHECK(mux_epoll_is_ours(outer));
	CHECK_EQ(things_look_at(outer, 4), 0);
	thing_make_ready(0);
	CHECK_EQ(things_look_at(outer, 4), 7);
	CHECK_EQ(things_look_at(outer, 4), 7);
	CHECK_EQ(things_look(4), 1);
	thing_make_unready(0);
	CHECK_EQ(things_look_at(outer, 4), 0);
	things_close_outer(outer);
	things_end();
}

TEST(a_set_that_gets_something_makes_the_outer_one_ours)
{
	int outer, outermost;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 2 };

	things_begin();
	outer = things_make_outer(EPOLLIN);
	outermost = epoll_create1(0);
	mux_note_set(outer);
	CHECK_EQ(mux_epoll_ctl(outermost, EPOLL_CTL_ADD, outer, &event), 0);
	CHECK(!mux_epoll_is_ours(outermost));
	thing_make_ready(0);
	things_add(0);
	CHECK(mux_epoll_is_ours(outer));
	CHECK(mux_epoll_is_ours(outermost));
	CHECK_EQ(things_look_at(outermost, 4), 3);
	things_change(EPOLL_CTL_DEL, 0, 0);
	CHECK(!mux_epoll_is_ours(outer));
	CHECK(!mux_epoll_is_ours(outermost));
	things_close_outer(outermost);
	things_close_outer(outer);
	things_end();
}

/* Also where each look has room for one of them. */
TEST(ready_sets_take_turns_with_what_is_beside_them)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 2 };
	unsigned found, cnts[10] = { 0 };
	int outer, inner;

	things_begin();
	things_add(0);
	outer = things_make_outer(EPOLLIN);
	inner = make_inner(&event, outer, 1);
	for (uint64_t i = 3; i < 5; i++) {
		event.data.u64 = i;
		CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, things[i]->fd, &event), 0);
		thing_make_ready((int)i);
	}
	thing_make_ready(0);
	thing_make_ready(1);
	for (int i = 0; i < 48; i++) {
		found = things_look_at(outer, 1);
		CHECK(found < ARRAY_LEN(cnts));
		cnts[found]++;
	}
	test_note("sets %u and %u, beside them %u and %u", cnts[7], cnts[3], cnts[4], cnts[5]);
	CHECK(cnts[7] >= 6 && cnts[3] >= 6 && cnts[4] >= 6 && cnts[5] >= 6);
	things_close_outer(inner);
	things_close_outer(outer);
	things_end();
}

TEST(an_outer_edge_comes_with_each_arrival)
{
	int outer;

	things_begin();
	things_add(0);
	things_add(1);
	outer = things_make_outer(EPOLLIN | EPOLLET);
	thing_make_ready(0);
	CHECK_EQ(things_look_at(outer, 4), 7);
	CHECK_EQ(things_look_at(outer, 4), 0);
	thing_make_ready(1);
	CHECK_EQ(things_look_at(outer, 4), 7);
	CHECK_EQ(things_look_at(outer, 4), 0);
	things_close_outer(outer);
	things_end();
}

/* What the inner set has not told yet is no news when it is asked for anew. */
TEST(an_outer_edge_does_not_come_with_a_change_of_what_is_told)
{
	int outer;

	things_begin();
	things_add(0);
	outer = things_make_outer(EPOLLIN | EPOLLET);
	thing_make_ready(0);
	CHECK_EQ(things_look_at(outer, 4), 7);
	things_change(EPOLL_CTL_MOD, 0, EPOLLRDNORM);
	CHECK_EQ(things_look_at(outer, 4), 0);
	thing_make_unready(0);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(0);
	CHECK_EQ(things_look_at(outer, 4), 7);
	things_close_outer(outer);
	things_end();
}

/* Who is told of the inner set by an edge may not be told again of what is left there. */
TEST(who_is_told_by_an_outer_edge_finds_the_kernels_as_well)
{
	static const struct mux_params skips = { .os_ratio = 1, .skip_os = 4 };

	for (uint32_t edge = 0; edge < 2; edge++) {
		int middle, outer = epoll_create1(0);
		struct epoll_event event = { .events = EPOLLIN | (edge ? EPOLLET : 0) };

		things_begin();
		mux_start(&skips);
		things_add(0);
		things_add(1);
		middle = things_make_outer(EPOLLIN);
		mux_note_set(middle);
		CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, middle, &event), 0);
		thing_make_ready(0);
		CHECK_EQ(things_look(4), 1);
		thing_make_twin_ready(1);
		CHECK_EQ(things_look(4), edge ? 12 : 1);
		things_close_outer(outer);
		things_close_outer(middle);
		things_end();
	}
}

TEST(an_inner_set_that_is_closed_is_gone)
{
	int outer, inner;

	things_begin();
	things_add(0);
	thing_make_ready(0);
	outer = things_make_outer(EPOLLIN);
	inner = things_epfd;
	fd_table_forget(inner);
	close(inner);
	CHECK(!mux_epoll_is_ours(outer));
	CHECK(list_is_empty(&things[0]->end.watches));
	things_close_outer(outer);
	things_epfd = epoll_create1(0);
	things_end();
}

/* A number that was a set's is another file's by now. */
TEST(a_number_that_was_a_sets_is_not_taken_for_one)
{
	int outer, fd;
	struct epoll_event event = { .events = EPOLLIN };

	things_begin();
	fd = eventfd(0, 0);
	mux_note_set(fd);
	outer = epoll_create1(0);
	CHECK_EQ(mux_epoll_ctl(outer, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK(!fd_table_has(fd));
	close(fd);
	close(outer);
	things_end();
}

/* -- several stacks ------------------------------------------------------------------ */

TEST(two_stacks_make_one_set_ready)
{
	things_begin();
	things[1]->stack = things_other_stack;
	things_add(0);
	things_add(1);
	CHECK_EQ(things_look(4), 0);
	thing_make_ready(1);
	CHECK_EQ(things_look(4), 2);
	thing_make_ready(0);
	CHECK_EQ(things_look(4), 21);
	thing_close(1);
	CHECK_EQ(things_look(4), 1);
	thing_close(0);
	CHECK(!mux_epoll_is_ours(things_epfd));
	things_end();
}

/* -- lives --------------------------------------------------------------------------- */

/* Its last close finds nothing to take out of the set, and comes only once. */
TEST(closed_while_it_is_added)
{
	struct thing *thing;

	things_begin();
	thing = things[0];
	thing->closes_while_followed = true;
	thing_make_ready(0);
	things_add(0);
	CHECK(list_is_empty(&thing->end.watches));
	CHECK(!mux_epoll_is_ours(things_epfd));
	things_end();
}

TEST(closed_while_it_is_ready)
{
	things_begin();
	things_add(0);
	things_add(1);
	thing_make_ready(0);
	thing_make_ready(1);
	thing_close(0);
	CHECK_EQ(things_look(4), 2);
	things_end();
}

/* As that of a listener, which keeps the port for its connections. */
TEST(closed_while_its_twin_lives_on)
{
	int copy;

	things_begin();
	things[0]->word = FD_WORD_BESIDE;
	things[0]->obj.inode = file_identify(things[0]->fd).ino;
	things_add(0);
	things_add(1);
	copy = dup(things[0]->fd);
	thing_make_twin_ready(0);
	thing_close(0);
	CHECK_EQ(things_look(4), 0);
	thing_make_twin_ready(1);
	CHECK_EQ(things_look(4), 2);
	close(copy);
	things_end();
}

/* The set goes first: things are followed by nobody then. */
TEST(closed_set_lets_go)
{
	things_begin();
	things_add(0);
	thing_make_ready(0);
	fd_table_forget(things_epfd);
	CHECK(list_is_empty(&things[0]->end.watches));
	thing_make_ready(0);
	things_end();
}
