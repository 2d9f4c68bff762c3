/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as an ICMP message, with and without a checksum that is right. The first
 * four bytes are a length and an MTU by which a datagram is cut.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ip/ip_frag.h"
#include "ip/ip_icmp.h"
#include "tests/support/fuzz.h"

static void parse(const uint8_t *data, size_t len)
{
	struct ip_icmp icmp;
	int rc = ip_icmp_parse(data, len, &icmp);

	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ENOMSG);
	if (rc)
		return;
	FUZZ_CHECK(len >= 8 + 20 + 8);
	FUZZ_CHECK(icmp.error < 0 && icmp.quoted_len >= 28);
	FUZZ_CHECK(ip_addr_is_v4(&icmp.key.local));
	FUZZ_CHECK(icmp.proto == WIRE_PROTO_TCP ||
		   icmp.proto == WIRE_PROTO_UDP);
}

static void cut(uint16_t len, uint16_t mtu)
{
	struct wire_ipv4 header = { .version_ihl = 0x45 };
	struct ip_frag_walk walk;
	struct ip_frag frag;
	uint32_t at = 0, cnt = 0;

	if (ip_frag_begin(&walk, &header, len, mtu) != 0)
		return;
	while (ip_frag_next(&walk, &frag)) {
		FUZZ_CHECK(frag.offset == at && frag.offset % 8 == 0);
		FUZZ_CHECK(frag.len + 20 <= mtu);
		at += frag.len;
		cnt++;
	}
	FUZZ_CHECK(at == len && cnt == ip_frag_cnt(&walk));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t check;
	uint8_t *copy;

	if (size < 4)
		return 0;
	cut(wire_get_u16(data), wire_get_u16(data + 2));
	data += 4;
	size -= 4;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	parse(copy, size);
	if (size >= 4) {
		memset(copy + 2, 0, 2);
		check = csum_fold(csum_partial(copy, size, 0));
		memcpy(copy + 2, &check, sizeof(check));
		parse(copy, size);
	}
	free(copy);
	return 0;
}
