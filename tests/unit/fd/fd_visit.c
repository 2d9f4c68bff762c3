/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "fd/fd_visit.h"

#include <pthread.h>
#include <sched.h>

#include "fd/fd_table.h"
#include "tests/support/test.h"

/* Where nothing else is. */
enum { FD = 700, OTHER_FD = 701 };

static _Atomic int release_cnt, visit_cnt;
/* The object has heard that it is closed; the close has returned. */
static _Atomic bool is_over, is_closed;

/* The number is not the kernel's yet. */
static void last_close(struct fd_object *obj UNUSED, int fd UNUSED)
{
	is_over = true;
}

static void release(struct fd_object *obj UNUSED)
{
	release_cnt++;
}

static _Atomic uint64_t numbers;
static struct fd_ops visited_ops = {
	.name = "visited",
	.numbers = &numbers,
	.last_close = last_close,
	.release = release,
};
static struct fd_ops other_ops = { .name = "other", .last_close = last_close };

static void make(struct fd_object *obj, struct fd_ops *ops, int fd)
{
	release_cnt = visit_cnt = 0;
	is_over = is_closed = false;
	fd_ops_fill(ops);
	fd_object_init(obj, ops, 0);
	CHECK_EQ(fd_table_install(fd, obj), 0);
	fd_object_put(obj);
}

static void *close_it(void *arg UNUSED)
{
	fd_table_remove(FD);
	is_closed = true;
	return NULL;
}

/* As often as a closer that does not wait needs to be seen. */
enum { LOOKS = 2000 };

/* Goes on until the closer waits for us, or does not. */
static bool stay_while_closed(struct fd_object *obj, int fd)
{
	static pthread_t closer;

	CHECK_EQ(fd, FD);
	CHECK(!pthread_create(&closer, NULL, close_it, NULL));
	while (fd_table_has(FD))
		sched_yield();
	for (int i = 0; i < LOOKS && !is_closed; i++)
		sched_yield();
	CHECK(!is_closed && !is_over);
	CHECK(atomic_load(&obj->refs) > 0 && !release_cnt);
	pthread_detach(closer);
	return true;
}

TEST(a_close_waits_for_the_visit)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	CHECK(fd_visit(&visited_ops, stay_while_closed));
	while (!is_closed)
		sched_yield();
	CHECK_EQ(release_cnt, 1);
}

static bool count(struct fd_object *obj UNUSED, int fd UNUSED)
{
	visit_cnt++;
	return false;
}

TEST(what_is_closed_is_not_visited)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	/* which returns */
	close_it(NULL);
	CHECK(!fd_visit(&visited_ops, count));
	CHECK_EQ(visit_cnt, 0);
}

TEST(other_kinds_are_not_visited)
{
	struct fd_object obj = { 0 };

	other_ops.release = release;
	make(&obj, &other_ops, FD);
	CHECK(!fd_visit(&visited_ops, count));
	CHECK_EQ(visit_cnt, 0);
	close_it(NULL);
}

/* The kernel would give the number to another file, which the visitor takes for the object. */
TEST(a_close_of_one_of_two_waits_for_the_visit_by_it)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	CHECK_EQ(fd_table_install(OTHER_FD, &obj), 0);
	CHECK(fd_visit_at(FD, &obj, stay_while_closed));
	while (!is_closed)
		sched_yield();
	CHECK(!is_over);
	fd_table_remove(OTHER_FD);
	CHECK(is_over);
	CHECK_EQ(release_cnt, 1);
}

static bool close_a_copy(struct fd_object *obj UNUSED, int fd UNUSED)
{
	if (visit_cnt++ == 0)
		fd_table_remove(OTHER_FD);
	return false;
}

TEST(the_close_of_a_copy_does_not_wait)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	CHECK_EQ(fd_table_install(OTHER_FD, &obj), 0);
	fd_visit(&visited_ops, close_a_copy);
	CHECK_EQ(visit_cnt, 1);
	CHECK(!is_over);
	close_it(NULL);
	CHECK_EQ(release_cnt, 1);
}

static bool close_it_myself(struct fd_object *obj UNUSED, int fd)
{
	return fd_table_remove(fd);
}

TEST(who_visits_may_close_by_himself)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	CHECK(fd_visit(&visited_ops, close_it_myself));
	CHECK_EQ(release_cnt, 1);
}

static bool begin_and_end(int fd, const struct fd_object *obj)
{
	struct fd_visit visit;

	if (!fd_visit_begin(&visit, fd, obj))
		return false;
	fd_visit_end(&visit);
	return true;
}

/* As stay_while_closed: the closer has taken the number away, and waits for the outer visit. */
static bool visit_what_is_closed(struct fd_object *obj, int fd)
{
	stay_while_closed(obj, fd);
	return begin_and_end(fd, obj);
}

TEST(a_visit_by_hand_is_of_what_the_number_names)
{
	struct fd_object obj = { 0 }, other = { 0 };

	make(&other, &other_ops, OTHER_FD);
	make(&obj, &visited_ops, FD);
	CHECK(begin_and_end(FD, &obj));
	CHECK(!begin_and_end(FD, &other));
	CHECK(!begin_and_end(OTHER_FD, &obj));
	CHECK(fd_visit_at(FD, &obj, visit_what_is_closed));
	while (!is_closed)
		sched_yield();
	CHECK(!begin_and_end(FD, &obj));
	fd_table_remove(OTHER_FD);
}

/* As many threads at once would. */
static bool visit_inside(struct fd_object *obj UNUSED, int fd UNUSED)
{
	return ++visit_cnt < 10 ? fd_visit(&visited_ops, visit_inside) : true;
}

TEST(any_number_of_visitors)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	CHECK(fd_visit(&visited_ops, visit_inside));
	CHECK_EQ(visit_cnt, 10);
	close_it(NULL);
	CHECK_EQ(release_cnt, 1);
}

/* Visits of other numbers, and in the last of them one of FD. */
static bool visit_next(struct fd_object *obj, int fd)
{
	return fd > FD + 1 ? fd_visit_at(fd - 1, obj, visit_next) :
			     fd_visit_at(FD, NULL, stay_while_closed);
}

TEST(a_close_waits_for_the_last_of_many_visits)
{
	struct fd_object obj = { 0 }, others = { 0 };

	make(&obj, &visited_ops, FD);
	fd_object_init(&others, &visited_ops, 0);
	for (int i = 1; i <= 20; i++)
		CHECK_EQ(fd_table_install(FD + i, &others), 0);
	CHECK(fd_visit_at(FD + 20, &others, visit_next));
	while (!is_closed)
		sched_yield();
	CHECK(is_over);
	for (int i = 1; i <= 20; i++)
		fd_table_remove(FD + i);
}

/* -- how far it goes -------------------------------------------------------------------- */

static struct fd_object last;

static bool move_last(struct fd_object *obj UNUSED, int fd)
{
	if (visit_cnt++ == 0) {
		CHECK_EQ(fd, FD);
		CHECK_EQ(fd_table_install(FD + 100, &last), 0);
		fd_table_remove(FD + 50);
	}
	return false;
}

/* The walk has passed neither of its numbers, and sees the second. */
TEST(what_moves_on_meanwhile_is_visited)
{
	struct fd_object obj = { 0 };

	make(&last, &visited_ops, FD + 50);
	make(&obj, &visited_ops, FD);
	fd_visit(&visited_ops, move_last);
	CHECK_EQ(visit_cnt, 2);
	fd_table_remove(FD + 100);
	close_it(NULL);
}

static bool add_between(struct fd_object *obj UNUSED, int fd UNUSED)
{
	static struct fd_object between;

	if (visit_cnt++ == 0) {
		fd_object_init(&between, &visited_ops, 0);
		CHECK_EQ(fd_table_install(OTHER_FD, &between), 0);
		fd_object_put(&between);
	}
	return false;
}

/* Two were counted, and the second that is seen was none of them. */
TEST(who_comes_meanwhile_hides_none)
{
	struct fd_object obj = { 0 };

	make(&last, &visited_ops, FD + 50);
	make(&obj, &visited_ops, FD);
	fd_visit(&visited_ops, add_between);
	CHECK_EQ(visit_cnt, 3);
	fd_table_remove(FD + 50);
	fd_table_remove(OTHER_FD);
	close_it(NULL);
}

TEST(a_visit_ends_with_the_last_that_is_counted)
{
	struct fd_object obj = { 0 };

	make(&obj, &visited_ops, FD);
	/* one that is not counted, behind it */
	visited_ops.numbers = NULL;
	CHECK_EQ(fd_table_install(OTHER_FD, &obj), 0);
	visited_ops.numbers = &numbers;
	fd_visit(&visited_ops, count);
	CHECK_EQ(visit_cnt, 1);
	visited_ops.numbers = NULL;
	fd_table_remove(OTHER_FD);
	visited_ops.numbers = &numbers;
	close_it(NULL);
	fd_visit(&visited_ops, count);
	CHECK_EQ(visit_cnt, 1);
	CHECK_EQ((uint32_t)numbers, 0);
}
