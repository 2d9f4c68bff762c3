/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way back for frames. A frame that was received here goes into the kernel's
 * stack as if it had just come by its interface, whatever device and protocol it is
 * of. It does not pass our own steering program a second time, although the rules of
 * that program may still name it (STEER_SIGHT_GSO). A device with caps.takes_given must
 * have no rule for the frame any more, or one that leaves it to the kernel.
 *
 * The kernel takes only short frames, and verifies checksums. So we cut longer
 * frames, TCP into segments and UDP into fragments, and complete a checksum that was
 * left to a card.
 */
#ifndef NET_GIVE_BACK_H
#define NET_GIVE_BACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "pkt/wire.h"

enum {
	/* The longest frame that we give to the kernel: half a page. */
	GIVE_BACK_LEN_MAX = 2048,
	/* So many bytes of tags a frame may have, and how long it is with them. */
	GIVE_BACK_TAGS_LEN = 2 * sizeof(struct wire_vlan),
	GIVE_BACK_TAGGED_MAX = GIVE_BACK_LEN_MAX + GIVE_BACK_TAGS_LEN,
};

/* The tags of VLANs that a frame has: what lies between the addresses and the type. */
struct give_back_tags {
	uint32_t len; /* 0: none */
	uint8_t bytes[GIVE_BACK_TAGS_LEN];
};

/* The door: a BPF program that lets every frame through to the kernel. */
struct give_back {
	_Atomic int prog;
};

/* Loads the program, for which this process has the rights, or another one keeps them.
 * If it fails, or was not done, give_back_frame returns -EPERM. */
void give_back_open(struct give_back *door);
void give_back_close(struct give_back *door);

/*
 * Gives one Ethernet frame back, which has IPv4 and UDP or TCP. It is in one piece,
 * and is overwritten. It comes without its tags, and gets these. `may_be_partial`: the
 * checksum may cover the pseudo header alone. -EPERM: there is no door. -EBADMSG: the
 * frame is damaged. -EMSGSIZE: it can be given neither whole nor in pieces. Else the
 * kernel's answer; Linux before 5.18 has no such call and says -EINVAL.
 */
int give_back_frame(const struct give_back *door, int ifindex,
		    const struct give_back_tags *tags, uint8_t *frame,
		    uint32_t len, bool may_be_partial) MUST_CHECK;

/* The tag of a VLAN, with this word. */
struct give_back_tags give_back_tag_of(uint16_t tci);

/* Takes the tags off a frame, in its memory, and returns where it begins then, so many
 * bytes behind the beginning. More tags than there is room for it keeps. */
uint8_t *give_back_untag(uint8_t *frame, uint32_t len, struct give_back_tags *tags_out);

/* The parts without I/O. The first calls `emit` with each piece, until that fails; the
 * second writes a piece with tags to `to`, and returns its length. */
int give_back_cut(uint8_t *frame, uint32_t len, bool may_be_partial,
		  int (*emit)(void *ctx, const uint8_t *piece, uint32_t len),
		  void *ctx) MUST_CHECK;
uint32_t give_back_tag(uint8_t to[GIVE_BACK_TAGGED_MAX], const uint8_t *piece,
		       uint32_t len, const struct give_back_tags *tags);

#endif
