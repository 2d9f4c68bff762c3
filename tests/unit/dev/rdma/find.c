/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The port of an interface, in trees like those of sysfs. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dev/rdma/find.h"
#include "os/real.h"
#include "tests/support/test.h"

static char root[] = "/tmp/rdma-find-XXXXXX";

/* Writes a file below the root, with all folders. */
static void put(const char *file, const char *text)
{
	char path[PATH_MAX];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	stream = fopen(path, "w");
	CHECK(stream);
	CHECK(fputs(text, stream) >= 0);
	CHECK_EQ(fclose(stream), 0);
}

static void begin(void)
{
	strcpy(strrchr(root, '-') + 1, "XXXXXX");
	CHECK(mkdtemp(root));
}

static void end(void)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK_EQ(system(command), 0);
}

TEST(port_by_its_address)
{
	begin();
	put("ports/1/gid_attrs/ndevs/0", "eth0\n");
	put("ports/2/gid_attrs/ndevs/0", "eth1\n");
	put("device/net/eth0/ifindex", "3\n");
	put("device/net/eth1/ifindex", "4\n");
	CHECK_EQ(rdma_find_port(root, 3, "eth0"), 1);
	CHECK_EQ(rdma_find_port(root, 4, "eth1"), 2);
	CHECK_EQ(rdma_find_port(root, 4, "eth"), 0);
	CHECK_EQ(rdma_find_port(root, 4, "eth10"), 0);
	end();
}

/* The name is that of an interface elsewhere. Where it is out of sight there is no number. */
TEST(another_namespace)
{
	begin();
	put("ports/1/gid_attrs/ndevs/0", "eth0\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 0);
	put("device/net/eth1/ifindex", "7\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 0);
	put("device/net/eth0/ifindex", "7\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 1);
	CHECK_EQ(rdma_find_port(root, 8, "eth0"), 0);
	end();
}

TEST(port_by_the_interfaces_number)
{
	begin();
	put("device/net/eth0/ifindex", "7\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 1);
	put("device/net/eth0/dev_port", "1\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 2);
	put("device/net/eth0/dev_port", "0x3\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 4);
	put("device/net/eth0/dev_port", "4096\n");
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 1);
	end();
}

/* What there is of a card whose two ports are one device of their bond (RoCE LAG): one
 * port, whose address is the bond's, and both interfaces below the card. */
TEST(device_of_a_whole_bond)
{
	begin();
	put("ports/1/gid_attrs/ndevs/0", "bond0\n");
	put("ports/1/gid_attrs/ndevs/1", "bond0\n");
	put("device/net/eth0/ifindex", "7\n");
	put("device/net/eth0/dev_port", "0\n");
	CHECK(rdma_is_bond(root, "bond0"));
	CHECK(!rdma_is_bond(root, "bond"));
	CHECK(!rdma_is_bond(root, "bond00"));
	CHECK(!rdma_is_bond(root, "eth0"));
	end();

	/* those of a bond's ports, each with its own */
	begin();
	put("ports/1/gid_attrs/ndevs/0", "eth0\n");
	put("ports/2/gid_attrs/ndevs/0", "eth1\n");
	put("device/net/eth0/ifindex", "7\n");
	CHECK(!rdma_is_bond(root, "bond0"));
	CHECK_EQ(rdma_find_port(root, 7, "eth0"), 1);
	end();
}

TEST(no_such_device)
{
	CHECK_EQ(rdma_find_port("/nonexistent", 1, "eth0"), 0);
	CHECK(!rdma_is_bond("/nonexistent", "bond0"));
}
