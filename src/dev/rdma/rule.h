/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flow rules as the kernel's uverbs interface takes them. */
#ifndef DEV_RDMA_RULE_H
#define DEV_RDMA_RULE_H

#include <infiniband/verbs.h>

#include "dev/ring.h"

/* A command: the head, and its specifications one behind the other. */
struct rule_attr {
	struct ibv_flow_attr head;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4 ipv4;
	struct ibv_flow_spec_tcp_udp ports;
	struct ibv_flow_spec_action_tag tag;
};

/* The tag of frames that no rule has one for. */
enum { RULE_TAG_MAX = 0xffffff };

/*
 * Frames for `mac` that the rule names, on this port of the device, with the tag of the
 * VLAN unless `vlan_id` is 0. A rule of a VLAN goes before one of none, which takes frames
 * with any tag, too, and one with a source before one without. `tag` is 1 to
 * RULE_TAG_MAX; 0 is none. -EOPNOTSUPP: a verdict, a protocol or addresses that this
 * cannot say.
 */
int rule_build(const struct flow_rule *rule, const uint8_t mac[6],
	       unsigned port, uint16_t vlan_id, uint32_t tag,
	       struct rule_attr *attr_out) MUST_CHECK;

#endif
