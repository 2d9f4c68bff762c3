/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a socket option means for an accelerated socket: the lines of
 * sock_options.def as a table. sock_setsockopt.c acts on it.
 */
#ifndef SOCK_SOCK_OPTIONS_H
#define SOCK_SOCK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "stats/stats_abi.h"

/* The classes; sock_options.def explains them. The first two need no look at the settings. */
enum sock_option_class {
	SOCK_OPTION_HARMLESS,
	SOCK_OPTION_AT_CALL,
	SOCK_OPTION_FOLLOWED,
	SOCK_OPTION_ATTACH,
	SOCK_OPTION_KERNEL,
	SOCK_OPTION_FILTER,
};

enum sock_option_protocol {
	SOCK_OPTION_UDP = 1 << 0,
	SOCK_OPTION_TCP = 1 << 1,
};

enum sock_option_if {
	SOCK_OPTION_IF_NEVER,
	SOCK_OPTION_IF_ALWAYS,
	SOCK_OPTION_IF_NOT,
	SOCK_OPTION_IF_FULL,
	SOCK_OPTION_IF_BITS,
};

/* A line of sock_options.def. */
struct sock_option {
	int level, number;
	const char *name;
	const char *about;
	uint8_t class; /* enum sock_option_class */
	uint8_t protocols; /* bits of enum sock_option_protocol */
	uint8_t kernel_if; /* enum sock_option_if */
	int operand; /* of NOT and BITS */
};

/* The last entry has the name NULL. */
extern const struct sock_option sock_options[];

/* The entry of an option, for sockets of this protocol of IP. NULL: it has none, and
 * only the kernel can serve it, whatever its value. */
const struct sock_option *sock_option_find(int proto, int level, int number);

/* Whether the option, with a value that Linux has been able to read, sends the
 * socket back to the kernel. `option` may be NULL. */
bool sock_option_is_kernels(const struct sock_option *option, const void *value,
			    socklen_t len);

/* What the statistics tell of an option for which a socket went back; `option` may be
 * NULL. */
void sock_option_describe(const struct sock_option *option, int level, int number,
			  char detail[STATS_DETAIL_SIZE]);

#endif
