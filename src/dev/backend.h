/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A back end: who makes a device of an interface. The real ones live in modules,
 * shared objects of their own that core opens when a socket first needs them.
 */
#ifndef DEV_BACKEND_H
#define DEV_BACKEND_H

#include "dev/ring.h"
#include "dev/services.h"

/* The interface that is to be driven. */
struct backend_request {
	int ifindex;
	const char *name;
	uint8_t mac[6];
	uint32_t mtu;
	/* both ends are in this machine, as a veth's */
	bool is_virtual;
	/* frames of its region, and their memory: ceilings and wishes */
	uint32_t frame_cnt;
	enum region_pages pages;
};

struct backend {
	/* "xdp" */
	const char *name;
	/* Under the control mutex. 0, or the verdict says why not. */
	int (*open)(struct backend *backend,
		    const struct backend_request *request,
		    struct dev **dev_out, struct dev_verdict *why_out)
		MUST_CHECK;
};

/* What a module exports, as `vma_module`. */
#ifdef VMA_DEBUG
enum { MODULE_ABI = 0x101 };
#else
enum { MODULE_ABI = 0x001 };
#endif

struct module {
	/* MODULE_ABI: locks of debug builds have another size. A module of
	 * another number is left alone. */
	int abi;
	const char *name;
	/* What the module uses of us, for as long as the process lives; it has
	 * no other way to reach libvma.so. `options` is the back end's own
	 * parameter struct. 0 or negative errno. */
	int (*start)(const struct services *services, const void *options,
		     struct backend **backend_out) MUST_CHECK;
};

#endif
