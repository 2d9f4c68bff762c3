/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From rtnetlink messages to changes of a net_view. Pure, and safe with any bytes:
 * a message that is cut, that lies about a length or lacks what it must have
 * changes nothing.
 */
#ifndef NL_NETLINK_MSG_H
#define NL_NETLINK_MSG_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "nl/net_view.h"

/* The tables, in the order in which they are read. */
enum netlink_part {
	NETLINK_LINKS,
	NETLINK_ADDRS,
	NETLINK_ROUTES,
	NETLINK_POLICIES,
	NETLINK_NEIGHS,
	NETLINK_NETCONFS,
	NETLINK_PARTS,
};

#define NETLINK_BIT(part) (1u << (part))

/* What a message did. */
struct netlink_effect {
	/* the table it is about, or NETLINK_PARTS */
	enum netlink_part part;
	/* tables that must be read again, as NETLINK_BITs: the kernel changes
	 * some of them without a word (routes, when a link goes down) */
	unsigned stale;
};

/*
 * The next message of a buffer of `*left` bytes at `*at`, all of whose bytes are
 * there, or NULL at the end; `*at` and `*left` are moved behind it. What remains
 * in `*left` at the end is what could not be read: 0 in a sound buffer.
 */
const struct nlmsghdr *netlink_next(const uint8_t **at, size_t *left);

/* The number in NLMSG_DONE and NLMSG_ERROR: 0 or a negative errno. */
int netlink_error(const struct nlmsghdr *msg);

/* Applies one event, or one answer of a dump (`is_dump`). 0; -EBADMSG: the message
 * makes no sense; -ENOMEM: it is lost, the table must be read again. Messages of
 * other types, families or tables are accepted and change nothing. */
int netlink_apply(struct net_view *view, const struct nlmsghdr *msg,
		  bool is_dump, struct netlink_effect *effect_out) MUST_CHECK;

/* Around the dump of one table. */
void netlink_part_begin(struct net_view *view, enum netlink_part part);
void netlink_part_end(struct net_view *view, enum netlink_part part);

#endif
