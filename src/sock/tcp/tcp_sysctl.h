/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The system's settings of TCP (net.ipv4.tcp_*), which the engine follows. */
#ifndef SOCK_TCP_TCP_SYSCTL_H
#define SOCK_TCP_TCP_SYSCTL_H

#include "tcp/tcp.h"

/* The keys of Fast Open's cookies that the kernel has for all listeners, as root may read
 * them. Returns how many there are. */
unsigned tcp_sysctl_fastopen_keys(struct hash_key keys[TCP_FASTOPEN_KEYS]);
/* The defaults, with what the system says at this moment. What cannot be read stays at
 * its default. */
void tcp_sysctl_read(struct tcp_params *params);

#endif
