/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network of this process: what the kernel says of it (nl), the interfaces
 * that we drive (netif.h), which frames of them are whose (flow.h), and the stack
 * they go to. All of it is the control plane, under one mutex, the outermost
 * lock; the data path meets it in a socket's endpoint and its destinations.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/lock.h"
#include "dev/backend.h"
#include "net/give_back.h"
#include "net/stack.h"
#include "nl/net_view.h"
#include "nl/netlink.h"
#include "os/thread.h"
#include "stats/stats_publish.h"

enum { NET_BACKENDS_MAX = 4, NET_FLOW_BUCKETS = 1024, NET_STACKS_MAX = 64 };

struct net_params {
	struct stack_params stack;
	/* the module that reads the kernel's tables */
	const struct netlink_ops *netlink;
	/* tried in this order; each lives as long as the process */
	struct backend *backends[NET_BACKENDS_MAX];
	unsigned backend_cnt;
	/* "all", or names with commas between them */
	const char *interfaces;
	uint32_t frame_cnt;
	/* the most that is sent in one packet; 0: as the interfaces say */
	uint32_t mtu_max;
	enum region_pages pages;
	/* An interface that carries what this process says to itself: test
	 * builds only. Owned by the network. */
	struct dev *local_dev;
};

struct rpf;

struct net {
	struct mutex control;
	/* who has it: the address of his os_thread */
	_Atomic(const void *) controller;

	/* fixed */
	struct net_params params;

	/* They come under the control mutex and never go; read by anybody. */
	struct stack *stacks[NET_STACKS_MAX];
	_Atomic unsigned stack_cnt;

	/* the control mutex */
	struct net_view view;
	struct netlink netlink;
	/* what routers complain of; -1: we may not hear it */
	_Atomic int icmp_fd;
	struct give_back door;
	struct list netifs;
	struct list flows[NET_FLOW_BUCKETS];
	struct list attachments;
	/* what the demultiplexer has of this host's addresses */
	struct own_addrs *own;
	/* and of the sources that interfaces admit */
	struct rpf *rpf;
	/* an interface has been opened since that was computed */
	bool is_rpf_stale;
	/* what the attachments were last brought into line with */
	uint32_t seen_route_gen;
	/* and requests for destinations looked up for */
	uint64_t seen_gen;
	/* the kernel's tables could not be read */
	int broken;
};

/* Reads the kernel's tables. */
int net_create(const struct net_params *params, struct net **net_out)
	MUST_CHECK;
/* Nothing is attached any more. NULL is a no-op. */
void net_destroy(struct net *net);

/* The control mutex, by these alone. What the release of a stack's lock had to leave
 * because of it is done at its release. */
void net_control_acquire(struct net *net) ACQUIRES(net->control);
void net_control_release(struct net *net) RELEASES(net->control);

static inline bool net_control_is_mine(const struct net *net)
{
	return atomic_load_explicit(&net->controller, memory_order_relaxed) ==
	       &os_thread;
}

/* The stack for a socket that needs one now. */
struct stack *net_choose_stack(struct net *net);

static inline unsigned net_stack_cnt(const struct net *net)
{
	/* acquire pairs with the release in add_stack */
	return atomic_load_explicit(&net->stack_cnt, memory_order_acquire);
}

/* Whether nobody holds a stack's lock for as long as that: otherwise something has gone
 * wrong, and who wants to end does without it. */
bool net_is_free_within(struct net *net, uint64_t ns);

/* Processes what the rings of all stacks had when it was called. */
void net_poll_all(struct net *net) EXCLUDES(net->control);

/* Sets statistics to zero where nobody counts meanwhile. */
void net_zero_stats(struct net *net, const struct stats_order *order);

/* Readable when net_events has something to do. */
int net_event_fd(const struct net *net);
/* Takes the kernel's news, and lets sockets and interfaces follow it. */
void net_events(struct net *net) EXCLUDES(net->control);
/* Readable when net_hear_routers has something to do; -1: there is none. */
int net_icmp_fd(const struct net *net);
/* Takes what routers say of packets that were too long for them. The kernel is to
 * have heard of it before: some milliseconds after it came. */
void net_hear_routers(struct net *net) EXCLUDES(net->control);
/* What has to be looked at now and then. True: in a second again; otherwise somewhat
 * later does as well. */
bool net_check(struct net *net) EXCLUDES(net->control);

/* -- attachments ----------------------------------------------------------- */

/* Where a socket is to receive. */
struct attach_where {
	struct stack *stack;
	uint8_t proto; /* IP's */
	/* the any-address stands for all of this host */
	struct ip_addr local;
	__be16 local_port;
	/* port 0: not connected */
	__be16 remote_port;
	struct ip_addr remote;
	/* 0: all interfaces */
	int ifindex;
	/* as in the endpoint */
	bool is_shared;
	bool is_ipv6;
	uint64_t named_ns;
	/* Where it is said what becomes of it, now and at later news; and at
	 * which call. */
	struct stats_handle *stats;
	enum stats_decider decider;
};

/* A socket's way to receive: its endpoint is reachable, and flows lead frames to
 * it. */
struct attachment {
	struct list link; /* of the network's */
	struct endpoint *end;
	struct attach_where where;
	struct list flows; /* held_flow */
};

static inline bool attachment_is_made(const struct attachment *att)
{
	return att->end != NULL;
}

/* REASON_NONE: frames reach the endpoint from now on, and the attachment follows
 * changes of addresses and interfaces. Otherwise nothing has changed, and this is
 * why. `att` is zero or detached. */
enum reason net_attach(struct net *net, struct attachment *att,
		       struct endpoint *end, const struct attach_where *where)
	MUST_CHECK EXCLUDES(net->control);
/* Afterwards no packet reaches the endpoint. Harmless when it is not attached. */
void net_detach(struct net *net, struct attachment *att)
	EXCLUDES(net->control);

/* Returns a received packet to the kernel, which delivers it as if we had never
 * had it: to whom no flow of ours keeps it from any more. The packet stays the
 * caller's. A negative errno: the kernel does not take it. */
int net_give_back(struct net *net, const struct pkt *pkt)
	MUST_CHECK EXCLUDES(net->control);

/* Whether packets of the protocol to this address and port would reach one of our
 * sockets: for senders on the local device. */
bool net_is_local_locked(struct net *net, const struct flow_key *key,
			 uint8_t proto) REQUIRES(net->control);

#endif
