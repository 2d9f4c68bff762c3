/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/netlink_attr.h"

#include <errno.h>
#include <sys/socket.h>

#include "tests/support/test.h"

enum { MAX = 5 };

static struct attr attrs[MAX + 1];

#define SORT(bytes) \
	attr_sort((const uint8_t *)(bytes), sizeof(bytes) - 1, attrs, MAX)

TEST(sorted_by_type)
{
	CHECK_EQ(SORT("\x05\0\3\0x\0\0\0\x08\0\1\0abcd"), 3);
	CHECK(attr_is_present(&attrs[1]) && attr_is_present(&attrs[3]));
	CHECK(!attr_is_present(&attrs[0]) && !attr_is_present(&attrs[2]));
	CHECK_EQ(attrs[3].len, 1);
	CHECK_MEM(attrs[1].data, "abcd", 4);
}

TEST(flags_and_unknown_types)
{
	CHECK_EQ(SORT("\x05\0\2\x80x\0\0\0\x05\0\x10\x40x\0\0\0"), 16);
	CHECK(attr_is_present(&attrs[2]));
	CHECK_EQ(SORT(""), 0);
}

TEST(the_last_of_a_type_wins_and_may_lack_its_padding)
{
	CHECK_EQ(SORT("\x05\0\2\0x\0\0\0\x05\0\2\0y"), 2);
	CHECK_EQ(attrs[2].data[0], 'y');
}

TEST(lengths_that_lie)
{
	CHECK_EQ(SORT("\x03\0\1\0"), -EBADMSG);
	CHECK_EQ(SORT("\0\0\1\0"), -EBADMSG);
	CHECK_EQ(SORT("\x09\0\1\0abcd"), -EBADMSG);
	CHECK_EQ(SORT("\x08\0\1\0abcd\x04\0"), -EBADMSG);
	CHECK_EQ(SORT("\xff\xff\1\0abcd"), -EBADMSG);
}

TEST(getters_leave_what_is_absent_and_fail_on_what_is_short)
{
	struct attr none = { 0 }, two = { (const uint8_t *)"\1\2", 2 };
	uint32_t u32 = 7;
	uint16_t u16 = 7;
	uint8_t u8 = 7;
	int index = 7;

	CHECK(attr_get_u32(&none, &u32) && u32 == 7);
	CHECK(attr_get_index(&none, &index) && index == 7);
	CHECK(!attr_get_u32(&two, &u32) && u32 == 7);
	CHECK(!attr_get_index(&two, &index));
	CHECK(attr_get_u16(&two, &u16) && u16 == 0x0201);
	CHECK(attr_get_u8(&two, &u8) && u8 == 1);
}

TEST(names_end_within)
{
	struct attr a = { (const uint8_t *)"eth0\0junk", 9 };
	char name[8];

	memset(name, 'x', sizeof(name));
	CHECK(attr_get_name(&a, name, sizeof(name)));
	CHECK_MEM(name, "eth0\0\0\0", 8);
	CHECK(!attr_get_name(&a, name, 4));
	/* Without a NUL. */
	a.len = 4;
	CHECK(attr_get_name(&a, name, sizeof(name)));
	CHECK_STR(name, "eth0");
	a.len = 0;
	CHECK(!attr_get_name(&a, name, sizeof(name)));
}

TEST(addresses_have_exact_lengths)
{
	static const uint8_t bytes[17] = { 10, 1, 2, 3 };
	struct attr a = { bytes, 4 };
	struct ip_addr addr;

	CHECK(attr_get_addr(&a, AF_INET, &addr));
	CHECK(ip_addr_is_v4(&addr) && addr.byte[12] == 10);
	CHECK(!attr_get_addr(&a, AF_INET6, &addr));
	a.len = 16;
	CHECK(attr_get_addr(&a, AF_INET6, &addr));
	CHECK(!attr_get_addr(&a, AF_INET, &addr));
	a.len = 17;
	CHECK(!attr_get_addr(&a, AF_INET6, &addr));
	CHECK(!attr_get_addr(&a, AF_UNIX, &addr));
}
