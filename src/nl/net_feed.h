/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns rows (net_row.h) into changes of a net_view and of its generations. The
 * code is pure. It knows what the kernel changes without a message.
 */
#ifndef NL_NET_FEED_H
#define NL_NET_FEED_H

#include "base/compiler.h"
#include "nl/net_row.h"
#include "nl/net_view.h"

/* The functions of struct net_sink; their ctx is the view. */
int net_feed_take(struct net_view *view, const struct net_row *row,
		  unsigned *stale) MUST_CHECK;
void net_feed_begin(struct net_view *view, enum net_part part);
void net_feed_end(struct net_view *view, enum net_part part);

/* A sink made of the functions above. */
extern const struct net_sink net_feed_sink;

#endif
