/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram that is too long for the link, cut into fragments (RFC 791, section
 * 3.2). Here is only arithmetic: whoever sends copies the bytes. The headers of all
 * fragments come from one, and the transport checksum must be known before the first
 * fragment leaves, since it covers what is in the others.
 *
 *	struct ip_frag_walk walk;
 *	struct ip_frag frag;
 *
 *	err = ip_frag_begin(&walk, &header, len, mtu);
 *	while (!err && ip_frag_next(&walk, &frag))
 *		send(frag.header, data + frag.offset, frag.len);
 */
#ifndef IP_IP_FRAG_H
#define IP_IP_FRAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "pkt/wire.h"

struct ip_frag {
	/* complete, checksum included */
	struct wire_ipv4 header;
	/* The bytes that it carries, of those that follow the IP header of the whole
	 * datagram. The transport header is among them. */
	uint32_t offset;
	uint32_t len;
};

struct ip_frag_walk {
	/* the header and the length of the whole datagram */
	struct wire_ipv4 header;
	uint32_t len;
	/* how much each fragment except the last carries: a multiple of 8 */
	uint32_t piece_len;
	uint32_t next;
};

/*
 * `header` has no options. Its length, offset, more-bit and checksum are filled in
 * here. Everything else is taken over, so no other datagram may have its
 * identification. `len` bytes follow it. -EMSGSIZE: no IP packet is that long; or it
 * does not fit, and may not be fragmented. -EINVAL: IP does not allow such an MTU.
 */
int ip_frag_begin(struct ip_frag_walk *walk, const struct wire_ipv4 *header,
		  uint32_t len, uint32_t mtu) MUST_CHECK;
/* Makes the next fragment. False: there is none left. A datagram that fits comes out
 * whole. */
bool ip_frag_next(struct ip_frag_walk *walk, struct ip_frag *out);

/* How many fragments there will be. */
uint32_t ip_frag_cnt(const struct ip_frag_walk *walk);

/* The checksum of a UDP datagram, as it is stored. `udp` has ports and length;
 * `payload_sum` is the partial sum of what follows it. The result is never 0, which
 * would mean that there is no checksum (RFC 768). */
uint16_t ip_udp_check(const struct wire_ipv4 *ip, const struct wire_udp *udp,
		      uint32_t payload_sum);

#endif
