/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Filters and policies, asked for and turned into names. */
#include "config.h"

#include "nl/firewall.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <string.h>

#include "base/text.h"
#include "nl/netlink.h"
#include "os/file.h"

static void add_separator(struct text *out)
{
	if (out->len)
		text_add(out, ", ");
}

/* The families whose chains see IPv4 packets of this host. */
static const char *family_name(uint8_t family)
{
	switch (family) {
	case NFPROTO_INET:
		return "inet";
	case NFPROTO_IPV4:
		return "ip";
	case NFPROTO_NETDEV:
		return "netdev";
	default:
		return NULL;
	}
}

static void add_name(const char *name, struct text *out)
{
	text_add(out, " ");
	for (; *name; name++)
		text_add(out, "%c", *name > ' ' && *name < 0x7f ? *name : '?');
}

static int name_chain(const struct firewall_row *row, struct text *out)
{
	const char *family = family_name(row->family);

	/* A chain without a hook is only jumped to. */
	if (!family || !row->has_hook)
		return 0;
	if (row->family != NFPROTO_NETDEV && row->hook == NF_INET_FORWARD)
		return 0;
	add_separator(out);
	text_add(out, "nftables %s", family);
	add_name(row->table, out);
	add_name(row->chain, out);
	return 1;
}

static int name_policies(const struct firewall_row *row, struct text *out)
{
	if (!row->policy_cnt)
		return 0;
	add_separator(out);
	text_add(out, "%llu xfrm polic%s", (unsigned long long)row->policy_cnt,
		 row->policy_cnt == 1 ? "y" : "ies");
	return 1;
}

int firewall_name_row(const struct firewall_row *row, struct text *out)
{
	return row->is_policies ? name_policies(row, out) :
				  name_chain(row, out);
}

int firewall_name_tables(const char *lines, struct text *out)
{
	int cnt = 0;

	while (*lines) {
		size_t len = strcspn(lines, "\n");

		if (len) {
			add_separator(out);
			text_add(out, "iptables %.*s",
				 (int)MIN(len, (size_t)FIREWALL_NAME_SIZE - 1),
				 lines);
			cnt++;
		}
		lines += len;
		lines += *lines == '\n';
	}
	return cnt;
}

/* iptables' own tables, which exist from their first use on. */
static int read_iptables(struct text *out)
{
	char lines[256];
	ssize_t len = file_peek("/proc/thread-self/net/ip_tables_names", lines,
				sizeof(lines) - 1);

	if (len < 0)
		return (int)len;
	lines[len] = '\0';
	return firewall_name_tables(lines, out);
}

struct findings {
	struct text text;
	int cnt;
};

static void take(void *ctx, const struct firewall_row *row)
{
	struct findings *found = ctx;

	found->cnt += firewall_name_row(row, &found->text);
}

int firewall_read(const struct netlink_ops *ops, char *text, size_t size)
{
	struct findings found = { .text = text_in(text, size) };
	int errors[3];
	bool is_denied = false;

	errors[0] = netlink_read_chains(ops, take, &found);
	errors[1] = read_iptables(&found.text);
	found.cnt += MAX(errors[1], 0);
	errors[2] = netlink_read_policies(ops, take, &found);
	for (size_t i = 0; i < ARRAY_LEN(errors); i++)
		/* Anything else: the kernel has no such thing. */
		is_denied |= errors[i] == -EPERM || errors[i] == -EACCES;
	return !found.cnt && is_denied ? -EPERM : found.cnt;
}
