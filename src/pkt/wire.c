/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading and building of IP headers (wire.h). */
#include "pkt/wire.h"

#include <errno.h>

static int read_ipv4(const uint8_t *data, size_t len, struct wire_ip *ip)
{
	const struct wire_ipv4 *header = (const void *)data;
	uint16_t total_len, frag;

	if (len < sizeof(*header))
		return -EINVAL;
	ip->header_len = (uint16_t)(4 * (header->version_ihl & 15));
	total_len = be16toh(header->total_len);
	if (ip->header_len < sizeof(*header) || ip->header_len > len ||
	    total_len < ip->header_len)
		return -EINVAL;
	frag = be16toh(header->frag);
	ip->src = ip_addr_from_v4(header->src);
	ip->dst = ip_addr_from_v4(header->dst);
	ip->proto = header->proto;
	ip->tos = header->tos;
	ip->ttl = header->ttl;
	ip->is_fragment = frag & (WIRE_IPV4_MF | WIRE_IPV4_OFFSET);
	ip->payload_len = (uint16_t)(total_len - ip->header_len);
	return 0;
}

static int read_ipv6(const uint8_t *data, size_t len, struct wire_ip *ip)
{
	const struct wire_ipv6 *header = (const void *)data;

	if (len < sizeof(*header))
		return -EINVAL;
	ip->header_len = sizeof(*header);
	ip->src = ip_addr_from_v6(header->src);
	ip->dst = ip_addr_from_v6(header->dst);
	ip->proto = header->next_header;
	ip->tos = (uint8_t)(be32toh(header->version_class_label) >> 20);
	ip->ttl = header->hop_limit;
	ip->is_fragment = false;
	ip->payload_len = be16toh(header->payload_len);
	return 0;
}

int wire_parse_quoted_ip(const uint8_t *data, size_t len,
			 struct wire_ip *ip_out)
{
	if (len == 0)
		return -EINVAL;
	switch (data[0] >> 4) {
	case 4:
		return read_ipv4(data, len, ip_out);
	case 6:
		return read_ipv6(data, len, ip_out);
	}
	return -EINVAL;
}

int wire_parse_ip(const uint8_t *data, size_t len, struct wire_ip *ip_out)
{
	int rc = wire_parse_quoted_ip(data, len, ip_out);

	if (rc)
		return rc;
	if (ip_out->payload_len > len - ip_out->header_len)
		return -EINVAL;
	if (data[0] >> 4 == 4 &&
	    csum_fold(csum_partial(data, ip_out->header_len, 0)) != 0)
		return -EINVAL;
	return 0;
}

static size_t build_ipv4(uint8_t *data, const struct wire_ip *ip, uint16_t id)
{
	struct wire_ipv4 *header = (void *)data;

	*header = (struct wire_ipv4){
		.version_ihl = 0x45,
		.tos = ip->tos,
		.total_len = htobe16((uint16_t)(sizeof(*header) +
						ip->payload_len)),
		.id = htobe16(id),
		.frag = htobe16(WIRE_IPV4_DF),
		.ttl = ip->ttl,
		.proto = ip->proto,
		.src = ip_addr_v4(&ip->src),
		.dst = ip_addr_v4(&ip->dst),
	};
	header->check = csum_fold(csum_partial(data, sizeof(*header), 0));
	return sizeof(*header);
}

static size_t build_ipv6(uint8_t *data, const struct wire_ip *ip)
{
	struct wire_ipv6 *header = (void *)data;

	*header = (struct wire_ipv6){
		.version_class_label =
			htobe32(UINT32_C(6) << 28 | (uint32_t)ip->tos << 20),
		.payload_len = htobe16(ip->payload_len),
		.next_header = ip->proto,
		.hop_limit = ip->ttl,
	};
	memcpy(header->src, ip->src.byte, sizeof(header->src));
	memcpy(header->dst, ip->dst.byte, sizeof(header->dst));
	return sizeof(*header);
}

size_t wire_build_ip(uint8_t *data, const struct wire_ip *ip, uint16_t id)
{
	return ip_addr_is_v4(&ip->dst) ? build_ipv4(data, ip, id)
				       : build_ipv6(data, ip);
}

uint32_t wire_pseudo_sum(const struct ip_addr *src, const struct ip_addr *dst,
			 enum wire_proto proto, uint32_t len)
{
	uint8_t fixed[8];
	uint32_t sum;

	/* the same words in both families: length and protocol */
	wire_put_u32(fixed, len);
	wire_put_u32(fixed + 4, proto);
	sum = csum_partial(fixed, sizeof(fixed), 0);
	if (ip_addr_is_v4(dst)) {
		sum = csum_add(sum, src->word[3]);
		return csum_add(sum, dst->word[3]);
	}
	sum = csum_partial(src->byte, sizeof(src->byte), sum);
	return csum_partial(dst->byte, sizeof(dst->byte), sum);
}
