/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sequence: what a program does with a handful of fds, drawn from a seed. It is the
 * same in each process, whatever the calls return. play.c does it.
 */
#ifndef SEQUENCES_SEQUENCE_H
#define SEQUENCES_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

enum op_kind {
#define OP(name, ...) OP_##name,
#include "tests/sequences/ops.def"
	OP_KINDS
};

/* The program's fds have these numbers, whatever the kernel calls them. */
enum { SLOTS = 10, OPS_MAX = 256 };

/* How a process ends: flags of the operations that end one. */
enum process_end {
	END_AT_ONCE,
	END_BY_EXIT,
	END_BY_SIGNAL,
	END_BY_EXEC,
	END_MASK = 3,
	/* of a fork: the child sends a socket before */
	FORK_HANDS = 4,
};

struct op {
	enum op_kind kind;
	/* a second thread does it, while the first one waits for it */
	bool is_by_other;
	/* slots; what the second one is for depends on the kind */
	uint8_t a, b;
	/* numbers of the kind's own: a length, a choice; flags */
	uint32_t n, flags;
};

struct sequence {
	unsigned cnt;
	struct op ops[OPS_MAX];
	/* those that are left out */
	bool is_out[OPS_MAX];
	/* its sockets are of TCP; there are several processes */
	bool is_tcp, has_processes;
};

/* What sequences are drawn with. */
struct sequence_kind {
	/* without what is known to differ (sequences.sh) */
	bool is_tame;
	/* with sockets of TCP */
	bool is_tcp;
	/* with several processes, one after the other */
	bool has_processes;
};

/* `cnt` is 7 or more: each begins with the same ones. */
void sequence_draw(struct sequence *s, uint64_t seed, unsigned cnt,
		   const struct sequence_kind *kind);

/* What the processes of a sequence print: a line for each operation. It is memory that they
 * share. */
struct record *record_create(void);
/* The one with this fd. */
struct record *record_open(int fd);
/* What was printed, and that it is no more; `len_out` as of now. */
const char *record_text(const struct record *record, unsigned *len_out);
void record_clear(struct record *record);
/* Datagrams and bits of streams that were received in all sequences so far, and packets that
 * the library has carried. */
unsigned long record_received(const struct record *record);
unsigned long record_carried(const struct record *record);

/* Plays it. Nothing is left open. */
void sequence_play(const struct sequence *s, struct record *record);
/* A process of its own plays it, which others of the program may outlive. */
void sequence_play_apart(const struct sequence *s, struct record *record);
/* Plays on what another program has begun. */
void sequence_go_on(struct record *record);

#endif
