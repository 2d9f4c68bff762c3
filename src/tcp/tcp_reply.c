/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Answers that anyone can provoke, and the limits on them. */
#include "tcp/tcp_priv.h"

bool tcp_limit_allows(struct tcp_limit *limit, uint32_t per_sec,
		      uint64_t now_ns)
{
	if (!per_sec)
		return true;
	if (now_ns - limit->second_ns >= NS_PER_SEC) {
		limit->second_ns = now_ns;
		limit->cnt = 0;
	}
	if (limit->cnt >= per_sec)
		return false;
	limit->cnt++;
	return true;
}

/* RFC 9293 section 3.10.7.1 */
void tcp_reply_reset(struct tcp_table *table, const struct flow_key *key,
		     const struct tcp_segment *in, uint64_t now_ns)
{
	if (in->flags & WIRE_TCP_RST)
		return;
	if (!tcp_limit_allows(&table->reset_limit,
			      table->params.resets_per_sec, now_ns)) {
		table->counts.resets_limited++;
		return;
	}
	table->counts.resets_sent++;
	if (in->flags & WIRE_TCP_ACK)
		tcp_out_stateless(table, key, WIRE_TCP_RST, in->ack, 0, 0,
				  NULL);
	else
		tcp_out_stateless(table, key, WIRE_TCP_RST | WIRE_TCP_ACK, 0,
				  tcp_segment_end(in), 0, NULL);
}

bool tcp_reply_stray_allowed(struct tcp_pcb *pcb, uint64_t now_ns)
{
	uint32_t interval = tcp_ticks(pcb->table->params.stray_interval_ns);
	uint32_t now = MAX(tcp_ticks(now_ns), 1u);

	if (pcb->stray_at && now - pcb->stray_at < interval)
		return false;
	pcb->stray_at = now;
	return true;
}

/* Returns a number between half the limit and one and a half times the limit. Only
 * someone who knows the secret can tell it. */
static uint32_t draw_budget(const struct tcp_table *table, uint64_t now_ns)
{
	uint32_t limit = table->params.challenge_acks_per_sec;
	uint64_t random = hash_sip(&table->params.secret, &now_ns,
				   sizeof(now_ns));

	return limit - limit / 2 + (uint32_t)(random % limit);
}

/* A limit that all connections share could reveal other connections. An attacker uses
 * it up with a connection of their own; if one answer is missing, a guess has hit
 * another connection (CVE-2016-5696). Therefore nobody knows the exact limit. */
static bool is_within_budget(struct tcp_table *table, uint64_t now_ns)
{
	struct tcp_limit *limit = &table->challenge_limit;

	if (!table->params.challenge_acks_per_sec)
		return true;
	if (!table->challenge_budget ||
	    now_ns - limit->second_ns >= NS_PER_SEC)
		table->challenge_budget = draw_budget(table, now_ns);
	return tcp_limit_allows(limit, table->challenge_budget, now_ns);
}

void tcp_reply_challenge(struct tcp_pcb *pcb, uint64_t now_ns)
{
	struct tcp_table *table = pcb->table;

	if (!tcp_reply_stray_allowed(pcb, now_ns) ||
	    !is_within_budget(table, now_ns)) {
		table->counts.challenge_acks_limited++;
		return;
	}
	table->counts.challenge_acks++;
	tcp_out_ack(pcb, now_ns);
}
