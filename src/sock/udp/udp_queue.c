/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was received and nobody has taken yet. Whoever polls the stack fills it. */
#include "config.h"

#include "base/clock.h"
#include "ip/ip_udp.h"
#include "pkt/wire.h"
#include "sock/udp/udp_priv.h"

static COLD void count_drop(struct udp *u, const struct pkt *pkt)
{
	sock_counters(&u->sock)->rx_ready_pkt_drop++;
	sock_counters(&u->sock)->rx_ready_byte_drop += udp_rx_len(pkt);
}

/* The queue is longer than it ever was. */
static COLD void count_longest(struct udp *u)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);

	c->rx_ready_pkt_max = MAX(c->rx_ready_pkt_max, u->rx_cnt);
	c->rx_ready_byte_max = MAX(c->rx_ready_byte_max, u->rx_bytes);
}

static COLD void refuse(struct udp *u, struct pkt *pkt,
			enum ip_udp_verdict verdict)
{
	demux_drop(&sock_stack(&u->sock)->demux, pkt,
		   verdict == IP_UDP_HEADER ? DEMUX_UDP_HEADER : DEMUX_CSUM);
}

/* Checks the UDP header and takes it off. False: it is not good, and the packet is
 * gone. */
static inline bool unwrap(struct udp *u, struct pkt *pkt)
{
	struct rx_info *info = PKT_CB(pkt, struct rx_info);
	const struct wire_udp *udp = (const void *)pkt->data;
	enum ip_udp_verdict verdict =
		ip_udp_judge((const void *)(pkt->buf + info->ip_at), pkt,
			     info->len, info->may_be_partial);

	if (UNLIKELY(verdict != IP_UDP_GOOD)) {
		refuse(u, pkt, verdict);
		return false;
	}
	info->len = be16toh(udp->len) - (uint32_t)sizeof(*udp);
	pkt_pull(pkt, sizeof(*udp));
	demux_trim(pkt, info->len);
	return true;
}

/* False: the packet is gone. */
static ALWAYS_INLINE bool append(struct udp *u, struct list *queue, struct pkt *pkt)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);

	if (!unwrap(u, pkt))
		return false;
	/* As in Linux, a datagram that begins below the limit may exceed it. */
	if (UNLIKELY(udp_rx_used(u) >= u->rx_limit)) {
		count_drop(u, pkt);
		pkt_put(pkt);
		return false;
	}
	if (u->sock.set.wishes && !pkt->time_ns)
		pkt->time_ns = clock_realtime_ns();
	list_push_back(queue, &pkt->link);
	u->rx_bytes += udp_rx_len(pkt);
	u->rx_cnt++;
	c->rx_queued_packets++;
	c->rx_queued_bytes += udp_rx_len(pkt);
	if (UNLIKELY(u->rx_cnt > c->rx_ready_pkt_max ||
		     u->rx_bytes > c->rx_ready_byte_max))
		count_longest(u);
	return true;
}

void udp_input(struct endpoint *end, struct pkt *pkt)
{
	struct udp *u = CONTAINER_OF(end, struct udp, sock.end);

	if (append(u, &u->rx_queue, pkt))
		endpoint_set_ready(end, READY_IN);
}

/* While the queue is with somebody else, nobody may read what comes behind it. */
static void input_behind(struct endpoint *end, struct pkt *pkt)
{
	struct udp *u = CONTAINER_OF(end, struct udp, sock.end);

	demux_forget_last(&sock_stack(&u->sock)->demux);
	(void)append(u, &u->rx_behind, pkt);
}

void udp_purge(struct udp *u)
{
	struct list *link;

	while ((link = list_first(&u->rx_queue))) {
		udp_unlink_first(u, pkt_from_link(link));
		pkt_put(pkt_from_link(link));
	}
}

void udp_take_queue(struct udp *u, struct list *pkts)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);
	struct list *link;

	/* nobody reads them, and they do not wait here any more */
	c->rx_queued_packets -= u->rx_cnt;
	c->rx_queued_bytes -= u->rx_bytes;
	while ((link = list_first(&u->rx_queue))) {
		udp_unlink_first(u, pkt_from_link(link));
		list_push_back(pkts, link);
	}
	list_init(&u->rx_behind);
	u->sock.end.input = input_behind;
	demux_forget_last(&sock_stack(&u->sock)->demux);
}

static void requeue(struct udp *u, struct pkt *pkt)
{
	struct stats_socket_counters *c = sock_counters(&u->sock);

	c->rx_queued_packets++;
	c->rx_queued_bytes += udp_rx_len(pkt);
	list_push_back(&u->rx_queue, &pkt->link);
	u->rx_bytes += udp_rx_len(pkt);
	u->rx_cnt++;
}

void udp_return_queue(struct udp *u, struct list *pkts)
{
	struct list *link;

	while ((link = list_pop_front(pkts)))
		requeue(u, pkt_from_link(link));
	list_splice_back(&u->rx_queue, &u->rx_behind);
	u->sock.end.input = udp_input;
	if (!list_is_empty(&u->rx_queue))
		endpoint_set_ready(&u->sock.end, READY_IN);
}
