/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way back for frames: one that was received here goes into the kernel's stack as
 * if it had just come by its interface, whatever device and protocol it is of. It
 * does not pass our own steering program again, whose rules may still name it
 * (STEER_SIGHT_GSO; other programs look at rules alone, so that a device of theirs
 * has none for the frame any more, or one whose verdict is the kernel).
 *
 * The kernel takes short frames only, and verifies checksums. So longer ones are cut,
 * TCP into segments, UDP into fragments, and a checksum that was left to a card is
 * completed.
 */
#ifndef NET_GIVE_BACK_H
#define NET_GIVE_BACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* What the kernel is given at a time, at most: half a page. */
enum { GIVE_BACK_LEN_MAX = 2048 };

/* The door: a program that lets everything through. */
struct give_back {
	_Atomic int prog;
};

/* Opens it, which needs rights that may be gone later. Without, or when that fails,
 * give_back_frame says so. */
void give_back_open(struct give_back *door);
void give_back_close(struct give_back *door);

/*
 * An Ethernet frame with IPv4 and UDP or TCP, in one piece that may be written to.
 * `may_be_partial`: its checksum may be no more than the sum of the pseudo header.
 * -EPERM: there is no door; -EBADMSG: the frame is damaged; -EMSGSIZE: it can be
 * given neither whole nor in pieces; or the kernel's answer (Linux before 5.18 cannot,
 * -EINVAL).
 */
int give_back_frame(const struct give_back *door, int ifindex, uint8_t *frame,
		    uint32_t len, bool may_be_partial) MUST_CHECK;

/* The sans-IO part: calls `emit` with each piece, until it fails. */
int give_back_cut(uint8_t *frame, uint32_t len, bool may_be_partial,
		  int (*emit)(void *ctx, const uint8_t *piece, uint32_t len),
		  void *ctx) MUST_CHECK;

#endif
