/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds out whether the process has rings of io_uring. For them the kernel reads
 * from the twins of our sockets, where it does not find what we have received, and
 * it does so without a call that we could see. So as soon as we know of a ring, all
 * sockets go to the kernel.
 */
#ifndef CORE_RINGS_H
#define CORE_RINGS_H

#include <stdbool.h>

#include "conf/options.h"

/* Call it before the first look. */
void rings_configure(enum io_uring_wish wish);

/* Whether there is a ring. Looks for one at most once a second, and less often if
 * the process has many fds; one that takes the place of another fd is found within ten
 * looks. A ring at a number that we still take for a socket, since it was closed by a
 * system call of the program's own, is not found. Once a ring was found, the answer stays true. Any thread
 * may call it; it takes no lock. */
bool rings_look(void);

/* The answer of the last look. */
bool rings_are_there(void);

/* The program has made a ring. */
void rings_note(void);

#endif
