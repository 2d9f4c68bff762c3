/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The questions about filters and policies, against a kernel made up here. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <stdio.h>

#include "nl/libnl/conn.h"
#include "os/real.h"
#include "tests/unit/nl/build.h"

enum { NEW_CHAIN = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN };

/* What the kernel answers, one datagram each; libnl's socket is a true one. */
static struct message answers[48];
static unsigned answer_cnt, read_cnt;
static struct nlmsghdr question;
static uint32_t from_port;
static struct real_calls genuine;

static ssize_t fake_send(int fd UNUSED, const void *buf, size_t len,
			 int flags UNUSED)
{
	memcpy(&question, buf, sizeof(question));
	for (unsigned i = 0; i < answer_cnt; i++)
		answers[i].head.nlmsg_seq = question.nlmsg_seq;
	return (ssize_t)len;
}

static ssize_t fake_recvfrom(int fd UNUSED, void *buf, size_t len,
			     int flags UNUSED, struct sockaddr *from,
			     socklen_t *from_len UNUSED)
{
	const struct message *m = &answers[read_cnt];

	if (read_cnt == answer_cnt) {
		errno = EAGAIN;
		return -1;
	}
	read_cnt++;
	CHECK(m->head.nlmsg_len <= len);
	memcpy(buf, m, m->head.nlmsg_len);
	((struct sockaddr_nl *)from)->nl_pid = from_port;
	return m->head.nlmsg_len;
}

static struct firewall_row rows[48];
static unsigned row_cnt;

static void take(void *ctx UNUSED, const struct firewall_row *row)
{
	rows[row_cnt++] = *row;
}

/* Asks, and forgets the answers. */
static int ask(int (*read)(firewall_take_fn *, void *))
{
	int rc;

	genuine = real;
	real.send = fake_send;
	real.recvfrom = fake_recvfrom;
	row_cnt = read_cnt = 0;
	rc = read(take, NULL);
	real = genuine;
	answer_cnt = 0;
	return rc;
}

static struct message *answer(uint16_t type, const void *body, size_t len)
{
	struct message *m = &answers[answer_cnt++];

	msg_begin(m, type, body, len);
	return m;
}

static struct message *answer_chain(uint8_t family, const char *name)
{
	struct nfgenmsg head = { .nfgen_family = family };
	struct message *m = answer(NEW_CHAIN, &head, sizeof(head));

	m->head.nlmsg_flags = NLM_F_MULTI;
	msg_put_text(m, NFTA_CHAIN_TABLE, "filter");
	msg_put_text(m, NFTA_CHAIN_NAME, name);
	return m;
}

static void put_hook(struct message *m, uint32_t hook)
{
	struct nlattr *nest = msg_put(m, NFTA_CHAIN_HOOK, NULL, 0);

	msg_put_u32(m, NFTA_HOOK_HOOKNUM, htonl(hook));
	msg_nest_end(m, nest);
}

static void answer_done(void)
{
	int error = 0;

	answer(NLMSG_DONE, &error, sizeof(error));
}

static void answer_error(int error)
{
	struct nlmsgerr body = { .error = error };

	answer(NLMSG_ERROR, &body, sizeof(body));
}

TEST(chains_with_and_without_a_hook)
{
	answer_chain(NFPROTO_IPV4, "aside");
	put_hook(answer_chain(NFPROTO_INET, "input"), NF_INET_LOCAL_IN);
	answer_done();
	CHECK_EQ(ask(libnl_read_chains), 0);
	CHECK_EQ(question.nlmsg_type,
		 NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN);
	CHECK_EQ(row_cnt, 2);
	CHECK_EQ(rows[0].family, NFPROTO_IPV4);
	CHECK_STR(rows[0].table, "filter");
	CHECK_STR(rows[0].chain, "aside");
	CHECK(!rows[0].has_hook && rows[0].kind == FIREWALL_CHAIN);
	CHECK(rows[1].has_hook);
	CHECK_EQ(rows[1].hook, NF_INET_LOCAL_IN);
}

TEST(a_long_name_is_cut)
{
	char name[101];

	memset(name, 'n', 100);
	name[100] = '\0';
	answer_chain(NFPROTO_INET, name);
	answer_done();
	CHECK_EQ(ask(libnl_read_chains), 0);
	CHECK_EQ(strlen(rows[0].chain), FIREWALL_NAME_SIZE - 1);
}

TEST(policies_are_counted)
{
	struct xfrmu_spdinfo info = { .incnt = 1, .outcnt = 2, .fwdcnt = 7 };
	uint32_t flags = 0;
	struct message *m = answer(XFRM_MSG_NEWSPDINFO, &flags, sizeof(flags));

	msg_put(m, XFRMA_SPD_INFO, &info, sizeof(info));
	CHECK_EQ(ask(libnl_read_policies), 0);
	CHECK_EQ(question.nlmsg_type, XFRM_MSG_GETSPDINFO);
	CHECK_EQ(row_cnt, 1);
	CHECK(rows[0].kind == FIREWALL_POLICIES);
	CHECK_EQ(rows[0].policy_cnt, 3);
}

static void answer_link(int ifindex, unsigned flags, const char *name)
{
	struct ifinfomsg head = { .ifi_index = ifindex, .ifi_flags = flags };
	struct message *m = answer(RTM_NEWLINK, &head, sizeof(head));

	m->head.nlmsg_flags = NLM_F_MULTI;
	msg_put_text(m, IFLA_IFNAME, name);
}

static void answer_tc(uint16_t type, int ifindex, const char *kind)
{
	struct tcmsg head = { .tcm_ifindex = ifindex };
	struct message *m = answer(type, &head, sizeof(head));

	m->head.nlmsg_flags = NLM_F_MULTI;
	msg_put_text(m, TCA_KIND, kind);
}

/* Three questions: interfaces, qdiscs, and the filters of the one that may have some,
 * which end with the first, in each direction. */
TEST(filters_of_tc)
{
	answer_link(1, IFF_LOOPBACK, "lo");
	answer_link(2, 0, "eth0");
	answer_link(7, 0, "eth1");
	answer_done();
	answer_tc(RTM_NEWQDISC, 1, "clsact");
	answer_tc(RTM_NEWQDISC, 2, "fq_codel");
	answer_tc(RTM_NEWQDISC, 7, "clsact");
	answer_done();
	answer_tc(RTM_NEWTFILTER, 7, "bpf");
	answer_tc(RTM_NEWTFILTER, 7, "bpf");
	CHECK_EQ(ask(libnl_read_filters), 0);
	CHECK_EQ(question.nlmsg_type, RTM_GETTFILTER);
	CHECK_EQ(row_cnt, 4);
	CHECK_EQ(rows[0].kind, FIREWALL_LINK);
	CHECK_EQ(rows[0].ifindex, 2);
	CHECK_STR(rows[0].link, "eth0");
	CHECK_EQ(rows[1].ifindex, 7);
	CHECK_EQ(rows[2].kind, FIREWALL_FILTERS);
	CHECK_STR(rows[2].link, "eth1");
	CHECK(!rows[2].is_egress);
	CHECK(rows[3].is_egress);
}

/* Interfaces can have programs of tcx where the kernel has no tc. */
TEST(no_tc_in_the_kernel)
{
	answer_link(2, 0, "eth0");
	answer_done();
	answer_error(-EOPNOTSUPP);
	CHECK_EQ(ask(libnl_read_filters), -EOPNOTSUPP);
	CHECK_EQ(row_cnt, 1);
	CHECK_EQ(rows[0].kind, FIREWALL_LINK);
}

TEST(many_interfaces)
{
	char name[IF_NAMESIZE];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		answer_link(i + 2, 0, name);
	}
	answer_done();
	answer_done();
	CHECK_EQ(ask(libnl_read_filters), 0);
	CHECK_EQ(row_cnt, 40);
	CHECK_STR(rows[39].link, "v39");
	CHECK_EQ(rows[39].ifindex, 41);
}

TEST(refusals_and_silence)
{
	answer_error(-EPERM);
	CHECK_EQ(ask(libnl_read_chains), -EPERM);
	CHECK_EQ(row_cnt, 0);
	CHECK_EQ(ask(libnl_read_policies), -EAGAIN);
}

TEST(only_the_kernel_is_heard)
{
	from_port = 77;
	answer_chain(NFPROTO_INET, "input");
	answer_done();
	CHECK_EQ(ask(libnl_read_chains), -EAGAIN);
	CHECK_EQ(row_cnt, 0);
	from_port = 0;
}

TEST(nonsense_is_refused)
{
	uint32_t flags = 0;
	struct message *m;

	answer(NEW_CHAIN, "x", 1);
	CHECK_EQ(ask(libnl_read_chains), -EBADMSG);
	m = answer_chain(NFPROTO_INET, "input");
	msg_put(m, NFTA_CHAIN_HOOK, "\x09\0\1\0", 4);
	CHECK_EQ(ask(libnl_read_chains), -EBADMSG);
	m = answer(XFRM_MSG_NEWSPDINFO, &flags, sizeof(flags));
	msg_put(m, XFRMA_SPD_INFO, "1234", 4);
	CHECK_EQ(ask(libnl_read_policies), -EBADMSG);
	answer(RTM_NEWLINK, "x", 1);
	CHECK_EQ(ask(libnl_read_filters), -EBADMSG);
	CHECK_EQ(row_cnt, 0);
}
