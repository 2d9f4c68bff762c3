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

/* -- libibverbs, whose kernel has lost the card or not ------------------------------------- */

static int cq_err;
static unsigned destroyed_chans;

int ibv_destroy_qp(struct ibv_qp *qp UNUSED)
{
	return cq_err;
}

int ibv_destroy_cq(struct ibv_cq *cq UNUSED)
{
	return cq_err;
}

/* It keeps one that a queue refers to. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *chan)
{
	if (cq_err)
		return EBUSY;
	CHECK_EQ(close(chan->fd), 0);
	destroyed_chans++;
	return 0;
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

/* Nobody knows of the channel any more, and the program has all its numbers. */
static void close_queues(int err)
{
	struct ibv_comp_channel chan = { .fd = make() };
	struct ibv_cq cq = { 0 };
	struct ibv_qp qp = { 0 };
	struct rdma_queues queues = {
		.chan = &chan, .rx_cq = &cq, .tx_cq = &cq, .qp = &qp,
	};
	int visible = chan.fd, hidden;

	queues.chan_fd = slot_of(&chan.fd);
	rdma_hide_fd(&chan.fd);
	hidden = chan.fd;
	CHECK(hidden != visible);
	cq_err = err;
	destroyed_chans = 0;
	rdma_queues_close(&queues);
	CHECK_EQ(destroyed_chans, !err);
	CHECK_EQ(fcntl(hidden, F_GETFD), -1);
	CHECK(!fd_table_has(hidden));
	CHECK_EQ(make(), visible);
	CHECK_EQ(close(visible), 0);
}

TEST(queues_end_with_their_channel)
{
	close_queues(0);
}

/* The kernel destroys nothing for a device that it has lost. */
TEST(queues_of_a_lost_card_leave_no_fd)
{
	close_queues(EIO);
}
