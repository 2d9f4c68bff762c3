/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flow registry (flow.h). */
#include "config.h"

#include "net/flow.h"

#include <errno.h>

static bool is_same(const struct flow_rule *a, const struct flow_rule *b)
{
	return a->proto == b->proto && a->dst_port == b->dst_port &&
	       a->src_port == b->src_port && ip_addr_eq(&a->dst, &b->dst) &&
	       ip_addr_eq(&a->src, &b->src);
}

static struct list *bucket_of(struct net *net, const struct flow_rule *rule)
{
	return &net->flows[be16toh(rule->dst_port) % NET_FLOW_BUCKETS];
}

struct flow *flow_find(struct net *net, const struct netif *netif,
		       const struct flow_rule *rule)
{
	struct flow *flow;

	LIST_FOR_EACH(flow, bucket_of(net, rule), link)
		if (flow->netif == netif && is_same(&flow->rule, rule))
			return flow;
	return NULL;
}

/* -- exceptions ------------------------------------------------------------ */

/* A server may have one for each of very many connections at its port. */
static struct list *bucket_of_exception(struct net *net,
					const struct flow_rule *rule)
{
	return &net->exceptions[be16toh(rule->src_port) % NET_FLOW_BUCKETS];
}

static bool is_excepted(struct net *net, const struct attachment *att,
			const struct netif *netif, const struct flow_rule *rule)
{
	const struct flow_exception *e;

	LIST_FOR_EACH(e, bucket_of_exception(net, rule), link)
		if (e->att == att && e->netif == netif && is_same(&e->rule, rule))
			return true;
	return false;
}

static void end_exception(struct net *net, struct flow_exception *e)
{
	struct dev *dev = e->netif ? e->netif->dev : NULL;

	if (dev)
		dev->ops->flow_remove(dev, &e->rule);
	list_remove(&e->of_att);
	list_remove(&e->link);
	mem_pool_put(&net->flow_memory, e, sizeof(*e));
}

static int note(struct net *net, struct attachment *att, struct netif *netif,
		const struct flow_rule *rule)
{
	struct flow_exception *e = mem_pool_get(&net->flow_memory, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->att = att;
	e->netif = netif;
	e->rule = *rule;
	list_push_back(&att->exceptions, &e->of_att);
	list_push_back(bucket_of_exception(net, rule), &e->link);
	return 0;
}

/* On one interface, unless it is there already. */
static int except(struct net *net, struct attachment *att, struct netif *netif,
		  const struct flow_rule *rule)
{
	struct dev *dev = netif->dev;
	int err;

	if (is_excepted(net, att, netif, rule))
		return 0;
	if (!dev->caps.kernel_verdicts)
		return -EOPNOTSUPP;
	err = dev->ops->flow_add(dev, rule, NULL, 0);
	if (!err) {
		err = note(net, att, netif, rule);
		if (err)
			dev->ops->flow_remove(dev, rule);
	}
	return err;
}

int flow_except(struct net *net, struct attachment *att,
		const struct flow_rule *rule)
{
	bool is_there = false, is_refused = false;
	struct held_flow *held;
	int err = 0;

	if (!is_excepted(net, att, NULL, rule))
		err = note(net, att, NULL, rule);
	LIST_FOR_EACH(held, &att->flows, link) {
		struct flow *flow = held->flow;

		if (err || !netif_is_driven(flow->netif) ||
		    !ip_addr_eq(&flow->rule.dst, &rule->dst))
			continue;
		err = except(net, att, flow->netif, rule);
		is_there |= !err;
		if (err == -EOPNOTSUPP || err == -ENOSPC) {
			is_refused = true;
			err = 0;
			stack_note_guests(flow->stack);
		}
	}
	if (!err && is_refused && !is_there)
		err = -EOPNOTSUPP;
	if (err)
		flow_unexcept(net, att, rule);
	return err;
}

/* Before a flow is there, so that nothing of theirs comes to us. Where one cannot be, whoever
 * gets the frames gives them back. */
static void except_again(struct net *net, struct attachment *att, struct netif *netif,
			 const struct ip_addr *dst)
{
	struct flow_exception *e;

	LIST_FOR_EACH(e, &att->exceptions, of_att)
		if (!e->netif && ip_addr_eq(&e->rule.dst, dst))
			(void)!except(net, att, netif, &e->rule);
}

void flow_unexcept(struct net *net, struct attachment *att,
		   const struct flow_rule *rule)
{
	struct flow_exception *e, *following;

	LIST_FOR_EACH_SAFE(e, following, bucket_of_exception(net, rule), link)
		if (e->att == att && is_same(&e->rule, rule))
			end_exception(net, e);
}

void flow_end_exceptions(struct net *net, struct attachment *att,
			 const struct netif *netif)
{
	struct flow_exception *e, *following;

	LIST_FOR_EACH_SAFE(e, following, &att->exceptions, of_att)
		if (!netif || e->netif == netif)
			end_exception(net, e);
}

/* -- flows ----------------------------------------------------------------- */

/* What the rule brings has a tag, where the ring can say so. */
static void add_tag(struct flow *flow)
{
	if (!flow->ring->has_tags)
		return;
	stack_lock(flow->stack);
	flow->tag = demux_tag_add(&flow->stack->demux);
	stack_unlock(flow->stack);
}

static void remove_tag(struct flow *flow)
{
	if (!flow->tag)
		return;
	stack_lock(flow->stack);
	demux_tag_remove(&flow->stack->demux, flow->tag);
	stack_unlock(flow->stack);
}

static int make(struct net *net, struct netif *netif, struct stack *stack,
		const struct flow_rule *rule, struct flow **flow_out)
{
	struct flow *flow = mem_pool_get(&net->flow_memory, sizeof(*flow));
	int err;

	if (!flow)
		return -ENOMEM;
	flow->netif = netif;
	flow->rule = *rule;
	flow->stack = stack;
	flow->tag = 0;
	err = netif_ring(netif, stack, &flow->ring);
	if (!err) {
		add_tag(flow);
		err = netif->dev->ops->flow_add(netif->dev, rule, flow->ring,
						flow->tag);
	}
	if (err) {
		remove_tag(flow);
		mem_pool_put(&net->flow_memory, flow, sizeof(*flow));
		return err;
	}
	list_push_back(bucket_of(net, rule), &flow->link);
	*flow_out = flow;
	return 0;
}

int flow_hold(struct net *net, struct attachment *att, struct netif *netif,
	      const struct flow_rule *rule)
{
	struct flow *flow = flow_find(net, netif, rule);
	struct held_flow *held;
	int err;

	if (flow && flow->stack != att->where.stack)
		return -EEXIST;
	LIST_FOR_EACH(held, &att->flows, link) {
		if (flow && held->flow == flow) {
			held->is_wanted = true;
			return 0;
		}
	}
	held = mem_pool_get(&net->flow_memory, sizeof(*held));
	if (!held)
		return -ENOMEM;
	except_again(net, att, netif, &rule->dst);
	if (!flow) {
		err = make(net, netif, att->where.stack, rule, &flow);
		if (err) {
			mem_pool_put(&net->flow_memory, held, sizeof(*held));
			return err;
		}
	}
	flow->ref_cnt++;
	held->flow = flow;
	held->is_wanted = true;
	list_push_back(&att->flows, &held->link);
	return 0;
}

void flow_release(struct net *net, struct held_flow *held)
{
	struct flow *flow = held->flow;
	struct dev *dev = flow->netif->dev;

	list_remove(&held->link);
	mem_pool_put(&net->flow_memory, held, sizeof(*held));
	if (--flow->ref_cnt)
		return;
	if (dev)
		dev->ops->flow_remove(dev, &flow->rule);
	remove_tag(flow);
	list_remove(&flow->link);
	mem_pool_put(&net->flow_memory, flow, sizeof(*flow));
}
