/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes rows of policy rules: from libnl's object, and from what this does not
 * have. */
#include "config.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <netlink/route/rule.h>
#include <string.h>

#include "nl/libnl/form.h"
#include "nl/libnl/rows.h"

/* Attributes of rules that are newer than the oldest headers we build with. */
enum {
	FRA_DSCP_ = 25,
	FRA_SPORT_MASK_ = 28,
	FRA_DPORT_MASK_ = 29,
	FRA_DSCP_MASK_ = 30,
	FRA_LAST = FRA_DSCP_MASK_,
};

static int check_policy(struct nlmsghdr *msg, struct nlattr **attrs)
{
	static const struct nla_policy policy[FRA_LAST + 1] = {
		[FRA_DST] = FORM_SIZE(4),
		[FRA_SRC] = FORM_SIZE(4),
		[FRA_IIFNAME] = FORM_NAME,
		[FRA_GOTO] = FORM_U32,
		[FRA_PRIORITY] = FORM_U32,
		[FRA_FWMARK] = FORM_U32,
		[FRA_TUN_ID] = FORM_BYTES(8),
		[FRA_SUPPRESS_IFGROUP] = FORM_U32,
		[FRA_SUPPRESS_PREFIXLEN] = FORM_U32,
		[FRA_TABLE] = FORM_U32,
		[FRA_FWMASK] = FORM_U32,
		[FRA_OIFNAME] = FORM_NAME,
		[FRA_L3MDEV] = FORM_U8,
		[FRA_UID_RANGE] = FORM_SIZE(sizeof(struct fib_rule_uid_range)),
		[FRA_IP_PROTO] = FORM_U8,
		[FRA_SPORT_RANGE] = FORM_SIZE(
			sizeof(struct fib_rule_port_range)),
		[FRA_DPORT_RANGE] = FORM_SIZE(
			sizeof(struct fib_rule_port_range)),
		[FRA_DSCP_] = FORM_U8,
		[FRA_SPORT_MASK_] = FORM_U16,
		[FRA_DPORT_MASK_] = FORM_U16,
		[FRA_DSCP_MASK_] = FORM_U8,
	};
	static const struct form form = { sizeof(struct fib_rule_hdr), FRA_LAST,
					  policy };

	return form_check(msg, &form, attrs);
}

/* -- what libnl's object has -------------------------------------------------- */

/* The length is 0 if there is no address. */
static bool take_prefix(struct nl_addr *addr, uint8_t len, struct ip_addr *out,
			uint8_t *len_out)
{
	if (len > 32 || (len && !addr))
		return false;
	if (len)
		*len_out = (uint8_t)(IP_PREFIX_V4 + len);
	return rows_get_addr(addr, AF_INET, out);
}

/* NULL: any interface. */
static bool take_name(const char *name, char out[IF_NAMESIZE])
{
	if (name && !*name)
		return false;
	strncpy(out, name ? name : "", IF_NAMESIZE - 1);
	return true;
}

static void take_ports(struct rtnl_rule *rule,
		       int (*get)(struct rtnl_rule *, uint16_t *, uint16_t *),
		       struct policy_ports *out)
{
	uint16_t first, last;

	if (get(rule, &first, &last) < 0)
		return;
	out->first = first;
	out->last = last;
}

struct reading {
	const struct fib_rule_hdr *head;
	struct policy *out;
};

static int take_rule(struct nl_object *obj, void *ctx)
{
	struct rtnl_rule *rule = (struct rtnl_rule *)obj;
	const struct reading *reading = ctx;
	const struct fib_rule_hdr *head = reading->head;
	struct policy *out = reading->out;

	out->action = rtnl_rule_get_action(rule);
	out->tos = (uint8_t)rtnl_rule_get_dsfield(rule);
	out->table = rtnl_rule_get_table(rule);
	out->priority = rtnl_rule_get_prio(rule);
	out->target = rtnl_rule_get_goto(rule);
	out->mark = rtnl_rule_get_mark(rule);
	take_ports(rule, rtnl_rule_get_sport, &out->sport);
	take_ports(rule, rtnl_rule_get_dport, &out->dport);
	return take_name(rtnl_rule_get_iif(rule), out->iif) &&
			       take_name(rtnl_rule_get_oif(rule), out->oif) &&
			       take_prefix(rtnl_rule_get_src(rule),
					   head->src_len, &out->src,
					   &out->src_len) &&
			       take_prefix(rtnl_rule_get_dst(rule),
					   head->dst_len, &out->dst,
					   &out->dst_len) ?
		       0 :
		       -EBADMSG;
}

/* -- what it does not have, or does not tell from zero ------------------------- */

static uint8_t u8_or(const struct nlattr *attr, uint8_t otherwise)
{
	return attr ? nla_get_u8(attr) : otherwise;
}

static uint16_t u16_or(const struct nlattr *attr, uint16_t otherwise)
{
	return attr ? nla_get_u16(attr) : otherwise;
}

static uint32_t u32_or(const struct nlattr *attr, uint32_t otherwise)
{
	return attr ? nla_get_u32(attr) : otherwise;
}

/* Takes the six bits of DSCP. We keep them at their place in the TOS byte. */
static bool take_dscp(struct nlattr *const *attrs, struct policy *out)
{
	uint8_t dscp = u8_or(attrs[FRA_DSCP_], 0);
	uint8_t mask = u8_or(attrs[FRA_DSCP_MASK_],
			     attrs[FRA_DSCP_] ? 0x3f : 0);

	if (dscp > 0x3f || mask > 0x3f)
		return false;
	out->dscp = (uint8_t)(dscp << 2);
	out->dscp_mask = (uint8_t)(mask << 2);
	return true;
}

/* Takes the suppressors. Lengths count as those of IPv4 prefixes; all ones mean
 * that there is none. */
static void take_suppressors(struct nlattr *const *attrs, struct policy *out)
{
	uint32_t len = u32_or(attrs[FRA_SUPPRESS_PREFIXLEN], UINT32_MAX);
	uint32_t group = u32_or(attrs[FRA_SUPPRESS_IFGROUP], UINT32_MAX);

	if (len != UINT32_MAX)
		out->suppress_len = len > 32 ? IP_PREFIX_MAX :
					       (int)(len + IP_PREFIX_V4);
	if (group != UINT32_MAX)
		out->suppress_group = group;
}

static void take_uids(const struct nlattr *attr, struct policy *out)
{
	struct fib_rule_uid_range range = { 0, UINT32_MAX };

	if (attr)
		nla_memcpy(&range, attr, sizeof(range));
	out->uid_first = range.start;
	out->uid_last = range.end;
}

static bool take_attrs(struct nlattr *const *attrs, struct policy *out)
{
	/* A mark without a mask is compared whole. */
	out->mark_mask = u32_or(attrs[FRA_FWMASK],
				attrs[FRA_FWMARK] ? UINT32_MAX : 0);
	out->proto = u8_or(attrs[FRA_IP_PROTO], 0);
	out->is_l3mdev = u8_or(attrs[FRA_L3MDEV], 0);
	out->sport.mask = u16_or(attrs[FRA_SPORT_MASK_], 0);
	out->dport.mask = u16_or(attrs[FRA_DPORT_MASK_], 0);
	take_uids(attrs[FRA_UID_RANGE], out);
	take_suppressors(attrs, out);
	return take_dscp(attrs, out);
}

/* RTM_NEWRULE, RTM_DELRULE, of IPv4 */
int rows_read_policy(struct nl_msg *msg, struct net_row *row)
{
	const struct fib_rule_hdr *head = nlmsg_data(nlmsg_hdr(msg));
	struct reading reading = { head, &row->policy };
	struct nlattr *attrs[FRA_LAST + 1];
	int highest;

	/* other families have addresses of other sizes */
	if (nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof(*head)) &&
	    head->family != AF_INET)
		return ROWS_NONE;
	highest = check_policy(nlmsg_hdr(msg), attrs);
	if (highest < 0)
		return -EBADMSG;
	row->policy = (struct policy){
		.is_inverted = head->flags & FIB_RULE_INVERT,
		.is_foreign = highest > FRA_LAST || attrs[FRA_TUN_ID],
		.suppress_len = -1,
		.suppress_group = -1,
	};
	if (!take_attrs(attrs, &row->policy))
		return -EBADMSG;
	return rows_parse(msg, take_rule, &reading);
}
