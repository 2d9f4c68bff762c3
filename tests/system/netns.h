/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network namespaces for tests: one that the test moves into, and peers that live as
 * long as a child process sleeps in them, so that nothing is left behind however
 * the test ends.
 */
#ifndef SYSTEM_NETNS_H
#define SYSTEM_NETNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

/* Moves the calling thread into a new namespace, with lo up. Skips the case when
 * the process may not. */
void netns_enter(void);

/* Nobody outside sees what this process mounts from now on, and it goes with it. */
void netns_mount_alone(void);

/* A namespace beside ours: its pid, for `ip link set ... netns PID`. It goes with
 * the process, or when the next peer is made. */
pid_t netns_make_peer(void);

/* Runs a command, by the shell, here or in the peer; fails the case when the
 * command fails. */
void netns_run(const char *fmt, ...) PRINTF_LIKE(1, 2);
void netns_run_in_peer(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The index of an interface here, which must exist. */
int netns_index(const char *name);

#endif
