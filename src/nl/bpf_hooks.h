/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BPF programs that see, change or drop packets on the kernel's path, and that no
 * message of netlink names: those of cgroups (systemd's IPAddressDeny=), those that
 * choose sockets in a network namespace, and tcx programs of an interface.
 *
 * All functions add the programs to the text, as in "cgroup ingress sd_fw_ingress",
 * and return how many there are. -EPERM: the process may not ask. Another negative
 * errno: the kernel has no such hooks.
 */
#ifndef NL_BPF_HOOKS_H
#define NL_BPF_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct text;

/* Of the cgroup of this process, its parents' included. A socket that another process
 * has made is in the cgroup of that one; we do not look there. */
int bpf_hooks_read_cgroup(struct text *out) MUST_CHECK;
/* Of the calling thread's network namespace. */
int bpf_hooks_read_namespace(struct text *out) MUST_CHECK;
/* Of one interface, which is called `name`. `skips_nameless`: not those whose names may not be
 * read, one of which may be ours. */
int bpf_hooks_read_link(int ifindex, const char *name, bool skips_nameless,
			struct text *out) MUST_CHECK;

/* The pure half: finds the path of the cgroup of version 2 in the lines of
 * /proc/self/cgroup, and puts `mount` in front of it. -ENOENT: there is none;
 * -ENAMETOOLONG: it does not fit. */
int bpf_hooks_cgroup_dir(const char *lines, const char *mount, char *dir_out,
			 size_t size) MUST_CHECK;

#endif
