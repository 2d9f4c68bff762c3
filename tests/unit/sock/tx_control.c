/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "sock/tx_control.h"

#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"

static uint8_t buf[512];
static size_t used;
static struct tx_control control;

static void begin(void)
{
	memset(buf, 0xaa, sizeof(buf));
	used = 0;
}

static void put(int level, int type, const void *body, size_t len)
{
	struct cmsghdr head = { .cmsg_len = CMSG_LEN(len),
				.cmsg_level = level,
				.cmsg_type = type };

	memcpy(buf + used, &head, sizeof(head));
	memcpy(buf + used + CMSG_LEN(0), body, len);
	used += CMSG_SPACE(len);
}

static void put_int(int type, int value)
{
	put(IPPROTO_IP, type, &value, sizeof(value));
}

static bool is_ours(void)
{
	return tx_control_read(buf, used, false, &control);
}

TEST(nothing_asks_for_nothing)
{
	begin();
	CHECK(is_ours());
	CHECK(!control.has_source);
	CHECK_EQ(control.ifindex, 0);
	CHECK_EQ(control.tos, -1);
	CHECK_EQ(control.ttl, 0);
}

static bool is_stamped(uint32_t stations, size_t len)
{
	begin();
	put(SOL_SOCKET, SO_TIMESTAMPING, &stations, len);
	return is_ours();
}

TEST(stations_of_one_send)
{
	begin();
	CHECK(is_ours());
	CHECK(!control.has_stations);
	CHECK(is_stamped(SOF_TIMESTAMPING_TX_SCHED, 4));
	CHECK(control.has_stations);
	CHECK_EQ(control.stations, SOF_TIMESTAMPING_TX_SCHED);
	CHECK(control.bytes == buf);
	CHECK_EQ(control.len, used);
	CHECK(is_stamped(0, 4));
	CHECK(control.has_stations);
	CHECK_EQ(control.stations, 0);
	CHECK(!is_stamped(SOF_TIMESTAMPING_TX_SCHED, 3));
	CHECK(is_stamped(SOF_TIMESTAMPING_TX_HARDWARE, 4));
	/* no station at all */
	CHECK(!is_stamped(SOF_TIMESTAMPING_SOFTWARE, 4));
}

TEST(all_of_ours_together)
{
	struct in_pktinfo info = { .ipi_ifindex = 5,
				   .ipi_spec_dst = { htonl(0x0a000001) },
				   .ipi_addr = { htonl(0x7f000001) } };

	begin();
	put_int(IP_TTL, 9);
	put(IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	put_int(IP_TOS, 0x28);
	CHECK(is_ours());
	CHECK(control.has_source);
	CHECK_EQ(ip_addr_v4(&control.source), htonl(0x0a000001));
	CHECK_EQ(control.ifindex, 5);
	CHECK_EQ(control.tos, 0x28);
	CHECK_EQ(control.ttl, 9);
	/* the last one's alignment may be missing */
	used -= CMSG_SPACE(sizeof(int)) - CMSG_LEN(sizeof(int));
	CHECK(is_ours());
}

TEST(the_last_word_counts)
{
	struct in_pktinfo info = { .ipi_ifindex = 5,
				   .ipi_spec_dst = { htonl(0x0a000001) } };

	begin();
	put(IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	info = (struct in_pktinfo){ 0 };
	put(IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	put_int(IP_TTL, 9);
	put_int(IP_TTL, 10);
	CHECK(is_ours());
	/* no interface says nothing, no address says any */
	CHECK_EQ(control.ifindex, 5);
	CHECK(control.has_source);
	CHECK(ip_addr_is_any(&control.source));
	CHECK_EQ(control.ttl, 10);
}

TEST(a_byte_is_a_tos_and_no_ttl)
{
	uint8_t byte = 0xff;

	begin();
	put(IPPROTO_IP, IP_TOS, &byte, 1);
	CHECK(is_ours());
	CHECK_EQ(control.tos, 0xff);
	begin();
	put(IPPROTO_IP, IP_TTL, &byte, 1);
	CHECK(!is_ours());
}

static bool is_ours_with(int type, int value)
{
	begin();
	put_int(type, value);
	return is_ours();
}

TEST(values_that_linux_refuses)
{
	CHECK(!is_ours_with(IP_TTL, 0));
	CHECK(!is_ours_with(IP_TTL, 256));
	CHECK(!is_ours_with(IP_TTL, -1));
	CHECK(is_ours_with(IP_TTL, 1));
	CHECK(is_ours_with(IP_TTL, 255));
	CHECK(!is_ours_with(IP_TOS, 256));
	CHECK(!is_ours_with(IP_TOS, -1));
	CHECK(is_ours_with(IP_TOS, 0));
}

TEST(mapped_sources_of_v6_sockets)
{
	struct in6_pktinfo info = { .ipi6_ifindex = 3 };
	struct ip_addr mapped = ip_addr_from_v4(htonl(0x0a000001));

	begin();
	memcpy(&info.ipi6_addr, mapped.byte, 16);
	put(IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	CHECK(!is_ours());
	CHECK(tx_control_read(buf, used, true, &control));
	CHECK_EQ(ip_addr_v4(&control.source), htonl(0x0a000001));
	CHECK_EQ(control.ifindex, 3);
	begin();
	info.ipi6_addr = in6addr_loopback;
	put(IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	CHECK(!tx_control_read(buf, used, true, &control));
}

TEST(what_others_ask_for_is_the_kernels)
{
	uint32_t mark = 1;

	begin();
	put(SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
	CHECK(!is_ours());
	CHECK(!is_ours_with(IP_RETOPTS, 0));
	begin();
	put(IPPROTO_UDP, IP_TTL, &mark, sizeof(mark));
	CHECK(!is_ours());
}

TEST(lengths_that_lie)
{
	struct cmsghdr *head = (void *)buf;

	for (size_t len = 0; len < 64; len++) {
		begin();
		put_int(IP_TTL, 9);
		head->cmsg_len = len;
		CHECK_EQ(is_ours(), len == CMSG_LEN(sizeof(int)));
	}
	begin();
	put_int(IP_TTL, 9);
	head->cmsg_len = SIZE_MAX - 3;
	CHECK(!is_ours());
	/* cut inside its body */
	begin();
	put_int(IP_TTL, 9);
	used = CMSG_LEN(sizeof(int)) - 1;
	CHECK(!is_ours());
	/* and inside its header, which Linux does not look at */
	used = sizeof(*head) - 1;
	CHECK(is_ours());
	CHECK_EQ(control.ttl, 0);
	/* more than we look at */
	begin();
	while (used <= TX_CONTROL_LEN_MAX)
		put_int(IP_TTL, 9);
	CHECK(!is_ours());
}

/* As getsockopt(SO_PRIORITY) tells it after setsockopt(IP_TOS). */
TEST(priority_of_a_tos)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(int);

	CHECK(fd >= 0);
	for (int tos = 0; tos < 256; tos++) {
		int priority = -1;

		CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)), 0);
		CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, &len),
			 0);
		CHECK_EQ(tx_control_priority((uint8_t)tos), priority);
	}
	close(fd);
}
