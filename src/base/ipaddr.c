/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses as text and as members of a prefix. */
#include "config.h"

#include "base/ipaddr.h"

#include <arpa/inet.h>
#include <errno.h>

bool ip_addr_in_prefix(const struct ip_addr *a, const struct ip_addr *net,
		       unsigned len)
{
	unsigned bytes = len / 8, bits = len % 8;

	INVARIANT(len <= IP_PREFIX_MAX, "no address has more bits");
	if (memcmp(a->byte, net->byte, bytes) != 0)
		return false;
	return bits == 0 ||
	       ((a->byte[bytes] ^ net->byte[bytes]) >> (8 - bits)) == 0;
}

int ip_addr_parse(const char *text, size_t len, struct ip_addr *addr_out)
{
	char copy[IP_ADDR_TEXT_SIZE];
	__be32 v4;

	if (len >= sizeof(copy) || memchr(text, '\0', len))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (inet_pton(AF_INET, copy, &v4) == 1) {
		*addr_out = ip_addr_from_v4(v4);
		return 0;
	}
	return inet_pton(AF_INET6, copy, addr_out->byte) == 1 ? 0 : -EINVAL;
}

const char *ip_addr_format(const struct ip_addr *a, char *text)
{
	if (ip_addr_is_v4(a))
		return inet_ntop(AF_INET, &a->word[3], text, IP_ADDR_TEXT_SIZE);
	return inet_ntop(AF_INET6, a->byte, text, IP_ADDR_TEXT_SIZE);
}
