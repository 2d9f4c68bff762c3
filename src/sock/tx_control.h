/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the control messages of one send ask for, as far as we can do it. This is
 * pure memory work. The program may change its bytes meanwhile, so each one is read
 * once.
 */
#ifndef SOCK_TX_CONTROL_H
#define SOCK_TX_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

/* We leave longer control data to the kernel, since it is read under the stack's
 * lock. */
enum { TX_CONTROL_LEN_MAX = 256 };

struct tx_control {
	/* IP_PKTINFO gave a source; the any-address lets Linux's rules choose */
	bool has_source;
	struct ip_addr source;
	int ifindex; /* 0: the socket's */
	int tos;     /* -1: the socket's */
	int ttl;     /* 0: the socket's */
	/* SO_TIMESTAMPING says at which stations this one is stamped (tx_stamps.h) */
	bool has_stations;
	uint32_t stations;
	/* there are other messages, too */
	bool asks_else;
	/* the messages themselves, for a send by the twin */
	const void *bytes;
	size_t len;
};

/* Reads the control messages. False: there is a message that we do not serve, or
 * that Linux would refuse, so the call goes to the kernel. `is_v6`: the socket is of
 * AF_INET6, on which IPV6_PKTINFO may say the same. The caller has checked the
 * pointer. */
bool tx_control_read(const void *data, size_t len, bool is_v6,
		     struct tx_control *out) MUST_CHECK;

/* The priority (SO_PRIORITY) that Linux gives to a packet whose control messages say this
 * TOS. */
uint32_t tx_control_priority(uint8_t tos);

#endif
