/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the parts of the simulated network. */
#ifndef TESTS_ENGINE_SIM_INSIDE_H
#define TESTS_ENGINE_SIM_INSIDE_H

#include "tests/engine/sim.h"
#include "tests/support/test.h"

enum { SIM_BUF_SIZE = 2048 };

#define SIM_CHECK(sim, cond)                                                 \
	do {                                                                 \
		if (!(cond))                                                 \
			FAIL("seed %" PRIu64 " at %" PRIu64 " ns: not so: %s", \
			     (sim)->seed, (sim)->now_ns, #cond);             \
	} while (0)

/* All connections of a host move, or somebody tries in vain to move them. Between events, so
 * that nobody holds what moves. */
void sim_move_all(struct sim_host *host);

/* What is so at any time of every pcb there is: in use, half-open, waiting to be accepted,
 * given back. */
void sim_check_invariants(struct sim_host *host);

#endif
