/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Urgent data, RFC 6093: the pointer of a segment marks one byte of the stream. The
 * reader gets that byte apart from the others, unless it shall stay in line. A read
 * ends once at the mark. We read the pointer as Linux does: it names the byte behind
 * the last urgent one.
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

/* ---- receiving ---- */

static uint32_t queue_len(const struct tcp_pcb *pcb)
{
	struct pkt *pkt;
	uint32_t len = 0;

	LIST_FOR_EACH(pkt, &pcb->rcv_queue, link)
		len += pkt->len;
	return len;
}

/* The first byte that was not taken yet. */
static uint32_t head_seq(const struct tcp_pcb *pcb)
{
	return pcb->rcv_nxt - !!(pcb->flags & TF_FIN_RCVD) - queue_len(pcb);
}

enum tcp_urgent tcp_urgent_state(const struct tcp_pcb *pcb)
{
	return (enum tcp_urgent)pcb->urgent;
}

bool tcp_at_mark(const struct tcp_pcb *pcb)
{
	return pcb->urgent && pcb->urgent_seq == head_seq(pcb);
}

/* The urgent byte comes next, and is not of the stream. */
static bool is_before_byte(const struct tcp_pcb *pcb)
{
	return tcp_at_mark(pcb) && !(pcb->flags & TF_OOB_INLINE) &&
	       !list_is_empty(&pcb->rcv_queue);
}

/* The urgent byte is the first in the queue. It does not belong to the stream. */
static void drop_first(struct tcp_pcb *pcb)
{
	struct pkt *pkt = pkt_from_link(pcb->rcv_queue.next);

	pkt_pull(pkt, 1);
	pcb->rcv_unread--;
	pcb->is_header_stale = true;
	if (pkt->len)
		return;
	pcb->rcv_memory -= tcp_pkt_memory(pkt);
	list_remove(&pkt->link);
	pkt_put(pkt);
}

/* With a newer mark, the byte of the old one becomes ordinary, unless the reader has
 * reached it and expects to be behind it next. */
static void forget_mark(struct tcp_pcb *pcb)
{
	if (is_before_byte(pcb))
		drop_first(pcb);
	pcb->urgent = TCP_URGENT_NONE;
}

static void take_pointer(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	uint32_t mark = in->seq + in->urgent - (in->urgent > 0);

	/* sent again, or older than the one we know */
	if (seq_before(mark, pcb->rcv_nxt) ||
	    (pcb->urgent && !seq_after(mark, pcb->urgent_seq)))
		return;
	if (pcb->urgent)
		forget_mark(pcb);
	pcb->urgent = TCP_URGENT_COMING;
	pcb->urgent_seq = mark;
	tcp_event_raise(pcb, TCP_EV_URGENT);
}

static uint8_t byte_at(const struct pkt *pkt, uint32_t offset)
{
	for (; offset >= pkt->len; pkt = pkt->next_part)
		offset -= pkt->len;
	return pkt->data[offset];
}

void tcp_urgent_in(struct tcp_pcb *pcb, const struct tcp_segment *in)
{
	uint32_t offset;

	if (in->flags & WIRE_TCP_URG)
		take_pointer(pcb, in);
	offset = pcb->urgent_seq - in->seq;
	if (pcb->urgent != TCP_URGENT_COMING || offset >= in->len)
		return;
	pcb->urgent_byte = byte_at(in->pkt, offset);
	pcb->urgent = TCP_URGENT_HERE;
	tcp_event_raise(pcb, TCP_EV_READABLE);
}

uint32_t tcp_urgent_ahead(const struct tcp_pcb *pcb)
{
	return pcb->urgent_seq - head_seq(pcb);
}

bool tcp_urgent_has_more(const struct tcp_pcb *pcb)
{
	return pcb->flags & TF_OOB_INLINE || !tcp_at_mark(pcb) ||
	       queue_len(pcb) > 1;
}

uint32_t tcp_urgent_take(struct tcp_pcb *pcb, uint32_t max, struct list *pkts)
{
	uint32_t ahead = tcp_urgent_ahead(pcb);

	if (!ahead && !list_is_empty(&pcb->rcv_queue)) {
		if (!(pcb->flags & TF_OOB_INLINE))
			drop_first(pcb);
		pcb->urgent = TCP_URGENT_NONE;
		return tcp_rx_take(pcb, max, pkts);
	}
	return tcp_rx_take(pcb, MIN(max, ahead), pkts);
}

uint32_t tcp_unread_len(const struct tcp_pcb *pcb, uint32_t *urgent_at_out)
{
	uint32_t len = queue_len(pcb);

	*urgent_at_out = pcb->urgent && !(pcb->flags & TF_OOB_INLINE) ? tcp_urgent_ahead(pcb) :
									UINT32_MAX;
	if (*urgent_at_out < len)
		return len - 1;
	*urgent_at_out = UINT32_MAX;
	return len;
}

uint32_t tcp_unread_span(const struct tcp_pcb *pcb, uint32_t *skip_out)
{
	uint32_t ahead = pcb->urgent ? tcp_urgent_ahead(pcb) : 0;

	*skip_out = is_before_byte(pcb);
	return ahead ? ahead : UINT32_MAX;
}

uint32_t tcp_shown(const struct tcp_pcb *pcb)
{
	uint32_t skip, span = tcp_unread_span(pcb, &skip), len = queue_len(pcb);

	len -= MIN(skip, len);
	return MIN(len, span);
}

void tcp_pass_mark(struct tcp_pcb *pcb)
{
	if (!is_before_byte(pcb))
		return;
	drop_first(pcb);
	pcb->urgent = TCP_URGENT_NONE;
}

int tcp_take_urgent(struct tcp_pcb *pcb, uint8_t *byte_out, bool peeks)
{
	if (pcb->flags & TF_OOB_INLINE)
		return -EINVAL;
	switch ((enum tcp_urgent)pcb->urgent) {
	case TCP_URGENT_NONE:
	case TCP_URGENT_READ:
		return -EINVAL;
	case TCP_URGENT_COMING:
	case TCP_URGENT_HERE:
		break;
	}
	if (pcb->state == TCPS_CLOSED && !(pcb->flags & TF_FIN_RCVD))
		return -ENOTCONN;
	if (pcb->urgent == TCP_URGENT_COMING)
		return -EAGAIN;
	*byte_out = pcb->urgent_byte;
	if (!peeks)
		pcb->urgent = TCP_URGENT_READ;
	return 0;
}

uint32_t tcp_readable(const struct tcp_pcb *pcb)
{
	uint32_t len = queue_len(pcb);
	uint32_t ahead = tcp_urgent_ahead(pcb);

	if (!pcb->urgent || pcb->flags & TF_OOB_INLINE)
		return len;
	return MIN(len, ahead);
}

bool tcp_has_waiting(const struct tcp_pcb *pcb, uint32_t cnt)
{
	bool skips = pcb->urgent && tcp_at_mark(pcb) && !(pcb->flags & TF_OOB_INLINE);
	uint32_t len = queue_len(pcb);

	return len > skips && len - skips >= cnt;
}

void tcp_set_oob_inline(struct tcp_pcb *pcb, bool on)
{
	pcb->flags = on ? pcb->flags | TF_OOB_INLINE
			: pcb->flags & ~TF_OOB_INLINE;
}

/* ---- sending ---- */

void tcp_urgent_mark_end(struct tcp_pcb *pcb)
{
	pcb->urgent_end = pcb->snd_end;
	pcb->flags |= TF_URGENT_OUT;
	pcb->is_quiet = false;
}

/* The end may be out of reach of the pointer while all that was written has been sent.
 * Then the farthest value of the pointer at least says that urgent data is to come. */
uint16_t tcp_urgent_pointer(const struct tcp_pcb *pcb, uint32_t seq)
{
	uint32_t ahead = pcb->urgent_end - seq;

	if (!seq_before(seq, pcb->urgent_end))
		return 0;
	if (ahead <= UINT16_MAX)
		return (uint16_t)ahead;
	return seq_after(seq + UINT16_MAX, pcb->snd_nxt) ? UINT16_MAX : 0;
}
