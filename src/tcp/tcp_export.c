/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connection as bytes, for another stack or another process. */
#include "tcp/tcp_export_priv.h"
#include "tcp/tcp_priv.h"

#include <errno.h>

/* Where the next byte goes; NULL only counts. */
struct writer {
	uint8_t *to;
	size_t len;
	uint64_t now_ns;
};

static void put(struct writer *w, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes && w->to; i++)
		w->to[w->len + i] = (uint8_t)(value >> 8 * i);
	w->len += bytes;
}

static void put_at(struct writer *w, uint64_t at_ns)
{
	put(w, at_ns ? TCP_EXPORT_NOW + at_ns - w->now_ns : 0, 8);
}

/* Its distance from now. */
static void put_tick(struct writer *w, uint32_t tick)
{
	put(w, tcp_ticks(w->now_ns) - tick, 4);
}

static void put_bytes(struct writer *w, const void *data, size_t len)
{
	if (w->to && len)
		memcpy(w->to + w->len, data, len);
	w->len += len;
}

static void put_chain(struct writer *w, const struct pkt *pkt)
{
	for (; pkt; pkt = pkt->next_part)
		put_bytes(w, pkt->data, pkt->len);
}

static void put_accecn(struct writer *w, const struct tcp_accecn *a)
{
#define U8(member) put(w, a->member, 1);
#define U32(member) put(w, a->member, 4);
#define FLAG(member) put(w, a->member, 1);
#define AT(member) put_at(w, a->member);
#include "tcp/tcp_export_accecn.def"
#undef U8
#undef U32
#undef FLAG
#undef AT
}

static void put_members(struct writer *w, const struct tcp_pcb *pcb)
{
#define U8(member) put(w, pcb->member, 1);
#define U16(member) put(w, pcb->member, 2);
#define S16(member) put(w, (uint16_t)pcb->member, 2);
#define U32(member) put(w, pcb->member, 4);
#define U64(member) put(w, pcb->member, 8);
#define AT(member) put_at(w, pcb->member);
#define TICK(member) put_tick(w, pcb->member);
#include "tcp/tcp_export.def"
#undef U8
#undef U16
#undef S16
#undef U32
#undef U64
#undef AT
#undef TICK
	put(w, tcp_ts_now(pcb, w->now_ns), 4);
	put(w, pcb->cc_id == TCP_CC_CUBIC ? pcb->cc.cubic.w_max : 0, 4);
	put(w, pcb->is_accurate, 1);
	if (pcb->is_accurate)
		put_accecn(w, &pcb->extra->accecn);
}

static void put_entries(struct writer *w, const struct tcp_pcb *pcb)
{
	uint32_t cnt = 0;
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &pcb->snd_queue, link)
		cnt++;
	put(w, cnt, 4);
	LIST_FOR_EACH(pkt, &pcb->snd_queue, link) {
		const struct tcp_seg *seg = tcp_seg(pkt);

		put(w, pkt->len, 4);
		put(w, seg->flags, 1);
		put(w, seg->sent_cnt, 1);
		put_at(w, seg->flags & SEG_SENT ? seg->sent_ns : 0);
	}
}

static void put_runs(struct writer *w, const struct tcp_pcb *pcb)
{
	uint32_t cnt = 0;
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &pcb->runs, link)
		cnt++;
	put(w, cnt, 4);
	LIST_FOR_EACH(pkt, &pcb->runs, link) {
		put(w, tcp_run(pkt)->seq, 4);
		put(w, pkt_total_len(pkt), 4);
		put(w, tcp_run(pkt)->has_fin, 1);
	}
}

static void put_payload(struct writer *w, const struct tcp_pcb *pcb)
{
	uint32_t unread = 0;
	struct pkt *pkt;

	LIST_FOR_EACH(pkt, &pcb->rcv_queue, link)
		unread += pkt->len;
	put(w, unread, 4);
	LIST_FOR_EACH(pkt, &pcb->snd_queue, link)
		put_bytes(w, pkt->data, pkt->len);
	LIST_FOR_EACH(pkt, &pcb->runs, link)
		put_chain(w, pkt);
	LIST_FOR_EACH(pkt, &pcb->rcv_queue, link)
		put_bytes(w, pkt->data, pkt->len);
}

static void put_all(struct writer *w, const struct tcp_pcb *pcb, size_t len)
{
	put(w, TCP_EXPORT_MAGIC, 4);
	put(w, TCP_EXPORT_VERSION, 4);
	put(w, len, 8);
	put_bytes(w, &pcb->key, offsetof(struct flow_key, zero));
	put_members(w, pcb);
	put_entries(w, pcb);
	put_runs(w, pcb);
	put_payload(w, pcb);
}

bool tcp_can_move(const struct tcp_pcb *pcb)
{
	return pcb->state >= TCPS_SYN_SENT && pcb->state <= TCPS_LAST_ACK &&
	       !pcb->listener && !(pcb->flags & TF_UNSEEN) &&
	       !tcp_is_pending(pcb) && !(pcb->fastopen & FASTOPEN_HELD);
}

size_t tcp_export_size(const struct tcp_pcb *pcb)
{
	struct writer w = { .to = NULL };

	if (!tcp_can_move(pcb))
		return 0;
	put_all(&w, pcb, 0);
	return w.len;
}

int tcp_export(const struct tcp_pcb *pcb, uint8_t *to, size_t size,
	       uint64_t now_ns)
{
	struct writer w = { .to = to, .now_ns = now_ns };
	size_t len = tcp_export_size(pcb);

	if (!len)
		return -ENOTCONN;
	if (len > size)
		return -ENOBUFS;
	put_all(&w, pcb, len);
	return 0;
}
