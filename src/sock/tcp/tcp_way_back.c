/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The transaction of the way back (tcp_way_back.h). */
#include "config.h"

#include "sock/tcp/tcp_way_back.h"

#include "sock/tcp/tcp_twin.h"

/* As long as a header can be. */
enum { HEADER_MAX = 60 };

struct move {
	const struct tcp_pcb *pcb;
	const struct tcp_way_back_ops *ops;
	void *ctx;
	uint64_t now_ns;
};

static int give(const struct move *m, uint32_t seq, bool has_fin,
		const struct pkt *data)
{
	uint8_t header[HEADER_MAX];
	size_t len = tcp_build_of_peer(m->pcb, header, seq, has_fin, m->now_ns);

	return m->ops->give(m->ctx, header, len, data);
}

/* What came out of order. Whatever the kernel does not get the peer sends again. */
static void give_runs(const struct move *m)
{
	struct pkt *pkt = NULL;
	bool has_fin;
	uint32_t seq;

	while ((pkt = tcp_run_next(m->pcb, pkt, &seq, &has_fin)))
		(void)!give(m, seq, has_fin, pkt);
}

/* What the repair has no place for. The peer's FIN must arrive, since the peer does not
 * repeat it; an empty segment instead tells the kernel the peer's time stamp. */
static int give_rest(const struct move *m, const struct tcp_repair *state)
{
	int err = give(m, state->rcv_nxt, state->has_fin, NULL);

	if (err && state->has_fin)
		return err;
	give_runs(m);
	return 0;
}

int tcp_way_back(int fd, const struct tcp_pcb *pcb,
		 const struct tcp_way_back_ops *ops, void *ctx, uint64_t now_ns)
{
	struct move m = { pcb, ops, ctx, now_ns };
	struct tcp_twin twin;
	int err = tcp_twin_begin(&twin, fd, pcb, now_ns);

	if (err)
		return err;
	err = give_rest(&m, &twin.state);
	if (err)
		goto err_twin;
	err = ops->open(ctx);
	if (err)
		goto err_twin;
	err = tcp_twin_end(&twin);
	if (err)
		goto err_open;
	return 0;
err_open:
	ops->close(ctx);
err_twin:
	tcp_twin_undo(&twin);
	return err;
}
