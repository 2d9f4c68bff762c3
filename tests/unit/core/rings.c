/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rings of io_uring are found, and not looked for all the time. */
#define _GNU_SOURCE
#include "core/rings.h"

#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/test.h"

static int make_ring(void)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, &params);

	CHECK(fd >= 0);
	return fd;
}

/* What is once seen counts for the life of the process: so each case has its own. */
static void in_a_process(void (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		run();
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

/* One that is made by an inlined system call, of which nobody tells us. */
static void find(void)
{
	uint64_t start_ns = clock_monotonic_ns();
	int fd;

	rings_configure(IO_URING_AUTO);
	CHECK(!rings_look());
	fd = make_ring();
	/* not again within the same half second */
	while (!rings_look())
		CHECK(clock_monotonic_ns() - start_ns < 10 * NS_PER_SEC);
	CHECK(clock_monotonic_ns() - start_ns >= NS_PER_SEC / 2);
	CHECK(rings_are_there());
	/* it may have left something behind */
	close(fd);
	CHECK(rings_look());
}

TEST(a_ring_is_found_within_a_second)
{
	in_a_process(find);
}

/* A ring that takes the place of another fd does not change how many there are. */
static void find_in_place(void)
{
	uint64_t start_ns = clock_monotonic_ns();
	int fd, other = dup(0);

	rings_configure(IO_URING_AUTO);
	CHECK(!rings_look());
	fd = make_ring();
	CHECK_EQ(dup2(fd, other), other);
	close(fd);
	while (!rings_look())
		CHECK(clock_monotonic_ns() - start_ns < 20 * NS_PER_SEC);
}

TEST(a_ring_in_the_place_of_another_fd_is_found_later)
{
	in_a_process(find_in_place);
}

static void note(void)
{
	rings_configure(IO_URING_KERNEL);
	CHECK(!rings_are_there());
	rings_note();
	CHECK(rings_look());
}

TEST(a_ring_that_the_program_makes_by_its_library)
{
	in_a_process(note);
}

static void ignore(void)
{
	rings_configure(IO_URING_IGNORE);
	make_ring();
	rings_note();
	CHECK(!rings_look());
}

TEST(rings_may_be_ignored)
{
	in_a_process(ignore);
}
