/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection becomes its twin's: one transaction, after which either the kernel has
 * all of it, or it goes on with us (DESIGN 6). How frames are kept from the kernel and
 * given to it is the caller's, who has a ring and rules, or a test that has neither.
 */
#ifndef SOCK_TCP_TCP_WAY_BACK_H
#define SOCK_TCP_TCP_WAY_BACK_H

#include "sock/tcp/tcp_twin.h"
#include "tcp/tcp.h"

struct tcp_way_back_ops {
	/* Gives the kernel a segment as if the peer had sent it: a header without
	 * checksum, from the ports to the end of the options, and the bytes of `data`
	 * with its further parts, or NULL. It reaches the kernel also while other frames
	 * of the connection do not. 0 or a negative errno. */
	int (*give)(void *ctx, const uint8_t *header, size_t header_len,
		    const struct pkt *data);
	/* Whether all frames of the connection are kept, so that the kernel hears none until
	 * `open`. */
	bool (*keeps_all)(void *ctx);
	/* From now on the connection's frames go to the kernel. 0, or a negative errno:
	 * nothing has changed. */
	int (*open)(void *ctx);
	/* Gives the kernel those that have come since it stands still. */
	void (*give_held)(void *ctx);
	/* They come to us again. */
	void (*close)(void *ctx);
};

/*
 * `pcb` is frozen, and its frames are kept by the caller. 0: the connection is that of
 * the socket, which was fresh, bound or a guard, and the caller drops the pcb. A negative
 * errno: the connection is as before, the caller gives its frames to the engine, and thaws it.
 * Makes system calls: without the stack's lock.
 */
int tcp_way_back(const struct tcp_twin_socket *socket, const struct tcp_pcb *pcb,
		 const struct tcp_way_back_ops *ops, void *ctx,
		 uint64_t now_ns) MUST_CHECK;

/*
 * The same for one that has ended: the socket becomes what the kernel would have left of it,
 * with what was received and not read, then `error`, which is said once, then the end. Nobody
 * hears of it, but that of one in TIME_WAIT, where the kernel waits from now on, the last
 * acknowledgment is sent once more. `pcb` is NULL where nothing was received. `error` is
 * -ECONNRESET, or -EPIPE of one that the peer had closed before; every other one is said as
 * ECONNRESET, but for 0, which says nothing. Of `ops` it takes `give` alone.
 */
int tcp_way_back_ended(const struct tcp_twin_socket *socket, const struct flow_key *key,
		       const struct tcp_pcb *pcb, int error,
		       const struct tcp_way_back_ops *ops, void *ctx, uint64_t now_ns) MUST_CHECK;

/* The same for one in TIME_WAIT that nobody has any more: the kernel goes on waiting when the
 * socket is closed. */
int tcp_way_back_waiting(const struct tcp_twin_socket *socket,
			 const struct tcp_waiting *waiting,
			 const struct tcp_way_back_ops *ops, void *ctx) MUST_CHECK;

#endif
