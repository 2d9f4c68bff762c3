/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who switches TCP_REPAIR, for which the process needs CAP_NET_ADMIN: itself, as long as
 * it has the right; a helper from then on, which is started just before the right goes
 * (fd/right_keeper.h). With VMA_WAY_BACK=helper it is there from the first connection on,
 * and switches whenever it can.
 */
#ifndef SOCK_TCP_RIGHT_H
#define SOCK_TCP_RIGHT_H

#include <stdbool.h>

#include "base/compiler.h"

/* setsockopt(fd, TCP_REPAIR), by whoever has the right: 0 or a negative errno. Without a
 * lock but `config`; it may wait for the helper. */
int tcp_right_switch(int fd, int value) MUST_CHECK;

/* Starts the helper, if there is none and the process has the right. False: there will
 * be none, and the log says why. A process that adopts orphans has none. */
bool tcp_right_keep(void);
/* There is one. */
bool tcp_right_is_kept(void);
/* Before a socket becomes ours: there is a helper, if there always has to be one. */
bool tcp_right_is_ready(void);

#endif
