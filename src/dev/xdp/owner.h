/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells others who drives an interface, by a socket with an abstract name that is
 * made of the interface's number. The name belongs to the network namespace and
 * vanishes with the process. Anybody may take it, so it proves nothing; the queues
 * do, since each belongs to one process at a time.
 */
#ifndef DEV_XDP_OWNER_H
#define DEV_XDP_OWNER_H

#include <stdatomic.h>

#include "base/compiler.h"

struct owner {
	/* -1: somebody else has the name */
	_Atomic int fd;
};

void owner_init(struct owner *owner);
/* Takes the name, if it is free. When we have it, makes room for more who ask; called
 * about once a second. */
void owner_claim(struct owner *owner, int ifindex);
void owner_release(struct owner *owner);

/* The process that has the name. 0: nobody has it, or it does not say; -1: somebody, whom
 * too many have asked. */
int owner_ask(int ifindex) MUST_CHECK;

#endif
