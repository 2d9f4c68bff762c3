/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * To which port of a bond a frame goes, by xmit_hash_policy, as the kernel's document on
 * bonding has it for IPv4. What belongs to one connection has one value, but for pieces
 * of datagrams under the policies with ports: they have none, as in the kernel.
 */
#ifndef DEV_BOND_BOND_HASH_H
#define DEV_BOND_BOND_HASH_H

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "pkt/wire.h"

/* The numbers of IFLA_BOND_XMIT_HASH_POLICY. The two of capsules look into tunnels, which
 * none of our frames is; the last one has the VLAN, which all frames of a device share. */
enum bond_policy {
	BOND_LAYER2 = 0,
	BOND_LAYER34 = 1,
	BOND_LAYER23 = 2,
	BOND_ENCAP23 = 3,
	BOND_ENCAP34 = 4,
	BOND_VLAN_SRCMAC = 5,
};

static inline uint32_t bond_hash_eth(const struct wire_eth *eth)
{
	return (uint32_t)(eth->dst[5] ^ eth->src[5]) ^ WIRE_ETH_IPV4;
}

static inline uint32_t bond_hash_src(const struct wire_eth *eth)
{
	uint32_t vendor = (uint32_t)(eth->src[0] << 16 | eth->src[1] << 8 | eth->src[2]);
	uint32_t dev = (uint32_t)(eth->src[3] << 16 | eth->src[4] << 8 | eth->src[5]);

	return vendor ^ dev;
}

/* Both ports, as they lie in the header. */
static inline uint32_t bond_hash_ports(const struct wire_ipv4 *ip, size_t len)
{
	size_t ip_len = (ip->version_ihl & 0xfu) * 4;
	uint32_t ports = 0;

	if (len >= ip_len + sizeof(ports) &&
	    !(ip->frag & htobe16(WIRE_IPV4_MF | WIRE_IPV4_OFFSET)))
		memcpy(&ports, (const uint8_t *)ip + ip_len, sizeof(ports));
	return ports;
}

/* `frame` has at least Ethernet's and IP's header; a VLAN's word may stand in place of
 * Ethernet's type. */
static inline uint32_t bond_hash(unsigned policy, const void *frame, size_t len)
{
	const struct wire_eth *eth = frame;
	const struct wire_ipv4 *ip = (const void *)(eth + 1);
	bool has_ports = policy == BOND_LAYER34 || policy == BOND_ENCAP34;
	uint32_t hash;

	if (policy == BOND_VLAN_SRCMAC)
		return bond_hash_src(eth);
	if (UNLIKELY(len < sizeof(*eth) + sizeof(*ip)) ||
	    (policy != BOND_LAYER23 && policy != BOND_ENCAP23 && !has_ports))
		return bond_hash_eth(eth);
	hash = has_ports ? bond_hash_ports(ip, len - sizeof(*eth)) : bond_hash_eth(eth);
	hash ^= ip->src ^ ip->dst;
	hash ^= hash >> 16;
	hash ^= hash >> 8;
	return has_ports ? hash >> 1 : hash;
}

#endif
