/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The headers of frames as they are on the wire, and functions that build and
 * read them. Structs are packed: they may be laid over any address.
 */
#ifndef PKT_WIRE_H
#define PKT_WIRE_H

#include <endian.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checksum.h"
#include "base/compiler.h"
#include "base/ipaddr.h"

#define WIRE_PACKED __attribute__((packed))

enum wire_ethertype {
	WIRE_ETH_IPV4 = 0x0800,
	WIRE_ETH_ARP = 0x0806,
	WIRE_ETH_VLAN = 0x8100,
	WIRE_ETH_IPV6 = 0x86dd,
	WIRE_ETH_VLAN_AD = 0x88a8, /* the outer one of two */
};

enum wire_proto {
	WIRE_PROTO_ICMP = 1,
	WIRE_PROTO_TCP = 6,
	WIRE_PROTO_UDP = 17,
	WIRE_PROTO_ICMPV6 = 58,
};

struct WIRE_PACKED wire_eth {
	uint8_t dst[6];
	uint8_t src[6];
	__be16 type;
};

/* Follows the addresses of an Ethernet header whose type is WIRE_ETH_VLAN. */
struct WIRE_PACKED wire_vlan {
	__be16 tci;
	__be16 type;
};

/* Whether what has this type of Ethernet is a tag. */
static inline bool wire_is_tag(uint16_t type)
{
	return type == WIRE_ETH_VLAN || type == WIRE_ETH_VLAN_AD;
}

/* The parts of a tag's word. */
enum {
	WIRE_VLAN_ID = 0x0fff,
	WIRE_VLAN_ID_MAX = 4094,
	WIRE_VLAN_PCP_SHIFT = 13,
};

/* An Ethernet header with a tag. */
struct WIRE_PACKED wire_vlan_eth {
	struct wire_eth eth; /* of the type WIRE_ETH_VLAN */
	struct wire_vlan tag;
};

struct WIRE_PACKED wire_arp {
	__be16 hw_type;
	__be16 proto_type;
	uint8_t hw_len;
	uint8_t proto_len;
	__be16 op;
	uint8_t sender_mac[6];
	__be32 sender_ip;
	uint8_t target_mac[6];
	__be32 target_ip;
};

struct WIRE_PACKED wire_ipv4 {
	uint8_t version_ihl;
	uint8_t tos;
	__be16 total_len;
	__be16 id;
	__be16 frag;
	uint8_t ttl;
	uint8_t proto;
	__be16 check;
	__be32 src;
	__be32 dst;
};

enum {
	WIRE_IPV4_DF = 0x4000,
	WIRE_IPV4_MF = 0x2000,
	WIRE_IPV4_OFFSET = 0x1fff,
};

struct WIRE_PACKED wire_ipv6 {
	__be32 version_class_label;
	__be16 payload_len;
	uint8_t next_header;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
};

struct WIRE_PACKED wire_udp {
	__be16 src_port;
	__be16 dst_port;
	__be16 len;
	__be16 check;
};

struct WIRE_PACKED wire_tcp {
	__be16 src_port;
	__be16 dst_port;
	__be32 seq;
	__be32 ack;
	/* data offset, reserved, AE; then the flags */
	uint8_t offset_ae;
	uint8_t flags;
	__be16 window;
	__be16 check;
	__be16 urgent;
};

enum wire_tcp_flag {
	WIRE_TCP_FIN = 0x01,
	WIRE_TCP_SYN = 0x02,
	WIRE_TCP_RST = 0x04,
	WIRE_TCP_PSH = 0x08,
	WIRE_TCP_ACK = 0x10,
	WIRE_TCP_URG = 0x20,
	WIRE_TCP_ECE = 0x40,
	WIRE_TCP_CWR = 0x80,
};

struct WIRE_PACKED wire_icmp {
	uint8_t type;
	uint8_t code;
	__be16 check;
	/* ICMP: unused and next-hop MTU; ICMPv6: the MTU in 32 bits */
	__be16 rest_high;
	__be16 rest_low;
};

enum {
	WIRE_ICMP_UNREACHABLE = 3,
	WIRE_ICMP_FRAG_NEEDED = 4, /* code of UNREACHABLE */
	WIRE_ICMPV6_UNREACHABLE = 1,
	WIRE_ICMPV6_TOO_BIG = 2,
};

_Static_assert(sizeof(struct wire_eth) == 14, "wire size");
_Static_assert(sizeof(struct wire_vlan_eth) == 18, "wire size");
_Static_assert(sizeof(struct wire_arp) == 28, "wire size");
_Static_assert(sizeof(struct wire_ipv4) == 20, "wire size");
_Static_assert(sizeof(struct wire_ipv6) == 40, "wire size");
_Static_assert(sizeof(struct wire_udp) == 8, "wire size");
_Static_assert(sizeof(struct wire_tcp) == 20, "wire size");
_Static_assert(sizeof(struct wire_icmp) == 8, "wire size");

/* What an IP header says, whichever its version. */
struct wire_ip {
	struct ip_addr src;
	struct ip_addr dst;
	uint8_t proto;
	uint8_t tos;
	uint8_t ttl;
	/* part of a fragmented datagram; the payload is not a transport header
	 * then, unless it is the first part */
	bool is_fragment;
	uint16_t header_len;
	/* what follows the header, without padding behind the packet */
	uint16_t payload_len;
};

/* Reads the header at `data`, of which `len` bytes exist. The IPv4 header
 * checksum is verified, options are skipped. IPv6 extension headers are not
 * followed: proto is then the first of them. -EINVAL: not a sound IP packet. */
int wire_parse_ip(const uint8_t *data, size_t len, struct wire_ip *ip_out)
	MUST_CHECK;
/* Does the same for the packet that an ICMP error quotes. It may be cut short, and
 * its checksum is not verified. */
int wire_parse_quoted_ip(const uint8_t *data, size_t len,
			 struct wire_ip *ip_out) MUST_CHECK;

/* Writes a header of 20 or 40 bytes, by the family of the addresses, for
 * `payload_len` bytes: don't fragment, identification `id`, checksum included.
 * Returns its length. */
size_t wire_build_ip(uint8_t *data, const struct wire_ip *ip, uint16_t id);

/* The sum of the pseudo header, for a transport packet of `len` bytes. */
uint32_t wire_pseudo_sum(const struct ip_addr *src, const struct ip_addr *dst,
			 enum wire_proto proto, uint32_t len);

/* Reads and writes of whole numbers at any address. */
static inline uint16_t wire_get_u16(const void *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return be16toh(value);
}

static inline uint32_t wire_get_u32(const void *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return be32toh(value);
}

static inline void wire_put_u16(void *to, uint16_t value)
{
	value = htobe16(value);
	memcpy(to, &value, sizeof(value));
}

static inline void wire_put_u32(void *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

#endif
