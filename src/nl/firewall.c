/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asks for filters and policies, and turns the answers into names. */
#include "config.h"

#include "nl/firewall.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <string.h>

#include "base/text.h"
#include "nl/bpf_hooks.h"
#include "nl/netlink.h"
#include "os/file.h"

void firewall_begin_name(const char *what, struct text *out)
{
	text_add(out, "%s%s", out->len ? ", " : "", what);
}

void firewall_add_name(const char *name, struct text *out)
{
	text_add(out, " ");
	for (; *name; name++)
		text_add(out, "%c", *name > ' ' && *name < 0x7f ? *name : '?');
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

static int name_chain(const struct firewall_row *row, struct text *out)
{
	const char *family = family_name(row->family);

	/* A chain without a hook is only reached by a jump from another chain. */
	if (!family || !row->has_hook)
		return 0;
	if (row->family != NFPROTO_NETDEV && row->hook == NF_INET_FORWARD)
		return 0;
	firewall_begin_name("nftables", out);
	firewall_add_name(family, out);
	firewall_add_name(row->table, out);
	firewall_add_name(row->chain, out);
	return 1;
}

static int name_policies(const struct firewall_row *row, struct text *out)
{
	if (!row->policy_cnt)
		return 0;
	firewall_begin_name("", out);
	text_add(out, "%llu xfrm polic%s", (unsigned long long)row->policy_cnt,
		 row->policy_cnt == 1 ? "y" : "ies");
	return 1;
}

int firewall_name_row(const struct firewall_row *row, struct text *out)
{
	switch (row->kind) {
	case FIREWALL_CHAIN:
		return name_chain(row, out);
	case FIREWALL_POLICIES:
		return name_policies(row, out);
	case FIREWALL_FILTERS:
		firewall_begin_name(row->is_egress ? "tc egress" : "tc ingress",
				    out);
		firewall_add_name(row->link, out);
		return 1;
	case FIREWALL_LINK:
		break;
	}
	return 0;
}

int firewall_name_tables(const char *lines, struct text *out)
{
	int cnt = 0;

	while (*lines) {
		size_t len = strcspn(lines, "\n");

		if (len) {
			firewall_begin_name("iptables ", out);
			text_add(out, "%.*s",
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
	bool is_denied;
	bool is_later;
};

/* Takes the result of one source: how many things it has named, or an error. */
static void found(struct findings *f, int rc)
{
	if (rc > 0)
		f->cnt += rc;
	/* Any other error means that the kernel has no such thing. */
	f->is_denied |= rc == -EPERM || rc == -EACCES;
}

static void take(void *ctx, const struct firewall_row *row)
{
	struct findings *f = ctx;

	f->cnt += firewall_name_row(row, &f->text);
	if (row->kind == FIREWALL_LINK)
		found(f, bpf_hooks_read_link(row->ifindex, row->link, f->is_later,
					     &f->text));
}

int firewall_read(const struct netlink_ops *ops, bool is_later, char *text, size_t size)
{
	struct findings f = { .text = text_in(text, size), .is_later = is_later };

	found(&f, netlink_read_chains(ops, take, &f));
	found(&f, read_iptables(&f.text));
	found(&f, netlink_read_policies(ops, take, &f));
	found(&f, bpf_hooks_read_cgroup(&f.text));
	found(&f, bpf_hooks_read_namespace(&f.text));
	found(&f, netlink_read_filters(ops, take, &f));
	return !f.cnt && f.is_denied ? -EPERM : f.cnt;
}
