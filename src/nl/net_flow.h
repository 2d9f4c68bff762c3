/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What routing looks at: the facts of a packet, or of a connection that is to be
 * made. */
#ifndef NL_NET_FLOW_H
#define NL_NET_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ipaddr.h"

/* The bits of the TOS byte by which routes and plain rules are chosen, on new
 * kernels too; only a rule's dscp looks at more. */
enum { NET_TOS_ROUTE_MASK = 0x1c, NET_TOS_DSCP_MASK = 0xfc };

/* A member that is not known is zero; an address that is not known is the wildcard. */
struct net_flow {
	struct ip_addr dst;
	/* any: to be chosen */
	struct ip_addr src;
	/* SO_BINDTODEVICE, IP_PKTINFO, IP_UNICAST_IF; 0: any */
	int oif;
	/* SO_MARK */
	uint32_t mark;
	/* who made the socket */
	uint32_t uid;
	/* host order */
	uint16_t sport;
	uint16_t dport;
	uint8_t proto;
	/* the whole byte, as IP_TOS has it */
	uint8_t tos;
	/* SO_DONTROUTE, MSG_DONTROUTE */
	bool is_on_link_only;
	/* IP_TRANSPARENT: the source need not be ours */
	bool is_any_src;
};

#endif
