/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Links, addresses, rules and neighbours out of messages; routes have a file of
 * their own. */
#include "config.h"

#include "nl/netlink_parse.h"

#include <errno.h>
#include <limits.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "nl/netlink_attr.h"

/* Attributes of rules that are newer than the oldest headers we build with. */
enum {
	FRA_DSCP_ = 25,
	FRA_SPORT_MASK_ = 28,
	FRA_DPORT_MASK_ = 29,
	FRA_DSCP_MASK_ = 30,
	FRA_LAST = FRA_DSCP_MASK_,
};

static enum link_kind kind_from_name(const char *name)
{
	static const struct {
		const char *name;
		enum link_kind kind;
	} kinds[] = {
		{ "veth", LINK_VETH },	     { "vlan", LINK_VLAN },
		{ "macvlan", LINK_MACVLAN }, { "macvtap", LINK_MACVLAN },
		{ "ipvlan", LINK_IPVLAN },   { "ipvtap", LINK_IPVLAN },
		{ "bridge", LINK_BRIDGE },   { "bond", LINK_BOND },
		{ "team", LINK_TEAM },	     { "vrf", LINK_VRF },
		{ "dummy", LINK_DUMMY },     { "tun", LINK_TUN },
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	}
	return LINK_OTHER;
}

/* IFLA_INFO_KIND and IFLA_INFO_SLAVE_KIND; a kind with a longer name than any we
 * know is an other one. */
static enum link_kind get_kind(const struct attr *attr)
{
	char name[16];

	return attr_get_name(attr, name, sizeof(name)) ? kind_from_name(name)
						       : LINK_OTHER;
}

static bool get_vlan_id(const struct attr *nest, struct link_info *out)
{
	struct attr attrs[IFLA_VLAN_ID + 1];

	return attr_sort_nested(nest, attrs, IFLA_VLAN_ID) >= 0 &&
	       attr_get_u16(&attrs[IFLA_VLAN_ID], &out->vlan_id);
}

static bool get_link_info(const struct attr *nest, struct link_info *out)
{
	struct attr attrs[IFLA_INFO_SLAVE_KIND + 1];

	if (attr_sort_nested(nest, attrs, IFLA_INFO_SLAVE_KIND) < 0)
		return false;
	if (attr_is_present(&attrs[IFLA_INFO_KIND]))
		out->kind = get_kind(&attrs[IFLA_INFO_KIND]);
	if (out->master)
		out->master_kind =
			attr_is_present(&attrs[IFLA_INFO_SLAVE_KIND])
				? get_kind(&attrs[IFLA_INFO_SLAVE_KIND])
				: LINK_OTHER;
	return out->kind != LINK_VLAN ||
	       get_vlan_id(&attrs[IFLA_INFO_DATA], out);
}

static bool get_xdp(const struct attr *nest, struct link_info *out)
{
	struct attr attrs[IFLA_XDP_PROG_ID + 1];
	uint8_t mode = LINK_XDP_NONE;

	if (attr_sort_nested(nest, attrs, IFLA_XDP_PROG_ID) < 0 ||
	    !attr_get_u8(&attrs[IFLA_XDP_ATTACHED], &mode) ||
	    !attr_get_u32(&attrs[IFLA_XDP_PROG_ID], &out->xdp_prog_id))
		return false;
	out->xdp_mode = MIN(mode, (uint8_t)LINK_XDP_SEVERAL);
	return true;
}

static bool get_hw_addr(const struct attr *attr, struct link_info *out)
{
	size_t len = 0;

	if (!attr_get_bytes(attr, out->addr, sizeof(out->addr), &len))
		return false;
	out->addr_len = (uint32_t)len;
	return true;
}

/* The index of the link below means another one in another namespace. */
static bool get_lower(const struct attr *attrs, struct link_info *out)
{
	if (attr_is_present(&attrs[IFLA_LINK_NETNSID]))
		return true;
	if (!attr_get_index(&attrs[IFLA_LINK], &out->lower))
		return false;
	if (out->lower == out->ifindex)
		out->lower = 0;
	return true;
}

int netlink_parse_link(const struct nlmsghdr *msg, struct link_info *out)
{
	struct attr attrs[IFLA_XDP + 1];
	struct ifinfomsg head;

	if (attr_sort_message(msg, &head, sizeof(head), attrs, IFLA_XDP) < 0 ||
	    head.ifi_index <= 0)
		return -EBADMSG;
	/* A bridge speaks of its ports with messages of its own. */
	if (head.ifi_family != AF_UNSPEC)
		return NETLINK_NOT_OURS;
	*out = (struct link_info){
		.ifindex = head.ifi_index,
		.flags = head.ifi_flags,
		.hw_type = head.ifi_type,
		.kind = head.ifi_flags & IFF_LOOPBACK ? LINK_LOOPBACK
						      : LINK_PLAIN,
	};
	if (msg->nlmsg_type == RTM_DELLINK)
		return 0;
	/* Wireless drivers send events that have next to nothing in them. */
	if (!attr_is_present(&attrs[IFLA_IFNAME]) ||
	    !attr_is_present(&attrs[IFLA_MTU]))
		return NETLINK_NOT_OURS;
	return attr_get_name(&attrs[IFLA_IFNAME], out->name,
			     sizeof(out->name)) &&
			       attr_get_u32(&attrs[IFLA_MTU], &out->mtu) &&
			       attr_get_u32(&attrs[IFLA_GROUP], &out->group) &&
			       attr_get_index(&attrs[IFLA_MASTER],
					      &out->master) &&
			       get_lower(attrs, out) &&
			       get_hw_addr(&attrs[IFLA_ADDRESS], out) &&
			       get_link_info(&attrs[IFLA_LINKINFO], out) &&
			       get_xdp(&attrs[IFLA_XDP], out)
		       ? 0
		       : -EBADMSG;
}

/* IFA_LOCAL is this end of a point-to-point link, where IFA_ADDRESS is the other
 * one. IPv6 has only the latter in the usual case. */
int netlink_parse_addr(const struct nlmsghdr *msg, struct addr_info *out)
{
	struct attr attrs[IFA_FLAGS + 1];
	struct ifaddrmsg head;
	const struct attr *local, *prefix;
	unsigned base;

	if (attr_sort_message(msg, &head, sizeof(head), attrs, IFA_FLAGS) < 0)
		return -EBADMSG;
	if (head.ifa_family != AF_INET && head.ifa_family != AF_INET6)
		return NETLINK_NOT_OURS;
	base = head.ifa_family == AF_INET ? IP_PREFIX_V4 : 0;
	if (head.ifa_index == 0 || head.ifa_index > INT_MAX ||
	    base + head.ifa_prefixlen > IP_PREFIX_MAX)
		return -EBADMSG;
	local = &attrs[IFA_LOCAL];
	prefix = &attrs[IFA_ADDRESS];
	if (!attr_is_present(local))
		local = prefix;
	if (!attr_is_present(prefix))
		prefix = local;
	if (!attr_is_present(local))
		return -EBADMSG;
	*out = (struct addr_info){
		.ifindex = (int)head.ifa_index,
		.prefix_len = base + head.ifa_prefixlen,
		.scope = head.ifa_scope,
		.flags = head.ifa_flags,
	};
	return attr_get_addr(local, head.ifa_family, &out->local) &&
			       attr_get_addr(prefix, head.ifa_family,
					     &out->prefix) &&
			       attr_get_addr(&attrs[IFA_BROADCAST],
					     head.ifa_family,
					     &out->broadcast) &&
			       attr_get_u32(&attrs[IFA_FLAGS], &out->flags)
		       ? 0
		       : -EBADMSG;
}

static bool get_range(const struct attr *attr, struct policy_ports *out)
{
	struct fib_rule_port_range range = { 0 };
	size_t len = sizeof(range);

	if (!attr_get_bytes(attr, &range, sizeof(range), &len) ||
	    len != sizeof(range))
		return false;
	out->first = range.start;
	out->last = range.end;
	return true;
}

static bool get_uids(const struct attr *attr, struct policy *out)
{
	struct fib_rule_uid_range range = { 0, UINT32_MAX };
	size_t len = sizeof(range);

	if (!attr_get_bytes(attr, &range, sizeof(range), &len) ||
	    len != sizeof(range))
		return false;
	out->uid_first = range.start;
	out->uid_last = range.end;
	return true;
}

/* A mark without a mask is compared whole. */
static bool get_mark(const struct attr *attrs, struct policy *out)
{
	if (attr_is_present(&attrs[FRA_FWMARK]))
		out->mark_mask = UINT32_MAX;
	return attr_get_u32(&attrs[FRA_FWMARK], &out->mark) &&
	       attr_get_u32(&attrs[FRA_FWMASK], &out->mark_mask);
}

/* The six bits of DSCP, which we keep where they are in the TOS byte. */
static bool get_dscp(const struct attr *attrs, struct policy *out)
{
	uint8_t dscp = 0, mask = 0;

	if (attr_is_present(&attrs[FRA_DSCP_]))
		mask = 0x3f;
	if (!attr_get_u8(&attrs[FRA_DSCP_], &dscp) ||
	    !attr_get_u8(&attrs[FRA_DSCP_MASK_], &mask) || dscp > 0x3f ||
	    mask > 0x3f)
		return false;
	out->dscp = (uint8_t)(dscp << 2);
	out->dscp_mask = (uint8_t)(mask << 2);
	return true;
}

/* As prefix lengths of IPv4, all ones for none. */
static bool get_suppressors(const struct attr *attrs, struct policy *out)
{
	uint32_t len = UINT32_MAX, group = UINT32_MAX;

	if (!attr_get_u32(&attrs[FRA_SUPPRESS_PREFIXLEN], &len) ||
	    !attr_get_u32(&attrs[FRA_SUPPRESS_IFGROUP], &group))
		return false;
	if (len != UINT32_MAX)
		out->suppress_len = (int)MIN(len + IP_PREFIX_V4,
					     (uint32_t)IP_PREFIX_MAX);
	if (group != UINT32_MAX)
		out->suppress_group = group;
	return true;
}

static bool get_prefixes(const struct fib_rule_hdr *head,
			 const struct attr *attrs, struct policy *out)
{
	if (head->src_len > 32 || head->dst_len > 32 ||
	    (head->src_len && !attr_is_present(&attrs[FRA_SRC])) ||
	    (head->dst_len && !attr_is_present(&attrs[FRA_DST])))
		return false;
	if (head->src_len)
		out->src_len = IP_PREFIX_V4 + head->src_len;
	if (head->dst_len)
		out->dst_len = IP_PREFIX_V4 + head->dst_len;
	return attr_get_addr(&attrs[FRA_SRC], AF_INET, &out->src) &&
	       attr_get_addr(&attrs[FRA_DST], AF_INET, &out->dst);
}

static bool get_policy(const struct fib_rule_hdr *head,
		       const struct attr *attrs, struct policy *out)
{
	uint8_t is_l3mdev = 0;

	out->table = head->table;
	if (!attr_get_u32(&attrs[FRA_PRIORITY], &out->priority) ||
	    !attr_get_u32(&attrs[FRA_TABLE], &out->table) ||
	    !attr_get_u32(&attrs[FRA_GOTO], &out->target) ||
	    !attr_get_name(&attrs[FRA_IIFNAME], out->iif, sizeof(out->iif)) ||
	    !attr_get_name(&attrs[FRA_OIFNAME], out->oif, sizeof(out->oif)) ||
	    !attr_get_u8(&attrs[FRA_L3MDEV], &is_l3mdev) ||
	    !attr_get_u8(&attrs[FRA_IP_PROTO], &out->proto) ||
	    !attr_get_u16(&attrs[FRA_SPORT_MASK_], &out->sport.mask) ||
	    !attr_get_u16(&attrs[FRA_DPORT_MASK_], &out->dport.mask))
		return false;
	out->is_l3mdev = is_l3mdev;
	return get_prefixes(head, attrs, out) &&
	       get_range(&attrs[FRA_SPORT_RANGE], &out->sport) &&
	       get_range(&attrs[FRA_DPORT_RANGE], &out->dport) &&
	       get_uids(&attrs[FRA_UID_RANGE], out) && get_mark(attrs, out) &&
	       get_dscp(attrs, out) && get_suppressors(attrs, out);
}

int netlink_parse_policy(const struct nlmsghdr *msg, struct policy *out)
{
	struct attr attrs[FRA_LAST + 1];
	struct fib_rule_hdr head;
	int highest = attr_sort_message(msg, &head, sizeof(head), attrs, FRA_LAST);

	if (highest < 0)
		return -EBADMSG;
	if (head.family != AF_INET)
		return NETLINK_NOT_OURS;
	*out = (struct policy){
		.action = head.action,
		.tos = head.tos,
		.is_inverted = head.flags & FIB_RULE_INVERT,
		.is_foreign = highest > FRA_LAST ||
			      attr_is_present(&attrs[FRA_TUN_ID]),
		.uid_last = UINT32_MAX,
		.suppress_len = -1,
		.suppress_group = -1,
	};
	return get_policy(&head, attrs, out) ? 0 : -EBADMSG;
}

int netlink_parse_neigh(const struct nlmsghdr *msg, struct neigh_info *out)
{
	struct attr attrs[NDA_LLADDR + 1];
	struct ndmsg head;
	size_t hw_len = 0;

	if (attr_sort_message(msg, &head, sizeof(head), attrs, NDA_LLADDR) < 0)
		return -EBADMSG;
	if ((head.ndm_family != AF_INET && head.ndm_family != AF_INET6) ||
	    (head.ndm_flags & NTF_PROXY))
		return NETLINK_NOT_OURS;
	if (head.ndm_ifindex <= 0 || !attr_is_present(&attrs[NDA_DST]))
		return -EBADMSG;
	*out = (struct neigh_info){
		.ifindex = head.ndm_ifindex,
		.state = head.ndm_state,
	};
	if (!attr_get_addr(&attrs[NDA_DST], head.ndm_family, &out->addr) ||
	    !attr_get_bytes(&attrs[NDA_LLADDR], out->hw_addr,
			    sizeof(out->hw_addr), &hw_len))
		return -EBADMSG;
	out->hw_len = (uint16_t)hw_len;
	return 0;
}

int netlink_parse_netconf(const struct nlmsghdr *msg,
			  struct netlink_netconf *out)
{
	struct attr attrs[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN + 1];
	struct netconfmsg head;
	uint32_t ifindex = 0, rp_filter = UINT32_MAX;

	if (attr_sort_message(msg, &head, sizeof(head), attrs,
			 NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN) < 0)
		return -EBADMSG;
	if (head.ncm_family != AF_INET)
		return NETLINK_NOT_OURS;
	if (!attr_is_present(&attrs[NETCONFA_IFINDEX]) ||
	    !attr_get_u32(&attrs[NETCONFA_IFINDEX], &ifindex) ||
	    !attr_get_u32(&attrs[NETCONFA_RP_FILTER], &rp_filter))
		return -EBADMSG;
	*out = (struct netlink_netconf){
		.ifindex = (int)ifindex,
		.rp_filter = (int)rp_filter,
		.has_linkdown = attr_is_present(
			&attrs[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN]),
	};
	return 0;
}
