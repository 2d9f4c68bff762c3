/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* This file builds segments that are sent: header, options, checksum. Other files
 * decide what goes into them, and when. */
#include "tcp/tcp_priv.h"

/* ECT(0), RFC 3168 section 5 */
enum { ECN_CAPABLE = 2 };

static bool has_sack_news(const struct tcp_pcb *pcb)
{
	return pcb->recent_cnt || pcb->dsack.start != pcb->dsack.end;
}

/* SACK blocks take room from the payload. A full segment is sent without them, and a
 * separate ACK then follows it. */
static bool has_sack_room(const struct tcp_pcb *pcb, uint32_t len)
{
	return len + 4 + 8 * TCP_SACK_BLOCKS_MAX <= pcb->mss;
}

/* The options of a segment that is no SYN and carries `len` bytes. What is missing is told
 * first, counters of ECN with the next ACK. */
static COLD size_t put_more_options(struct tcp_pcb *pcb, uint8_t *to,
				    uint32_t len, uint64_t now_ns)
{
	struct tcp_options options;

	memset(&options, 0, offsetof(struct tcp_options, sack));
	options.has_ts = pcb->flags & TF_TS;
	options.ts_val = tcp_ts_now(pcb, now_ns);
	options.ts_ecr = pcb->ts_recent;
	if (!has_sack_news(pcb))
		tcp_accecn_fill(pcb, &options, now_ns);
	else if (pcb->flags & TF_SACK && has_sack_room(pcb, len))
		tcp_rx_sack_blocks(pcb, &options);
	return tcp_options_build(to, &options);
}

static ALWAYS_INLINE size_t put_options(struct tcp_pcb *pcb, uint8_t *to,
					uint32_t len, uint64_t now_ns)
{
	if (UNLIKELY(has_sack_news(pcb) ||
		     (pcb->is_accurate && !len &&
		      tcp_accecn_is_due(pcb, now_ns))))
		return put_more_options(pcb, to, len, now_ns);
	if (!(pcb->flags & TF_TS))
		return 0;
	wire_put_u32(to, TCP_OPTION_TS_PLAIN);
	wire_put_u32(to + 4, tcp_ts_now(pcb, now_ns));
	wire_put_u32(to + 8, pcb->ts_recent);
	return 12;
}

static ALWAYS_INLINE uint16_t window_field(struct tcp_pcb *pcb)
{
	uint32_t window = tcp_rx_window(pcb) >> pcb->rcv_scale;

	return (uint16_t)MIN(window, (uint32_t)UINT16_MAX);
}

uint32_t tcp_pkt_sum(struct pkt *pkt)
{
	if (!(pkt->flags & PKT_HAS_SUM)) {
		pkt->csum_sum = csum_partial(pkt->data, pkt->len, 0);
		pkt->flags |= PKT_HAS_SUM;
	}
	return pkt->csum_sum;
}

static uint32_t payload_sum(const struct tcp_outgoing *o)
{
	struct pkt *pkt = o->first;
	uint32_t sum = 0;
	size_t offset = 0;

	for (uint32_t i = 0; i < o->cnt; i++) {
		sum = csum_block_add(sum, tcp_pkt_sum(pkt), offset);
		offset += pkt->len;
		pkt = pkt_from_link(pkt->link.next);
	}
	return sum;
}

static ALWAYS_INLINE void put_checksum(const struct tcp_pcb *pcb, struct wire_tcp *header,
			 size_t header_len, const struct tcp_outgoing *o)
{
	uint32_t total_len = (uint32_t)header_len + o->len;
	uint32_t sum = csum_add(pcb->pseudo_sum,
				htobe16((uint16_t)total_len));

	/* each of several segments has one of its own, which the device makes */
	if (pcb->path.with_checksum || o->len > pcb->mss) {
		header->check = (uint16_t)~csum_fold(sum);
		return;
	}
	sum = csum_partial(header, header_len, sum);
	if (o->len)
		sum = csum_add(sum, payload_sum(o));
	header->check = csum_fold(sum);
}

/* Every segment carries an ACK, so a delayed one is no longer needed. */
static void note_ack_sent(struct tcp_pcb *pcb, uint32_t len)
{
	pcb->last_ack_sent = pcb->rcv_nxt;
	pcb->unacked_rcvd = 0;
	pcb->delack_at_ns = 0;
	if (!has_sack_news(pcb) || has_sack_room(pcb, len))
		pcb->flags &= ~TF_ACK_NOW;
}

static ALWAYS_INLINE void put_header(struct tcp_pcb *pcb,
				     struct wire_tcp *header, size_t header_len,
				     const struct tcp_outgoing *o,
				     uint16_t window)
{
	/* both ports, which are neighbours in the pcb and in the header */
	memcpy(&header->src_port, &pcb->key.local_port, 2 * sizeof(__be16));
	header->seq = htobe32(o->seq);
	header->ack = o->flags & WIRE_TCP_ACK ? htobe32(pcb->rcv_nxt) : 0;
	header->offset_ae = (uint8_t)(header_len << 2);
	header->flags = o->flags;
	header->window = htobe16(window);
	header->check = 0;
	header->urgent = 0;
}

/* RFC 9768 section 3.2.2.3: the peer goes on to hear what comes from it. */
static bool is_mangled(const struct tcp_pcb *pcb)
{
	return pcb->is_accurate && pcb->extra->accecn.is_mangled;
}

static ALWAYS_INLINE void emit(struct tcp_pcb *pcb, const uint8_t *header, size_t header_len,
		 const struct tcp_outgoing *o)
{
	struct tcp_table *table = pcb->table;
	bool is_new_data = o->len && !o->is_retransmission;
	struct tcp_out out = {
		.key = &pcb->key,
		.header = header,
		.header_len = (uint32_t)header_len,
		.data = o->len ? o->first : NULL,
		.data_cnt = o->len ? o->cnt : 0,
		.data_len = o->len,
		.segment_size = o->len > pcb->mss ? pcb->mss : 0,
		/* RFC 3168 section 6.1.5: not on retransmissions; 6.1.1: not on
		 * SYN; 6.1.4: not on pure ACKs */
		.ecn = pcb->flags & TF_ECN && is_new_data && !is_mangled(pcb)
			       ? ECN_CAPABLE
			       : 0,
		.is_retransmission = o->is_retransmission,
	};

	table->counts.out_segments++;
	pcb->segs_out += MAX(out.data_cnt, 1u);
	pcb->data_segs_out += out.data_cnt;
	table->ops->emit(table->ctx, pcb, &out);
}

static void put_urgent(const struct tcp_pcb *pcb, struct wire_tcp *header,
		       uint32_t seq)
{
	uint16_t pointer = tcp_urgent_pointer(pcb, seq);

	header->urgent = htobe16(pointer);
	if (pointer)
		header->flags |= WIRE_TCP_URG;
}

/* The three bits AE, CWR and ECE. */
static void put_ace(struct wire_tcp *header, uint8_t ace)
{
	header->offset_ae |= ace >> 2;
	header->flags |= (ace & 2 ? WIRE_TCP_CWR : 0) |
			 (ace & 1 ? WIRE_TCP_ECE : 0);
}

/* Nobody takes the packets away while `emit` runs. */
static COLD void emit_stamped(struct tcp_pcb *pcb, const uint8_t *header,
			      size_t header_len, const struct tcp_outgoing *o,
			      uint64_t now_ns)
{
	tcp_stamp_run(pcb, o->first, o->cnt, TCP_STAMP_SCHEDULED, now_ns);
	emit(pcb, header, header_len, o);
	tcp_stamp_run(pcb, o->first, o->cnt, TCP_STAMP_SENT, now_ns);
}

/* A segment of a synchronised connection. */
void tcp_emit(struct tcp_pcb *pcb, struct tcp_outgoing *o,
			 uint64_t now_ns)
{
	uint8_t bytes[TCP_HEADER_MAX] __attribute__((aligned(4)));
	struct wire_tcp *header = (void *)bytes;
	size_t header_len = sizeof(*header);

	o->flags |= WIRE_TCP_ACK;
	/* the window may be wider in this one */
	pcb->is_header_stale = true;
	if (pcb->flags & TF_ECE_OUT)
		o->flags |= WIRE_TCP_ECE;
	header_len += put_options(pcb, bytes + header_len, o->len, now_ns);
	put_header(pcb, header, header_len, o, window_field(pcb));
	if (UNLIKELY(pcb->is_accurate))
		put_ace(header, tcp_accecn_ace(pcb));
	if (UNLIKELY(pcb->flags & TF_URGENT_OUT))
		put_urgent(pcb, header, o->seq);
	put_checksum(pcb, header, header_len, o);
	note_ack_sent(pcb, o->len);
	if (UNLIKELY(pcb->stamp_cnt && o->len)) {
		emit_stamped(pcb, bytes, header_len, o, now_ns);
		return;
	}
	emit(pcb, bytes, header_len, o);
}

/* ---- segments without data ---- */

void tcp_out_ack(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_outgoing o = { .seq = tcp_bare_seq(pcb) };

	tcp_emit(pcb, &o, now_ns);
}

void tcp_out_probe(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_outgoing o = { .seq = pcb->snd_una - 1 };

	tcp_emit(pcb, &o, now_ns);
}

void tcp_out_reset(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_outgoing o = { .seq = tcp_bare_seq(pcb), .flags = WIRE_TCP_RST };

	pcb->table->counts.resets_sent++;
	tcp_emit(pcb, &o, now_ns);
}

/* SYN or SYN-ACK, by the state. */
void tcp_out_syn(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	bool is_answer = pcb->state != TCPS_SYN_SENT;
	bool is_first = !pcb->timeouts;
	uint8_t bytes[TCP_HEADER_MAX] __attribute__((aligned(4)));
	struct wire_tcp *header = (void *)bytes;
	size_t header_len = sizeof(*header);
	struct tcp_outgoing o = {
		.seq = pcb->iss,
		.flags = WIRE_TCP_SYN,
		.is_retransmission = pcb->timeouts > 0,
	};
	struct tcp_options options = {
		.mss = tcp_pcb_syn_mss(pcb),
		.has_scale = pcb->flags & TF_SCALE,
		.scale = pcb->rcv_scale,
		.has_sack_ok = pcb->flags & TF_SACK,
		.has_ts = pcb->flags & TF_TS,
		.ts_val = tcp_ts_now(pcb, now_ns),
		.ts_ecr = is_answer ? pcb->ts_recent : 0,
	};
	uint32_t window = MIN(tcp_rx_window(pcb), (uint32_t)UINT16_MAX);
	uint8_t ace = 0;

	if (is_answer)
		o.flags |= WIRE_TCP_ACK;
	/* RFC 7413 section 4.1.3: what is sent again is plain, in case that somebody on
	 * the way does not like the option */
	if (is_answer && pcb->fastopen & FASTOPEN_GRANTS && is_first)
		tcp_fastopen_grant(pcb, &options);
	else if (!is_answer && pcb->fastopen & FASTOPEN_ASKS && is_first)
		tcp_fastopen_ask(pcb, &options, now_ns);
	if (!is_answer && pcb->syn_data && is_first) {
		o.first = pcb->unsent;
		o.cnt = 1;
		o.len = pcb->syn_data;
	}
	/* RFC 3168 section 6.1.1; 6.1.1.1: a SYN that got lost may have been
	 * dropped for its ECN bits */
	if (is_answer && pcb->is_accurate)
		ace = tcp_accecn_answer(pcb);
	else if (is_answer && pcb->flags & TF_ECN)
		ace = 1;
	else if (!is_answer && tcp_asks_ecn(params) && pcb->timeouts < 2)
		ace = tcp_asks_accurate(params) ? 7 : 3;
	header_len += tcp_options_build(bytes + header_len, &options);
	put_header(pcb, header, header_len, &o, (uint16_t)window);
	put_ace(header, ace);
	put_checksum(pcb, header, header_len, &o);
	if (is_answer)
		note_ack_sent(pcb, 0);
	emit(pcb, bytes, header_len, &o);
}

void tcp_out_stateless(struct tcp_table *table, const struct flow_key *key,
		       uint8_t flags, uint32_t seq, uint32_t ack,
		       uint16_t window, const struct tcp_options *options)
{
	uint8_t bytes[TCP_HEADER_MAX] __attribute__((aligned(4)));
	struct wire_tcp *header = (void *)bytes;
	size_t header_len = sizeof(*header);
	struct tcp_out out = { .key = key, .header = bytes };
	uint32_t sum;

	if (options)
		header_len += tcp_options_build(bytes + header_len, options);
	*header = (struct wire_tcp){
		.src_port = key->local_port,
		.dst_port = key->remote_port,
		.seq = htobe32(seq),
		.ack = htobe32(ack),
		.offset_ae = (uint8_t)(header_len << 2),
		.flags = flags,
		.window = htobe16(window),
	};
	sum = wire_pseudo_sum(&key->local, &key->remote, WIRE_PROTO_TCP,
			      (uint32_t)header_len);
	header->check = csum_fold(csum_partial(header, header_len, sum));
	out.header_len = (uint32_t)header_len;
	table->counts.out_segments++;
	table->ops->emit(table->ctx, NULL, &out);
}
