/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who drives an interface: one process in a namespace, found by a socket with a
 * name that is made of the interface's number and dies with the process.
 */
#ifndef DEV_XDP_OWNER_H
#define DEV_XDP_OWNER_H

#include <stdatomic.h>

#include "base/compiler.h"

struct owner {
	_Atomic int fd;
};

/* 0: this process is the owner until owner_release. -EEXIST: `*pid_out` is, 0 if
 * it does not say. */
int owner_claim(struct owner *owner, int ifindex, int *pid_out) MUST_CHECK;
void owner_release(struct owner *owner);

#endif
