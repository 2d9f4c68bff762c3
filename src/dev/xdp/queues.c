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
static bool has_file(const char *name, uint32_t queue)
{
	char path[96];

	snprintf(path, sizeof(path), SYS_NET "%s/queues/rx-%u", name, queue);
	return file_is_there(path);
}

static uint32_t count_files(const char *name, uint32_t limit)
{
	uint32_t cnt = 0;

	while (cnt <= limit && has_file(name, cnt))
		cnt++;
	return cnt;
}

uint32_t queues_count(struct queues_of *of, uint32_t limit)
{
	char name[IF_NAMESIZE];
	uint32_t cnt = 0;

	if (of->max == 1)
		return 1;
	if (ethtool_name(-1, of->ifindex, name) == 0 && is_shown(of, name))
		cnt = count_files(name, limit);
	of->is_in_sys = cnt;
	/* not all drivers say it here: a bond's and that of a tap do not */
	if (!cnt)
		cnt = ethtool_queue_cnt(-1, of->ifindex);
	return MIN(cnt, limit + 1);
}

bool queues_may_be_more(const struct queues_of *of, int by, uint32_t cnt)
{
	char name[IF_NAMESIZE];

	if (of->max == 1)
		return false;
	if (!of->is_in_sys)
		return ethtool_queue_cnt(by, of->ifindex) > cnt;
	return ethtool_name(by, of->ifindex, name) == 0 && has_file(name, cnt);
}
