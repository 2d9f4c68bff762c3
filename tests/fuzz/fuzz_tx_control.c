/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as the control data of a send. What is taken is what Linux takes: a
 * walk with the C library's macros finds nothing else in it.
 */
#include "config.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sock/tx_control.h"
#include "sock/tx_stamps.h"
#include "tests/support/fuzz.h"

static bool is_known(const struct cmsghdr *c, bool is_v6)
{
	if (c->cmsg_level == SOL_SOCKET)
		return c->cmsg_type == SO_TIMESTAMPING &&
		       c->cmsg_len == CMSG_LEN(sizeof(uint32_t));
	if (c->cmsg_level == IPPROTO_IPV6)
		return is_v6 && c->cmsg_type == IPV6_PKTINFO &&
		       c->cmsg_len == CMSG_LEN(sizeof(struct in6_pktinfo));
	return c->cmsg_level == IPPROTO_IP &&
	       ((c->cmsg_type == IP_PKTINFO &&
		 c->cmsg_len == CMSG_LEN(sizeof(struct in_pktinfo))) ||
		(c->cmsg_type == IP_TTL &&
		 c->cmsg_len == CMSG_LEN(sizeof(int))) ||
		(c->cmsg_type == IP_TOS &&
		 (c->cmsg_len == CMSG_LEN(sizeof(int)) ||
		  c->cmsg_len == CMSG_LEN(1))));
}

static void check(void *data, size_t len, bool is_v6)
{
	struct msghdr msg = { .msg_control = data, .msg_controllen = len };
	struct tx_control control;

	if (!tx_control_read(data, len, is_v6, &control))
		return;
	FUZZ_CHECK(control.tos >= -1 && control.tos <= 255);
	FUZZ_CHECK(control.ttl >= 0 && control.ttl <= 255);
	FUZZ_CHECK(!(control.stations & ~(uint32_t)TX_STAMPS_STATIONS));
	FUZZ_CHECK(!control.has_source || ip_addr_is_v4(&control.source));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c))
		FUZZ_CHECK(is_known(c, is_v6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exactly as long as it is, so that a sanitizer sees each byte more */
	void *copy = malloc(size);

	if (size && !copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	check(copy, size, false);
	check(copy, size, true);
	free(copy);
	return 0;
}
