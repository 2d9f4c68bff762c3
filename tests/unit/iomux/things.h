/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of epoll and things to put into it: objects of ours on a stack without rings. Each
 * one's twin is an eventfd, so that the kernel's side can be made ready as well.
 */
#ifndef UNIT_IOMUX_THINGS_H
#define UNIT_IOMUX_THINGS_H

#include <sys/epoll.h>

#include "fd/fd_ops.h"
#include "net/stack.h"

enum { THINGS_MAX = 8 };

struct thing {
	struct fd_object obj;
	struct endpoint end;
	struct stack *stack;
	int fd;
	enum fd_word word; /* FD_WORD_PART, unless a case says other */
	/* another thread closes it while it is added to a set */
	bool closes_while_followed;
	unsigned leave_cnt;
	/* how often it has heard of its twin's events */
	unsigned told_cnt;
	enum reason reason;
};

extern struct thing *things[THINGS_MAX];
/* the stack of all things; one that a case may give a thing instead */
extern struct stack *things_stack, *things_other_stack;
extern int things_epfd;
/* of the last look */
extern struct epoll_event things_events[THINGS_MAX + 1];

void things_begin(void);
/* Things may be closed already. */
void things_end(void);
void thing_close(int i);

/* epoll_ctl() of the set, with the thing's index as the data word. */
void things_change(int op, int i, uint32_t events);
/* The same for EPOLLIN. */
void things_add(int i);

void thing_make_ready(int i);
void thing_make_unready(int i);
/* The kernel's side of a thing. */
void thing_make_twin_ready(int i);
void thing_make_twin_unready(int i);

/* What a look at a set with room for `cnt` finds, as decimal digits: 1 is the first
 * thing. */
unsigned things_look_at(int set, int cnt);
/* The same at things_epfd. */
unsigned things_look(int cnt);

/* Makes a set with things_epfd in it, whose data word is 6. */
int things_make_outer(uint32_t events);
void things_close_outer(int outer);

#endif
