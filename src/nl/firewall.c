/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking the kernel for filters and policies: one socket and one request for each
 * of its answers, nothing stays open. */
#include "config.h"

#include "nl/firewall.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/xfrm.h>
#include <string.h>

#include "base/text.h"
#include "nl/netlink_msg.h"
#include "os/file.h"
#include "os/real.h"

enum {
	/* What the kernel fills at once with a dump. */
	BUF_SIZE = 32 << 10,
	SEQ = 1,
};

/* One question: the request, and who reads its answers. */
struct question {
	int protocol;
	uint16_t type;
	uint16_t flags;
	/* what follows the header */
	const void *body;
	size_t body_len;
	uint16_t answer_type;
	int (*name)(const struct nlmsghdr *msg, struct text *out);
};

static int send_question(int fd, const struct question *q)
{
	struct {
		struct nlmsghdr head;
		uint8_t body[16];
	} request = {
		.head = {
			.nlmsg_len = (uint32_t)NLMSG_LENGTH(q->body_len),
			.nlmsg_type = q->type,
			.nlmsg_flags = NLM_F_REQUEST | q->flags,
			.nlmsg_seq = SEQ,
		},
	};

	memcpy(request.body, q->body, q->body_len);
	return real.send(fd, &request, request.head.nlmsg_len, 0) < 0 ? -errno
								     : 0;
}

enum { IS_COMPLETE = 1 };

/* IS_COMPLETE, 0 for more to come, or negative errno; what is found is added to
 * *cnt. */
static int take_answers(const struct question *q, const uint8_t *buf,
			size_t len, struct text *out, int *cnt)
{
	const struct nlmsghdr *msg;
	int rc;

	while ((msg = netlink_next(&buf, &len))) {
		if (msg->nlmsg_seq != SEQ)
			continue;
		if (msg->nlmsg_type == NLMSG_DONE)
			return IS_COMPLETE;
		if (msg->nlmsg_type == NLMSG_ERROR) {
			rc = netlink_error(msg);
			return rc ? rc : IS_COMPLETE;
		}
		if (msg->nlmsg_type != q->answer_type)
			continue;
		rc = q->name(msg, out);
		if (rc < 0)
			return rc;
		*cnt += rc;
		if (!(msg->nlmsg_flags & NLM_F_MULTI))
			return IS_COMPLETE;
	}
	return 0;
}

/* The kernel has the next answer ready when the last one was taken. */
static int read_answers(int fd, const struct question *q, struct text *out,
			int *cnt)
{
	uint8_t buf[BUF_SIZE] __attribute__((aligned(NLMSG_ALIGNTO)));
	int rc = 0;

	while (!rc) {
		ssize_t len = real.recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -errno;
		rc = take_answers(q, buf, (size_t)len, out, cnt);
	}
	return rc < 0 ? rc : 0;
}

/* How many things were named, or negative errno. */
static int ask(const struct question *q, struct text *out)
{
	int fd = real.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, q->protocol);
	int err, cnt = 0;

	if (fd < 0)
		return -errno;
	err = send_question(fd, q);
	if (!err)
		err = read_answers(fd, q, out, &cnt);
	real.close(fd);
	return err ? err : cnt;
}

static int ask_nftables(struct text *out)
{
	static const struct nfgenmsg body = { .nfgen_family = AF_UNSPEC };
	static const struct question chains = {
		.protocol = NETLINK_NETFILTER,
		.type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
		.flags = NLM_F_DUMP,
		.body = &body,
		.body_len = sizeof(body),
		.answer_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN,
		.name = firewall_name_chain,
	};

	return ask(&chains, out);
}

static int ask_xfrm(struct text *out)
{
	static const uint32_t flags = UINT32_MAX;
	static const struct question policies = {
		.protocol = NETLINK_XFRM,
		.type = XFRM_MSG_GETSPDINFO,
		.body = &flags,
		.body_len = sizeof(flags),
		.answer_type = XFRM_MSG_NEWSPDINFO,
		.name = firewall_name_policies,
	};

	return ask(&policies, out);
}

/* iptables' own tables, which exist from their first use on. */
static int ask_iptables(struct text *out)
{
	char lines[256];
	ssize_t len = file_peek("/proc/thread-self/net/ip_tables_names", lines,
				sizeof(lines) - 1);

	if (len < 0)
		return (int)len;
	lines[len] = '\0';
	return firewall_name_tables(lines, out);
}

int firewall_read(char *text, size_t size)
{
	static int (*const questions[])(struct text *out) = {
		ask_nftables,
		ask_iptables,
		ask_xfrm,
	};
	struct text out = text_in(text, size);
	bool is_denied = false;
	int cnt = 0;

	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		int rc = questions[i](&out);

		/* Anything else: the kernel has no such thing. */
		if (rc == -EPERM || rc == -EACCES)
			is_denied = true;
		if (rc > 0)
			cnt += rc;
	}
	return !cnt && is_denied ? -EPERM : cnt;
}
