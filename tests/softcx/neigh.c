/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking the kernel about routes and neighbours; see neigh.h. */
#include "config.h"

#include "neigh.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "sys.h"

enum {
	NUD_USABLE = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE |
		     NUD_STALE | NUD_DELAY,
};

/* A request that grows by attributes. */
struct request {
	struct nlmsghdr nl;
	union {
		struct rtmsg route;
		struct ndmsg neigh;
		uint8_t room[256];
	} u;
};

struct reply {
	struct nlmsghdr nl;
	uint8_t room[4096];
};

static size_t addr_len(int family)
{
	return family == AF_INET ? 4 : 16;
}

/* The address inside. */
static const void *addr_of(const struct sockaddr_in6 *addr)
{
	const struct sockaddr_in *in = (const void *)addr;

	return addr->sin6_family == AF_INET ? (const void *)&in->sin_addr :
					      (const void *)&addr->sin6_addr;
}

static void set_addr(struct sockaddr_in6 *addr, int family, const void *bytes)
{
	struct sockaddr_in in = { .sin_family = (sa_family_t)family };

	*addr = (struct sockaddr_in6){ .sin6_family = (sa_family_t)family };
	if (family == AF_INET) {
		memcpy(&in.sin_addr, bytes, sizeof(in.sin_addr));
		memcpy(addr, &in, sizeof(in));
	} else {
		memcpy(&addr->sin6_addr, bytes, sizeof(addr->sin6_addr));
	}
}

static void put_attr(struct request *req, unsigned short type,
		     const struct sockaddr_in6 *addr)
{
	size_t len = addr_len(addr->sin6_family);
	struct rtattr *attr = (void *)((uint8_t *)req +
				       NLMSG_ALIGN(req->nl.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(attr), addr_of(addr), len);
	req->nl.nlmsg_len = NLMSG_ALIGN(req->nl.nlmsg_len) +
			    (uint32_t)RTA_SPACE(len);
}

/* One question, one answer. -errno: the kernel's. */
static int ask(struct request *req, struct reply *reply)
{
	int fd = sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const struct nlmsgerr *err = NLMSG_DATA(&reply->nl);
	ssize_t len;

	if (fd < 0)
		return fd;
	len = sys_write(fd, req, req->nl.nlmsg_len);
	if (len > 0)
		len = sys_read(fd, reply, sizeof(*reply));
	sys_close(fd);
	if (len < 0)
		return (int)len;
	if (!NLMSG_OK(&reply->nl, len))
		return -EPROTO;
	return reply->nl.nlmsg_type == NLMSG_ERROR ? err->error : 0;
}

static void read_route(struct reply *reply, struct neigh_way *way)
{
	const struct rtmsg *route = NLMSG_DATA(&reply->nl);
	int left = (int)RTM_PAYLOAD(&reply->nl), family = route->rtm_family;
	const struct rtattr *attr = RTM_RTA(route);

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		const struct rtvia *via = RTA_DATA(attr);

		switch (attr->rta_type) {
		case RTA_OIF:
			memcpy(&way->ifindex, RTA_DATA(attr), sizeof(int));
			break;
		case RTA_PREFSRC:
			set_addr(&way->src, family, RTA_DATA(attr));
			break;
		case RTA_GATEWAY:
			set_addr(&way->hop, family, RTA_DATA(attr));
			break;
		case RTA_VIA:
			set_addr(&way->hop, via->rtvia_family, via->rtvia_addr);
			break;
		}
	}
	way->has_neighbour = route->rtm_type == RTN_UNICAST;
}

int neigh_route(const struct sockaddr_in6 *dst, const struct sockaddr_in6 *src,
		struct neigh_way *way_out)
{
	int family = dst->sin6_family, ret;
	uint8_t bits = (uint8_t)(addr_len(family) * 8);
	struct request req = {
		.nl = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.u.route = {
			.rtm_family = (unsigned char)family,
			.rtm_dst_len = bits,
			.rtm_src_len = src->sin6_family ? bits : 0,
		},
	};
	struct reply reply;

	if (family != AF_INET && family != AF_INET6)
		return -EAFNOSUPPORT;
	put_attr(&req, RTA_DST, dst);
	if (src->sin6_family)
		put_attr(&req, RTA_SRC, src);
	ret = ask(&req, &reply);
	if (ret)
		return ret;
	*way_out = (struct neigh_way){ .src = *src, .hop = *dst };
	read_route(&reply, way_out);
	return 0;
}

static struct request neigh_request(const struct neigh_way *way,
				    unsigned short type, unsigned short flags)
{
	struct request req = {
		.nl = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | flags,
		},
		.u.neigh = {
			.ndm_family = (unsigned char)way->hop.sin6_family,
			.ndm_ifindex = way->ifindex,
		},
	};

	put_attr(&req, NDA_DST, &way->hop);
	return req;
}

/* As the kernel's own resolver: the entry is used, which starts the search where
 * none goes on, and one that failed is tried again until the caller gives up. */
static void use(const struct neigh_way *way)
{
	struct request req = neigh_request(way, RTM_NEWNEIGH,
					   NLM_F_CREATE | NLM_F_ACK);
	struct reply reply;

	req.u.neigh.ndm_flags = NTF_USE;
	/* A refusal shows as a neighbour that never becomes valid. */
	(void)ask(&req, &reply);
}

bool neigh_is_valid(const struct neigh_way *way)
{
	struct request req = neigh_request(way, RTM_GETNEIGH, 0);
	const struct ndmsg *neigh;
	struct reply reply;
	unsigned int state = NUD_NONE;

	if (ask(&req, &reply) == 0) {
		neigh = NLMSG_DATA(&reply.nl);
		state = neigh->ndm_state;
	}
	if (state & NUD_USABLE)
		return true;
	if (!(state & NUD_INCOMPLETE))
		use(way);
	return false;
}

int neigh_monitor_open(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_NEIGH,
	};
	int fd = sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			    NETLINK_ROUTE);
	int ret;

	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &addr, sizeof(addr));
	if (!ret)
		return fd;
	sys_close(fd);
	return ret;
}
