/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Links out of messages. */
#include "config.h"

#include "nl/libnl/rows.h"

#include <endian.h>
#include <errno.h>
#include <linux/if_bonding.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/route/link.h>
#include <string.h>

#include "nl/libnl/form.h"

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

/* The kernel has one line for each priority of packets that becomes another one than 0. */
static bool take_egress_map(struct nlattr *nest, struct link_info *out)
{
	struct ifla_vlan_qos_mapping line;
	struct nlattr *attr;
	int left;

	nla_for_each_nested(attr, nest, left) {
		if (nla_type(attr) != IFLA_VLAN_QOS_MAPPING)
			continue;
		if (nla_len(attr) < (int)sizeof(line))
			return false;
		memcpy(&line, nla_data(attr), sizeof(line));
		if (line.from < LINK_VLAN_PRIORITIES)
			out->vlan_pcps[line.from] = line.to & 7;
		else
			out->has_far_priorities = 1;
	}
	return left <= 0;
}

static bool take_vlan(struct nlattr *nest, struct link_info *out)
{
	static const struct nla_policy policy[IFLA_VLAN_PROTOCOL + 1] = {
		[IFLA_VLAN_ID] = FORM_U16,
		[IFLA_VLAN_EGRESS_QOS] = FORM_NEST,
		[IFLA_VLAN_PROTOCOL] = FORM_U16,
	};
	static const struct form form = { 0, IFLA_VLAN_PROTOCOL, policy };
	struct nlattr *attrs[IFLA_VLAN_PROTOCOL + 1];

	/* of kernels that know no other */
	out->vlan_proto = ETH_P_8021Q;
	if (!nest)
		return true;
	if (form_check_nested(nest, &form, attrs) < 0)
		return false;
	if (attrs[IFLA_VLAN_ID])
		out->vlan_id = nla_get_u16(attrs[IFLA_VLAN_ID]);
	if (attrs[IFLA_VLAN_PROTOCOL])
		out->vlan_proto = be16toh(nla_get_u16(attrs[IFLA_VLAN_PROTOCOL]));
	return !attrs[IFLA_VLAN_EGRESS_QOS] ||
	       take_egress_map(attrs[IFLA_VLAN_EGRESS_QOS], out);
}

static bool take_bond(struct nlattr *nest, struct link_info *out)
{
	static const struct nla_policy policy[IFLA_BOND_XMIT_HASH_POLICY + 1] = {
		[IFLA_BOND_MODE] = FORM_U8,
		[IFLA_BOND_XMIT_HASH_POLICY] = FORM_U8,
	};
	static const struct form form = { 0, IFLA_BOND_XMIT_HASH_POLICY, policy };
	struct nlattr *attrs[IFLA_BOND_XMIT_HASH_POLICY + 1];

	if (!nest)
		return true;
	if (form_check_nested(nest, &form, attrs) < 0)
		return false;
	if (attrs[IFLA_BOND_MODE])
		out->bond_mode = nla_get_u8(attrs[IFLA_BOND_MODE]);
	if (attrs[IFLA_BOND_XMIT_HASH_POLICY])
		out->bond_policy = nla_get_u8(attrs[IFLA_BOND_XMIT_HASH_POLICY]);
	return true;
}

/* A port of active-backup is active or the backup; of 802.3ad it is active while it
 * distributes. One whose link is going down is used until that is certain (downdelay). */
static bool take_bond_port(struct nlattr *nest, struct link_info *out)
{
	static const struct nla_policy policy[IFLA_BOND_SLAVE_MII_STATUS + 1] = {
		[IFLA_BOND_SLAVE_STATE] = FORM_U8,
		[IFLA_BOND_SLAVE_MII_STATUS] = FORM_U8,
	};
	static const struct form form = { 0, IFLA_BOND_SLAVE_MII_STATUS, policy };
	struct nlattr *attrs[IFLA_BOND_SLAVE_MII_STATUS + 1];

	if (!nest)
		return true;
	if (form_check_nested(nest, &form, attrs) < 0)
		return false;
	out->is_active_port =
		attrs[IFLA_BOND_SLAVE_STATE] &&
		nla_get_u8(attrs[IFLA_BOND_SLAVE_STATE]) == BOND_STATE_ACTIVE &&
		(!attrs[IFLA_BOND_SLAVE_MII_STATUS] ||
		 nla_get_u8(attrs[IFLA_BOND_SLAVE_MII_STATUS]) <= BOND_LINK_FAIL);
	return true;
}

static bool take_data(struct nlattr *nest, struct link_info *out)
{
	return out->kind == LINK_VLAN ? take_vlan(nest, out) :
	       out->kind == LINK_BOND ? take_bond(nest, out) :
					true;
}

/* libnl would call a parser of its own for each kind, of which there are two dozen.
 * We want two names, of VLANs what tags have, and of bonds which ports they use. */
static bool take_kinds(struct nlattr *nest, struct link_info *out)
{
	static const struct nla_policy policy[IFLA_INFO_SLAVE_DATA + 1] = {
		[IFLA_INFO_KIND] = { .type = NLA_STRING },
		[IFLA_INFO_DATA] = FORM_NEST,
		[IFLA_INFO_SLAVE_KIND] = { .type = NLA_STRING },
		[IFLA_INFO_SLAVE_DATA] = FORM_NEST,
	};
	static const struct form form = { 0, IFLA_INFO_SLAVE_DATA, policy };
	struct nlattr *attrs[IFLA_INFO_SLAVE_DATA + 1] = { NULL };
	struct nlattr *kind, *slave_kind;

	if (nest && form_check_nested(nest, &form, attrs) < 0)
		return false;
	kind = attrs[IFLA_INFO_KIND];
	slave_kind = attrs[IFLA_INFO_SLAVE_KIND];
	if (kind)
		out->kind = kind_from_name(nla_get_string(kind));
	if (out->master)
		out->master_kind =
			slave_kind ? kind_from_name(nla_get_string(slave_kind)) :
				     LINK_OTHER;
	if (out->master_kind == LINK_BOND &&
	    !take_bond_port(attrs[IFLA_INFO_SLAVE_DATA], out))
		return false;
	return take_data(attrs[IFLA_INFO_DATA], out);
}

/* libnl 3.7 knows nothing of XDP. */
static bool take_xdp(struct nlattr *nest, struct link_info *out)
{
	static const struct nla_policy policy[IFLA_XDP_PROG_ID + 1] = {
		[IFLA_XDP_ATTACHED] = FORM_U8,
		[IFLA_XDP_PROG_ID] = FORM_U32,
	};
	static const struct form form = { 0, IFLA_XDP_PROG_ID, policy };
	struct nlattr *attrs[IFLA_XDP_PROG_ID + 1];
	uint8_t mode = LINK_XDP_NONE;

	if (!nest)
		return true;
	if (form_check_nested(nest, &form, attrs) < 0)
		return false;
	if (attrs[IFLA_XDP_ATTACHED])
		mode = nla_get_u8(attrs[IFLA_XDP_ATTACHED]);
	if (attrs[IFLA_XDP_PROG_ID])
		out->xdp_prog_id = nla_get_u32(attrs[IFLA_XDP_PROG_ID]);
	out->xdp_mode = MIN(mode, (uint8_t)LINK_XDP_SEVERAL);
	return true;
}

/* Takes the link below. In another namespace the same index means another link. */
static bool take_lower(struct rtnl_link *link, struct link_info *out)
{
	int32_t netnsid;

	if (rtnl_link_get_link_netnsid(link, &netnsid) == 0)
		return true;
	if (!rows_get_index((uint32_t)rtnl_link_get_link(link), &out->lower))
		return false;
	if (out->lower == out->ifindex)
		out->lower = 0;
	return true;
}

static int take_link(struct nl_object *obj, void *ctx)
{
	struct rtnl_link *link = (struct rtnl_link *)obj;
	struct link_info *out = ctx;
	struct nl_addr *addr = rtnl_link_get_addr(link);

	if (!*rtnl_link_get_name(link) ||
	    !rows_get_index((uint32_t)rtnl_link_get_master(link),
			    &out->master) ||
	    !take_lower(link, out))
		return -EBADMSG;
	strncpy(out->name, rtnl_link_get_name(link), sizeof(out->name) - 1);
	out->mtu = rtnl_link_get_mtu(link);
	out->group = rtnl_link_get_group(link);
	out->rx_queue_max = rtnl_link_get_num_rx_queues(link);
	if (addr) {
		/* the form has seen that it fits */
		out->addr_len = nl_addr_get_len(addr);
		memcpy(out->addr, nl_addr_get_binary_addr(addr), out->addr_len);
	}
	return 0;
}

static int check_link(struct nlmsghdr *msg, struct nlattr **attrs)
{
	static const struct nla_policy policy[IFLA_XDP + 1] = {
		[IFLA_ADDRESS] = FORM_BYTES(LINK_ADDR_MAX),
		[IFLA_IFNAME] = FORM_NAME,
		[IFLA_MTU] = FORM_U32,
		[IFLA_LINK] = FORM_U32,
		[IFLA_MASTER] = FORM_U32,
		[IFLA_LINKINFO] = FORM_NEST,
		[IFLA_GROUP] = FORM_U32,
		[IFLA_NUM_RX_QUEUES] = FORM_U32,
		[IFLA_LINK_NETNSID] = FORM_U32,
		[IFLA_XDP] = FORM_NEST,
	};
	static const struct form form = { sizeof(struct ifinfomsg),
					  IFLA_XDP, policy };

	return form_check(msg, &form, attrs);
}

int rows_read_link(struct nl_msg *msg, struct net_row *row)
{
	struct nlattr *attrs[IFLA_XDP + 1];
	const struct ifinfomsg *head = nlmsg_data(nlmsg_hdr(msg));
	int rc;

	if (check_link(nlmsg_hdr(msg), attrs) < 0 || head->ifi_index <= 0)
		return -EBADMSG;
	/* A bridge sends messages of its own about its ports. */
	if (head->ifi_family != AF_UNSPEC)
		return ROWS_NONE;
	row->link = (struct link_info){
		.ifindex = head->ifi_index,
		.flags = head->ifi_flags,
		.hw_type = head->ifi_type,
		.kind = head->ifi_flags & IFF_LOOPBACK ? LINK_LOOPBACK :
							 LINK_PLAIN,
	};
	if (row->is_gone)
		return 0;
	/* Wireless drivers send events that have next to nothing in them. */
	if (!attrs[IFLA_IFNAME] || !attrs[IFLA_MTU])
		return ROWS_NONE;
	form_hide(attrs[IFLA_LINKINFO]);
	form_hide(attrs[IFLA_XDP]);
	rc = rows_parse(msg, take_link, &row->link);
	if (rc)
		return rc;
	return take_kinds(attrs[IFLA_LINKINFO], &row->link) &&
			       take_xdp(attrs[IFLA_XDP], &row->link) ?
		       0 :
		       -EBADMSG;
}
