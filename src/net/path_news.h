/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets of ours that were too long for a link on their way. Routers say so by
 * ICMP to the kernel, which believes it or not and tells only sockets that are
 * connected or ask; so we listen too, and ask the kernel what it makes of it. Under
 * the control mutex.
 */
#ifndef NET_PATH_NEWS_H
#define NET_PATH_NEWS_H

#include <stdbool.h>

#include "base/compiler.h"

struct net;

/* An fd that is readable when a router has complained. Negative errno: without
 * CAP_NET_RAW we learn with the next reading of the routes. */
int path_news_open(void) MUST_CHECK;

/* Takes the complaints, and asks the kernel about each destination. */
void path_news_take(struct net *net);

/* Some of what was learned is asked for again: it may be forgotten by now. False:
 * there is none. */
bool path_news_check(struct net *net);

#endif
