/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a connection leaves to the next one with the same peer, and what it takes over
 * (tcp_peers.h). */
#include "tcp/tcp_priv.h"

/* The first to learn something makes the table. Without memory nothing is kept. */
struct tcp_peer *tcp_metrics_place(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;
	struct tcp_peers *peers = &table->peers;
	uint32_t cnt = table->params.peers_max & ~(TCP_PEERS_WAYS - 1u);

	if (!peers->cnt && cnt) {
		peers->places = table->ops->alloc(table->ctx,
						  cnt * sizeof(*peers->places));
		peers->cnt = peers->places ? cnt : 0;
		peers->hash_seed = table->hash_seed;
	}
	return tcp_peers_take(peers, &pcb->key.local, &pcb->key.remote, now_ns);
}

void tcp_metrics_free(struct tcp_table *table)
{
	struct tcp_peers *peers = &table->peers;

	if (peers->cnt)
		table->ops->release(table->ctx, peers->places,
				    peers->cnt * sizeof(*peers->places));
	peers->cnt = 0;
}

void tcp_metrics_save(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_peer_sample sample = {
		.srtt_ns = pcb->backoff || !(pcb->flags & TF_HAS_RTT)
				   ? 0
				   : pcb->srtt_ns,
		.rttvar_ns = pcb->rttvar_ns,
		.cwnd = pcb->cwnd,
		.ssthresh = pcb->ssthresh,
		.is_at_start = pcb->ssthresh == TCP_SSTHRESH_NONE,
		.is_in_slow_start = pcb->cwnd < pcb->ssthresh,
		.is_open = pcb->recovery == RECOVERY_OPEN,
	};
	struct tcp_peer *peer;

	if (!pcb->table->params.saves_metrics)
		return;
	peer = tcp_metrics_place(pcb, now_ns);
	if (peer)
		tcp_peer_learn(peer, &sample,
			       pcb->table->params.saves_ssthresh);
}

void tcp_metrics_save_pmtu(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_peer *peer = tcp_metrics_place(pcb, now_ns);

	if (!peer)
		return;
	peer->pmtu = pcb->pmtu;
	peer->pmtu_ns = now_ns;
}

void tcp_metrics_use_pmtu(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_peer *peer = tcp_peers_find(&pcb->table->peers,
						     &pcb->key.local,
						     &pcb->key.remote, now_ns);

	if (!peer || !peer->pmtu || peer->pmtu >= tcp_pmtu_present(pcb))
		return;
	/* One that is too old is forgotten with the first round trip. */
	pcb->pmtu = peer->pmtu;
	pcb->pmtu_at = tcp_ticks(peer->pmtu_ns);
	tcp_pcb_update_mss(pcb);
}

void tcp_metrics_use(struct tcp_pcb *pcb, uint64_t now_ns)
{
	const struct tcp_peer *peer = tcp_peers_find(&pcb->table->peers,
						     &pcb->key.local,
						     &pcb->key.remote, now_ns);

	if (!peer)
		return;
	if (peer->ssthresh)
		pcb->ssthresh = MAX(peer->ssthresh, 2 * pcb->mss);
	/* The handshake's segments are small, and nothing queued before them. What was
	 * measured before decides about the first timeout, and nothing else. */
	if (peer->rtt_ns > pcb->srtt_ns)
		tcp_rtt_expect(pcb, peer->rtt_ns);
}
