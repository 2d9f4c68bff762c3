/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR, version 3 (draft-ietf-ccwg-bbr): a model of the path, which is its bandwidth, its
 * shortest round trip and how much may be under way, and the states in which it is
 * measured. State and rules alone; tcp_cc_bbr.c knows the connection.
 */
#ifndef TCP_TCP_BBR_H
#define TCP_TCP_BBR_H

#include <stdbool.h>
#include <stdint.h>

/* The window is never smaller, but after a timeout. */
enum { TCP_BBR_MIN_SEGMENTS = 4 };

enum tcp_bbr_state {
	BBR_STARTUP,
	BBR_DRAIN,
	BBR_DOWN,
	BBR_CRUISE,
	BBR_REFILL,
	BBR_UP,
	BBR_PROBE_RTT,
};

/* What the samples of acknowledgments say about a probe for bandwidth. */
enum tcp_bbr_feedback {
	BBR_OF_NOTHING,
	BBR_OF_REFILL,
	/* the first round trip of the probe is not over */
	BBR_OF_PROBE_SOON,
	BBR_OF_PROBE,
	/* the round trip after the probe */
	BBR_OF_PROBE_STILL,
};

/* Rates are bytes in a second, sizes bytes. */
struct tcp_bbr {
	/* the largest of this cycle of probes and of the one before */
	uint64_t max_bw[2];
	uint64_t bw_latest;
	/* UINT64_MAX: losses have set none; so inflight_lo, inflight_hi */
	uint64_t bw_lo;
	uint64_t full_bw;
	/* 0: not known */
	uint64_t min_rtt_ns;
	uint64_t min_rtt_at_ns;
	/* the same over a shorter time, after which PROBE_RTT comes */
	uint64_t low_rtt_ns;
	uint64_t low_rtt_at_ns;
	uint64_t probe_rtt_done_ns;
	/* when DOWN began, and how long until the next probe */
	uint64_t cycle_ns;
	uint64_t wait_ns;
	/* acknowledgments that come in bunches: since when, how much */
	uint64_t bunch_ns;
	uint32_t bunch_acked;
	uint32_t extra_acked[2];
	uint32_t inflight_hi;
	uint32_t inflight_lo;
	uint32_t inflight_latest;
	/* the window before recovery or PROBE_RTT; 0: in neither */
	uint32_t prior_cwnd;
	/* of this round trip: lost bytes, and how often some were */
	uint32_t lost;
	uint32_t up_acked;
	uint32_t up_step;
	uint32_t random;
	uint8_t state; /* enum tcp_bbr_state */
	uint8_t feedback; /* enum tcp_bbr_feedback */
	uint8_t loss_events;
	uint8_t full_cnt;
	uint8_t up_rounds;
	uint8_t rounds_since_probe;
	uint8_t extra_rounds;
	bool is_full; /* STARTUP has found the bandwidth */
	bool is_full_now;
	bool may_judge; /* losses of this probe count */
	bool is_round_done; /* of PROBE_RTT */
	bool was_idle;
	bool conserves; /* the first round trip of recovery */
};

/* What an acknowledgment tells. */
struct tcp_bbr_ack {
	uint64_t now_ns;
	uint64_t rtt_ns; /* 0: nothing */
	/* A rate was measured; 0: none was. It is of what the program limits. */
	uint64_t rate;
	bool is_app_limited;
	/* what was under way when the measured interval began, what has arrived in it */
	uint32_t tx_in_flight;
	uint32_t delivered;
	/* with it a round trip ends */
	bool ends_round;
	bool is_cwnd_limited;
	/* newly known */
	uint32_t acked;
	uint32_t lost;
	/* with news of congestion (RFC 3168): as good as lost */
	uint32_t marked;
	uint32_t in_flight;
	uint32_t mss;
};

/* What the sender keeps to. */
struct tcp_bbr_control {
	uint64_t pacing_rate;
	uint32_t cwnd;
};

void tcp_bbr_init(struct tcp_bbr *bbr, uint32_t random);
/* The first rate: the window in a round trip, of which rtt_ns 0 says nothing. */
uint64_t tcp_bbr_first_rate(uint32_t cwnd, uint64_t rtt_ns);
void tcp_bbr_acked(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
		   struct tcp_bbr_control *control);
/* Nothing was under way, and something is sent. */
void tcp_bbr_restarted(struct tcp_bbr *bbr, uint64_t now_ns,
		       struct tcp_bbr_control *control);
/* Recovery from losses begins, with fast recovery or a timeout, and ends. */
void tcp_bbr_recovers(struct tcp_bbr *bbr, uint32_t in_flight, uint32_t mss,
		      struct tcp_bbr_control *control);
void tcp_bbr_timed_out(struct tcp_bbr *bbr, uint32_t mss,
		       struct tcp_bbr_control *control);
void tcp_bbr_recovered(struct tcp_bbr *bbr, struct tcp_bbr_control *control);
/* Nothing was lost after all; the window is what it was. */
void tcp_bbr_undone(struct tcp_bbr *bbr);

#endif
