/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Turns types and codes into errors, and the quoted packet into a flow (ip_icmp.h). */
#include "config.h"

#include "ip/ip_icmp.h"

#include <errno.h>
#include <string.h>

#include "pkt/wire.h"

enum {
	TYPE_TIME_EXCEEDED = 11,
	TYPE_PARAMETER_PROBLEM = 12,
	/* RFC 792: an error quotes at least this much behind the IP header. */
	QUOTED_MIN = 8,
};

struct verdict {
	int error;
	bool is_hard;
};

/* The errors for "destination unreachable", by code. They are the same as Linux's. */
static const struct verdict unreachable[] = {
	{ -ENETUNREACH, false },  /* net */
	{ -EHOSTUNREACH, false }, /* host */
	{ -ENOPROTOOPT, true },	  /* protocol */
	{ -ECONNREFUSED, true },  /* port */
	{ -EMSGSIZE, false },	  /* fragmentation needed */
	{ -EOPNOTSUPP, false },	  /* source route failed */
	{ -ENETUNREACH, true },	  /* net unknown */
	{ -EHOSTDOWN, true },	  /* host unknown */
	{ -ENONET, true },	  /* source host isolated */
	{ -ENETUNREACH, true },	  /* net prohibited */
	{ -EHOSTUNREACH, true },  /* host prohibited */
	{ -ENETUNREACH, false },  /* net, for this TOS */
	{ -EHOSTUNREACH, false }, /* host, for this TOS */
	{ -EHOSTUNREACH, true },  /* filtered */
	{ -EHOSTUNREACH, true },  /* precedence violation */
	{ -EHOSTUNREACH, true },  /* precedence cutoff */
};

/* Finds the error that the message stands for. False: it reports none. */
static bool judge(const struct wire_icmp *icmp, struct verdict *out)
{
	switch (icmp->type) {
	case WIRE_ICMP_UNREACHABLE:
		if (icmp->code >= ARRAY_LEN(unreachable))
			return false;
		*out = unreachable[icmp->code];
		return true;
	case TYPE_TIME_EXCEEDED:
		*out = (struct verdict){ -EHOSTUNREACH, false };
		return true;
	case TYPE_PARAMETER_PROBLEM:
		*out = (struct verdict){ -EPROTO, true };
		return true;
	default:
		return false;
	}
}

static bool is_later_fragment(const uint8_t *ip)
{
	const struct wire_ipv4 *header = (const void *)ip;

	return header->frag & htobe16(WIRE_IPV4_OFFSET);
}

/* The ports are in the same place for both protocols. The sequence number of TCP is
 * right behind them. */
static void read_flow(const struct wire_ip *ip, const uint8_t *transport,
		      struct ip_icmp *out)
{
	out->key = (struct flow_key){
		.local = ip->src,
		.remote = ip->dst,
		.local_port = htobe16(wire_get_u16(transport)),
		.remote_port = htobe16(wire_get_u16(transport + 2)),
	};
	out->proto = ip->proto;
	out->seq = ip->proto == WIRE_PROTO_TCP ? wire_get_u32(transport + 4)
					       : 0;
	out->quoted_len = (uint32_t)ip->header_len + ip->payload_len;
}

static int read_quoted(const uint8_t *data, size_t len, struct ip_icmp *out)
{
	struct wire_ip ip;

	if (wire_parse_quoted_ip(data, len, &ip) != 0)
		return -EINVAL;
	if (!ip_addr_is_v4(&ip.src) || is_later_fragment(data) ||
	    (ip.proto != WIRE_PROTO_TCP && ip.proto != WIRE_PROTO_UDP))
		return -ENOMSG;
	if (len < ip.header_len + (size_t)QUOTED_MIN ||
	    ip.payload_len < QUOTED_MIN)
		return -EINVAL;
	read_flow(&ip, data + ip.header_len, out);
	return 0;
}

int ip_icmp_parse(const uint8_t *data, size_t len, struct ip_icmp *out)
{
	const struct wire_icmp *icmp = (const void *)data;
	struct verdict verdict;

	if (len < sizeof(*icmp) || csum_fold(csum_partial(data, len, 0)) != 0)
		return -EINVAL;
	if (!judge(icmp, &verdict))
		return -ENOMSG;
	out->error = verdict.error;
	out->is_hard = verdict.is_hard;
	out->mtu = verdict.error == -EMSGSIZE ? be16toh(icmp->rest_low) : 0;
	return read_quoted(data + sizeof(*icmp), len - sizeof(*icmp), out);
}
