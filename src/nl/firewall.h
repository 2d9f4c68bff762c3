/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whatever in this namespace would look at a packet on its way through the kernel
 * (netfilter hooks, xfrm policies), and never sees an accelerated one.
 */
#ifndef NL_FIREWALL_H
#define NL_FIREWALL_H

#include <stddef.h>

#include "base/compiler.h"

enum { FIREWALL_TEXT_SIZE = 512 };

/*
 * Asks the kernel. Returns how many things were found, and in `text` (of `size`
 * bytes, best FIREWALL_TEXT_SIZE) their names, as in "nftables inet filter input,
 * 2 xfrm policies", cut if need be. 0: nothing looks at packets. -EPERM: the
 * process may not know.
 */
int firewall_read(char *text, size_t size) MUST_CHECK;

#endif
