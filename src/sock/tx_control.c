/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the control messages of a send (tx_control.h). */
#include "config.h"

#include "sock/tx_control.h"

#include <linux/pkt_sched.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>
#include <sys/socket.h>

#include "sock/tx_stamps.h"

static bool read_int(const uint8_t *body, size_t len, int *value_out)
{
	if (len != sizeof(*value_out))
		return false;
	memcpy(value_out, body, sizeof(*value_out));
	return true;
}

static bool read_pktinfo(const uint8_t *body, size_t len,
			 struct tx_control *out)
{
	struct in_pktinfo info;

	if (len != sizeof(info))
		return false;
	memcpy(&info, body, sizeof(info));
	if (info.ipi_ifindex)
		out->ifindex = info.ipi_ifindex;
	out->source = ip_addr_from_v4(info.ipi_spec_dst.s_addr);
	out->has_source = true;
	return true;
}

/* The same with a mapped address. The kernel has to judge any other address. */
static bool read_pktinfo6(const uint8_t *body, size_t len,
			  struct tx_control *out)
{
	struct in6_pktinfo info;
	struct ip_addr source;

	if (len != sizeof(info))
		return false;
	memcpy(&info, body, sizeof(info));
	source = ip_addr_from_v6(&info.ipi6_addr);
	if (!ip_addr_is_v4(&source))
		return false;
	if (info.ipi6_ifindex)
		out->ifindex = (int)info.ipi6_ifindex;
	out->source = source;
	out->has_source = true;
	return true;
}

/* Linux takes a byte, too. */
static bool read_tos(const uint8_t *body, size_t len, struct tx_control *out)
{
	int value;

	if (len == sizeof(uint8_t))
		value = *body;
	else if (!read_int(body, len, &value))
		return false;
	out->tos = value;
	return value >= 0 && value <= 255;
}

static bool read_ttl(const uint8_t *body, size_t len, struct tx_control *out)
{
	return read_int(body, len, &out->ttl) && out->ttl >= 1 &&
	       out->ttl <= 255;
}

/* Stations that we have no stamps of are for the kernel, or for it to refuse. */
static bool read_stations(const uint8_t *body, size_t len,
			  struct tx_control *out)
{
	if (len != sizeof(out->stations))
		return false;
	memcpy(&out->stations, body, sizeof(out->stations));
	out->has_stations = true;
	return !(out->stations & ~(uint32_t)TX_STAMPS_STATIONS);
}

static bool read_one(const struct cmsghdr *head, const uint8_t *body,
		     size_t len, bool is_v6, struct tx_control *out)
{
	if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SO_TIMESTAMPING)
		return read_stations(body, len, out);
	out->asks_else = true;
	if (is_v6 && head->cmsg_level == IPPROTO_IPV6 &&
	    head->cmsg_type == IPV6_PKTINFO)
		return read_pktinfo6(body, len, out);
	if (head->cmsg_level != IPPROTO_IP)
		return false;
	switch (head->cmsg_type) {
	case IP_PKTINFO:
		return read_pktinfo(body, len, out);
	case IP_TOS:
		return read_tos(body, len, out);
	case IP_TTL:
		return read_ttl(body, len, out);
	default:
		return false;
	}
}

bool tx_control_read(const void *data, size_t len, bool is_v6,
		     struct tx_control *out)
{
	const uint8_t *at = data;
	struct cmsghdr head;

	*out = (struct tx_control){ .tos = -1, .bytes = data, .len = len };
	if (len > TX_CONTROL_LEN_MAX)
		return false;
	/* fewer bytes than a header at the end count as nothing */
	while (len >= sizeof(head)) {
		size_t step;

		memcpy(&head, at, sizeof(head));
		if (head.cmsg_len < sizeof(head) || head.cmsg_len > len ||
		    !read_one(&head, at + CMSG_LEN(0),
			      head.cmsg_len - CMSG_LEN(0), is_v6, out))
			return false;
		step = MIN(CMSG_ALIGN(head.cmsg_len), len);
		at += step;
		len -= step;
	}
	return true;
}

/* As ip_tos2prio of Linux: the names are those of linux/pkt_sched.h. */
uint32_t tx_control_priority(uint8_t tos)
{
	static const uint8_t priorities[] = {
		TC_PRIO_BESTEFFORT,
		TC_PRIO_BULK,
		TC_PRIO_INTERACTIVE,
		TC_PRIO_INTERACTIVE_BULK,
	};

	return priorities[(tos & IPTOS_TOS_MASK) >> 3];
}
