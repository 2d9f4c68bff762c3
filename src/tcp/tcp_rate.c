/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast data arrives at the peer: the delivery rate of draft-ietf-ccwg-bbr, which
 * TCP_INFO tells. One segment of each round trip is looked at, so that nothing has to
 * be kept with the others: what had arrived when it was sent, and when that was.
 */
#include "tcp/tcp_priv.h"

static uint32_t delivered(const struct tcp_pcb *pcb)
{
	return pcb->snd_una + pcb->sacked_bytes;
}

/* What was counted when the marked segment left may not have arrived after all: a peer
 * throws away what it has reported, and without SACK duplicates are only an estimate. */
static uint32_t delivered_since_mark(const struct tcp_pcb *pcb)
{
	uint32_t now = delivered(pcb);

	return seq_after(now, pcb->rate_delivered) ? now - pcb->rate_delivered : 0;
}

/* The program writes less than the path would carry. */
static bool is_app_limited(const struct tcp_pcb *pcb)
{
	return !pcb->unsent && tcp_pipe(pcb) + pcb->mss <= pcb->cwnd;
}

void tcp_rate_mark(struct tcp_pcb *pcb, uint64_t now_ns)
{
	pcb->rate_mark = pcb->snd_nxt;
	pcb->rate_delivered = delivered(pcb);
	pcb->rate_mark_ns = now_ns;
	pcb->rate_sent_ns = pcb->rack_sent_ns;
	pcb->is_mark_app_limited = is_app_limited(pcb);
	pcb->is_mark_taken = false;
}

/* The segments of an interval may arrive, or their acknowledgments, closer together
 * than they were sent, but no path carries more than was sent. */
static uint64_t interval_ns(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint64_t acked_ns = now_ns - pcb->rate_mark_ns;
	uint64_t sent_ns = pcb->rack_sent_ns - pcb->rate_sent_ns;

	if (pcb->rack_sent_ns < pcb->rate_sent_ns)
		return acked_ns;
	return MAX(acked_ns, sent_ns);
}

/* Of a limited sender only more is news. */
static void take_sample(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool is_limited = pcb->is_mark_app_limited || is_app_limited(pcb);
	uint64_t bytes = delivered_since_mark(pcb);
	uint64_t time_ns = interval_ns(pcb, now_ns), rate;

	if (!bytes)
		return;
	rate = bytes * NS_PER_SEC / MAX(time_ns, UINT64_C(1));
	if (is_limited && rate <= pcb->delivery_rate)
		return;
	pcb->delivery_rate = rate;
	pcb->is_rate_app_limited = is_limited;
}

bool tcp_rate_round(struct tcp_pcb *pcb, uint64_t *rate_out,
		    uint32_t *delivered_out, uint64_t now_ns)
{
	bool is_of_later = pcb->rack_sent_ns > pcb->rate_mark_ns;
	uint64_t time_ns = interval_ns(pcb, now_ns);

	if (!is_of_later && !seq_after(pcb->rack_end, pcb->rate_mark))
		return false;
	*delivered_out = delivered_since_mark(pcb);
	if (!is_of_later || !pcb->is_mark_taken) {
		*rate_out = *delivered_out * NS_PER_SEC /
			    MAX(time_ns, UINT64_C(1));
		take_sample(pcb, now_ns);
		pcb->is_rate_app_limited = pcb->is_mark_app_limited ||
					   is_app_limited(pcb);
	}
	pcb->is_mark_taken = true;
	if (is_of_later)
		tcp_rate_mark(pcb, now_ns);
	return is_of_later;
}

void tcp_rate_take(struct tcp_pcb *pcb, uint64_t now_ns)
{
	bool is_of_later = pcb->rack_sent_ns > pcb->rate_mark_ns;

	/* A model takes them itself. */
	if (pcb->cc_ops->model || !seq_after(pcb->snd_una, pcb->rate_mark))
		return;
	/* A window that left at once arrives bit by bit, and each tells more than the
	 * one before. What was sent later would count the pause behind it. */
	if (!is_of_later || !pcb->is_mark_taken)
		take_sample(pcb, now_ns);
	pcb->is_mark_taken = true;
	if (is_of_later)
		tcp_rate_mark(pcb, now_ns);
}
