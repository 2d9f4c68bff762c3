/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Builds flow rules (rule.h). */
#include "config.h"

#include "dev/rdma/rule.h"

#include <errno.h>
#include <string.h>

#include "pkt/wire.h"

/* They follow each other without a gap, as the kernel expects them. */
_Static_assert(offsetof(struct rule_attr, eth) == sizeof(struct ibv_flow_attr),
	       "the first specification follows the head");
_Static_assert(offsetof(struct rule_attr, ipv4) ==
		       offsetof(struct rule_attr, eth) +
			       sizeof(struct ibv_flow_spec_eth),
	       "the second follows the first");
_Static_assert(offsetof(struct rule_attr, ports) ==
		       offsetof(struct rule_attr, ipv4) +
			       sizeof(struct ibv_flow_spec_ipv4),
	       "the third follows the second");
_Static_assert(offsetof(struct rule_attr, tag) ==
		       offsetof(struct rule_attr, ports) +
			       sizeof(struct ibv_flow_spec_tcp_udp),
	       "the last follows the third");

/* Lower goes first. A card does not let a rule say that there is no tag: what names none
 * takes frames with any. So rules of VLANs go before it. */
enum { PRIORITY_CONNECTED, PRIORITY_OTHERS, PRIORITY_WITHOUT_VLAN };

static void set_addr(uint32_t *value, uint32_t *mask,
		     const struct ip_addr *addr)
{
	if (ip_addr_is_any(addr))
		return;
	*value = ip_addr_v4(addr);
	*mask = UINT32_MAX;
}

static void set_port(uint16_t *value, uint16_t *mask, __be16 port)
{
	if (!port)
		return;
	*value = port;
	*mask = UINT16_MAX;
}

static bool is_v4_or_any(const struct ip_addr *addr)
{
	return ip_addr_is_v4(addr) || ip_addr_is_any(addr);
}

int rule_build(const struct flow_rule *rule, const uint8_t mac[6],
	       unsigned port, uint16_t vlan_id, uint32_t tag,
	       struct rule_attr *attr)
{
	bool has_source = !ip_addr_is_any(&rule->src);

	if (rule->verdict != FLOW_TO_RING ||
	    (rule->proto != WIRE_PROTO_UDP && rule->proto != WIRE_PROTO_TCP) ||
	    !ip_addr_is_v4(&rule->dst) || !is_v4_or_any(&rule->src))
		return -EOPNOTSUPP;
	memset(attr, 0, sizeof(*attr));
	attr->head.type = IBV_FLOW_ATTR_NORMAL;
	attr->head.size = sizeof(*attr);
	attr->head.priority = (has_source ? PRIORITY_CONNECTED : PRIORITY_OTHERS) +
			      (vlan_id ? 0 : PRIORITY_WITHOUT_VLAN);
	attr->head.num_of_specs = tag ? 4 : 3;
	attr->head.port = (uint8_t)port;

	attr->eth.type = IBV_FLOW_SPEC_ETH;
	attr->eth.size = sizeof(attr->eth);
	memcpy(attr->eth.val.dst_mac, mac, 6);
	memset(attr->eth.mask.dst_mac, 0xff, 6);
	attr->eth.val.ether_type = htobe16(WIRE_ETH_IPV4);
	attr->eth.mask.ether_type = UINT16_MAX;
	if (vlan_id) {
		attr->eth.val.vlan_tag = htobe16(vlan_id);
		attr->eth.mask.vlan_tag = htobe16(WIRE_VLAN_ID);
	}

	attr->ipv4.type = IBV_FLOW_SPEC_IPV4;
	attr->ipv4.size = sizeof(attr->ipv4);
	set_addr(&attr->ipv4.val.dst_ip, &attr->ipv4.mask.dst_ip, &rule->dst);
	set_addr(&attr->ipv4.val.src_ip, &attr->ipv4.mask.src_ip, &rule->src);

	attr->ports.type = rule->proto == WIRE_PROTO_UDP ? IBV_FLOW_SPEC_UDP :
							   IBV_FLOW_SPEC_TCP;
	attr->ports.size = sizeof(attr->ports);
	set_port(&attr->ports.val.dst_port, &attr->ports.mask.dst_port,
		 rule->dst_port);
	set_port(&attr->ports.val.src_port, &attr->ports.mask.src_port,
		 has_source ? rule->src_port : 0);
	if (!tag) {
		attr->head.size -= sizeof(attr->tag);
		return 0;
	}
	attr->tag.type = IBV_FLOW_SPEC_ACTION_TAG;
	attr->tag.size = sizeof(attr->tag);
	attr->tag.tag_id = tag;
	return 0;
}
