/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's half of steering: two small BPF programs over one set of rules.
 * One on the interface's tcx hook makes frames that a rule claims invisible to
 * the kernel's stack; one on the wire's socket keeps all others out of the card. To
 * both, a frame that a program has given back to the kernel (dev/ring.h) is none that
 * a rule claims.
 * A third turns frames round that leave for the port's own MAC, the one it has
 * when the card is opened, and copies those that a card sends to a group. They belong to the process and die with it, however it
 * dies.
 */
#ifndef SOFTCX_FILTER_H
#define SOFTCX_FILTER_H

#include <stdbool.h>

#include "base/compiler.h"
#include "frame.h"

/* Different masks among the rules of one process and device. */
enum { FILTER_MAX_SHAPES = 16 };
/* The mark of frames that cards send (SO_MARK). */
enum { FILTER_CARD_MARK = 0x50f7c };

struct filter {
	struct frame_key shapes[FILTER_MAX_SHAPES];
	unsigned int n_users[FILTER_MAX_SHAPES]; /* entries with this mask */
	unsigned int n_shapes;                   /* high-water mark */
	int shapes_fd;
	int rules_fd;
	int link_fd;
	int wire_prog_fd;
	int drop_prog_fd;
	int loop_prog_fd;
	int loop_link_fd;
};

/* -ENOTSUP: the kernel has no tcx (Linux 6.6), or does not describe its types (BTF);
 * -EPERM: not root. */
MUST_CHECK int filter_open(struct filter *filter, int ifindex,
			   const uint8_t mac[6]);
void filter_close(struct filter *filter);

/* Claims what `value` under `mask` describes; when not `is_trap`, the kernel
 * still sees it. Each pair is added once: the caller counts. -ENOSPC: too many
 * different masks. */
MUST_CHECK int filter_add(struct filter *filter, const struct frame_key *value,
			  const struct frame_key *mask, bool is_trap);
void filter_remove(struct filter *filter, const struct frame_key *value,
		   const struct frame_key *mask);

/* What the program on the tcx hook says of a frame, by a dry run in the kernel:
 * 1 dropped, 0 passed, or negative errno. */
int filter_try(struct filter *filter, const void *frame, size_t len);

#endif
