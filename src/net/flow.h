/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The registry of flow rules. It says which frames of which interface this process
 * has claimed, and for how many sockets. The device has each rule once, however many
 * sockets share it. All of it is under the control mutex.
 */
#ifndef NET_FLOW_H
#define NET_FLOW_H

#include "net/netif.h"

struct flow {
	struct list link; /* of the network's */
	struct netif *netif;
	/* the ring that gets the frames, and its stack */
	struct ring *ring;
	struct stack *stack;
	struct flow_rule rule;
	/* what comes by it has this tag; 0: none */
	uint32_t tag;
	unsigned ref_cnt;
};

/* A socket's hold on a flow. */
struct held_flow {
	struct list link;
	struct flow *flow;
	/* set while an attachment's flows are brought into line: it is still wanted */
	bool is_wanted;
};

/* Frames of one connection that are the kernel's, although a flow of the attachment
 * names them: that they are on one interface, and, with NULL, that they shall be on each that
 * gets such a flow. */
struct flow_exception {
	struct list link, of_att; /* of a bucket, and of the attachment's */
	const struct attachment *att;
	struct netif *netif;
	struct flow_rule rule;
};

/* Makes the attachment hold the flow, unless it does already. Errors: -ENOMEM;
 * -EEXIST: another stack has the flow; or the device's error. */
int flow_hold(struct net *net, struct attachment *att, struct netif *netif,
	      const struct flow_rule *rule) MUST_CHECK REQUIRES(net->control);
void flow_release(struct net *net, struct held_flow *held)
	REQUIRES(net->control);

/* Frames with this rule for the kernel are no longer the attachment's, on each interface on
 * which it has a flow or will have one; nothing happens if they are not already. -EOPNOTSUPP:
 * no device can tell them apart, or has room for one rule more. After an error nothing has
 * changed. */
int flow_except(struct net *net, struct attachment *att,
		const struct flow_rule *rule) MUST_CHECK REQUIRES(net->control);
/* They are again. */
void flow_unexcept(struct net *net, struct attachment *att,
		   const struct flow_rule *rule) REQUIRES(net->control);
/* All of them, on one interface, or on all for NULL. */
void flow_end_exceptions(struct net *net, struct attachment *att,
			 const struct netif *netif) REQUIRES(net->control);

/* The flow with exactly this rule on the interface, or NULL. */
struct flow *flow_find(struct net *net, const struct netif *netif,
		       const struct flow_rule *rule) REQUIRES(net->control);

#endif
