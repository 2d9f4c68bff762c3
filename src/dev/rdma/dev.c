/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interfaces driven by RDMA devices: how one is found and taken, its memory, its
 * rules, and how it is given back. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "dev/rdma/find.h"
#include "dev/rdma/rdma_priv.h"
#include "dev/rdma/rule.h"
#include "pkt/wire.h"
#include "stats/stats_publish.h"

struct rdma_back_end {
	struct backend backend;
	struct rdma_params params;
};

/* The best first. */
static const struct rdma_kind *const kinds[] = {
#ifdef RDMA_HAS_MLX5
	&rdma_kind_mlx5,
#endif
	&rdma_kind_verbs,
};
#ifdef RDMA_HAS_MLX5
static const char no_kind[] = "its RDMA device is no ConnectX that we know";
#else
static const char no_kind[] = "this library was built without mlx5";
#endif

/* A rule that the device has. */
struct rule {
	struct list link;
	struct flow_rule flow;
	/* of the device's tag and the flow's */
	uint32_t tag;
	struct ibv_qp *qp;
	struct ibv_flow *ibv;
};

enum {
	/* Room in front of a received frame, as the stack's pools have it. */
	HEADROOM = 128,
	/* What is to be cut has one header of IP, whose length has 16 bits. */
	TSO_LEN_MAX = UINT16_MAX - (20 + 60),
};

static struct rdma_dev *dev_of(struct dev *dev)
{
	return CONTAINER_OF(dev, struct rdma_dev, dev);
}

/* -- memory ------------------------------------------------------------------------ */

/* A frame holds the largest packet. */
static uint32_t frame_size_for(uint32_t mtu)
{
	uint32_t size = 2048;

	while (size < mtu + sizeof(struct wire_eth) + RDMA_VLAN_LEN + HEADROOM)
		size *= 2;
	return size;
}

static int rdma_region_share(struct dev *dev, struct region *region, uint32_t id)
{
	struct rdma_dev *own = dev_of(dev);
	int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;

	if (own->mrs[id])
		(void)!ibv_dereg_mr(own->mrs[id]);
	own->mrs[id] = NULL;
	if (!region)
		return 0;
	own->mrs[id] = ibv_reg_mr(own->pd, region->mem, region->mem_size,
				  rights);
	if (!own->mrs[id])
		return -errno;
	own->lkeys[id] = own->mrs[id]->lkey;
	return 0;
}

static int add_region(struct rdma_dev *own, uint32_t frame_cnt,
		      uint32_t frame_size, enum region_pages pages)
{
	uint32_t id = atomic_load(&own->dev.regions.cnt);
	struct region *region;
	int err;

	if (id == REGION_SET_MAX)
		return -ENOSPC;
	err = region_create(frame_cnt, frame_size, pages, &region);
	if (err)
		return err;
	err = rdma_region_share(&own->dev, region, id);
	if (!err)
		err = region_set_add(&own->dev.regions, region);
	if (err)
		region_put(region);
	else if (!id)
		own->dev.region = region;
	return err;
}

/* Its own, or those of other devices. */
static int take_regions(struct rdma_dev *own, const struct backend_request *request)
{
	const struct region_set *set = request->regions;
	int err = 0;

	if (!set)
		return add_region(own, request->frame_cnt,
				  frame_size_for(request->rx_mtu), request->pages);
	for (uint32_t i = 0; i < atomic_load(&set->cnt) && !err; i++) {
		err = rdma_region_share(&own->dev, set->regions[i], i);
		if (!err)
			region_set_share(&own->dev.regions, set->regions[i]);
	}
	own->dev.region = set->regions[0];
	return err;
}

static void free_regions(struct rdma_dev *own)
{
	for (int i = 0; i < REGION_SET_MAX; i++)
		if (own->mrs[i])
			(void)!ibv_dereg_mr(own->mrs[i]);
	region_set_put(&own->dev.regions);
}

/* -- rules ------------------------------------------------------------------------- */

static struct list *bucket_of(struct rdma_dev *own, const struct flow_rule *flow)
{
	return &own->rules[be16toh(flow->dst_port) % RDMA_RULE_BUCKETS];
}

static bool is_same(const struct flow_rule *a, const struct flow_rule *b)
{
	return a->proto == b->proto && a->dst_port == b->dst_port &&
	       a->src_port == b->src_port && ip_addr_eq(&a->dst, &b->dst) &&
	       ip_addr_eq(&a->src, &b->src);
}

static struct rule *find_rule(struct rdma_dev *own, const struct flow_rule *flow)
{
	struct rule *rule;

	LIST_FOR_EACH(rule, bucket_of(own, flow), link)
		if (is_same(&rule->flow, flow))
			return rule;
	return NULL;
}

/* Tells the device of a rule. */
static int install(struct rdma_dev *own, struct rule *rule)
{
	struct rule_attr attr;
	int err = rule_build(&rule->flow, own->dev.mac, own->port,
			     own->dev.vlan_id, rule->tag, &attr);

	if (err)
		return err;
	rule->ibv = ibv_create_flow(rule->qp, &attr.head);
	if (rule->ibv)
		return 0;
	/* Drivers have different words for a table that is full. */
	return errno == ENOMEM ? -ENOSPC : -errno;
}

static void uninstall(struct rule *rule)
{
	int err = ibv_destroy_flow(rule->ibv);

	if (err)
		log_dbg("a flow rule is not removed (%s)", strerror(err));
}

static int rdma_flow_add(struct dev *dev, const struct flow_rule *flow,
			 struct ring *ring, uint32_t tag)
{
	struct rdma_dev *own = dev_of(dev);
	struct rule *rule;
	int err;

	if (find_rule(own, flow))
		return -EEXIST;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	rule->flow = *flow;
	rule->tag = own->tag + tag;
	rule->qp = rdma_ring_qp(ring);
	err = install(own, rule);
	if (err) {
		free(rule);
		return err;
	}
	list_push_back(bucket_of(own, flow), &rule->link);
	return 0;
}

/* The kernel's command alone: ibv_destroy_flow() frees memory as well. Whoever has changed
 * its rights since it opened the device may not write it. */
static bool drop(struct rdma_dev *own, const struct rule *rule)
{
	struct {
		struct ib_uverbs_cmd_hdr head;
		struct ib_uverbs_ex_cmd_hdr more;
		struct ib_uverbs_destroy_flow body;
	} cmd = {
		.head = { .command = IB_USER_VERBS_CMD_FLAG_EXTENDED |
				     IB_USER_VERBS_EX_CMD_DESTROY_FLOW,
			  .in_words = sizeof(cmd.body) / 8 },
		.body.flow_handle = rule->ibv->handle,
	};

	return real.write(own->ctx->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd);
}

static void rdma_flow_remove(struct dev *dev, const struct flow_rule *flow)
{
	struct rdma_dev *own = dev_of(dev);
	struct rule *rule = find_rule(own, flow);

	if (!rule)
		return;
	list_remove(&rule->link);
	if (own->is_left && drop(own, rule)) {
		list_push_back(&own->dropped, &rule->link);
		return;
	}
	uninstall(rule);
	free(rule);
}

/* What libibverbs has of them stays: it frees that only with the card's rule. */
static void rdma_ending(struct dev *dev, enum dev_end how_far)
{
	struct rdma_dev *own = dev_of(dev);
	struct list *link;

	own->is_left = how_far != DEV_GOES_ON;
	while (!own->is_left && (link = list_pop_front(&own->dropped)))
		free(LIST_ENTRY(link, struct rule, link));
}

/* Rules name the interface's address. */
static int renew_rules(struct rdma_dev *own)
{
	struct rule *rule;
	int err;

	for (int i = 0; i < RDMA_RULE_BUCKETS; i++)
		LIST_FOR_EACH(rule, &own->rules[i], link) {
			struct ibv_flow *old = rule->ibv;

			err = install(own, rule);
			if (err) {
				rule->ibv = old;
				return err;
			}
			(void)!ibv_destroy_flow(old);
		}
	return 0;
}

/* -- the device -------------------------------------------------------------------- */

/* The queues become the ring's, or end. */
static int make_ring(struct rdma_dev *own, struct rdma_queues *queues,
		     struct pkt_pool *pool, struct ring **ring_out)
{
	int err = own->kind->ring_create(own, queues, pool, ring_out);

	if (err)
		rdma_queues_close(queues);
	else if (own->dev.vlan_id)
		rdma_ring_add_vlan(*ring_out);
	return err;
}

static int rdma_ring_create(struct dev *dev, struct pkt_pool *pool,
			    struct ring **ring_out)
{
	struct rdma_dev *own = dev_of(dev);
	struct rdma_queues queues = own->first;
	int err;

	if (own->has_first) {
		own->has_first = false;
	} else {
		err = rdma_queues_open(own, &queues);
		if (err)
			return err;
	}
	return make_ring(own, &queues, pool, ring_out);
}

static int rdma_paced_ring_create(struct dev *dev, const struct ring_pace *pace,
				  struct pkt_pool *pool, struct ring **ring_out)
{
	struct rdma_dev *own = dev_of(dev);
	struct rdma_queues queues;
	int err = rdma_queues_open_paced(own, pace, &queues);

	return err ? err : make_ring(own, &queues, pool, ring_out);
}

static int rdma_region_add(struct dev *dev, uint32_t frame_cnt)
{
	const struct region *first = dev->region;

	return add_region(dev_of(dev), frame_cnt, first->frame_size,
			  first->pages);
}

/* What the event means for the device: 0, or it has ended. */
static int weigh(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		return -ENODEV;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_WQ_FATAL:
		return -EIO;
	default:
		/* Of links that go and come the kernel tells everybody. */
		return 0;
	}
}

enum { EVENTS_MAX = 64 };

static void read_events(struct rdma_dev *own)
{
	struct ibv_async_event event;

	for (int i = 0; i < EVENTS_MAX &&
			ibv_get_async_event(own->ctx, &event) == 0;
	     i++) {
		int failure = weigh(&event);

		log_dbg("%s: %s", own->dev.name,
			ibv_event_type_str(event.event_type));
		if (failure)
			atomic_store(&own->failure, failure);
		ibv_ack_async_event(&event);
	}
}

static int rdma_check(struct dev *dev)
{
	struct rdma_dev *own = dev_of(dev);

	read_events(own);
	if (!atomic_load(&own->failure))
		stamps_keep(&own->stamps);
	return atomic_load(&own->failure);
}

static int rdma_link_changed(struct dev *dev)
{
	struct rdma_dev *own = dev_of(dev);

	if (frame_size_for(dev->rx_mtu) > dev->region->frame_size)
		return -EOPNOTSUPP;
	dev->caps.tx_len_max = dev->mtu + sizeof(struct wire_eth);
	return renew_rules(own);
}

static void close_context(struct rdma_dev *own)
{
	rdma_show_fd(&own->ctx->async_fd);
	rdma_show_fd(&own->ctx->cmd_fd);
	(void)!ibv_close_device(own->ctx);
}

static void rdma_close(struct dev *dev)
{
	struct rdma_dev *own = dev_of(dev);

	if (own->has_first)
		rdma_queues_close(&own->first);
	free_regions(own);
	(void)!ibv_dealloc_pd(own->pd);
	close_context(own);
	free(own);
}

static struct dev_ops ops = {
	.ring_create = rdma_ring_create,
	.paced_ring_create = rdma_paced_ring_create,
	.flow_add = rdma_flow_add,
	.flow_remove = rdma_flow_remove,
	.region_add = rdma_region_add,
	.region_share = rdma_region_share,
	.check = rdma_check,
	.link_changed = rdma_link_changed,
	.ending = rdma_ending,
	.close = rdma_close,
};

/* One for each kind, since the name is in it. */
static struct dev_ops kind_ops[ARRAY_LEN(kinds)];

/* -- the back end ------------------------------------------------------------------ */

static int refuse(struct dev_verdict *why, int err, const char *what)
{
	why->err = err;
	why->refusal = err == -EPERM || err == -EACCES ? DEV_REFUSED_RIGHTS :
		       err == -ENOMEM			? DEV_REFUSED_MEMORY :
		       err == -EOPNOTSUPP || err == -ENODEV ?
							DEV_REFUSED_KIND :
							DEV_REFUSED_ERROR;
	snprintf(why->text, sizeof(why->text), "%s: %s", what, strerror(-err));
	return err;
}

/* The same in words of its own. */
static int refuse_kind(struct dev_verdict *why, const char *text)
{
	why->err = -EOPNOTSUPP;
	why->refusal = DEV_REFUSED_KIND;
	snprintf(why->text, sizeof(why->text), "%s", text);
	return -EOPNOTSUPP;
}

/* The flows' tags follow it, and all of them are between 0 and RULE_TAG_MAX. Two processes
 * hardly ever have the same one for the same rule: a card refuses such a rule only if the
 * tags differ. */
static uint32_t draw_tag(void)
{
	uint32_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		drawn = (uint32_t)getpid();
	return 1 + drawn % (RULE_TAG_MAX - FLOW_TAG_MAX - 1);
}

static bool is_wanted(const struct rdma_kind *kind, enum rdma_wish wish)
{
	return wish == RDMA_WISH_BEST ||
	       (wish == RDMA_WISH_VERBS) == (kind == &rdma_kind_verbs);
}

/* NULL: none that is wanted serves the device. */
static const struct rdma_kind *choose_kind(struct ibv_device *device,
					   enum rdma_wish wish)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (is_wanted(kinds[i], wish) &&
		    (!kinds[i]->serves || kinds[i]->serves(device)))
			return kinds[i];
	return NULL;
}

static const struct dev_ops *ops_of(const struct rdma_kind *kind)
{
	size_t i = 0;

	while (kinds[i] != kind)
		i++;
	return &kind_ops[i];
}

/* Without checksums there is nothing to be cut. Some count the header, too. */
static uint32_t tso_max_of(const struct rdma_dev *own,
			   const struct ibv_device_attr_ex *attr)
{
	const struct ibv_tso_caps *caps = &attr->tso_caps;

	if (!own->params->has_tso || !own->has_csum ||
	    !(caps->supported_qpts & 1u << IBV_QPT_RAW_PACKET) ||
	    caps->max_tso <= RDMA_TSO_HEADER_MAX)
		return 0;
	return MIN(caps->max_tso - RDMA_TSO_HEADER_MAX, (uint32_t)TSO_LEN_MAX);
}

static void ask_for_paces(struct dev_caps *caps, const struct ibv_device_attr_ex *attr)
{
	const struct ibv_packet_pacing_caps *paces = &attr->packet_pacing_caps;

	if (!(paces->supported_qpts & 1u << IBV_QPT_RAW_PACKET))
		return;
	caps->pace_min = paces->qp_rate_limit_min;
	caps->pace_max = paces->qp_rate_limit_max;
}

static int ask_device(struct rdma_dev *own, struct dev_verdict *why)
{
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	int err = ibv_query_device_ex(own->ctx, NULL, &attr);

	if (!err)
		err = ibv_query_port(own->ctx, (uint8_t)own->port, &port);
	if (err)
		return refuse(why, -err, "its RDMA device does not answer");
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return refuse_kind(why, "its port is not Ethernet");
	own->max_wr = (uint32_t)attr.orig_attr.max_qp_wr;
	own->max_cqe = (uint32_t)attr.orig_attr.max_cqe;
	own->has_csum = attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM;
	own->tso_max = tso_max_of(own, &attr);
	own->dev_mem_max = attr.max_dm_size;
	ask_for_paces(&own->dev.caps, &attr);
	stamps_open(&own->stamps, own->ctx, &attr, own->params->stamps,
		    own->dev.name);
	return 0;
}

static void open_async(struct rdma_dev *own)
{
	long flags = real.fcntl(own->ctx->async_fd, F_GETFL, NULL);

	if (flags >= 0)
		(void)!real.fcntl(own->ctx->async_fd, F_SETFL,
				  (void *)(flags | O_NONBLOCK));
	rdma_hide_fd(&own->ctx->async_fd);
	rdma_hide_fd(&own->ctx->cmd_fd);
}

/* Takes what the interface needs of a device that is open. */
static int take(struct rdma_dev *own, const struct backend_request *request,
		struct dev_verdict *why)
{
	int err = ask_device(own, why);

	if (err)
		return err;
	own->pd = ibv_alloc_pd(own->ctx);
	if (!own->pd)
		return refuse(why, -errno, "a protection domain");
	err = take_regions(own, request);
	if (err) {
		refuse(why, err, "memory for frames");
		goto err_regions;
	}
	err = rdma_queues_open(own, &own->first);
	if (err) {
		refuse(why, err, "queues for raw frames");
		goto err_regions;
	}
	own->has_first = true;
	own->dev.caps.tso_max =
		MIN(own->tso_max,
		    own->kind->tso_parts *
			    (own->dev.region->frame_size - HEADROOM));
	return 0;
err_regions:
	free_regions(own);
	(void)!ibv_dealloc_pd(own->pd);
	return err;
}

static void init_dev(struct rdma_dev *own, const struct backend_request *request,
		     struct ibv_device *device)
{
	struct dev *dev = &own->dev;

	dev->ops = ops_of(own->kind);
	dev->ifindex = request->ifindex;
	snprintf(dev->name, sizeof(dev->name), "%s", request->name);
	memcpy(dev->mac, request->mac, sizeof(dev->mac));
	dev->mtu = request->mtu;
	dev->rx_mtu = request->rx_mtu;
	dev->vlan_id = request->vlan_id;
	dev->caps = (struct dev_caps){
		.rules_outlast_failure = true,
		.bears_vlans = true,
		.tx_len_max = request->mtu + (uint32_t)sizeof(struct wire_eth),
	};
	if (dev->vlan_id)
		snprintf(dev->mode, sizeof(dev->mode), "%.12s port %u, VLAN %u",
			 ibv_get_device_name(device), own->port, dev->vlan_id);
	else
		snprintf(dev->mode, sizeof(dev->mode), "%.20s port %u",
			 ibv_get_device_name(device), own->port);
	own->tag = draw_tag();
	list_init(&own->dropped);
	for (int i = 0; i < RDMA_RULE_BUCKETS; i++)
		list_init(&own->rules[i]);
}

static int open_device(struct rdma_back_end *end,
		       const struct backend_request *request,
		       struct ibv_device *device, unsigned port,
		       struct dev **dev_out, struct dev_verdict *why)
{
	struct rdma_dev *own;
	const struct rdma_kind *kind =
		choose_kind(device, end->params.wish);
	int err;

	if (!kind)
		return refuse_kind(why, no_kind);
	own = calloc(1, sizeof(*own));
	if (!own)
		return refuse(why, -ENOMEM, "memory");
	own->params = &end->params;
	own->kind = kind;
	own->port = port;
	own->sharer_cnt = request->bond ? request->bond->port_cnt : 1;
	init_dev(own, request, device);
	own->ctx = ibv_open_device(device);
	if (!own->ctx) {
		err = refuse(why, errno ? -errno : -ENODEV,
			     "its RDMA device cannot be opened");
		goto err_free;
	}
	open_async(own);
	err = take(own, request, why);
	if (err)
		goto err_context;
	*dev_out = &own->dev;
	return 0;
err_context:
	close_context(own);
err_free:
	free(own);
	return err;
}

static int rdma_open(struct backend *backend,
		     const struct backend_request *request,
		     struct dev **dev_out, struct dev_verdict *why)
{
	struct rdma_back_end *end =
		CONTAINER_OF(backend, struct rdma_back_end, backend);
	struct ibv_device **list = ibv_get_device_list(NULL);
	/* a VLAN has no port of its own */
	int ifindex = request->vlan_id ? request->lower : request->ifindex;
	const char *name = request->vlan_id ? request->lower_name : request->name;
	int err = 0;

	if (!list)
		return refuse(why, -errno, "RDMA devices cannot be listed");
	for (int i = 0; list[i] && request->bond; i++)
		if (rdma_is_bond(list[i]->ibdev_path, request->bond->name)) {
			err = refuse_kind(why, "its bond is one RDMA device (RoCE LAG)");
			goto out;
		}
	for (int i = 0; list[i]; i++) {
		unsigned port = rdma_find_port(list[i]->ibdev_path, ifindex, name);

		if (!port)
			continue;
		err = open_device(end, request, list[i], port, dev_out, why);
		goto out;
	}
	err = refuse_kind(why, "it has no RDMA device");
out:
	ibv_free_device_list(list);
	return err;
}

struct backend *backend_make(const void *options)
{
	const struct rdma_params *params = options;
	static struct rdma_back_end end = {
		.backend = {
			.name = "rdma",
			.shares_regions = true,
			.open = rdma_open,
		},
	};
	int err;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		kind_ops[i] = ops;
		kind_ops[i].name = kinds[i]->name;
		dev_ops_fill(&kind_ops[i]);
		kinds[i]->start();
	}
	end.params = *params;
	/* Kernels before 5.12 would give a parent new pages for those that a child
	 * writes to, which the card does not know. */
	if (params->may_fork) {
		err = ibv_fork_init();
		if (err)
			log_dbg("libibverbs is not ready for forks (%s)",
				strerror(err));
	}
	return &end.backend;
}
