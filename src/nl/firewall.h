/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Everything in this namespace that would look at a packet on its way through the
 * kernel, and that never sees an accelerated one: netfilter's chains, xfrm's
 * policies, filters of tc, BPF programs. Two things are not found: netfilter
 * programs written in BPF, since no message lists them, and queues that shape
 * traffic.
 */
#ifndef NL_FIREWALL_H
#define NL_FIREWALL_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { FIREWALL_TEXT_SIZE = 512 };

/* Longest name we show; nftables allows 256. */
enum { FIREWALL_NAME_SIZE = 65 };

struct netlink_ops;
struct text;

enum firewall_kind {
	/* of nftables */
	FIREWALL_CHAIN,
	/* how many policies of xfrm there are */
	FIREWALL_POLICIES,
	/* an interface other than the loopback; this alone is not a finding */
	FIREWALL_LINK,
	/* an interface that has filters of tc in one direction */
	FIREWALL_FILTERS,
};

/* One thing that the kernel has; the members of other kinds are 0. */
struct firewall_row {
	enum firewall_kind kind;
	/* NFPROTO_; a chain that hangs in a hook has one (NF_INET_) */
	uint8_t family;
	bool has_hook;
	uint32_t hook;
	/* cut if need be; may hold any byte */
	char table[FIREWALL_NAME_SIZE];
	char chain[FIREWALL_NAME_SIZE];
	uint64_t policy_cnt;
	int ifindex;
	/* may hold any byte */
	char link[IF_NAMESIZE];
	bool is_egress;
};

typedef void firewall_take_fn(void *ctx, const struct firewall_row *row);

/*
 * Asks the kernel. Returns how many things were found, and writes their names to
 * `text` (of `size` bytes, best FIREWALL_TEXT_SIZE), for example "nftables inet
 * filter input, 2 xfrm policies". What does not fit is cut. 0: nothing looks at
 * packets. -EPERM: nothing was found, but the process may not see everything.
 * `is_later`: sockets are accelerated already, for which there may be a program of tcx of our
 * own. So those whose names may not be read do not count.
 */
int firewall_read(const struct netlink_ops *ops, bool is_later, char *text,
		  size_t size) MUST_CHECK;

/* The pure half: it adds one answer to the text. Both functions return how many
 * things they named. */

/* Of the chains, those are named that are attached to a hook for local packets. */
int firewall_name_row(const struct firewall_row *row, struct text *out);
/* The names of iptables' tables, one a line. */
int firewall_name_tables(const char *lines, struct text *out);

/* Begins the next thing in the text: "nftables inet". */
void firewall_begin_name(const char *what, struct text *out);
/* Goes on with a name that may hold any byte. */
void firewall_add_name(const char *name, struct text *out);

#endif
