/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For libvma-test.so alone: VLANs where the kernel has no driver for them. The links that
 * VMA_TEST_VLANS names, which are of any kind, are told to the library as VLANs of other
 * links:
 *
 *     VMA_TEST_VLANS=NAME:LOWER:ID[:PRIORITY-PCP]...[,NAME:...]
 *
 * The link's group (ip link set NAME group N) is one more line of the egress map, which may
 * change at any time: that of the priority 0. It is linked in place of link_tab_set().
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nl/link_tab.h"
#include "pkt/wire.h"

int __real_link_tab_set(struct link_tab *tab, const struct link_info *info);
int __wrap_link_tab_set(struct link_tab *tab, const struct link_info *info);

/* The description of a link, behind its name and a colon; NULL: it has none. */
static const char *find_text(const char *name)
{
	const char *at = getenv("VMA_TEST_VLANS");
	size_t len = strlen(name);

	while (at && *at) {
		if (strncmp(at, name, len) == 0 && at[len] == ':')
			return at + len + 1;
		at = strchr(at, ',');
		at += at ? 1 : 0;
	}
	return NULL;
}

static void read_map(const char *at, struct link_info *link)
{
	unsigned priority, pcp;
	int len;

	while (sscanf(at, ":%u-%u%n", &priority, &pcp, &len) == 2) {
		if (priority < LINK_VLAN_PRIORITIES)
			link->vlan_pcps[priority] = pcp & 7;
		at += len;
	}
}

static void make_vlan(const struct link_tab *tab, const char *text,
		      struct link_info *link)
{
	char lower[IF_NAMESIZE] = "";
	const struct link *below;
	unsigned id = 0;
	int len = 0;

	if (sscanf(text, "%15[^:,]:%u%n", lower, &id, &len) != 2)
		return;
	below = link_tab_find_name(tab, lower);
	link->kind = LINK_VLAN;
	link->vlan_proto = WIRE_ETH_VLAN;
	link->vlan_id = (uint16_t)id;
	link->lower = below ? below->info.ifindex : 0;
	link->vlan_pcps[0] = link->group & 7;
	read_map(text + len, link);
}

int __wrap_link_tab_set(struct link_tab *tab, const struct link_info *info)
{
	const char *text = find_text(info->name);
	struct link_info link = *info;

	if (text)
		make_vlan(tab, text, &link);
	return __real_link_tab_set(tab, &link);
}
