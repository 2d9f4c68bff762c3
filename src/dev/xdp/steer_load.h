/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What takes rights of the steering program: loading and attaching it. A process that has
 * the rights does it itself; for one that has given them up, the process that keeps them
 * does, by the same functions (tools/vma_way_back). Everything else is done by fd.
 */
#ifndef DEV_XDP_STEER_LOAD_H
#define DEV_XDP_STEER_LOAD_H

#include <stdbool.h>

#include "base/compiler.h"
#include "os/keeper_abi.h"

/* What is loaded. The last three may be kept from another program. */
enum steer_fd {
	STEER_FD_PROG,
	STEER_FD_RULES,
	STEER_FD_QUEUES,
	STEER_FD_CONFIG,
	STEER_FD_COUNTS,
	STEER_FD_CNT,
	STEER_KEPT_CNT = STEER_FD_CNT - STEER_FD_QUEUES,
};
_Static_assert((int)STEER_FD_CNT == (int)KEEPER_FDS_MAX, "room for all");

/*
 * Whether libbpf would call its own functions. A program that exports some of the same names
 * (dnsdist has a bpf_prog_load(), which throws exceptions of C++) has libbpf and us call
 * its own instead.
 */
bool steer_load_is_possible(void);

/*
 * KEEPER_STEER. `kept`: the maps of the program that this one is to replace, from
 * STEER_FD_QUEUES on; only the other two are then made. On success the caller owns `fds`.
 * -EOPNOTSUPP: the kernel does not offer this sight; -EINVAL: there is no such program;
 * -EPERM and the like.
 */
int steer_load(const struct keeper_request *request, const int *kept, int *fds) MUST_CHECK;

/* The kernel's number of a program for frames; -EINVAL: it is none. */
int steer_load_id(int prog, uint32_t *id_out) MUST_CHECK;

/* KEEPER_ATTACH. The link's fd; -EBUSY: another program is there, or a negative errno. */
int steer_load_attach(const struct keeper_request *request, int prog) MUST_CHECK;

#endif
