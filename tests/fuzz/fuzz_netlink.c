/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as what the kernel sends, through the door that its messages take: our
 * recvmsg, libnl, the rows, the view. What was understood is known: the same again
 * changes nothing; and every question has an answer. A message becomes part of the
 * reading under way when its sequence number is odd, and NLMSG_DONE ends it.
 */
#include "config.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <netlink/msg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "nl/libnl/conn.h"
#include "nl/netlink.h"
#include "os/real.h"
#include "os/services.h"
#include "tests/support/fuzz.h"

static struct net_view view;
static struct netlink nl;

/* The kernel: the last request, and the datagram that is there. */
static struct nlmsghdr request;
static const void *datagram;
static size_t datagram_len;
/* What it answers to each question about filters and policies; NULL: nothing. */
static struct nlmsghdr *answer;

static uint16_t answer_type(uint16_t question_type)
{
	switch (question_type) {
	case NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN:
		return NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN;
	case XFRM_MSG_GETSPDINFO:
		return XFRM_MSG_NEWSPDINFO;
	case RTM_GETLINK:
		return RTM_NEWLINK;
	case RTM_GETQDISC:
		return RTM_NEWQDISC;
	default:
		FUZZ_CHECK(question_type == RTM_GETTFILTER);
		return RTM_NEWTFILTER;
	}
}

static ssize_t fake_send(int fd UNUSED, const void *buf, size_t len,
			 int flags UNUSED)
{
	memcpy(&request, buf, sizeof(request));
	if (answer) {
		answer->nlmsg_type = answer_type(request.nlmsg_type);
		answer->nlmsg_seq = request.nlmsg_seq;
		answer->nlmsg_flags = 0;
		datagram = answer;
		datagram_len = answer->nlmsg_len;
	}
	return (ssize_t)len;
}

static ssize_t take_datagram(void *buf, size_t len)
{
	if (!datagram) {
		errno = EAGAIN;
		return -1;
	}
	len = MIN(len, datagram_len);
	memcpy(buf, datagram, len);
	datagram = NULL;
	return (ssize_t)len;
}

static ssize_t fake_recvmsg(int fd UNUSED, struct msghdr *msg,
			    int flags UNUSED)
{
	memset(msg->msg_name, 0, msg->msg_namelen);
	msg->msg_flags = 0;
	return take_datagram(msg->msg_iov->iov_base, msg->msg_iov->iov_len);
}

static ssize_t fake_recvfrom(int fd UNUSED, void *buf, size_t len,
			     int flags UNUSED, struct sockaddr *from,
			     socklen_t *from_len)
{
	memset(from, 0, *from_len);
	return take_datagram(buf, len);
}

/* libnl's own sockets are true ones that nothing is sent by; ours are no fds. */
int services_copy_fd(int fd, _Atomic int *slot)
{
	atomic_store(slot, fd);
	return 0;
}

void services_close_fd(_Atomic int *slot)
{
	atomic_store(slot, -1);
}

static void open_connection(void)
{
	static const struct netlink_params params = { 0 };

	if (netlink_open(&nl, &libnl_ops, &view, &params) != 0)
		abort();
}

/* A reading that the kernel refuses ends the connection: there is a new one. */
static void poll_all(void)
{
	int rc, cnt = 0;

	do {
		rc = netlink_poll(&nl);
		FUZZ_CHECK(rc <= 1 && ++cnt < 100);
		if (rc < 0) {
			netlink_close(&nl);
			open_connection();
			rc = 1;
		}
	} while (rc > 0);
}

/* How many messages were refused. */
static uint64_t deliver(const void *bytes, size_t len)
{
	uint64_t before = netlink_counts(&nl)->rejects, now;

	datagram = bytes;
	datagram_len = len;
	poll_all();
	datagram = NULL;
	now = netlink_counts(&nl)->rejects;
	return now < before ? now : now - before;
}

/* A neighbour that did not answer: each time is news. */
static bool is_failure(const struct nlmsghdr *msg)
{
	const struct ndmsg *ndm = NLMSG_DATA(msg);

	return msg->nlmsg_len >= NLMSG_LENGTH(sizeof(*ndm)) &&
	       ndm->ndm_state == NUD_FAILED;
}

/* What may be said twice without a change: not a rule, and nothing that is put in
 * front of what was put in its place. */
static bool is_repeatable(const struct nlmsghdr *msg)
{
	switch (msg->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_NEWADDR:
	case RTM_NEWROUTE:
	case RTM_DELLINK:
	case RTM_DELADDR:
	case RTM_DELNEIGH:
		return true;
	case RTM_NEWNEIGH:
		return !is_failure(msg);
	default:
		return false;
	}
}

static void apply(struct nlmsghdr *msg)
{
	bool is_end = msg->nlmsg_type == NLMSG_DONE ||
		      msg->nlmsg_type == NLMSG_ERROR;
	uint64_t rejects, gen;

	/* of the reading under way, or an event */
	msg->nlmsg_pid = 0;
	if (msg->nlmsg_seq & 1 || is_end) {
		msg->nlmsg_pid = request.nlmsg_pid;
		msg->nlmsg_seq = request.nlmsg_seq;
	}
	rejects = deliver(msg, msg->nlmsg_len);
	FUZZ_CHECK(rejects <= 1);
	if (!is_repeatable(msg))
		return;
	gen = net_view_gen(&view);
	FUZZ_CHECK(deliver(msg, msg->nlmsg_len) == rejects);
	FUZZ_CHECK(net_view_gen(&view) == gen);
}

static void name_row(void *ctx, const struct firewall_row *row)
{
	struct text *text = ctx;
	size_t len = text->len;
	int rc = firewall_name_row(row, text);

	FUZZ_CHECK(memchr(row->link, '\0', sizeof(row->link)));
	FUZZ_CHECK(rc >= 0 && rc <= 1);
	FUZZ_CHECK((rc == 0) == (text->len == len) || text->is_cut);
}

/* The message as the answer to each question about filters and policies. */
static void name(struct nlmsghdr *msg)
{
	int (*const questions[])(firewall_take_fn *, void *) = {
		libnl_read_chains,
		libnl_read_policies,
		libnl_read_filters,
	};
	char buf[FIREWALL_TEXT_SIZE];
	struct text text = text_in(buf, sizeof(buf));
	struct nlmsghdr last = request;

	answer = msg;
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		FUZZ_CHECK(questions[i](name_row, &text) <= 0);
	answer = NULL;
	datagram = NULL;
	request = last;
}

/* Flows made of the same bytes, so that they hit what is there. */
static void ask(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 16 <= size && at < 2048; at += 12) {
		struct net_path path;
		struct net_flow flow = {
			.oif = data[at + 8] & 3,
			.mark = data[at + 9],
			.tos = data[at + 10],
			.proto = data[at + 11],
			.is_on_link_only = data[at + 12] & 1,
			.is_any_src = data[at + 12] & 2,
		};
		__be32 v4;
		int rc;

		memcpy(&v4, data + at, sizeof(v4));
		flow.dst = ip_addr_from_v4(v4);
		memcpy(&v4, data + at + 4, sizeof(v4));
		if (data[at + 12] & 4)
			flow.src = ip_addr_from_v4(v4);
		rc = net_view_route(&view, &flow, &path);
		FUZZ_CHECK(rc <= 0);
		FUZZ_CHECK(rc || (path.ifindex > 0 && path.mtu <= 65535));
		neigh_advice(neigh_tab_find(&view.neighs, flow.oif,
					    &flow.dst));
	}
}

static void count(void *ctx, const struct route *route)
{
	uint32_t *cnt = ctx;

	FUZZ_CHECK(route->hop_cnt <= ROUTE_HOPS_MAX);
	++*cnt;
}

static void set_up(void)
{
	real.send = fake_send;
	real.recvmsg = fake_recvmsg;
	real.recvfrom = fake_recvfrom;
	memset(&request, 0, sizeof(request));
	net_view_init(&view, 0);
	open_connection();
	/* begins the first reading */
	poll_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size);
	struct nlmsghdr *msg = (struct nlmsghdr *)copy;
	int left = (int)size;
	uint32_t route_cnt = 0;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	set_up();
	for (; nlmsg_ok(msg, left); msg = nlmsg_next(msg, &left)) {
		struct nlmsghdr saved = *msg;

		apply(msg);
		name(msg);
		*msg = saved;
	}
	/* what is left makes no message, alone or behind others */
	if (left > 0)
		FUZZ_CHECK(deliver(msg, (size_t)left) == 1);
	deliver(copy, size);
	route_tab_visit(&view.routes, count, &route_cnt);
	FUZZ_CHECK(route_cnt == view.routes.route_cnt);
	ask(copy, size);
	netlink_close(&nl);
	net_view_destroy(&view);
	free(copy);
	return 0;
}
