/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking the kernel for filters and policies: each question has a socket of its own,
 * and nothing stays open. */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <netlink/msg.h>
#include <netlink/socket.h>
#include <stdlib.h>
#include <string.h>

#include "nl/libnl/conn.h"
#include "nl/libnl/form.h"
#include "os/real.h"

/* What the kernel fills at once with a dump. */
enum { BUF_SIZE = 32 << 10 };

/* A request, and the function that reads its answers. */
struct question {
	int protocol;
	uint16_t type;
	uint16_t flags;
	/* what follows the header */
	const void *body;
	size_t body_len;
	uint16_t answer_type;
	/* 0, or 1: no more answers are wanted, or -EBADMSG */
	int (*read)(struct nlmsghdr *msg, struct firewall_row *row);
};

/* A question under way. */
struct asking {
	const struct question *question;
	firewall_take_fn *take;
	void *ctx;
	uint32_t seq;
	bool is_over;
	int error;
};

static void end(struct asking *a, int error)
{
	a->is_over = true;
	a->error = error;
}

/* -- libnl's hooks and callbacks ----------------------------------------------- */

/* libnl may keep this socket, since it only lives for one question. But we make the
 * call ourselves. */
static int hook_receive(struct nl_sock *sock, struct sockaddr_nl *from,
			unsigned char **buf_out, struct ucred **creds UNUSED)
{
	unsigned char *buf = malloc(BUF_SIZE);
	socklen_t from_len = sizeof(*from);
	ssize_t len;

	if (!buf)
		return -NLE_NOMEM;
	do
		len = real.recvfrom(nl_socket_get_fd(sock), buf, BUF_SIZE,
				    MSG_DONTWAIT, (struct sockaddr *)from,
				    &from_len);
	while (len < 0 && errno == EINTR);
	/* only the kernel is heard */
	if (len <= 0 || from->nl_pid != 0) {
		free(buf);
		return 0;
	}
	*buf_out = buf;
	return (int)len;
}

static int hook_send(struct nl_sock *sock, struct nl_msg *msg)
{
	const struct nlmsghdr *head = nlmsg_hdr(msg);

	return real.send(nl_socket_get_fd(sock), head, head->nlmsg_len, 0) < 0 ?
		       -errno :
		       0;
}

static int on_sequence(struct nl_msg *msg, void *arg)
{
	const struct asking *a = arg;

	return nlmsg_hdr(msg)->nlmsg_seq == a->seq ? NL_OK : NL_SKIP;
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	struct firewall_row row = { .policy_cnt = 0 };
	struct asking *a = arg;
	int rc;

	if (head->nlmsg_type != a->question->answer_type)
		return NL_OK;
	rc = a->question->read(head, &row);
	if (rc >= 0)
		a->take(a->ctx, &row);
	if (rc || !(head->nlmsg_flags & NLM_F_MULTI))
		end(a, MIN(rc, 0));
	return rc ? NL_STOP : NL_OK;
}

static int on_finish(struct nl_msg *msg UNUSED, void *arg)
{
	end(arg, 0);
	return NL_OK;
}

static int on_error(struct sockaddr_nl *from UNUSED, struct nlmsgerr *error,
		    void *arg)
{
	end(arg, error->error);
	return NL_STOP;
}

static struct nl_cb *make_callbacks(struct asking *a)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);

	if (!cb)
		return NULL;
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_sequence, a);
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, a);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, a);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_finish, a);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, a);
	nl_cb_overwrite_recv(cb, hook_receive);
	nl_cb_overwrite_send(cb, hook_send);
	return cb;
}

/* -- asking ---------------------------------------------------------------------- */

static int send_question(struct nl_sock *sock, struct asking *a)
{
	const struct question *q = a->question;
	struct nl_msg *msg = nlmsg_alloc_simple(q->type, q->flags);
	int err = -ENOMEM;

	if (msg && nlmsg_append(msg, (void *)q->body, q->body_len,
				NLMSG_ALIGNTO) == 0) {
		nl_complete_msg(sock, msg);
		a->seq = nlmsg_hdr(msg)->nlmsg_seq;
		err = nl_send(sock, msg);
	}
	nlmsg_free(msg);
	return err;
}

/* The kernel has the next answer ready as soon as we took the last one. So a call
 * that brings no answer means that there are no more. */
static int read_answers(struct nl_sock *sock, struct nl_cb *cb,
			struct asking *a)
{
	a->error = -EAGAIN;
	while (!a->is_over && nl_recvmsgs_report(sock, cb) > 0)
		;
	return a->error;
}

static int ask(const struct question *q, firewall_take_fn *take, void *ctx)
{
	struct asking a = { .question = q, .take = take, .ctx = ctx };
	struct nl_cb *cb = make_callbacks(&a);
	struct nl_sock *sock;
	int err;

	if (!cb)
		return -ENOMEM;
	err = sock_open(q->protocol, cb, &sock);
	if (!err) {
		err = send_question(sock, &a);
		if (!err)
			err = read_answers(sock, cb, &a);
		nl_socket_free(sock);
	}
	nl_cb_put(cb);
	return err;
}

/* -- nftables -------------------------------------------------------------------- */

/* Copies as much as fits, up to the first NUL. */
static void take_name(const struct nlattr *attr, char out[FIREWALL_NAME_SIZE])
{
	if (attr)
		nla_memcpy(out, attr, FIREWALL_NAME_SIZE - 1);
}

static int read_chain(struct nlmsghdr *msg, struct firewall_row *row)
{
	static const struct nla_policy policy[NFTA_CHAIN_HOOK + 1] = {
		[NFTA_CHAIN_TABLE] = FORM_BYTES(NFT_NAME_MAXLEN),
		[NFTA_CHAIN_NAME] = FORM_BYTES(NFT_NAME_MAXLEN),
		[NFTA_CHAIN_HOOK] = FORM_NEST,
	};
	static const struct form form = { sizeof(struct nfgenmsg),
					  NFTA_CHAIN_HOOK, policy };
	static const struct nla_policy hook_policy[NFTA_HOOK_HOOKNUM + 1] = {
		[NFTA_HOOK_HOOKNUM] = FORM_U32,
	};
	static const struct form hook_form = { 0, NFTA_HOOK_HOOKNUM,
					       hook_policy };
	const struct nfgenmsg *head = nlmsg_data(msg);
	struct nlattr *attrs[NFTA_CHAIN_HOOK + 1], *hook[NFTA_HOOK_HOOKNUM + 1];

	if (form_check(msg, &form, attrs) < 0)
		return -EBADMSG;
	row->family = head->nfgen_family;
	take_name(attrs[NFTA_CHAIN_TABLE], row->table);
	take_name(attrs[NFTA_CHAIN_NAME], row->chain);
	row->has_hook = attrs[NFTA_CHAIN_HOOK];
	if (!row->has_hook)
		return 0;
	if (form_check_nested(attrs[NFTA_CHAIN_HOOK], &hook_form, hook) < 0)
		return -EBADMSG;
	if (hook[NFTA_HOOK_HOOKNUM])
		row->hook = be32toh(nla_get_u32(hook[NFTA_HOOK_HOOKNUM]));
	return 0;
}

int libnl_read_chains(firewall_take_fn *take, void *ctx)
{
	static const struct nfgenmsg body = { .nfgen_family = AF_UNSPEC };
	static const struct question chains = {
		.protocol = NETLINK_NETFILTER,
		.type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
		.flags = NLM_F_DUMP,
		.body = &body,
		.body_len = sizeof(body),
		.answer_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN,
		.read = read_chain,
	};

	return ask(&chains, take, ctx);
}

/* -- xfrm ------------------------------------------------------------------------- */

static int read_policies(struct nlmsghdr *msg, struct firewall_row *row)
{
	static const struct nla_policy policy[XFRMA_SPD_INFO + 1] = {
		[XFRMA_SPD_INFO] = FORM_SIZE(sizeof(struct xfrmu_spdinfo)),
	};
	static const struct form form = { sizeof(uint32_t), XFRMA_SPD_INFO,
					  policy };
	struct nlattr *attrs[XFRMA_SPD_INFO + 1];
	struct xfrmu_spdinfo info = { 0 };

	if (form_check(msg, &form, attrs) < 0)
		return -EBADMSG;
	if (attrs[XFRMA_SPD_INFO])
		nla_memcpy(&info, attrs[XFRMA_SPD_INFO], sizeof(info));
	row->kind = FIREWALL_POLICIES;
	row->policy_cnt = (uint64_t)info.incnt + info.outcnt;
	return 0;
}

int libnl_read_policies(firewall_take_fn *take, void *ctx)
{
	static const uint32_t flags = UINT32_MAX;
	static const struct question policies = {
		.protocol = NETLINK_XFRM,
		.type = XFRM_MSG_GETSPDINFO,
		.body = &flags,
		.body_len = sizeof(flags),
		.answer_type = XFRM_MSG_NEWSPDINFO,
		.read = read_policies,
	};

	return ask(&policies, take, ctx);
}

/* -- tc ----------------------------------------------------------------------------- */

/* The interfaces of the namespace, in the order of their indices. */
struct link_list {
	struct tc_link {
		int ifindex;
		char name[IF_NAMESIZE];
		/* it has a place for filters of received packets, and for filters
		 * of sent ones */
		bool has_ingress, has_egress;
	} *links;
	size_t cnt, size;
	bool is_out_of_memory;
};

static int read_link(struct nlmsghdr *msg, struct firewall_row *row)
{
	static const struct nla_policy policy[IFLA_IFNAME + 1] = {
		[IFLA_IFNAME] = FORM_NAME,
	};
	static const struct form form = { sizeof(struct ifinfomsg), IFLA_IFNAME,
					  policy };
	const struct ifinfomsg *head = nlmsg_data(msg);
	struct nlattr *attrs[IFLA_IFNAME + 1];

	if (form_check(msg, &form, attrs) < 0)
		return -EBADMSG;
	row->kind = FIREWALL_LINK;
	/* 0: nobody wants it */
	row->ifindex = head->ifi_flags & IFF_LOOPBACK ? 0 : head->ifi_index;
	if (attrs[IFLA_IFNAME])
		nla_memcpy(row->link, attrs[IFLA_IFNAME], IF_NAMESIZE - 1);
	return 0;
}

static void add_link(void *ctx, const struct firewall_row *row)
{
	struct link_list *list = ctx;

	if (row->ifindex <= 0)
		return;
	if (list->cnt == list->size) {
		size_t size = list->size ? 2 * list->size : 16;
		struct tc_link *links = realloc(list->links, size * sizeof(*links));

		if (!links) {
			list->is_out_of_memory = true;
			return;
		}
		list->links = links;
		list->size = size;
	}
	list->links[list->cnt] = (struct tc_link){ .ifindex = row->ifindex };
	memcpy(list->links[list->cnt++].name, row->link, IF_NAMESIZE);
}

/* Takes the interface of a qdisc, if it is one of the two kinds that hold filters. */
static int read_qdisc(struct nlmsghdr *msg, struct firewall_row *row)
{
	static const struct nla_policy policy[TCA_KIND + 1] = {
		[TCA_KIND] = { .type = NLA_STRING, .maxlen = FIREWALL_NAME_SIZE },
	};
	static const struct form form = { sizeof(struct tcmsg), TCA_KIND,
					  policy };
	const struct tcmsg *head = nlmsg_data(msg);
	struct nlattr *attrs[TCA_KIND + 1], *kind;

	if (form_check(msg, &form, attrs) < 0)
		return -EBADMSG;
	kind = attrs[TCA_KIND];
	row->is_egress = kind && nla_strcmp(kind, "clsact") == 0;
	if (row->is_egress || (kind && nla_strcmp(kind, "ingress") == 0))
		row->ifindex = head->tcm_ifindex;
	return 0;
}

static void mark_link(void *ctx, const struct firewall_row *row)
{
	struct link_list *list = ctx;

	for (size_t i = 0; i < list->cnt; i++)
		if (list->links[i].ifindex == row->ifindex) {
			list->links[i].has_ingress = true;
			list->links[i].has_egress = row->is_egress;
		}
}

static int read_filter(struct nlmsghdr *msg, struct firewall_row *row)
{
	if (!nlmsg_valid_hdr(msg, sizeof(struct tcmsg)))
		return -EBADMSG;
	row->kind = FIREWALL_FILTERS;
	return 1;
}

static void note_filter(void *ctx, const struct firewall_row *row UNUSED)
{
	*(bool *)ctx = true;
}

static int ask_filters(const struct tc_link *link, bool is_egress,
		       firewall_take_fn *take, void *ctx)
{
	const struct tcmsg body = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = link->ifindex,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, is_egress ?
							     TC_H_MIN_EGRESS :
							     TC_H_MIN_INGRESS),
	};
	const struct question filters = {
		.protocol = NETLINK_ROUTE,
		.type = RTM_GETTFILTER,
		.flags = NLM_F_DUMP,
		.body = &body,
		.body_len = sizeof(body),
		.answer_type = RTM_NEWTFILTER,
		.read = read_filter,
	};
	struct firewall_row row = {
		.kind = FIREWALL_FILTERS,
		.ifindex = link->ifindex,
		.is_egress = is_egress,
	};
	bool is_there = false;
	int err = ask(&filters, note_filter, &is_there);

	memcpy(row.link, link->name, IF_NAMESIZE);
	if (is_there)
		take(ctx, &row);
	return err;
}

static int ask_links(struct link_list *list)
{
	static const struct ifinfomsg body = { .ifi_family = AF_UNSPEC };
	static const struct question links = {
		.protocol = NETLINK_ROUTE,
		.type = RTM_GETLINK,
		.flags = NLM_F_DUMP,
		.body = &body,
		.body_len = sizeof(body),
		.answer_type = RTM_NEWLINK,
		.read = read_link,
	};

	return ask(&links, add_link, list);
}

static int ask_qdiscs(struct link_list *list)
{
	static const struct tcmsg body = { .tcm_family = AF_UNSPEC };
	static const struct question qdiscs = {
		.protocol = NETLINK_ROUTE,
		.type = RTM_GETQDISC,
		.flags = NLM_F_DUMP,
		.body = &body,
		.body_len = sizeof(body),
		.answer_type = RTM_NEWQDISC,
		.read = read_qdisc,
	};

	return ask(&qdiscs, mark_link, list);
}

static void take_link(const struct tc_link *link, firewall_take_fn *take, void *ctx)
{
	struct firewall_row row = { .kind = FIREWALL_LINK,
				    .ifindex = link->ifindex };

	memcpy(row.link, link->name, IF_NAMESIZE);
	take(ctx, &row);
}

/* The kernel lists filters for one interface and direction at a time, so we only
 * ask about interfaces that have a place for them. */
int libnl_read_filters(firewall_take_fn *take, void *ctx)
{
	struct link_list list = { .cnt = 0 };
	int err = ask_links(&list);

	if (!err && list.is_out_of_memory)
		err = -ENOMEM;
	for (size_t i = 0; i < list.cnt; i++)
		take_link(&list.links[i], take, ctx);
	if (!err)
		err = ask_qdiscs(&list);
	for (size_t i = 0; i < list.cnt && !err; i++) {
		const struct tc_link *link = &list.links[i];

		if (link->has_ingress)
			err = ask_filters(link, false, take, ctx);
		if (link->has_egress && !err)
			err = ask_filters(link, true, take, ctx);
	}
	free(list.links);
	return err;
}
