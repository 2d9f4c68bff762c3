/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file vmastat.PID as it is in memory: one library writes it in place, and
 * vma_stats reads it. Both must be of the same build, or the reader refuses the
 * file: the layout follows from counters.def and reasons.def, and `layout` is their
 * hash.
 *
 * The library believes nothing that is in the file. It adds to its counters and
 * stores what it knows. The one thing that it reads is the request, and it uses
 * nothing of that without a check.
 */
#ifndef STATS_STATS_ABI_H
#define STATS_STATS_ABI_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

/* Increase this when this file changes. Changes of counters and reasons do not
 * count. */
enum { STATS_ABI = 4 };

#define STATS_MAGIC "vmastat" /* with its NUL, 8 bytes */
#define STATS_FILE_PREFIX "vmastat."

enum {
	STATS_SOCKETS_MAX = 1024,
	STATS_RINGS_MAX = 32,
	STATS_POOLS_MAX = 32,
	STATS_EPOLLS_MAX = 32,
	STATS_REASONS_MAX = 64,
	STATS_DETAIL_SIZE = 80,
};

struct stats_socket_counters {
#define SOCKET_COUNTER(name, how, what) uint64_t name;
#include "stats/counters.def"
};

struct stats_ring_counters {
#define RING_COUNTER(name, how, what) uint64_t name;
#include "stats/counters.def"
};

/* Of all engines of the process. */
struct stats_tcp_counters {
#define TCP_COUNTER(name, how, what) uint64_t name;
#include "stats/counters.def"
};

struct stats_tcp_gauges {
#define TCP_GAUGE(name, how, what) uint32_t name;
#include "stats/counters.def"
};

/* The states of RFC 9293, in the order in which VMA numbers them. */
enum stats_tcp_state {
	/* no TCP socket, or one of the kernel's, which knows the state */
	STATS_TCP_UNKNOWN,
	STATS_TCP_CLOSED,
	STATS_TCP_LISTEN,
	STATS_TCP_TIME_WAIT = STATS_TCP_CLOSED + 10,
	STATS_TCP_STATE_COUNT
};

enum stats_drop {
#define DROP_COUNTER(name, how, what) STATS_DROP_##name,
#include "stats/counters.def"
	STATS_DROP_COUNT
};

struct stats_mux_counters {
#define MUX_COUNTER(name, how, what) uint64_t name;
#include "stats/counters.def"
};

/* What decided how one direction of a socket goes. */
enum stats_decider {
#define DECIDER(name, text) STATS_BY_##name,
#include "stats/deciders.def"
	STATS_BY_COUNT
};

/* The way of one direction. */
struct stats_way {
	uint16_t reason;  /* enum reason; REASON_NONE: accelerated */
	uint16_t decider; /* enum stats_decider */
	uint32_t rings;   /* those it goes by, a bit each */
	/* what exactly: a rule, an interface, an option; or empty */
	char detail[STATS_DETAIL_SIZE];
};

struct CACHE_ALIGNED stats_socket {
	/* 0: the slot is free. No two sockets have the same id. */
	_Atomic uint32_t id;
	int32_t fd; /* the first one it had */
	uint64_t inode;
	uint8_t protocol; /* IPPROTO_* */
	uint8_t is_blocking;
	uint8_t tcp_state; /* enum stats_tcp_state */
	uint16_t local_port;  /* 0: not bound */
	uint16_t remote_port; /* 0: not connected */
	uint32_t rx_limit;    /* of bytes waiting */
	struct ip_addr local;
	struct ip_addr remote;
	struct stats_socket_counters counters;
	/* as they were when the library last looked, which it does once a second */
	struct stats_tcp_gauges tcp;
	struct stats_way rx;
	struct stats_way tx;
	/* where `tx` leads; port 0: nothing was sent yet */
	uint16_t tx_port;
	struct ip_addr tx_addr;
};

struct stats_ring {
	uint8_t is_used;
	char interface[16];
	char back_end[16];
	char mode[32];
	/* bytes of the card's memory that it sends from */
	uint32_t dev_mem;
	struct stats_ring_counters counters;
};

/* The frames of one interface. */
struct stats_pool {
	uint8_t is_used;
	char interface[16];
	uint32_t total_cnt;
	/* frames that no stack has */
	uint32_t free_cnt;
	/* how often a stack asked for a magazine and got nothing */
	uint64_t empty_cnt;
};

struct stats_mux {
	_Atomic uint8_t is_used;
	int32_t fd; /* of an epoll set */
	/* VMA_CPU_USAGE_STATS: in the last second that was measured, or somewhat more,
	 * so much of the time was spent polling, in percent; how much of the present
	 * one, and since when that runs, by the monotonic clock */
	_Atomic uint32_t polling_percent;
	_Atomic uint64_t polling_ns;
	_Atomic uint64_t polling_from_ns;
	struct stats_mux_counters counters;
};

enum stats_wish {
	STATS_WISH_NOTHING,
	/* counters of the marked sockets, and of everything else */
	STATS_WISH_ZERO,
	/* `value`: enum log_level */
	STATS_WISH_LOG_LEVEL,
	/* `value`: VMA_LOG_DETAILS */
	STATS_WISH_LOG_DETAILS,
	/* the kernel shall have a socket; `value`: its fd, or -1 for all. EBADF: there is
	 * none */
	STATS_WISH_KERNEL,
};

/* Readers write all members except the last two. They write `asked` last. */
struct stats_request {
	uint32_t wish; /* enum stats_wish */
	int32_t value;
	uint64_t sockets[STATS_SOCKETS_MAX / 64]; /* a bit for each slot */
	/* by the monotonic clock of the process: nobody waits for it any more, and it is not
	 * to be done, ETIMEDOUT; 0: never */
	uint64_t until_ns;
	_Atomic uint32_t asked; /* not 0, and different each time */
	/* Written by the library: which request it has answered, and the result, 0
	 * or a negative errno. */
	_Atomic uint32_t answered;
	_Atomic int32_t result;
};

struct stats_region {
	char magic[8]; /* last, when all is ready */
	uint32_t abi;
	uint32_t socket_max;
	uint64_t size;
	uint64_t layout;
	/* The process. Its number may be used again later; the time of its start,
	 * in clock ticks after the machine's start, tells two processes apart. */
	int32_t pid;
	uint64_t start_time;
	uint64_t pid_namespace; /* inode */
	char program[32];
	char version[16];
	/* the process is about to run another program */
	uint8_t has_ended;

	struct stats_request request;
	/* The number of our sockets without a slot, by the reason that their
	 * receiving side has now. */
	_Atomic uint32_t unslotted[STATS_REASONS_MAX];
	/* The number of sockets, since the start, that were the kernel's from the
	 * beginning, by reason. */
	_Atomic uint32_t unserved[STATS_REASONS_MAX];
	uint64_t drops[STATS_DROP_COUNT];
	struct stats_tcp_counters tcp;
	struct stats_ring rings[STATS_RINGS_MAX];
	struct stats_pool pools[STATS_POOLS_MAX];
	struct stats_mux poll;
	struct stats_mux select;
	struct stats_mux epolls[STATS_EPOLLS_MAX];
	struct stats_socket sockets[];
};

static inline uint64_t stats_region_size(uint32_t socket_max)
{
	return sizeof(struct stats_region) +
	       (uint64_t)socket_max * sizeof(struct stats_socket);
}

/* The hash of all names of counters and reasons. */
uint64_t stats_layout(void);

#endif
