/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's side of the shared region (stats_abi.h). Whoever counts gets a
 * place in it, or memory of its own if there is no place left. It then counts
 * there, without any further question.
 */
#ifndef STATS_STATS_PUBLISH_H
#define STATS_STATS_PUBLISH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "stats/reasons.h"
#include "stats/stats_abi.h"

struct stats_params {
	/* The directory in which vmastat.PID is made. NULL: the default. Empty: it is not
	 * made, and counters are private. */
	const char *dir;
	/* The file to which a socket's counters are appended when it closes. Empty:
	 * there is none. */
	const char *file;
	uint32_t socket_max; /* up to STATS_SOCKETS_MAX */
	const char *program;
	const char *version;
};

/* Keeps `params`, and makes the region. Without one, which is said once, all
 * counters are private. In the bracket; once in a process, and once again in each
 * child of a fork that has a socket of its own. */
void stats_start(const struct stats_params *params);
void stats_start_again(void);
/* In the child of a fork: nothing is shared with the parent any more. */
void stats_forked(void);

/* The program ends: the counters of open sockets are written to VMA_STATS_FILE, and
 * vmastat.PID is removed. May be called from a handler, at any moment. */
void stats_end(void);
/* The process becomes this user's for good, and so does vmastat.PID: who is not its owner
 * cannot remove it from a directory like /tmp, at the end or in the next program of this
 * process. Only root can do it. In the bracket. */
void stats_give_to(uid_t user);
/* The process is about to run another program, or has failed to. Of a child that shares our
 * memory, nothing is noted. */
void stats_set_ended(bool is_ended);

/* -- sockets --------------------------------------------------------------- */

/* One socket's place. `at` is fixed while it is open. */
struct stats_handle {
	struct stats_socket *at;
	struct list link;
	struct stats_socket own;
	/* the process that has opened it; 0: none */
	pid_t owner;
};

/* Whether readers see the socket. */
static inline bool stats_is_shown(const struct stats_handle *h)
{
	return h->at != &h->own;
}

void stats_socket_open(struct stats_handle *h, int fd, ino_t inode,
		       uint8_t protocol);
/* Frees the place, after its counters have gone to VMA_STATS_FILE. */
void stats_socket_close(struct stats_handle *h);

/* How the socket receives and sends from now on, and why. `detail` may be "". One
 * thread at a time. */
void stats_set_rx(struct stats_handle *h, enum reason reason,
		  enum stats_decider decider, uint32_t rings,
		  const char *detail);
void stats_set_tx(struct stats_handle *h, enum reason reason,
		  enum stats_decider decider, uint32_t rings,
		  const char *detail);

/* A socket that is the kernel's from the start. */
void stats_count_unserved(enum reason reason);

/* For counters that are marked SHARED. */
static inline void stats_add(uint64_t *counter, uint64_t cnt)
{
	__atomic_fetch_add(counter, cnt, __ATOMIC_RELAXED);
}

/* Counts the result of a call that the kernel has done: a number of bytes or a
 * negative errno. */
void stats_count_os_rx(struct stats_handle *h, long result);
void stats_count_os_tx(struct stats_handle *h, long result);

/* -- everything else ------------------------------------------------------- */

/* NULL: no place is left, or no region. */
struct stats_ring *stats_ring_open(const char *interface, const char *back_end,
				   const char *mode);
void stats_ring_close(struct stats_ring *ring);
/* The bit that stands for it in struct stats_way; 0 for NULL. */
uint32_t stats_ring_bit(const struct stats_ring *ring);

struct stats_pool *stats_pool_open(const char *interface, uint32_t total_cnt);
void stats_pool_close(struct stats_pool *pool);

/* An array by enum stats_drop; NULL without a region. */
uint64_t *stats_drops(void);

/* NULL without a region. */
struct stats_tcp_counters *stats_tcp(void);

/* Never NULL: callers without a place of their own count where nobody looks. */
struct stats_mux *stats_mux_poll(void);
struct stats_mux *stats_mux_select(void);
struct stats_mux *stats_mux_open(int epfd);
void stats_mux_close(struct stats_mux *mux);
/* A thread has polled for these calls from `from_ns` to `to_ns`. */
void stats_mux_add_polling(struct stats_mux *mux, uint64_t from_ns,
			   uint64_t to_ns);

/* -- requests -------------------------------------------------------------- */

/* A request as it was when we looked. */
struct stats_order {
	uint32_t wish; /* any number */
	int32_t value;
	uint64_t sockets[STATS_SOCKETS_MAX / 64];
};

/* Whether a reader wants something, and still waits for it. One thread. */
bool stats_take_order(struct stats_order *order_out);
void stats_answer_order(int result);

/* Zeroes what the order names. Under every stack's lock. */
void stats_zero(const struct stats_order *order);

#endif
