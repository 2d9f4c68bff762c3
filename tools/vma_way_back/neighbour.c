/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "tools/vma_way_back/neighbour.h"

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

/* -1: there is none */
static int rtnetlink;

void neighbour_prepare(void)
{
	rtnetlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

/* The kernel complains before the call that asks returns. */
static void ask(struct wish *wish)
{
	struct iovec iov = { wish, wish->head.nlmsg_len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	(void)!sendmsg(rtnetlink, &msg, 0);
	/* where there is room for nothing, all of it is gone */
	iov.iov_len = 0;
	while (recvmsg(rtnetlink, &msg, MSG_DONTWAIT) >= 0)
		;
}

void neighbour_confirm(const struct keeper_request *request)
{
	struct ip_addr addr;
	struct wish wish = {
		.head = { .nlmsg_type = RTM_NEWNEIGH,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE },
		.body = { .ndm_ifindex = request->ifindex,
			  .ndm_state = NUD_NONE,
			  .ndm_flags = NTF_USE },
		.dst = { .rta_type = NDA_DST },
	};
	size_t skipped, len;

	if (rtnetlink < 0)
		return;
	memcpy(&addr, request->addr, sizeof(addr));
	skipped = ip_addr_is_v4(&addr) ? 12 : 0;
	len = sizeof(addr) - skipped;
	wish.body.ndm_family = skipped ? AF_INET : AF_INET6;
	wish.dst.rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(wish.addr, addr.byte + skipped, len);
	wish.head.nlmsg_len = (uint32_t)(offsetof(struct wish, addr) + len);
	ask(&wish);
}
