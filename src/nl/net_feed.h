/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From rows (net_row.h) to changes of a net_view and of its generations. Pure. What
 * the kernel changes without telling is known here.
 */
#ifndef NL_NET_FEED_H
#define NL_NET_FEED_H

#include "base/compiler.h"
#include "nl/net_row.h"
#include "nl/net_view.h"

/* The members of struct net_sink; its ctx is the view. */
int net_feed_take(struct net_view *view, const struct net_row *row,
		  unsigned *stale) MUST_CHECK;
void net_feed_begin(struct net_view *view, enum net_part part);
void net_feed_end(struct net_view *view, enum net_part part);

/* With them in it. */
extern const struct net_sink net_feed_sink;

#endif
