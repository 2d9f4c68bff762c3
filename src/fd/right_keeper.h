/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that keeps rights for this one, which is about to give them up: those to give
 * connections back to the kernel (sock/tcp_right.h), and to drive interfaces
 * (dev/xdp/steer_load.h). It is the program tools/vma_way_back; os/keeper_abi.h has what it
 * does. The program does not notice it: it has no descriptor of it, hears of no child. The
 * keeper is there for the children of the process, too, and ends with the last of them.
 */
#ifndef FD_RIGHT_KEEPER_H
#define FD_RIGHT_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "os/keeper_abi.h"

/* Starts it, if there is none; `find_program` finds a program that is installed beside the
 * library. 0, or why there will be none: -ECHILD in a process that adopts orphans, which
 * would get it as a child. */
int right_keeper_start(bool (*find_program)(const char *name, char *path, size_t size))
	MUST_CHECK;
bool right_keeper_is_there(void);

/*
 * Asks it. `fds` go with the request, and on success the caller owns `fds_out`; how many
 * there are is the op's (os/keeper_abi.h). The keeper's answer, or -EPERM when there is none:
 * nobody keeps the rights, or those for another network namespace than this one. Without the
 * stack's lock; it may wait.
 */
int right_keeper_ask(const struct keeper_request *request, const int *fds, int *fds_out)
	MUST_CHECK;

/* Tells it what it does not answer, in the network namespace of this number (os/netns.h).
 * Never waits. -EAGAIN: not now. -EPERM: as above. */
int right_keeper_tell(const struct keeper_request *request, uint64_t netns) MUST_CHECK;

/* For an op that gives one descriptor: that, or a negative errno. */
static inline int right_keeper_ask_one(const struct keeper_request *request, const int *fds)
{
	int fd, err = right_keeper_ask(request, fds, &fd);

	return err ? err : fd;
}

/* In the child of a fork, before the internal fds are closed, and after that. */
void right_keeper_forked_first(void);
void right_keeper_forked(void);

#endif
