/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "fd/fd_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fd/fd_table.h"
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

TEST(makes_way_for_the_program)
{
	int fd = adopt();

	CHECK_EQ(fd_internal_make_way(fd), 0);
	CHECK(slot != fd);
	CHECK(!fd_table_has(fd));
	CHECK(fd_internal_is_intact(&slot));
	close(fd); /* as the dup2 that follows does */
	CHECK(fd_internal_is_intact(&slot));
	fd_internal_close(&slot);
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

TEST(range_removal_spares_it)
{
	int fd = adopt();

	fd_table_remove_range(3, ~0u);
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
