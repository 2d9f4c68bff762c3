/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What SYNs agree on: the largest segment, by the path and both ends' wishes, the scales
 * of windows, selective acknowledgments, time stamps, ECN.
 */
#include "tcp/tcp_priv.h"

/* Headers of IP and TCP. */
enum { OVERHEAD_V4 = 40, OVERHEAD_V6 = 60, TS_SIZE = 12 };

uint32_t tcp_overhead(const struct tcp_pcb *pcb)
{
	return (ip_addr_is_v4(&pcb->key.remote) ? OVERHEAD_V4 : OVERHEAD_V6) +
	       (pcb->flags & TF_TS ? TS_SIZE : 0);
}

/* RFC 9293 section 3.7.1 with RFC 6691: without options. */
uint16_t tcp_path_mss(const struct tcp_params *params,
		      const struct tcp_path *path, const struct flow_key *key)
{
	uint16_t overhead = ip_addr_is_v4(&key->remote) ? OVERHEAD_V4
							: OVERHEAD_V6;
	uint16_t mss = (uint16_t)(MAX(path->mtu, overhead + 64) - overhead);

	return params->mss_max ? MIN(mss, params->mss_max) : mss;
}

uint16_t tcp_own_mss(const struct tcp_pcb *pcb, const struct tcp_path *path,
		     const struct flow_key *key)
{
	uint16_t mss = tcp_path_mss(&pcb->table->params, path, key);
	uint16_t most = pcb->settings->mss_max;

	return most ? MIN(mss, most) : mss;
}

uint16_t tcp_syn_mss(const struct tcp_pcb *pcb, const struct tcp_path *path,
		     const struct flow_key *key)
{
	uint16_t mss = tcp_own_mss(pcb, path, key);

	return path->adv_mss ? MIN(mss, path->adv_mss) : mss;
}

uint16_t tcp_pcb_syn_mss(const struct tcp_pcb *pcb)
{
	return tcp_syn_mss(pcb, &pcb->path, &pcb->key);
}

void tcp_pcb_update_mss(struct tcp_pcb *pcb)
{
	struct tcp_path path = pcb->path;
	uint32_t mss;

	if (pcb->pmtu)
		path.mtu = MIN(path.mtu, pcb->pmtu);
	mss = tcp_path_mss(&pcb->table->params, &path, &pcb->key);
	mss = MIN(mss, (uint32_t)pcb->mss_peer);
	if (pcb->flags & TF_TS)
		mss -= TS_SIZE;
	pcb->mss = mss;
	if (pcb->path.segment_max)
		pcb->slow_out |= SLOW_SPLIT;
	else
		pcb->slow_out &= (uint8_t)~SLOW_SPLIT;
	if (pcb->rcv_mss > mss)
		pcb->rcv_mss = mss;
}

/* The smallest scale with which the buffer fits into 16 bits however large it becomes. One that
 * the program has chosen stays as it is. */
uint8_t tcp_rcv_scale(const struct tcp_pcb *pcb)
{
	uint32_t most = pcb->table->params.rcv_buf_max;
	uint8_t scale = 0;

	most = pcb->flags & TF_RCV_BUF_FIXED ? pcb->rcv_buf : tcp_rcv_buf_within(pcb, most);
	while (most >> scale > UINT16_MAX &&
	       scale < TCP_SCALE_MAX)
		scale++;
	return scale;
}

void tcp_pcb_apply_syn(struct tcp_pcb *pcb, const struct tcp_segment *in,
		       uint64_t now_ns)
{
	const struct tcp_params *params = &pcb->table->params;
	const struct tcp_options *o = &in->options;
	uint8_t ecn = in->flags & (WIRE_TCP_ECE | WIRE_TCP_CWR);
	/* RFC 3168 section 6.1.1: a SYN asks with both bits, the answer has ECE
	 * alone */
	uint8_t ecn_yes = in->flags & WIRE_TCP_ACK
				  ? WIRE_TCP_ECE
				  : WIRE_TCP_ECE | WIRE_TCP_CWR;
	bool may_ecn = pcb->flags & TF_PASSIVE ? params->ecn != TCP_ECN_OFF
					       : tcp_asks_ecn(params);
	uint8_t said_scale = pcb->rcv_scale;

	pcb->irs = in->seq;
	pcb->rcv_nxt = pcb->rcv_edge = pcb->last_ack_sent = in->seq + 1;
	pcb->flags &= ~(TF_SACK | TF_TS | TF_SCALE | TF_ECN);
	pcb->snd_scale = pcb->rcv_scale = 0;
	/* until the handshake is over nothing is sent but what acknowledges or resets */
	pcb->snd_wnd = in->window;
	if (params->with_window_scale && o->has_scale) {
		pcb->flags |= TF_SCALE;
		pcb->snd_scale = o->scale;
		/* whatever has become of the buffer since our SYN has said so */
		pcb->rcv_scale = pcb->flags & TF_PASSIVE ? tcp_rcv_scale(pcb) : said_scale;
		pcb->rcv_buf = tcp_rcv_buf_within(pcb, pcb->rcv_buf);
	}
	if (params->with_sack && o->has_sack_ok)
		pcb->flags |= TF_SACK;
	if (params->with_timestamps && o->has_ts) {
		pcb->flags |= TF_TS;
		pcb->ts_recent = o->ts_val;
		pcb->ts_recent_ns = now_ns;
	}
	pcb->is_accurate = tcp_accecn_begin(pcb, in);
	if (pcb->is_accurate || (may_ecn && ecn == ecn_yes))
		pcb->flags |= TF_ECN;
	/* RFC 9293 section 3.7.1; 64 is the least that makes progress */
	pcb->mss_peer = o->mss ? MAX(o->mss, 64)
			       : ip_addr_is_v4(&pcb->key.remote) ? 536 : 1220;
	if (pcb->settings->mss_max)
		pcb->mss_peer = MIN(pcb->mss_peer, pcb->settings->mss_max);
	tcp_pcb_update_mss(pcb);
}
