/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The system's settings of TCP (tcp_sysctl.h). */
#include "config.h"

#include "sock/tcp/tcp_sysctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"

/* Up to `cnt` numbers of the sysctl; returns how many there were. */
static unsigned read_numbers(const char *name, long *numbers, unsigned cnt)
{
	char path[96], text[128], *at = text;
	unsigned found = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/%s", name);
	n = file_peek(path, text, sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	while (found < cnt) {
		char *end;
		long number = strtol(at, &end, 10);

		if (end == at)
			break;
		numbers[found++] = number;
		at = end;
	}
	return found;
}

/* Each has the least, the default and the most bytes of a buffer. */
static void read_buffers(struct tcp_params *params)
{
	long bytes[3];

	if (read_numbers("tcp_rmem", bytes, 3) == 3) {
		params->rcv_buf = (uint32_t)bytes[1];
		params->rcv_buf_max = (uint32_t)bytes[2];
	}
	if (read_numbers("tcp_wmem", bytes, 3) == 3) {
		params->snd_buf = (uint32_t)bytes[1];
		params->snd_buf_max = (uint32_t)bytes[2];
	}
}

/*
 * A peer whose end of a connection is in TIME_WAIT knows a new one between the same names by
 * its numbers, which follow from the secret and a clock. So the user's processes have one
 * secret, as all of a machine have the kernel's; with one each, every second such SYN would be
 * taken for an old one, and a new connection would stand still for a second.
 */
static void draw_secret(struct hash_key *secret)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/dev/shm/vma_secret.%u",
		 (unsigned)geteuid());
	err = file_secret(path, secret, sizeof(*secret));
	if (!err)
		return;
	log_dbg("%s can't be used (error %d): connections are numbered by a secret of this process",
		path, -err);
	if (getrandom(secret, sizeof(*secret), 0) != sizeof(*secret))
		secret->word[0] ^= clock_realtime_ns();
}

void tcp_sysctl_read(struct tcp_params *params)
{
	long n;

	tcp_params_init(params);
	draw_secret(&params->secret);
	read_buffers(params);
#define TCP_SYSCTL(name, member, value)            \
	if (read_numbers(#name, &n, 1) == 1)       \
		params->member = (value);
#include "sock/tcp/tcp_sysctl.def"
}

/* Four words of 32 bits with a dash between them are one key; a comma parts two. All zero:
 * there is none yet. */
unsigned tcp_sysctl_fastopen_keys(struct hash_key keys[TCP_FASTOPEN_KEYS])
{
	ssize_t n;
	char text[128], *at = text;
	unsigned cnt = 0;

	n = file_peek("/proc/sys/net/ipv4/tcp_fastopen_key", text,
		      sizeof(text) - 1);
	text[MAX(n, 0)] = '\0';
	while (cnt < TCP_FASTOPEN_KEYS) {
		uint64_t word[4];

		for (unsigned i = 0; i < ARRAY_LEN(word); i++) {
			char *end;

			word[i] = strtoul(at, &end, 16);
			if (end == at)
				return cnt;
			at = end + (*end == '-' || *end == ',');
		}
		keys[cnt].word[0] = word[0] | word[1] << 32;
		keys[cnt].word[1] = word[2] | word[3] << 32;
		if (!keys[cnt].word[0] && !keys[cnt].word[1])
			return cnt;
		cnt++;
	}
	return cnt;
}
