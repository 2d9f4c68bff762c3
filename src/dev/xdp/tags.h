/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VLAN tags. A frame of a VLAN that this host does not have must not be taken for one
 * without a tag. A card leaves tags in the bytes, if it can, and is told to do so while
 * it is driven. Between ends in one machine, the sender puts them beside the bytes, and
 * only the program can ask for them.
 */
#ifndef DEV_XDP_TAGS_H
#define DEV_XDP_TAGS_H

#include <stdbool.h>

#include "dev/ring.h"

struct tags {
	/* They are not among the bytes that XDP sees. */
	bool are_off;
	/* They are since we have told the driver, which we shall undo. */
	bool is_told;
	/* We have, since the process is about to end. */
	bool is_undone;
	/* who has told it: children that we know nothing of end, too */
	int pid;
};

void tags_see(struct tags *tags, const struct dev *dev, bool is_virtual);
/* As in dev_ops. */
void tags_ending(struct tags *tags, const struct dev *dev, bool is_ending);

#endif
