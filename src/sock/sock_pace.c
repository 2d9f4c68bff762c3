/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The forms of SO_MAX_PACING_RATE (sock_pace.h). */
#include "config.h"

#include "sock/sock_pace.h"

#include <errno.h>
#include <string.h>

#include "os/real.h"
#include "sock/user_msg.h"

/* Bytes a second in a thousand bits a second; and Linux's word for no limit. */
enum { BYTES_PER_KBIT = 1000 / 8 };
#define NO_LIMIT UINT64_MAX

static void read_vma(const void *value, struct sock_pace *out)
{
	struct sock_pace_vma vma;

	memcpy(&vma, value, sizeof(vma));
	out->is_set = vma.kbps && vma.kbps != UINT32_MAX;
	if (!out->is_set) {
		out->linux_rate = NO_LIMIT;
		return;
	}
	out->linux_rate = (uint64_t)vma.kbps * BYTES_PER_KBIT;
	out->pace = (struct ring_pace){ vma.kbps, vma.burst, vma.frame_len };
}

/* As Linux reads it: a long, or an int in which all bits are no limit. */
static void read_linux(const void *value, socklen_t len, struct sock_pace *out)
{
	uint32_t word;

	memcpy(&word, value, sizeof(word));
	out->linux_rate = word == UINT32_MAX ? NO_LIMIT : word;
	if (len >= sizeof(out->linux_rate))
		memcpy(&out->linux_rate, value, sizeof(out->linux_rate));
	out->is_set = out->linux_rate && out->linux_rate != NO_LIMIT;
	if (out->is_set)
		out->pace.kbps = (uint32_t)MIN(out->linux_rate / BYTES_PER_KBIT,
					       (uint64_t)UINT32_MAX);
}

bool sock_pace_read(const void *value, socklen_t len, struct sock_pace *out)
{
	*out = (struct sock_pace){ .is_set = false };
	if ((int)len < (int)sizeof(uint32_t) || !user_is_plausible(value, len))
		return false;
	if (len == sizeof(struct sock_pace_vma))
		read_vma(value, out);
	else
		read_linux(value, len, out);
	return true;
}

static int rate_of_twin(int fd, uint64_t *rate_out)
{
	socklen_t len = sizeof(*rate_out);

	*rate_out = NO_LIMIT;
	return real.getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, rate_out, &len) ?
		       -errno :
		       0;
}

bool sock_pace_is_twins(int fd, const struct sock_pace *pace)
{
	uint64_t rate;

	return rate_of_twin(fd, &rate) == 0 && rate == pace->linux_rate;
}

long sock_pace_get(struct sock *s, int fd, void *value)
{
	struct sock_pace_vma vma = { .kbps = 0 };
	uint64_t rate;
	int err;

	if (!user_is_plausible(value, sizeof(vma)))
		return -EFAULT;
	err = rate_of_twin(fd, &rate);
	if (err)
		return err;
	mutex_acquire(&s->config);
	if (rate != NO_LIMIT)
		vma.kbps = (uint32_t)MIN(rate / BYTES_PER_KBIT,
					 (uint64_t)UINT32_MAX);
	if (vma.kbps == s->pace.kbps) {
		vma.burst = s->pace.burst;
		vma.frame_len = s->pace.frame_len;
	}
	mutex_release(&s->config);
	memcpy(value, &vma, sizeof(vma));
	return 0;
}
