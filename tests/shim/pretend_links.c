/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For libvma-test.so alone: VLANs and bonds where the kernel has no driver for them. The
 * links that the variables name, which are of any kind, are told to the library as what
 * they say:
 *
 *     VMA_TEST_VLANS=NAME:LOWER:ID[:PRIORITY-PCP]...[,NAME:...]
 *     VMA_TEST_BONDS=NAME:MODE:POLICY[:PORT]...[,NAME:...]
 *
 * What may change at any time is in a link's group (ip link set NAME group N): of a VLAN,
 * the line of its egress map for the priority 0; of a port of a bond, 0: it is active. The
 * file is linked in place of link_tab_set().
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nl/link_tab.h"
#include "pkt/wire.h"

int __real_link_tab_set(struct link_tab *tab, const struct link_info *info);
int __wrap_link_tab_set(struct link_tab *tab, const struct link_info *info);

/* The description of a link in a variable, behind its name and a colon; NULL: it has none. */
static const char *find_text(const char *variable, const char *name)
{
	const char *at = getenv(variable);
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

/* The next port of a bond's description from *at on. */
static bool next_port(const char **at, char port[IF_NAMESIZE])
{
	int len = 0;

	if (sscanf(*at, ":%15[^:,]%n", port, &len) != 1)
		return false;
	*at += len;
	return true;
}

/* Behind mode and policy. */
static const char *read_bond(const char *text, unsigned *mode, unsigned *policy)
{
	int len = 0;

	return sscanf(text, "%u:%u%n", mode, policy, &len) == 2 ? text + len : "";
}

static void make_port(const struct link *bond, struct link_info *port)
{
	port->master = bond->info.ifindex;
	port->master_kind = LINK_BOND;
	port->is_active_port = port->group == 0;
}

/* Of a bond that is in the table already. */
static void be_a_port(const struct link_tab *tab, struct link_info *link)
{
	const struct link *bond;

	LIST_FOR_EACH(bond, &tab->links, in_tab) {
		const char *at = find_text("VMA_TEST_BONDS", bond->info.name);
		unsigned mode, policy;
		char port[IF_NAMESIZE];

		at = at ? read_bond(at, &mode, &policy) : "";
		while (next_port(&at, port))
			if (strcmp(port, link->name) == 0)
				make_port(bond, link);
	}
}

/* Those that are in the table already. */
static int find_ports(struct link_tab *tab, const char *at, const struct link *bond)
{
	char name[IF_NAMESIZE];
	int changed = 0;

	while (next_port(&at, name)) {
		const struct link *port = link_tab_find_name(tab, name);
		struct link_info info;

		if (!port)
			continue;
		info = port->info;
		make_port(bond, &info);
		changed |= __real_link_tab_set(tab, &info);
	}
	return changed;
}

static int set_bond(struct link_tab *tab, const char *text, struct link_info *link)
{
	unsigned mode = 0, policy = 0;
	const char *ports = read_bond(text, &mode, &policy);
	int changed;

	link->kind = LINK_BOND;
	link->bond_mode = (uint8_t)mode;
	link->bond_policy = (uint8_t)policy;
	changed = __real_link_tab_set(tab, link);
	return changed < 0 ? changed :
			     changed | find_ports(tab, ports,
						  link_tab_find(tab, link->ifindex));
}

int __wrap_link_tab_set(struct link_tab *tab, const struct link_info *info)
{
	const char *bond = find_text("VMA_TEST_BONDS", info->name);
	const char *vlan = find_text("VMA_TEST_VLANS", info->name);
	struct link_info link = *info;

	if (bond)
		return set_bond(tab, bond, &link);
	if (vlan)
		make_vlan(tab, vlan, &link);
	be_a_port(tab, &link);
	return __real_link_tab_set(tab, &link);
}
