/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judges received UDP: whether the header and the checksum of a datagram are right.
 * The datagram is a packet that begins with the UDP header, or lies in one piece.
 */
#ifndef IP_IP_UDP_H
#define IP_IP_UDP_H

#include <stdbool.h>

#include "base/checksum.h"
#include "pkt/pkt.h"
#include "pkt/wire.h"

enum ip_udp_verdict {
	IP_UDP_GOOD,
	IP_UDP_HEADER, /* the length in it cannot be right */
	IP_UDP_CSUM,
};

/* `len` bytes of the packet are the payload of IP. `may_be_partial`: the checksum
 * may cover the pseudo header alone, because it was left to a card that the packet
 * never met. */
enum ip_udp_verdict ip_udp_judge(const struct wire_ipv4 *ip,
				 const struct pkt *pkt, uint32_t len,
				 bool may_be_partial);

/* Whether the checksum is right, for a UDP header and its payload in one piece.
 * `sum` is what is summed up already: the pseudo header. */
bool ip_udp_is_sum_right(const struct wire_udp *udp, size_t len, uint64_t sum);

/* A sum of words is right when 2^16 - 1 divides it. To divide by a constant is
 * cheaper than to fold. */
static ALWAYS_INLINE bool ip_udp_is_sum_complete(uint64_t sum)
{
	return sum % 0xffff == 0;
}

/* Whether the datagram fills its IP packet. */
static inline bool ip_udp_fills(const struct wire_udp *udp, size_t len)
{
	return be16toh(udp->len) == len && len >= sizeof(*udp);
}

/* The same as ip_udp_judge, for a datagram in one piece that fills its IP packet.
 * `pseudo` is the sum of the addresses and the protocol. */
static ALWAYS_INLINE bool ip_udp_is_good(const struct wire_udp *udp, size_t len,
					 uint64_t pseudo, bool may_be_partial)
{
	if (UNLIKELY(!ip_udp_fills(udp, len)))
		return false;
	pseudo += udp->len;
	if (LIKELY(!udp->check ||
		   (may_be_partial &&
		    ip_udp_is_sum_complete(pseudo + 0xffff - udp->check))))
		return true;
	return ip_udp_is_sum_right(udp, len, pseudo);
}

#endif
