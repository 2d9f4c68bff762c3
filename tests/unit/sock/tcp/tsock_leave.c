/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Going back: by which number. */
#include "config.h"

#include "sock/tcp/tsock_leave.c"

#include "tests/support/test.h"

/* Where nothing else is. */
enum { CLOSED_FD = 700, COPY_FD = 701, TWIN_FD = 702 };

static struct tsock t;

/* A call waits by the duplicate that the close has left it; a copy keeps the socket. */
TEST(who_leaves_by_a_closed_number_finds_the_copy)
{
	struct fd_visit visit;
	int fd = CLOSED_FD;

	fd_ops_fill(&tsock_ops);
	fd_object_init(&t.sock.obj, &tsock_ops, 0);
	CHECK_EQ(fd_table_install(COPY_FD, &t.sock.obj), 0);
	atomic_store(&t.seen_fd, CLOSED_FD);
	atomic_store(&t.twin_fd, TWIN_FD);
	CHECK(begin_leaving(&visit, &t, &fd));
	CHECK_EQ(fd, COPY_FD);
	fd_visit_end(&visit);
}
