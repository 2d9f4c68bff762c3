/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of socket options. */
#include "config.h"

#include "sock/sock_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "sock/user_msg.h"

/* These options are newer than some C libraries, and than some headers of the
 * kernel. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#define SO_BUSY_POLL_BUDGET 70
#endif

/* The time stamps of sent packets that we do not make: when a card says that it is done
 * (SOF_TIMESTAMPING_TX_COMPLETION). */
enum { SOCK_OPTION_DONE_STAMPS = 1 << 18 };

enum { UDP = SOCK_OPTION_UDP, TCP = SOCK_OPTION_TCP };

#define IF_NEVER .kernel_if = SOCK_OPTION_IF_NEVER
#define IF_ALWAYS .kernel_if = SOCK_OPTION_IF_ALWAYS
#define IF_NOT(n) .kernel_if = SOCK_OPTION_IF_NOT, .operand = (n)
#define IF_FULL .kernel_if = SOCK_OPTION_IF_FULL
#define IF_BITS(n) .kernel_if = SOCK_OPTION_IF_BITS, .operand = (n)

const struct sock_option sock_options[] = {
#define SOCK_OPTION(level_, name_, class_, protocols_, if_, about_) \
	{ .level = level_,                                          \
	  .number = name_,                                          \
	  .name = #name_,                                           \
	  .about = about_,                                          \
	  .class = SOCK_OPTION_##class_,                            \
	  .protocols = protocols_,                                  \
	  IF_##if_ },
#include "sock/sock_options.def"
	{ .name = NULL },
};

/* Level and number of each line, in its order: what is looked through lies together. */
#define KEY(level, number) ((uint32_t)(level) << 16 | (uint32_t)(number))
static const uint32_t keys[] = {
#define SOCK_OPTION(level_, name_, class_, protocols_, if_, about_) KEY(level_, name_),
#include "sock/sock_options.def"
};

const struct sock_option *sock_option_find(int proto, int level, int number)
{
	unsigned bit = proto == IPPROTO_TCP ? SOCK_OPTION_TCP : SOCK_OPTION_UDP;
	uint32_t key = KEY(level, number);

	if ((unsigned)level > UINT16_MAX || (unsigned)number > UINT16_MAX)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i] == key && sock_options[i].protocols & bit)
			return &sock_options[i];
	return NULL;
}

/* Reads a number as Linux does: a value shorter than an int counts as one byte. */
static int number_of(const void *value, socklen_t len)
{
	int number = 0;

	if (user_is_plausible(value, len))
		memcpy(&number, value,
		       len < sizeof(number) ? MIN(len, 1U) : sizeof(number));
	return number;
}

bool sock_option_is_kernels(const struct sock_option *option, const void *value,
			    socklen_t len)
{
	if (!option)
		return true;
	switch ((enum sock_option_if)option->kernel_if) {
	case SOCK_OPTION_IF_NEVER:
		return false;
	case SOCK_OPTION_IF_NOT:
		return number_of(value, len) != option->operand;
	case SOCK_OPTION_IF_FULL:
		return len > 0;
	case SOCK_OPTION_IF_BITS:
		return number_of(value, len) & option->operand;
	default:
		return true;
	}
}

void sock_option_describe(const struct sock_option *option, int level, int number,
			  char detail[STATS_DETAIL_SIZE])
{
	if (option)
		snprintf(detail, STATS_DETAIL_SIZE, "%s: %s", option->name,
			 option->about);
	else
		snprintf(detail, STATS_DETAIL_SIZE, "level %d, option %d", level,
			 number);
}
