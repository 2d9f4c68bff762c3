/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What BBR's rules are told of a connection, and what becomes of their answer. The pcb has
 * no more than that needs. */
#include "tcp/tcp_cc_bbr.c"

#include "base/clock.h"
#include "tests/support/test.h"

enum { MSS = 1000, RTT_MS = 10, WINDOW = 10 * MSS };
#define NOW (1000 * NS_PER_SEC)

static struct tcp_table table;
static struct tcp_settings settings;
static struct tcp_pcb pcb;

static void begin(void)
{
	memset(&table, 0, sizeof(table));
	memset(&pcb, 0, sizeof(pcb));
	settings = (struct tcp_settings){ .max_pacing_rate = TCP_NO_PACING };
	pcb.table = &table;
	pcb.settings = &settings;
	pcb.cc_ops = &tcp_cc_bbr;
	pcb.mss = MSS;
	pcb.cwnd = WINDOW;
	pcb.srtt_ns = pcb.rack_rtt_ns = RTT_MS * NS_PER_MS;
	pcb.snd_nxt = pcb.snd_end = 5 * MSS;
	pcb.rate_mark = pcb.snd_nxt;
	pcb.cwnd_used_end = pcb.snd_nxt;
	list_init(&pcb.snd_queue);
	list_init(&pcb.in_flight);
	list_init(&pcb.lost);
	tcp_cc_bbr.init(&pcb);
}

static struct tcp_bbr *rules(void)
{
	return &pcb.cc.bbr.rules;
}

static void acked(uint32_t bytes, uint32_t marked)
{
	const struct tcp_ack_sample sample = {
		.prior_una = pcb.snd_una,
		.is_ece = marked > 0,
		.marked = marked,
	};

	pcb.snd_una += bytes;
	tcp_cc_bbr.model->acked(&pcb, &sample, bytes, NOW);
}

TEST(first_window_is_paced)
{
	begin();
	CHECK_EQ(pcb.pacing_rate,
		 tcp_bbr_first_rate(WINDOW, RTT_MS * NS_PER_MS));
	CHECK(pcb.slow_out & SLOW_PACED);
}

/* Losses are told with the next acknowledgment, once. */
TEST(losses_are_told_once)
{
	begin();
	tcp_cc_bbr.model->lost(&pcb, MSS);
	tcp_cc_bbr.model->lost(&pcb, MSS);
	CHECK_EQ(rules()->lost, 0);
	acked(MSS, 0);
	CHECK_EQ(rules()->lost, 2 * MSS);
	acked(MSS, 0);
	CHECK_EQ(rules()->lost, 2 * MSS);
}

/* Marks are those that the acknowledgment reports, and no more than it acknowledges. */
TEST(marks_are_told)
{
	begin();
	acked(2 * MSS, MSS);
	CHECK_EQ(rules()->lost, MSS);
	acked(MSS, UINT32_MAX);
	CHECK_EQ(rules()->lost, 2 * MSS);
}

/* A round trip ends with the first segment that was sent in it; what is under way then
 * belongs to the next one. */
TEST(flight_is_that_of_the_round)
{
	begin();
	pcb.rate_mark = MSS;
	pcb.rate_mark_ns = NOW - 20 * NS_PER_MS;
	pcb.rack_sent_ns = NOW - 10 * NS_PER_MS;
	pcb.rack_end = 2 * MSS;
	acked(2 * MSS, 0);
	CHECK_EQ(pcb.cc.bbr.tx_in_flight, 3 * MSS + MSS);
}

static uint32_t bound_after_an_ack(bool is_used)
{
	begin();
	rules()->is_full = true;
	rules()->state = BBR_UP;
	rules()->inflight_hi = pcb.cwnd;
	rules()->up_step = 1;
	pcb.cwnd_used_end = is_used ? pcb.snd_nxt : pcb.snd_una - 1;
	acked(MSS, 0);
	return rules()->inflight_hi;
}

/* Only a window that was used tells that there is room for more. */
TEST(window_that_was_used_raises_the_bound)
{
	CHECK(bound_after_an_ack(true) > WINDOW);
	CHECK_EQ(bound_after_an_ack(false), WINDOW);
}

/* However slow the path seems, the smallest window leaves within a round trip. */
TEST(rate_has_a_floor)
{
	begin();
	rules()->is_full = true;
	rules()->max_bw[0] = 1000;
	acked(MSS, 0);
	CHECK_EQ(pcb.pacing_rate, 4 * MSS * 1000 / RTT_MS);
}
