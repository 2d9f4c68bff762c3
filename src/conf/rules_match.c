/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which rule decides about a socket. */
#include "config.h"

#include <fnmatch.h>
#include <string.h>

#include "conf/rules_priv.h"

/* Some programs still write a.b.c.d as ::a.b.c.d, so this returns a.b.c.d. :: and
 * ::1 stay as they are. */
static struct ip_addr without_compat(const struct ip_addr *addr)
{
	bool is_compat = addr->half[0] == 0 && addr->word[2] == 0 &&
			 addr->word[3] != 0 && !ip_addr_is_loopback(addr);

	return is_compat ? ip_addr_from_v4(addr->word[3]) : *addr;
}

static bool is_any_addr(const struct rule_end *end)
{
	return !end->has_addr;
}

static bool is_any_port(const struct rule_end *end)
{
	return end->first_port == 0 && end->last_port == UINT16_MAX;
}

static bool is_any(const struct rule_end *end)
{
	return is_any_addr(end) && is_any_port(end);
}

static bool addr_matches(const struct rule_end *end,
			 const struct ip_addr *asked)
{
	struct ip_addr addr = without_compat(asked);

	return is_any_addr(end) ||
	       (end->is_v4 == ip_addr_is_v4(&addr) &&
		ip_addr_in_prefix(&addr, &end->net, end->prefix_len));
}

static bool end_matches(const struct rule_end *end,
			const struct rules_end *asked)
{
	if (!asked)
		return is_any(end);
	return asked->port >= end->first_port &&
	       asked->port <= end->last_port && addr_matches(end, &asked->addr);
}

static bool first_is_local(enum rule_role role)
{
	return role == RULE_TCP_SERVER || role == RULE_UDP_RECEIVER;
}

static bool has_both_ends(enum rule_role role)
{
	return role == RULE_TCP_CLIENT || role == RULE_UDP_CONNECT;
}

static bool never_matches(const struct rule *rule)
{
	return rule->target == RULE_TO_SDP || rule->target == RULE_TO_SA;
}

static bool rule_matches(const struct rule *rule, const struct rules_end *local,
			 const struct rules_end *remote)
{
	const struct rules_end *first = first_is_local(rule->role) ? local :
								     remote;

	if (never_matches(rule) || !end_matches(&rule->first, first))
		return false;
	return !has_both_ends(rule->role) || !rule->has_second ||
	       end_matches(&rule->second, local);
}

static bool is_meant(const struct rule_group *group,
		     const struct rules_who *who)
{
	bool id_matches = strcmp(who->id, "*") == 0 ||
			  strcmp(group->id, "*") == 0 ||
			  strcmp(group->id, who->id) == 0;

	return id_matches && fnmatch(group->program, who->program, 0) == 0;
}

static const struct rule_group *find_group(const struct rules *rules,
					   const struct rules_who *who)
{
	const struct rule_group *group;

	LIST_FOR_EACH(group, &rules->groups, link)
		if (is_meant(group, who))
			return group;
	return NULL;
}

struct rules_verdict rules_match(const struct rules *rules,
				 const struct rules_who *who,
				 enum rule_role role,
				 const struct rules_end *local,
				 const struct rules_end *remote)
{
	const struct rule_group *group = find_group(rules, who);
	struct rules_verdict verdict = { .is_kernel = false };
	const struct rule *rule;

	if (!group)
		return verdict;
	verdict.group = group->title;
	LIST_FOR_EACH(rule, &group->rules[role], link) {
		if (!rule_matches(rule, local, remote))
			continue;
		verdict.rule = rule;
		verdict.is_kernel = rule->target == RULE_TO_OS;
		break;
	}
	return verdict;
}

/* What a list says about every socket at once. */
enum tendency { TENDS_NOWHERE, TENDS_TO_OS, TENDS_TO_VMA };

/* A rule without any condition decides for the whole list if all rules before it,
 * which have conditions, lead to the same target. */
static enum tendency list_tendency(const struct list *rule_list)
{
	bool has_os = false, has_other = false;
	const struct rule *rule;

	LIST_FOR_EACH(rule, rule_list, link) {
		if (never_matches(rule))
			continue;
		if (rule->target == RULE_TO_OS)
			has_os = true;
		else
			has_other = true;
		if (has_os && has_other)
			return TENDS_NOWHERE;
		if (is_any(&rule->first) &&
		    (!has_both_ends(rule->role) || !rule->has_second ||
		     is_any(&rule->second)))
			return has_os ? TENDS_TO_OS : TENDS_TO_VMA;
	}
	return TENDS_NOWHERE;
}

bool rules_is_all_kernel(const struct rules *rules, const struct rules_who *who,
			 enum rules_protocol protocol)
{
	enum rule_role in = protocol == RULES_TCP ? RULE_TCP_SERVER :
						    RULE_UDP_RECEIVER;
	enum rule_role out = protocol == RULES_TCP ? RULE_TCP_CLIENT :
						     RULE_UDP_SENDER;
	const struct rule_group *group;

	LIST_FOR_EACH(group, &rules->groups, link) {
		enum tendency a, b;

		if (!is_meant(group, who))
			continue;
		a = list_tendency(&group->rules[in]);
		b = list_tendency(&group->rules[out]);
		if (a == TENDS_TO_OS && b == TENDS_TO_OS)
			return true;
		/* If the lists contradict each other, the next group is asked, as
		 * in VMA. Otherwise the search ends here. */
		if (a == TENDS_NOWHERE || b == TENDS_NOWHERE || a == b)
			return false;
	}
	return false;
}

bool rules_has_role(const struct rules *rules, enum rule_role role)
{
	const struct rule_group *group;

	LIST_FOR_EACH(group, &rules->groups, link)
		if (!list_is_empty(&group->rules[role]))
			return true;
	return false;
}

bool rules_has_group(const struct rules *rules, const struct rules_who *who)
{
	return find_group(rules, who) != NULL;
}
