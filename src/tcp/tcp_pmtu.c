/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The largest packet that the path carries, and other news by ICMP. Messages are
 * believed only when they quote a segment that is under way (RFC 5927). Where none
 * arrive and full segments vanish, we try smaller ones (RFC 2923 section 2.1).
 */
#include "tcp/tcp_priv.h"

#include <errno.h>

/* RFC 1191 section 6.3: how long until the path is given another chance. */
#define PMTU_LIFE_NS (600 * NS_PER_SEC)

enum {
	/* the least that every link carries: RFC 791, RFC 8200 section 5 */
	LEAST_V4 = 68,
	LEAST_V6 = 1280,
	/* what any IPv4 host takes: RFC 791 */
	HARMLESS_SIZE = 576,
	/* timeouts in a row after which the size is suspected */
	BLACK_HOLE_TIMEOUTS = 2,
};

/* RFC 1191 section 7: sizes that links have, where the message names none. */
static uint16_t plateau_below(uint32_t size)
{
	static const uint16_t plateaus[] = { 32000, 17914, 8166, 4352, 2002,
					     1492, 1280, 1006, 508, 296 };

	for (size_t i = 0; i < ARRAY_LEN(plateaus); i++)
		if (plateaus[i] < size)
			return plateaus[i];
	return LEAST_V4;
}

uint16_t tcp_pmtu_present(const struct tcp_pcb *pcb)
{
	return pcb->pmtu ? MIN(pcb->pmtu, pcb->path.mtu) : pcb->path.mtu;
}

static bool lower(struct tcp_pcb *pcb, uint32_t mtu, uint64_t now_ns)
{
	uint32_t least = ip_addr_is_v4(&pcb->key.remote) ? LEAST_V4 : LEAST_V6;

	mtu = MAX(mtu, least);
	if (mtu >= tcp_pmtu_present(pcb))
		return false;
	pcb->pmtu = (uint16_t)mtu;
	pcb->pmtu_at = tcp_ticks(now_ns);
	tcp_pcb_update_mss(pcb);
	return true;
}

/* Every packet that is too large has been dropped. That is no congestion (RFC 1191
 * section 6.5), so the window stays. */
static void resend_too_large(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct list *order, *following;

	for (order = pcb->in_flight.next; order != &pcb->in_flight;
	     order = following) {
		struct pkt *pkt = tcp_seg_pkt(order);

		following = order->next;
		if (pkt->len > pcb->mss)
			tcp_sack_mark_lost(pcb, pkt);
	}
	if (list_is_empty(&pcb->lost))
		return;
	/* Without SACK that is an estimate, so it gives way. */
	if (!(pcb->flags & TF_SACK))
		pcb->sacked_bytes = MIN(pcb->sacked_bytes,
					pcb->snd_nxt - pcb->snd_una -
						pcb->lost_bytes);
	/* These were not under way in vain. */
	pcb->undo_cwnd = 0;
	if (pcb->recovery <= RECOVERY_DISORDER) {
		pcb->recovery = RECOVERY_LOSS;
		pcb->recovery_point = pcb->snd_nxt;
	}
	tcp_out_push(pcb, now_ns);
}

static void take_too_big(struct tcp_pcb *pcb, const struct tcp_icmp *icmp,
			 uint64_t now_ns)
{
	uint32_t mtu = icmp->mtu ? icmp->mtu : plateau_below(icmp->quoted_len);

	if (!lower(pcb, mtu, now_ns))
		return;
	pcb->table->counts.pmtu_lowered++;
	tcp_metrics_save_pmtu(pcb, now_ns);
	if (tcp_is_synchronised(pcb))
		resend_too_large(pcb, now_ns);
}

/* RFC 5927 section 4.1: of the numbers under way, or of the SYN. */
static bool is_under_way(const struct tcp_pcb *pcb, uint32_t seq)
{
	return seq - pcb->snd_una < pcb->snd_nxt - pcb->snd_una;
}

/* RFC 8201 section 4: no link of IPv6 carries less, and every message names a
 * size; one that names less, or none, is discarded. IPv4 has routers that do not. */
static bool is_possible(const struct tcp_icmp *icmp)
{
	return icmp->error != -EMSGSIZE || ip_addr_is_v4(&icmp->key.remote) ||
	       icmp->mtu >= LEAST_V6;
}

void tcp_icmp_in(struct tcp_table *table, const struct tcp_icmp *icmp,
		 uint64_t now_ns)
{
	struct tcp_pcb *pcb = tcp_table_find(table, &icmp->key);

	if (!pcb || pcb->is_frozen || !is_under_way(pcb, icmp->seq) || !is_possible(icmp)) {
		table->counts.icmp_ignored++;
		return;
	}
	pcb->is_quiet = false;
	if (icmp->error == -EMSGSIZE)
		take_too_big(pcb, icmp, now_ns);
	else if (pcb->state == TCPS_SYN_SENT)
		tcp_pcb_die(pcb, icmp->error);
	else
		/* RFC 5927 section 5.2: the error may pass, so it is reported only if
		 * nothing else is. */
		pcb->soft_error = (int16_t)icmp->error;
	tcp_fast_update(pcb);
}

/* Smaller ones pass nearly everywhere, so their loss has another reason. */
void tcp_pmtu_on_timeout(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct pkt *head = pkt_from_link(pcb->snd_queue.next);
	uint32_t size = head->len + tcp_overhead(pcb);

	if (!pcb->table->params.finds_black_holes)
		return;
	if (pcb->timeouts < BLACK_HOLE_TIMEOUTS || size <= HARMLESS_SIZE)
		return;
	if (lower(pcb, plateau_below(size), now_ns))
		pcb->table->counts.black_holes++;
}

void tcp_pmtu_refresh(struct tcp_pcb *pcb, uint64_t now_ns)
{
	if (tcp_ticks(now_ns) - pcb->pmtu_at < tcp_ticks(PMTU_LIFE_NS))
		return;
	pcb->pmtu = 0;
	tcp_pcb_update_mss(pcb);
}
