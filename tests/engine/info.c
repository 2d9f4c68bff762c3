/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engine tells of a connection: the numbers that TCP_INFO is made of. */
#include "tests/engine/peer.h"

#include <errno.h>

#include "base/clock.h"
#include "tests/support/test.h"

static struct tcp_pcb_info info(void)
{
	struct tcp_pcb_info info;

	tcp_get_info(peer.pcb, &info);
	return info;
}

static struct tcp_flight flight(void)
{
	struct tcp_flight flight;

	tcp_get_flight(peer.pcb, &flight);
	return flight;
}

TEST(sizes_are_told)
{
	struct tcp_options offered = { .mss = 1000, .has_ts = true,
				       .ts_val = 7 };
	struct tcp_icmp too_big = { .error = -EMSGSIZE, .mtu = 900 };

	peer_defaults();
	peer_connect(&offered);
	CHECK_EQ(info().mss, 988);
	CHECK_EQ(info().mss_offered, 1460);
	CHECK_EQ(info().pmtu, 1500);
	peer_send(A, P, U, 600);
	CHECK_EQ(info().rcv_mss, 600);
	peer_write(988);
	too_big.key = peer.key;
	too_big.seq = U;
	tcp_icmp_in(peer.table, &too_big, peer.now_ns);
	CHECK_EQ(info().pmtu, 900);
	CHECK_EQ(info().mss, 900 - 52);
	peer_teardown();
}

TEST(flight_is_counted_in_segments)
{
	struct tcp_options sack = { .sack_cnt = 1 };

	peer_connected();
	peer_send_options(A, P, U, 20000, 0, &(struct tcp_options){ 0 });
	for (int i = 0; i < 6; i++)
		peer_write(1460);
	CHECK_EQ(flight().unacked, 6);
	CHECK_EQ(flight().sacked + flight().lost + flight().resent, 0);
	/* two behind a gap have arrived: no loss yet */
	peer_advance_ms(10);
	sack.sack[0] = (struct tcp_sack_block){ U + 3 * 1460, U + 5 * 1460 };
	peer_send_options(A, P, U, 20000, 0, &sack);
	CHECK_EQ(flight().unacked, 6);
	CHECK_EQ(flight().sacked, 2);
	CHECK_EQ(flight().lost, 0);
	/* a third one, and the gap is lost; the window lets some go again */
	sack.sack[0].end += 1460;
	peer_send_options(A, P, U, 20000, 0, &sack);
	CHECK_EQ(flight().sacked, 3);
	CHECK_EQ(flight().lost + flight().resent, 3);
	CHECK(flight().resent >= 1);
	CHECK_EQ(info().retransmitted, flight().resent);
	peer_send_options(A, P, U + 6 * 1460, 20000, 0,
			  &(struct tcp_options){ 0 });
	CHECK_EQ(flight().unacked, 0);
	peer_teardown();
}

TEST(silence_is_told)
{
	struct tcp_options none = { 0 };
	uint64_t last_ns;

	peer_connected();
	last_ns = peer.now_ns;
	CHECK_EQ(info().last_rcvd_ns, last_ns);
	peer_advance_ms(5);
	peer_write(100);
	CHECK_EQ(info().last_sent_ns, peer.now_ns);
	CHECK_EQ(info().last_rcvd_ns, last_ns);
	CHECK_EQ(info().timeouts, 0);
	while (info().timeouts < 2)
		peer_advance_ms(10);
	CHECK_EQ(info().backoff, 2);
	CHECK(info().rto_ns >= 800 * NS_PER_MS);
	peer_send_options(A, P, U + 100, 0, 0, &none);
	CHECK_EQ(info().timeouts, 0);
	CHECK_EQ(info().last_rcvd_ns, peer.now_ns);
	/* the window is closed: probes */
	peer_write(100);
	CHECK_EQ(info().probes, 0);
	while (info().probes < 2)
		peer_advance_ms(10);
	peer_send_options(A, P, U + 100, 0, 0, &none);
	CHECK_EQ(info().probes, 0);
	peer_teardown();
}
