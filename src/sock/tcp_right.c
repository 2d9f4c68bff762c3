/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The right to switch TCP_REPAIR (tcp_right.h). */
#include "config.h"

#include "sock/tcp_right.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/log.h"
#include "fd/right_keeper.h"
#include "os/real.h"
#include "os/rights.h"
#include "sock/sock.h"

static bool is_always_wanted(void)
{
	return sock_params.right_keeper == SOCK_RIGHT_HELPER_ALWAYS;
}

bool tcp_right_is_kept(void)
{
	return right_keeper_is_there();
}

bool tcp_right_keep(void)
{
	int err;

	if (sock_params.right_keeper == SOCK_RIGHT_SELF || !rights_is_net_admin())
		return tcp_right_is_kept();
	err = right_keeper_start(sock_params.find_program);
	if (err)
		LOG_ONCE(LOG_LEVEL_WARNING, "TCP sockets are the kernel's%s: no helper can keep it (vma_way_back: %s)",
			 is_always_wanted() ?
				 ", since VMA_WAY_BACK=helper wants CAP_NET_ADMIN to be kept" :
				 " once the program has given up CAP_NET_ADMIN",
			 strerror(-err));
	return !err;
}

bool tcp_right_is_ready(void)
{
	return !is_always_wanted() || tcp_right_is_kept() || tcp_right_keep();
}

static int ask(int fd, int value)
{
	const struct keeper_request request = { .op = KEEPER_REPAIR, .value = value };

	return right_keeper_ask(&request, &fd, NULL);
}

static int switch_here(int fd, int value)
{
	return real.setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &value,
			       sizeof(value)) ?
		       -errno :
		       0;
}

/* Whichever is asked first, the other one does it if that cannot. */
int tcp_right_switch(int fd, int value)
{
	int err = is_always_wanted() ? ask(fd, value) : switch_here(fd, value);

	if (err != -EPERM)
		return err;
	return is_always_wanted() ? switch_here(fd, value) : ask(fd, value);
}
