/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From messages of rtnetlink to rows (nl/net_row.h), by libnl's objects where they
 * have what we need, and attribute by attribute where they have not.
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
 * Any bytes whose header's length is true. `msg` is the caller's own copy, of which
 * attributes may be hidden afterwards (form.h). 0: there is a row; ROWS_NONE;
 * -EBADMSG: the message makes no sense; -ENOMEM: it is lost. `is_dump` is copied to
 * the row.
 */
int rows_read(struct nl_msg *msg, bool is_dump, struct row_room *out)
	MUST_CHECK;

/* -- the parts (inside this folder) ------------------------------------------- */

/* What an object of libnl was made of a message, borrowed by the visitor until it
 * returns. */
typedef int rows_visit_fn(struct nl_object *obj, void *ctx);

/* Has libnl parse a message that fits its form, and returns what `visit` says of
 * the object; -EBADMSG or -ENOMEM when there is none. */
int rows_parse(struct nl_msg *msg, rows_visit_fn *visit, void *ctx) MUST_CHECK;
/* -ENOMEM or -EBADMSG for an error of libnl. */
int rows_error(int nl_error);

/* An address of the family, whose length must be right; NULL leaves `out` alone. */
bool rows_get_addr(const struct nl_addr *addr, int family,
		   struct ip_addr *out) MUST_CHECK;
/* The same of an attribute. */
bool rows_get_addr_attr(const struct nlattr *attr, int family,
			struct ip_addr *out) MUST_CHECK;
/* An index of an interface: 0 or positive. */
bool rows_get_index(uint32_t value, int *out) MUST_CHECK;

int rows_read_link(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_addr(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_policy(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_neigh(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
int rows_read_netconf(struct nl_msg *msg, struct net_row *row) MUST_CHECK;
/* Routes, and what was learned of them. */
int rows_read_route(struct nl_msg *msg, struct row_room *out) MUST_CHECK;

#endif
