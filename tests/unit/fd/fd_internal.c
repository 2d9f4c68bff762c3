/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "fd/fd_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd/fd_table.h"
#include "fd/fd_visit.h"
#include "os/file.h"
#include "tests/support/test.h"

static _Atomic int slot = -1;

static int adopt(void)
{
	int fd = open("/dev/null", O_WRONLY);

	CHECK(fd >= 0);
	CHECK_EQ(fd_internal_adopt(fd, &slot), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
	return atomic_load(&slot);
}

TEST(lives_high_and_closes_on_exec)
{
	int fd = adopt();

	CHECK(fd >= 1024 || fd > sysconf(_SC_OPEN_MAX) / 2);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK(fd_internal_is_intact(&slot));
	CHECK_EQ(fd_table_next_internal(0, ~0u), fd);
	fd_internal_close(&slot);
	CHECK_EQ(slot, -1);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
	CHECK(!fd_table_has(fd));
}

/* The program has opened all that it may. */
TEST(stays_where_it_is_without_another_number)
{
	struct rlimit limit, now;
	int fd = open("/dev/null", O_RDONLY);

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	now = limit;
	now.rlim_cur = (rlim_t)fd + 1;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
	CHECK_EQ(fd_internal_adopt(fd, &slot), 0);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_EQ(slot, fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK(fd_table_has(fd));
	fd_internal_close(&slot);
	CHECK_EQ(slot, -1);
	CHECK(!fd_table_has(fd));
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(looks_closed_to_the_program)
{
	int fd = adopt();
	struct fd_object *obj = fd_table_get(fd);

	CHECK(obj);
	CHECK(obj->ops->is_internal);
	CHECK_EQ(obj->ops->write(obj, fd, "x", 1), -EBADF);
	CHECK_EQ(obj->ops->fcntl(obj, fd, F_GETFD, NULL), -EBADF);
	fd_object_put(obj);
	fd_internal_close(&slot);
}

/* As the wrapper of dup2() does. */
static void replace(int fd, int new_fd)
{
	struct fd_internal_way way;

	CHECK_EQ(fd_internal_make_way(new_fd, &way), 0);
	CHECK_EQ(dup2(fd, new_fd), new_fd);
	fd_internal_end_way(&way);
}

TEST(makes_way_for_the_program)
{
	int fd = adopt(), other = open("/", O_RDONLY);

	replace(other, fd);
	CHECK(slot != fd);
	CHECK(!fd_table_has(fd));
	CHECK(fd_internal_is_intact(&slot));
	fd_internal_close(&slot);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	close(other);
}

TEST(stranger_under_its_number_is_not_touched)
{
	int fd = adopt(), other = open("/", O_RDONLY);

	/* Behind our back. */
	CHECK_EQ(dup2(other, fd), fd);
	close(other);
	CHECK(!fd_internal_is_intact(&slot));
	fd_internal_close(&slot);
	CHECK_EQ(slot, -1);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

/* The kernel gives the next one that we make the number of one that the program has
 * closed. */
TEST(one_of_ours_under_its_number_is_not_touched)
{
	static _Atomic int other_slot = -1;
	int fd = adopt(), other = open("/", O_RDONLY);

	close(fd);
	CHECK_EQ(fd_internal_adopt(other, &other_slot), 0);
	CHECK_EQ(other_slot, fd);
	CHECK(!fd_internal_is_intact(&slot));
	fd_internal_close(&slot);
	CHECK_EQ(slot, -1);
	CHECK(fd_internal_is_intact(&other_slot));
	fd_internal_close(&other_slot);
}

TEST(range_removal_spares_it)
{
	int fd = adopt();

	fd_table_remove_range(3, ~0u, &(struct fd_lingering){ 0 });
	CHECK(fd_table_has(fd));
	fd_internal_close(&slot);
}

TEST(forked_child_closes_it)
{
	int fd = adopt(), status;
	pid_t pid = fork();

	if (pid == 0) {
		fd_internal_forked();
		_exit(slot != -1 || fcntl(fd, F_GETFD) != -1);
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	CHECK(fd_internal_is_intact(&slot));
	fd_internal_close(&slot);
}

/* -- two threads -------------------------------------------------------------------- */

enum { ROUNDS = 3000 };

static _Atomic bool is_over;

static void *adopt_and_close(void *arg UNUSED)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fd = open("/dev/null", O_WRONLY);

		CHECK(fd >= 0);
		CHECK_EQ(fd_internal_adopt(fd, &slot), 0);
		fd_internal_close(&slot);
		CHECK_EQ(slot, -1);
	}
	is_over = true;
	return NULL;
}

/* The number is the program's in the moment in which an fd of ours is made, moves away or
 * is closed. */
TEST(threads_close_and_replace_at_once)
{
	int first = adopt(), other = open("/", O_RDONLY);
	struct file_id own = file_identify(other);
	pthread_t thread;

	fd_internal_close(&slot);
	CHECK(!pthread_create(&thread, NULL, adopt_and_close, NULL));
	while (!is_over) {
		struct file_id now;

		replace(other, first);
		for (int i = 0; i < 20; i++) {
			now = file_identify(first);
			CHECK(file_is_same(&own, &now));
		}
		CHECK(!fd_table_has(first));
		close(first);
	}
	pthread_join(thread, NULL);
	close(other);
	/* nothing of ours was left behind */
	CHECK_EQ(fd_table_next_internal(0, ~0u), -1);
	CHECK_EQ(fcntl(first, F_GETFD), -1);
	CHECK_EQ(fcntl(first + 1, F_GETFD), -1);
}

/* The program closes all that it has, in the moment in which an fd of ours is made. */
static void *adopt_and_look(void *arg)
{
	int *lost_cnt = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (fd_internal_copy(STDOUT_FILENO, &slot) != 0)
			continue;
		*lost_cnt += !fd_internal_is_intact(&slot);
		fd_internal_close(&slot);
	}
	is_over = true;
	return NULL;
}

TEST(closes_of_all_spare_what_becomes_ours)
{
	unsigned first = (unsigned)adopt();
	pthread_t thread;
	int lost_cnt = 0;

	fd_internal_close(&slot);
	is_over = false;
	CHECK(!pthread_create(&thread, NULL, adopt_and_look, &lost_cnt));
	while (!is_over)
		CHECK_EQ(fd_internal_close_range(first, ~0u, 0), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(lost_cnt, 0);
}

TEST(closes_of_all_go_around_it)
{
	int fd = adopt(), below = dup(STDOUT_FILENO), above = fd + 1;

	CHECK_EQ(dup2(below, above), above);
	CHECK_EQ(fd_internal_close_range((unsigned)below, ~0u, 0), 0);
	CHECK(fd_internal_is_intact(&slot));
	CHECK_EQ(fcntl(below, F_GETFD), -1);
	CHECK_EQ(fcntl(above, F_GETFD), -1);
	fd_internal_close(&slot);
}

/* -- visits ----------------------------------------------------------------------- */

static bool say_yes(struct fd_object *obj UNUSED, int fd UNUSED)
{
	return true;
}

TEST(is_not_visited)
{
	int fd = adopt();

	CHECK(!fd_visit(NULL, say_yes));
	CHECK(!fd_visit_at(fd, NULL, say_yes));
	fd_internal_close(&slot);
}

static void *close_slot(void *arg UNUSED)
{
	fd_internal_close(&slot);
	is_over = true;
	return NULL;
}

/* As often as a closer that waits is given time. */
enum { LOOKS = 100000 };

/* The program has closed its file by a raw call while it is visited, and the number becomes
 * ours. The visitor wants what the closer holds. */
static bool adopt_and_await_close(struct fd_object *obj UNUSED, int fd)
{
	static _Atomic int other_slot = -1;
	pthread_t closer;

	close(fd);
	CHECK_EQ(adopt(), fd);
	CHECK(!pthread_create(&closer, NULL, close_slot, NULL));
	for (int i = 0; i < LOOKS && !is_over; i++)
		sched_yield();
	CHECK(is_over);
	CHECK(!pthread_join(closer, NULL));
	CHECK_EQ(fd_internal_copy(STDOUT_FILENO, &other_slot), 0);
	fd_internal_close(&other_slot);
	return true;
}

TEST(a_close_of_ours_waits_for_no_visit)
{
	static struct fd_ops ops = { .name = "program's" };
	struct fd_object obj = { 0 };
	int fd = adopt();

	fd_internal_close(&slot);
	CHECK_EQ(dup2(STDOUT_FILENO, fd), fd);
	fd_ops_fill(&ops);
	fd_object_init(&obj, &ops, 0);
	CHECK_EQ(fd_table_install(fd, &obj), 0);
	is_over = false;
	CHECK(fd_visit_at(fd, &obj, adopt_and_await_close));
	CHECK_EQ(obj.refs, 1);
	CHECK(!fd_table_has(fd));
}

TEST(what_somebody_uses_is_not_closed)
{
	_Atomic int user_cnt = 1;
	int fd = adopt();

	CHECK(!fd_internal_close_unused(&slot, &user_cnt));
	CHECK_EQ(slot, fd);
	CHECK(fd_internal_is_intact(&slot));
	user_cnt = 0;
	CHECK(fd_internal_close_unused(&slot, &user_cnt));
	CHECK_EQ(slot, -1);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

/* Who has looked at the slot while fd_internal_close_unused() has it copies to it. */
TEST(a_copy_takes_no_slot_that_is_used)
{
	_Atomic int user_cnt = 1;
	int fd = adopt();

	CHECK_EQ(fd_internal_copy(STDOUT_FILENO, &slot), -EEXIST);
	CHECK_EQ(slot, fd);
	CHECK_EQ(fd_table_next_internal((unsigned)fd + 1, ~0u), -1);
	CHECK(!fd_internal_close_unused(&slot, &user_cnt));
	/* closed by a call that we could not see: the slot is free again */
	CHECK_EQ(syscall(SYS_close, fd), 0);
	CHECK_EQ(fd_internal_copy(STDOUT_FILENO, &slot), 0);
	CHECK(fd_internal_is_intact(&slot));
	fd_internal_close(&slot);
}
