/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to drivers (ethtool.h). */
#include "config.h"

#include "dev/xdp/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "os/real.h"

/* Asks by `number` about the interface that the request names. Any socket will do. */
static int ask_kernel(int by, unsigned long number, struct ifreq *request)
{
	int fd = by >= 0 ? by : real.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = real.ioctl(fd, number, request) == 0 ? 0 : -errno;
	if (fd != by)
		real.close(fd);
	return err;
}

int ethtool_name(int by, int ifindex, char name[IF_NAMESIZE])
{
	struct ifreq request = { .ifr_ifindex = ifindex };
	int err = ask_kernel(by, SIOCGIFNAME, &request);

	if (!err)
		snprintf(name, IF_NAMESIZE, "%s", request.ifr_name);
	return err;
}

int ethtool_address(int ifindex, uint8_t mac[6])
{
	struct ifreq request = { .ifr_ifindex = 0 };
	int err = ethtool_name(-1, ifindex, request.ifr_name);

	if (!err)
		err = ask_kernel(-1, SIOCGIFHWADDR, &request);
	if (!err)
		memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	return err;
}

/* `command` begins with the number of the request, and takes the answer. */
static int ask_by(int by, int ifindex, void *command)
{
	struct ifreq request = { .ifr_data = command };
	int err = ethtool_name(by, ifindex, request.ifr_name);

	return err ? err : ask_kernel(by, SIOCETHTOOL, &request);
}

static int ask(int ifindex, void *command)
{
	return ask_by(-1, ifindex, command);
}

uint32_t ethtool_queue_cnt(int by, int ifindex)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	return ask_by(by, ifindex, &channels) == 0 ?
		       channels.rx_count + channels.combined_count :
		       0;
}

bool ethtool_takes_tags(int ifindex)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };

	return ask(ifindex, &flags) == 0 && flags.data & ETH_FLAG_RXVLAN;
}

int ethtool_set_takes_tags(int ifindex, bool does_take)
{
	struct ethtool_value flags = { .cmd = ETHTOOL_GFLAGS };
	int err = ask(ifindex, &flags);

	if (err)
		return err;
	flags.cmd = ETHTOOL_SFLAGS;
	flags.data &= ~(uint32_t)ETH_FLAG_RXVLAN;
	if (does_take)
		flags.data |= ETH_FLAG_RXVLAN;
	err = ask(ifindex, &flags);
	if (err)
		return err;
	/* a driver may refuse without an error, so we look again */
	return ethtool_takes_tags(ifindex) == does_take ? 0 : -EOPNOTSUPP;
}
