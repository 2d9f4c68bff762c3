/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * News of packets that did not arrive. Routers and hosts report that by ICMP to the
 * kernel. Of packets that were too long for a link on their way, the kernel decides what
 * to believe, and tells only sockets that are connected or ask for it. So we listen, too,
 * and ask the kernel what it believes now. Of TCP it knows no connection of ours: their
 * engine gets the message, and believes it as RFC 5927 says. All of this is under the
 * control mutex.
 */
#ifndef NET_PATH_NEWS_H
#define NET_PATH_NEWS_H

#include <stdbool.h>

#include "base/compiler.h"

struct net;

/* Returns an fd that is readable when a router has complained, or a negative errno.
 * Without CAP_NET_RAW there is none, and we learn of paths when we next read the
 * routes. */
int path_news_open(void) MUST_CHECK;

/* Reads the complaints, tells the engines, and asks the kernel about each
 * destination. */
void path_news_take(struct net *net);

/* Asks the kernel again for some of the paths that we know, since it may have
 * forgotten them. False: we know no path. */
bool path_news_check(struct net *net);

#endif
