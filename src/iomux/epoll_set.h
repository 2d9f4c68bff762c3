/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An epoll set with sockets of ours in it. The kernel's set has them too, by their
 * twins, and knows whether they can be written to and what the kernel has brought;
 * this one knows what our own queues have.
 */
#ifndef IOMUX_EPOLL_SET_H
#define IOMUX_EPOLL_SET_H

#include "fd/fd_ops.h"

/* Whether the object is such a set; then it is about to be waited for as a whole,
 * which the kernel can do only with kernel sockets: ours in it go back there. */
void epoll_set_is_nested(struct fd_object *obj);

void poll_forked(void);

#endif
