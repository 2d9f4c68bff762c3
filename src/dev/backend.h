/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A back end makes a device of an interface. The real ones live in modules, shared
 * objects of their own that core opens when a socket first needs them.
 */
#ifndef DEV_BACKEND_H
#define DEV_BACKEND_H

#include "dev/ring.h"
#include "os/module.h"

/* The interface that is to be driven. */
struct backend_request {
	int ifindex;
	const char *name;
	uint8_t mac[6];
	uint32_t mtu;
	/* Of a VLAN: its id, and the interface below, by which its frames come with their
	 * tags. 0: it is none. */
	uint16_t vlan_id;
	int lower;
	const char *lower_name;
	/* there are VLANs on it */
	bool has_vlans;
	/* both ends are in this machine, as a veth's */
	bool is_virtual;
	/* how many frames its region has, at most, and which kind of memory is
	 * wanted */
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

/* What a module of MODULE_BACKEND exports. */
struct backend_module {
	/* `options` is the back end's own parameter struct. Once. 0 or negative
	 * errno. */
	int (*open)(const void *options, struct backend **backend_out)
		MUST_CHECK;
};

/* Within a module: what module.c exports is made by this function of the back end's,
 * under the name BACKEND_NAME, which comes from the makefile. */
struct backend *backend_make(const void *options);

#endif
