/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Network namespaces, by the numbers that the kernel gives them: never one twice. */
#ifndef OS_NETNS_H
#define OS_NETNS_H

#include <stdint.h>
#include <sys/socket.h>

#include "os/inside.h"
#include "os/real.h"

/* That of a socket. 0: the kernel does not say. */
static inline uint64_t netns_of(int fd)
{
	uint64_t cookie;
	socklen_t len = sizeof(cookie);

	return real.getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ?
		       cookie :
		       0;
}

/* The one in which this thread makes sockets. */
static inline uint64_t netns_here(void)
{
	int fd = real.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookie;

	if (fd < 0)
		return 0;
	cookie = netns_of(fd);
	inside_close(fd);
	return cookie;
}

#endif
