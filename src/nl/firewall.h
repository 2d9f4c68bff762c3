/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whatever in this namespace would look at a packet on its way through the kernel
 * (netfilter chains, xfrm policies), and never sees an accelerated one.
 */
#ifndef NL_FIREWALL_H
#define NL_FIREWALL_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { FIREWALL_TEXT_SIZE = 512 };

struct text;

/*
 * Asks the kernel. Returns how many things were found, and in `text` (of `size`
 * bytes, best FIREWALL_TEXT_SIZE) their names, as in "nftables inet filter input,
 * 2 xfrm policies", cut if need be. 0: nothing looks at packets. -EPERM: nothing
 * was found, but the process may not see everything.
 */
int firewall_read(char *text, size_t size) MUST_CHECK;

/* The pure half: what one answer adds to the text. Each returns how many things it
 * named, or -EBADMSG. */

/* NFT_MSG_NEWCHAIN: a chain that hangs in a hook of local packets. */
int firewall_name_chain(const struct nlmsghdr *msg, struct text *out)
	MUST_CHECK;
/* XFRM_MSG_NEWSPDINFO */
int firewall_name_policies(const struct nlmsghdr *msg, struct text *out)
	MUST_CHECK;
/* The names of iptables' tables, one a line. */
int firewall_name_tables(const char *lines, struct text *out);

#endif
