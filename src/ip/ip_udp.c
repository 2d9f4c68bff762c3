/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Judges received UDP datagrams (ip_udp.h). */
#include "config.h"

#include "ip/ip_udp.h"

/* The sum over the first `len` bytes of all parts. */
static uint32_t sum_parts(const struct pkt *pkt, uint32_t len)
{
	uint32_t sum = 0, done = 0;

	for (; pkt && done < len; pkt = pkt->next_part) {
		uint32_t part = MIN(pkt->len, len - done);

		sum = csum_block_add(sum, csum_partial(pkt->data, part, 0),
				     done);
		done += part;
	}
	return sum;
}

static uint32_t pseudo_sum(const struct wire_ipv4 *ip,
			   const struct wire_udp *udp)
{
	uint32_t sum = csum_words(&ip->src, 2);

	sum = csum_add(sum, htobe16(WIRE_PROTO_UDP));
	return csum_add(sum, udp->len);
}

/* A checksum of 0 means that there is none. */
static bool is_csum_good(const struct wire_ipv4 *ip, const struct wire_udp *udp,
			 const struct pkt *pkt, bool may_be_partial)
{
	uint32_t pseudo;
	uint16_t folded;

	if (pkt->csum_verdict != PKT_CSUM_UNKNOWN)
		return pkt->csum_verdict == PKT_CSUM_GOOD;
	if (!udp->check)
		return true;
	pseudo = pseudo_sum(ip, udp);
	folded = (uint16_t)~csum_fold(pseudo);
	if (may_be_partial && udp->check == folded)
		return true;
	return csum_fold(csum_add(pseudo,
				  sum_parts(pkt, be16toh(udp->len)))) == 0;
}

enum ip_udp_verdict ip_udp_judge(const struct wire_ipv4 *ip,
				 const struct pkt *pkt, uint32_t len,
				 bool may_be_partial)
{
	const struct wire_udp *udp = (const void *)pkt->data;
	uint32_t udp_len;

	if (UNLIKELY(MIN(pkt->len, len) < sizeof(*udp)))
		return IP_UDP_HEADER;
	udp_len = be16toh(udp->len);
	if (UNLIKELY(udp_len < sizeof(*udp) || udp_len > len))
		return IP_UDP_HEADER;
	return LIKELY(is_csum_good(ip, udp, pkt, may_be_partial)) ? IP_UDP_GOOD :
								   IP_UDP_CSUM;
}

bool ip_udp_is_sum_right(const struct wire_udp *udp, size_t len, uint64_t sum)
{
	uint32_t start = csum_add((uint32_t)sum, (uint32_t)(sum >> 32));

	return csum_fold(csum_partial(udp, len, start)) == 0;
}
