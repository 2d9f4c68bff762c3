/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A back end makes a device of an interface. The real ones live in modules, shared
 * objects of their own that core opens when a socket first needs them.
 */
#ifndef DEV_BACKEND_H
#define DEV_BACKEND_H

#include "dev/ring.h"
#include "os/module.h"

enum { BACKEND_PORTS_MAX = 8 };

/* A bond of interfaces, as the kernel's driver has it. */
struct backend_bond {
	const char *name;
	/* the numbers of IFLA_BOND_MODE and IFLA_BOND_XMIT_HASH_POLICY */
	uint8_t mode;
	uint8_t policy;
	/* A bit for each port that sends and receives now. */
	uint32_t active;
	/* how many it has, of which the first ones are here */
	unsigned port_cnt;
	struct backend_port {
		int ifindex;
		char name[16];
	} ports[BACKEND_PORTS_MAX];
};

/* The interface that is to be driven. */
struct backend_request {
	int ifindex;
	const char *name;
	uint8_t mac[6];
	uint32_t mtu;
	/* the longest packet that may come (struct dev) */
	uint32_t rx_mtu;
	/* Of a VLAN: its id, and the interface below, by which its frames come with their
	 * tags. 0: it is none. */
	uint16_t vlan_id;
	int lower;
	const char *lower_name;
	/* there are VLANs on it */
	bool has_vlans;
	/* Of a bond, or of a VLAN on one; NULL: it is none. Who drives one port of it is
	 * told of it, too: the interface is the port then, but for address and MTU. */
	const struct backend_bond *bond;
	/* Whose devices use the same regions, as ports of a bond do: those of the first one.
	 * NULL: it makes one. */
	const struct region_set *regions;
	/* the most queues that may ever receive; 0: that is not known */
	uint32_t rx_queue_max;
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
	/* Several of its devices can have the same regions. */
	bool shares_regions;
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
