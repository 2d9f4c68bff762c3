/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the control messages of one send ask for, as far as we do it. Pure memory
 * work over bytes of the program, which it may change meanwhile: each is read
 * once.
 */
#ifndef SOCK_TX_CONTROL_H
#define SOCK_TX_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"

/* Longer control data is not for us; it is read under the stack's lock. */
enum { TX_CONTROL_LEN_MAX = 256 };

struct tx_control {
	/* IP_PKTINFO: the source, or any for Linux to choose */
	bool has_source;
	struct ip_addr source;
	int ifindex; /* 0: the socket's */
	int tos;     /* -1: the socket's */
	int ttl;     /* 0: the socket's */
};

/* False: there is a message that we do not serve, or that Linux would refuse, so
 * that the call is the kernel's. `is_v6`: the socket is of AF_INET6, which may say
 * the same by IPV6_PKTINFO. The caller has looked at the pointer. */
bool tx_control_read(const void *data, size_t len, bool is_v6,
		     struct tx_control *out) MUST_CHECK;

#endif
