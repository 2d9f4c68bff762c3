/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices in memory, on a bad cable if the test wants one: the frames that one end
 * sends arrive at the other end, or at the same one. They are used by the engine
 * tests on a virtual clock, and in test builds of the library as the loopback
 * device of the process (VMA_TEST_LOCAL).
 */
#ifndef DEV_FAKE_FAKE_H
#define DEV_FAKE_FAKE_H

#include "dev/fake/impair.h"
#include "dev/ring.h"

struct fake_cable;

struct fake_cable_params {
	/* both directions */
	struct impair_params impair;
	uint64_t seed;
	/* The time; NULL: it stands still at 0, and delays never end. */
	const uint64_t *now_ns;
	/* Sees each frame that a device sends; NULL: nobody does. */
	void (*tap)(void *ctx, uint64_t now_ns, const void *frame, size_t len);
	void *tap_ctx;
};

/* NULL only without memory. */
struct fake_cable *fake_cable_create(const struct fake_cable_params *params)
	MUST_CHECK;
/* Its devices are closed. Frames in flight are dropped. */
void fake_cable_destroy(struct fake_cable *cable);
/* What the cable did to the frames sent by end 0 or 1. */
const struct impair_counts *fake_cable_counts(const struct fake_cable *cable,
					      int end);
/* When something arrives next; IMPAIR_NEVER: nothing is in flight. */
uint64_t fake_cable_next_ns(const struct fake_cable *cable);

struct fake_params {
	int ifindex;
	uint8_t mac[6];
	uint32_t mtu;
	uint32_t frame_cnt;
	uint32_t frame_size;
	/* Those of another device, which it has, too; NULL: it makes one. */
	const struct region_set *regions;
	/* Readable when frames have arrived; -1: nobody sleeps on it. */
	int fd;
	/* Called by kick, outside all locks, to make the other end's fd, or in
	 * a loop its own, readable; NULL: not needed. */
	void (*wake)(void *ctx);
	/* Called by arm, with locks held: the fd is not readable until the next
	 * wake. */
	void (*quiet)(void *ctx);
	void *wake_ctx;
	/* Gives a frame to the kernel; NULL: it cannot. */
	int (*give_back)(const void *frame, uint32_t len);
	/* When so many frames are on their way to the other end, the queue is full.
	 * 0: never. */
	uint32_t tx_max;
};

/* A device at end 0 or 1 of the cable. */
int fake_dev_create(struct fake_cable *cable, int end,
		    const struct fake_params *params, struct dev **dev_out)
	MUST_CHECK;
/* A device that hears itself: it is both ends of the cable. */
int fake_dev_create_loop(struct fake_cable *cable,
			 const struct fake_params *params,
			 struct dev **dev_out) MUST_CHECK;

/* Frames that no rule named; a real device leaves them to the kernel. */
uint64_t fake_dev_unmatched_cnt(const struct dev *dev);

/* Frames that its rings have been given. */
uint64_t fake_dev_rx_cnt(const struct dev *dev);

#endif
