/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is asked of connections between the events of the simulated network. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tcp/tcp_seq.h"
#include "tests/engine/sim_inside.h"

/* ---- moving ---- */

static void move_conn(struct sim_host *host, struct sim_conn *conn)
{
	size_t size = tcp_export_size(conn->pcb);
	uint64_t now_ns = host->sim->now_ns;
	uint32_t needed;
	uint8_t *bytes, *again;

	if (!size)
		return;
	bytes = malloc(size);
	again = malloc(size);
	CHECK(bytes && again);
	SIM_CHECK(host->sim, tcp_export(conn->pcb, bytes, size, now_ns) == 0);
	tcp_drop(conn->pcb);
	/* an entry takes 14 bytes at least */
	needed = (uint32_t)size / 14;
	if (host->tx_pool.free_cnt < needed)
		CHECK_EQ(pkt_pool_grow(&host->tx_pool, needed, SIM_BUF_SIZE), 0);
	SIM_CHECK(host->sim, tcp_import(host->table, bytes, size,
					&host->tx_pool, now_ns,
					&conn->pcb) == 0);
	tcp_set_user(conn->pcb, conn);
	/* nothing was lost on the way */
	SIM_CHECK(host->sim, tcp_export_size(conn->pcb) == size);
	SIM_CHECK(host->sim, tcp_export(conn->pcb, again, size, now_ns) == 0);
	SIM_CHECK(host->sim, memcmp(bytes, again, size) == 0);
	free(bytes);
	free(again);
}

/* Somebody wanted to take the connection over, and could not. */
static void try_to_move(struct sim_conn *conn, uint64_t now_ns)
{
	struct tcp_repair repair;

	if (tcp_freeze(conn->pcb, now_ns, now_ns))
		return;
	if (tcp_get_repair(conn->pcb, &repair, now_ns) == 0)
		SIM_CHECK(conn->host->sim,
			  repair.snd_wnd <= repair.snd_wnd_max);
	tcp_thaw(conn->pcb, now_ns);
}

void sim_move_all(struct sim_host *host)
{
	/* seldom: all that is under way leaves once more each time */
	bool only_tries = host->sim->steps % 1024 == 0;
	struct sim_conn *conn;

	LIST_FOR_EACH(conn, &host->conns, link) {
		if (!conn->pcb)
			continue;
		if (only_tries)
			try_to_move(conn, host->sim->now_ns);
		else
			move_conn(host, conn);
	}
}

/* ---- invariants ---- */

/* Something is unacknowledged or waits to be sent: then something happens within the
 * timeout, before which RACK may wait for what is late, hardly longer than another one.
 * What came last may have made the timeout shorter without setting the timer anew (RFC
 * 6298 section 5). */
static void check_moves(struct sim_conn *conn, const struct tcp_pcb_info *i)
{
	struct sim *sim = conn->host->sim;
	uint64_t last_ns = MAX(i->last_sent_ns, i->last_rcvd_ns);
	uint64_t full_ns = MIN(conn->host->jam_until_ns, sim->now_ns);
	uint64_t most_ns = 2 * i->srtt_ns + sim->setup.poll_every_ns +
			   NS_PER_MS;

	if (conn->last_sent_ns != i->last_sent_ns || conn->snd_una != i->snd_una)
		conn->still_max_ns = conn->rto_ns;
	conn->last_sent_ns = i->last_sent_ns;
	conn->snd_una = i->snd_una;
	conn->rto_ns = i->rto_ns;
	conn->still_max_ns = MAX(conn->still_max_ns, i->rto_ns);
	/* it waits for its device, too */
	last_ns = MAX(last_ns, full_ns);
	most_ns += 2 * conn->still_max_ns;
	if (i->state < TCPS_ESTABLISHED || i->snd_una == i->snd_end)
		return;
	SIM_CHECK(sim, sim->now_ns - last_ns <= most_ns);
}

static void check_pcb(struct sim *sim, const struct tcp_pcb *pcb,
		      bool has_owner)
{
	struct tcp_pcb_info i;

	tcp_get_info(pcb, &i);
	if (i.state == TCPS_CLOSED || i.state == TCPS_LISTEN)
		return;
	/* what nobody owns, or waits for an answer, must end by itself */
	if (!has_owner || i.state < TCPS_ESTABLISHED)
		SIM_CHECK(sim, i.has_timer);
	if (i.state < TCPS_ESTABLISHED)
		return;
	SIM_CHECK(sim, seq_at_most(i.snd_una, i.snd_nxt));
	SIM_CHECK(sim, seq_at_most(i.snd_nxt, i.snd_end));
	SIM_CHECK(sim, i.in_flight <= i.snd_nxt - i.snd_una);
	SIM_CHECK(sim, i.snd_nxt == i.snd_end || i.snd_end != i.snd_una);
	/* what is unacknowledged or waits for the window has a timer */
	SIM_CHECK(sim, i.snd_una == i.snd_nxt || i.has_timer);
	SIM_CHECK(sim, i.snd_nxt == i.snd_end || i.has_timer);
	SIM_CHECK(sim, i.cwnd >= 1);
	/* memory: out of order at most twice the buffer and one packet; in order
	 * that, and two buffers of which one is half full for the rest */
	SIM_CHECK(sim, i.ooo_memory <= 2 * i.rcv_buf + 4096);
	SIM_CHECK(sim, i.rcv_memory <= 5 * i.rcv_buf + 8192);
	SIM_CHECK(sim, i.rcv_unread <= i.rcv_buf + 65536);
	SIM_CHECK(sim, seq_at_most(i.rcv_nxt, i.rcv_edge + 1));
}

void sim_check_invariants(struct sim_host *host)
{
	const struct tcp_pcb *pcb = NULL;

	while ((pcb = tcp_pcb_next(host->table, pcb))) {
		struct sim_conn *conn = tcp_user(pcb);
		struct tcp_pcb_info info;

		check_pcb(host->sim, pcb, !conn || conn->pcb == pcb);
		if (!conn)
			continue;
		tcp_get_info(pcb, &info);
		check_moves(conn, &info);
	}
}
