/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds out whether the process has rings of io_uring, or contexts of AIO whose
 * submissions we do not see. For them the kernel reads from the twins of our sockets,
 * where it does not find what we have received, and it does so without a call that we
 * could see. So as soon as we know of one, all sockets go to the kernel.
 */
#ifndef CORE_RINGS_H
#define CORE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/options.h"

/* Call it before the first look. */
void rings_configure(enum io_uring_wish wish);

/* Whether there is a ring or such a context. Looks for one at most once a second, and
 * less often if the process has many fds or mappings; one that takes the place of
 * another fd, or of another process's context, is found within ten looks. A ring at a
 * number that we still take for a socket, since it was closed by a system call of the
 * program's own, is not found. Once one was found, the answer stays true. Any thread
 * may call it; it takes no lock. */
bool rings_look(void);

/* The answer of the last look. */
bool rings_are_there(void);

/* The program has made a ring. */
void rings_note(void);

/* The program is about to make a context of AIO by a call that we see, as we will see
 * what it submits. Then it has made it; 0: it has not. Calls come in pairs. */
void rings_context_begin(void);
void rings_context_end(uintptr_t context);
/* It has destroyed one. */
void rings_context_gone(uintptr_t context);

/* Called in the child of a fork. */
void rings_forked(void);

#endif
