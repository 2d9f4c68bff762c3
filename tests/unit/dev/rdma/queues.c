/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What libibverbs opens and closes by itself, while it is hidden from the program. */
#include "config.h"

#include "dev/rdma/queues.c"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "tests/support/test.h"

/* -- the module's other side ---------------------------------------------------------- */

int services_adopt_fd(int fd, _Atomic int *slot)
{
	return fd_internal_adopt(fd, slot);
}

void services_close_fd(_Atomic int *slot)
{
	fd_internal_close(slot);
}

uint64_t stamps_ns(const struct stamps *stamps UNUSED, uint64_t ticks)
{
	return ticks;
}

bool aim_adapt(struct aim *aim UNUSED, const struct aim_params *params UNUSED,
	       uint64_t now_ns UNUSED, uint64_t pkts UNUSED, uint64_t bytes UNUSED)
{
	return false;
}

/* -- cases ---------------------------------------------------------------------------- */

static int make(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

TEST(is_shown_again)
{
	int fd = make(), hidden;

	rdma_hide_fd(&fd);
	hidden = fd;
	CHECK(fd_table_has(hidden));
	rdma_show_fd(&fd);
	CHECK(!fd_table_has(hidden));
	CHECK(fd >= 3 && fd != hidden);
	CHECK(!fd_table_has(fd));
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(close(fd), 0);
}

/* The program has opened all that it may, and there is no number to show it by. But its
 * owner's memory is about to go, so it must not stay hidden. */
TEST(is_closed_where_it_cannot_be_shown)
{
	struct rlimit limit, none;
	int fd = make(), hidden;

	rdma_hide_fd(&fd);
	hidden = fd;
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	rdma_show_fd(&fd);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK_EQ(fd, -1);
	CHECK(!fd_table_has(hidden));
	CHECK_EQ(fcntl(hidden, F_GETFD), -1);
	/* nor a second time */
	rdma_show_fd(&fd);
	CHECK_EQ(fd, -1);
}
