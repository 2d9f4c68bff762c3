/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to a driver that is played here. */
#include "config.h"

#include "dev/xdp/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>

#include "os/real.h"
#include "tests/support/test.h"

enum { CARD = 7 };

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 7 };

static struct {
	const char *name;
	uint32_t flags;
	bool is_fixed;
	uint32_t rx_cnt, combined_cnt;
	/* how often it was told something */
	unsigned set_cnt;
} driver;

static int answer(struct ethtool_channels *channels, struct ethtool_value *value)
{
	switch (value->cmd) {
	case ETHTOOL_GCHANNELS:
		channels->rx_count = driver.rx_cnt;
		channels->combined_count = driver.combined_cnt;
		return 0;
	case ETHTOOL_GFLAGS:
		value->data = driver.flags;
		return 0;
	case ETHTOOL_SFLAGS:
		driver.set_cnt++;
		if (!driver.is_fixed)
			driver.flags = value->data;
		return 0;
	default:
		errno = EOPNOTSUPP;
		return -1;
	}
}

static int played_ioctl(int fd UNUSED, unsigned long number, void *arg)
{
	struct ifreq *request = arg;

	if (number == SIOCGIFNAME) {
		CHECK_EQ(request->ifr_ifindex, CARD);
		snprintf(request->ifr_name, IF_NAMESIZE, "%s", driver.name);
		return 0;
	}
	CHECK_STR(request->ifr_name, driver.name);
	if (number == SIOCGIFHWADDR) {
		memcpy(request->ifr_hwaddr.sa_data, mac, sizeof(mac));
		return 0;
	}
	CHECK_EQ(number, SIOCETHTOOL);
	return answer((void *)request->ifr_data, (void *)request->ifr_data);
}

static void begin(void)
{
	memset(&driver, 0, sizeof(driver));
	driver.name = "card0";
	*(void **)&real.ioctl = (void *)(uintptr_t)played_ioctl;
}

TEST(queues_are_those_that_receive)
{
	begin();
	CHECK_EQ(ethtool_queue_cnt(-1, CARD), 0);
	driver.rx_cnt = 2;
	driver.combined_cnt = 4;
	CHECK_EQ(ethtool_queue_cnt(-1, CARD), 6);
}

TEST(an_address_is_told)
{
	uint8_t told[6];

	begin();
	CHECK_EQ(ethtool_address(CARD, told), 0);
	CHECK_MEM(told, mac, sizeof(mac));
}

TEST(tags_are_left_in_their_frames)
{
	begin();
	driver.flags = ETH_FLAG_LRO | ETH_FLAG_RXVLAN | ETH_FLAG_NTUPLE;
	CHECK(ethtool_takes_tags(CARD));
	CHECK_EQ(ethtool_set_takes_tags(CARD, false), 0);
	/* and nothing else has changed */
	CHECK_EQ(driver.flags, ETH_FLAG_LRO | ETH_FLAG_NTUPLE);
	CHECK(!ethtool_takes_tags(CARD));
	/* whatever it is called by then */
	driver.name = "uplink";
	CHECK_EQ(ethtool_set_takes_tags(CARD, true), 0);
	CHECK_EQ(driver.flags, ETH_FLAG_LRO | ETH_FLAG_RXVLAN | ETH_FLAG_NTUPLE);
	CHECK_EQ(driver.set_cnt, 2);
}

TEST(a_driver_that_goes_on_is_noticed)
{
	begin();
	driver.flags = ETH_FLAG_RXVLAN;
	driver.is_fixed = true;
	CHECK_EQ(ethtool_set_takes_tags(CARD, false), -EOPNOTSUPP);
	CHECK(ethtool_takes_tags(CARD));
}
