/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which message makes which row; addresses, neighbours and settings. Links, routes
 * and rules have files of their own. */
#include "config.h"

#include "nl/libnl/rows.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/netconf.h>
#include <string.h>
#include <sys/socket.h>

#include "nl/libnl/form.h"

/* -- with libnl ------------------------------------------------------------- */

int rows_error(int nl_error)
{
	return nl_error == -NLE_NOMEM ? -ENOMEM : -EBADMSG;
}

struct visit {
	rows_visit_fn *fn;
	void *ctx;
	int rc;
};

static void visit_object(struct nl_object *obj, void *arg)
{
	struct visit *visit = arg;

	visit->rc = visit->fn(obj, visit->ctx);
}

int rows_parse(struct nl_msg *msg, rows_visit_fn *visit, void *ctx)
{
	/* this stays if libnl makes no object */
	struct visit v = { visit, ctx, -EBADMSG };
	int err;

	/* by this libnl knows which parsers to use */
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	err = nl_msg_parse(msg, visit_object, &v);
	return err < 0 ? rows_error(err) : v.rc;
}

static bool get_addr_bytes(const void *bytes, unsigned len, int family,
			   struct ip_addr *out)
{
	__be32 v4;

	if (family == AF_INET && len == sizeof(v4)) {
		memcpy(&v4, bytes, sizeof(v4));
		*out = ip_addr_from_v4(v4);
		return true;
	}
	if (family == AF_INET6 && len == sizeof(out->byte)) {
		*out = ip_addr_from_v6(bytes);
		return true;
	}
	return false;
}

bool rows_get_addr(const struct nl_addr *addr, int family, struct ip_addr *out)
{
	return !addr || get_addr_bytes(nl_addr_get_binary_addr(addr),
				       nl_addr_get_len(addr), family, out);
}

bool rows_get_addr_attr(const struct nlattr *attr, int family,
			struct ip_addr *out)
{
	return !attr || get_addr_bytes(nla_data(attr), (unsigned)nla_len(attr),
				       family, out);
}

bool rows_get_index(uint32_t value, int *out)
{
	if (value > INT_MAX)
		return false;
	*out = (int)value;
	return true;
}

/* -- addresses --------------------------------------------------------------- */

/*
 * We do not let libnl make an object here: to make one, libnl looks the interface
 * up in the cache of links that the process has registered. Such a cache is the
 * program's, and its threads may change it while we read.
 *
 * On a point-to-point link, IFA_LOCAL is this end and IFA_ADDRESS is the other one.
 * IPv6 usually has IFA_ADDRESS alone.
 */
int rows_read_addr(struct nl_msg *msg, struct net_row *row)
{
	static const struct nla_policy policy[IFA_FLAGS + 1] = {
		[IFA_ADDRESS] = FORM_BYTES(16),
		[IFA_LOCAL] = FORM_BYTES(16),
		[IFA_BROADCAST] = FORM_BYTES(16),
		[IFA_FLAGS] = FORM_U32,
	};
	static const struct form form = { sizeof(struct ifaddrmsg), IFA_FLAGS,
					  policy };
	struct nlattr *attrs[IFA_FLAGS + 1], *local, *prefix;
	const struct ifaddrmsg *head = nlmsg_data(nlmsg_hdr(msg));
	struct addr_info *out = &row->addr;
	unsigned base;

	if (form_check(nlmsg_hdr(msg), &form, attrs) < 0)
		return -EBADMSG;
	if (head->ifa_family != AF_INET && head->ifa_family != AF_INET6)
		return ROWS_NONE;
	base = head->ifa_family == AF_INET ? IP_PREFIX_V4 : 0;
	local = attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS];
	prefix = attrs[IFA_ADDRESS] ? attrs[IFA_ADDRESS] : attrs[IFA_LOCAL];
	if (!local || head->ifa_index == 0 || head->ifa_index > INT_MAX ||
	    base + head->ifa_prefixlen > IP_PREFIX_MAX)
		return -EBADMSG;
	*out = (struct addr_info){
		.ifindex = (int)head->ifa_index,
		.prefix_len = base + head->ifa_prefixlen,
		.scope = head->ifa_scope,
		.flags = attrs[IFA_FLAGS] ? nla_get_u32(attrs[IFA_FLAGS]) :
					    head->ifa_flags,
	};
	return rows_get_addr_attr(local, head->ifa_family, &out->local) &&
			       rows_get_addr_attr(prefix, head->ifa_family,
						  &out->prefix) &&
			       rows_get_addr_attr(attrs[IFA_BROADCAST],
						  head->ifa_family,
						  &out->broadcast) ?
		       0 :
		       -EBADMSG;
}

/* -- neighbours -------------------------------------------------------------- */

static int take_neigh(struct rtnl_neigh *neigh, int family,
		      struct neigh_info *out)
{
	const struct nl_addr *hw = rtnl_neigh_get_lladdr(neigh);

	*out = (struct neigh_info){
		.ifindex = rtnl_neigh_get_ifindex(neigh),
		.state = (uint16_t)MAX(rtnl_neigh_get_state(neigh), 0),
	};
	if (!rows_get_addr(rtnl_neigh_get_dst(neigh), family, &out->addr))
		return -EBADMSG;
	if (hw) {
		/* the form has seen that it fits */
		out->hw_len = (uint16_t)nl_addr_get_len(hw);
		memcpy(out->hw_addr, nl_addr_get_binary_addr(hw), out->hw_len);
	}
	return 0;
}

int rows_read_neigh(struct nl_msg *msg, struct net_row *row)
{
	static const struct nla_policy policy[NDA_LLADDR + 1] = {
		[NDA_DST] = FORM_BYTES(16),
		[NDA_LLADDR] = FORM_BYTES(LINK_ADDR_MAX),
	};
	static const struct form form = { sizeof(struct ndmsg), NDA_LLADDR,
					  policy };
	const struct ndmsg *head = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *attrs[NDA_LLADDR + 1];
	struct rtnl_neigh *neigh;
	int rc;

	if (form_check(nlmsg_hdr(msg), &form, attrs) < 0)
		return -EBADMSG;
	if ((head->ndm_family != AF_INET && head->ndm_family != AF_INET6) ||
	    (head->ndm_flags & NTF_PROXY))
		return ROWS_NONE;
	if (head->ndm_ifindex <= 0 || !attrs[NDA_DST])
		return -EBADMSG;
	rc = rtnl_neigh_parse(nlmsg_hdr(msg), &neigh);
	if (rc < 0)
		return rows_error(rc);
	rc = take_neigh(neigh, head->ndm_family, &row->neigh);
	rtnl_neigh_put(neigh);
	return rc;
}

/* -- settings of interfaces -------------------------------------------------- */

static int take_netconf(struct nl_object *obj, void *ctx)
{
	struct rtnl_netconf *conf = (struct rtnl_netconf *)obj;
	struct netconf_info *out = ctx;

	*out = (struct netconf_info){ .rp_filter = -1 };
	(void)rtnl_netconf_get_rp_filter(conf, &out->rp_filter);
	return rtnl_netconf_get_ifindex(conf, &out->ifindex) < 0 ? -EBADMSG : 0;
}

int rows_read_netconf(struct nl_msg *msg, struct net_row *row)
{
	enum { LAST = NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN };
	static const struct nla_policy policy[LAST + 1] = {
		[NETCONFA_IFINDEX] = FORM_U32,
		[NETCONFA_RP_FILTER] = FORM_U32,
		[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN] = FORM_U32,
	};
	static const struct form form = { sizeof(struct netconfmsg), LAST,
					  policy };
	const struct netconfmsg *head = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *attrs[LAST + 1];
	int rc;

	if (form_check(nlmsg_hdr(msg), &form, attrs) < 0)
		return -EBADMSG;
	/* libnl prints a line about families that it does not know */
	if (head->ncm_family != AF_INET)
		return ROWS_NONE;
	if (!attrs[NETCONFA_IFINDEX])
		return -EBADMSG;
	rc = rows_parse(msg, take_netconf, &row->netconf);
	row->netconf.has_linkdown =
		attrs[NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN];
	return rc;
}

/* -- all kinds --------------------------------------------------------------- */

static int read_kind(struct nl_msg *msg, struct row_room *out)
{
	switch (out->row.kind) {
	case NET_ROW_LINK:
		return rows_read_link(msg, &out->row);
	case NET_ROW_ADDR:
		return rows_read_addr(msg, &out->row);
	case NET_ROW_ROUTE:
		return rows_read_route(msg, out);
	case NET_ROW_POLICY:
		return rows_read_policy(msg, &out->row);
	case NET_ROW_NEIGH:
		return rows_read_neigh(msg, &out->row);
	case NET_ROW_NETCONF:
		return rows_read_netconf(msg, &out->row);
	case NET_ROW_NEXTHOP:
		return 0;
	case NET_ROW_PATH_MTU:
		break;
	}
	return ROWS_NONE;
}

int rows_read(struct nl_msg *msg, bool is_dump, struct row_room *out)
{
	static const struct {
		uint16_t type;
		enum net_row_kind kind;
		bool is_gone;
	} types[] = {
		{ RTM_NEWROUTE, NET_ROW_ROUTE, false },
		{ RTM_DELROUTE, NET_ROW_ROUTE, true },
		{ RTM_NEWNEIGH, NET_ROW_NEIGH, false },
		{ RTM_DELNEIGH, NET_ROW_NEIGH, true },
		{ RTM_NEWLINK, NET_ROW_LINK, false },
		{ RTM_DELLINK, NET_ROW_LINK, true },
		{ RTM_NEWADDR, NET_ROW_ADDR, false },
		{ RTM_DELADDR, NET_ROW_ADDR, true },
		{ RTM_NEWRULE, NET_ROW_POLICY, false },
		{ RTM_DELRULE, NET_ROW_POLICY, true },
		{ RTM_NEWNETCONF, NET_ROW_NETCONF, false },
		{ RTM_DELNETCONF, NET_ROW_NETCONF, true },
		{ RTM_NEWNEXTHOP, NET_ROW_NEXTHOP, false },
		{ RTM_DELNEXTHOP, NET_ROW_NEXTHOP, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (types[i].type != nlmsg_hdr(msg)->nlmsg_type)
			continue;
		out->row.kind = types[i].kind;
		out->row.is_gone = types[i].is_gone;
		out->row.is_dump = is_dump;
		return read_kind(msg, out);
	}
	return ROWS_NONE;
}
