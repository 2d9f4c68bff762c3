/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The transaction of the way back (tcp_way_back.h). */
#include "config.h"

#include "sock/tcp/tcp_way_back.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "os/real.h"
#include "pkt/wire.h"

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

/* The peer's FIN, which the repair has no place for, must arrive, since the peer does not
 * repeat it. Behind it nothing comes that the twin could acknowledge. */
static int give_end(const struct move *m, struct tcp_twin *twin)
{
	int err = tcp_twin_hear(twin);

	return err ? err : give(m, twin->state.rcv_nxt, true, NULL);
}

/*
 * Until it hears the peer the kernel knows no time stamp of it: it believes any, and echoes 0,
 * from which the peer takes no round trip. So it is told only where it might take an old
 * segment for a new one.
 */
static int open_and_hear(const struct move *m, struct tcp_twin *twin)
{
	int err = m->ops->open(m->ctx);

	if (err || twin->state.has_fin)
		return err;
	err = tcp_twin_hear(twin);
	if (err)
		m->ops->close(m->ctx);
	else if (twin->state.needs_paws)
		(void)!give(m, twin->state.rcv_nxt, false, NULL);
	return err;
}

int tcp_way_back(const struct tcp_twin_socket *socket, const struct tcp_pcb *pcb,
		 const struct tcp_way_back_ops *ops, void *ctx, uint64_t now_ns)
{
	struct move m = { pcb, ops, ctx, now_ns };
	struct tcp_twin twin;
	int err = tcp_twin_begin(&twin, socket, pcb, ops->keeps_all(ctx), now_ns);

	if (err)
		return err;
	if (twin.state.has_fin)
		err = give_end(&m, &twin);
	if (!err)
		err = open_and_hear(&m, &twin);
	if (err)
		goto err_twin;
	give_runs(&m);
	ops->give_held(ctx);
	err = tcp_twin_end(&twin);
	if (err)
		goto err_open;
	return 0;
err_open:
	ops->close(ctx);
	/* the peer does not say again what the kernel has acknowledged */
	if (tcp_twin_has_more(&twin))
		err = -ECONNRESET;
err_twin:
	tcp_twin_undo(&twin);
	return err;
}

/* -- one that has ended ----------------------------------------------------------- */

/* A segment of the peer that has no bytes. */
struct last_word {
	const struct tcp_twin *twin;
	const struct tcp_way_back_ops *ops;
	void *ctx;
	uint32_t seq;
};

static int say(const struct last_word *word, uint8_t flags)
{
	const struct flow_key *key = word->twin->key;
	struct wire_tcp header = {
		.src_port = key->remote_port,
		.dst_port = key->local_port,
		.seq = htobe32(word->seq),
		.ack = htobe32(word->twin->state.snd_una),
		.offset_ae = sizeof(header) << 2,
		.flags = flags,
	};

	return word->ops->give(word->ctx, (const uint8_t *)&header, sizeof(header), NULL);
}

/* The kernel makes a difference between resets before and after the peer's end. */
static int end_twin(struct last_word *word, struct tcp_twin *twin, int error)
{
	int err = tcp_twin_hear(twin);

	if (!err && error == -EPIPE) {
		err = say(word, WIRE_TCP_ACK | WIRE_TCP_FIN);
		word->seq++;
	}
	if (!err)
		err = say(word, WIRE_TCP_ACK | WIRE_TCP_RST);
	if (!err && !tcp_twin_is_closed(twin->fd))
		err = -EPROTO;
	return err ? err : tcp_twin_end(twin);
}

static void forget_error(int fd)
{
	int error;
	socklen_t len = sizeof(error);

	(void)!real.getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

/* Of one in TIME_WAIT the kernel is to answer the peer's end when that comes once more. It
 * hears it now, and answers: the peer has missed our acknowledgment, or says that it is gone.
 * The repair ends before, since who may bind the port is settled by what the socket is then. */
static int wait_in_kernel(const struct tcp_twin_socket *socket,
			  const struct tcp_waiting *waiting, const struct tcp_pcb *pcb,
			  const struct tcp_way_back_ops *ops, void *ctx)
{
	uint8_t header[HEADER_MAX];
	struct tcp_twin twin;
	int err = tcp_twin_begin_over(&twin, socket, waiting, pcb);

	if (err)
		return err;
	err = tcp_twin_end(&twin);
	if (!err)
		err = tcp_twin_hear(&twin);
	if (!err)
		err = ops->give(ctx, header, tcp_build_end_of_peer(waiting, header), NULL);
	if (!err && !tcp_twin_is_closed(socket->fd))
		err = -EPROTO;
	if (err)
		tcp_twin_undo(&twin);
	return err;
}

static int reset_in_kernel(const struct tcp_twin_socket *socket,
			   const struct flow_key *key, const struct tcp_pcb *pcb,
			   int error, const struct tcp_way_back_ops *ops, void *ctx)
{
	struct tcp_twin twin;
	struct last_word word = { .twin = &twin, .ops = ops, .ctx = ctx };
	int err = tcp_twin_begin_ended(&twin, socket, key, pcb);

	if (err)
		return err;
	word.seq = twin.state.rcv_nxt;
	err = end_twin(&word, &twin, error);
	if (err)
		tcp_twin_undo(&twin);
	else if (!error)
		forget_error(socket->fd);
	return err;
}

int tcp_way_back_ended(const struct tcp_twin_socket *socket, const struct flow_key *key,
		       const struct tcp_pcb *pcb, int error,
		       const struct tcp_way_back_ops *ops, void *ctx, uint64_t now_ns)
{
	struct tcp_waiting waiting = { .key = *key };

	if (pcb && tcp_state(pcb) == TCPS_TIME_WAIT && !error &&
	    tcp_get_repair(pcb, &waiting.repair, now_ns) == 0 &&
	    wait_in_kernel(socket, &waiting, pcb, ops, ctx) == 0)
		return 0;
	return reset_in_kernel(socket, key, pcb, error, ops, ctx);
}

int tcp_way_back_waiting(const struct tcp_twin_socket *socket,
			 const struct tcp_waiting *waiting,
			 const struct tcp_way_back_ops *ops, void *ctx)
{
	return wait_in_kernel(socket, waiting, NULL, ops, ctx);
}
