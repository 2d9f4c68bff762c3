/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counting receive queues (queues.h). */
#include "config.h"

#include "dev/xdp/queues.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "dev/xdp/ethtool.h"
#include "os/file.h"

#define SYS_NET "/sys/class/net/"

/* Whether a file of the interface in sysfs has this line. */
static bool says(const char *name, const char *file, const char *line)
{
	char path[96], text[64];
	ssize_t len;

	snprintf(path, sizeof(path), SYS_NET "%s/%s", name, file);
	len = file_peek(path, text, sizeof(text));
	return len > 0 && (size_t)len == strlen(line) &&
	       memcmp(text, line, (size_t)len) == 0;
}

/* What is mounted at /sys may show another network namespace, where another interface
 * has the name. */
static bool is_shown(const struct queues_of *of, const char *name)
{
	const uint8_t *m = of->mac;
	char index[16], mac[24];

	snprintf(index, sizeof(index), "%d\n", of->ifindex);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x\n", m[0], m[1],
		 m[2], m[3], m[4], m[5]);
	return says(name, "ifindex", index) && says(name, "address", mac);
}

/* The kernel makes and removes these files as queues come and go, of each device. */
static uint32_t count_files(const char *name, uint32_t limit)
{
	uint32_t cnt = 0;
	char path[96];

	for (; cnt <= limit; cnt++) {
		snprintf(path, sizeof(path), SYS_NET "%s/queues/rx-%u", name, cnt);
		if (!file_is_there(path))
			break;
	}
	return cnt;
}

uint32_t queues_count(const struct queues_of *of, uint32_t limit)
{
	char name[IF_NAMESIZE];
	uint32_t cnt = 0;

	if (of->max == 1)
		return 1;
	if (ethtool_name(of->ifindex, name) == 0 && is_shown(of, name))
		cnt = count_files(name, limit);
	/* not all drivers say it here: a bond's and that of a tap do not */
	if (!cnt)
		cnt = ethtool_queue_cnt(of->ifindex);
	return MIN(cnt, limit + 1);
}
