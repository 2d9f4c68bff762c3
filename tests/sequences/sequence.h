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
#define OP(name, udp, tcp) OP_##name,
#include "tests/sequences/ops.def"
	OP_KINDS
};

/* The program's fds have these numbers, whatever the kernel calls them. */
enum { SLOTS = 10, OPS_MAX = 256 };

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
	/* its sockets are of TCP */
	bool is_tcp;
};

/* `cnt` is 7 or more: each begins with the same ones. is_tame: without what is
 * known to differ (sequences.sh). */
void sequence_draw(struct sequence *s, uint64_t seed, unsigned cnt,
		   bool is_tame, bool is_tcp);

/* Plays it, and prints a line for each operation into `out` (of `size` bytes). Returns
 * the length. Nothing is left open. */
unsigned sequence_play(const struct sequence *s, char *out, unsigned size);

/* Datagrams and bits of streams that were received in all sequences so far. */
extern unsigned long sequence_received;

#endif
