/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time stamps of what a program writes (SO_TIMESTAMPING): bytes that are to be followed
 * on their way, and the stations that the owner hears of. */
#include "tcp/tcp_priv.h"

static uint32_t place_of(const struct tcp_pcb *pcb, uint32_t seq)
{
	return seq - (pcb->iss + 1);
}

static void tell(struct tcp_pcb *pcb, struct pkt *pkt, enum tcp_stamp what,
		 uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;

	table->ops->stamped(table->ctx, pcb, what,
			    place_of(pcb, tcp_seg(pkt)->seq + pkt->len - 1),
			    now_ns);
}

void tcp_stamp_run(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t cnt,
		   enum tcp_stamp what, uint64_t now_ns)
{
	for (; cnt; cnt--) {
		uint8_t flags = tcp_seg(pkt)->flags;
		bool is_refused = what == TCP_STAMP_SENT && !(flags & SEG_SENT);

		if (flags & SEG_STAMP)
			tell(pcb, pkt, is_refused ? TCP_STAMP_REFUSED : what, now_ns);
		pkt = pkt_from_link(pkt->link.next);
	}
}

void tcp_stamp_acked(struct tcp_pcb *pcb, struct pkt *pkt, uint64_t now_ns)
{
	if (!(tcp_seg(pkt)->flags & SEG_STAMP))
		return;
	pcb->stamp_cnt--;
	tell(pcb, pkt, TCP_STAMP_ACKED, now_ns);
}

bool tcp_stamp_last(struct tcp_pcb *pcb, uint32_t *byte_out)
{
	struct pkt *last;

	if (!pcb->unsent)
		return false;
	last = pkt_from_link(pcb->snd_queue.prev);
	if (tcp_seg(last)->flags & (SEG_SENT | SEG_FIN | SEG_STAMP) || !last->len)
		return false;
	tcp_seg(last)->flags |= SEG_STAMP;
	pcb->stamp_cnt++;
	pcb->is_quiet = false;
	*byte_out = place_of(pcb, pcb->snd_end - 1);
	return true;
}

void tcp_set_stamped(struct tcp_pcb *pcb, bool is_stamped)
{
	if (is_stamped)
		pcb->slow_out |= SLOW_STAMPED;
	else
		pcb->slow_out &= (uint8_t)~SLOW_STAMPED;
}

struct tcp_stamp_places tcp_stamp_places(const struct tcp_pcb *pcb)
{
	return (struct tcp_stamp_places){
		.unacked = place_of(pcb, pcb->snd_una),
		.unsent = place_of(pcb, pcb->snd_nxt),
		.unwritten = place_of(pcb, pcb->snd_end),
	};
}

void tcp_stamp_ignore(void *ctx UNUSED, struct tcp_pcb *pcb UNUSED,
		      enum tcp_stamp what UNUSED, uint32_t byte UNUSED,
		      uint64_t now_ns UNUSED)
{
}
