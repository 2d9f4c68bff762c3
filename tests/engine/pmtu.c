/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ICMP messages, believed and not, and paths that are narrower than they say. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "tests/support/test.h"

static void icmp(uint32_t seq, int error, uint16_t mtu)
{
	struct tcp_icmp message = {
		.key = peer.key,
		.seq = seq,
		.quoted_len = 1500,
		.error = error,
		.mtu = mtu,
	};

	tcp_icmp_in(peer.table, &message, peer.now_ns);
}

/* Two full segments are under way. */
static void connected_and_sending(void)
{
	peer_connect(&peer_full_options);
	peer_write(1460);
	peer_write(1460);
	CHECK_EQ(peer_next()->len, 1460);
	CHECK_EQ(peer_next()->len, 1460);
}

TEST(too_big_resends_in_smaller_segments)
{
	struct tcp_pcb_info before, after;

	peer_defaults();
	connected_and_sending();
	tcp_get_info(peer.pcb, &before);
	icmp(U, -EMSGSIZE, 1000);
	CHECK_EQ(tcp_mss(peer.pcb), 960);
	CHECK_EQ(peer_next()->seq, U);
	CHECK_EQ(peer_next()->seq, U + 960);
	CHECK_EQ(peer_next()->seq, U + 1460);
	CHECK_EQ(peer_next()->seq, U + 1460 + 960);
	peer_expect_silence();
	/* that was no congestion */
	tcp_get_info(peer.pcb, &after);
	CHECK_EQ(after.cwnd, before.cwnd);
	CHECK_EQ(after.ssthresh, before.ssthresh);
	CHECK_EQ(tcp_counts(peer.table)->pmtu_lowered, 1);
	peer_send(A, P, U + 2920, 0);
	tcp_get_info(peer.pcb, &after);
	CHECK_EQ(after.snd_queued, 0);
	CHECK(!after.is_recovering);
	peer_teardown();
}

TEST(message_about_nothing_under_way_is_ignored)
{
	peer_defaults();
	connected_and_sending();
	icmp(U - 1, -EMSGSIZE, 1000);
	icmp(U + 2920, -EMSGSIZE, 1000);
	CHECK_EQ(tcp_counts(peer.table)->icmp_ignored, 2);
	peer.key.remote_port++;
	icmp(U, -EMSGSIZE, 1000);
	peer.key.remote_port--;
	CHECK_EQ(tcp_counts(peer.table)->icmp_ignored, 3);
	CHECK_EQ(tcp_mss(peer.pcb), 1460);
	peer_expect_silence();
	peer_teardown();
}

TEST(size_that_is_not_smaller_is_ignored)
{
	peer_defaults();
	connected_and_sending();
	icmp(U, -EMSGSIZE, 1500);
	icmp(U, -EMSGSIZE, 9000);
	CHECK_EQ(tcp_mss(peer.pcb), 1460);
	peer_expect_silence();
	peer_teardown();
}

/* RFC 1191 section 7.1 */
TEST(old_router_gives_the_next_plateau)
{
	peer_defaults();
	connected_and_sending();
	icmp(U, -EMSGSIZE, 0);
	CHECK_EQ(tcp_mss(peer.pcb), 1492 - 40);
	peer_teardown();
}

TEST(no_size_is_below_the_least)
{
	peer_defaults();
	connected_and_sending();
	icmp(U, -EMSGSIZE, 1);
	CHECK_EQ(tcp_mss(peer.pcb), 64);
	peer_teardown();
}

TEST(ipv6_has_a_least_of_its_own)
{
	peer_defaults();
	peer.is_ipv6 = true;
	peer_connect(&peer_full_options);
	CHECK_EQ(tcp_mss(peer.pcb), 1440);
	peer_write(1440);
	CHECK_EQ(peer_next()->len, 1440);
	icmp(U, -EMSGSIZE, 1279);
	icmp(U, -EMSGSIZE, 0);
	CHECK_EQ(tcp_mss(peer.pcb), 1440);
	CHECK_EQ(tcp_counts(peer.table)->icmp_ignored, 2);
	icmp(U, -EMSGSIZE, 1280);
	CHECK_EQ(tcp_mss(peer.pcb), 1280 - 60);
	CHECK_EQ(peer_next()->len, 1220);
	peer_teardown();
}

TEST(path_gets_another_chance_after_ten_minutes)
{
	struct tcp_options none = { 0 };

	peer_defaults();
	connected_and_sending();
	icmp(U, -EMSGSIZE, 1000);
	peer_advance_ms(20);
	peer_send_options(A, P, U + 2920, 20000, 0, &none);
	peer_advance_ms(599 * 1000);
	peer_write(100);
	peer_send_options(A, P, U + 3020, 20000, 0, &none);
	CHECK_EQ(tcp_mss(peer.pcb), 960);
	peer_advance_ms(2 * 1000);
	peer_write(100);
	peer_send_options(A, P, U + 3120, 20000, 0, &none);
	CHECK_EQ(tcp_mss(peer.pcb), 1460);
	peer_teardown();
}

TEST(silence_makes_segments_smaller)
{
	peer_defaults();
	peer.params.finds_black_holes = true;
	connected_and_sending();
	while (!tcp_counts(peer.table)->black_holes) {
		CHECK(tcp_counts(peer.table)->rto_fired < 4);
		peer_advance_ms(100);
	}
	CHECK_EQ(tcp_counts(peer.table)->rto_fired, 3);
	CHECK_EQ(tcp_mss(peer.pcb), 1492 - 40);
	while (tcp_mss(peer.pcb) > 508 - 40)
		peer_advance_ms(100);
	peer_advance_ms(100000);
	/* what is small by itself is not the size's fault */
	CHECK_EQ(tcp_mss(peer.pcb), 508 - 40);
	peer_teardown();
}

/* An outage looks the same, and ends. */
TEST(silence_leaves_the_size_alone)
{
	peer_defaults();
	connected_and_sending();
	peer_advance_ms(100000);
	CHECK(tcp_counts(peer.table)->rto_fired >= 6);
	CHECK_EQ(tcp_mss(peer.pcb), 1460);
	CHECK_EQ(tcp_counts(peer.table)->black_holes, 0);
	peer_teardown();
}

TEST(unreachable_ends_only_the_attempt)
{
	peer_defaults();
	peer_setup();
	peer.pcb = tcp_new(peer.table);
	CHECK_EQ(tcp_bind(peer.pcb, &peer.key.local, peer.key.local_port), 0);
	CHECK_EQ(tcp_connect(peer.pcb, &peer.key.remote, peer.key.remote_port,
			     &peer.path, peer.now_ns), 0);
	peer_next();
	icmp(peer.iss + 1, -EHOSTUNREACH, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_SYN_SENT);
	icmp(peer.iss, -EHOSTUNREACH, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_CLOSED);
	CHECK_EQ(tcp_error(peer.pcb), -EHOSTUNREACH);
	peer_teardown();
}

TEST(unreachable_is_what_a_silent_connection_dies_of)
{
	peer_defaults();
	peer.params.retries = 3;
	peer_connect(&peer_full_options);
	peer_write(100);
	icmp(U, -EHOSTUNREACH, 0);
	CHECK_EQ(tcp_state(peer.pcb), TCPS_ESTABLISHED);
	/* it passed */
	peer_send(A, P, U + 100, 0);
	peer_write(100);
	peer_advance_ms(20000);
	CHECK_EQ(tcp_error(peer.pcb), -ETIMEDOUT);
	peer_teardown();

	peer_defaults();
	peer.params.retries = 3;
	peer_connect(&peer_full_options);
	peer_write(100);
	icmp(U, -EHOSTUNREACH, 0);
	peer_advance_ms(20000);
	CHECK_EQ(tcp_error(peer.pcb), -EHOSTUNREACH);
	peer_teardown();
}
