/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connection for the files of this folder: the ops of nl/netlink.h, and its
 * sockets. */
#ifndef NL_LIBNL_CONN_H
#define NL_LIBNL_CONN_H

#include <netlink/netlink.h>

#include "base/compiler.h"
#include "nl/netlink.h"

/* All ops of the module. */
extern const struct netlink_ops libnl_ops;

/* Has libnl make a socket of a protocol, with callbacks but no hooks. 0 or negative
 * errno, which libnl's own numbers do not always tell apart. */
int sock_open(int protocol, struct nl_cb *cb, struct nl_sock **sock_out)
	MUST_CHECK;

/* firewall.c */
int libnl_read_chains(firewall_take_fn *take, void *ctx) MUST_CHECK;
int libnl_read_policies(firewall_take_fn *take, void *ctx) MUST_CHECK;
int libnl_read_filters(firewall_take_fn *take, void *ctx) MUST_CHECK;

#endif
