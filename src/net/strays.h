/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames with tags that come to an interface which is no VLAN's. A card's rule cannot say
 * that a frame has no tag (dev/rdma/rule.c), so it also brings those of VLANs that name the
 * same addresses and ports; and Linux lets a VLAN have what is for an address of another
 * interface. So the kernel gets them, by the interface that they came by.
 *
 * The demultiplexer hands them over under the stack's lock, and whoever releases that
 * gives them back, which takes a system call for each.
 */
#ifndef NET_STRAYS_H
#define NET_STRAYS_H

#include "net/stack.h"

void strays_init(struct stack *stack);

/* Does it, without the lock; who has the control mutex leaves it to its release. */
void strays_give_back(struct stack *stack) EXCLUDES(stack->lock);

/* Drops those that are left, of a stack that nobody uses any more. */
void strays_drop(struct stack *stack);

#endif
