/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rules of draft-ietf-ccwg-bbr section 5, in its order and with its constants. A
 * sample covers a round trip here (tcp_rate.c), so those of its loss rounds are round
 * trips, too. */
#include "tcp/tcp_bbr.h"

#include "base/clock.h"
#include "base/compiler.h"

/* Shares are in hundredths. */
enum {
	STARTUP_PACING = 277,
	STARTUP_WINDOW = 200,
	DRAIN_PACING = 50,
	DOWN_PACING = 90,
	UP_PACING = 125,
	UP_WINDOW = 225,
	USUAL_WINDOW = 200,
	PROBE_RTT_WINDOW = 50,
	MARGIN = 99,
	LOSS_THRESHOLD = 2,
	BETA = 70,
	/* of inflight_hi is left to others */
	USED = 85,
	FULL_GROWTH = 125,
	FULL_ROUNDS = 3,
	STARTUP_LOSSES = 6,
	EXTRA_ROUNDS = 5,
	RENO_ROUNDS_MAX = 63,
	UP_ROUNDS_MAX = 30,
};

#define MIN_RTT_LIFE_NS (10 * NS_PER_SEC)
#define PROBE_RTT_EVERY_NS (5 * NS_PER_SEC)
#define PROBE_RTT_TIME_NS (200 * NS_PER_MS)
#define PROBE_WAIT_NS (2 * NS_PER_SEC)
/* Rates above would not fit the sums below. */
#define RATE_MAX (UINT64_C(1) << 40)

static uint64_t share(uint64_t of, unsigned percent)
{
	return of * percent / 100;
}

static uint64_t max_bw(const struct tcp_bbr *bbr)
{
	return MAX(bbr->max_bw[0], bbr->max_bw[1]);
}

/* As losses allow it. */
static uint64_t bandwidth(const struct tcp_bbr *bbr)
{
	return MIN(max_bw(bbr), bbr->bw_lo);
}

static bool is_probe_bw(const struct tcp_bbr *bbr)
{
	return bbr->state >= BBR_DOWN && bbr->state <= BBR_UP;
}

static bool is_probing(const struct tcp_bbr *bbr)
{
	return bbr->state == BBR_STARTUP || bbr->state == BBR_REFILL ||
	       bbr->state == BBR_UP;
}

/* Section 5.6.4.2: what the path holds. */
static uint32_t bdp(const struct tcp_bbr *bbr, uint64_t bw, unsigned percent)
{
	uint64_t rtt_us = MIN(bbr->min_rtt_ns / NS_PER_US,
			      UINT64_C(10000000));
	uint64_t bytes = share(bw * rtt_us / 1000000, percent);

	return (uint32_t)MIN(bytes, (uint64_t)UINT32_MAX / 4);
}

/* What the path holds, or the first window while it is not known. */
static uint32_t target(const struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
		       const struct tcp_bbr_control *control)
{
	uint32_t bytes = bdp(bbr, bandwidth(bbr), 100);

	bytes = MAX(bytes, TCP_BBR_MIN_SEGMENTS * ack->mss);
	return MIN(bytes, control->cwnd);
}

/* ---- states ---- */

static uint32_t draw(struct tcp_bbr *bbr, uint32_t below)
{
	bbr->random = bbr->random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)bbr->random * below >> 32);
}

/* Section 5.5.9 */
static void reset_signals(struct tcp_bbr *bbr)
{
	bbr->bw_latest = 0;
	bbr->inflight_latest = 0;
	bbr->lost = 0;
	bbr->loss_events = 0;
}

static void reset_full(struct tcp_bbr *bbr, uint64_t bw)
{
	bbr->full_bw = bw;
	bbr->full_cnt = 0;
	bbr->is_full_now = false;
}

static void start_down(struct tcp_bbr *bbr, uint64_t now_ns)
{
	reset_signals(bbr);
	bbr->up_step = UINT32_MAX;
	bbr->rounds_since_probe = (uint8_t)draw(bbr, 2);
	bbr->wait_ns = PROBE_WAIT_NS +
		       (uint64_t)draw(bbr, 1000) * NS_PER_MS;
	bbr->cycle_ns = now_ns;
	bbr->feedback = BBR_OF_PROBE_STILL;
	bbr->state = BBR_DOWN;
}

static void start_refill(struct tcp_bbr *bbr)
{
	bbr->bw_lo = UINT64_MAX;
	bbr->inflight_lo = UINT32_MAX;
	bbr->up_rounds = 0;
	bbr->up_acked = 0;
	bbr->feedback = BBR_OF_REFILL;
	bbr->state = BBR_REFILL;
}

/* Section 5.3.3.6: in each round trip of the probe it grows twice as fast. */
static void raise_slope(struct tcp_bbr *bbr, uint32_t cwnd)
{
	uint32_t growth = 1u << bbr->up_rounds;

	bbr->up_rounds += bbr->up_rounds < UP_ROUNDS_MAX;
	bbr->up_step = MAX(cwnd / growth, 1u);
}

static void start_up(struct tcp_bbr *bbr, uint32_t cwnd)
{
	bbr->feedback = BBR_OF_PROBE_SOON;
	bbr->may_judge = true;
	reset_full(bbr, bbr->bw_latest);
	raise_slope(bbr, cwnd);
	bbr->state = BBR_UP;
}

/* ---- the model ---- */

/* Section 5.5.5 */
static void take_rate(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack)
{
	uint64_t rate = MIN(ack->rate, RATE_MAX);

	if (!rate)
		return;
	bbr->bw_latest = MAX(bbr->bw_latest, rate);
	bbr->inflight_latest = MAX(bbr->inflight_latest, ack->delivered);
	if (rate >= max_bw(bbr) || !ack->is_app_limited)
		bbr->max_bw[1] = MAX(bbr->max_bw[1], rate);
}

static void advance_max_bw(struct tcp_bbr *bbr)
{
	/* a cycle without a sample says nothing */
	if (!bbr->max_bw[1])
		return;
	bbr->max_bw[0] = bbr->max_bw[1];
	bbr->max_bw[1] = 0;
}

/* Section 5.5.10.3: what was delivered in spite of the losses is possible. */
static void lower_bounds(struct tcp_bbr *bbr, uint32_t cwnd)
{
	if (bbr->bw_lo == UINT64_MAX)
		bbr->bw_lo = max_bw(bbr);
	if (bbr->inflight_lo == UINT32_MAX)
		bbr->inflight_lo = cwnd;
	bbr->bw_lo = MAX(bbr->bw_latest, share(bbr->bw_lo, BETA));
	bbr->inflight_lo = MAX(bbr->inflight_latest,
			       (uint32_t)share(bbr->inflight_lo, BETA));
}

static void take_losses(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
			const struct tcp_bbr_control *control)
{
	if (ack->lost || ack->marked) {
		bbr->lost += ack->lost + ack->marked;
		bbr->loss_events += bbr->loss_events < UINT8_MAX;
	}
	if (ack->ends_round && bbr->lost && !is_probing(bbr))
		lower_bounds(bbr, control->cwnd);
}

/* Section 5.5.9: how much more than expected comes at once. */
static void take_bunch(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
		       uint32_t cwnd)
{
	uint64_t time_us = (ack->now_ns - bbr->bunch_ns) / NS_PER_US;
	uint64_t expected = bandwidth(bbr) / 1000 *
			    MIN(time_us, UINT64_C(1000000)) / 1000;
	uint32_t extra;

	if (ack->ends_round && ++bbr->extra_rounds >=
				       (bbr->is_full ? EXTRA_ROUNDS : 1)) {
		bbr->extra_rounds = 0;
		bbr->extra_acked[0] = bbr->extra_acked[1];
		bbr->extra_acked[1] = 0;
	}
	if (bbr->bunch_acked <= expected) {
		bbr->bunch_acked = 0;
		bbr->bunch_ns = ack->now_ns;
		expected = 0;
	}
	bbr->bunch_acked += ack->acked;
	extra = bbr->bunch_acked - (uint32_t)MIN(expected,
						 (uint64_t)bbr->bunch_acked);
	extra = MIN(extra, cwnd);
	bbr->extra_acked[1] = MAX(bbr->extra_acked[1], extra);
}

/* Section 5.3.1.2 */
static void look_for_plateau(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack)
{
	bool looks_for_more = bbr->state == BBR_STARTUP || bbr->state == BBR_UP;

	if (!looks_for_more || bbr->is_full_now || !ack->ends_round ||
	    !bbr->bw_latest || ack->is_app_limited)
		return;
	if (bbr->bw_latest >= share(bbr->full_bw, FULL_GROWTH)) {
		reset_full(bbr, bbr->bw_latest);
		return;
	}
	if (++bbr->full_cnt < FULL_ROUNDS)
		return;
	bbr->is_full_now = bbr->is_full = true;
}

static bool is_too_much_lost(const struct tcp_bbr *bbr,
			     const struct tcp_bbr_ack *ack)
{
	return bbr->lost > share(ack->tx_in_flight, LOSS_THRESHOLD);
}

/* Section 5.3.1.3 */
static void look_for_startup_losses(struct tcp_bbr *bbr,
				    const struct tcp_bbr_ack *ack)
{
	if (bbr->is_full || !ack->ends_round ||
	    bbr->loss_events < STARTUP_LOSSES || !is_too_much_lost(bbr, ack))
		return;
	bbr->is_full = true;
	bbr->inflight_hi = MAX(bdp(bbr, max_bw(bbr), 100),
			       bbr->inflight_latest);
}

static void leave_start(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack)
{
	if (bbr->state == BBR_STARTUP && bbr->is_full)
		bbr->state = BBR_DRAIN;
	if (bbr->state == BBR_DRAIN &&
	    ack->in_flight <= bdp(bbr, bandwidth(bbr), 100))
		start_down(bbr, ack->now_ns);
}

/* ---- probing for bandwidth ---- */

/* Section 5.5.10.2 */
static void on_too_much(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
			const struct tcp_bbr_control *control)
{
	bbr->may_judge = false;
	if (!ack->is_app_limited)
		bbr->inflight_hi =
			MAX(ack->tx_in_flight,
			    (uint32_t)share(target(bbr, ack, control), BETA));
	if (bbr->state == BBR_UP)
		start_down(bbr, ack->now_ns);
}

/* Section 5.3.3.6: the bound grows while it is what limits the probe. */
static void raise_inflight_hi(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
			      uint32_t cwnd)
{
	uint32_t steps;

	if (!ack->is_cwnd_limited || cwnd < bbr->inflight_hi)
		return;
	bbr->up_acked += ack->acked;
	steps = bbr->up_acked / bbr->up_step;
	bbr->up_acked -= steps * bbr->up_step;
	bbr->inflight_hi += MIN(steps * ack->mss,
				UINT32_MAX - 1 - bbr->inflight_hi);
	if (ack->ends_round)
		raise_slope(bbr, cwnd);
}

static void adapt_upper_bounds(struct tcp_bbr *bbr,
			       const struct tcp_bbr_ack *ack,
			       const struct tcp_bbr_control *control)
{
	if (ack->ends_round && bbr->feedback == BBR_OF_PROBE_SOON)
		bbr->feedback = BBR_OF_PROBE;
	if (ack->ends_round && bbr->feedback == BBR_OF_PROBE_STILL) {
		bbr->feedback = BBR_OF_NOTHING;
		bbr->may_judge = false;
		if (!ack->is_app_limited)
			advance_max_bw(bbr);
	}
	if (bbr->may_judge && ack->tx_in_flight && is_too_much_lost(bbr, ack)) {
		on_too_much(bbr, ack, control);
		return;
	}
	if (bbr->inflight_hi == UINT32_MAX)
		return;
	bbr->inflight_hi = MAX(bbr->inflight_hi, ack->tx_in_flight);
	if (bbr->state == BBR_UP)
		raise_inflight_hi(bbr, ack, control->cwnd);
}

static uint32_t with_headroom(const struct tcp_bbr *bbr, uint32_t mss)
{
	uint32_t room;

	if (bbr->inflight_hi == UINT32_MAX)
		return UINT32_MAX;
	room = MAX(bbr->inflight_hi - (uint32_t)share(bbr->inflight_hi, USED),
		   mss);
	room = MIN(room, bbr->inflight_hi);
	return MAX(bbr->inflight_hi - room, TCP_BBR_MIN_SEGMENTS * mss);
}

/* Section 5.3.3.5.1: after some seconds, or as many round trips as Reno would need to
 * grow by what is under way. */
static bool is_time_to_probe(const struct tcp_bbr *bbr,
			     const struct tcp_bbr_ack *ack,
			     const struct tcp_bbr_control *control)
{
	uint32_t rounds = MIN(target(bbr, ack, control) / ack->mss,
			      (uint32_t)RENO_ROUNDS_MAX);

	return ack->now_ns - bbr->cycle_ns > bbr->wait_ns ||
	       bbr->rounds_since_probe >= rounds;
}

static bool is_time_to_go_down(struct tcp_bbr *bbr,
			       const struct tcp_bbr_ack *ack, uint32_t cwnd)
{
	if (ack->is_cwnd_limited && cwnd >= bbr->inflight_hi) {
		reset_full(bbr, bbr->bw_latest);
		return false;
	}
	return bbr->is_full_now;
}

static bool is_time_to_cruise(const struct tcp_bbr *bbr,
			      const struct tcp_bbr_ack *ack)
{
	return ack->in_flight <= with_headroom(bbr, ack->mss) &&
	       ack->in_flight <= bdp(bbr, max_bw(bbr), 100);
}

static void follow_cycle(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
			 const struct tcp_bbr_control *control)
{
	if (!bbr->is_full)
		return;
	adapt_upper_bounds(bbr, ack, control);
	if (ack->ends_round)
		bbr->rounds_since_probe += bbr->rounds_since_probe < UINT8_MAX;
	switch ((enum tcp_bbr_state)bbr->state) {
	case BBR_DOWN:
		if (is_time_to_probe(bbr, ack, control))
			start_refill(bbr);
		else if (is_time_to_cruise(bbr, ack))
			bbr->state = BBR_CRUISE;
		break;
	case BBR_CRUISE:
		if (is_time_to_probe(bbr, ack, control))
			start_refill(bbr);
		break;
	case BBR_REFILL:
		if (ack->ends_round)
			start_up(bbr, control->cwnd);
		break;
	case BBR_UP:
		if (is_time_to_go_down(bbr, ack, control->cwnd))
			start_down(bbr, ack->now_ns);
		break;
	case BBR_STARTUP:
	case BBR_DRAIN:
	case BBR_PROBE_RTT:
		break;
	}
}

/* ---- the shortest round trip ---- */

/* Section 5.3.4.3. Returns whether it is time to look whether it still is so short. */
static bool take_rtt(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack)
{
	bool is_due = bbr->low_rtt_ns &&
		      ack->now_ns > bbr->low_rtt_at_ns + PROBE_RTT_EVERY_NS;

	if (!ack->rtt_ns)
		return false;
	if (!bbr->low_rtt_ns || ack->rtt_ns < bbr->low_rtt_ns || is_due) {
		bbr->low_rtt_ns = ack->rtt_ns;
		bbr->low_rtt_at_ns = ack->now_ns;
	}
	if (!bbr->min_rtt_ns || bbr->low_rtt_ns < bbr->min_rtt_ns ||
	    ack->now_ns > bbr->min_rtt_at_ns + MIN_RTT_LIFE_NS) {
		bbr->min_rtt_ns = bbr->low_rtt_ns;
		bbr->min_rtt_at_ns = bbr->low_rtt_at_ns;
	}
	return is_due;
}

static void save_cwnd(struct tcp_bbr *bbr, const struct tcp_bbr_control *control)
{
	bbr->prior_cwnd = MAX(bbr->prior_cwnd, control->cwnd);
}

static void restore_cwnd(struct tcp_bbr *bbr, struct tcp_bbr_control *control)
{
	control->cwnd = MAX(control->cwnd, bbr->prior_cwnd);
	bbr->prior_cwnd = 0;
}

static void end_probe_rtt(struct tcp_bbr *bbr, uint64_t now_ns,
			  struct tcp_bbr_control *control)
{
	bbr->low_rtt_at_ns = now_ns;
	restore_cwnd(bbr, control);
	bbr->bw_lo = UINT64_MAX;
	bbr->inflight_lo = UINT32_MAX;
	if (!bbr->is_full) {
		bbr->state = BBR_STARTUP;
		return;
	}
	start_down(bbr, now_ns);
	bbr->state = BBR_CRUISE;
}

static uint32_t probe_rtt_cwnd(const struct tcp_bbr *bbr, uint32_t mss)
{
	return MAX(bdp(bbr, bandwidth(bbr), PROBE_RTT_WINDOW),
		   TCP_BBR_MIN_SEGMENTS * mss);
}

static void probe_rtt(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
		      bool is_due, struct tcp_bbr_control *control)
{
	if (bbr->state != BBR_PROBE_RTT) {
		if (!is_due || bbr->was_idle)
			return;
		save_cwnd(bbr, control);
		bbr->probe_rtt_done_ns = 0;
		bbr->feedback = BBR_OF_PROBE_STILL;
		bbr->state = BBR_PROBE_RTT;
	}
	if (!bbr->probe_rtt_done_ns) {
		if (ack->in_flight > probe_rtt_cwnd(bbr, ack->mss))
			return;
		bbr->probe_rtt_done_ns = ack->now_ns + PROBE_RTT_TIME_NS;
		bbr->is_round_done = false;
		return;
	}
	bbr->is_round_done |= ack->ends_round;
	if (bbr->is_round_done && ack->now_ns > bbr->probe_rtt_done_ns)
		end_probe_rtt(bbr, ack->now_ns, control);
}

/* ---- control ---- */

static unsigned pacing_gain(const struct tcp_bbr *bbr)
{
	static const uint16_t gains[] = {
		[BBR_STARTUP] = STARTUP_PACING, [BBR_DRAIN] = DRAIN_PACING,
		[BBR_DOWN] = DOWN_PACING,	[BBR_CRUISE] = 100,
		[BBR_REFILL] = 100,		[BBR_UP] = UP_PACING,
		[BBR_PROBE_RTT] = 100,
	};

	return gains[bbr->state];
}

static void set_rate(const struct tcp_bbr *bbr, unsigned percent,
		     struct tcp_bbr_control *control)
{
	uint64_t rate = share(share(bandwidth(bbr), percent), MARGIN);

	if (rate && (bbr->is_full || rate > control->pacing_rate))
		control->pacing_rate = rate;
}

/* Section 5.6.4.2: with room for bunches of acknowledgments, and for the bursts that
 * leave at once. */
static uint32_t max_inflight(const struct tcp_bbr *bbr,
			     const struct tcp_bbr_ack *ack, uint64_t rate)
{
	unsigned gain = bbr->state == BBR_STARTUP || bbr->state == BBR_DRAIN
				? STARTUP_WINDOW
				: bbr->state == BBR_UP ? UP_WINDOW
						       : USUAL_WINDOW;
	uint32_t burst = (uint32_t)MIN(rate >> 10, (uint64_t)UINT32_MAX / 8);
	uint32_t bytes;

	/* nothing is known yet */
	if (!bbr->min_rtt_ns || !max_bw(bbr))
		return UINT32_MAX;
	bytes = bdp(bbr, bandwidth(bbr), gain) +
		MAX(bbr->extra_acked[0], bbr->extra_acked[1]);
	burst = MAX(burst, ack->mss);
	bytes = MAX(bytes, 3 * burst);
	bytes = MAX(bytes, TCP_BBR_MIN_SEGMENTS * ack->mss);
	return bytes + (bbr->state == BBR_UP ? 2 * ack->mss : 0);
}

/* Section 5.6.4.8 */
static uint32_t cap_of_model(const struct tcp_bbr *bbr, uint32_t mss)
{
	uint32_t cap = UINT32_MAX;

	if (bbr->state == BBR_PROBE_RTT || bbr->state == BBR_CRUISE)
		cap = with_headroom(bbr, mss);
	else if (is_probe_bw(bbr))
		cap = bbr->inflight_hi;
	cap = MIN(cap, bbr->inflight_lo);
	if (bbr->state == BBR_PROBE_RTT)
		cap = MIN(cap, probe_rtt_cwnd(bbr, mss));
	return MAX(cap, TCP_BBR_MIN_SEGMENTS * mss);
}

static void set_cwnd(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
		     struct tcp_bbr_control *control)
{
	uint32_t most = max_inflight(bbr, ack, control->pacing_rate);
	uint32_t cwnd = MIN(control->cwnd, UINT32_MAX / 4);

	if (bbr->conserves) {
		/* section 5.6.4.4: what arrives makes room for as much */
		bbr->conserves = !ack->ends_round;
		cwnd -= MIN(ack->lost, cwnd);
		cwnd = MAX(cwnd, ack->in_flight + ack->acked);
	} else if (bbr->is_full) {
		cwnd = MIN(cwnd + ack->acked, most);
	} else if (cwnd < most) {
		cwnd += ack->acked;
	}
	cwnd = MAX(cwnd, TCP_BBR_MIN_SEGMENTS * ack->mss);
	control->cwnd = MIN(cwnd, cap_of_model(bbr, ack->mss));
}

void tcp_bbr_init(struct tcp_bbr *bbr, uint32_t random)
{
	*bbr = (struct tcp_bbr){
		.bw_lo = UINT64_MAX,
		.inflight_lo = UINT32_MAX,
		.inflight_hi = UINT32_MAX,
		.up_step = UINT32_MAX,
		.random = random,
	};
}

uint64_t tcp_bbr_first_rate(uint32_t cwnd, uint64_t rtt_ns)
{
	uint64_t rtt_us = MAX(rtt_ns / NS_PER_US, UINT64_C(1));

	if (!rtt_ns)
		rtt_us = 1000;
	return MIN(share((uint64_t)cwnd * 1000000 / rtt_us, STARTUP_PACING),
		   RATE_MAX);
}

void tcp_bbr_acked(struct tcp_bbr *bbr, const struct tcp_bbr_ack *ack,
		   struct tcp_bbr_control *control)
{
	bool is_due;

	take_rate(bbr, ack);
	take_losses(bbr, ack, control);
	take_bunch(bbr, ack, control->cwnd);
	look_for_plateau(bbr, ack);
	look_for_startup_losses(bbr, ack);
	leave_start(bbr, ack);
	follow_cycle(bbr, ack, control);
	is_due = take_rtt(bbr, ack);
	probe_rtt(bbr, ack, is_due, control);
	bbr->was_idle = false;
	if (ack->ends_round)
		reset_signals(bbr);
	set_rate(bbr, pacing_gain(bbr), control);
	set_cwnd(bbr, ack, control);
}

void tcp_bbr_restarted(struct tcp_bbr *bbr, uint64_t now_ns,
		       struct tcp_bbr_control *control)
{
	bbr->was_idle = true;
	bbr->bunch_ns = now_ns;
	bbr->bunch_acked = 0;
	if (is_probe_bw(bbr))
		set_rate(bbr, 100, control);
	else if (bbr->state == BBR_PROBE_RTT && bbr->probe_rtt_done_ns &&
		 now_ns > bbr->probe_rtt_done_ns)
		end_probe_rtt(bbr, now_ns, control);
}

void tcp_bbr_recovers(struct tcp_bbr *bbr, uint32_t in_flight, uint32_t mss,
		      struct tcp_bbr_control *control)
{
	save_cwnd(bbr, control);
	control->cwnd = in_flight + mss;
	bbr->conserves = true;
}

void tcp_bbr_timed_out(struct tcp_bbr *bbr, uint32_t mss,
		       struct tcp_bbr_control *control)
{
	save_cwnd(bbr, control);
	bbr->conserves = false;
	control->cwnd = mss;
}

void tcp_bbr_recovered(struct tcp_bbr *bbr, struct tcp_bbr_control *control)
{
	bbr->conserves = false;
	if (bbr->state != BBR_PROBE_RTT)
		restore_cwnd(bbr, control);
}

/* Section 5.5.11 */
void tcp_bbr_undone(struct tcp_bbr *bbr)
{
	bbr->conserves = false;
	bbr->lost = 0;
	bbr->loss_events = 0;
	bbr->bw_lo = UINT64_MAX;
	bbr->inflight_lo = UINT32_MAX;
	reset_full(bbr, 0);
	if (bbr->state != BBR_PROBE_RTT)
		bbr->prior_cwnd = 0;
}
