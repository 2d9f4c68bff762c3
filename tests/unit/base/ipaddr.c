/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/ipaddr.h"

#include <arpa/inet.h>
#include <errno.h>

#include "tests/support/test.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	if (ip_addr_parse(text, strlen(text), &a))
		FAIL("%s does not parse", text);
	return a;
}

static bool parses(const char *text)
{
	struct ip_addr a;

	return ip_addr_parse(text, strlen(text), &a) == 0;
}

static bool in_prefix(const char *a, const char *net, unsigned len)
{
	struct ip_addr x = addr(a), y = addr(net);

	return ip_addr_in_prefix(&x, &y, len);
}

TEST(v4_is_v4_mapped)
{
	static const uint8_t want[16] = { [10] = 0xff, [11] = 0xff, 10, 1, 2, 3 };
	struct ip_addr a = addr("10.1.2.3");

	CHECK_MEM(a.byte, want, sizeof(want));
	CHECK(ip_addr_is_v4(&a));
	CHECK_EQ(ntohl(ip_addr_v4(&a)), 0x0a010203);
	a = ip_addr_from_v4(htonl(0x0a010203));
	CHECK_MEM(a.byte, want, sizeof(want));
	a = addr("::ffff:10.1.2.3");
	CHECK_MEM(a.byte, want, sizeof(want));
}

TEST(text_survives_the_way_there_and_back)
{
	static const char *const texts[] = {
		"0.0.0.0", "255.255.255.255", "10.0.0.1", "::", "::1",
		"2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	};
	char text[IP_ADDR_TEXT_SIZE];
	struct ip_addr a;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		a = addr(texts[i]);
		CHECK_STR(ip_addr_format(&a, text), texts[i]);
	}
	a = addr("::ffff:1.2.3.4");
	CHECK_STR(ip_addr_format(&a, text), "1.2.3.4");
}

TEST(bad_text_is_refused)
{
	struct ip_addr a;

	CHECK(!parses(""));
	CHECK(!parses("10.0.0"));
	CHECK(!parses("10.0.0.256"));
	CHECK(!parses("10.0.0.01"));
	CHECK(!parses("10.0.0.1 "));
	CHECK(!parses("2001:db8::g"));
	CHECK(!parses("1:2:3:4:5:6:7:8:9"));
	CHECK_EQ(ip_addr_parse("10.0.0.1\0x", 10, &a), -EINVAL);
	/* Only len bytes count. */
	CHECK_EQ(ip_addr_parse("10.0.0.1x", 8, &a), 0);
}

TEST(kinds_of_addresses)
{
	struct ip_addr v4_any = addr("0.0.0.0"), v6_any = addr("::");
	struct ip_addr v4_mc = addr("224.0.0.1"), v6_mc = addr("ff02::1");
	struct ip_addr v4_lo = addr("127.9.9.9"), v6_lo = addr("::1");
	struct ip_addr plain = addr("192.168.0.1");

	CHECK(ip_addr_is_any(&v4_any) && ip_addr_is_any(&v6_any));
	CHECK(!ip_addr_is_any(&plain) && !ip_addr_is_any(&v6_lo));
	CHECK(ip_addr_is_multicast(&v4_mc) && ip_addr_is_multicast(&v6_mc));
	CHECK(!ip_addr_is_multicast(&plain) && !ip_addr_is_multicast(&v6_lo));
	CHECK(ip_addr_is_loopback(&v4_lo) && ip_addr_is_loopback(&v6_lo));
	CHECK(!ip_addr_is_loopback(&plain) && !ip_addr_is_loopback(&v6_any));
	CHECK(!ip_addr_is_v4(&v6_any) && !ip_addr_is_v4(&v6_mc));
	CHECK(ip_addr_eq(&plain, &plain) && !ip_addr_eq(&plain, &v4_lo));
}

TEST(prefixes)
{
	CHECK(in_prefix("10.1.2.3", "10.0.0.0", IP_PREFIX_V4 + 8));
	CHECK(!in_prefix("11.1.2.3", "10.0.0.0", IP_PREFIX_V4 + 8));
	CHECK(in_prefix("10.1.2.3", "10.1.2.2", IP_PREFIX_V4 + 31));
	CHECK(!in_prefix("10.1.2.3", "10.1.2.2", IP_PREFIX_V4 + 32));
	CHECK(in_prefix("1.1.1.1", "2.2.2.2", IP_PREFIX_V4));
	CHECK(!in_prefix("::1", "2.2.2.2", IP_PREFIX_V4));
	CHECK(in_prefix("::1", "2.2.2.2", 0));
	CHECK(in_prefix("2001:db8::5", "2001:db8::", 32));
	CHECK(!in_prefix("2001:db9::5", "2001:db8::", 32));
	CHECK(in_prefix("2001:db8::5", "2001:db8::5", IP_PREFIX_MAX));
}

TEST(masked_keeps_the_first_bits)
{
	struct ip_addr a = addr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");

	for (unsigned len = 0; len <= IP_PREFIX_MAX; len++) {
		struct ip_addr masked = ip_addr_masked(&a, len);

		CHECK(ip_addr_in_prefix(&masked, &a, len));
		for (unsigned bit = len; bit < IP_PREFIX_MAX; bit++)
			CHECK(!(masked.byte[bit / 8] & 0x80 >> bit % 8));
	}
}
