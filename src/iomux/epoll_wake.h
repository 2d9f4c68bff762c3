/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that sleep in the kernel for a set that becomes ours. */
#ifndef IOMUX_EPOLL_WAKE_H
#define IOMUX_EPOLL_WAKE_H

#include "iomux/epoll_set.h"

/* The set has its first live item now. */
void epoll_wake_sleepers(struct epoll_set *set);
/* Takes the event that only woke them out of `events`, of this set or, if that is NULL, of
 * one that nobody knows any more. Returns how many are left. */
int epoll_take_wake(struct epoll_set *set, struct epoll_event *events, int n);
void epoll_end_wake(struct epoll_set *set);
void epoll_wake_forked(void);

#endif
