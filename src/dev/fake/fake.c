/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Devices in memory (fake.h). */
#include "config.h"

#include "dev/fake/fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pkt/wire.h"
#include "stats/stats_publish.h"

enum { RULES_MAX = 4096, RX_QUEUE_MAX = 4096 };

struct fake_ring {
	struct ring ring;
	/* the device's lock */
	struct impair_bytes *queue[RX_QUEUE_MAX];
	/* of the rules that have brought them */
	uint32_t tags[RX_QUEUE_MAX];
	unsigned head, tail;
};

struct fake_rule {
	struct flow_rule rule;
	struct fake_ring *ring;
	uint32_t tag;
};

struct fake_dev {
	struct dev dev;
	struct fake_params params;
	struct fake_cable *cable;
	int end;
	/* Stands for the hardware, which serves several stacks. It is a leaf lock
	 * and guards everything below. */
	struct spinlock lock;
	struct fake_rule rules[RULES_MAX];
	unsigned rule_cnt;
	uint64_t unmatched_cnt;
	uint64_t rx_cnt;
};

struct fake_cable {
	struct fake_cable_params params;
	/* by the end that sends */
	struct impair *links[2];
	struct fake_dev *ends[2];
};

static struct fake_dev *fake_of(struct dev *dev)
{
	return CONTAINER_OF(dev, struct fake_dev, dev);
}

static struct fake_ring *ring_of(struct ring *ring)
{
	return CONTAINER_OF(ring, struct fake_ring, ring);
}

static uint64_t cable_now(const struct fake_cable *cable)
{
	return cable->params.now_ns ? *cable->params.now_ns : 0;
}

struct fake_cable *fake_cable_create(const struct fake_cable_params *params)
{
	struct fake_cable *cable = calloc(1, sizeof(*cable));

	if (!cable)
		return NULL;
	cable->params = *params;
	for (int i = 0; i < 2; i++)
		cable->links[i] = impair_create(&params->impair,
						params->seed + (unsigned)i,
						&impair_bytes_ops, NULL);
	if (cable->links[0] && cable->links[1])
		return cable;
	fake_cable_destroy(cable);
	return NULL;
}

void fake_cable_destroy(struct fake_cable *cable)
{
	if (!cable)
		return;
	impair_destroy(cable->links[0]);
	impair_destroy(cable->links[1]);
	free(cable);
}

const struct impair_counts *fake_cable_counts(const struct fake_cable *cable,
					      int end)
{
	return impair_counts(cable->links[end]);
}

uint64_t fake_cable_next_ns(const struct fake_cable *cable)
{
	return MIN(impair_next_ns(cable->links[0]),
		   impair_next_ns(cable->links[1]));
}

/* -- receiving ------------------------------------------------------------ */

/* The most specific rule for a UDP or TCP frame without fragments and options,
 * or NULL: what a steering program does. */
static struct fake_rule *match(struct fake_dev *fake, const uint8_t *frame,
			       size_t len) REQUIRES(fake->lock)
{
	const struct wire_eth *eth = (const void *)frame;
	struct fake_rule *best = NULL;
	struct wire_ip ip;
	__be16 ports[2];

	if (len < sizeof(*eth) || eth->type != htobe16(WIRE_ETH_IPV4) ||
	    wire_parse_ip(frame + sizeof(*eth), len - sizeof(*eth), &ip) != 0 ||
	    ip.is_fragment || ip.header_len != sizeof(struct wire_ipv4) ||
	    ip.payload_len < sizeof(ports))
		return NULL;
	memcpy(ports, frame + sizeof(*eth) + ip.header_len, sizeof(ports));
	for (unsigned i = 0; i < fake->rule_cnt; i++) {
		struct flow_rule *rule = &fake->rules[i].rule;

		if (rule->proto != ip.proto || rule->dst_port != ports[1] ||
		    !ip_addr_eq(&rule->dst, &ip.dst))
			continue;
		if (ip_addr_is_any(&rule->src)) {
			if (!best)
				best = &fake->rules[i];
		} else if (rule->src_port == ports[0] &&
			   ip_addr_eq(&rule->src, &ip.src)) {
			return &fake->rules[i];
		}
	}
	return best;
}

/* Brings the frames that have arrived at the device to the rings they are for. */
static void deliver_locked(struct fake_dev *fake) REQUIRES(fake->lock)
{
	INVARIANT(lock_witness_is_mine(&fake->lock.witness),
		  "delivered without the lock");
	/* what arrives here was sent by the other end, or in a loop by us */
	int from = fake->cable->ends[0] == fake->cable->ends[1] ? 0 :
								  !fake->end;
	struct impair *link = fake->cable->links[from];
	struct impair_bytes *bytes;
	size_t len;

	while ((bytes = impair_recv(link, cable_now(fake->cable), &len))) {
		struct fake_rule *rule = match(fake, bytes->data, len);
		struct fake_ring *ring =
			rule && rule->rule.verdict == FLOW_TO_RING ? rule->ring :
								     NULL;

		if (!ring) {
			fake->unmatched_cnt++;
			free(bytes);
		} else if (ring->tail - ring->head == RX_QUEUE_MAX) {
			stats_add(&ring->ring.counts->rx_errors, 1);
			free(bytes);
		} else {
			ring->tags[ring->tail % RX_QUEUE_MAX] = rule->tag;
			ring->queue[ring->tail++ % RX_QUEUE_MAX] = bytes;
			fake->rx_cnt++;
		}
	}
}

/* Makes a packet of the frame's bytes, in as many parts as needed. */
static struct pkt *to_packet(struct ring *ring, const struct impair_bytes *bytes)
{
	struct pkt *first = NULL, **at = &first;

	for (size_t done = 0; done < bytes->len;) {
		struct pkt *pkt = ring_pkt_alloc(ring);
		uint32_t len;

		if (!pkt) {
			pkt_put(first);
			return NULL;
		}
		len = (uint32_t)MIN((size_t)pkt_tailroom(pkt),
				    bytes->len - done);
		memcpy(pkt_append(pkt, len), bytes->data + done, len);
		done += len;
		*at = pkt;
		at = &pkt->next_part;
	}
	return first;
}

static unsigned fake_rx_poll(struct ring *ring, struct pkt **batch, unsigned cnt)
{
	struct fake_dev *fake = fake_of(ring->dev);
	struct fake_ring *own = ring_of(ring);
	unsigned got = 0;

	spinlock_acquire(&fake->lock);
	deliver_locked(fake);
	while (got < cnt && own->head != own->tail) {
		struct impair_bytes *bytes =
			own->queue[own->head % RX_QUEUE_MAX];
		struct pkt *pkt;

		spinlock_release(&fake->lock);
		pkt = to_packet(ring, bytes);
		spinlock_acquire(&fake->lock);
		if (!pkt) {
			ring->counts->rx_no_frame++;
			break;
		}
		pkt->flow_tag = own->tags[own->head++ % RX_QUEUE_MAX];
		ring->counts->rx_pkts++;
		ring->counts->rx_bytes += bytes->len;
		free(bytes);
		batch[got++] = pkt;
	}
	spinlock_release(&fake->lock);
	return got;
}

static struct ring_frame fake_rx_peek(struct ring *ring)
{
	struct fake_dev *fake = fake_of(ring->dev);
	struct fake_ring *own = ring_of(ring);
	struct ring_frame frame = RING_NO_FRAME;

	spinlock_acquire(&fake->lock);
	deliver_locked(fake);
	if (own->head != own->tail) {
		struct impair_bytes *bytes =
			own->queue[own->head % RX_QUEUE_MAX];

		frame = (struct ring_frame){ bytes->data,
					     (uint32_t)bytes->len,
					     PKT_CSUM_UNKNOWN,
					     own->tail - own->head > 1 };
	}
	spinlock_release(&fake->lock);
	return frame;
}

static void fake_rx_done(struct ring *ring)
{
	struct fake_dev *fake = fake_of(ring->dev);
	struct fake_ring *own = ring_of(ring);
	struct impair_bytes *bytes;

	spinlock_acquire(&fake->lock);
	bytes = own->queue[own->head++ % RX_QUEUE_MAX];
	spinlock_release(&fake->lock);
	ring->counts->rx_pkts++;
	ring->counts->rx_bytes += bytes->len;
	free(bytes);
}

/* -- sending -------------------------------------------------------------- */

/* Stores the checksum where the flags say. `sum` is the sum of everything after the
 * header. */
static void store_csum(uint8_t *frame, const struct ring_tx *tx, uint32_t sum)
{
	uint16_t check;

	sum = csum_add(tx->csum_sum, sum);
	check = tx->flags & RING_TX_CSUM_NOT_ZERO ? csum_fold_not_zero(sum) :
						    csum_fold(sum);
	memcpy(frame + tx->csum_at, &check, sizeof(check));
}

/* Takes the bytes. */
static void transmit(struct ring *ring, struct impair_bytes *bytes)
{
	struct fake_dev *fake = fake_of(ring->dev);
	struct fake_cable *cable = fake->cable;

	ring->counts->tx_pkts++;
	ring->counts->tx_bytes += bytes->len;
	spinlock_acquire(&fake->lock);
	if (cable->params.tap)
		cable->params.tap(cable->params.tap_ctx, cable_now(cable),
				  bytes->data, bytes->len);
	impair_send(cable->links[fake->end], cable_now(cable), bytes,
		    bytes->len);
	spinlock_release(&fake->lock);
}

static bool has_room(struct ring *ring, uint32_t cnt)
{
	struct fake_dev *fake = fake_of(ring->dev);
	size_t under_way;

	if (!fake->params.tx_max)
		return true;
	spinlock_acquire(&fake->lock);
	under_way = impair_in_flight(fake->cable->links[fake->end]);
	spinlock_release(&fake->lock);
	return under_way + cnt <= fake->params.tx_max;
}

static struct impair_bytes *tx_bytes(struct ring *ring)
{
	return CONTAINER_OF(ring->tx_frame, struct impair_bytes, data[0]);
}

static void fake_reap(struct ring *ring)
{
	struct impair_bytes *bytes;

	/* A frame that is sent belongs to the cable at once. */
	if (ring->tx_frame || !has_room(ring, 1))
		return;
	bytes = malloc(sizeof(*bytes) + RING_TX_FRAME_LEN);
	ring->tx_frame = bytes ? bytes->data : NULL;
}

static void fake_tx_commit(struct ring *ring, size_t len)
{
	struct impair_bytes *bytes = tx_bytes(ring);

	INVARIANT(len <= RING_TX_FRAME_LEN, "a frame fits its place");
	bytes->len = len;
	transmit(ring, bytes);
	ring->tx_frame = NULL;
	fake_reap(ring);
}

static int fake_tx(struct ring *ring, const struct ring_tx *tx)
{
	size_t len = tx->header_len + pkt_total_len(tx->payload);
	struct impair_bytes *bytes =
		has_room(ring, 1) ? malloc(sizeof(*bytes) + len) : NULL;
	uint8_t *at;

	if (!bytes) {
		ring->counts->tx_full++;
		pkt_put(tx->payload);
		return -EAGAIN;
	}
	bytes->len = len;
	at = bytes->data;
	memcpy(at, tx->header, tx->header_len);
	at += tx->header_len;
	for (struct pkt *part = tx->payload; part; part = part->next_part) {
		memcpy(at, part->data, part->len);
		at += part->len;
	}
	pkt_put(tx->payload);
	if (tx->flags & RING_TX_CSUM)
		store_csum(bytes->data, tx,
			   csum_partial(bytes->data + tx->header_len,
					len - tx->header_len, 0));
	transmit(ring, bytes);
	ring->wants_kick = ring->needs_kick;
	return 0;
}

/* It copies to memory of its own, and its queue is the cable. */
static bool fake_tx_fits(struct ring *ring, uint32_t cnt, uint32_t copied UNUSED)
{
	return has_room(ring, cnt);
}

static enum ring_kick fake_kick(struct ring *ring)
{
	struct fake_dev *fake = fake_of(ring->dev);

	stats_add(&ring->counts->kicks, 1);
	if (fake->params.wake)
		fake->params.wake(fake->params.wake_ctx);
	return RING_KICKED;
}

static unsigned fake_fds(struct ring *ring, int *fds, unsigned cnt)
{
	struct fake_dev *fake = fake_of(ring->dev);

	if (fake->params.fd < 0)
		return 0;
	if (cnt)
		fds[0] = fake->params.fd;
	return 1;
}

static bool fake_arm(struct ring *ring)
{
	struct fake_dev *fake = fake_of(ring->dev);
	struct fake_ring *own = ring_of(ring);
	bool is_empty;

	if (fake->params.quiet)
		fake->params.quiet(fake->params.wake_ctx);
	spinlock_acquire(&fake->lock);
	deliver_locked(fake);
	is_empty = own->head == own->tail;
	spinlock_release(&fake->lock);
	return is_empty;
}

static void fake_ring_close(struct ring *ring)
{
	struct fake_ring *own = ring_of(ring);

	while (own->head != own->tail)
		free(own->queue[own->head++ % RX_QUEUE_MAX]);
	if (ring->tx_frame)
		free(tx_bytes(ring));
	free(own);
}

static struct ring_ops fake_ring_ops = {
	.rx_poll = fake_rx_poll,
	.rx_peek = fake_rx_peek,
	.rx_done = fake_rx_done,
	.tx = fake_tx,
	.tx_commit = fake_tx_commit,
	.tx_fits = fake_tx_fits,
	.reap = fake_reap,
	.kick = fake_kick,
	.fds = fake_fds,
	.arm = fake_arm,
	.close = fake_ring_close,
};

/* -- the device ----------------------------------------------------------- */

static int fake_ring_create(struct dev *dev, struct pkt_pool *pool,
			    struct ring **ring_out)
{
	struct fake_ring *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->ring.ops = &fake_ring_ops;
	ring_set_busy(&own->ring);
	own->ring.dev = dev;
	own->ring.pool = pool;
	own->ring.counts = &own->ring.own_counts;
	own->ring.tx_fits_max = fake_of(dev)->params.tx_max;
	own->ring.needs_kick = fake_of(dev)->params.wake != NULL;
	own->ring.has_tags = true;
	fake_reap(&own->ring);
	*ring_out = &own->ring;
	return 0;
}

static bool is_same_rule(const struct flow_rule *a, const struct flow_rule *b)
{
	return a->proto == b->proto && a->dst_port == b->dst_port &&
	       a->src_port == b->src_port && ip_addr_eq(&a->dst, &b->dst) &&
	       ip_addr_eq(&a->src, &b->src);
}

/* The position of the rule, or rule_cnt. */
static unsigned find_rule(struct fake_dev *fake, const struct flow_rule *rule)
	REQUIRES(fake->lock)
{
	unsigned i;

	for (i = 0; i < fake->rule_cnt; i++)
		if (is_same_rule(&fake->rules[i].rule, rule))
			break;
	return i;
}

static int fake_flow_add(struct dev *dev, const struct flow_rule *rule,
			 struct ring *ring, uint32_t tag)
{
	struct fake_dev *fake = fake_of(dev);
	int err = 0;

	spinlock_acquire(&fake->lock);
	if (find_rule(fake, rule) < fake->rule_cnt)
		err = -EEXIST;
	else if (fake->rule_cnt == RULES_MAX)
		err = -ENOSPC;
	else
		fake->rules[fake->rule_cnt++] = (struct fake_rule){
			*rule, ring_of(ring), tag,
		};
	spinlock_release(&fake->lock);
	return err;
}

static void fake_flow_remove(struct dev *dev, const struct flow_rule *rule)
{
	struct fake_dev *fake = fake_of(dev);
	unsigned i;

	spinlock_acquire(&fake->lock);
	/* frames that have arrived were steered by the rules of that moment */
	deliver_locked(fake);
	i = find_rule(fake, rule);
	if (i < fake->rule_cnt)
		fake->rules[i] = fake->rules[--fake->rule_cnt];
	spinlock_release(&fake->lock);
}

static int fake_give_back(struct dev *dev, const void *frame, uint32_t len)
{
	struct fake_dev *fake = fake_of(dev);

	return fake->params.give_back ? fake->params.give_back(frame, len) :
					-EOPNOTSUPP;
}

static int fake_region_add(struct dev *dev, uint32_t frame_cnt)
{
	struct fake_dev *fake = fake_of(dev);
	struct region *region;
	int err = region_create(frame_cnt, fake->params.frame_size,
				REGION_SMALL_PAGES, &region);

	if (err)
		return err;
	err = region_set_add(&dev->regions, region);
	if (err)
		region_put(region);
	return err;
}

/* It copies, and need not know of any. */
static int fake_region_share(struct dev *dev UNUSED, struct region *region UNUSED,
			     uint32_t id UNUSED)
{
	return 0;
}

static int take_region(struct fake_dev *fake, const struct fake_params *params)
{
	int err;

	if (params->regions) {
		fake->dev.region = params->regions->regions[0];
		region_set_share(&fake->dev.regions, fake->dev.region);
		return 0;
	}
	err = region_create(params->frame_cnt, params->frame_size,
			    REGION_SMALL_PAGES, &fake->dev.region);
	return err ? err : region_set_add(&fake->dev.regions, fake->dev.region);
}

static void fake_close(struct dev *dev)
{
	struct fake_dev *fake = fake_of(dev);

	for (int i = 0; i < 2; i++)
		if (fake->cable->ends[i] == fake)
			fake->cable->ends[i] = NULL;
	region_set_put(&dev->regions);
	free(fake);
}

static struct dev_ops fake_dev_ops = {
	.name = "fake",
	.ring_create = fake_ring_create,
	.flow_add = fake_flow_add,
	.flow_remove = fake_flow_remove,
	.give_back = fake_give_back,
	.region_add = fake_region_add,
	.region_share = fake_region_share,
	.close = fake_close,
};

int fake_dev_create(struct fake_cable *cable, int end,
		    const struct fake_params *params, struct dev **dev_out)
{
	struct fake_dev *fake = calloc(1, sizeof(*fake));
	int err;

	if (!fake)
		return -ENOMEM;
	err = take_region(fake, params);
	if (err) {
		free(fake);
		return err;
	}
	ring_ops_fill(&fake_ring_ops);
	dev_ops_fill(&fake_dev_ops);
	spinlock_init(&fake->lock, LOCK_RANK_QUEUE);
	fake->params = *params;
	fake->cable = cable;
	fake->end = end;
	fake->dev.ops = &fake_dev_ops;
	fake->dev.ifindex = params->ifindex;
	fake->dev.mtu = params->mtu;
	fake->dev.rx_mtu = params->mtu;
	memcpy(fake->dev.mac, params->mac, sizeof(fake->dev.mac));
	strcpy(fake->dev.name, "fake");
	strcpy(fake->dev.mode, "memory");
	fake->dev.caps = (struct dev_caps){
		.needs_kick = params->wake != NULL,
		.kernel_verdicts = true,
		.tx_len_max = params->mtu + (uint32_t)sizeof(struct wire_eth),
	};
	cable->ends[end] = fake;
	*dev_out = &fake->dev;
	return 0;
}

int fake_dev_create_loop(struct fake_cable *cable,
			 const struct fake_params *params, struct dev **dev_out)
{
	int err = fake_dev_create(cable, 0, params, dev_out);

	if (!err)
		cable->ends[1] = cable->ends[0];
	return err;
}

uint64_t fake_dev_unmatched_cnt(const struct dev *dev)
{
	struct fake_dev *fake = fake_of((struct dev *)(uintptr_t)dev);
	uint64_t cnt;

	spinlock_acquire(&fake->lock);
	cnt = fake->unmatched_cnt;
	spinlock_release(&fake->lock);
	return cnt;
}

uint64_t fake_dev_rx_cnt(const struct dev *dev)
{
	struct fake_dev *fake = fake_of((struct dev *)(uintptr_t)dev);
	uint64_t cnt;

	spinlock_acquire(&fake->lock);
	cnt = fake->rx_cnt;
	spinlock_release(&fake->lock);
	return cnt;
}
