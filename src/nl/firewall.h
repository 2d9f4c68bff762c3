/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whatever in this namespace would look at a packet on its way through the kernel
 * (netfilter chains, xfrm policies), and never sees an accelerated one.
 */
#ifndef NL_FIREWALL_H
#define NL_FIREWALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { FIREWALL_TEXT_SIZE = 512 };

/* Longest name we show; nftables allows 256. */
enum { FIREWALL_NAME_SIZE = 65 };

struct netlink_ops;
struct text;

/* One thing that the kernel has: a chain of nftables, or the number of policies. */
struct firewall_row {
	bool is_policies;
	/* NFPROTO_; a chain that hangs in a hook has one (NF_INET_) */
	uint8_t family;
	bool has_hook;
	uint32_t hook;
	/* cut if need be; may hold any byte */
	char table[FIREWALL_NAME_SIZE];
	char chain[FIREWALL_NAME_SIZE];
	uint64_t policy_cnt;
};

typedef void firewall_take_fn(void *ctx, const struct firewall_row *row);

/*
 * Asks the kernel. Returns how many things were found, and in `text` (of `size`
 * bytes, best FIREWALL_TEXT_SIZE) their names, as in "nftables inet filter input,
 * 2 xfrm policies", cut if need be. 0: nothing looks at packets. -EPERM: nothing
 * was found, but the process may not see everything.
 */
int firewall_read(const struct netlink_ops *ops, char *text, size_t size)
	MUST_CHECK;

/* The pure half: what one answer adds to the text. Both return how many things they
 * named. */

/* A chain counts that hangs in a hook of local packets. */
int firewall_name_row(const struct firewall_row *row, struct text *out);
/* The names of iptables' tables, one a line. */
int firewall_name_tables(const char *lines, struct text *out);

#endif
