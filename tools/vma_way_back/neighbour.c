/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "tools/vma_way_back/neighbour.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

struct wish {
	struct nlmsghdr head;
	struct ndmsg body;
	struct rtattr dst;
	uint8_t addr[sizeof(struct ip_addr)];
};

struct word {
	struct nlmsghdr head;
	struct nlmsgerr body;
};

/* or a negative errno */
static int rtnetlink;
static uint32_t last_seq;

void neighbour_prepare(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	rtnetlink = fd < 0 ? -errno : fd;
}

static int ask(struct wish *wish)
{
	struct iovec iov = { wish, wish->head.nlmsg_len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sendmsg(rtnetlink, &msg, 0) < 0 ? -errno : 0;
}

/* The kernel has answered before the call that asks returns. */
static int hear(uint32_t seq)
{
	struct word word;
	struct iovec iov = { &word, sizeof(word) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	while ((n = recvmsg(rtnetlink, &msg, MSG_DONTWAIT)) >= 0)
		if ((size_t)n >= sizeof(word) && word.head.nlmsg_seq == seq &&
		    word.head.nlmsg_type == NLMSG_ERROR)
			return MIN(word.body.error, 0);
	return -errno;
}

int neighbour_resolve(const struct keeper_request *request)
{
	struct ip_addr addr;
	struct wish wish = {
		.head = { .nlmsg_type = RTM_NEWNEIGH,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK,
			  .nlmsg_seq = ++last_seq },
		.body = { .ndm_ifindex = request->ifindex,
			  .ndm_state = NUD_NONE,
			  .ndm_flags = NTF_USE },
		.dst = { .rta_type = NDA_DST },
	};
	size_t skipped, len;
	int err;

	if (rtnetlink < 0)
		return rtnetlink;
	memcpy(&addr, request->addr, sizeof(addr));
	skipped = ip_addr_is_v4(&addr) ? 12 : 0;
	len = sizeof(addr) - skipped;
	wish.body.ndm_family = skipped ? AF_INET : AF_INET6;
	wish.dst.rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(wish.addr, addr.byte + skipped, len);
	wish.head.nlmsg_len = (uint32_t)(offsetof(struct wish, addr) + len);
	err = ask(&wish);
	return err ? err : hear(wish.head.nlmsg_seq);
}
