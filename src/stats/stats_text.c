/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The blocks of view 3 (stats_text.h). */
#include "config.h"

#include "stats/stats_text.h"

#include <inttypes.h>
#include <netinet/in.h>

#include "base/compiler.h"
#include "stats/stats_snapshot.h"

void stats_text_end(struct text *t, const struct ip_addr *addr, uint16_t port)
{
	char ip[IP_ADDR_TEXT_SIZE];

	text_add(t, "%s:%u", ip_addr_format(addr, ip), port);
}

const char *stats_text_protocol(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_UDP:
		return "UDP";
	case IPPROTO_TCP:
		return "TCP";
	default:
		return "???";
	}
}

const char *stats_text_state(uint8_t tcp_state)
{
	static const char *const names[STATS_TCP_STATE_COUNT] = {
		"",	       "CLOSED",      "LISTEN",
		"SYN_SENT",    "SYN_RCVD",    "ESTABLISHED",
		"FIN_WAIT_1",  "FIN_WAIT_2",  "CLOSE_WAIT",
		"CLOSING",     "LAST_ACK",    "TIME_WAIT",
	};

	return tcp_state < ARRAY_LEN(names) ? names[tcp_state] : "???";
}

double stats_text_percent(uint64_t hit, uint64_t miss)
{
	return hit ? (double)hit * 100 / ((double)hit + (double)miss) : 0;
}

/* One of the four lines of traffic; nothing if there was none. True when there
 * was some. */
static bool add_traffic(struct text *t, const char *label, uint64_t bytes,
			uint64_t packets, uint64_t eagains, uint64_t errors,
			bool is_rate)
{
	if (!(bytes | packets | eagains | errors))
		return false;
	text_add(t,
		 "%s %" PRIu64 " / %" PRIu64 " / %" PRIu64 " / %" PRIu64
		 " [kilobytes/packets/eagains/errors]%s\n",
		 label, bytes / 1024, packets, eagains, errors,
		 is_rate ? "/s" : "");
	return true;
}

static void add_queue(struct text *t, const struct stats_socket *s,
		      const struct stats_socket_counters *c, bool is_rate)
{
	const char *per = is_rate ? "/s" : "";

	text_add(t,
		 "Rx byte: cur %" PRIu64 " / max %" PRIu64 " / dropped%s %" PRIu64
		 " / limit %u\n",
		 stats_socket_ready_bytes(s), c->rx_ready_byte_max, per,
		 c->rx_ready_byte_drop, s->rx_limit);
	text_add(t,
		 "Rx pkt : cur %" PRIu64 " / max %" PRIu64 " / dropped%s %" PRIu64
		 "\n",
		 stats_socket_ready_pkts(s), c->rx_ready_pkt_max, per,
		 c->rx_ready_pkt_drop);
}

static void add_head(struct text *t, const struct stats_socket *s)
{
	text_add(t, STATS_TEXT_SEPARATOR "\tFd=[%d]\n- %s, %s\n", s->fd,
		 stats_text_protocol(s->protocol),
		 s->is_blocking ? "Blocked" : "Non-blocked");
	if (s->tcp_state)
		text_add(t, "- State           = [%s]\n",
			 stats_text_state(s->tcp_state));
	if (s->local_port) {
		text_add(t, "- Local Address   = [");
		stats_text_end(t, &s->local, s->local_port);
		text_add(t, "]\n");
	}
	if (s->remote_port) {
		text_add(t, "- Foreign Address = [");
		stats_text_end(t, &s->remote, s->remote_port);
		text_add(t, "]\n");
	}
}

/* Of a connection that has exchanged something. */
static void add_connection(struct text *t, const struct stats_tcp_gauges *g)
{
	text_add(t, "Tx byte: cur %u / unsent %u / window %u / congestion %u\n",
		 g->send_queue, g->unsent, g->send_window,
		 g->congestion_window);
	text_add(t, "RTT: %u / %u / %u [usec smoothed/variance/timeout]\n",
		 g->rtt_us, g->rtt_var_us, g->rto_us);
}

void stats_text_socket(struct text *t, const struct stats_socket *s,
		       const struct stats_socket_counters *c, bool is_rate)
{
	bool is_active = false;

	add_head(t, s);
	is_active |= add_traffic(t, "Tx Offload:", c->tx_bytes, c->tx_packets,
				 c->tx_eagain, c->tx_errors + c->tx_drops,
				 is_rate);
	is_active |= add_traffic(t, "Tx OS info:", c->tx_os_bytes,
				 c->tx_os_packets, c->tx_os_eagain,
				 c->tx_os_errors, is_rate);
	is_active |= add_traffic(t, "Rx Offload:", c->rx_bytes, c->rx_packets,
				 c->rx_eagain, c->rx_errors, is_rate);
	is_active |= add_traffic(t, "Rx OS info:", c->rx_os_bytes,
				 c->rx_os_packets, c->rx_os_eagain,
				 c->rx_os_errors, is_rate);
	if (c->rx_packets || stats_socket_ready_pkts(s) ||
	    stats_socket_ready_bytes(s) || c->rx_ready_pkt_drop) {
		add_queue(t, s, c, is_rate);
		is_active = true;
	}
	if (c->rx_poll_hit | c->rx_poll_miss) {
		text_add(t,
			 "Rx poll: %" PRIu64 " / %" PRIu64
			 " (%2.2f%%) [miss/hit]\n",
			 c->rx_poll_miss, c->rx_poll_hit,
			 stats_text_percent(c->rx_poll_hit, c->rx_poll_miss));
		is_active = true;
	}
	if (s->tcp.rto_us)
		add_connection(t, &s->tcp);
	if (c->tx_retransmits) {
		text_add(t, "Retransmissions: %" PRIu64 "\n",
			 c->tx_retransmits);
		is_active = true;
	}
	if (!is_active)
		text_add(t, "Rx and Tx where not active\n");
}
