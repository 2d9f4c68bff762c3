/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel says of the interface that an emulated port is plugged into. */
#ifndef SOFTCX_NETDEV_H
#define SOFTCX_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct netdev {
	int ifindex;
	unsigned int mtu;
	uint8_t mac[6];
	bool is_running;   /* administratively up, and has a carrier */
	uint32_t ipv4_be;  /* its first address, or 0 */
};

/* -ENODEV: this namespace has no such interface. */
MUST_CHECK int netdev_query(const char *ifname, struct netdev *netdev_out);

/* A socket that is readable when some link changed. */
MUST_CHECK int netdev_monitor_open(void);
/* Discards the news; the caller asks netdev_query again. */
void netdev_monitor_drain(int fd);

#endif
