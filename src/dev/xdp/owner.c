/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of who drives an interface (owner.h). */
#include "config.h"

#include "dev/xdp/owner.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/un.h>

#include "dev/xdp/xdp_priv.h"

/* Makes the name. Abstract names belong to the network namespace. */
static socklen_t name_of(int ifindex, struct sockaddr_un *addr)
{
	int len;

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	len = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1,
		       "libvma/xdp/%d", ifindex);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)len);
}

static int make_socket(void)
{
	return real.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			   0);
}

int owner_ask(int ifindex)
{
	int fd = make_socket();
	struct ucred cred = { .pid = 0 };
	socklen_t cred_len = sizeof(cred);
	struct sockaddr_un addr;
	socklen_t len = name_of(ifindex, &addr);

	if (fd < 0)
		return 0;
	if (real.connect(fd, (const struct sockaddr *)&addr, len) != 0)
		cred.pid = errno == EAGAIN ? -1 : 0;
	else if (real.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0)
		cred.pid = 0;
	real.close(fd);
	return cred.pid;
}

void owner_init(struct owner *owner)
{
	atomic_init(&owner->fd, -1);
}

/* They have been answered when they connected, but stay in the queue. Who only tries to accept
 * takes a number of the program's for a moment. */
static void forget_askers(int listener)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	int fd;

	while (real.poll(&pfd, 1, 0) == 1 &&
	       (fd = real.accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		real.close(fd);
}

void owner_claim(struct owner *owner, int ifindex)
{
	struct sockaddr_un addr;
	socklen_t len = name_of(ifindex, &addr);
	int fd;

	fd = atomic_load(&owner->fd);
	if (fd >= 0) {
		forget_askers(fd);
		return;
	}
	fd = make_socket();
	if (fd < 0)
		return;
	/* it listens so that others can ask who we are */
	if (real.bind(fd, (struct sockaddr *)&addr, len) != 0 ||
	    real.listen(fd, 16) != 0)
		real.close(fd);
	else
		(void)!xdp_adopt_fd(fd, &owner->fd);
}

void owner_release(struct owner *owner)
{
	if (atomic_load(&owner->fd) >= 0)
		services_close_fd(&owner->fd);
}
