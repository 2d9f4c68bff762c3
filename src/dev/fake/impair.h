/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One direction of a bad link: frames go in, and come out late, twice, damaged,
 * in another order, marked, or never. Which of these is decided by a seed and by
 * the times the caller gives, nothing else, so that a run can be repeated.
 *
 * The path of a frame, in this order:
 *
 *   mtu -> loss (random, burst, Gilbert-Elliott) -> queue limit -> CE mark
 *       -> rate -> corruption -> delay and jitter -> reordering -> duplication
 *
 * Used by the fake ring, the simulators and the link emulators. No I/O, no
 * clock, no locking: one object belongs to one thread at a time.
 */
#ifndef DEV_FAKE_IMPAIR_H
#define DEV_FAKE_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Nothing is in flight: what impair_next_ns says then. */
#define IMPAIR_NEVER UINT64_MAX

/* All zero is a perfect link of no delay and infinite rate. Probabilities are
 * in millionths, and independent for each frame unless said otherwise. */
struct impair_params {
	uint32_t loss_ppm;
	/* With burst_ppm a burst starts, and this frame and the next
	 * burst_cnt - 1 are lost. */
	uint32_t burst_ppm;
	uint32_t burst_cnt;
	/* Gilbert-Elliott: two states with loss rates of their own; before each
	 * frame the state may change. */
	uint32_t ge_to_bad_ppm;
	uint32_t ge_to_good_ppm;
	uint32_t ge_good_loss_ppm;
	uint32_t ge_bad_loss_ppm;
	uint32_t dup_ppm;
	/* One bit of the frame is flipped. */
	uint32_t corrupt_ppm;
	/* With reorder_ppm a frame is held back until 1 to reorder_cnt later
	 * ones (uniform) have overtaken it, or reorder_hold_ns have passed
	 * beyond its time (0: ten milliseconds). */
	uint32_t reorder_ppm;
	uint32_t reorder_cnt;
	uint64_t reorder_hold_ns;
	/* Constant delay plus a uniform part in [0, jitter_ns]. Jitter alone
	 * does not reorder unless jitter_reorders. */
	uint64_t delay_ns;
	uint64_t jitter_ns;
	bool jitter_reorders;
	/* Bits per second; 0 is infinite, and then nothing queues. */
	uint64_t rate_bps;
	/* Bytes added to each frame when it is serialised (preamble, gap). */
	uint32_t overhead_bytes;
	/* What may wait for the link, in bytes; more is dropped. 0 is
	 * unlimited. A frame finds room if anything at all waits less than
	 * this. */
	uint64_t queue_bytes;
	/* Congestion experienced is marked when at least this many bytes wait
	 * (0: off), and at random with mark_ppm. */
	uint64_t mark_queue_bytes;
	uint32_t mark_ppm;
	/* Larger frames are dropped, and reported so that a router can be
	 * played. 0 is unlimited. */
	uint32_t mtu_bytes;
};

/* What happened to a frame. Each frame is reported with exactly one of the
 * DROPPED_ bits or PASSED, and with any of the others that apply. */
enum impair_fate {
	IMPAIR_PASSED = 1 << 0,
	IMPAIR_DROPPED_LOSS = 1 << 1,
	IMPAIR_DROPPED_QUEUE = 1 << 2,
	IMPAIR_DROPPED_MTU = 1 << 3,
	IMPAIR_DUPLICATED = 1 << 4,
	IMPAIR_CORRUPTED = 1 << 5,
	IMPAIR_HELD = 1 << 6,
	IMPAIR_MARKED = 1 << 7,
};
#define IMPAIR_DROPPED \
	(IMPAIR_DROPPED_LOSS | IMPAIR_DROPPED_QUEUE | IMPAIR_DROPPED_MTU)

/* How the link handles what it carries. A frame is an opaque pointer; whoever
 * gets it back from impair_recv owns it. All members must be set; the calls come
 * from within impair_send, impair_set_params never calls. */
struct impair_ops {
	/* A second frame of the same content, or NULL: then there is no
	 * duplicate. */
	void *(*copy)(void *ctx, void *frame);
	/* Ends the life of a dropped frame, or at impair_destroy. */
	void (*drop)(void *ctx, void *frame);
	/* Inverts bit `bit` (0 is the lowest of the first byte). False if the
	 * frame refuses damage; it then passes whole. */
	bool (*flip)(void *ctx, void *frame, size_t bit);
	/* Sets congestion experienced. False if the frame is not capable; it is
	 * then passed, as RFC 3168 has queues drop only when full. */
	bool (*mark)(void *ctx, void *frame);
	/* Told once for each frame sent, before it is dropped or queued; fate
	 * is a set of enum impair_fate. */
	void (*report)(void *ctx, const void *frame, size_t len, unsigned fate);
};

/* Sums over the life of a link. */
struct impair_counts {
	uint64_t sent;
	uint64_t delivered; /* duplicates included */
	uint64_t lost;
	uint64_t queue_drops;
	uint64_t mtu_drops;
	uint64_t duplicated;
	uint64_t corrupted;
	uint64_t held;
	uint64_t marked;
};

struct impair;

/* NULL only without memory. The params are copied; ops must live on. */
struct impair *impair_create(const struct impair_params *params, uint64_t seed,
			     const struct impair_ops *ops, void *ctx)
	MUST_CHECK;
/* Drops what is still in flight. NULL is a no-op. */
void impair_destroy(struct impair *link);

/* Frames sent from now on meet the new conditions; those in flight keep their
 * times. */
void impair_set_params(struct impair *link, const struct impair_params *params);
const struct impair_params *impair_params(const struct impair *link);

/* Takes the frame in every case. `now_ns` never goes back between calls. */
void impair_send(struct impair *link, uint64_t now_ns, void *frame, size_t len);
/* The next frame whose time has come, owned by the caller, or NULL. */
void *impair_recv(struct impair *link, uint64_t now_ns, size_t *len_out)
	MUST_CHECK;
/* When impair_recv will next have one; IMPAIR_NEVER when nothing is in flight. */
uint64_t impair_next_ns(const struct impair *link);

/* Frames in flight, and bytes that still wait for the link. */
size_t impair_in_flight(const struct impair *link);
uint64_t impair_backlog_bytes(const struct impair *link, uint64_t now_ns);
const struct impair_counts *impair_counts(const struct impair *link);

/* For callers that deal in bytes: a frame as a counted copy on the heap, and the
 * ops for it. The context of these ops is not used. Marking expects an IPv4 or
 * IPv6 packet behind an Ethernet header. */
struct impair_bytes {
	size_t len;
	uint8_t data[];
};
extern const struct impair_ops impair_bytes_ops;
struct impair_bytes *impair_bytes_create(const void *data, size_t len)
	MUST_CHECK;
/* Marks CE in the IP packet at `ip` if it is ECN capable; fixes the IPv4 header
 * checksum. False if it is not. For the ops of other carriers. */
bool impair_mark_ip(uint8_t *ip, size_t len);

#endif
