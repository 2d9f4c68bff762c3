/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bonds from the inside. */
#ifndef DEV_BOND_BOND_PRIV_H
#define DEV_BOND_BOND_PRIV_H

#include "dev/bond/bond.h"

struct bond_dev {
	struct dev dev;
	/* the name of its back end is in it */
	struct dev_ops ops;
	unsigned port_cnt;
	struct dev *ports[BACKEND_PORTS_MAX];
	uint8_t policy;
	/* A bit for each port that sends, and whose frames count. When none does it stays as
	 * it was. Written under the control mutex, read under any stack's lock. */
	_Atomic uint32_t active;
};

static inline struct bond_dev *bond_of(struct dev *dev)
{
	return CONTAINER_OF(dev, struct bond_dev, dev);
}

/* -- bond_ring.c -- */
int bond_ring_create(struct dev *dev, struct pkt_pool *pool, struct ring **ring_out)
	MUST_CHECK;
/* That of a port. */
struct ring *bond_ring_port(struct ring *ring, unsigned port);

#endif
