/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stack on one ring, which does what a case says, and one socket's endpoint, which queues
 * what it gets. Time is virtual.
 */
#ifndef UNIT_NET_LONE_H
#define UNIT_NET_LONE_H

#include "net/stack.h"

enum {
	LONE_FRAMES = 256,
	LONE_POSTED = 128,
	LONE_HELD_MAX = (LONE_FRAMES - LONE_POSTED) / 2,
	/* what a poll takes; few beside what sockets may hold */
	LONE_BATCH = 32,
	LONE_PORT = 7000,
	LONE_QUEUES = 200,
};

struct lone_nic {
	struct dev dev;
	struct ring ring;
	struct pkt *posted[LONE_POSTED];
	/* frames that arrive, numbered, each in so many parts */
	uint32_t arriving_cnt, arrived_cnt, part_cnt;
	/* what kick returns, the last one for ever */
	const enum ring_kick *kicks;
	unsigned kick_cnt;
	unsigned acknowledge_cnt;
	/* what happens while it is acknowledged; NULL: nothing */
	void (*at_acknowledge)(void);
	bool is_armed, is_stopped;
	/* how often it is not done yet with what was sent, and how often and by how
	 * much it grew */
	unsigned undone_cnt, grow_cnt, grow_by;
	/* for each frame that is taken another one arrives */
	bool never_ends;
};

extern struct lone {
	struct stack *stack;
	struct lone_nic nic;
	/* the ring's queues; none unless a case opens them */
	int queue_fds[LONE_QUEUES];
	unsigned queue_cnt;
	/* the next ring wants what has woken sleepers to be acknowledged */
	bool needs_ack;
	struct endpoint reader;
	uint32_t queued_cnt;
	uint64_t now_ns;
	/* how often somebody was told of an earlier timer */
	unsigned sooner_cnt;
} lone;

void lone_begin(void);
void lone_begin_polling(unsigned poll_batch);
/* All that was held must be back. */
void lone_end(void);

void lone_open_nic(void);
/* As a device does when its interface is gone. */
void lone_lose_nic(void);

void lone_poll(void);
/* So many frames, until all are taken. */
void lone_arrive(uint32_t cnt);
/* Takes a packet from the endpoint's queue, and says its number. */
uint32_t lone_read(void);

#endif
