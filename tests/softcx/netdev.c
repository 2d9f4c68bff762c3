/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking the kernel about an interface; see netdev.h. */
#include "config.h"

#include "netdev.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sys.h"

static int query(int fd, struct ifreq *req, struct netdev *netdev)
{
	int ret = sys_ioctl(fd, SIOCGIFINDEX, req);

	if (ret)
		return ret;
	netdev->ifindex = req->ifr_ifindex;
	ret = sys_ioctl(fd, SIOCGIFHWADDR, req);
	if (ret)
		return ret;
	memcpy(netdev->mac, req->ifr_hwaddr.sa_data, sizeof(netdev->mac));
	ret = sys_ioctl(fd, SIOCGIFMTU, req);
	if (ret)
		return ret;
	netdev->mtu = (unsigned int)req->ifr_mtu;
	ret = sys_ioctl(fd, SIOCGIFFLAGS, req);
	if (ret)
		return ret;
	netdev->is_running = (req->ifr_flags & (IFF_UP | IFF_RUNNING)) ==
			     (IFF_UP | IFF_RUNNING);
	if (sys_ioctl(fd, SIOCGIFADDR, req) == 0) {
		struct sockaddr_in addr;

		memcpy(&addr, &req->ifr_addr, sizeof(addr));
		netdev->ipv4_be = addr.sin_addr.s_addr;
	}
	return 0;
}

int netdev_query(const char *ifname, struct netdev *netdev_out)
{
	struct ifreq req = { 0 };
	int fd, ret;

	*netdev_out = (struct netdev){ 0 };
	strncpy(req.ifr_name, ifname, sizeof(req.ifr_name) - 1);
	fd = sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	ret = query(fd, &req, netdev_out);
	sys_close(fd);
	return ret;
}

int netdev_monitor_open(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK,
	};
	int fd = sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			    NETLINK_ROUTE);
	int ret;

	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &addr, sizeof(addr));
	if (ret) {
		sys_close(fd);
		return ret;
	}
	return fd;
}

void netdev_monitor_drain(int fd)
{
	char buf[4096];
	ssize_t len;

	/* ENOBUFS means news were lost, which is news as well. */
	do {
		len = sys_read(fd, buf, sizeof(buf));
	} while (len > 0 || len == -ENOBUFS);
}
