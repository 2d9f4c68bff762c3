/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to drivers (ethtool.h). */
#include "config.h"

#include "dev/xdp/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>

#include "os/real.h"

/* `command` begins with the number of the request, and takes the answer. */
static int ask(const char *name, void *command)
{
	struct ifreq request = { .ifr_data = command };
	int fd = real.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	err = real.ioctl(fd, SIOCETHTOOL, &request) == 0 ? 0 : -errno;
	real.close(fd);
	return err;
}

uint32_t ethtool_queue_cnt(const char *name)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	uint32_t cnt = 0;

	if (ask(name, &channels) == 0)
		cnt = channels.rx_count + channels.combined_count;
	return cnt ? cnt : 1;
}

bool ethtool_takes_tags(const char *name)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

	return ask(name, &flags) == 0 && flags.data & ETH_FLAG_RXVLAN;
}

int ethtool_set_takes_tags(const char *name, bool does_take)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };
	int err = ask(name, &flags);

	if (err)
		return err;
	flags.cmd = ETHTOOL_SFLAGS;
	flags.data &= ~(uint32_t)ETH_FLAG_RXVLAN;
	if (does_take)
		flags.data |= ETH_FLAG_RXVLAN;
	err = ask(name, &flags);
	if (err)
		return err;
	/* a driver may refuse without an error, so we look again */
	return ethtool_takes_tags(name) == does_take ? 0 : -EOPNOTSUPP;
}
