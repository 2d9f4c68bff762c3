/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network of this process: what the kernel says of it (nl), the interfaces that
 * we drive (netif.h), who gets which of their frames (flow.h), and the stacks that
 * process them. All of this is the control plane, under one mutex, which is the
 * outermost lock. The data path meets it only in a socket's endpoint and in its
 * destinations.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include "base/lock.h"
#include "base/mem_pool.h"
#include "dev/backend.h"
#include "net/confirm.h"
#include "net/give_back.h"
#include "net/stack.h"
#include "nl/net_view.h"
#include "nl/netlink.h"
#include "os/thread.h"
#include "stats/stats_publish.h"

enum { NET_BACKENDS_MAX = 4, NET_FLOW_BUCKETS = 1024, NET_STACKS_MAX = 64 };

struct net_params {
	struct stack_params stack;
	/* of the module that reads the kernel's tables */
	const struct netlink_ops *netlink;
	/* Tried in this order. Each lives as long as the process. */
	struct backend *backends[NET_BACKENDS_MAX];
	unsigned backend_cnt;
	/* "all", or names of interfaces with commas between them */
	const char *interfaces;
	/* of an interface's memory at first, and the most of all interfaces together;
	 * 0: no limit */
	uint32_t frame_cnt;
	uint32_t frame_max;
	/* the longest packet that we send; 0: as the interfaces say */
	uint32_t mtu_max;
	enum region_pages pages;
	/* an interface that cuts no segments of TCP is to be named */
	bool wants_tso;
	/* An interface that carries what this process sends to itself; only in test
	 * builds. It belongs to the network. */
	struct dev *local_dev;
};

struct rpf;

/* With the headers of Ethernet and of VLANs. */
struct net_frame {
	uint8_t bytes[32 + UINT16_MAX];
};

struct net {
	struct mutex control;
	/* the thread that holds it, as the address of its os_thread */
	_Atomic(const void *) controller;
	/* how many threads wait for it */
	_Atomic unsigned control_waiting;

	/* fixed */
	struct net_params params;

	/* They are added under the control mutex, and are never removed. Anybody
	 * reads them. */
	struct stack *stacks[NET_STACKS_MAX];
	_Atomic unsigned stack_cnt;

	/* the control mutex */
	struct net_view view;
	struct netlink netlink;
	/* of the connection; fixed (os/netns.h) */
	uint64_t netns;
	struct confirms confirms;
	/* before, what has come of the news is not followed while there are more */
	uint64_t follow_after_ns;
	/* the raw socket by which we hear the complaints of routers; -1: we may not */
	_Atomic int icmp_fd;
	/* the control mutex: a frame that is given back, in one piece */
	struct net_frame *frame;
	struct give_back door;
	struct list netifs;
	struct list flows[NET_FLOW_BUCKETS];
	struct list exceptions[NET_FLOW_BUCKETS]; /* flow_exception */
	/* for these, and who holds them; children of a fork, which leave the network to us,
	 * have nothing of it */
	struct mem_pool flow_memory;
	struct list attachments;
	/* this host's addresses, as the demultiplexer has them */
	struct own_addrs *own;
	/* the sources that interfaces admit, as the demultiplexer has them */
	struct rpf *rpf;
	/* how many interfaces wait for connections to leave (netif.is_failing); read
	 * without the mutex, too */
	_Atomic unsigned failing_cnt;
	/* an interface has been opened since `rpf` was computed */
	bool is_rpf_stale;
	/* the view's generation when the attachments were last brought into line */
	_Atomic uint32_t seen_route_gen;
	/* the view's generation when requests for destinations were last looked up */
	uint64_t seen_gen;
	/* the error with which reading the kernel's tables ended; 0: none */
	int broken;
};

/* Makes the network and its first stack, and reads the kernel's tables. */
int net_create(const struct net_params *params, struct net **net_out)
	MUST_CHECK;
/* No socket is attached any more. Does nothing for NULL. */
void net_destroy(struct net *net);

/* The control mutex is taken and released by these functions alone. While a thread
 * holds it, it looks up no destinations when it unlocks a stack; the release of the
 * mutex does that. */
void net_control_acquire(struct net *net) ACQUIRES(net->control);
void net_control_release(struct net *net) RELEASES(net->control);

static inline bool net_control_is_mine(const struct net *net)
{
	return atomic_load_explicit(&net->controller, memory_order_relaxed) ==
	       &os_thread;
}

/* Chooses the stack for a socket that needs one now. */
struct stack *net_choose_stack(struct net *net);

static inline unsigned net_stack_cnt(const struct net *net)
{
	/* acquire pairs with the release in add_stack */
	return atomic_load_explicit(&net->stack_cnt, memory_order_acquire);
}

/* Whether every stack's lock is free at some moment within this time. If one is not,
 * something has gone wrong in the thread that holds it; a process that ends goes on
 * without it. */
bool net_is_free_within(struct net *net, uint64_t ns);

/* Waits until everything that was sent has left the rings, at most so long. */
void net_flush(struct net *net, uint64_t ns);

/* The process may be about to give up rights. */
void net_rights_go(struct net *net) EXCLUDES(net->control);

/* The process is about to end, or to become another program, and its devices with it. */
void net_ending(struct net *net, enum dev_end how_far) EXCLUDES(net->control);

/* Processes what is in the rings of all stacks at the time of the call. */
void net_poll_all(struct net *net) EXCLUDES(net->control);

/* Sets statistics to zero, under the lock of each stack, so that nobody counts
 * meanwhile. */
void net_zero_stats(struct net *net, const struct stats_order *order);

/* Readable when net_events has something to do. */
int net_event_fd(const struct net *net);
/* Takes the kernel's news, or the first of many; the fd is readable still then. Interfaces
 * and attached sockets follow them. False: no more can be taken, and the fd stays readable. */
bool net_events(struct net *net) EXCLUDES(net->control);
/* The generation of the view's routes that interfaces and attached sockets have followed. */
static inline uint32_t net_followed_gen(const struct net *net)
{
	return atomic_load_explicit(&net->seen_route_gen, memory_order_acquire);
}
/* Readable when net_hear_routers has something to do; -1: there is none. */
int net_icmp_fd(const struct net *net);
/* Takes the complaints of routers about packets that were too long. The kernel has
 * to know of them before: call this some milliseconds after they came. */
void net_hear_routers(struct net *net) EXCLUDES(net->control);
/* Does what has to be done from time to time. True: call it again in a second; else
 * somewhat later is enough. */
bool net_check(struct net *net) EXCLUDES(net->control);

/* Whether interfaces are about to be given up: net_close_failed has something to do. */
static inline bool net_is_failing(const struct net *net)
{
	return atomic_load_explicit(&net->failing_cnt, memory_order_relaxed);
}
/* Gives up those whose connections have left. */
void net_close_failed(struct net *net) EXCLUDES(net->control);

/* -- attachments ----------------------------------------------------------- */

/* Where a socket is to receive. */
struct attach_where {
	struct stack *stack;
	uint8_t proto; /* the protocol's number in IP */
	/* the any-address stands for all addresses of this host */
	struct ip_addr local;
	__be16 local_port;
	/* port 0: not connected */
	__be16 remote_port;
	struct ip_addr remote;
	/* 0: all interfaces */
	int ifindex;
	/* By these the kernel finds the way to the peer, too, which is taken for the one from
	 * there. */
	uint32_t mark;
	uint32_t uid;
	uint8_t tos;
	bool is_on_link_only;
	/* as in the endpoint */
	bool is_shared;
	bool is_ipv6;
	uint64_t named_ns;
	/* The statistics of the socket, which say what becomes of it, now and after
	 * later news; and the call that led to this. */
	struct stats_handle *stats;
	enum stats_decider decider;
};

/* What a socket has in order to receive: its endpoint is reachable, and flows bring
 * frames to it. */
struct attachment {
	struct list link; /* of the network's */
	struct endpoint *end;
	struct attach_where where;
	struct list flows; /* held_flow */
	struct list exceptions; /* flow_exception.of_att */
};

static inline bool attachment_is_made(const struct attachment *att)
{
	return att->end != NULL;
}

/* Attaches the endpoint. `att` is all zeroes, or detached, or this endpoint's under another
 * name; then what comes by both names comes to it all the time. REASON_NONE: frames reach
 * the endpoint from now on, and the attachment follows changes of addresses and
 * interfaces. Any other reason says why not; it is detached then. */
enum reason net_attach(struct net *net, struct attachment *att,
		       struct endpoint *end, const struct attach_where *where)
	MUST_CHECK EXCLUDES(net->control);
/* After this no packet reaches the endpoint. Does nothing if it is not attached. */
void net_detach(struct net *net, struct attachment *att)
	EXCLUDES(net->control);

/* Returns a received packet to the kernel, which delivers it as if we had never had
 * it, provided that no flow of ours matches it any more, or net_knows_given(). The packet
 * stays the caller's. A negative errno: the kernel does not take it. */
int net_give_back(struct net *net, const struct pkt *pkt)
	MUST_CHECK EXCLUDES(net->control);

/* Whether no device brings us again what was given back, though flows match it. */
bool net_knows_given(struct net *net) EXCLUDES(net->control);

/* The same with a received frame that has tags of VLANs, as it was received. -ENOENT: the
 * kernel has no VLAN on its interface, and would drop it. */
int net_give_tagged(struct net *net, const struct pkt *pkt)
	MUST_CHECK EXCLUDES(net->control);

/* The same with a frame made by us, for the kernel's interface of this number. */
int net_give_frame(struct net *net, int ifindex, uint8_t *frame, uint32_t len)
	MUST_CHECK EXCLUDES(net->control);

/* Whether frames of the interface with this number come to us. */
bool net_drives(struct net *net, int ifindex) EXCLUDES(net->control);

/* Frames with this key, which belong to a flow of the attachment, are the kernel's from
 * now on, until the attachment ends, also where its flows come back. -EOPNOTSUPP: no device
 * can tell them apart, or has room for one rule more. */
int net_except(struct net *net, struct attachment *att,
	       const struct flow_key *key) MUST_CHECK EXCLUDES(net->control);
/* They are ours again. */
void net_unexcept(struct net *net, struct attachment *att,
		  const struct flow_key *key) EXCLUDES(net->control);

/* Whether frames with this key come to a flow of the attachment whatever interface they come
 * by, as far as the kernel has told us of its interfaces. */
bool net_keeps_all(struct net *net, const struct attachment *att,
		   const struct flow_key *key) EXCLUDES(net->control);

/* Whether packets of the protocol with this key would reach one of our sockets. For
 * senders on the local device. */
bool net_is_local_locked(struct net *net, const struct flow_key *key,
			 uint8_t proto) REQUIRES(net->control);

#endif
