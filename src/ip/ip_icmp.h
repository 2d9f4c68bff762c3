/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an ICMP error says (RFC 792, RFC 1191): which packet of ours it is about, and
 * what error a socket gets. Anybody can send such a message; the connection decides
 * whether to believe it.
 */
#ifndef IP_IP_ICMP_H
#define IP_IP_ICMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "pkt/flow_key.h"

struct ip_icmp {
	/* of the packet that is quoted; `local` is its source */
	struct flow_key key;
	/* WIRE_PROTO_TCP or WIRE_PROTO_UDP */
	uint8_t proto;
	/* a connected socket gets the error even without IP_RECVERR */
	bool is_hard;
	/* The MTU of the next hop. 0: the message does not say it, or is about
	 * something else. */
	uint16_t mtu;
	/* -EMSGSIZE: the packet was too large, and may not be fragmented; else the
	 * error that Linux makes of type and code */
	int error;
	/* TCP: the sequence number of the segment */
	uint32_t seq;
	/* length of the packet that is quoted, as its header says */
	uint32_t quoted_len;
};

/* Reads a message, which begins at `data` and has `len` bytes, as the IP header
 * says. -EINVAL: it is cut, its checksum is wrong, or what it quotes makes no sense.
 * -ENOMSG: it reports no error, or is not about TCP or UDP over IPv4. */
int ip_icmp_parse(const uint8_t *data, size_t len, struct ip_icmp *out)
	MUST_CHECK;

#endif
