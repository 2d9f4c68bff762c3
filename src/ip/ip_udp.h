/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Received UDP: whether a datagram's header and checksum are right. Its bytes are a
 * packet that begins with the UDP header, or lie in one piece.
 */
#ifndef IP_IP_UDP_H
#define IP_IP_UDP_H

#include <stdbool.h>

#include "base/checksum.h"
#include "pkt/pkt.h"
#include "pkt/wire.h"

enum ip_udp_verdict {
	IP_UDP_GOOD,
	IP_UDP_HEADER, /* its length lies */
	IP_UDP_CSUM,
};

/* `len` bytes of the packet are IP's payload. `may_be_partial`: the checksum may be no
 * more than the sum of the pseudo header, left to a card that the packet never met. */
enum ip_udp_verdict ip_udp_judge(const struct wire_ipv4 *ip,
				 const struct pkt *pkt, uint32_t len,
				 bool may_be_partial);

/* The sum over a UDP header and its payload in one piece, on top of `sum`: whether it is
 * right. */
bool ip_udp_is_sum_right(const struct wire_udp *udp, size_t len, uint64_t sum);

/* A sum of words is right when 2^16 - 1 divides it; dividing by a constant is cheaper
 * than folding. */
static ALWAYS_INLINE bool ip_udp_is_sum_complete(uint64_t sum)
{
	return sum % 0xffff == 0;
}

/* The same as ip_udp_judge for a datagram in one piece that fills its IP packet:
 * `pseudo` is the sum of the addresses and the protocol. */
static ALWAYS_INLINE bool ip_udp_is_good(const struct wire_udp *udp, size_t len,
					 uint64_t pseudo, bool may_be_partial)
{
	if (UNLIKELY(be16toh(udp->len) != len || len < sizeof(*udp)))
		return false;
	pseudo += udp->len;
	if (LIKELY(!udp->check ||
		   (may_be_partial &&
		    ip_udp_is_sum_complete(pseudo + 0xffff - udp->check))))
		return true;
	return ip_udp_is_sum_right(udp, len, pseudo);
}

#endif
