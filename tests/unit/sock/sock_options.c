/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "sock/sock_options.h"

#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include "tests/support/test.h"

static bool goes(int level, int number, int value)
{
	return sock_option_is_kernels(sock_option_find(IPPROTO_UDP, level, number),
				      &value, sizeof(value));
}

TEST(each_line_is_of_use)
{
	for (const struct sock_option *o = sock_options; o->name; o++) {
		bool is_kernels = o->class == SOCK_OPTION_KERNEL ||
				  o->class == SOCK_OPTION_FILTER;

		if (!o->protocols || strlen(o->about) < 4)
			FAIL("%s is of no protocol, or about nothing", o->name);
		/* some values of an option that is followed may be the kernel's */
		if (is_kernels && o->kernel_if == SOCK_OPTION_IF_NEVER)
			FAIL("%s is the kernel's, and never is", o->name);
		if (o->class == SOCK_OPTION_HARMLESS &&
		    o->kernel_if != SOCK_OPTION_IF_NEVER)
			FAIL("%s is harmless, and the kernel's", o->name);
		for (const struct sock_option *p = o + 1; p->name; p++)
			if (p->level == o->level && p->number == o->number &&
			    p->protocols & o->protocols)
				FAIL("%s and %s are the same", o->name, p->name);
	}
}

TEST(found_by_level_number_and_protocol)
{
	CHECK_STR(sock_option_find(IPPROTO_UDP, SOL_SOCKET, SO_RXQ_OVFL)->name,
		  "SO_RXQ_OVFL");
	CHECK_STR(sock_option_find(IPPROTO_UDP, IPPROTO_UDP, UDP_CORK)->name,
		  "UDP_CORK");
	CHECK(!sock_option_find(IPPROTO_UDP, IPPROTO_UDP, SO_RXQ_OVFL));
	CHECK(!sock_option_find(IPPROTO_TCP, IPPROTO_UDP, UDP_CORK));
	CHECK(!sock_option_find(IPPROTO_UDP, SOL_SOCKET, 9999));
	CHECK(!sock_option_find(IPPROTO_UDP, IPPROTO_TCP, 1));
	for (const struct sock_option *o = sock_options; o->name; o++) {
		int proto = o->protocols & SOCK_OPTION_TCP ? IPPROTO_TCP : IPPROTO_UDP;
		int number = o->number;

		CHECK(sock_option_find(proto, o->level, number) == o);
		/* numbers of which only the last bits are those of a line */
		CHECK(!sock_option_find(proto, o->level | 1 << 16, number));
		CHECK(!sock_option_find(proto, o->level, number | 1 << 16));
		CHECK(!sock_option_find(proto, -1, number));
		CHECK(!sock_option_find(proto, o->level, -1));
	}
}

TEST(unknown_is_the_kernels_whatever_it_says)
{
	CHECK(goes(SOL_SOCKET, 9999, 0));
	CHECK(goes(270, 1, 0));
	CHECK(sock_option_is_kernels(NULL, NULL, 0));
}

TEST(off_is_what_the_line_says)
{
	CHECK(!goes(SOL_SOCKET, SO_RXQ_OVFL, 0));
	CHECK(goes(SOL_SOCKET, SO_RXQ_OVFL, 1));
	CHECK(goes(SOL_SOCKET, SO_RXQ_OVFL, -1));
	CHECK(goes(SOL_SOCKET, SO_PEEK_OFF, 0));
	CHECK(!goes(SOL_SOCKET, SO_PEEK_OFF, -1));
	CHECK(!goes(SOL_SOCKET, SO_MAX_PACING_RATE, -1));
	CHECK(goes(SOL_SOCKET, SO_ATTACH_FILTER, 0));
	CHECK(!goes(IPPROTO_IP, IP_TTL, 3));
	CHECK(!goes(SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE));
	CHECK(!goes(SOL_SOCKET, SO_TIMESTAMPING,
		    SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SCHED));
	CHECK(!goes(SOL_SOCKET, SO_TIMESTAMPING,
		    SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_TX_SCHED));
	/* SOF_TIMESTAMPING_TX_COMPLETION */
	CHECK(goes(SOL_SOCKET, SO_TIMESTAMPING, 1 << 18));
}

/* Linux takes a byte for a number at the level of IP. */
TEST(values_of_all_lengths)
{
	const struct sock_option *flag =
		sock_option_find(IPPROTO_UDP, IPPROTO_IP, IP_RECVOPTS);
	const struct sock_option *bytes =
		sock_option_find(IPPROTO_UDP, IPPROTO_IP, IP_OPTIONS);
	static const uint8_t one[8] = { 1 }, late[8] = { 0, 1, 0, 0, 1 };

	CHECK(sock_option_is_kernels(flag, one, 1));
	CHECK(sock_option_is_kernels(flag, one, 8));
	CHECK(!sock_option_is_kernels(flag, late, 1));
	CHECK(!sock_option_is_kernels(flag, late, 3));
	CHECK(sock_option_is_kernels(flag, late, 4));
	CHECK(!sock_option_is_kernels(flag, &late[5], 0));
	CHECK(!sock_option_is_kernels(flag, NULL, 4));
	CHECK(!sock_option_is_kernels(flag, (void *)-1, 4));
	CHECK(sock_option_is_kernels(bytes, late, 4));
	CHECK(!sock_option_is_kernels(bytes, NULL, 0));
}
