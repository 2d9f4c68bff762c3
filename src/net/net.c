/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The network of the process (net.h): news from the kernel, and attachments. */
#include "config.h"

#include "net/net.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pages.h"
#include "fd/fd_internal.h"
#include "net/alignment.h"
#include "net/dst_lookup.h"
#include "net/flow.h"
#include "net/netif.h"
#include "net/paced.h"
#include "net/path_news.h"
#include "net/rpf.h"
#include "net/strays.h"
#include "os/inside.h"
#include "os/netns.h"
#include "os/real.h"
#include "pkt/wire.h"

/* How long the first socket waits for the kernel's tables. After that we begin with
 * what has been read so far, and the rest follows. */
enum { SYNC_TIMEOUT_MS = 500 };

#define FOR_EACH_STACK(stack, net)                                        \
	for (struct stack *const *at_ = (net)->stacks, *stack;            \
	     at_ < (net)->stacks + net_stack_cnt(net) && (stack = *at_); \
	     at_++)

/* -- this host's addresses ------------------------------------------------ */

struct own_addrs {
	unsigned cnt, room;
	__be32 v4[];
};

/* Addresses for which there is no room are only counted. */
static bool collect_own(void *ctx, const struct addr_info *info)
{
	struct own_addrs *own = ctx;

	if (!ip_addr_is_v4(&info->local))
		return true;
	if (own->cnt < own->room)
		own->v4[own->cnt] = ip_addr_v4(&info->local);
	own->cnt++;
	return true;
}

static int compare_v4(const void *a, const void *b)
{
	uint32_t x = be32toh(*(const __be32 *)a);
	uint32_t y = be32toh(*(const __be32 *)b);

	return x < y ? -1 : x > y;
}

static struct own_addrs *collect(const struct net *net, unsigned room)
{
	struct own_addrs *own =
		malloc(sizeof(*own) + room * sizeof(own->v4[0]));
	const struct link *link;

	if (!own)
		return NULL;
	own->cnt = 0;
	own->room = room;
	LIST_FOR_EACH(link, &net->view.links.links, in_tab)
		addr_tab_visit(&net->view.addrs, link->info.ifindex,
			       collect_own, own);
	return own;
}

/* If there is no memory, the demultiplexer does not know our addresses, and drops no
 * frame for having one of them as its source. */
static void publish_own(struct net *net)
{
	struct own_addrs *own = collect(net, 16), *old = net->own;
	unsigned cnt = own ? own->cnt : 0;

	if (own && cnt > own->room) {
		free(own);
		own = collect(net, cnt);
	}
	if (own)
		qsort(own->v4, cnt, sizeof(own->v4[0]), compare_v4);
	FOR_EACH_STACK(stack, net) {
		stack_lock(stack);
		demux_set_own(&stack->demux, own ? own->v4 : NULL,
			      own ? cnt : 0);
		stack_unlock(stack);
	}
	net->own = own;
	free(old);
}

/* -- what rp_filter lets in --------------------------------------------------- */

static unsigned collect_driven(const struct net *net, int *ifindexes)
{
	const struct netif *netif;
	unsigned cnt = 0;

	LIST_FOR_EACH(netif, &net->netifs, link)
		if (netif_is_driven(netif) && cnt < STACK_RINGS_MAX)
			ifindexes[cnt++] = netif->ifindex;
	return cnt;
}

/* If the ranges cannot be computed, every source is admitted. */
static void publish_rpf(struct net *net)
{
	int ifindexes[STACK_RINGS_MAX];
	unsigned cnt = collect_driven(net, ifindexes);
	struct rpf *rpf, *old = net->rpf;
	int err = rpf_make(&net->view, ifindexes, cnt,
			   net->own ? net->own->v4 : NULL,
			   net->own ? net->own->cnt : 0, &rpf);

	if (err)
		LOG_ONCE(LOG_LEVEL_WARNING,
			 "rp_filter is not applied to accelerated sockets (%s)",
			 err == -E2BIG ? "too many routes" : strerror(-err));
	FOR_EACH_STACK(stack, net) {
		stack_lock(stack);
		demux_set_rpf(&stack->demux, rpf);
		stack_unlock(stack);
	}
	net->rpf = rpf;
	net->is_rpf_stale = false;
	rpf_free(old);
}

/* -- life ----------------------------------------------------------------- */

static void listen_to_routers(struct net *net)
{
	int fd = path_news_open();

	atomic_store(&net->icmp_fd, MAX(fd, -1));
	if (fd < 0)
		log_dbg("routers that complain of long packets are not heard (%s)",
			strerror(-fd));
	else
		(void)!fd_internal_adopt(fd, &net->icmp_fd);
}

static void stop_listening(struct net *net)
{
	fd_internal_close(&net->icmp_fd);
}

static int add_stack(struct net *net)
{
	struct stack_params params = net->params.stack;
	unsigned index = net_stack_cnt(net);
	int err;

	params.net = net;
	params.index = index;
	err = stack_create(&params, &net->stacks[index]);
	if (!err)
		/* release pairs with the acquire in net_stack_cnt */
		atomic_store_explicit(&net->stack_cnt, index + 1,
				      memory_order_release);
	return err;
}

static void destroy_stacks(struct net *net)
{
	FOR_EACH_STACK(stack, net)
		stack_destroy(stack);
}

/* -- control ---------------------------------------------------------------- */

void net_control_acquire(struct net *net)
{
	atomic_fetch_add_explicit(&net->control_waiting, 1, memory_order_relaxed);
	mutex_acquire(&net->control);
	atomic_fetch_sub_explicit(&net->control_waiting, 1, memory_order_relaxed);
	atomic_store_explicit(&net->controller, &os_thread,
			      memory_order_relaxed);
}

void net_control_release(struct net *net)
{
	atomic_store_explicit(&net->controller, NULL, memory_order_relaxed);
	mutex_release(&net->control);
	FOR_EACH_STACK(stack, net)
		if (UNLIKELY(atomic_load_explicit(&stack->has_lookups_left,
						  memory_order_relaxed)) &&
		    atomic_exchange(&stack->has_lookups_left, false))
			dst_lookups_run(stack);
	FOR_EACH_STACK(stack, net)
		if (UNLIKELY(atomic_load_explicit(&stack->has_strays_left,
						  memory_order_relaxed)) &&
		    atomic_exchange(&stack->has_strays_left, false))
			strays_give_back(stack);
}

/* All sockets of the process share one. */
struct stack *net_choose_stack(struct net *net)
{
	return net->stacks[0];
}

bool net_is_free_within(struct net *net, uint64_t ns)
{
	FOR_EACH_STACK(stack, net)
		if (!stack_lock_is_free_within(&stack->lock, ns))
			return false;
	return true;
}

static bool has_left(struct net *net)
{
	bool result = true;

	FOR_EACH_STACK(stack, net)
		result &= stack_has_sent(stack);
	return result;
}

/* Queues in user space take some microseconds. */
enum { FLUSH_NAP_NS = 20000 };

void net_flush(struct net *net, uint64_t ns)
{
	uint64_t end = clock_monotonic_ns() + ns;

	while (!has_left(net) && clock_monotonic_ns() < end)
		inside_nap(FLUSH_NAP_NS);
}

void net_rights_go(struct net *net)
{
	struct netif *netif;

	net_control_acquire(net);
	LIST_FOR_EACH(netif, &net->netifs, link)
		if (netif->dev)
			netif->dev->ops->rights_go(netif->dev);
	net_control_release(net);
}

void net_ending(struct net *net, enum dev_end how_far)
{
	struct netif *netif;

	net_control_acquire(net);
	LIST_FOR_EACH(netif, &net->netifs, link)
		if (netif->dev)
			netif->dev->ops->ending(netif->dev, how_far);
	net_control_release(net);
}

static void drain_all(const struct net *net)
{
	FOR_EACH_STACK(stack, net) {
		stack_lock(stack);
		stack_drain_locked(stack);
		stack_unlock(stack);
	}
}

void net_poll_all(struct net *net)
{
	drain_all(net);
}

void net_zero_stats(struct net *net, const struct stats_order *order)
{
	FOR_EACH_STACK(stack, net) {
		stack_lock(stack);
		stats_zero(order);
		stack_unlock(stack);
	}
}

int net_create(const struct net_params *params, struct net **net_out)
{
	struct net *net = calloc(1, sizeof(*net));
	int err;

	if (!net)
		return -ENOMEM;
	net->params = *params;
	net->flow_memory.arena.is_not_inherited = true;
	mutex_init(&net->control, LOCK_RANK_CONTROL);
	list_init(&net->netifs);
	list_init(&net->attachments);
	for (int i = 0; i < NET_FLOW_BUCKETS; i++) {
		list_init(&net->flows[i]);
		list_init(&net->exceptions[i]);
	}
	net_view_init(&net->view, params->stack.seed);
	err = add_stack(net);
	if (err)
		goto err_free;
	err = netlink_open(&net->netlink, params->netlink, &net->view,
			   &(struct netlink_params){ 0 });
	if (err)
		goto err_stack;
	net->netns = netns_here();
	listen_to_routers(net);
	give_back_open(&net->door);
	err = netlink_wait_synced(&net->netlink, SYNC_TIMEOUT_MS);
	if (err && err != -ETIMEDOUT)
		goto err_conn;
	atomic_store(&net->seen_route_gen, net_view_route_gen(&net->view));
	publish_own(net);
	*net_out = net;
	return 0;
err_conn:
	give_back_close(&net->door);
	stop_listening(net);
	netlink_close(&net->netlink);
err_stack:
	destroy_stacks(net);
err_free:
	net_view_destroy(&net->view);
	free(net);
	return err;
}

/* Without the control mutex: nobody else knows the network any more. */
NO_LOCK_ANALYSIS void net_destroy(struct net *net)
{
	if (!net)
		return;
	INVARIANT(list_is_empty(&net->attachments), "sockets are attached");
	netif_destroy_all(net);
	give_back_close(&net->door);
	stop_listening(net);
	netlink_close(&net->netlink);
	net_view_destroy(&net->view);
	destroy_stacks(net);
	rpf_free(net->rpf);
	if (net->frame)
		munmap(net->frame, sizeof(*net->frame));
	free(net->own);
	free(net);
}

int net_event_fd(const struct net *net)
{
	return netlink_event_fd(&net->netlink);
}

/* -- attaching ------------------------------------------------------------- */

static int make_reachable_locked(struct stack *stack, struct endpoint *end,
				 const struct attach_where *where)
	REQUIRES(stack->lock)
{
	end->key = (struct flow_key){
		.local = where->local,
		.remote = where->remote,
		.local_port = where->local_port,
		.remote_port = where->remote_port,
	};
	end->proto = where->proto;
	end->ifindex = (uint32_t)where->ifindex;
	end->is_shared = where->is_shared;
	end->is_ipv6 = where->is_ipv6;
	end->named_ns = where->named_ns;
	return demux_add(&stack->demux, end);
}

static int make_reachable(struct endpoint *end,
			  const struct attach_where *where)
{
	struct stack *stack = where->stack;
	int err;

	stack_lock(stack);
	err = make_reachable_locked(stack, end, where);
	stack_unlock(stack);
	return err;
}

/* The same for one that is reachable under another name. What has come so far still goes
 * to it by that name. With an error it is not reachable. */
static int make_reachable_anew(struct endpoint *end,
			       const struct attach_where *where)
{
	struct stack *stack = where->stack;
	int err;

	stack_lock(stack);
	stack_drain_locked(stack);
	demux_remove(&stack->demux, end);
	err = make_reachable_locked(stack, end, where);
	stack_unlock(stack);
	return err;
}

/* Called when the flows are gone. The frames that they have brought so far still go
 * to the endpoint. */
static void make_unreachable(struct stack *stack, struct endpoint *end)
{
	stack_lock(stack);
	stack_drain_locked(stack);
	demux_remove(&stack->demux, end);
	stack_unlock(stack);
}

/* On the local device the way to a peer depends on who is attached, so destinations
 * have to be looked up anew. */
static void tell_local_senders(struct net *net)
{
	if (net->params.local_dev) {
		net_view_routes_changed(&net->view);
		atomic_store(&net->seen_route_gen, net_view_route_gen(&net->view));
	}
}

static void take_where(struct attachment *att, const struct attach_where *where)
{
	att->where = *where;
	/* Rules are compared, so all sockets without a peer use the same address
	 * here. */
	if (!where->remote_port)
		memset(&att->where.remote, 0, sizeof(att->where.remote));
}

static enum reason attach_locked(struct net *net, struct attachment *att,
				 struct endpoint *end,
				 const struct attach_where *where)
	REQUIRES(net->control)
{
	struct alignment a = { .net = net, .att = att };

	INVARIANT(net_control_is_mine(net), "attached without the mutex");
	take_where(att, where);
	list_init(&att->flows);
	list_init(&att->exceptions);
	if (net->broken) {
		a.reason = REASON_NETLINK;
		alignment_tell(&a, where->decider);
		return a.reason;
	}
	/* The endpoint must be reachable before the first frame can come. */
	if (make_reachable(end, &att->where) != 0) {
		a.reason = REASON_MEMORY;
		alignment_tell(&a, where->decider);
		return a.reason;
	}
	alignment_make(&a);
	if (net->is_rpf_stale)
		publish_rpf(net);
	alignment_tell(&a, where->decider);
	if (!a.held_cnt) {
		make_unreachable(where->stack, end);
		return a.reason;
	}
	att->end = end;
	list_push_back(&net->attachments, &att->link);
	tell_local_senders(net);
	return REASON_NONE;
}

static void detach_locked(struct net *net, struct attachment *att)
	REQUIRES(net->control)
{
	struct held_flow *held, *following;

	/* the wide rules go first, so that nothing comes to us again */
	LIST_FOR_EACH_SAFE(held, following, &att->flows, link)
		flow_release(net, held);
	flow_end_exceptions(net, att, NULL);
	list_remove(&att->link);
	make_unreachable(att->where.stack, att->end);
	att->end = NULL;
	tell_local_senders(net);
}

/* Moves the attachment. The new flows are there before the old ones go, so that of what
 * both bring, everything comes to the endpoint, in its order, and nothing to the kernel in
 * between. False: some of it cannot be; it has to be detached first. */
static bool move_locked(struct net *net, struct attachment *att,
			const struct attach_where *where) REQUIRES(net->control)
{
	struct alignment a = { .net = net, .att = att };

	if (net->broken || where->stack != att->where.stack ||
	    !list_is_empty(&att->exceptions))
		return false;
	take_where(att, where);
	alignment_hold(&a);
	if (!a.held_cnt || a.reason == REASON_RULES_FULL)
		return false;
	if (net->is_rpf_stale)
		publish_rpf(net);
	if (make_reachable_anew(att->end, &att->where) != 0)
		return false;
	alignment_give_up(&a);
	alignment_tell(&a, where->decider);
	tell_local_senders(net);
	return true;
}

enum reason net_attach(struct net *net, struct attachment *att,
		       struct endpoint *end, const struct attach_where *where)
{
	enum reason reason = REASON_NONE;
	bool is_moved;

	net_control_acquire(net);
	is_moved = attachment_is_made(att) && move_locked(net, att, where);
	if (attachment_is_made(att) && !is_moved)
		detach_locked(net, att);
	if (!is_moved)
		reason = attach_locked(net, att, end, where);
	net_control_release(net);
	return reason;
}

void net_detach(struct net *net, struct attachment *att)
{
	net_control_acquire(net);
	if (attachment_is_made(att))
		detach_locked(net, att);
	net_control_release(net);
}

/* The packet may have been cut to the length of its datagram. Makes IP's length fit. */
static void fit_ip(uint8_t *frame, uint32_t len)
{
	struct wire_ipv4 *ip = (void *)(frame + sizeof(struct wire_eth));
	uint32_t total_len = len - (uint32_t)sizeof(struct wire_eth);

	if (be16toh(ip->total_len) <= total_len)
		return;
	ip->total_len = htobe16((uint16_t)total_len);
	ip->check = 0;
	ip->check = csum_fold(csum_words(ip, sizeof(*ip) / 4));
}

/* Room for so long a frame, or NULL. Mapped once, since the caller may be a handler that has
 * interrupted malloc. */
static uint8_t *frame_room(struct net *net, uint32_t len) REQUIRES(net->control)
{
	INVARIANT(lock_witness_is_mine(&net->control.witness), "copied without the lock");
	if (!net->frame)
		net->frame = pages_map(sizeof(*net->frame));
	return net->frame && len <= sizeof(net->frame->bytes) ? net->frame->bytes : NULL;
}

/* Copies the frame of a received packet into one piece. NULL: there is no memory. */
static uint8_t *copy_frame(struct net *net, const struct pkt *pkt, uint32_t *len_out)
	REQUIRES(net->control)
{
	const struct rx_info *info = PKT_CB(pkt, struct rx_info);
	const uint8_t *start = pkt->buf + info->ip_at - sizeof(struct wire_eth);
	uint32_t header_len = (uint32_t)(pkt->data - start);
	uint32_t len = header_len + pkt_total_len(pkt);
	uint8_t *frame = frame_room(net, len), *at = frame;

	if (!frame)
		return NULL;
	memcpy(at, start, header_len);
	at += header_len;
	for (; pkt; pkt = pkt->next_part) {
		memcpy(at, pkt->data, pkt->len);
		at += pkt->len;
	}
	fit_ip(frame, len);
	*len_out = len;
	return frame;
}

/* Also of an interface whose device has failed. `pcp`: the priority in the tag of a
 * VLAN's frame, where the tag's first byte has it. */
static int give_frame_back(struct net *net, const struct netif *netif, uint8_t pcp,
			   uint8_t *frame, uint32_t len)
{
	struct give_back_tags tags = { .len = 0 };
	struct dev *dev = netif->dev;
	int ifindex = netif->ifindex;
	int err = dev->ops->give_back(dev, frame, len);

	if (err != -EOPNOTSUPP)
		return err;
	if (dev->vlan_id) {
		tags = give_back_tag_of((uint16_t)(pcp << 8 | dev->vlan_id));
		ifindex = netif->lower;
	}
	return give_back_frame(&net->door, ifindex, &tags, frame, len,
			       dev->caps.rx_partial_csum);
}

int net_give_back(struct net *net, const struct pkt *pkt)
{
	const struct rx_info *info = PKT_CB(pkt, struct rx_info);
	struct netif *netif;
	uint8_t *frame;
	uint32_t len;
	int err = -ENODEV;

	net_control_acquire(net);
	netif = netif_find(net, (int)info->ifindex);
	frame = copy_frame(net, pkt, &len);
	if (!frame)
		err = -ENOMEM;
	else if (netif && netif->dev)
		err = give_frame_back(net, netif, pkt->flags & PKT_PCP, frame, len);
	net_control_release(net);
	return err;
}

bool net_knows_given(struct net *net)
{
	const struct netif *netif;
	bool result = true;

	net_control_acquire(net);
	LIST_FOR_EACH(netif, &net->netifs, link)
		if (netif->dev && netif->dev->caps.takes_given)
			result = false;
	net_control_release(net);
	return result;
}

int net_give_frame(struct net *net, int ifindex, uint8_t *frame, uint32_t len)
{
	struct netif *netif;
	int err = -ENODEV;

	net_control_acquire(net);
	netif = netif_find(net, ifindex);
	if (netif && netif->dev)
		err = give_frame_back(net, netif, 0, frame, len);
	net_control_release(net);
	return err;
}

/* The frame has not been looked at yet, so it lies at `data`. */
static int give_tagged(struct net *net, const struct netif *netif, const struct pkt *pkt)
	REQUIRES(net->control)
{
	uint8_t *frame = frame_room(net, pkt->len), *bare;
	struct give_back_tags tags;

	if (!frame)
		return -ENOMEM;
	memcpy(frame, pkt->data, pkt->len);
	bare = give_back_untag(frame, pkt->len, &tags);
	return give_back_frame(&net->door, netif->ifindex, &tags, bare,
			       pkt->len - tags.len,
			       netif->dev->caps.rx_partial_csum);
}

int net_give_tagged(struct net *net, const struct pkt *pkt)
{
	int ifindex = (int)PKT_CB(pkt, struct rx_info)->ifindex;
	struct netif *netif;
	int err = -ENOENT;

	net_control_acquire(net);
	netif = netif_find(net, ifindex);
	if (netif && netif->dev && link_tab_has_vlan(&net->view.links, ifindex))
		err = give_tagged(net, netif, pkt);
	net_control_release(net);
	return err;
}

static struct flow_rule rule_of_key(const struct flow_key *key, uint8_t proto)
{
	return (struct flow_rule){
		.dst = key->local,
		.dst_port = key->local_port,
		.src = key->remote,
		.src_port = key->remote_port,
		.proto = proto,
		.verdict = FLOW_TO_KERNEL,
	};
}

bool net_drives(struct net *net, int ifindex)
{
	bool result;

	net_control_acquire(net);
	result = netif_is_driven(netif_find(net, ifindex));
	net_control_release(net);
	return result;
}

int net_except(struct net *net, struct attachment *att,
	       const struct flow_key *key)
{
	struct flow_rule rule = rule_of_key(key, att->where.proto);
	int err = 0;

	net_control_acquire(net);
	if (attachment_is_made(att))
		err = flow_except(net, att, &rule);
	net_control_release(net);
	return err;
}

void net_unexcept(struct net *net, struct attachment *att,
		  const struct flow_key *key)
{
	struct flow_rule rule = rule_of_key(key, att->where.proto);

	net_control_acquire(net);
	if (attachment_is_made(att))
		flow_unexcept(net, att, &rule);
	net_control_release(net);
}

static bool has_flow_on(const struct attachment *att, int ifindex,
			const struct ip_addr *dst)
{
	const struct held_flow *held;

	LIST_FOR_EACH(held, &att->flows, link)
		if (held->flow->netif->ifindex == ifindex &&
		    netif_is_driven(held->flow->netif) &&
		    ip_addr_eq(&held->flow->rule.dst, dst))
			return true;
	return false;
}

bool net_keeps_all(struct net *net, const struct attachment *att,
		   const struct flow_key *key)
{
	const struct link *link;
	bool result;

	net_control_acquire(net);
	result = attachment_is_made(att) && !net->broken;
	LIST_FOR_EACH(link, &net->view.links.links, in_tab)
		if (result && link_is_up(link) && !link_is_loopback(link))
			result = has_flow_on(att, link->info.ifindex,
					     &key->local);
	net_control_release(net);
	return result;
}

bool net_is_local_locked(struct net *net, const struct flow_key *key,
			 uint8_t proto)
{
	struct netif *local = netif_get_local(net);
	struct flow_rule rule = {
		.dst = key->local,
		.dst_port = key->local_port,
		.src = key->remote,
		.src_port = key->remote_port,
		.proto = proto,
	};

	INVARIANT(net_control_is_mine(net), "asked without the mutex");
	if (!netif_is_driven(local))
		return false;
	if (flow_find(net, local, &rule))
		return true;
	memset(&rule.src, 0, sizeof(rule.src));
	rule.src_port = 0;
	return flow_find(net, local, &rule) != NULL;
}

/* -- news ------------------------------------------------------------------ */

/* Flows must be released before their interface is given up. */
static void release_flows_of(struct net *net, const struct netif *netif)
	REQUIRES(net->control)
{
	struct held_flow *held, *following;
	struct attachment *att;

	LIST_FOR_EACH(att, &net->attachments, link) {
		LIST_FOR_EACH_SAFE(held, following, &att->flows, link)
			if (held->flow->netif == netif)
				flow_release(net, held);
		flow_end_exceptions(net, att, netif);
	}
}

static void check_netifs(struct net *net) REQUIRES(net->control)
{
	struct netif *netif;

	LIST_FOR_EACH(netif, &net->netifs, link) {
		bool was_driven = netif_is_driven(netif);
		bool is_over = netif_check(net, netif);

		paced_check(netif);

		/* destinations end first */
		if (was_driven && netif->is_failing)
			net_view_routes_changed(&net->view);
		if (!is_over)
			continue;
		release_flows_of(net, netif);
		/* what they have brought so far still goes to the sockets */
		drain_all(net);
		/* Destinations remember the ring of the interface. After this line
		 * no thread finds such a destination valid any more. They look under
		 * the stack's lock, and the closing takes that lock afterwards. */
		net_view_routes_changed(&net->view);
		netif_close(net, netif);
	}
}

static void align_all(struct net *net) REQUIRES(net->control)
{
	struct attachment *att;

	LIST_FOR_EACH(att, &net->attachments, link) {
		struct alignment a = { .net = net, .att = att };

		alignment_make(&a);
		alignment_tell(&a, STATS_BY_NEWS);
	}
}

static void follow_news(struct net *net) REQUIRES(net->control)
{
	if (net_followed_gen(net) == net_view_route_gen(&net->view))
		return;
	check_netifs(net);
	atomic_store(&net->seen_route_gen, net_view_route_gen(&net->view));
	publish_own(net);
	align_all(net);
	publish_rpf(net);
}

static bool has_news(const struct net *net)
{
	struct pollfd events = { .fd = netlink_event_fd(&net->netlink), .events = POLLIN };

	return real.poll(&events, 1, 0) > 0;
}

/* Following takes long where there are many routes, whatever has changed. So while there are
 * more news to come it is done for a fifth of the time. */
enum { FOLLOW_PAUSE = 4 };

static void follow_in_turn(struct net *net, bool has_more) REQUIRES(net->control)
{
	uint64_t begun = clock_monotonic_ns(), ended;

	/* nobody calls again for what is in no queue yet */
	if (has_more && begun < net->follow_after_ns && has_news(net))
		return;
	follow_news(net);
	ended = clock_monotonic_ns();
	net->follow_after_ns = ended + FOLLOW_PAUSE * (ended - begun);
}

/* A waiter wakes within some tens of microseconds. */
enum { LET_IN_NAPS = 50, LET_IN_NAP_NS = 20000 };

/* One who takes the mutex again and again leaves it to nobody else: who is woken for it comes
 * too late each time. */
static void let_others_in(const struct net *net)
{
	for (int naps = 0; naps < LET_IN_NAPS && atomic_load(&net->control_waiting); naps++)
		inside_nap(LET_IN_NAP_NS);
}

bool net_events(struct net *net)
{
	bool is_news, goes_on;
	int more;

	let_others_in(net);
	net_control_acquire(net);
	more = net->broken ? 0 : netlink_poll(&net->netlink);
	if (more < 0) {
		net->broken = more;
		log_err("the kernel's tables cannot be read any more (%s); sockets stay as they are",
			strerror(-more));
	}
	follow_in_turn(net, more > 0);
	is_news = net->seen_gen != net_view_gen(&net->view);
	net->seen_gen = net_view_gen(&net->view);
	goes_on = !net->broken;
	net_control_release(net);
	if (is_news)
		FOR_EACH_STACK(stack, net)
			dst_lookups_again(stack);
	return goes_on;
}

int net_icmp_fd(const struct net *net)
{
	return atomic_load(&net->icmp_fd);
}

void net_hear_routers(struct net *net)
{
	net_control_acquire(net);
	path_news_take(net);
	net_control_release(net);
}

void net_close_failed(struct net *net)
{
	net_control_acquire(net);
	check_netifs(net);
	follow_news(net);
	net_control_release(net);
}

bool net_check(struct net *net)
{
	bool has_paths;

	net_control_acquire(net);
	has_paths = path_news_check(net);
	confirms_tell(net);
	check_netifs(net);
	follow_news(net);
	net_control_release(net);
	FOR_EACH_STACK(stack, net)
		stack_check(stack);
	return has_paths;
}
