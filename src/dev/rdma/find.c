/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the port of an interface in sysfs (find.h). */
#include "config.h"

#include "dev/rdma/find.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/services.h"

enum { PORTS_MAX = 32, LINE_SIZE = 64 };

/* The first line of a file below `dir`, without its end. False: there is none. */
static bool read_line(char line[LINE_SIZE], const char *dir, const char *file)
{
	char path[PATH_MAX];
	ssize_t len;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return false;
	fd = real.open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	len = real.read(fd, line, LINE_SIZE - 1);
	real.close(fd);
	if (len <= 0)
		return false;
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* The number in a file of the interface's folder, which lies below the device's.
 * -1: there is no such folder. */
static long read_number(const char *dir, const char *name, const char *file)
{
	char below[LINE_SIZE], line[LINE_SIZE];

	snprintf(below, sizeof(below), "device/net/%s/%s", name, file);
	return read_line(line, dir, below) ? strtol(line, NULL, 0) : -1;
}

/* Whether the port's first address is the interface's. */
static bool is_port_of(const char *dir, unsigned port, const char *name)
{
	char file[LINE_SIZE], line[LINE_SIZE];

	snprintf(file, sizeof(file), "ports/%u/gid_attrs/ndevs/0", port);
	return read_line(line, dir, file) && strcmp(line, name) == 0;
}

bool rdma_is_bond(const char *dir, const char *name)
{
	return is_port_of(dir, 1, name);
}

unsigned rdma_find_port(const char *dir, int ifindex, const char *name)
{
	long number;

	/* The port's may be an interface of that name in another network namespace, which a
	 * container does not see. */
	if (read_number(dir, name, "ifindex") != ifindex)
		return 0;
	for (unsigned port = 1; port <= PORTS_MAX; port++)
		if (is_port_of(dir, port, name))
			return port;
	number = read_number(dir, name, "dev_port");
	return number >= 0 && number < PORTS_MAX ? (unsigned)number + 1 : 1;
}
