/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pacing over a long time: the rate that is kept, and what leaves in one go. */
#include "tests/engine/peer.h"

#include "base/clock.h"
#include "tests/support/test.h"

/* What the engine has sent since the last look. */
struct heard {
	uint64_t bytes;
	uint32_t largest_run;
	uint32_t largest_burst;
	uint64_t burst_ns;
	uint32_t burst;
};

static void set_rate(uint64_t rate)
{
	struct tcp_settings s;

	tcp_get_settings(peer.pcb, &s);
	s.max_pacing_rate = rate;
	CHECK_EQ(tcp_set_settings(peer.pcb, &s, peer.now_ns), 0);
}

static void fill(void)
{
	while (tcp_sndbuf(peer.pcb)) {
		struct pkt *pkt = pkt_alloc(&peer.pool);

		CHECK(pkt != NULL);
		pkt_append(pkt, tcp_mss(peer.pcb));
		CHECK_EQ(tcp_write(peer.pcb, pkt), 0);
	}
	tcp_output(peer.pcb, peer.now_ns);
}

static void hear(struct heard *heard)
{
	for (; peer.looked_at < peer.sent_cnt; peer.looked_at++) {
		const struct peer_sent *sent =
			&peer.sent[peer.looked_at % PEER_SENT_MAX];

		if (sent->at_ns != heard->burst_ns)
			heard->burst = 0;
		heard->burst_ns = sent->at_ns;
		heard->burst += sent->len;
		heard->bytes += sent->len;
		heard->largest_run = MAX(heard->largest_run, sent->len);
		heard->largest_burst = MAX(heard->largest_burst, heard->burst);
	}
}

/* In each step all is acknowledged. No burst takes a whole number of steps, so that the
 * timer is late for each. */
#define STEP_NS (110 * NS_PER_US)

static void run_for(uint64_t time_ns, struct heard *heard)
{
	uint64_t until_ns = peer.now_ns + time_ns, acked = heard->bytes;

	while (peer.now_ns < until_ns) {
		fill();
		peer.now_ns += STEP_NS;
		timer_wheel_advance(&peer.wheel, peer.now_ns);
		hear(heard);
		if (heard->bytes == acked)
			continue;
		acked = heard->bytes;
		peer_send_options(A, P, U + (uint32_t)acked, 60000, 0,
				  &(struct tcp_options){ 0 });
	}
}

static void begin(uint32_t segment_max)
{
	struct tcp_options offered = peer_full_options;

	offered.mss = 1000;
	offered.scale = 4;
	peer_defaults();
	peer.path.segment_max = segment_max;
	peer_connect(&offered);
	tcp_set_snd_buf(peer.pcb, 100000);
}

static void end(void)
{
	peer.looked_at = peer.sent_cnt;
	peer_teardown();
}

/* At a high rate a burst is a thousandth of a second's bytes, at a low one two
 * segments; the rate is the one that was set. */
TEST(rate_is_kept_and_bursts_are_small)
{
	static const uint64_t rates[] = { 20000, 1000000, 20000000 };

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		uint32_t burst = (uint32_t)MAX(rates[i] >> 10, UINT64_C(2000));
		struct heard heard = { 0 };
		uint64_t start;

		begin(0);
		set_rate(rates[i]);
		/* beyond slow start, where the window alone decides */
		run_for(2 * NS_PER_SEC, &heard);
		start = heard.bytes;
		heard.largest_burst = 0;
		run_for(2 * NS_PER_SEC, &heard);
		CHECK(heard.largest_burst <= burst + 1000);
		CHECK(heard.bytes - start <= rates[i] * 202 / 100 + burst);
		CHECK(heard.bytes - start >= rates[i] * 195 / 100 - burst);
		end();
	}
}

/* What the device splits is no longer than a burst either. */
TEST(runs_for_a_device_are_bursts)
{
	struct heard heard = { 0 };

	begin(60000);
	set_rate(6000000);
	run_for(NS_PER_SEC, &heard);
	heard.largest_run = 0;
	run_for(NS_PER_SEC, &heard);
	CHECK(heard.largest_run > 1000);
	CHECK(heard.largest_run <= (6000000 >> 10) + 1000);
	end();
}

/* Data waits for its time though nothing is under way: no probe asks for a window. */
TEST(waiting_is_no_closed_window)
{
	struct heard heard = { 0 };

	begin(0);
	set_rate(500);
	run_for(30 * NS_PER_SEC, &heard);
	CHECK(heard.bytes > 10000);
	CHECK_EQ(tcp_counts(peer.table)->persist_probes, 0);
	/* and without a limit it leaves at once */
	set_rate(TCP_NO_PACING);
	hear(&heard);
	run_for(10 * NS_PER_MS, &heard);
	CHECK(heard.bytes > 100000);
	end();
}

TEST(rate_is_told)
{
	struct tcp_pcb_info info;

	begin(0);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.pacing_rate, TCP_NO_PACING);
	set_rate(5000);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.pacing_rate, 5000);
	/* ten segments in 10 ms, twice as fast in slow start */
	set_rate(TCP_NO_PACING - 1);
	tcp_get_info(peer.pcb, &info);
	CHECK_EQ(info.pacing_rate, 2000000);
	end();
}
