/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long a wait polls before it sleeps. VMA_SELECT_POLL says how long it may. A
 * program that wakes for timers, and finds nothing of ours, would spend that time
 * at each wake-up. So after a few waits in a row that brought nothing, each further
 * wait polls half as long as the one before, down to nothing, until something of
 * ours comes again. The code is pure.
 */
#ifndef IOMUX_MUX_SPIN_H
#define IOMUX_MUX_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* The number of waits in vain after which the time begins to shrink. */
enum { MUX_SPIN_PATIENCE = 4 };

/* Of one thread. */
struct mux_spin {
	unsigned waits_in_vain;
};

/* How long the next wait may poll, at most `ns`. */
static inline uint64_t mux_spin_ns(const struct mux_spin *spin, uint64_t ns)
{
	unsigned halvings = spin->waits_in_vain <= MUX_SPIN_PATIENCE ?
				    0 :
				    spin->waits_in_vain - MUX_SPIN_PATIENCE;

	return halvings < 64 ? ns >> halvings : 0;
}

/* To be called when a wait has ended. A call that found something at its first look
 * has not waited. */
static inline void mux_spin_learn(struct mux_spin *spin, bool brought_ours)
{
	if (brought_ours)
		spin->waits_in_vain = 0;
	else if (spin->waits_in_vain < MUX_SPIN_PATIENCE + 64)
		spin->waits_in_vain++;
}

#endif
