/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A line of /proc/net/udp or tcp, or of those for IPv6: a socket of some process, and
 * whether it stands in the way of one of ours. Pure.
 */
#ifndef SOCK_PORT_ROW_H
#define SOCK_PORT_ROW_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "pkt/flow_key.h"

struct port_row {
	/* as an endpoint has it: port 0 is not connected, :: is any address */
	struct flow_key key;
	ino_t inode;
	bool is_ipv6;
	/* of TCP */
	bool listens;
};

/* False for a line that is not one, as the head of the file. */
bool port_row_parse(const char *line, struct port_row *out) MUST_CHECK;

/* Whether Linux may give the row's socket what a rule for `key` brings: they have
 * the same name, or the row's is the more special one. */
bool port_row_competes(const struct port_row *row, const struct flow_key *key);

#endif
