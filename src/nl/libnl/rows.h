/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes rows (nl/net_row.h) of messages of rtnetlink: by libnl's objects where they
 * have what we need, and attribute by attribute elsewhere.
 */
#ifndef NL_LIBNL_ROWS_H
#define NL_LIBNL_ROWS_H

#include <netlink/msg.h>

#include "base/compiler.h"
#include "nl/net_row.h"

/* The message is about something else than our tables. */
enum { ROWS_NONE = 1 };

struct row_room {
	struct net_row row;
	/* of a route */
	struct route_hop hops[ROUTE_HOPS_MAX];
};

/*
 * Reads a message of any bytes whose header has the right length. `msg` is the
 * caller's own copy; some attributes in it may be hidden afterwards (form.h). 0:
 * there is a row. ROWS_NONE. -EBADMSG: the message makes no sense. -ENOMEM: the
 * message is lost. `is_dump` is copied to the row.
 */
int rows_read(struct nl_msg *msg, bool is_dump, struct row_room *out)
	MUST_CHECK;

/* -- the parts (inside this folder) ------------------------------------------- */

/* Gets the object that libnl has made of a message. It is borrowed until the
 * visitor returns. */
typedef int rows_visit_fn(struct nl_object *obj, void *ctx);

/* Has libnl parse a message that fits its form, and returns what `visit` says of
 * the object; -EBADMSG or -ENOMEM when there is none. */
int rows_parse(struct nl_msg *msg, rows_visit_fn *visit, void *ctx) MUST_CHECK;
/* -ENOMEM or -EBADMSG for an error of libnl. */
int rows_error(int nl_error);

/* Takes an address of the family, if its length is right. NULL leaves `out` as it
 * is. */
bool rows_get_addr(const struct nl_addr *addr, int family,
		   struct ip_addr *out) MUST_CHECK;
/* Does the same for an attribute. */
bool rows_get_addr_attr(const struct nlattr *attr, int family,
			struct ip_addr *out) MUST_CHECK;
/* Takes the index of an interface: 0 or a positive number. */
bool rows_get_index(uint32_t value, int *out) MUST_CHECK;

int rows_read_link(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_addr(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_policy(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_neigh(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_netconf(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
/* Reads routes, and what the kernel has learned about their destinations. */
int rows_read_route(struct nl_msg *msg, struct row_room *out) MUST_CHECK;

#endif
