/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process's own /sys and /dev; see tree.h. */
#include "config.h"

#include "tree.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sys.h"

/* Numbers of the mount interface; the C library's header came later. */
enum { MOVE_CMD_CREATE = 6, FD_HIGH = 900, N_GIDS = 16 };

static int root_fd = -1;

int tree_fd(void)
{
	return root_fd;
}

static int mount_tmpfs(void)
{
	int fs = (int)SYS(__NR_fsopen, "tmpfs", 1), mount, high;

	if (fs < 0)
		return fs;
	mount = (int)SYS(__NR_fsconfig, fs, MOVE_CMD_CREATE);
	if (mount == 0)
		mount = (int)SYS(__NR_fsmount, fs, 1);
	sys_close(fs);
	if (mount < 0)
		return mount;
	/* Out of the way of programs that expect low numbers. */
	high = sys_fcntl(mount, F_DUPFD_CLOEXEC, FD_HIGH);
	if (high < 0)
		high = sys_fcntl(mount, F_DUPFD_CLOEXEC, 0);
	sys_close(mount);
	return high;
}

static void make_parents(char *path)
{
	for (char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		SYS(__NR_mkdirat, root_fd, path, 0755);
		*slash = '/';
	}
}

/* A file of one line, below the directory that `dir` names. */
static void put(const char *dir, const char *name, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
static void put(const char *dir, const char *name, const char *fmt, ...)
{
	char path[TREE_PATH_SIZE], line[256];
	va_list args;
	int fd, len;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	make_parents(path);
	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	line[len++] = '\n';
	fd = sys_openat(root_fd, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC,
			0644);
	if (fd < 0)
		return;
	sys_write(fd, line, (size_t)len);
	sys_close(fd);
}

static void put_link(const char *dir, const char *name, const char *target)
{
	char path[TREE_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	make_parents(path);
	SYS(__NR_symlinkat, target, root_fd, path);
}

static void put_node(const char *path)
{
	char copy[TREE_PATH_SIZE];

	snprintf(copy, sizeof(copy), "%s", path);
	make_parents(copy);
	SYS(__NR_mknodat, root_fd, path, S_IFCHR | 0666,
	    makedev(TREE_DEV_MAJOR, TREE_DEV_MINOR));
}

uint64_t tree_guid(const uint8_t mac[6])
{
	return (uint64_t)(mac[0] ^ 2) << 56 | (uint64_t)mac[1] << 48 |
	       (uint64_t)mac[2] << 40 | UINT64_C(0xfffe) << 24 |
	       (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 | mac[5];
}

static void format_guid(uint64_t guid, char text[20])
{
	snprintf(text, 20, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
}

static void put_gid(const char *port, unsigned int i, const char *gid,
		    const char *type, const char *ifname)
{
	char name[64];

	snprintf(name, sizeof(name), "gids/%u", i);
	put(port, name, "%s", gid);
	if (!type)
		return;
	snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
	put(port, name, "%s", type);
	snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
	put(port, name, "%s", ifname);
}

/* As the kernel fills the table: each address as RoCE v1 and v2. */
static void put_gids(const char *port, const struct tree_dev *dev)
{
	const char *ifname = dev->conf->ifname;
	char guid[20], gid[64];
	unsigned int i = 0;

	format_guid(tree_guid(dev->netdev.mac), guid);
	snprintf(gid, sizeof(gid), "fe80:0000:0000:0000:%s", guid);
	put_gid(port, i++, gid, "IB/RoCE v1", ifname);
	put_gid(port, i++, gid, "RoCE v2", ifname);
	if (dev->netdev.ipv4_be) {
		uint32_t ip = ntohl(dev->netdev.ipv4_be);

		snprintf(gid, sizeof(gid),
			 "0000:0000:0000:0000:0000:ffff:%04x:%04x", ip >> 16,
			 ip & 0xffff);
		put_gid(port, i++, gid, "IB/RoCE v1", ifname);
		put_gid(port, i++, gid, "RoCE v2", ifname);
	}
	while (i < N_GIDS)
		put_gid(port, i++, "0000:0000:0000:0000:0000:0000:0000:0000",
			NULL, NULL);
}

static void port_dir(const struct conf_dev *dev, char dir[TREE_DIR_SIZE])
{
	snprintf(dir, TREE_DIR_SIZE, "sys/class/infiniband/%s/ports/1",
		 dev->name);
}

void tree_set_port(const struct conf_dev *dev, bool is_active)
{
	char dir[TREE_DIR_SIZE];

	if (root_fd < 0)
		return;
	port_dir(dev, dir);
	put(dir, "state", "%s", is_active ? "4: ACTIVE" : "1: DOWN");
	put(dir, "phys_state", "%s", is_active ? "5: LinkUp" : "3: Disabled");
}

static void put_port(const struct tree_dev *dev)
{
	char dir[TREE_DIR_SIZE];

	port_dir(dev->conf, dir);
	put(dir, "link_layer", "Ethernet");
	put(dir, "rate", "100 Gb/sec (4X EDR)");
	put(dir, "lid", "0x0");
	put(dir, "lid_mask_count", "0");
	put(dir, "sm_lid", "0x0");
	put(dir, "sm_sl", "0");
	put(dir, "cap_mask", "0x00010000");
	put(dir, "pkeys/0", "0xffff");
	put_gids(dir, dev);
	tree_set_port(dev->conf, dev->netdev.is_running);
}

/* The PCI function behind the device. */
static void put_pci(const struct tree_dev *dev, unsigned int i)
{
	char dir[TREE_DIR_SIZE], name[128], target[128];

	snprintf(dir, sizeof(dir), "sys/devices/pci0000:a0/0000:a0:%02x.0", i);
	put(dir, "vendor", "0x15b3");
	put(dir, "device", "0x1017");
	put(dir, "subsystem_vendor", "0x15b3");
	put(dir, "subsystem_device", "0x0007");
	put(dir, "class", "0x020000");
	put(dir, "revision", "0x00");
	put(dir, "numa_node", "-1");
	put(dir, "local_cpus", "%x", (unsigned)-1);
	put(dir, "modalias", "pci:v000015B3d00001017sv000015B3sd00000007"
			     "bc02sc00i00");
	snprintf(name, sizeof(name), "net/%s/ifindex", dev->conf->ifname);
	put(dir, name, "%d", dev->netdev.ifindex);
	snprintf(name, sizeof(name), "net/%s/dev_port", dev->conf->ifname);
	put(dir, name, "0");
	snprintf(name, sizeof(name), "net/%s/dev_id", dev->conf->ifname);
	put(dir, name, "0x0");
	snprintf(name, sizeof(name), "infiniband/%s", dev->conf->name);
	snprintf(target, sizeof(target), "../../../../class/infiniband/%s",
		 dev->conf->name);
	put_link(dir, name, target);
	snprintf(name, sizeof(name), "infiniband_verbs/uverbs%u", i);
	snprintf(target, sizeof(target),
		 "../../../../class/infiniband_verbs/uverbs%u", i);
	put_link(dir, name, target);
}

static void put_device(const struct tree_dev *dev, unsigned int i)
{
	char dir[TREE_DIR_SIZE], guid[20], pci[128];

	snprintf(pci, sizeof(pci), "../../../devices/pci0000:a0/0000:a0:%02x.0",
		 i);
	snprintf(dir, sizeof(dir), "sys/class/infiniband/%s", dev->conf->name);
	format_guid(tree_guid(dev->netdev.mac), guid);
	put(dir, "node_type", "1: CA");
	put(dir, "node_guid", "%s", guid);
	put(dir, "sys_image_guid", "%s", guid);
	put(dir, "node_desc", "softcx %s", dev->conf->name);
	put(dir, "fw_ver", "16.28.2006");
	put(dir, "hca_type", "MT4119");
	put(dir, "hw_rev", "0");
	put(dir, "board_id", "SOFTCX0000001");
	put_link(dir, "device", pci);
	put_port(dev);

	snprintf(dir, sizeof(dir), "sys/class/infiniband_verbs/uverbs%u", i);
	put(dir, "ibdev", "%s", dev->conf->name);
	put(dir, "abi_version", "1");
	put(dir, "dev", "%d:%d", TREE_DEV_MAJOR, TREE_DEV_MINOR);
	put_link(dir, "device", pci);
	snprintf(dir, sizeof(dir), "dev/infiniband/uverbs%u", i);
	put_node(dir);
	put_pci(dev, i);
}

int tree_create(const struct tree_dev *devs, unsigned int n_devs)
{
	int fd = mount_tmpfs();

	if (fd < 0)
		return fd;
	root_fd = fd;
	put("sys/class/infiniband_verbs", "abi_version", "6");
	put("sys/class/misc/rdma_cm", "abi_version", "4");
	put("sys/class/misc/rdma_cm", "dev", "%d:%d", TREE_DEV_MAJOR,
	    TREE_DEV_MINOR);
	put_node("dev/infiniband/rdma_cm");
	SYS(__NR_mkdirat, root_fd, "sys/class/infiniband", 0755);
	for (unsigned int i = 0; i < n_devs; i++) {
		if (devs[i].netdev.ifindex)
			put_device(&devs[i], i);
	}
	return 0;
}

/* What follows the prefix in the path, or NULL when that is not a prefix made of
 * whole components. */
static const char *after(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(path, prefix, len) != 0)
		return NULL;
	return path[len] == '/' || !path[len] ? path + len : NULL;
}

static bool is_shown(const char *path)
{
	static const char *const prefixes[] = {
		"/sys/class/infiniband", "/sys/class/infiniband_verbs",
		"/sys/class/misc/rdma_cm", "/dev/infiniband",
		"/sys/devices/pci0000:a0",
	};

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (after(path, prefixes[i]))
			return true;
	}
	return false;
}

/* A path of an interface's own directory: a card's interface is not virtual, and
 * has a device behind it. */
static bool is_netdev(const char *path, const struct conf_dev *dev,
		      unsigned int i, char to[TREE_PATH_SIZE])
{
	char prefix[128];
	const char *rest;

	snprintf(prefix, sizeof(prefix), "/sys/devices/virtual/net/%s",
		 dev->ifname);
	if (after(path, prefix)) {
		snprintf(to, TREE_PATH_SIZE, "/proc/self/fd/%d%s", root_fd,
			 path);
		return true;
	}
	snprintf(prefix, sizeof(prefix), "/sys/class/net/%s/device",
		 dev->ifname);
	rest = after(path, prefix);
	if (!rest)
		return false;
	snprintf(to, TREE_PATH_SIZE,
		 "/proc/self/fd/%d/sys/devices/pci0000:a0/0000:a0:%02x.0%s",
		 root_fd, i, rest);
	return true;
}

bool tree_translate(const char *path, const struct conf *conf,
		    char to[TREE_PATH_SIZE])
{
	if (strlen(path) + 32 >= TREE_PATH_SIZE)
		return false;
	if (is_shown(path)) {
		snprintf(to, TREE_PATH_SIZE, "/proc/self/fd/%d%s", root_fd,
			 path);
		return true;
	}
	for (unsigned int i = 0; i < conf->n_devs; i++) {
		if (is_netdev(path, &conf->devs[i], i, to))
			return true;
	}
	return false;
}

bool tree_realpath(const char *translated, char to[TREE_PATH_SIZE])
{
	char link[64];
	int fd = sys_openat(AT_FDCWD, translated, O_PATH | O_CLOEXEC, 0);
	long len;

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = SYS(__NR_readlink, link, to, TREE_PATH_SIZE - 1);
	sys_close(fd);
	if (len < 0)
		return false;
	to[len] = '\0';
	return true;
}
