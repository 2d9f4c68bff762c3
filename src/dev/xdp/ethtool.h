/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the driver of an interface says about it, and what it can be told, by
 * ethtool's calls. */
#ifndef DEV_XDP_ETHTOOL_H
#define DEV_XDP_ETHTOOL_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* What it is called now: an interface may get another name, but keeps its number. `by` is a
 * socket of ours that asks, here and below; -1: one is opened for it. */
int ethtool_name(int by, int ifindex, char name[IF_NAMESIZE]) MUST_CHECK;

/* Its hardware address. */
int ethtool_address(int ifindex, uint8_t mac[6]) MUST_CHECK;

/* The queues frames can arrive by; 0: the driver does not say. */
uint32_t ethtool_queue_cnt(int by, int ifindex);

/* Whether VLAN tags are taken off frames before anybody sees these. */
bool ethtool_takes_tags(int ifindex);
/* -EOPNOTSUPP: nothing has changed, since the driver cannot do it. */
int ethtool_set_takes_tags(int ifindex, bool does_take) MUST_CHECK;

#endif
