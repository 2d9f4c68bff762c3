/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Understanding frames; see frame.h. */
#include "config.h"

#include "frame.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/checksum.h"

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_VLAN = 0x8100,
	TYPE_VLAN_AD = 0x88a8,
	IPV4_LEN = 20,
	IPV6_LEN = 40,
	IPV4_FRAGMENT_MASK = 0x3fff, /* more fragments, offset */
};

static uint16_t load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void store_be16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)load_be16(p) << 16 | load_be16(p + 2);
}

static void store_be32(uint8_t *p, uint32_t value)
{
	store_be16(p, (uint16_t)(value >> 16));
	store_be16(p + 2, (uint16_t)value);
}

static void parse_l4(const uint8_t *frame, size_t len, struct frame_info *info,
		     size_t offset)
{
	struct frame_key *key = &info->key;
	size_t need = key->proto == IPPROTO_TCP ? 20 : 8;

	if (info->is_fragment)
		return;
	if (key->proto != IPPROTO_TCP && key->proto != IPPROTO_UDP)
		return;
	if (offset + need > len || offset + need > info->ip_end)
		return;
	key->l4 = key->proto == IPPROTO_TCP ? FRAME_L4_TCP : FRAME_L4_UDP;
	memcpy(&key->sport_be, frame + offset, 2);
	memcpy(&key->dport_be, frame + offset + 2, 2);
	info->l4_offset = offset;
}

static void parse_ipv4(const uint8_t *frame, size_t len, size_t at,
		       struct frame_info *info)
{
	const uint8_t *ip = frame + at;
	struct frame_key *key = &info->key;
	size_t header;

	if (at + IPV4_LEN > len || ip[0] >> 4 != 4)
		return;
	header = (size_t)(ip[0] & 15) * 4;
	if (header < IPV4_LEN || at + header > len)
		return;
	key->l3 = FRAME_L3_IPV4;
	memcpy(key->src, ip + 12, 4);
	memcpy(key->dst, ip + 16, 4);
	key->proto = ip[9];
	key->tos = ip[1];
	key->ttl = ip[8];
	info->is_fragment = load_be16(ip + 6) & IPV4_FRAGMENT_MASK;
	info->ip_end = MIN(len, at + load_be16(ip + 2));
	parse_l4(frame, len, info, at + header);
}

/* Extension headers are not followed: the card's rules name the transport that
 * follows the header directly. */
static void parse_ipv6(const uint8_t *frame, size_t len, size_t at,
		       struct frame_info *info)
{
	const uint8_t *ip = frame + at;
	struct frame_key *key = &info->key;

	if (at + IPV6_LEN > len || ip[0] >> 4 != 6)
		return;
	key->l3 = FRAME_L3_IPV6;
	memcpy(key->src, ip + 8, 16);
	memcpy(key->dst, ip + 24, 16);
	key->proto = ip[6];
	key->tos = (uint8_t)(load_be16(ip) >> 4);
	key->ttl = ip[7];
	info->ip_end = MIN(len, at + IPV6_LEN + load_be16(ip + 4));
	parse_l4(frame, len, info, at + IPV6_LEN);
}

void frame_parse(const uint8_t *frame, size_t len, struct frame_info *info_out)
{
	struct frame_key *key = &info_out->key;
	size_t at = FRAME_ETH_LEN;

	memset(info_out, 0, sizeof(*info_out));
	if (len < at)
		return;
	memcpy(key->dmac, frame, 6);
	memcpy(key->smac, frame + 6, 6);
	memcpy(&key->ether_type_be, frame + 12, 2);
	if (key->ether_type_be == htons(TYPE_VLAN)) {
		if (len < at + FRAME_VLAN_LEN)
			return;
		key->has_vlan = 1;
		key->vlan_be = htons(load_be16(frame + at) & 0xefff);
		memcpy(&key->ether_type_be, frame + at + 2, 2);
		at += FRAME_VLAN_LEN;
	}
	info_out->l3_offset = at;
	if (key->ether_type_be == htons(TYPE_IPV4))
		parse_ipv4(frame, len, at, info_out);
	else if (key->ether_type_be == htons(TYPE_IPV6))
		parse_ipv6(frame, len, at, info_out);
}

bool frame_has_tag(const uint8_t *frame, size_t len)
{
	uint16_t type = len < FRAME_ETH_LEN ? 0 : load_be16(frame + 12);

	return type == TYPE_VLAN || type == TYPE_VLAN_AD;
}

bool frame_key_matches(const struct frame_key *key,
		       const struct frame_key *value,
		       const struct frame_key *mask)
{
	uint64_t k[FRAME_KEY_WORDS], v[FRAME_KEY_WORDS], m[FRAME_KEY_WORDS];
	uint64_t diff = 0;

	memcpy(k, key, sizeof(k));
	memcpy(v, value, sizeof(v));
	memcpy(m, mask, sizeof(m));
	for (size_t i = 0; i < FRAME_KEY_WORDS; i++)
		diff |= (k[i] ^ v[i]) & m[i];
	return !diff;
}

bool frame_l3_is_ok(const uint8_t *frame, const struct frame_info *info)
{
	const uint8_t *ip = frame + info->l3_offset;

	if (info->key.l3 == FRAME_L3_IPV6)
		return true;
	if (info->key.l3 != FRAME_L3_IPV4)
		return false;
	return csum_fold(csum_partial(ip, (size_t)(ip[0] & 15) * 4, 0)) == 0;
}

/* The sum of the pseudo header. */
static uint32_t pseudo_sum(const struct frame_info *info)
{
	const struct frame_key *key = &info->key;
	size_t addr = key->l3 == FRAME_L3_IPV4 ? 4 : 16;
	uint32_t len = (uint32_t)(info->ip_end - info->l4_offset);
	uint8_t tail[4] = { 0, key->proto, (uint8_t)(len >> 8), (uint8_t)len };
	uint32_t sum = csum_partial(key->src, addr, 0);

	sum = csum_partial(key->dst, addr, sum);
	return csum_partial(tail, sizeof(tail), sum);
}

static uint32_t l4_sum(const uint8_t *frame, const struct frame_info *info)
{
	return csum_partial(frame + info->l4_offset,
			    info->ip_end - info->l4_offset, pseudo_sum(info));
}

static size_t l4_csum_offset(const struct frame_info *info)
{
	return info->l4_offset + (info->key.l4 == FRAME_L4_TCP ? 16 : 6);
}

bool frame_l4_is_ok(const uint8_t *frame, const struct frame_info *info)
{
	if (!info->l4_offset)
		return false;
	/* RFC 768: a UDP checksum of zero is none. */
	if (info->key.l4 == FRAME_L4_UDP && info->key.l3 == FRAME_L3_IPV4 &&
	    load_be16(frame + l4_csum_offset(info)) == 0)
		return true;
	return csum_fold(l4_sum(frame, info)) == 0;
}

void frame_put_l3_csum(uint8_t *frame, const struct frame_info *info)
{
	uint8_t *ip = frame + info->l3_offset;
	uint16_t sum;

	if (info->key.l3 != FRAME_L3_IPV4)
		return;
	store_be16(ip + 10, 0);
	sum = csum_fold(csum_partial(ip, (size_t)(ip[0] & 15) * 4, 0));
	memcpy(ip + 10, &sum, 2);
}

void frame_put_l4_csum(uint8_t *frame, const struct frame_info *info)
{
	uint8_t *field;
	uint16_t sum;

	if (!info->l4_offset)
		return;
	field = frame + l4_csum_offset(info);
	store_be16(field, 0);
	sum = csum_fold(l4_sum(frame, info));
	if (!sum && info->key.l4 == FRAME_L4_UDP)
		sum = 0xffff;
	memcpy(field, &sum, 2);
}

size_t frame_segment(uint8_t *segment, const uint8_t *header, size_t header_len,
		     const uint8_t *payload, size_t payload_len,
		     size_t payload_offset, unsigned int index, bool is_last)
{
	size_t len = header_len + payload_len;
	struct frame_info info;
	uint8_t *ip, *tcp;

	memcpy(segment, header, header_len);
	memcpy(segment + header_len, payload, payload_len);
	frame_parse(segment, len, &info);
	ip = segment + info.l3_offset;
	if (info.key.l3 == FRAME_L3_IPV4) {
		store_be16(ip + 2, (uint16_t)(len - info.l3_offset));
		store_be16(ip + 4, (uint16_t)(load_be16(ip + 4) + index));
	} else if (info.key.l3 == FRAME_L3_IPV6) {
		store_be16(ip + 4,
			   (uint16_t)(len - info.l3_offset - IPV6_LEN));
	}
	/* Again: the length in the large frame's header may have been 0. */
	frame_parse(segment, len, &info);
	if (info.key.l4 != FRAME_L4_TCP)
		return len;
	tcp = segment + info.l4_offset;
	store_be32(tcp + 4, load_be32(tcp + 4) + (uint32_t)payload_offset);
	if (!is_last)
		tcp[13] &= (uint8_t)~(FRAME_TCP_FIN | FRAME_TCP_PSH);
	if (index)
		tcp[13] &= (uint8_t)~FRAME_TCP_CWR;
	return len;
}
