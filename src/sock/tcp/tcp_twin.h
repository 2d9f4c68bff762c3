/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's socket beside a connection of ours, made to go on with it: by
 * TCP_REPAIR it takes addresses, numbers, windows, options, what was not read and
 * what was not acknowledged. The connection stands still meanwhile (tcp_freeze), and
 * none of its frames may reach the kernel before the socket is filled.
 *
 * It needs CAP_NET_ADMIN in the network namespace of the socket.
 */
#ifndef SOCK_TCP_TCP_TWIN_H
#define SOCK_TCP_TCP_TWIN_H

#include "tcp/tcp.h"

/* A socket that is or becomes a twin, and what its owner knows of it without asking the
 * kernel, whose every answer is a system call. */
struct tcp_twin_socket {
	int fd;
	int domain; /* AF_INET, AF_INET6 */
	/* since tcp_twin_guard, until tcp_twin_unguard */
	bool is_guard;
	/* tcp_twin_guard has bound it to the local end, which it keeps from then on */
	bool is_bound;
	/* what the program has set: 1, 0, or -1: ask */
	int reuse_addr;
};

/* A size of a socket's buffer as it was. */
struct tcp_twin_buffer {
	int size; /* -1: it was left alone */
};

struct tcp_twin {
	int fd;
	struct tcp_twin_socket socket; /* as it was */
	const struct flow_key *key;
	const struct tcp_pcb *pcb; /* of one that has ended it may be NULL */
	struct tcp_repair state;
	bool is_over; /* both ends were acknowledged, and the peer may not know that */
	bool has_reuse_addr;
	/* SO_BUF_LOCK */
	int buf_lock;
	struct tcp_twin_buffer rcv, snd;
};

/* Loads what guards need; before the right to do so goes. 0 or a negative errno. */
int tcp_twin_load_dropper(void) MUST_CHECK;
void tcp_twins_forked(void);

/*
 * The twin of a connection of ours as its guard: by its names it is that connection,
 * and a filter drops what comes. So segments that reach the kernel after all, by an
 * interface that we do not drive or not yet, are lost and sent again; without a guard the
 * kernel would answer them with a reset. The socket is fresh, or bound to the local end.
 * `is_bound`: it has its local end, or the kernel chooses what it lacks of it, as for any
 * connect(), and its name says so; such a port is given up when it is no guard any more.
 * 0: `socket` says so; or a negative errno: it is as it was, but that it may be bound.
 */
int tcp_twin_guard(struct tcp_twin_socket *socket, const struct flow_key *key,
		   bool is_bound) MUST_CHECK;
bool tcp_twin_is_guard(int fd);
/* It is no guard any more. A port that the program has chosen stays, and with `key` its
 * local end in any case. Does nothing to one that is none. */
void tcp_twin_unguard(int fd, const struct flow_key *key);

/* Makes the socket the frozen connection, in repair and deaf: what it hears it would
 * acknowledge, and that cannot be undone. The socket is fresh, bound to the connection's local end, or a guard.
 * `is_unheard`: no segment of the peer reaches the kernel meanwhile. What
 * the program has set on it stays, but for TCP_MAXSEG, which the caller sets again. 0;
 * -EOPNOTSUPP: a connection with ECN or an urgent mark, which cannot be moved; -EPERM: without the right;
 * or what the kernel says. After an error the socket is as it was, but that it is bound
 * to the local end; a guard that the kernel has no address or no route for is one still. */
int tcp_twin_begin(struct tcp_twin *twin, const struct tcp_twin_socket *socket,
		   const struct tcp_pcb *pcb, bool is_unheard,
		   uint64_t now_ns) MUST_CHECK;

/* The same for what is left of one that has ended: its names, and what was received and not
 * taken. Its numbers are others, since nobody hears from it any more. `pcb` NULL: nothing was
 * received. */
int tcp_twin_begin_ended(struct tcp_twin *twin, const struct tcp_twin_socket *socket,
			 const struct flow_key *key,
			 const struct tcp_pcb *pcb) MUST_CHECK;

/* The same for one in TIME_WAIT, but with its own numbers: our end is sent and not acknowledged,
 * so that the peer's end that acknowledges it brings the twin to TIME_WAIT. */
int tcp_twin_begin_over(struct tcp_twin *twin, const struct tcp_twin_socket *socket,
			const struct tcp_waiting *waiting, const struct tcp_pcb *pcb)
	MUST_CHECK;

/* It receives from now on, and sends nothing but acknowledgments. 0 or a negative errno. */
int tcp_twin_hear(struct tcp_twin *twin) MUST_CHECK;

/* Ends the repair: the socket sends. What was written and never sent is sent, then
 * FIN if it is due. 0; a negative errno: it is still in repair, and can be undone. */
int tcp_twin_end(struct tcp_twin *twin) MUST_CHECK;

/* Before it is undone: whether it has acknowledged what the connection does not know of. */
bool tcp_twin_has_more(const struct tcp_twin *twin);

/* Instead of that: the socket is as it was, and the peer hears nothing. What it has
 * received is lost. */
void tcp_twin_undo(struct tcp_twin *twin);

/* Whether the kernel's connection has ended. Nothing is taken from it. */
bool tcp_twin_is_closed(int fd);

#endif
