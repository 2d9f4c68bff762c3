/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rings of a bond. The stack knows this one, which has one on each port. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "dev/bond/bond_hash.h"
#include "dev/bond/bond_priv.h"

struct bond_ring {
	struct ring ring;
	struct bond_dev *bond;
	struct ring *ports[BACKEND_PORTS_MAX];
	/* where polls and looks begin, so that each port has its turn */
	unsigned first;
	/* whose frame was shown last */
	struct ring *shown;
	/* ring.tx_frame, until it is known which port sends it */
	uint8_t frame[RING_TX_FRAME_LEN];
};

#define FOR_EACH_PORT(i, own) for (unsigned i = 0; i < (own)->bond->port_cnt; i++)

static struct bond_ring *ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct bond_ring, ring);
}

struct ring *bond_ring_port(struct ring *ring, unsigned port)
{
	return ring ? ring_of(ring)->ports[port] : NULL;
}

static uint32_t active_of(const struct bond_ring *own)
{
	return atomic_load_explicit(&own->bond->active, memory_order_relaxed);
}

/* What the stack wishes of the ring goes for all ports. Where they count it may have
 * changed. */
static void pass_on(struct bond_ring *own)
{
	FOR_EACH_PORT(i, own) {
		own->ports[i]->counts = own->ring.counts;
		own->ports[i]->wants_stamps = own->ring.wants_stamps;
	}
}

/* What ports wish of the stack is the ring's wish. There is a place for a frame if each
 * port that sends has one, since nobody knows yet which port the frame is for. So a sender
 * waits while that one's queue is full, instead of losing what it believes to be sent. */
static void gather(struct bond_ring *own)
{
	uint32_t active = active_of(own);
	bool has_room = true;

	FOR_EACH_PORT(i, own) {
		struct ring *port = own->ports[i];

		own->ring.wants_kick |= port->wants_kick;
		port->wants_kick = false;
		own->ring.wants_region |= port->wants_region;
		if (active & 1u << i)
			has_room &= port->tx_frame != NULL;
	}
	own->ring.tx_frame = has_room ? own->frame : NULL;
}

/* -- receiving --------------------------------------------------------------------- */

/* What comes by a port that is not active is there twice, or late, or the switch has not
 * heard yet. As the kernel's driver, nobody gets it. */
static void drop(struct pkt **batch, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		pkt_put(batch[i]);
}

static unsigned bond_rx_poll(struct ring *ring, struct pkt **batch, unsigned cnt)
{
	struct bond_ring *own = ring_of(ring);
	uint32_t active = active_of(own);
	unsigned got = 0;

	pass_on(own);
	FOR_EACH_PORT(i, own) {
		unsigned at = (own->first + i) % own->bond->port_cnt, n;
		struct ring *port = own->ports[at];

		if (got == cnt || ring_is_quiet(port))
			continue;
		n = port->ops->rx_poll(port, batch + got, cnt - got);
		if (LIKELY(active & 1u << at))
			got += n;
		else
			drop(batch + got, n);
	}
	own->first++;
	gather(own);
	return got;
}

static struct ring_frame bond_rx_peek(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);
	uint32_t active = active_of(own);

	pass_on(own);
	FOR_EACH_PORT(i, own) {
		unsigned at = (own->first + i) % own->bond->port_cnt;
		struct ring *port = own->ports[at];
		struct ring_frame frame;

		if (!(active & 1u << at) || ring_is_quiet(port))
			continue;
		frame = port->ops->rx_peek(port);
		if (!frame.data)
			continue;
		own->shown = port;
		/* by another port, or by one that is not active */
		frame.has_more = true;
		return frame;
	}
	return RING_NO_FRAME;
}

static void bond_rx_done(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	own->shown->ops->rx_done(own->shown);
	own->first++;
	gather(own);
}

static void bond_rx_grow(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	ring->rx_post_max = 0;
	FOR_EACH_PORT(i, own) {
		struct ring *port = own->ports[i];

		port->ops->rx_grow(port);
		port->wants_region = false;
		ring->rx_post_max += port->rx_post_max;
	}
}

/* -- sending ----------------------------------------------------------------------- */

/* The n-th of those in the set, from 0 on. */
static unsigned member(uint32_t set, unsigned n)
{
	while (n--)
		set &= set - 1;
	return (unsigned)__builtin_ctz(set);
}

/* NULL: no port has ever been active. */
static struct ring *port_for(struct bond_ring *own, const void *frame, size_t len)
{
	uint32_t active = active_of(own);
	unsigned cnt = (unsigned)__builtin_popcount(active);

	if (UNLIKELY(!cnt))
		return NULL;
	if (cnt == 1)
		return own->ports[member(active, 0)];
	return own->ports[member(active, bond_hash(own->bond->policy, frame, len) % cnt)];
}

static int bond_tx(struct ring *ring, const struct ring_tx *tx)
{
	struct bond_ring *own = ring_of(ring);
	const struct pkt *payload = tx->payload;
	struct ring *port = tx->header_len ?
				    port_for(own, tx->header, tx->header_len) :
				    port_for(own, payload->data, payload->len);
	int err;

	pass_on(own);
	if (UNLIKELY(!port)) {
		ring->counts->tx_full++;
		pkt_put(tx->payload);
		return -EAGAIN;
	}
	err = port->ops->tx(port, tx);
	gather(own);
	return err;
}

static void bond_tx_commit(struct ring *ring, size_t len)
{
	struct bond_ring *own = ring_of(ring);
	struct ring *port = port_for(own, own->frame, len);

	pass_on(own);
	if (LIKELY(port) && UNLIKELY(!port->tx_frame))
		port->ops->reap(port);
	if (LIKELY(port && port->tx_frame)) {
		memcpy(port->tx_frame, own->frame, len);
		port->ops->tx_commit(port, len);
	} else {
		/* it was none of those that sent when the place was given */
		ring->counts->tx_full++;
	}
	gather(own);
}

static void bond_reap(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	pass_on(own);
	FOR_EACH_PORT(i, own)
		own->ports[i]->ops->reap(own->ports[i]);
	gather(own);
}

static bool fits_each(struct bond_ring *own, uint32_t cnt, uint32_t copied)
{
	uint32_t active = active_of(own);
	bool result = active;

	FOR_EACH_PORT(i, own)
		if (active & 1u << i)
			result &= own->ports[i]->ops->tx_fits(own->ports[i], cnt, copied);
	gather(own);
	return result;
}

/* All ports have one pool. What one of them misses may have been sent by another one, perhaps
 * by one that is not active any more. */
static bool bond_tx_fits(struct ring *ring, uint32_t cnt, uint32_t copied)
{
	struct bond_ring *own = ring_of(ring);

	if (LIKELY(fits_each(own, cnt, copied)))
		return true;
	bond_reap(ring);
	return fits_each(own, cnt, copied);
}

static bool bond_tx_is_done(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);
	bool result = true;

	FOR_EACH_PORT(i, own)
		result &= own->ports[i]->ops->tx_is_done(own->ports[i]);
	gather(own);
	return result;
}

static enum ring_kick bond_kick(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);
	enum ring_kick result = RING_KICKED;

	FOR_EACH_PORT(i, own) {
		enum ring_kick one = own->ports[i]->ops->kick(own->ports[i]);

		if (one == RING_KICK_MORE || result == RING_KICKED)
			result = one;
	}
	return result;
}

/* -- sleeping ---------------------------------------------------------------------- */

static unsigned bond_fds(struct ring *ring, int *fds, unsigned cnt)
{
	struct bond_ring *own = ring_of(ring);
	unsigned got = 0;

	FOR_EACH_PORT(i, own)
		got += own->ports[i]->ops->fds(own->ports[i], fds + MIN(got, cnt),
					       cnt - MIN(got, cnt));
	return got;
}

static bool bond_arm(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);
	bool result = true;

	FOR_EACH_PORT(i, own)
		result &= own->ports[i]->ops->arm(own->ports[i]);
	return result;
}

static void bond_acknowledge(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	FOR_EACH_PORT(i, own)
		if (own->ports[i]->needs_ack)
			own->ports[i]->ops->acknowledge(own->ports[i]);
}

/* -- life -------------------------------------------------------------------------- */

static uint32_t bond_device_cnt(const struct ring *ring)
{
	const struct bond_ring *own = CONTAINER_OF(ring, const struct bond_ring, ring);
	uint32_t cnt = 0;

	FOR_EACH_PORT(i, own)
		cnt += own->ports[i]->ops->device_cnt(own->ports[i]);
	return cnt;
}

static void bond_stop(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	/* the last counts of all are the stack's to keep */
	pass_on(own);
	FOR_EACH_PORT(i, own)
		own->ports[i]->ops->stop(own->ports[i]);
}

static void bond_take_back(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	FOR_EACH_PORT(i, own)
		own->ports[i]->ops->take_back(own->ports[i]);
}

static void bond_ring_close(struct ring *ring)
{
	struct bond_ring *own = ring_of(ring);

	FOR_EACH_PORT(i, own)
		own->ports[i]->ops->close(own->ports[i]);
	free(own);
}

/* A port gives no ring. */
static void end_first(struct bond_ring *own, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		ring_end(own->ports[i]);
	free(own);
}

static struct ring_ops ops = {
	.rx_poll = bond_rx_poll,
	.rx_peek = bond_rx_peek,
	.rx_done = bond_rx_done,
	.tx = bond_tx,
	.tx_commit = bond_tx_commit,
	.tx_fits = bond_tx_fits,
	.tx_is_done = bond_tx_is_done,
	.reap = bond_reap,
	.kick = bond_kick,
	.fds = bond_fds,
	.arm = bond_arm,
	.acknowledge = bond_acknowledge,
	.device_cnt = bond_device_cnt,
	.rx_grow = bond_rx_grow,
	.stop = bond_stop,
	.take_back = bond_take_back,
	.close = bond_ring_close,
};

/* Any port may be the one that has to have room. */
static void narrow(struct ring *ring, const struct ring *port)
{
	if (port->tx_fits_max && (!ring->tx_fits_max ||
				  ring->tx_fits_max > port->tx_fits_max))
		ring->tx_fits_max = port->tx_fits_max;
}

/* What a ring is by the rings of its ports. */
static void describe(struct bond_ring *own)
{
	struct ring *ring = &own->ring;

	ring->fills_csum = ring->has_tags = true;
	FOR_EACH_PORT(i, own) {
		const struct ring *port = own->ports[i];

		ring->rx_post_max += port->rx_post_max;
		ring->needs_kick |= port->needs_kick;
		ring->needs_ack |= port->needs_ack;
		ring->dev_mem += port->dev_mem;
		ring->fills_csum &= port->fills_csum;
		ring->has_tags &= port->has_tags;
		narrow(ring, port);
	}
}

int bond_ring_create(struct dev *dev, struct pkt_pool *pool, struct ring **ring_out)
{
	struct bond_ring *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->bond = bond_of(dev);
	ring_ops_fill(&ops);
	own->ring.ops = &ops;
	own->ring.dev = dev;
	own->ring.pool = pool;
	own->ring.counts = &own->ring.own_counts;
	list_init(&own->ring.followed);
	/* each poll asks the ports whether they are quiet */
	ring_set_busy(&own->ring);
	FOR_EACH_PORT(i, own) {
		struct dev *port = own->bond->ports[i];
		int err = port->ops->ring_create(port, pool, &own->ports[i]);

		if (err) {
			end_first(own, i);
			return err;
		}
		/* Who kicks this ring kicks all ports at any moment, and none of them
		 * sees that. */
		atomic_store(&own->ports[i]->kick_state, 1);
	}
	pass_on(own);
	describe(own);
	gather(own);
	*ring_out = &own->ring;
	return 0;
}
