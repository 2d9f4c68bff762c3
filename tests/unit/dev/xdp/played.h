/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring on AF_XDP (src/dev/xdp/ring.c), with a kernel that is played here: rings in memory,
 * and the system calls that would move frames.
 */
#ifndef UNIT_DEV_XDP_PLAYED_H
#define UNIT_DEV_XDP_PLAYED_H

#include "base/syscall_raw.h"

#include <unistd.h>

static long played_call(long number, long fd);
static int played_nap(void);
#define syscall_raw(number, a, b, c, d, e, f) played_call(number, a)
#define usleep(us) played_nap()

#include "dev/xdp/ring.c"

#include "tests/support/test.h"

enum { FRAMES = 64, FD = 42 };

/* -- the kernel ------------------------------------------------------------------ */

/* Of each queue; what is sent goes by the first. */
static struct played {
	/* what it knows of the rings */
	_Atomic uint32_t positions[4][2];
	_Atomic uint32_t flags[4];
	uint64_t offsets[8 * FRAMES];
	uint32_t fill_size;
	uint64_t done[FRAMES];
	struct xdp_desc descs[2][8 * FRAMES];
	/* frames that tx takes at a call, and the answer */
	uint32_t tx_takes;
	long tx_answer;
	unsigned tx_calls, rx_calls;
	/* the queue is another's for so many naps; who says that he has it */
	unsigned naps, busy_naps;
	int owner;
} kernels[2];
#define kernel kernels[0]

enum { RX, TX, FILL, DONE };

static long played_call(long number, long fd)
{
	CHECK_EQ(fd, FD);
	if (number == SYS_recvfrom) {
		kernel.rx_calls++;
		return 0;
	}
	CHECK_EQ(number, SYS_sendto);
	kernel.tx_calls++;
	kernel.positions[TX][1] += kernel.tx_takes;
	return kernel.tx_answer;
}

static void map(struct played *k, struct xsk_ring *ring, int which, uint32_t size,
		void *entries)
{
	*ring = (struct xsk_ring){
		.producer = &k->positions[which][0],
		.consumer = &k->positions[which][1],
		.flags = &k->flags[which],
		.entries = entries,
		.mask = size - 1,
		.size = size,
	};
}

static int played_nap(void)
{
	kernel.naps++;
	return 0;
}

int owner_ask(int ifindex UNUSED)
{
	return kernel.owner;
}

int xsk_create(struct xsk *xsk, const struct xsk_params *params)
{
	struct played *k = &kernels[params->queue];

	if (kernel.naps < kernel.busy_naps)
		return -EBUSY;
	atomic_store(&xsk->fd, FD);
	map(k, &xsk->rx, RX, 8 * FRAMES, k->descs[0]);
	map(k, &xsk->tx, TX, FRAMES, k->descs[1]);
	k->fill_size = params->fill_size;
	map(k, &xsk->fill, FILL, params->fill_size, k->offsets);
	map(k, &xsk->done, DONE, FRAMES, k->done);
	return 0;
}

void xsk_destroy(struct xsk *xsk UNUSED)
{
}

int steer_set_queue(struct steer *steer UNUSED, uint32_t queue UNUSED,
		    int fd UNUSED)
{
	return 0;
}

static uint32_t posted_at(const struct played *k)
{
	return k->positions[FILL][0] - k->positions[FILL][1];
}

static uint32_t posted_cnt(void)
{
	return posted_at(&kernel);
}

/* Has sent the next frame that it was given. Where it was. */
static uint64_t send_out(void)
{
	uint32_t from = kernel.positions[TX][1]++;
	uint32_t to = kernel.positions[DONE][0]++;

	CHECK(from != kernel.positions[TX][0]);
	kernel.done[to % FRAMES] = kernel.descs[1][from % FRAMES].addr;
	return kernel.done[to % FRAMES];
}

/* -- the ring -------------------------------------------------------------------- */

static struct xdp_dev dev;
static struct xdp_ring *own;
static struct pkt_pool pool;

static uint32_t queue_cnt = 1;

/* Of so many frames, with so many to receive into at first. */
static void begin_with(uint32_t frames, uint32_t few)
{
	memset(kernels, 0, sizeof(kernels));
	memset(&dev, 0, sizeof(dev));
	dev.queue_cnt = queue_cnt;
	dev.rx_post_first = few;
	pkt_pool_init(&pool, 128);
	/* one for the next short datagram */
	CHECK_EQ(region_create(frames + 1, 2048, REGION_SMALL_PAGES,
			       &dev.dev.region),
		 0);
	CHECK_EQ(region_set_add(&dev.dev.regions, dev.dev.region), 0);
	xdp_ring_module();
	CHECK_EQ(xdp_ring_create(&dev, 0, &own), 0);
	xdp_ring_start(own, &pool);
	CHECK_EQ(posted_cnt(), MIN(few, queue_cnt == 1 ? frames / 2 :
							 frames / 8 * 3 / queue_cnt));
	CHECK_EQ(own->ring.rx_post_max, frames / 2);
}

static void begin(void)
{
	begin_with(FRAMES, 16000);
}

static void end(void)
{
	xdp_ring_destroy(own);
	region_give(dev.dev.region, &pool, UINT32_MAX);
	CHECK_EQ(region_free_cnt(dev.dev.region), dev.dev.region->frame_cnt);
	region_put(dev.dev.region);
}

static enum ring_kick kick(void)
{
	own->ring.wants_kick = false;
	return own->ring.ops->kick(&own->ring);
}

static void send_one(void)
{
	CHECK(own->ring.tx_frame);
	memset(own->ring.tx_frame, 0, RING_TX_FRAME_LEN);
	own->ring.ops->tx_commit(&own->ring, 60);
}

static unsigned put_all(struct pkt **batch, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		pkt_put(batch[i]);
	return cnt;
}

#endif
