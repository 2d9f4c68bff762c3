/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What SO_MAX_PACING_RATE says: Linux's number of bytes a second, or VMA's struct
 * vma_rate_limit_t, which its length gives away. The twin has the rate in Linux's form.
 */
#ifndef SOCK_SOCK_PACE_H
#define SOCK_SOCK_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "dev/ring.h"
#include "sock/sock.h"

/* struct vma_rate_limit_t of vma_extra.h. */
struct sock_pace_vma {
	uint32_t kbps; /* 0: none */
	uint32_t burst;
	uint16_t frame_len;
};
_Static_assert(sizeof(struct sock_pace_vma) == 12, "as programs have it");

struct sock_pace {
	/* there is one, and what that is; 0 kbps is less than a device can keep */
	bool is_set;
	struct ring_pace pace;
	/* the same for Linux, in bytes a second */
	uint64_t linux_rate;
};

static inline bool sock_pace_is_vma(int level, int name, socklen_t len)
{
	return level == SOL_SOCKET && name == SO_MAX_PACING_RATE &&
	       len == sizeof(struct sock_pace_vma);
}

/* Reads the value of the option. False: Linux is to refuse it. */
bool sock_pace_read(const void *value, socklen_t len, struct sock_pace *out);

/* Whether the twin still has that rate, and no other thread has set another one. */
bool sock_pace_is_twins(int fd, const struct sock_pace *pace);
/* getsockopt() in VMA's form. */
long sock_pace_get(struct sock *s, int fd, void *value) MUST_CHECK;

#endif
