/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timers of a connection. It has several deadlines and one timer in the
 * wheel, which is armed no later than the earliest of them. A deadline that moves
 * further away, as with every segment acknowledged, costs one store: the timer
 * fires at the old time, finds nothing due, and is set again.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

/* A SYN behind a reset waits for so long, lest it overtakes. */
#define SYN_BEHIND_RESET_NS (2 * NS_PER_MS)

static uint64_t earliest(uint64_t a_ns, uint64_t b_ns)
{
	if (!a_ns || !b_ns)
		return a_ns | b_ns;
	return MIN(a_ns, b_ns);
}

void tcp_timer_update(struct tcp_pcb *pcb)
{
	uint64_t at_ns = earliest(earliest(pcb->rtx_at_ns, pcb->delack_at_ns),
				  earliest(pcb->keep_at_ns, pcb->state_at_ns));

	at_ns = earliest(at_ns, earliest(pcb->cork_ns, pcb->pace_wait_ns));
	if (at_ns && tcp_timer_is_later(pcb, at_ns))
		tcp_timer_advance(pcb, at_ns);
}

void tcp_timer_advance(struct tcp_pcb *pcb, uint64_t at_ns)
{
	pcb->armed_ns = at_ns;
	timer_set(pcb->table->wheel, &pcb->timer, at_ns);
}

void tcp_timer_stop(struct tcp_pcb *pcb)
{
	pcb->rtx_at_ns = pcb->delack_at_ns = pcb->armed_ns = 0;
	pcb->keep_at_ns = pcb->state_at_ns = pcb->cork_ns = 0;
	pcb->pace_wait_ns = 0;
	pcb->rtx_kind = RTX_NONE;
	timer_cancel(pcb->table->wheel, &pcb->timer);
}

static ALWAYS_INLINE void set_rtx(struct tcp_pcb *pcb, enum tcp_rtx_kind kind,
				  uint64_t at_ns)
{
	pcb->rtx_kind = (uint8_t)kind;
	pcb->rtx_at_ns = at_ns;
	if (UNLIKELY(tcp_timer_is_later(pcb, at_ns)))
		tcp_timer_advance(pcb, at_ns);
}

/* RFC 9293 section 3.8.6.1: data that waits for a window must not wait for ever. What
 * waits for its time has a timer already. */
static void rearm_persist(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool is_waiting = pcb->snd_end != pcb->snd_nxt && tcp_may_send(pcb) &&
			  !pcb->pace_wait_ns;

	if (!is_waiting) {
		pcb->rtx_kind = RTX_NONE;
		pcb->rtx_at_ns = 0;
	} else if (pcb->rtx_kind != RTX_PERSIST) {
		pcb->is_quiet = false;
		set_rtx(pcb, RTX_PERSIST, now_ns + tcp_rto_ns(pcb));
	}
}

void tcp_timer_rearm_rtx(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t rto_ns, probe_ns;

	if (UNLIKELY(pcb->snd_una == pcb->snd_nxt)) {
		rearm_persist(pcb, now_ns);
		return;
	}
	rto_ns = tcp_rto_ns(pcb);
	probe_ns = tcp_tlp_timeout_ns(pcb);
	if (!probe_ns)
		set_rtx(pcb, RTX_TIMEOUT, now_ns + rto_ns);
	else if (probe_ns < rto_ns)
		set_rtx(pcb, RTX_PROBE, now_ns + probe_ns);
	else
		set_rtx(pcb, RTX_LATE_PROBE, now_ns + rto_ns);
}

void tcp_timer_set_reorder(struct tcp_pcb *pcb, uint64_t at_ns)
{
	set_rtx(pcb, RTX_REORDER, at_ns);
}

/* The peer has an earlier connection by these names, which our reset ends: the SYN shall
 * come behind that (RFC 9293 section 3.5.1, figure 9). Whoever forges such answers has it
 * sent early once. */
void tcp_timer_hurry_syn(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (!pcb->timeouts && pcb->rtx_kind == RTX_TIMEOUT)
		set_rtx(pcb, RTX_TIMEOUT, MIN(pcb->rtx_at_ns, now_ns + SYN_BEHIND_RESET_NS));
}

void tcp_timer_restart_keepalive(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->probes = 0;
	if (!(pcb->flags & TF_KEEPALIVE) || !tcp_is_synchronised(pcb)) {
		pcb->keep_at_ns = 0;
		return;
	}
	pcb->keep_at_ns = now_ns + pcb->settings->keep_idle_ns;
	tcp_timer_update(pcb);
}

void tcp_timer_move_keepalive(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (!pcb->keep_at_ns)
		return;
	pcb->keep_at_ns = MAX(now_ns + 1, pcb->last_rcvd_ns + pcb->settings->keep_idle_ns);
	tcp_timer_update(pcb);
}

void tcp_timer_set_fin_wait_2(struct tcp_pcb *pcb, uint64_t now_ns)
{
	/* The peer's FIN gets at least the time of a few retransmissions. */
	uint64_t least_ns = 4 * pcb->rto_ns - pcb->rto_ns / 2;

	pcb->state_at_ns = now_ns +
			   MAX(pcb->settings->fin_wait_2_ns, least_ns);
	tcp_timer_update(pcb);
}

/* Whether waiting has gone on for longer than the connection may last. */
static bool has_given_up(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	uint8_t retries = params->retries;

	if (pcb->flags & TF_ORPHAN)
		retries = MIN(retries, params->orphan_retries);
	if (pcb->settings->user_timeout_ns)
		return now_ns - pcb->progress_ns >= pcb->settings->user_timeout_ns;
	return pcb->timeouts >= retries;
}

/* The timer is never set beyond the moment when the user timeout (RFC 5482) ends the
 * connection. */
static uint64_t not_past_user_timeout(const struct tcp_pcb *pcb,
				      uint64_t at_ns)
{
	if (!pcb->settings->user_timeout_ns)
		return at_ns;
	return MIN(at_ns, pcb->progress_ns + pcb->settings->user_timeout_ns);
}

/* How long a SYN and so many more take if each timeout doubles. */
static uint64_t syn_time_ns(const struct tcp_params *params, unsigned retries)
{
	uint64_t timeout_ns = params->rto_initial_ns, sum_ns = timeout_ns;

	while (retries--) {
		timeout_ns = MIN(2 * timeout_ns, params->rto_max_ns);
		sum_ns += timeout_ns;
	}
	return sum_ns;
}

/* Linear timeouts add SYNs, but Linux does not wait longer for them than it would
 * without. */
static bool is_syn_over(const struct tcp_pcb *pcb, unsigned retries,
			unsigned linear, uint64_t now_ns)
{
	return pcb->timeouts >= retries + linear ||
	       (linear && now_ns - pcb->progress_ns >=
				  syn_time_ns(&pcb->table->params, retries));
}

static void on_syn_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	bool is_passive = pcb->flags & TF_PASSIVE;
	unsigned linear = is_passive ? 0 : params->syn_linear_timeouts;
	unsigned retries = is_passive ? params->synack_retries
				      : params->syn_retries;
	uint8_t deferred = pcb->listener ? pcb->settings->defer_accept : 0;
	bool is_waiting = pcb->flags & TF_DEFERRED;
	uint64_t at_ns;
	bool is_over;

	if (pcb->settings->syn_retries)
		retries = pcb->settings->syn_retries;
	/* as in Linux, the program's time may be shorter, and rules nobody's SYN-ACK */
	is_over = is_syn_over(pcb, retries, linear, now_ns) ||
		  (!is_passive && pcb->settings->user_timeout_ns && has_given_up(pcb, now_ns));
	/* The peer has answered: the child waits for data as long as it was told to. */
	if (is_waiting)
		is_over &= pcb->backoff >= deferred;
	if (is_over) {
		tcp_pcb_die(pcb, -ETIMEDOUT);
		return;
	}
	tcp_stats_timeout(pcb, now_ns);
	pcb->timeouts += pcb->timeouts < UINT8_MAX;
	if (pcb->timeouts > linear)
		pcb->backoff++;
	tcp_cwnd_note_used(pcb);
	/* The last SYN-ACK asks the peer to say once more that it is there. */
	if (!is_waiting || pcb->backoff >= deferred)
		tcp_out_syn(pcb, now_ns);
	at_ns = now_ns + tcp_rto_ns(pcb);
	set_rtx(pcb, RTX_TIMEOUT, is_passive ? at_ns : not_past_user_timeout(pcb, at_ns));
}

enum { THIN_SEGMENTS = 4, THIN_LINEAR_TIMEOUTS = 6 };

/* So few segments are under way that their loss brings no three duplicates. */
static bool is_thin(const struct tcp_pcb *pcb)
{
	unsigned cnt = 0;
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &pcb->snd_queue, link)
		if (!(tcp_seg(pkt)->flags & SEG_SENT) || ++cnt == THIN_SEGMENTS)
			break;
	return cnt < THIN_SEGMENTS;
}

/* RFC 6298 section 5.5, unless the program has asked for something else. */
static void back_off(struct tcp_pcb *pcb)
{
	if (pcb->settings->thin_linear_timeouts &&
	    pcb->timeouts <= THIN_LINEAR_TIMEOUTS && is_thin(pcb))
		pcb->backoff = 0;
	else if (pcb->backoff < UINT8_MAX)
		pcb->backoff++;
}

/* A probe would have come first, or there was room for what is known to be lost. */
static bool is_avoidable(struct tcp_pcb *pcb)
{
	uint32_t pipe = tcp_pipe(pcb);

	if (tcp_tlp_timeout_ns(pcb))
		return true;
	return !list_is_empty(&pcb->lost) && !pcb->pace_wait_ns &&
	       pipe + pcb->mss <= pcb->cwnd && !(pcb->flags & TF_FRTO_NEW);
}

static void on_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	tcp_fastopen_on_timeout(pcb, now_ns);
	if (pcb->state == TCPS_SYN_SENT || pcb->state == TCPS_SYN_RCVD ||
	    tcp_is_pending(pcb)) {
		on_syn_timeout(pcb, now_ns);
		return;
	}
	if (has_given_up(pcb, now_ns)) {
		tcp_pcb_die(pcb, -ETIMEDOUT);
		return;
	}
	pcb->table->counts.rto_fired++;
	pcb->table->counts.rto_avoidable += is_avoidable(pcb);
	pcb->has_tlp = false;
	tcp_pmtu_on_timeout(pcb, now_ns);
	tcp_recovery_on_timeout(pcb, now_ns);
	tcp_stats_timeout(pcb, now_ns);
	pcb->timeouts += pcb->timeouts < UINT8_MAX;
	back_off(pcb);
	if (!list_is_empty(&pcb->lost))
		tcp_out_resend(pcb, tcp_seg_pkt(pcb->lost.next), now_ns);
	set_rtx(pcb, RTX_TIMEOUT,
		not_past_user_timeout(pcb, now_ns + tcp_rto_ns(pcb)));
}

/* RFC 9293 section 3.8.6.1: we probe as long as the peer answers at all. A time that the
 * program has set counts from the first probe on, answered or not, as in Linux: while nothing
 * is under way there is no other progress. */
static void on_persist(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	bool is_silent;

	/* The window may have opened while we noticed only a part of it. */
	tcp_out_push(pcb, now_ns);
	if (pcb->rtx_kind != RTX_PERSIST)
		return;
	if (tcp_out_override(pcb, now_ns)) {
		tcp_timer_rearm_rtx(pcb, now_ns);
		return;
	}
	is_silent = pcb->probes >= params->retries ||
		    (pcb->flags & TF_ORPHAN &&
		     pcb->probes >= params->orphan_retries);
	if (!pcb->backoff)
		pcb->progress_ns = now_ns;
	if (pcb->settings->user_timeout_ns)
		is_silent = has_given_up(pcb, now_ns);
	if (is_silent) {
		tcp_pcb_die(pcb, -ETIMEDOUT);
		return;
	}
	pcb->probes++;
	if (pcb->backoff < UINT8_MAX)
		pcb->backoff++;
	pcb->table->counts.persist_probes++;
	/* A probe lies below the window, where the peer ignores the urgent pointer. */
	if (pcb->flags & TF_URGENT_OUT)
		tcp_out_ack(pcb, now_ns);
	tcp_out_probe(pcb, now_ns);
	set_rtx(pcb, RTX_PERSIST,
		not_past_user_timeout(pcb, now_ns + tcp_rto_ns(pcb)));
}

static uint64_t no_room_ns(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	return pcb->table->ops->no_room_ns(pcb->table->ctx, pcb, now_ns);
}

/* What a full device would refuse is sent when it has room. Refused, it would be taken for
 * lost on the way, and the next timeout double. The program's time is not exceeded for it. */
static bool waits_for_room(struct tcp_pcb *pcb, enum tcp_rtx_kind kind, uint64_t now_ns)
{
	bool sends_at_once = kind != RTX_NONE && kind != RTX_REORDER;
	uint64_t wait_ns;

	if (!sends_at_once || has_given_up(pcb, now_ns))
		return false;
	wait_ns = no_room_ns(pcb, now_ns);
	if (wait_ns)
		set_rtx(pcb, kind, now_ns + wait_ns);
	return wait_ns;
}

static void on_rtx(struct tcp_pcb *pcb, uint64_t now_ns)
{
	enum tcp_rtx_kind kind = pcb->rtx_kind;

	pcb->rtx_at_ns = 0;
	if (waits_for_room(pcb, kind, now_ns))
		return;
	switch (kind) {
	case RTX_NONE:
		break;
	case RTX_PROBE:
		tcp_tlp_fire(pcb, now_ns);
		break;
	case RTX_LONE_PROBE:
		if (tcp_tlp_timeout_ns(pcb))
			tcp_tlp_fire(pcb, now_ns);
		else
			tcp_timer_rearm_rtx(pcb, now_ns);
		break;
	case RTX_TIMEOUT:
	case RTX_LATE_PROBE:
		/* It may have become possible since the timer was set: a reduction was
		 * undone, or the probe before turned out to be needless. */
		if (tcp_tlp_timeout_ns(pcb))
			tcp_tlp_fire(pcb, now_ns);
		else
			on_timeout(pcb, now_ns);
		break;
	case RTX_REORDER:
		tcp_rack_on_timeout(pcb, now_ns);
		break;
	case RTX_PERSIST:
		on_persist(pcb, now_ns);
		break;
	}
}

/* RFC 9293 section 3.8.4. No probe is sent while data is outstanding or waits for a
 * window, because the timer of that data finds a dead peer. The probes of a closed window
 * are counted in the same place, and by their own limit. */
static void on_keepalive(struct tcp_pcb *pcb, uint64_t due_ns, uint64_t now_ns)
{
	uint64_t idle_ns = now_ns - pcb->last_rcvd_ns, wait_ns;
	bool is_dead;

	if (pcb->unsent && pcb->snd_una == pcb->snd_nxt) {
		pcb->keep_at_ns = now_ns + pcb->settings->keep_idle_ns;
		return;
	}
	/* The last probe left an interval before this was due. Its answer can be
	 * older than the idle time and counts all the same. */
	if (pcb->last_rcvd_ns + pcb->settings->keep_interval_ns > due_ns)
		pcb->probes = 0;
	is_dead = pcb->probes >= pcb->settings->keep_probes;
	if (pcb->snd_una != pcb->snd_nxt || idle_ns < pcb->settings->keep_idle_ns) {
		pcb->probes = 0;
		pcb->keep_at_ns = MAX(now_ns + 1, pcb->last_rcvd_ns +
							  pcb->settings->keep_idle_ns);
		if (pcb->snd_una != pcb->snd_nxt)
			pcb->keep_at_ns = now_ns + pcb->settings->keep_idle_ns;
		return;
	}
	if (pcb->settings->user_timeout_ns)
		is_dead = pcb->probes && idle_ns >= pcb->settings->user_timeout_ns;
	if (is_dead) {
		tcp_out_reset(pcb, now_ns);
		tcp_pcb_die(pcb, -ETIMEDOUT);
		return;
	}
	/* a probe that a full device would refuse is not one that the peer has not answered */
	wait_ns = no_room_ns(pcb, now_ns);
	if (wait_ns) {
		pcb->keep_at_ns = now_ns + wait_ns;
		return;
	}
	pcb->probes++;
	pcb->table->counts.keepalive_probes++;
	tcp_out_probe(pcb, now_ns);
	pcb->keep_at_ns = now_ns + pcb->settings->keep_interval_ns;
}

static bool take_due(uint64_t *at_ns, uint64_t now_ns)
{
	if (!*at_ns || *at_ns > now_ns)
		return false;
	*at_ns = 0;
	return true;
}

/* The time of what is paced has come, or a full device is asked again. */
static void go_on(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (pcb->state != TCPS_SYN_SENT) {
		tcp_out_push(pcb, now_ns);
		return;
	}
	if (tcp_pace_is_stuck(pcb, now_ns))
		return;
	/* its round trip begins now */
	if (!pcb->timeouts)
		pcb->progress_ns = now_ns;
	tcp_out_syn(pcb, now_ns);
}

static void fire(struct timer *timer, uint64_t now_ns)
{
	struct tcp_pcb *pcb = CONTAINER_OF(timer, struct tcp_pcb, timer);
	uint64_t keep_due_ns = pcb->keep_at_ns;

	pcb->armed_ns = 0;
	if (pcb->is_frozen)
		return;
	pcb->is_quiet = false;
	if (take_due(&pcb->state_at_ns, now_ns)) {
		/* FIN_WAIT_2 without an owner has lasted too long. A peer that still
		 * sends something shall learn that nobody is there. */
		tcp_pcb_die(pcb, -ETIMEDOUT);
		return;
	}
	if (take_due(&pcb->delack_at_ns, now_ns)) {
		/* no answer came to carry it */
		tcp_rx_resume_quick_acks(pcb);
		tcp_out_ack(pcb, now_ns);
	}
	if (take_due(&pcb->cork_ns, now_ns))
		tcp_out_push_held(pcb, now_ns);
	if (take_due(&pcb->pace_wait_ns, now_ns))
		go_on(pcb, now_ns);
	if (pcb->rtx_at_ns && pcb->rtx_at_ns <= now_ns)
		on_rtx(pcb, now_ns);
	if (pcb->state != TCPS_CLOSED && take_due(&pcb->keep_at_ns, now_ns))
		on_keepalive(pcb, keep_due_ns, now_ns);
	/* each of them may have ended the connection, which stops the timer for
	 * good; a dead pcb is freed only by tcp_event_next */
	if (pcb->state != TCPS_CLOSED)
		tcp_timer_update(pcb);
	tcp_fast_update(pcb);
}

void tcp_timer_init(struct tcp_pcb *pcb)
{
	timer_init(&pcb->timer, fire);
}
