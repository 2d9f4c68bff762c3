/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The policy rules (ip-rule(8)) in the kernel's order, and whether one of them
 * matches a flow. Pure, no locking.
 */
#ifndef NL_POLICY_TAB_H
#define NL_POLICY_TAB_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"
#include "base/list.h"

struct link_tab;
struct net_flow;

/* A range of ports, both ends included. With a mask: the ports that have the same
 * value as the first one in the bits of the mask. 0 to 0: any port. */
struct policy_ports {
	uint16_t first;
	uint16_t last;
	uint16_t mask;
};

struct policy {
	struct ip_addr src;
	struct ip_addr dst;
	/* routes over a link of this group are not used; -1: all are */
	int64_t suppress_group;
	/* routes of this prefix length (of 128) or a shorter one are not used; -1:
	 * all are */
	int suppress_len;
	uint32_t priority;
	uint32_t table;
	/* of FR_ACT_GOTO: the priority to go on with */
	uint32_t target;
	uint32_t mark;
	uint32_t mark_mask;
	uint32_t uid_first;
	uint32_t uid_last;
	/* empty: any */
	char iif[IF_NAMESIZE];
	char oif[IF_NAMESIZE];
	struct policy_ports sport;
	struct policy_ports dport;
	/* count all 128 bits; 0: any address */
	uint8_t src_len;
	uint8_t dst_len;
	/* FR_ACT_ */
	uint8_t action;
	/* the three bits of the TOS byte that routing has always looked at;
	 * 0: any */
	uint8_t tos;
	/* the byte's upper six bits under a mask; mask 0: any */
	uint8_t dscp;
	uint8_t dscp_mask;
	/* 0: any */
	uint8_t proto;
	bool is_inverted;
	/* has a selector or action this library does not follow */
	bool is_foreign;
	/* for packets of devices in a VRF only */
	bool is_l3mdev;
	uint16_t zero;
};
_Static_assert(sizeof(struct policy) == 128,
	       "no padding: policies compare as memory");

struct policy_entry {
	struct policy policy;
	uint32_t epoch;
	struct list in_tab;
};

struct policy_tab {
	/* by priority; among equals, the one added last comes last */
	struct list policies;
	unsigned policy_cnt;
	uint32_t epoch;
};

enum policy_verdict {
	POLICY_PASSES,
	POLICY_MATCHES,
	/* the answer depends on something that this library does not know */
	POLICY_UNKNOWN,
};

void policy_tab_init(struct policy_tab *tab);
void policy_tab_destroy(struct policy_tab *tab);

/* Adds the rule, even if there is an equal one: the kernel allows that. -ENOMEM. */
int policy_tab_add(struct policy_tab *tab, const struct policy *policy)
	MUST_CHECK;
bool policy_tab_has(const struct policy_tab *tab, const struct policy *policy);
/* Removes the first rule that equals this one. Returns whether there was one. */
bool policy_tab_remove(struct policy_tab *tab, const struct policy *policy);

/* Around a new reading of all rules. policy_tab_meet() adds a rule unless an equal
 * one is known that was not met since the mark. 1: it was added, 0: it was known,
 * or -ENOMEM. The sweep returns whether anything was removed. */
void policy_tab_mark(struct policy_tab *tab);
int policy_tab_meet(struct policy_tab *tab, const struct policy *policy)
	MUST_CHECK;
bool policy_tab_sweep(struct policy_tab *tab);

/* Whether there are only the rules that every namespace has at its beginning:
 * local, main, default. */
bool policy_tab_is_default(const struct policy_tab *tab);

enum policy_verdict policy_match(const struct policy *policy,
				 const struct net_flow *flow,
				 const struct link_tab *links);

#endif
