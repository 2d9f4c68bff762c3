/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "fd/fd_change.h"
#include "fd/fd_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd/fd_pool.h"
#include "fd/fd_wait.h"
#include "tests/support/test.h"

struct thing {
	struct fd_object obj;
	int last_closes, releases, forks;
	int told_while_named;
};

static struct fd_pool pool = FD_POOL_INIT(struct thing);

static struct thing *thing_of(struct fd_object *obj)
{
	return CONTAINER_OF(obj, struct thing, obj);
}

static void before_close(struct fd_object *obj, int fd)
{
	struct fd_object *named = fd_table_get(fd);

	thing_of(obj)->told_while_named += named == obj;
	fd_object_put(named);
}

static void last_close(struct fd_object *obj, int fd UNUSED)
{
	thing_of(obj)->last_closes++;
}

static void release(struct fd_object *obj)
{
	thing_of(obj)->releases++;
	fd_pool_put(&pool, thing_of(obj));
}

static void forked(struct fd_object *obj)
{
	thing_of(obj)->forks++;
}

static struct fd_ops ops = {
	.name = "thing",
	.before_close = before_close,
	.last_close = last_close,
	.release = release,
	.forked = forked,
};

static struct thing *make(ino_t inode)
{
	struct thing *thing = fd_pool_get(&pool);

	CHECK(thing);
	fd_ops_fill(&ops);
	thing->last_closes = thing->releases = thing->forks = 0;
	thing->told_while_named = 0;
	fd_object_init(&thing->obj, &ops, inode);
	return thing;
}

/* KB of this process in memory, files excepted. */
static long resident_kb(void)
{
	char text[64] = "";
	FILE *file = fopen("/proc/self/statm", "r");
	long resident = 0, of_files = 0;

	CHECK(file);
	if (fgets(text, sizeof(text), file))
		sscanf(text, "%*s %ld %ld", &resident, &of_files);
	fclose(file);
	CHECK(resident > 0);
	return (resident - of_files) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* First of all, while nothing of the table was touched. The limit leaves room for
 * what the address sanitizer keeps; others keep more. */
TEST(billion_fds_cost_kilobytes)
{
	struct thing *thing;
	long before, after;

	if (HAS_THREAD_SANITIZER || getenv("TEST_UNDER_VALGRIND"))
		test_skip("not under a sanitizer");
	thing = make(0);
	before = resident_kb();
	CHECK_EQ(fd_table_install(3, &thing->obj), 0);
	CHECK_EQ(fd_table_install((1 << 30) - 1, &thing->obj), 0);
	CHECK(!fd_table_has(1 << 29));
	after = resident_kb();
	CHECK(after > before && after - before <= 128);
	fd_object_put(&thing->obj);
	fd_table_remove_range(0, ~0u, &(struct fd_lingering){ 0 });
	CHECK_EQ(thing->releases, 1);
}

TEST(empty_table_knows_nothing)
{
	CHECK(!fd_table_has(0));
	CHECK(!fd_table_has(-1));
	CHECK(!fd_table_has(INT_MAX));
	CHECK(fd_table_get(7) == NULL);
	CHECK(!fd_table_remove(7));
	CHECK_EQ(fd_table_forget(-1), -1);
	fd_table_remove_range(0, ~0u, &(struct fd_lingering){ 0 });
}

/* Who looks for it at that moment finds it. */
TEST(object_hears_of_a_close_while_its_number_names_it)
{
	struct thing *thing = make(0), *other = make(0);

	CHECK_EQ(fd_table_install(3, &thing->obj), 0);
	CHECK_EQ(fd_table_install(4, &thing->obj), 0);
	CHECK(fd_table_remove(3));
	CHECK_EQ(thing->told_while_named, 1);
	CHECK_EQ(thing->last_closes, 0);
	CHECK_EQ(fd_table_install(4, &other->obj), 0);
	CHECK_EQ(thing->told_while_named, 2);
	CHECK_EQ(thing->last_closes, 1);
	CHECK_EQ(other->told_while_named, 0);
	fd_object_put(&thing->obj);
	fd_object_put(&other->obj);
	fd_table_remove_range(0, ~0u, &(struct fd_lingering){ 0 });
	CHECK_EQ(other->releases, 1);
}

TEST(several_fds_name_one_object)
{
	struct thing *thing = make(0);

	CHECK_EQ(fd_table_install(5, &thing->obj), 0);
	CHECK_EQ(fd_table_install(900000000, &thing->obj), 0);
	fd_object_put(&thing->obj);
	CHECK(fd_table_has(5) && fd_table_has(900000000));
	CHECK(fd_table_remove(5));
	CHECK_EQ(thing->last_closes, 0);
	CHECK(fd_table_remove(900000000));
	CHECK_EQ(thing->last_closes, 1);
	CHECK_EQ(thing->releases, 1);
	CHECK_EQ(fd_pool_used_cnt(&pool), 0);
}

TEST(object_lives_while_a_call_is_inside)
{
	struct thing *thing = make(0);
	struct fd_object *inside;

	CHECK_EQ(fd_table_install(6, &thing->obj), 0);
	fd_object_put(&thing->obj);
	inside = fd_table_get(6);
	CHECK(inside == &thing->obj);
	CHECK(fd_table_remove(6));
	CHECK_EQ(thing->last_closes, 1);
	CHECK_EQ(thing->releases, 0);
	CHECK(fd_table_get(6) == NULL);
	fd_object_put(inside);
	CHECK_EQ(thing->releases, 1);
}

TEST(number_that_comes_again_drops_what_it_named)
{
	struct thing *old = make(0), *new = make(0);

	CHECK_EQ(fd_table_install(8, &old->obj), 0);
	fd_object_put(&old->obj);
	CHECK_EQ(fd_table_install(8, &new->obj), 0);
	fd_object_put(&new->obj);
	CHECK_EQ(old->releases, 1);
	CHECK_EQ(fd_table_forget(8), 8);
	CHECK_EQ(new->releases, 1);
}

TEST(first_one_of_a_number_stays)
{
	struct thing *first = make(0), *second = make(0);

	CHECK_EQ(fd_table_exchange(8, NULL, &first->obj), 0);
	CHECK_EQ(fd_table_exchange(8, NULL, &second->obj), -EEXIST);
	CHECK_EQ(fd_table_exchange(-1, NULL, &second->obj), -EBADF);
	CHECK_EQ(second->obj.fd_cnt, 0);
	fd_object_put(&first->obj);
	fd_object_put(&second->obj);
	CHECK_EQ(second->releases, 1);
	CHECK_EQ(first->releases, 0);
	CHECK_EQ(fd_table_forget(8), 8);
	CHECK_EQ(first->releases, 1);
}

static _Atomic bool has_begun;

/* As a wrapper calls: until a result comes. */
static void *call_until_a_result(void *arg UNUSED)
{
	struct fd_object *obj;
	long n;

	do {
		obj = fd_table_get_at(fd_table_entry(8));
		has_begun = true;
		n = obj->ops->listen(obj, 8, 1);
	} while (n == FD_ABANDONED);
	fd_object_put(obj);
	return obj;
}

TEST(calls_wait_while_a_number_changes)
{
	struct thing *old = make(0), *new = make(0), *other = make(0);
	struct fd_change *change;
	pthread_t thread;
	void *result;

	CHECK_EQ(fd_table_install(8, &old->obj), 0);
	CHECK(!fd_change_begin(8, &other->obj));
	CHECK(fd_table_has(8));
	change = fd_change_begin(8, &old->obj);
	CHECK(change);
	fd_object_put(&old->obj);
	CHECK_EQ(old->releases, 1);
	CHECK(!pthread_create(&thread, NULL, call_until_a_result, NULL));
	while (!has_begun)
		;
	fd_change_end(change, 8, &new->obj);
	pthread_join(thread, &result);
	CHECK(result == &new->obj);
	fd_object_put(&new->obj);
	fd_object_put(&other->obj);
	CHECK_EQ(fd_table_forget(8), 8);
	CHECK_EQ(new->releases, 1);
}

TEST(impossible_numbers_are_refused)
{
	struct thing *thing = make(0);

	CHECK_EQ(fd_table_install(-1, &thing->obj), -EBADF);
	CHECK_EQ(fd_table_install(FD_TABLE_LIMIT, &thing->obj), -EBADF);
	fd_object_put(&thing->obj);
	CHECK_EQ(fd_pool_used_cnt(&pool), 0);
}

TEST(range_removal_reaches_every_leaf)
{
	static const int fds[] = { 3, 4095, 4096, 1 << 20, (1 << 30) - 1 };
	struct thing *thing = make(0);

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		CHECK_EQ(fd_table_install(fds[i], &thing->obj), 0);
	fd_object_put(&thing->obj);
	fd_table_remove_range(4, 4095, &(struct fd_lingering){ 0 });
	CHECK(fd_table_has(3) && !fd_table_has(4095) && fd_table_has(4096));
	fd_table_remove_range(0, ~0u, &(struct fd_lingering){ 0 });
	CHECK_EQ(thing->releases, 1);
}

TEST(inode_finds_live_objects_only)
{
	struct thing *thing = make(4242);
	struct fd_object *found;

	CHECK_EQ(fd_table_install(9, &thing->obj), 0);
	fd_object_put(&thing->obj);
	found = fd_table_find_inode(4242);
	CHECK(found == &thing->obj);
	fd_object_put(found);
	CHECK(fd_table_find_inode(4243) == NULL);
	CHECK(fd_table_remove(9));
	CHECK(fd_table_find_inode(4242) == NULL);
}

static long fault_cnt(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* Faults of a child that forgets what these fds named. */
static int faults_of_child(const int *fds, size_t cnt)
{
	struct thing *thing = make(0);
	int status;
	pid_t pid;

	for (size_t i = 0; i < cnt; i++)
		CHECK_EQ(fd_table_install(fds[i], &thing->obj), 0);
	fd_object_put(&thing->obj);
	pid = fork();
	if (pid == 0) {
		long before = fault_cnt();

		fd_table_forked();
		_exit((int)MIN(fault_cnt() - before, 200));
	}
	waitpid(pid, &status, 0);
	fd_table_remove_range(0, ~0u, &(struct fd_lingering){ 0 });
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The table is two megabytes of addresses and more; what it does not use is not
 * faulted in. */
/* Its memory is another object's then. */
TEST(inode_finds_no_object_that_was_never_named)
{
	struct thing *first = make(4244), *again;
	struct fd_object *found;

	CHECK(fd_table_find_inode(4244) == NULL);
	fd_object_put(&first->obj);
	again = make(4245);
	CHECK(again == first);
	CHECK_EQ(fd_table_install(60, &again->obj), 0);
	/* a list with a loop has no end */
	alarm(10);
	CHECK(fd_table_find_inode(4244) == NULL);
	alarm(0);
	found = fd_table_find_inode(4245);
	CHECK(found == &again->obj);
	fd_object_put(found);
	CHECK(fd_table_remove(60));
	CHECK(fd_table_find_inode(4245) == NULL);
	fd_object_put(&again->obj);
}

TEST(forked_child_touches_what_it_needs)
{
	static const int one[] = { 5 };
	static const int far[] = { 5, 2048, 70000, 900000000 };

	if (HAS_THREAD_SANITIZER || getenv("TEST_UNDER_VALGRIND"))
		test_skip("not under a sanitizer");
	/* Pages of code and data that any call of this kind touches, the table's
	 * pages with entries, and what leads to them. */
	CHECK(faults_of_child(one, 1) <= 12);
	CHECK(faults_of_child(far, ARRAY_LEN(far)) <= 12 + 4 * 3);
}

TEST(walk_finds_every_fd)
{
	static const int fds[] = { 0, 511, 512, 4095, 4096, 32767, 32768,
				   (1 << 21) - 1, 1 << 21, (1 << 30) - 1 };
	struct thing *thing = make(0);
	int fd = -1;

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		CHECK_EQ(fd_table_install(fds[i], &thing->obj), 0);
	fd_object_put(&thing->obj);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		fd = fd_table_next((unsigned)fd + 1);
		CHECK_EQ(fd, fds[i]);
	}
	CHECK_EQ(fd_table_next((unsigned)fd + 1), -1);
	fd_table_remove_range(0, ~0u, &(struct fd_lingering){ 0 });
	CHECK_EQ(fd_table_next(0), -1);
}

TEST(forked_child_has_an_empty_table)
{
	struct thing *thing = make(77);
	int status;
	pid_t pid;

	CHECK_EQ(fd_table_install(10, &thing->obj), 0);
	CHECK_EQ(fd_table_install(11, &thing->obj), 0);
	fd_object_put(&thing->obj);
	pid = fork();
	if (pid == 0) {
		fd_table_forked();
		_exit(fd_table_has(10) || fd_table_has(11) ||
		      thing->forks != 1 || thing->last_closes != 0 ||
		      fd_table_find_inode(77) != NULL);
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	CHECK(fd_table_remove(10) && fd_table_remove(11));
	CHECK_EQ(fd_pool_used_cnt(&pool), 0);
}

static _Atomic bool is_over;
static _Atomic int bad_looks;

static void *look(void *arg UNUSED)
{
	while (!atomic_load(&is_over)) {
		struct fd_object *obj = fd_table_get(20);

		if (obj && obj->ops != &ops)
			atomic_fetch_add(&bad_looks, 1);
		fd_object_put(obj);
	}
	return NULL;
}

TEST(look_ups_race_with_reuse)
{
	pthread_t threads[2];

	atomic_store(&is_over, false);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, look, NULL), 0);
	for (int i = 0; i < 20000; i++) {
		struct thing *thing = make((ino_t)i + 1);

		CHECK_EQ(fd_table_install(20, &thing->obj), 0);
		fd_object_put(&thing->obj);
		CHECK(fd_table_remove(20));
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(bad_looks, 0);
	CHECK_EQ(fd_pool_used_cnt(&pool), 0);
}
