/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stats/stats_text.h"

#include <netinet/in.h>

#include "tests/support/test.h"

static const char *block(const struct stats_socket *s, bool is_rate)
{
	static char buf[STATS_TEXT_SIZE];
	struct text t = text_in(buf, sizeof(buf));

	stats_text_socket(&t, s, &s->counters, is_rate);
	CHECK(!t.is_cut);
	return buf;
}

static struct stats_socket busy(void)
{
	return (struct stats_socket){
		.fd = 14,
		.protocol = IPPROTO_UDP,
		.is_blocking = 1,
		.local = ip_addr_from_v4(htobe32(0x0a000001)),
		.local_port = 53,
		.remote = ip_addr_from_v4(htobe32(0x0a000002)),
		.remote_port = 1024,
		.rx_limit = 212992,
		.counters = {
			.rx_packets = 5, .rx_bytes = 5120,
			.rx_queued_packets = 7, .rx_queued_bytes = 7168,
			.rx_poll_hit = 3, .rx_poll_miss = 1,
			.rx_ready_pkt_max = 4, .rx_ready_byte_max = 4096,
			.rx_ready_pkt_drop = 2, .rx_ready_byte_drop = 90,
			.tx_packets = 6, .tx_bytes = 6144, .tx_eagain = 7,
			.tx_errors = 1, .tx_drops = 2,
			.rx_os_packets = 8, .rx_os_bytes = 1023,
			.tx_os_packets = 9, .tx_os_errors = 4,
		},
	};
}

TEST(each_line_of_a_socket)
{
	struct stats_socket s = busy();

	CHECK_STR(block(&s, false),
		  "======================================================\n"
		  "\tFd=[14]\n"
		  "- UDP, Blocked\n"
		  "- Local Address   = [10.0.0.1:53]\n"
		  "- Foreign Address = [10.0.0.2:1024]\n"
		  "Tx Offload: 6 / 6 / 7 / 3 [kilobytes/packets/eagains/errors]\n"
		  "Tx OS info: 0 / 9 / 0 / 4 [kilobytes/packets/eagains/errors]\n"
		  "Rx Offload: 5 / 5 / 0 / 0 [kilobytes/packets/eagains/errors]\n"
		  "Rx OS info: 0 / 8 / 0 / 0 [kilobytes/packets/eagains/errors]\n"
		  "Rx byte: cur 2048 / max 4096 / dropped 90 / limit 212992\n"
		  "Rx pkt : cur 2 / max 4 / dropped 2\n"
		  "Rx poll: 1 / 3 (75.00%) [miss/hit]\n");
	CHECK(strstr(block(&s, true), "dropped/s 2\n"));
	CHECK(strstr(block(&s, true), "[kilobytes/packets/eagains/errors]/s\n"));
}

TEST(idle_socket_says_so)
{
	struct stats_socket s = { .fd = 3, .protocol = IPPROTO_TCP };

	CHECK_STR(block(&s, false),
		  "======================================================\n"
		  "\tFd=[3]\n"
		  "- TCP, Non-blocked\n"
		  "Rx and Tx where not active\n");
}

/* Of a file that another process writes. */
TEST(state_that_there_is_not)
{
	CHECK_STR(stats_text_state(STATS_TCP_STATE_COUNT - 1), "TIME_WAIT");
	CHECK_STR(stats_text_state(STATS_TCP_STATE_COUNT), "???");
	CHECK_STR(stats_text_state(255), "???");
}

TEST(largest_numbers_fit)
{
	struct stats_socket s;

	memset(&s, 0xff, sizeof(s));
	s.counters.rx_queued_packets = s.counters.rx_queued_bytes =
		INT64_MAX - 1;
	CHECK(strlen(block(&s, true)) > 300);
}

TEST(percent_of_nothing_is_nothing)
{
	CHECK(stats_text_percent(0, 0) == 0);
	CHECK(stats_text_percent(0, 5) == 0);
	CHECK(stats_text_percent(5, 0) == 100);
	CHECK(stats_text_percent(UINT64_MAX, UINT64_MAX) == 50);
}
