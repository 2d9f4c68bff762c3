/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What play.c and process.c share: the program that is played. */
#ifndef SEQUENCES_PLAY_H
#define SEQUENCES_PLAY_H

#include <stdbool.h>

#include "tests/sequences/sequence.h"

/* How a process ends. */
struct ending {
	/* enum process_end */
	unsigned how;
	/* before that it sends this slot by this socket, if there is one */
	int slot, by;
};

/* A process that plays. This is what the program that it goes on in gets. */
extern struct play {
	const struct sequence *s;
	struct record *record;
	int fds[SLOTS]; /* -1: none */
	bool is_blocking[SLOTS];
	/* the operation that is played, and the first one that others play */
	unsigned at, until;
	/* sockets that this program has made, and that no other one has had */
	bool is_private[SLOTS];
	/* a child that has not become another program */
	bool is_forked;
	/* of a child */
	bool is_child;
	struct ending ending;
	/* by which OP_pass sends, and OP_take receives; -1: not yet */
	int post[2];
} play;

/* What all processes of a program have. */
struct record {
	int fd;
	unsigned len;
	unsigned long received, carried;
	/* of the program that goes on */
	struct play play;
	struct sequence sequence;
	char text[1 << 16];
};

__attribute__((format(printf, 1, 2))) void say(const char *fmt, ...);
/* Says how a call went, and returns whether it succeeded. */
bool said(long n);
void put(int slot, int fd, bool is_blocking);
/* No socket is private any more. */
void share_all(void);
bool is_listener(int slot);
/* of TCP */
bool is_unconnected(int slot);
/* a datagram waits in it */
bool is_unread(int slot);

/* A program that has done nothing yet. */
void play_prepare(const struct sequence *s, struct record *record);
/* From play.at to play.until. A child does not return. */
void play_ops(void);
/* The second thread, if it waits, has ended its wait. */
void end_meanwhile(void);
/* A child has none. */
void forget_other(void);

void play_fork(const struct op *op);
void play_exec(const struct op *op);
void play_leave(const struct op *op);
void play_pass(const struct op *op);
void play_take(const struct op *op);

/* Datagrams and bits of streams that this process has received. */
extern unsigned long sequence_received;
/* From now on what is received counts as this process's. */
void process_begin(void);
/* The record has what this process and the library in it have received. */
void process_account(void);
void process_end(const struct ending *ending) __attribute__((noreturn));

#endif
