/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cards that take VLAN tags off frames, or leave them (tags.h). */
#include "config.h"

#include "dev/xdp/tags.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "dev/xdp/ethtool.h"

void tags_see(struct tags *tags, const struct dev *dev, bool is_virtual)
{
	int err;

	*tags = (struct tags){ .are_off = ethtool_takes_tags(dev->ifindex) };
	if (!tags->are_off || is_virtual)
		return;
	err = ethtool_set_takes_tags(dev->ifindex, false);
	if (err) {
		log_dbg("%s goes on taking VLAN tags off (%s)", dev->name,
			strerror(-err));
		return;
	}
	tags->are_off = false;
	tags->is_told = true;
	tags->pid = getpid();
	log_info("%s: its VLAN receive offload is switched off, so that tagged frames are known; as long as it is driven",
		 dev->name);
}

/* The thread may be in another network namespace, where another interface has the
 * number. */
static bool is_the_card(const struct dev *dev)
{
	uint8_t mac[6];

	return ethtool_address(dev->ifindex, mac) == 0 &&
	       memcmp(mac, dev->mac, sizeof(mac)) == 0;
}

void tags_ending(struct tags *tags, const struct dev *dev, bool is_ending)
{
	int err;

	if (!tags->is_told || tags->is_undone == is_ending || tags->pid != getpid())
		return;
	err = is_the_card(dev) ? ethtool_set_takes_tags(dev->ifindex, is_ending) :
				 -ENODEV;
	if (err)
		log_dbg("%s: its VLAN receive offload stays %s (%s)", dev->name,
			is_ending ? "off" : "on", strerror(-err));
	else
		tags->is_undone = is_ending;
}
