/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the card understands of an Ethernet frame: the fields that rules match,
 * and the checksums it computes and verifies. Pure functions over bytes.
 */
#ifndef SOFTCX_FRAME_H
#define SOFTCX_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum {
	FRAME_ETH_LEN = 14,
	FRAME_VLAN_LEN = 4,
	FRAME_MIN_LEN = 60,    /* without the check sequence */
	FRAME_MAX_LEN = 16384, /* storage for one frame */
};

/* Flags of TCP. */
enum {
	FRAME_TCP_FIN = 0x01,
	FRAME_TCP_SYN = 0x02,
	FRAME_TCP_RST = 0x04,
	FRAME_TCP_PSH = 0x08,
	FRAME_TCP_URG = 0x20,
	FRAME_TCP_CWR = 0x80,
};

enum frame_l3 { FRAME_L3_NONE = 0, FRAME_L3_IPV4 = 1, FRAME_L3_IPV6 = 2 };
enum frame_l4 { FRAME_L4_NONE = 0, FRAME_L4_TCP = 1, FRAME_L4_UDP = 2 };

/*
 * The fields of a frame, or of a rule's value or mask, as eight words that are
 * compared after masking. The kernel's filter builds the same from a frame, so
 * every change here has its counterpart in filter.c. What a frame does not have
 * is zero; a fragment has no l4 and no ports.
 */
struct frame_key {
	uint8_t dmac[6];
	uint16_t ether_type_be; /* behind the VLAN tag, if any */
	uint8_t smac[6];
	uint16_t vlan_be;       /* tag control information without CFI */
	uint8_t src[16];        /* IPv4: in the first four bytes */
	uint8_t dst[16];
	uint16_t sport_be;
	uint16_t dport_be;
	uint8_t proto;
	uint8_t tos;            /* traffic class */
	uint8_t ttl;            /* hop limit */
	uint8_t l3;             /* enum frame_l3 */
	uint8_t l4;             /* enum frame_l4 */
	uint8_t has_vlan;
	uint8_t pad[6];
};

enum { FRAME_KEY_WORDS = 8 };
_Static_assert(sizeof(struct frame_key) == FRAME_KEY_WORDS * 8, "eight words");

/* Where things are. Offsets are from the start of the frame. */
struct frame_info {
	struct frame_key key;
	size_t l3_offset;
	size_t l4_offset;    /* 0: no transport header the card knows */
	size_t ip_end;       /* end of the IP packet by its own length */
	bool is_fragment;
};

/* `frame` of `len` bytes may be anything. The second says whether it has a tag, which may be
 * one of 802.1ad. */
void frame_parse(const uint8_t *frame, size_t len, struct frame_info *info_out);
bool frame_has_tag(const uint8_t *frame, size_t len);

bool frame_key_matches(const struct frame_key *key,
		       const struct frame_key *value,
		       const struct frame_key *mask);

/* The verdicts of a receiving card. False also when there is no such header. */
bool frame_l3_is_ok(const uint8_t *frame, const struct frame_info *info);
bool frame_l4_is_ok(const uint8_t *frame, const struct frame_info *info);

/* Fill in the checksums, as a sending card does. Without such a header, no-ops. */
void frame_put_l3_csum(uint8_t *frame, const struct frame_info *info);
void frame_put_l4_csum(uint8_t *frame, const struct frame_info *info);

/*
 * Segmentation: the next segment of a large TCP frame. `header` is all up to
 * the payload, `payload` what this segment carries; writes the segment with
 * lengths, sequence number, flags and IP identification as segment number
 * `index` has them; checksums are left to the caller. Returns its length.
 */
size_t frame_segment(uint8_t *segment, const uint8_t *header, size_t header_len,
		     const uint8_t *payload, size_t payload_len,
		     size_t payload_offset, unsigned int index, bool is_last);

#endif
