/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rings of io_uring and contexts of AIO are found, and not looked for all the time. */
#define _GNU_SOURCE
#include "core/rings.h"

#include <linux/aio_abi.h>
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

/* One that is made by an inlined system call, of which nobody tells us. */
TEST(a_ring_is_found_within_a_second)
{
	uint64_t start_ns = clock_monotonic_ns();
	int fd;

	test_apart();
	rings_configure(IO_URING_AUTO);
	CHECK(!rings_look());
	fd = make_ring();
	/* not again within the same half second */
	while (!rings_look())
		CHECK(clock_monotonic_ns() - start_ns < 60 * NS_PER_SEC);
	CHECK(clock_monotonic_ns() - start_ns >= NS_PER_SEC / 2);
	CHECK(rings_are_there());
	/* it may have left something behind */
	close(fd);
	CHECK(rings_look());
}

/* A ring that takes the place of another fd does not change how many there are. */
TEST(a_ring_in_the_place_of_another_fd_is_found_later)
{
	uint64_t start_ns = clock_monotonic_ns();
	int fd, other = dup(0);

	test_apart();
	rings_configure(IO_URING_AUTO);
	CHECK(!rings_look());
	fd = make_ring();
	CHECK_EQ(dup2(fd, other), other);
	close(fd);
	while (!rings_look())
		CHECK(clock_monotonic_ns() - start_ns < 60 * NS_PER_SEC);
}

/* -- contexts of AIO --------------------------------------------------------------- */

static aio_context_t make_context(void)
{
	aio_context_t context = 0;

	CHECK_EQ(syscall(SYS_io_setup, 4, &context), 0);
	return context;
}

/* As syscall() and its wrapper do it together. */
static aio_context_t make_known_context(void)
{
	aio_context_t context;

	rings_context_begin();
	context = make_context();
	rings_context_end(context);
	return context;
}

static void expect_found(void)
{
	uint64_t start_ns = clock_monotonic_ns();

	/* other processes' contexts come and go */
	while (!rings_look()) {
		usleep(10000);
		CHECK(clock_monotonic_ns() - start_ns < 60 * NS_PER_SEC);
	}
}

/* For two looks: the first one after a context was made is never left out. */
static void expect_none(void)
{
	uint64_t start_ns = clock_monotonic_ns();

	while (clock_monotonic_ns() - start_ns < 6 * NS_PER_SEC / 5) {
		usleep(10000);
		CHECK(!rings_look());
	}
}

/* One that is made by an inlined system call, as libaio's are. */
TEST(a_context_is_found_within_a_second)
{
	test_apart();
	rings_configure(IO_URING_AUTO);
	CHECK(!rings_look());
	make_context();
	expect_found();
}

TEST(a_context_that_is_known_is_passed_over)
{
	test_apart();
	rings_configure(IO_URING_AUTO);
	make_known_context();
	make_known_context();
	/* a failing call leaves no trace */
	rings_context_begin();
	rings_context_end(0);
	expect_none();
	make_context();
	expect_found();
}

/* The kernel gives its address away again. */
TEST(a_destroyed_context_is_not_known)
{
	aio_context_t context, other;

	test_apart();
	rings_configure(IO_URING_AUTO);
	context = make_known_context();
	CHECK_EQ(syscall(SYS_io_destroy, context), 0);
	rings_context_gone(context);
	other = make_context();
	CHECK_EQ(other, context);
	expect_found();
}

/* Who makes one is between its system call and telling us. */
TEST(a_context_in_the_making_is_waited_for)
{
	aio_context_t context;

	test_apart();
	rings_configure(IO_URING_AUTO);
	rings_context_begin();
	context = make_context();
	expect_none();
	rings_context_end(context);
	expect_none();
}

/* The thread that was making one is not in the child. */
TEST(a_child_waits_for_no_context_of_its_parents)
{
	test_apart();
	rings_configure(IO_URING_AUTO);
	rings_context_begin();
	rings_forked();
	make_context();
	expect_found();
}

/* More than the list has room for: sockets go to the kernel, which is always right. */
TEST(very_many_contexts_are_the_kernels)
{
	test_apart();
	rings_configure(IO_URING_AUTO);
	for (int i = 0; i < 64; i++)
		make_known_context();
	expect_none();
	make_known_context();
	expect_found();
}

/* -- wishes ------------------------------------------------------------------------ */

TEST(a_ring_that_the_program_makes_by_its_library)
{
	test_apart();
	rings_configure(IO_URING_KERNEL);
	CHECK(!rings_are_there());
	rings_note();
	CHECK(rings_look());
}

TEST(rings_may_be_ignored)
{
	test_apart();
	rings_configure(IO_URING_IGNORE);
	make_ring();
	rings_note();
	CHECK(!rings_look());
}
