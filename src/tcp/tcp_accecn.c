/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accurate ECN (RFC 9768). Each side counts the packets that came with congestion
 * experienced, and tells the last three bits of the count (ACE) in every segment, in place of
 * the flags AE, CWR and ECE; and now and then bytes, by an option. The handshake has the
 * same bits say which kind of ECN both sides know, and what became of the bits in the IP
 * header on the way.
 */
#include "tcp/tcp_priv.h"

enum {
	/* the two bits of the IP header */
	NOT_ECT = 0,
	ECT_1 = 1,
	ECT_0 = 2,
	CE = 3,
	/* counters begin so that a field of zeros is none (section 3.2.1) */
	PACKETS_BEGIN = 5,
	BYTES_BEGIN = 1,
	ACE_MASK = 7,
	COUNTER_MASK = 0xffffff,
	/* the most packets after which ACE alone is sure */
	ACE_SURE = 7,
	/* packets with CE after which an ACK is due (section 3.2.2.5.1) */
	CE_UNTOLD_MAX = 2,
	/* counters that only grow are told so often in a round trip */
	TELLS_PER_ROUND = 3,
};

/* Tables 2 to 4: what is said of a SYN that came with such bits. */
static const uint8_t seen_as[4] = {
	[NOT_ECT] = 2,
	[ECT_1] = 3,
	[ECT_0] = 4,
	[CE] = 6,
};

uint8_t tcp_ace(const struct tcp_segment *in)
{
	return (uint8_t)((in->has_ae ? 4 : 0) |
			 (in->flags & WIRE_TCP_CWR ? 2 : 0) |
			 (in->flags & WIRE_TCP_ECE ? 1 : 0));
}

/* ---- the handshake ---- */

/* Section 3.1.3: a listener takes what it does not know for accurate ECN. */
static bool is_asked_for(const struct tcp_segment *in)
{
	return tcp_ace(in) != 0 && tcp_ace(in) != 3;
}

static bool is_granted(const struct tcp_segment *in)
{
	uint8_t ace = tcp_ace(in);

	return ace == 2 || ace == 3 || ace == 4 || ace == 6;
}

/* Our SYNs are not capable: another bit on arrival was set by somebody on the way. */
static void check_reflection(struct tcp_accecn *a, uint8_t ace)
{
	if (ace != seen_as[NOT_ECT])
		a->is_mangled = true;
	if (ace == seen_as[CE])
		a->sent_ce++;
}

bool tcp_accecn_begin(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	const struct tcp_params *params = &pcb->table->params;
	bool is_answer = in->flags & WIRE_TCP_ACK;
	bool is_wanted = is_answer ? tcp_asks_accurate(params) && is_granted(in)
				   : pcb->flags & TF_PASSIVE &&
					     tcp_accepts_accurate(params) &&
					     is_asked_for(in);
	struct tcp_accecn *a;

	if (!is_wanted || !tcp_extra_get(pcb))
		return false;
	a = &pcb->extra->accecn;
	*a = (struct tcp_accecn){
		.rcvd_ce = PACKETS_BEGIN + (in->ecn == CE),
		.rcvd_ect0_bytes = BYTES_BEGIN,
		.rcvd_ect1_bytes = BYTES_BEGIN,
		.told_ce = PACKETS_BEGIN,
		.sent_ce = PACKETS_BEGIN,
		.syn_ecn = in->ecn,
		.reflects = is_answer,
		.awaits_first = is_answer,
	};
	if (is_answer)
		check_reflection(a, tcp_ace(in));
	return true;
}

uint8_t tcp_accecn_answer(const struct tcp_pcb *pcb)
{
	return seen_as[pcb->extra->accecn.syn_ecn];
}

void tcp_accecn_third(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	struct tcp_accecn *a = &pcb->extra->accecn;
	uint8_t ace = tcp_ace(in);

	a->is_third = true;
	/* table 4: where the peer's ACK was lost, its counter may come first */
	if (is_granted(in))
		check_reflection(a, ace);
	else if (!ace)
		a->is_mangled = true;
}

/* ---- what comes from the peer ---- */

/* Section 3.2.2.5.1: an ACK is due where the mark changes, and when more than one was
 * not told. */
void tcp_accecn_count(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	struct tcp_accecn *a = &pcb->extra->accecn;

	if (in->ecn == CE)
		a->rcvd_ce++;
	if (!in->len)
		return;
	if (in->ecn == CE)
		a->rcvd_ce_bytes += in->len;
	else if (in->ecn == ECT_0)
		a->rcvd_ect0_bytes += in->len;
	else if (in->ecn == ECT_1)
		a->rcvd_ect1_bytes += in->len;
	if ((in->ecn == CE) != (a->last_ecn == CE) ||
	    a->rcvd_ce - a->told_ce >= CE_UNTOLD_MAX)
		pcb->flags |= TF_ACK_NOW;
	a->last_ecn = in->ecn;
}

/* Those that overtook others have old counters: only who brings news is believed. */
static bool is_news(const struct tcp_pcb *pcb, const struct tcp_segment *in,
		    const struct tcp_ack_sample *sample)
{
	return sample->has_advanced || sample->delivered ||
	       (sample->has_ts &&
		seq_after(in->options.ts_val, pcb->ts_recent));
}

/* A field that must not be zero is (section 3.2.3.2.4). */
static bool take_counter(struct tcp_accecn *a, const struct tcp_segment *in,
			 uint32_t *marked_out)
{
	const struct tcp_options *o = &in->options;

	if (!o->counter_cnt || a->has_bad_options)
		return false;
	if (o->counter_cnt == 3 && !o->ect0_bytes && !o->ect1_bytes &&
	    !o->ce_bytes)
		a->has_bad_options = true;
	if (o->counter_cnt < 2 || a->has_bad_options)
		return false;
	*marked_out = (o->ce_bytes - a->sent_ce_bytes) & COUNTER_MASK;
	a->sent_ce_bytes = o->ce_bytes;
	return true;
}

/* Packets with CE behind three bits, when so many packets have arrived that the count
 * may have gone round. Bytes tell; without them we are careful where there was congestion
 * already: eight marks among so few packets do not come out of nothing. */
static uint32_t unwrap(const struct tcp_pcb *pcb, uint32_t delta,
		       uint32_t packets, bool has_bytes, uint32_t bytes)
{
	uint32_t most = packets - ((packets - delta) & ACE_MASK);

	if (packets <= ACE_SURE || delta > packets)
		return delta;
	if (!has_bytes)
		return pcb->recovery == RECOVERY_CWR ? most : delta;
	while (delta < most && (uint64_t)delta * pcb->mss < bytes)
		delta += ACE_MASK + 1;
	return delta;
}

void tcp_accecn_take(struct tcp_pcb *pcb, const struct tcp_segment *in,
		     struct tcp_ack_sample *sample, uint32_t packets)
{
	struct tcp_accecn *a = &pcb->extra->accecn;
	uint8_t ace = tcp_ace(in);
	uint32_t marks, bytes = 0;
	bool has_bytes;

	if (a->is_third) {
		a->is_third = false;
		return;
	}
	/* section 3.2.2.4: it begins elsewhere */
	if (a->awaits_first && !ace)
		a->is_mangled = true;
	a->awaits_first = false;
	if (!is_news(pcb, in, sample))
		return;
	has_bytes = take_counter(a, in, &bytes);
	marks = unwrap(pcb, (ace - a->sent_ce) & ACE_MASK, packets, has_bytes,
		       bytes);
	a->sent_ce += marks;
	pcb->delivered_ce += marks;
	/* what is not capable was not marked */
	sample->is_ece = marks && !a->is_mangled;
	sample->marked = has_bytes ? bytes : marks * pcb->mss;
}

/* ---- what the peer is told ---- */

uint8_t tcp_accecn_ace(struct tcp_pcb *pcb)
{
	struct tcp_accecn *a = &pcb->extra->accecn;

	a->told_ce = a->rcvd_ce;
	if (a->reflects) {
		a->reflects = false;
		return seen_as[a->syn_ecn];
	}
	return a->rcvd_ce & ACE_MASK;
}

bool tcp_accecn_is_due(const struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_accecn *a = &pcb->extra->accecn;

	if (!pcb->table->params.with_ecn_option)
		return false;
	return !a->told_ns || a->rcvd_ce_bytes != a->told_ce_bytes ||
	       a->rcvd_ect1_bytes != a->told_ect1_bytes ||
	       now_ns - a->told_ns >= pcb->srtt_ns / TELLS_PER_ROUND;
}

void tcp_accecn_fill(struct tcp_pcb *pcb, struct tcp_options *options,
		     uint64_t now_ns)
{
	struct tcp_accecn *a = &pcb->extra->accecn;

	options->counter_cnt = 3;
	options->ce_bytes = a->rcvd_ce_bytes & COUNTER_MASK;
	options->ect0_bytes = a->rcvd_ect0_bytes & COUNTER_MASK;
	options->ect1_bytes = a->rcvd_ect1_bytes & COUNTER_MASK;
	a->told_ce_bytes = a->rcvd_ce_bytes;
	a->told_ect1_bytes = a->rcvd_ect1_bytes;
	a->told_ns = now_ns;
}
