/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A network over one interface for tests: its device does what a case says and keeps
 * count, and of its kernel nothing is heard.
 */
#ifndef UNIT_NET_NIC_H
#define UNIT_NET_NIC_H

#include "net/net.h"

enum { NIC_IFINDEX = 7, NIC_PACED_MAX = 8 };

struct nic {
	struct dev dev;
	struct ring ring;

	/* what it has been asked for: to be driven, flows, to follow its link */
	unsigned ask_cnt, added, removed, changes;
	bool is_full; /* no room for one rule more */
	/* how many it has room for; 0: for any number */
	unsigned room;
	/* called whenever a rule has come or gone; NULL: nothing */
	void (*at_rule)(void);
	/* by which name it was to be opened */
	char name[16];
	/* what it was told of its VLAN, if it is one */
	uint16_t vlan_id;
	int lower;
	char lower_name[16];
	bool has_vlans;
	/* it was told of a bond */
	bool has_bond;
	bool bears_vlans; /* what it says of VLANs on it */
	/* what it was offered, and the regions that it got later */
	uint32_t frame_cnt;
	unsigned region_adds;
	/* the rule that came last, and its tag */
	struct flow_rule rule;
	uint32_t tag;
	/* what there is */
	unsigned open_cnt, rings;
	/* the view's generation when the ring was closed */
	uint64_t gen_at_close;

	/* 0: it works; an error: it cannot be opened, and says the verdict, or it
	 * stops working */
	int health;
	struct dev_verdict verdict;
	/* 0, or why it gives no ring */
	int ring_err;

	/* by which news of the kernel would be told; -1: by none */
	int event_fd;
	/* with what reading the kernel's tables ends; 0: not */
	_Atomic int tables_err;
	/* what makes a thread poll that sleeps; -1: nothing. And how often it was polled */
	int ring_fd;
	_Atomic unsigned polls;
	/* those of single senders: why there is none, or 0; how many have come and gone; the
	 * pace that was set last; whether it has sent what it had */
	struct ring paced_rings[NIC_PACED_MAX];
	int paced_err;
	unsigned paced_begun, paced_ended;
	/* the frames that the last one was given */
	uint32_t paced_frames;
	struct ring_pace pace;
	bool is_sent;
	/* neighbours that the kernel was asked for, and what happens meanwhile; NULL:
	 * nothing */
	unsigned resolve_cnt;
	void (*while_resolving)(void);
	/* 0, or what the kernel says to it */
	int resolve_err;
};

extern struct net *net;
extern struct nic nic;

/* Makes the network, whose view has the interface, its address, and a route to
 * 10.0.0.0/24. */
void nic_begin(const char *interfaces);
void nic_end(void);

/* 10.0.0.1 */
struct ip_addr nic_addr(void);
/* As the view has it: eth7, with 1500 bytes. */
struct link_info nic_link(void);
/* The same as the VLAN 100 of another link, which is in the view from then on. */
struct link_info nic_vlan(void);

#endif
