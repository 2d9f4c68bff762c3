/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A list of policy rules, and their selectors. */
#include "config.h"

#include "nl/policy_tab.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <netinet/in.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "nl/link_tab.h"
#include "nl/net_flow.h"

/* For routing, packets of this host come in by this interface. */
static const char iif_of_own_packets[IF_NAMESIZE] = "lo";

void policy_tab_init(struct policy_tab *tab)
{
	*tab = (struct policy_tab){ 0 };
	list_init(&tab->policies);
}

static void forget(struct policy_tab *tab, struct policy_entry *entry)
{
	list_remove(&entry->in_tab);
	free(entry);
	tab->policy_cnt--;
}

void policy_tab_destroy(struct policy_tab *tab)
{
	struct policy_entry *entry, *following;

	LIST_FOR_EACH_SAFE(entry, following, &tab->policies, in_tab)
		forget(tab, entry);
}

int policy_tab_add(struct policy_tab *tab, const struct policy *policy)
{
	struct policy_entry *entry = malloc(sizeof(*entry));
	struct list *where = tab->policies.prev;

	if (!entry)
		return -ENOMEM;
	entry->policy = *policy;
	entry->epoch = tab->epoch;
	while (where != &tab->policies &&
	       LIST_ENTRY(where, struct policy_entry, in_tab)->policy.priority >
		       policy->priority)
		where = where->prev;
	list_insert_after(where, &entry->in_tab);
	tab->policy_cnt++;
	return 0;
}

static bool is_same(const struct policy *a, const struct policy *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool policy_tab_has(const struct policy_tab *tab, const struct policy *policy)
{
	const struct list *link;

	for (link = tab->policies.next; link != &tab->policies; link = link->next)
		if (is_same(&CONTAINER_OF(link, struct policy_entry, in_tab)->policy, policy))
			return true;
	return false;
}

bool policy_tab_remove(struct policy_tab *tab, const struct policy *policy)
{
	struct policy_entry *entry;

	LIST_FOR_EACH(entry, &tab->policies, in_tab) {
		if (is_same(&entry->policy, policy)) {
			forget(tab, entry);
			return true;
		}
	}
	return false;
}

void policy_tab_mark(struct policy_tab *tab)
{
	tab->epoch++;
}

int policy_tab_meet(struct policy_tab *tab, const struct policy *policy)
{
	struct policy_entry *entry;
	int err;

	LIST_FOR_EACH(entry, &tab->policies, in_tab) {
		if (entry->epoch != tab->epoch &&
		    is_same(&entry->policy, policy)) {
			entry->epoch = tab->epoch;
			return 0;
		}
	}
	err = policy_tab_add(tab, policy);
	return err ? err : 1;
}

bool policy_tab_sweep(struct policy_tab *tab)
{
	struct policy_entry *entry, *following;
	bool has_removed = false;

	LIST_FOR_EACH_SAFE(entry, following, &tab->policies, in_tab) {
		if (entry->epoch == tab->epoch)
			continue;
		forget(tab, entry);
		has_removed = true;
	}
	return has_removed;
}

/* A rule that sends everything to a table. */
static bool is_plain(const struct policy *policy, uint32_t priority,
		     uint32_t table)
{
	struct policy plain = {
		.priority = priority,
		.table = table,
		.action = FR_ACT_TO_TBL,
		.uid_last = UINT32_MAX,
		.suppress_len = -1,
		.suppress_group = -1,
	};

	return is_same(policy, &plain);
}

bool policy_tab_is_default(const struct policy_tab *tab)
{
	const struct list *link = tab->policies.next;
	static const struct {
		uint32_t priority;
		uint32_t table;
	} born_with[] = {
		{ 0, RT_TABLE_LOCAL },
		{ 32766, RT_TABLE_MAIN },
		{ 32767, RT_TABLE_DEFAULT },
	};

	if (tab->policy_cnt != ARRAY_LEN(born_with))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(born_with); i++, link = link->next) {
		if (!is_plain(&CONTAINER_OF(link, struct policy_entry,
					    in_tab)->policy,
			      born_with[i].priority, born_with[i].table))
			return false;
	}
	return true;
}

static bool has_prefix(const struct ip_addr *addr, const struct ip_addr *net,
		       unsigned len)
{
	struct ip_addr known = *addr;

	/* The kernel treats an address that is not known yet as 0.0.0.0. */
	if (ip_addr_is_any(addr))
		known = ip_addr_from_v4(0);
	return ip_addr_in_prefix(&known, net, len);
}

static bool names_ports(const struct policy *policy)
{
	return policy->sport.last || policy->dport.last;
}

static bool has_port(const struct policy_ports *ports, uint16_t port)
{
	if (!ports->first && !ports->last)
		return true;
	if (ports->mask)
		return !((port ^ ports->first) & ports->mask);
	return port >= ports->first && port <= ports->last;
}

static bool has_tos(const struct policy *policy, uint8_t tos)
{
	if (policy->dscp_mask)
		return !((policy->dscp ^ tos) & policy->dscp_mask);
	return !policy->tos || policy->tos == (tos & NET_TOS_ROUTE_MASK);
}

static bool has_links(const struct policy *policy, int oif,
		      const struct link_tab *links)
{
	const struct link *out;

	if (policy->iif[0] &&
	    strncmp(policy->iif, iif_of_own_packets, IF_NAMESIZE) != 0)
		return false;
	if (!policy->oif[0])
		return true;
	out = oif ? link_tab_find(links, oif) : NULL;
	return out && strncmp(policy->oif, out->info.name, IF_NAMESIZE) == 0;
}

static bool has_selectors(const struct policy *policy,
			  const struct net_flow *flow,
			  const struct link_tab *links)
{
	return !((policy->mark ^ flow->mark) & policy->mark_mask) &&
	       flow->uid >= policy->uid_first && flow->uid <= policy->uid_last &&
	       (!policy->proto || policy->proto == flow->proto) &&
	       has_prefix(&flow->src, &policy->src, policy->src_len) &&
	       has_prefix(&flow->dst, &policy->dst, policy->dst_len) &&
	       has_tos(policy, flow->tos) &&
	       has_links(policy, flow->oif, links);
}

enum policy_verdict policy_match(const struct policy *policy,
				 const struct net_flow *flow,
				 const struct link_tab *links)
{
	/* The library does not route packets of a VRF (net_view_route). */
	bool has_others = !policy->is_l3mdev && has_selectors(policy, flow, links);
	bool has_all = has_others && has_port(&policy->sport, flow->sport) &&
		       has_port(&policy->dport, flow->dport);

	/* Connections of TCP between two hosts share their path. */
	if (has_others && flow->proto == IPPROTO_TCP && names_ports(policy))
		return POLICY_UNKNOWN;
	if (has_all && policy->is_foreign)
		return POLICY_UNKNOWN;
	return has_all != policy->is_inverted ? POLICY_MATCHES : POLICY_PASSES;
}
