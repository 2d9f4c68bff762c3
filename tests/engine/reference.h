/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The other way to write TCP: one connection in as few ideas as possible, to be a
 * peer of the engine in the simulator. It keeps a bitmap of the bytes that came,
 * goes back to the start of what is unacknowledged after a fixed time, and shares
 * nothing with the engine but the option codec. It checks what the engine sends:
 * each byte, that none lies beyond what was granted, that nothing is acknowledged
 * that was not sent. And it may behave badly.
 */
#ifndef ENGINE_REFERENCE_H
#define ENGINE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;
struct reference;

/* Bad manners, each in millionths of the occasions that there are for it. */
struct reference_manners {
	/* forgets bytes out of order that it has reported by SACK */
	uint32_t renege_ppm;
	/* acknowledges a segment in several pieces */
	uint32_t split_ppm;
	/* leaves out an acknowledgment; the next tick makes up for it */
	uint32_t stretch_ppm;
	/* sends the same acknowledgment several times */
	uint32_t repeat_ppm;
	/* takes back what it had granted, or closes the window for a while */
	uint32_t shrink_ppm;
	/* sends what makes no sense: old and future numbers, impossible SACK
	 * blocks, options cut short, wrong checksums */
	uint32_t garbage_ppm;
	/* hears and says nothing for up to two seconds */
	uint32_t silence_ppm;
	/* from so many bytes on it is silent for ever; 0: never */
	uint64_t dies_after;
	/* what it says its MSS is; 0: 1460 */
	uint16_t mss;
	bool without_sack;
	bool without_ts;
	/* bytes it grants */
	uint32_t window;
};

/* Plays host `index`, 0 opens a connection to the other host's listener, 1 accepts
 * one. It sends so many bytes and expects so many. */
struct reference *reference_create(struct sim *sim, int index,
				   const struct reference_manners *manners,
				   uint64_t to_send, uint64_t expected);
void reference_destroy(struct reference *ref);

/* For the simulator: a packet has come, time has come, when that is. */
void reference_input(struct reference *ref, const uint8_t *packet, size_t len);
void reference_tick(struct reference *ref);
uint64_t reference_next_ns(const struct reference *ref);

/* All bytes and both ends of the streams have arrived. */
bool reference_is_done(const struct reference *ref);
uint64_t reference_received(const struct reference *ref);

#endif
