/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time stamps of what a program writes (SO_TIMESTAMPING): bytes that are to be followed
 * on their way, and the stations that the owner hears of. */
#include "tcp/tcp_priv.h"

static void tell(struct tcp_pcb *pcb, struct pkt *pkt, enum tcp_stamp what,
		 uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;
	uint32_t first = pcb->iss + 1;

	table->ops->stamped(table->ctx, pcb, what,
			    tcp_seg(pkt)->seq + pkt->len - 1 - first, now_ns);
}

void tcp_stamp_run(struct tcp_pcb *pcb, struct pkt *pkt, uint32_t cnt,
		   enum tcp_stamp what, uint64_t now_ns)
{
	for (; cnt; cnt--) {
		if (tcp_seg(pkt)->flags & SEG_STAMP)
			tell(pcb, pkt, what, now_ns);
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

void tcp_stamp_ignore(void *ctx UNUSED, struct tcp_pcb *pcb UNUSED,
		      enum tcp_stamp what UNUSED, uint32_t byte UNUSED,
		      uint64_t now_ns UNUSED)
{
}
