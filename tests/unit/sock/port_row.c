/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sock/port_row.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr " \
	     "tm->when retrnsmt   uid  timeout inode ref pointer drops"
#define TAIL " 07 00000000:00000000 00:00000000 00000000     0        0 "

static struct port_row row;

static bool is_addr(const struct ip_addr *a, const char *text)
{
	struct ip_addr want;

	CHECK_EQ(ip_addr_parse(text, strlen(text), &want), 0);
	return ip_addr_eq(a, &want);
}

/* The bytes of addresses are in this machine's order. */
TEST(lines_of_both_kinds)
{
	static const char v4[] = "  142: 01004E0A:1B58 02004E0A:1770" TAIL
				 "24680 2 0000000000000000 0";
	static const char v6[] =
		" 9: 00000000000000000000000000000000:1B58"
		" 00000000000000000000000000000000:0000" TAIL "5 2 0 0";
	static const char mapped[] =
		" 9: 0000000000000000FFFF000001004E0A:0035"
		" 00000000000000000000000000000000:0000" TAIL "77";
	static const char listener[] =
		"   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 "
		"00:00000000 00000000     0        0 31 1 0 100 0 0 10 0";

	CHECK(port_row_parse(v4, &row));
	CHECK(is_addr(&row.key.local, "10.78.0.1"));
	CHECK(is_addr(&row.key.remote, "10.78.0.2"));
	CHECK_EQ(be16toh(row.key.local_port), 7000);
	CHECK_EQ(be16toh(row.key.remote_port), 6000);
	CHECK_EQ(row.inode, 24680);
	CHECK(!row.is_ipv6 && !row.listens);
	CHECK(port_row_parse(v6, &row));
	CHECK(is_addr(&row.key.local, "0.0.0.0"));
	CHECK_EQ(row.key.remote_port, 0);
	CHECK_EQ(row.inode, 5);
	CHECK(row.is_ipv6);
	CHECK(port_row_parse(mapped, &row));
	CHECK(is_addr(&row.key.local, "10.78.0.1"));
	CHECK_EQ(row.inode, 77);
	CHECK(row.is_ipv6);
	CHECK(port_row_parse(listener, &row));
	CHECK(row.listens && !row.is_ipv6);
	CHECK_EQ(row.inode, 31);
	CHECK(!port_row_parse(HEAD, &row));
	CHECK(!port_row_parse("", &row));
	/* the inode's digits may be cut, the rest may not */
	for (size_t len = 0; len + 33 < sizeof(v4); len++) {
		char *cut = strndup(v4, len);

		CHECK(!port_row_parse(cut, &row));
		free(cut);
	}
}

static bool competes(const char *local, uint16_t port, uint16_t remote_port,
		     const char *own, uint16_t own_port, uint16_t own_remote)
{
	struct flow_key key = { .local_port = htobe16(own_port),
				.remote_port = htobe16(own_remote) };
	struct ip_addr peer;

	CHECK_EQ(ip_addr_parse("10.9.9.9", 8, &peer), 0);
	CHECK_EQ(ip_addr_parse(own, strlen(own), &key.local), 0);
	row = (struct port_row){ .key = key };
	CHECK_EQ(ip_addr_parse(local, strlen(local), &row.key.local), 0);
	row.key.local_port = htobe16(port);
	row.key.remote_port = htobe16(remote_port);
	if (remote_port)
		row.key.remote = peer;
	if (own_remote)
		key.remote = peer;
	return port_row_competes(&row, &key);
}

TEST(who_stands_in_the_way)
{
	CHECK(competes("10.0.0.1", 7, 0, "10.0.0.1", 7, 0));
	CHECK(!competes("10.0.0.1", 8, 0, "10.0.0.1", 7, 0));
	CHECK(!competes("10.0.0.2", 7, 0, "10.0.0.1", 7, 0));
	CHECK(competes("0.0.0.0", 7, 0, "0.0.0.0", 7, 0));
	/* the more special one has it */
	CHECK(!competes("0.0.0.0", 7, 0, "10.0.0.1", 7, 0));
	CHECK(competes("10.0.0.1", 7, 0, "0.0.0.0", 7, 0));
	CHECK(competes("10.0.0.1", 7, 9, "10.0.0.1", 7, 0));
	CHECK(!competes("10.0.0.1", 7, 0, "10.0.0.1", 7, 9));
	CHECK(competes("10.0.0.1", 7, 9, "10.0.0.1", 7, 9));
	CHECK(!competes("10.0.0.1", 7, 8, "10.0.0.1", 7, 9));
	CHECK(!competes("239.1.2.3", 7, 0, "0.0.0.0", 7, 0));
	CHECK(!competes("fd00::1", 7, 0, "0.0.0.0", 7, 0));
	/* which no frame from outside is for */
	CHECK(!competes("127.0.0.1", 7, 0, "0.0.0.0", 7, 0));
	CHECK(competes("127.0.0.1", 7, 0, "127.0.0.1", 7, 0));
}
