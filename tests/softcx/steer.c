/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules from commands, and frames by rules; see steer.h. */
#include "config.h"

#include "steer.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "qp.h"

/* The filters as libibverbs sends them; both halves have this layout. */
struct ipv4_ext {
	uint32_t src_be;
	uint32_t dst_be;
	uint8_t proto;
	uint8_t tos;
	uint8_t ttl;
	uint8_t flags;
};

enum { MAX_TAG = 0xffffff };

/* A field of a specification: into value and mask. */
#define FIELD(rule, key_member, spec_value, spec_mask)                      \
	do {                                                                \
		memcpy(&(rule)->value.key_member, &(spec_value),            \
		       sizeof(spec_value));                                 \
		memcpy(&(rule)->mask.key_member, &(spec_mask),              \
		       sizeof(spec_mask));                                  \
	} while (0)

static int parse_eth(const uint8_t *spec, size_t half, struct rule *rule)
{
	struct ib_uverbs_flow_eth_filter value, mask;
	uint16_t tci, tci_mask;

	if (half != sizeof(value))
		return -EINVAL;
	memcpy(&value, spec, half);
	memcpy(&mask, spec + half, half);
	FIELD(rule, dmac, value.dst_mac, mask.dst_mac);
	FIELD(rule, smac, value.src_mac, mask.src_mac);
	FIELD(rule, ether_type_be, value.ether_type, mask.ether_type);
	tci = value.vlan_tag & htons(0xefff);
	tci_mask = mask.vlan_tag & htons(0xefff);
	FIELD(rule, vlan_be, tci, tci_mask);
	if (tci_mask)
		rule->value.has_vlan = rule->mask.has_vlan = 1;
	return 0;
}

static void need_l3(struct rule *rule, enum frame_l3 l3)
{
	rule->value.l3 = (uint8_t)l3;
	rule->mask.l3 = 0xff;
}

/* The short form has the addresses only. */
static int parse_ipv4(const uint8_t *spec, size_t half, struct rule *rule)
{
	struct ipv4_ext value = { 0 }, mask = { 0 };

	if (half != 8 && half != sizeof(value))
		return -EINVAL;
	memcpy(&value, spec, half);
	memcpy(&mask, spec + half, half);
	if (mask.flags)
		return -EOPNOTSUPP;
	need_l3(rule, FRAME_L3_IPV4);
	FIELD(rule, src, value.src_be, mask.src_be);
	FIELD(rule, dst, value.dst_be, mask.dst_be);
	FIELD(rule, proto, value.proto, mask.proto);
	FIELD(rule, tos, value.tos, mask.tos);
	FIELD(rule, ttl, value.ttl, mask.ttl);
	return 0;
}

static int parse_ipv6(const uint8_t *spec, size_t half, struct rule *rule)
{
	struct ib_uverbs_flow_ipv6_filter value, mask;

	if (half != sizeof(value))
		return -EINVAL;
	memcpy(&value, spec, half);
	memcpy(&mask, spec + half, half);
	if (mask.flow_label)
		return -EOPNOTSUPP;
	need_l3(rule, FRAME_L3_IPV6);
	FIELD(rule, src, value.src_ip, mask.src_ip);
	FIELD(rule, dst, value.dst_ip, mask.dst_ip);
	FIELD(rule, proto, value.next_hdr, mask.next_hdr);
	FIELD(rule, tos, value.traffic_class, mask.traffic_class);
	FIELD(rule, ttl, value.hop_limit, mask.hop_limit);
	return 0;
}

static int parse_l4(const uint8_t *spec, size_t half, struct rule *rule,
		    enum frame_l4 l4)
{
	struct ib_uverbs_flow_tcp_udp_filter value, mask;

	if (half != sizeof(value))
		return -EINVAL;
	memcpy(&value, spec, half);
	memcpy(&mask, spec + half, half);
	rule->value.l4 = (uint8_t)l4;
	rule->mask.l4 = 0xff;
	FIELD(rule, dport_be, value.dst_port, mask.dst_port);
	FIELD(rule, sport_be, value.src_port, mask.src_port);
	return 0;
}

static int parse_tag(const uint8_t *spec, size_t len, struct rule *rule)
{
	if (len != 8)
		return -EINVAL;
	memcpy(&rule->tag, spec, sizeof(rule->tag));
	return rule->tag > MAX_TAG ? -EINVAL : 0;
}

/* `spec` is what follows the header. */
static int parse_spec(uint32_t type, const uint8_t *spec, size_t len,
		      struct rule *rule)
{
	switch (type) {
	case IBV_FLOW_SPEC_ETH:
		return parse_eth(spec, len / 2, rule);
	case IBV_FLOW_SPEC_IPV4:
	case IBV_FLOW_SPEC_IPV4_EXT:
		return parse_ipv4(spec, len / 2, rule);
	case IBV_FLOW_SPEC_IPV6:
		return parse_ipv6(spec, len / 2, rule);
	case IBV_FLOW_SPEC_TCP:
		return parse_l4(spec, len / 2, rule, FRAME_L4_TCP);
	case IBV_FLOW_SPEC_UDP:
		return parse_l4(spec, len / 2, rule, FRAME_L4_UDP);
	case IBV_FLOW_SPEC_ACTION_TAG:
		return parse_tag(spec, len, rule);
	case IBV_FLOW_SPEC_ACTION_DROP:
		rule->is_drop = true;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int parse_specs(const struct ib_uverbs_flow_attr *attr, size_t size,
		       struct rule *rule)
{
	const uint8_t *at = (const uint8_t *)attr->flow_specs;
	size_t left = size - sizeof(*attr);

	for (unsigned int i = 0; i < attr->num_of_specs; i++) {
		struct ib_uverbs_flow_spec_hdr hdr;
		int ret;

		if (left < sizeof(hdr))
			return -EINVAL;
		memcpy(&hdr, at, sizeof(hdr));
		if (hdr.size < sizeof(hdr) || hdr.size > left)
			return -EINVAL;
		ret = parse_spec(hdr.type, at + sizeof(hdr),
				 hdr.size - sizeof(hdr), rule);
		if (ret)
			return ret;
		at += hdr.size;
		left -= hdr.size;
	}
	return 0;
}

/* Values outside the mask do not matter, and are to compare equal. */
static void normalise(struct rule *rule)
{
	uint8_t *value = (uint8_t *)&rule->value;
	const uint8_t *mask = (const uint8_t *)&rule->mask;

	for (size_t i = 0; i < sizeof(rule->mask); i++) {
		value[i] &= mask[i];
		rule->n_bits += (unsigned int)__builtin_popcount(mask[i]);
	}
}

int rule_parse(const struct ib_uverbs_flow_attr *attr, size_t size,
	       struct rule *rule_out)
{
	int ret;

	if (size < sizeof(*attr) || attr->port != 1)
		return -EINVAL;
	*rule_out = (struct rule){
		.priority = attr->priority,
		.is_trap = !(attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP),
	};
	if (attr->flags & ~(uint32_t)IBV_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	switch (attr->type) {
	case IBV_FLOW_ATTR_NORMAL:
		break;
	case IBV_FLOW_ATTR_MC_DEFAULT:
		rule_out->value.dmac[0] = rule_out->mask.dmac[0] = 1;
		rule_out->rank = 1;
		break;
	case IBV_FLOW_ATTR_ALL_DEFAULT:
		rule_out->rank = 1;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (rule_out->rank && attr->num_of_specs)
		return -EINVAL;
	ret = parse_specs(attr, size, rule_out);
	normalise(rule_out);
	return ret;
}

/* Negative, zero, positive: a goes before, with, after b. */
static int compare(const struct rule *a, const struct rule *b)
{
	int ret;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority < b->priority ? -1 : 1;
	if (a->n_bits != b->n_bits)
		return a->n_bits > b->n_bits ? -1 : 1;
	ret = memcmp(&a->mask, &b->mask, sizeof(a->mask));
	return ret ? ret : memcmp(&a->value, &b->value, sizeof(a->value));
}

/* Some other rule that makes the same claim on frames, or NULL. */
static const struct rule *find_claim(const struct dev *dev,
				     const struct rule *rule)
{
	const struct rule *other;

	LIST_FOR_EACH(other, &dev->rules, link) {
		if (other != rule && !other->is_ended &&
		    memcmp(&other->mask, &rule->mask, sizeof(rule->mask)) == 0 &&
		    memcmp(&other->value, &rule->value,
			   sizeof(rule->value)) == 0)
			return other;
	}
	return NULL;
}

static void insert(struct dev *dev, struct rule *rule)
{
	struct rule *other;

	LIST_FOR_EACH(other, &dev->rules, link) {
		if (compare(rule, other) < 0)
			break;
	}
	list_insert_after(other->link.prev, &rule->link);
}

static bool has_room(const struct dev *dev)
{
	const struct rule *rule;
	uint32_t cnt = 0;

	LIST_FOR_EACH(rule, &dev->rules, link)
		cnt++;
	return cnt < the_card->conf.rules_max;
}

/* Those that have ended, for the next ones: a card does not free the memory of a program,
 * which may end them where it has interrupted malloc. */
static struct list spare = LIST_INIT(spare);

static struct rule *rule_alloc(void)
{
	struct list *link = list_pop_front(&spare);

	return link ? LIST_ENTRY(link, struct rule, link) : malloc(sizeof(struct rule));
}

int rule_create(struct ctx *ctx, struct qp *qp, const struct rule *params,
		struct rule **rule_out)
{
	struct dev *dev = ctx->dev;
	const struct rule *claim = find_claim(dev, params);
	struct rule *rule;
	int ret = -ENOMEM;

	if (!has_room(dev))
		return -ENOSPC;
	/* The kernel's filter has one verdict for a match. */
	if (claim && claim->is_trap != params->is_trap)
		return -EOPNOTSUPP;
	rule = rule_alloc();
	if (!rule)
		return ret;
	*rule = *params;
	rule->ctx = ctx;
	rule->qp = qp;
	if (!claim) {
		ret = filter_add(&dev->filter, &rule->value, &rule->mask,
				 rule->is_trap);
		if (ret)
			goto err_free;
	}
	ret = obj_add(ctx, &rule->obj, OBJ_RULE);
	if (ret)
		goto err_claim;
	insert(dev, rule);
	qp->obj.n_users++;
	*rule_out = rule;
	return 0;

err_claim:
	if (!claim)
		filter_remove(&dev->filter, &rule->value, &rule->mask);
err_free:
	free(rule);
	return ret;
}

void rule_end(struct rule *rule)
{
	struct dev *dev = rule->ctx->dev;

	if (!rule->is_ended && !find_claim(dev, rule))
		filter_remove(&dev->filter, &rule->value, &rule->mask);
	rule->is_ended = true;
}

void rule_destroy(struct rule *rule)
{
	rule_end(rule);
	list_remove(&rule->link);
	rule->qp->obj.n_users--;
	obj_remove(rule->ctx, &rule->obj);
	list_push_back(&spare, &rule->link);
}

unsigned int steer_frame(struct dev *dev, const uint8_t *frame, size_t len,
			 bool is_dry)
{
	const struct rule *winner = NULL;
	struct frame_info info;
	unsigned int n = 0;
	struct rule *rule;

	frame_parse(frame, len, &info);
	LIST_FOR_EACH(rule, &dev->rules, link) {
		if (winner && compare(winner, rule) != 0)
			break;
		if (!winner &&
		    !frame_key_matches(&info.key, &rule->value, &rule->mask))
			continue;
		winner = rule;
		n++;
		if (is_dry)
			continue;
		if (rule->is_drop)
			dev->stats.rx_dropped_by_rule++;
		else
			rq_receive(rule->qp, frame, len, &info, rule->tag);
	}
	return n;
}
