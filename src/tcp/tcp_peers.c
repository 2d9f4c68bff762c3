/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of tcp_peers.h. What is kept and how it ages is as in Linux (tcp_metrics). */
#include "tcp/tcp_peers.h"

#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/hash.h"

#define LIFE_NS (3600 * NS_PER_SEC)

static struct tcp_peer *set_of(const struct tcp_peers *peers,
			       const struct ip_addr *local,
			       const struct ip_addr *remote)
{
	uint64_t hash = hash_u64x2(peers->hash_seed, remote->half[0],
				   remote->half[1]);
	uint32_t sets = peers->cnt / TCP_PEERS_WAYS;

	hash = hash_u64x2(hash, local->half[0], local->half[1]);
	return &peers->places[hash % sets * TCP_PEERS_WAYS];
}

static bool is_of(const struct tcp_peer *peer, const struct ip_addr *local,
		  const struct ip_addr *remote, uint64_t now_ns)
{
	return peer->written_ns && now_ns - peer->written_ns < LIFE_NS &&
	       ip_addr_eq(&peer->remote, remote) &&
	       ip_addr_eq(&peer->local, local);
}

struct tcp_peer *tcp_peers_find(const struct tcp_peers *peers,
				const struct ip_addr *local,
				const struct ip_addr *remote, uint64_t now_ns)
{
	struct tcp_peer *set;

	if (!peers->cnt)
		return NULL;
	set = set_of(peers, local, remote);
	for (int i = 0; i < TCP_PEERS_WAYS; i++)
		if (is_of(&set[i], local, remote, now_ns))
			return &set[i];
	return NULL;
}

struct tcp_peer *tcp_peers_take(struct tcp_peers *peers,
				const struct ip_addr *local,
				const struct ip_addr *remote, uint64_t now_ns)
{
	struct tcp_peer *peer = tcp_peers_find(peers, local, remote, now_ns);
	struct tcp_peer *set;

	if (!peers->cnt)
		return NULL;
	if (!peer) {
		set = peer = set_of(peers, local, remote);
		for (int i = 1; i < TCP_PEERS_WAYS; i++)
			if (set[i].written_ns < peer->written_ns)
				peer = &set[i];
		*peer = (struct tcp_peer){ .local = *local, .remote = *remote };
	}
	peer->written_ns = MAX(now_ns, UINT64_C(1));
	return peer;
}

/* One that is too long does less harm than one that is too short, so a longer one is
 * taken as it is. */
static void learn_rtt(struct tcp_peer *peer,
		      const struct tcp_peer_sample *sample)
{
	int64_t off_ns = (int64_t)(peer->rtt_ns - sample->srtt_ns);
	uint64_t var_ns;

	if (!sample->srtt_ns) {
		peer->rtt_ns = 0;
		return;
	}
	if (off_ns <= 0)
		peer->rtt_ns = sample->srtt_ns;
	else
		peer->rtt_ns -= (uint64_t)off_ns / 8;
	var_ns = (uint64_t)(off_ns < 0 ? -off_ns : off_ns) / 2;
	var_ns = MAX(var_ns, sample->rttvar_ns);
	if (var_ns >= peer->rttvar_ns)
		peer->rttvar_ns = var_ns;
	else
		peer->rttvar_ns -= (peer->rttvar_ns - var_ns) / 4;
}

static void learn_ssthresh(struct tcp_peer *peer,
			   const struct tcp_peer_sample *sample)
{
	uint32_t half = sample->cwnd / 2;

	/* Slow start has not ended, so that the window says at least so much; in
	 * congestion avoidance it is the path's; else only more is news. */
	if (sample->is_at_start) {
		if (peer->ssthresh)
			peer->ssthresh = MAX(peer->ssthresh, half);
	} else if (!sample->is_in_slow_start && sample->is_open) {
		peer->ssthresh = MAX(half, sample->ssthresh);
	} else if (peer->ssthresh) {
		peer->ssthresh = MAX(peer->ssthresh, sample->ssthresh);
	}
}

void tcp_peer_learn(struct tcp_peer *peer, const struct tcp_peer_sample *sample,
		    bool with_ssthresh)
{
	learn_rtt(peer, sample);
	if (with_ssthresh)
		learn_ssthresh(peer, sample);
}
