/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Modules are parts of the library in shared objects of their own, because they
 * need more than the C library. core/module.c opens them when a socket first needs
 * them. Their symbols stay local, except the one that core/module.c looks for.
 */
#ifndef OS_MODULE_H
#define OS_MODULE_H

struct services;

/* Locks of debug builds have another size. */
#ifdef VMA_DEBUG
enum { MODULE_ABI = 0x104 };
#else
enum { MODULE_ABI = 0x004 };
#endif

/* What a module is for, and what its exports are. */
enum module_kind {
	/* drives interfaces: struct backend_module (dev/backend.h) */
	MODULE_BACKEND,
	/* reads the kernel's tables: struct netlink_ops (nl/netlink.h) */
	MODULE_NETLINK,
};

/* What a module exports, as `vma_module`. */
struct module {
	/* MODULE_ABI. A module of another number is left alone; the members up
	 * to here keep their places for ever. */
	int abi;
	enum module_kind kind;
	const char *name;
	/* Called once, before the exports are used. The services live as long as
	 * the process. The module has no other way to call libvma.so. */
	void (*start)(const struct services *services);
	/* a const struct of the kind's */
	const void *exports;
};

#endif
