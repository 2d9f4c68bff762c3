/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings of io_uring in the process. The kernel reads for them from the twins of our
 * sockets, where what we have received is not, and no call of theirs passes by us. So
 * as soon as one is seen, all sockets are the kernel's.
 */
#ifndef CORE_RINGS_H
#define CORE_RINGS_H

#include <stdbool.h>

#include "conf/options.h"

/* Before the first look. */
void rings_configure(enum io_uring_wish wish);

/* Whether there is one: looks for it at most once a second, less often where the
 * process has many fds. Once seen it counts for ever. Any thread; takes no lock. */
bool rings_look(void);

/* The same, as of the last look. */
bool rings_are_there(void);

/* The program has made one. */
void rings_note(void);

#endif
