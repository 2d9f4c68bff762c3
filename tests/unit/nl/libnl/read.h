/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One message after the other, read as the connection does it. */
#ifndef UNIT_NL_LIBNL_READ_H
#define UNIT_NL_LIBNL_READ_H

#include "nl/libnl/rows.h"
#include "tests/unit/nl/build.h"

#define ALIGNED __attribute__((aligned(4)))
#define MSG(bytes) ((const struct nlmsghdr *)(bytes))

static struct row_room room;
static struct message m;

/* As the connection has it done: on a copy of the message. */
static int read_as(const struct nlmsghdr *head, bool is_dump)
{
	struct nl_msg *msg = nlmsg_convert((struct nlmsghdr *)head);
	int rc;

	CHECK(msg);
	/* nothing is left of the one before */
	memset(&room, 0xa5, sizeof(room));
	rc = rows_read(msg, is_dump, &room);
	nlmsg_free(msg);
	return rc;
}

/* The row of a message, which must be of this kind. */
static int read_row(const struct nlmsghdr *head, enum net_row_kind kind)
{
	int rc = read_as(head, false);

	if (rc == 0)
		CHECK_EQ(room.row.kind, kind);
	return rc;
}

#endif
