/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses, routes and netlink messages for tests, each in one line. */
#ifndef UNIT_NL_BUILD_H
#define UNIT_NL_BUILD_H

#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "base/ipaddr.h"
#include "nl/net_view.h"
#include "tests/support/test.h"

/* "10.0.0.1", or NULL for none. */
static inline struct ip_addr addr(const char *text)
{
	struct ip_addr a = { 0 };

	if (text)
		CHECK_EQ(ip_addr_parse(text, strlen(text), &a), 0);
	return a;
}

/* "10.0.0.0/8"; the length counts all 128 bits. */
static inline struct ip_addr prefix(const char *text, unsigned *len_out)
{
	const char *slash = strchr(text, '/');
	struct ip_addr a;

	CHECK(slash);
	CHECK_EQ(ip_addr_parse(text, (size_t)(slash - text), &a), 0);
	*len_out = (unsigned)atoi(slash + 1);
	if (ip_addr_is_v4(&a))
		*len_out += IP_PREFIX_V4;
	return a;
}

static inline struct link_info link_up(int ifindex, const char *name)
{
	struct link_info info = {
		.ifindex = ifindex,
		.flags = IFF_UP | IFF_RUNNING,
		.mtu = 1500,
	};

	if (ifindex == 1)
		info.flags |= IFF_LOOPBACK;
	strcpy(info.name, name);
	return info;
}

/* A rule that sends everything to a table. */
static inline struct policy rule(uint32_t priority, uint32_t table)
{
	return (struct policy){
		.priority = priority,
		.table = table,
		.action = FR_ACT_TO_TBL,
		.uid_last = UINT32_MAX,
		.suppress_len = -1,
		.suppress_group = -1,
	};
}

static inline struct addr_info address(int ifindex, const char *text,
				       const char *of)
{
	struct addr_info info = { .ifindex = ifindex, .local = addr(text) };
	unsigned len;

	info.prefix = prefix(of, &len);
	info.prefix_len = len;
	return info;
}

/* A message under construction. */
struct message {
	struct nlmsghdr head;
	uint8_t rest[1000];
};

static inline void msg_begin(struct message *m, uint16_t type, const void *body,
			     size_t len)
{
	memset(m, 0, sizeof(*m));
	m->head.nlmsg_type = type;
	m->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
	if (len)
		memcpy(NLMSG_DATA(&m->head), body, len);
}

/* Returns where the attribute begins, for msg_nest_end. */
static inline struct nlattr *msg_put(struct message *m, uint16_t type,
				     const void *data, size_t len)
{
	struct nlattr *attr =
		(struct nlattr *)((uint8_t *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	if (len)
		memcpy(attr + 1, data, len);
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) +
			    (uint32_t)NLA_ALIGN(attr->nla_len);
	CHECK(m->head.nlmsg_len <= sizeof(*m));
	return attr;
}

static inline void msg_put_u32(struct message *m, uint16_t type, uint32_t value)
{
	msg_put(m, type, &value, sizeof(value));
}

static inline void msg_put_text(struct message *m, uint16_t type,
				const char *text)
{
	msg_put(m, type, text, strlen(text) + 1);
}

static inline void msg_put_v4(struct message *m, uint16_t type,
			      const char *text)
{
	struct ip_addr a = addr(text);

	msg_put(m, type, &a.byte[12], 4);
}

static inline void msg_nest_end(struct message *m, struct nlattr *nest)
{
	nest->nla_len = (uint16_t)((uint8_t *)m +
				   NLMSG_ALIGN(m->head.nlmsg_len) -
				   (uint8_t *)nest);
}

#endif
