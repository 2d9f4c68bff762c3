/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking the kernel which BPF programs are attached, by bpf(2) itself: libvma.so
 * links libc alone, which has no function for it. */
#include "config.h"

#include "nl/bpf_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/bpf_program.h"
#include "base/linux_compat.h"
#include "base/syscall_raw.h"
#include "base/text.h"
#include "nl/firewall.h"
#include "os/file.h"
#include "os/real.h"

/* A hook has up to 64 programs; a cgroup's parents may add to them. What is more is
 * counted, and not named. */
enum { PROGRAMS_MAX = 64 };

/* A place where programs can be attached, and the name that we show for it. */
struct hook {
	uint32_t attach_type;
	uint32_t flags;
	const char *name;
};

/* What a program is attached to, for the name that we show. */
struct place {
	const char *link; /* or NULL */
	bool skips_nameless;
};

/*
 * The hooks that an accelerated datagram does not meet. bind() and connect() are
 * called on the twin, so their hooks act on our sockets as on all others; we take
 * the names that the twin has afterwards.
 */
static const struct hook cgroup_hooks[] = {
	{ BPF_CGROUP_INET_INGRESS, BPF_F_QUERY_EFFECTIVE, "cgroup ingress" },
	{ BPF_CGROUP_INET_EGRESS, BPF_F_QUERY_EFFECTIVE, "cgroup egress" },
	{ BPF_CGROUP_UDP4_SENDMSG, BPF_F_QUERY_EFFECTIVE, "cgroup sendmsg4" },
	{ BPF_CGROUP_UDP4_RECVMSG, BPF_F_QUERY_EFFECTIVE, "cgroup recvmsg4" },
	/* a socket of IPv6 hears IPv4, too */
	{ BPF_CGROUP_UDP6_RECVMSG, BPF_F_QUERY_EFFECTIVE, "cgroup recvmsg6" },
};
static const struct hook namespace_hooks[] = {
	{ BPF_SK_LOOKUP, 0, "sk_lookup" },
};
static const struct hook link_hooks[] = {
	{ COMPAT_BPF_TCX_INGRESS, 0, "tcx ingress" },
	{ COMPAT_BPF_TCX_EGRESS, 0, "tcx egress" },
};

/* -- bpf(2) ------------------------------------------------------------------- */

static long bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall_raw(SYS_bpf, cmd, (long)attr, sizeof(*attr), 0, 0, 0);
}

/* Reads the name of a program. It is empty if we may not know it. */
static void read_name(uint32_t id, char name[BPF_OBJ_NAME_LEN])
{
	union bpf_attr attr;
	struct bpf_prog_info info;
	int fd;

	name[0] = '\0';
	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	fd = (int)bpf(BPF_PROG_GET_FD_BY_ID, &attr);
	if (fd < 0)
		return;
	memset(&attr, 0, sizeof(attr));
	memset(&info, 0, sizeof(info));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0)
		memcpy(name, info.name, BPF_OBJ_NAME_LEN - 1);
	name[BPF_OBJ_NAME_LEN - 1] = '\0';
	real.close(fd);
}

/* False: it is one of ours, and looks at no packet of others. */
static bool add_program(const struct hook *hook, const struct place *place, uint32_t id,
			struct text *out)
{
	char name[BPF_OBJ_NAME_LEN];

	read_name(id, name);
	if (strcmp(name, BPF_PROGRAM_HAND_OVER) == 0 ||
	    (!*name && place->skips_nameless))
		return false;
	firewall_begin_name(hook->name, out);
	if (place->link)
		firewall_add_name(place->link, out);
	if (*name)
		firewall_add_name(name, out);
	else
		text_add(out, " program %u", id);
	return true;
}

/* `target` is an fd, or the index of an interface, as the kernel wants it. */
static int read_hook(const struct hook *hook, uint32_t target,
		     const struct place *place, struct text *out)
{
	uint32_t ids[PROGRAMS_MAX] = { 0 };
	union bpf_attr attr;
	int cnt;
	long rc;

	memset(&attr, 0, sizeof(attr));
	attr.query.target_fd = target;
	attr.query.attach_type = hook->attach_type;
	attr.query.query_flags = hook->flags;
	attr.query.prog_ids = (uintptr_t)ids;
	attr.query.prog_cnt = PROGRAMS_MAX;
	rc = bpf(BPF_PROG_QUERY, &attr);
	/* -ENOSPC: there are more programs than the array can hold */
	if (rc < 0 && rc != -ENOSPC)
		return (int)rc;
	cnt = (int)attr.query.prog_cnt;
	for (uint32_t i = 0; i < MIN(attr.query.prog_cnt, PROGRAMS_MAX); i++)
		cnt -= !add_program(hook, place, ids[i], out);
	return cnt;
}

/* A kernel that lacks one of the hooks may have the others. */
static int read_hooks(const struct hook *hooks, size_t hook_cnt, uint32_t target,
		      const struct place *place, struct text *out)
{
	int cnt = 0, err = 0;

	for (size_t i = 0; i < hook_cnt; i++) {
		int rc = read_hook(&hooks[i], target, place, out);

		if (rc < 0)
			err = rc;
		else
			cnt += rc;
	}
	return cnt ? cnt : err;
}

/* -- cgroups ------------------------------------------------------------------- */

int bpf_hooks_cgroup_dir(const char *lines, const char *mount, char *dir_out,
			 size_t size)
{
	static const char mark[] = "0::";

	while (*lines) {
		size_t len = strcspn(lines, "\n");

		if (strncmp(lines, mark, strlen(mark)) == 0) {
			int n = snprintf(dir_out, size, "%s%.*s", mount,
					 (int)(len - strlen(mark)),
					 lines + strlen(mark));

			return (size_t)n < size ? 0 : -ENAMETOOLONG;
		}
		lines += len;
		lines += *lines == '\n';
	}
	return -ENOENT;
}

/* Opens a directory of cgroup version 2. Returns the fd or a negative errno. */
static int open_cgroup(const char *dir)
{
	int fd = real.open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
		return fd;
	real.close(fd);
	return -ENOENT;
}

/*
 * Opens the directory of this process. systemd mounts version 2 at the first place,
 * or at the second one if version 1 is mounted, too. A container sees its own
 * cgroup as the mount, whatever the path of this cgroup is outside.
 */
static int open_own_cgroup(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	char lines[4096], dir[4096];
	ssize_t len = file_peek("/proc/self/cgroup", lines, sizeof(lines) - 1);
	int fd = -ENOENT;

	if (len < 0)
		return (int)len;
	lines[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(mounts) && fd < 0; i++) {
		if (bpf_hooks_cgroup_dir(lines, mounts[i], dir, sizeof(dir)) == 0)
			fd = open_cgroup(dir);
		if (fd < 0)
			fd = open_cgroup(mounts[i]);
	}
	return fd;
}

int bpf_hooks_read_cgroup(struct text *out)
{
	int fd = open_own_cgroup();
	int rc;

	if (fd < 0)
		return fd;
	rc = read_hooks(cgroup_hooks, ARRAY_LEN(cgroup_hooks), (uint32_t)fd,
			&(struct place){ NULL, false }, out);
	real.close(fd);
	return rc;
}

/* -- the others ------------------------------------------------------------------ */

int bpf_hooks_read_namespace(struct text *out)
{
	int fd = real.open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = read_hooks(namespace_hooks, ARRAY_LEN(namespace_hooks), (uint32_t)fd,
			&(struct place){ NULL, false }, out);
	real.close(fd);
	return rc;
}

int bpf_hooks_read_link(int ifindex, const char *name, bool skips_nameless,
			struct text *out)
{
	return read_hooks(link_hooks, ARRAY_LEN(link_hooks), (uint32_t)ifindex,
			  &(struct place){ name, skips_nameless }, out);
}
