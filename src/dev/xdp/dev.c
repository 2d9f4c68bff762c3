/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interfaces driven by AF_XDP: how one is taken, in which mode it is driven, and
 * how it is given back. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dev/xdp/steer_load.h"
#include "dev/xdp/xdp_priv.h"
#include "pkt/wire.h"
#include "stats/stats_publish.h"

struct xdp_back_end {
	struct backend backend;
	struct xdp_params params;
};

static struct xdp_dev *dev_of(struct dev *dev)
{
	return CONTAINER_OF(dev, struct xdp_dev, dev);
}

int xdp_adopt_fd(int fd, _Atomic int *slot)
{
	if (services_adopt_fd(fd, slot) != 0)
		atomic_store(slot, fd);
	return 0;
}

/* -- modes ---------------------------------------------------------------------- */

/* A way to drive an interface, the best first. */
struct mode {
	const char *name;
	bool is_native;
	uint16_t bind_flags;
};

static const struct mode modes[] = {
	{ "native, zero-copy", true, XDP_ZEROCOPY },
	{ "native, copy", true, XDP_COPY },
	{ "generic", false, XDP_COPY },
};

/* Between two ends in one machine the generic mode is faster, since the native mode
 * of such drivers takes a detour. */
static const struct mode virtual_modes[] = {
	{ "generic", false, XDP_COPY },
	{ "native, copy", true, XDP_COPY },
};

static bool is_wanted(const struct mode *mode, enum xdp_wish wish)
{
	switch (wish) {
	case XDP_WISH_ZC:
		return mode->bind_flags & XDP_ZEROCOPY;
	case XDP_WISH_NATIVE:
		return mode->is_native && !(mode->bind_flags & XDP_ZEROCOPY);
	case XDP_WISH_GENERIC:
		return !mode->is_native;
	default:
		return true;
	}
}

/* -- one interface ---------------------------------------------------------------- */

static void describe(struct xdp_dev *own, const struct mode *mode)
{
	snprintf(own->dev.mode, sizeof(own->dev.mode), "%s%s", mode->name,
		 own->has_sg && !own->is_single ? "" : ", single buffers");
}

/* A frame holds the largest packet if that fits into a page. */
static uint32_t frame_size_for(uint32_t mtu)
{
	return mtu + sizeof(struct wire_eth) + XDP_HEADROOM <= 2048 ? 2048 :
								     4096;
}

/* Whatever the MTU: the kernel joins segments, and virtual interfaces take them whole. */
enum { PACKET_MAX = sizeof(struct wire_eth) + 65535 };

/* The kernel drops a packet for which it has too few frames, and takes none of them, so that the
 * queue would not grow. These are enough for the longest one, also before the next batch. */
static uint32_t least_post(uint32_t mtu)
{
	uint32_t frame_len = frame_size_for(mtu) - XDP_HEADROOM;

	return 2 * ((PACKET_MAX + frame_len - 1) / frame_len);
}

static bool is_held_by_a_frame(const struct xdp_dev *own)
{
	return own->dev.mtu + sizeof(struct wire_eth) + XDP_HEADROOM <=
	       own->dev.region->frame_size;
}

/* Without packets of several frames, longer ones are lost. In generic mode there are some,
 * whatever the MTU: the kernel joins segments before we see them. */
static bool may_lack_sg(const struct xdp_dev *own, const struct mode *mode)
{
	return mode->is_native && is_held_by_a_frame(own);
}

/* Linux before 6.6. -EAGAIN: it would do with a program for single buffers, to whose
 * interface a veth's other end sends no long ones. */
static int try_without_sg(struct xdp_dev *own, const struct mode *mode)
{
	bool was_single = own->is_single, may_lack = may_lack_sg(own, mode);
	int err;

	own->bind_flags &= (uint16_t)~XDP_USE_SG;
	own->has_sg = false;
	err = xdp_ring_create(own, own->bind_flags, &own->ring);
	if (err)
		return err;
	own->is_single = true;
	if (was_single && may_lack)
		return 0;
	xdp_ring_destroy(own->ring);
	own->ring = NULL;
	own->lacks_sg = !may_lack;
	return may_lack ? -EAGAIN : -EOPNOTSUPP;
}

/* Only making the ring shows whether the mode works. */
static int try_mode(struct xdp_dev *own, const struct mode *mode)
{
	int err;

	own->bind_flags = mode->bind_flags | XDP_USE_NEED_WAKEUP | XDP_USE_SG;
	own->has_sg = true;
	err = xdp_ring_create(own, own->bind_flags, &own->ring);
	if (err == -EINVAL)
		err = try_without_sg(own, mode);
	/* The program is attached, so nobody else has one here. The queue belongs
	 * to another process. */
	own->is_in_use = err == -EBUSY;
	return err;
}

/* How the program has to look at frames in this mode. */
static enum steer_sight sight_in(const struct xdp_dev *own,
				 const struct mode *mode)
{
	if (!mode->is_native)
		return STEER_SIGHT_GSO;
	return own->tags.are_off ? STEER_SIGHT_TAG : STEER_SIGHT_BYTES;
}

/* Whether frames can be taken by their bytes alone, without this sight. The frames
 * of a card are single datagrams, unless somebody has told it to join them, but
 * they may have lost their tags. One kind of tag is not noticed: those that a
 * sender in this machine has left beside the bytes, in generic mode (README.txt
 * says what to do). */
static bool may_do_without(const struct xdp_dev *own, enum steer_sight sight)
{
	return sight == STEER_SIGHT_GSO ? !own->is_virtual : own->is_virtual;
}

static int make_steer(struct xdp_dev *own, const struct mode *mode)
{
	struct steer_params params = {
		.ifindex = own->dev.ifindex,
		.is_native = mode->is_native,
		.is_single = own->is_single,
		.sight = sight_in(own, mode),
	};
	int err;

	if (own->tags.are_off && !own->is_virtual && !mode->is_native)
		return -EOPNOTSUPP;
	memcpy(params.mac, own->dev.mac, sizeof(params.mac));
	err = steer_create(&params, &own->steer);
	if (err && may_do_without(own, params.sight)) {
		params.sight = STEER_SIGHT_BYTES;
		err = steer_create(&params, &own->steer);
	}
	/* A virtual machine's card brings frames as a neighbour on its host has left them.
	 * Where its driver cannot have that changed, generic mode is all there is. */
	own->dev.caps.rx_partial_csum = own->is_virtual || !mode->is_native;
	/* the kernel shows it to a generic program, and the mark is beside the bytes */
	own->dev.caps.takes_given = !mode->is_native &&
				    params.sight == STEER_SIGHT_BYTES;
	return err;
}

static int attach_once(struct xdp_dev *own, const struct mode *mode)
{
	int err = make_steer(own, mode);

	if (err)
		return err;
	err = steer_attach(own->steer);
	if (!err)
		err = try_mode(own, mode);
	else if (err == -EBUSY)
		/* of zero-copy the driver would hear, and restart a queue that is another
		 * program's */
		own->is_in_use = xdp_queue_is_taken(own, XDP_COPY);
	if (err) {
		steer_destroy(own->steer);
		own->steer = NULL;
	} else {
		describe(own, mode);
	}
	return err;
}

static int attach(struct xdp_dev *own, const struct mode *mode)
{
	int err = attach_once(own, mode);

	return err == -EAGAIN ? attach_once(own, mode) : err;
}

/* For a program that takes several buffers, generic XDP copies every packet. For
 * one that does not, it only copies packets of several buffers. */
static bool wants_single(const struct xdp_params *params, bool is_virtual)
{
	return !params->has_multi_buffer &&
	       (params->mode == XDP_WISH_GENERIC ||
		(params->mode == XDP_WISH_AUTO && is_virtual));
}

static int choose_mode(struct xdp_dev *own, enum xdp_wish wish)
{
	const struct mode *list = own->is_virtual ? virtual_modes : modes;
	size_t cnt = own->is_virtual ? ARRAY_LEN(virtual_modes) :
				       ARRAY_LEN(modes);
	int err = -EOPNOTSUPP;

	if (wish == XDP_WISH_ZC) {
		list = modes;
		cnt = ARRAY_LEN(modes);
	}
	for (size_t i = 0; i < cnt; i++) {
		if (!is_wanted(&list[i], wish))
			continue;
		err = attach(own, &list[i]);
		log_dbg("%s: AF_XDP %s: %s", own->dev.name, list[i].name,
			err ? strerror(-err) : "works");
		/* These errors would be the same in another mode. A missing right
		 * is different: only this mode's program may need it. */
		if (!err || err == -EBUSY || err == -ENOBUFS)
			break;
	}
	return err;
}

/* -- the device -------------------------------------------------------------------- */

static int xdp_dev_ring_create(struct dev *dev, struct pkt_pool *pool,
			       struct ring **ring_out)
{
	struct xdp_dev *own = dev_of(dev);
	int err;

	if (own->is_ring_taken)
		return -ENOBUFS;
	if (!own->ring) {
		err = xdp_ring_create(own, own->bind_flags, &own->ring);
		if (err)
			return err;
	}
	xdp_ring_start(own->ring, pool);
	own->is_ring_taken = true;
	*ring_out = &own->ring->ring;
	return 0;
}

static int xdp_flow_add(struct dev *dev, const struct flow_rule *rule,
			struct ring *ring UNUSED, uint32_t tag UNUSED)
{
	return steer_add(dev_of(dev)->steer, rule);
}

static void xdp_flow_remove(struct dev *dev, const struct flow_rule *rule)
{
	steer_remove(dev_of(dev)->steer, rule);
}

/* Counts frames for which the kernel had no room. There is no other sign of them. */
static void count_drops(struct xdp_ring *ring)
{
	for (uint32_t i = 0; i < ring->queue_cnt; i++) {
		struct xsk *xsk = &ring->queues[i];
		uint64_t drops = xsk_drops(xsk);

		if (drops <= xsk->seen_drops)
			continue;
		stats_add(&ring->ring.counts->rx_errors,
			  drops - xsk->seen_drops);
		xsk->seen_drops = drops;
	}
}

/* Counts what the program dropped. */
static void count_fragments(struct xdp_dev *own)
{
	uint64_t cnt = steer_fragments(own->steer);

	if (cnt <= own->seen_fragments)
		return;
	stats_add(&own->ring->ring.counts->rx_fragments,
		  cnt - own->seen_fragments);
	own->seen_fragments = cnt;
}

static uint32_t count_queues(struct xdp_dev *own)
{
	return queues_count(&own->queues, STEER_QUEUES_MAX);
}

/* TCP that comes by a new queue is dropped, until the device is opened anew. So the
 * connections may leave first. */
static int check_queues(struct xdp_dev *own)
{
	if (!queues_may_be_more(&own->queues, atomic_load(&own->owner.fd), own->queue_cnt) ||
	    count_queues(own) <= own->queue_cnt)
		return 0;
	log_info("%s has more receive queues than the %u that are driven",
		 own->dev.name, own->queue_cnt);
	own->dev.caps.rules_outlast_failure = true;
	return -ECHRNG;
}

/* An interface that leaves the namespace takes the program along and brings it back, but
 * not the queues. Somebody who was stopped meanwhile, or whose news were too many, finds
 * it as it was. */
static int check_bound(struct xdp_dev *own)
{
	if (!own->ring || !xsk_was_unbound(&own->ring->queues[0]))
		return 0;
	own->dev.caps.rules_outlast_failure = true;
	return -ENODEV;
}

static int xdp_check(struct dev *dev)
{
	struct xdp_dev *own = dev_of(dev);
	int err;

	/* the process that had the name may have ended */
	owner_claim(&own->owner, dev->ifindex);
	if (own->is_ring_taken) {
		count_drops(own->ring);
		count_fragments(own);
	}
	err = steer_check(own->steer);
	if (!err)
		err = check_bound(own);
	return err ? err : check_queues(own);
}

static int xdp_link_changed(struct dev *dev)
{
	struct xdp_dev *own = dev_of(dev);

	if (!own->has_sg && !is_held_by_a_frame(own))
		return -EOPNOTSUPP;
	return steer_set_mac(own->steer, dev->mac);
}

static void xdp_rights_go(struct dev *dev)
{
	steer_rights_go(dev_of(dev)->steer);
}

static void xdp_ending(struct dev *dev, enum dev_end how_far)
{
	if (how_far != DEV_IS_LEFT)
		tags_ending(&dev_of(dev)->tags, dev, how_far == DEV_ENDS);
}

static void xdp_close(struct dev *dev)
{
	struct xdp_dev *own = dev_of(dev);

	if (own->ring)
		xdp_ring_destroy(own->ring);
	steer_destroy(own->steer);
	tags_ending(&own->tags, &own->dev, true);
	owner_release(&own->owner);
	region_set_put(&dev->regions);
	free(own);
}

static struct dev_ops xdp_dev_ops = {
	.name = "xdp",
	.ring_create = xdp_dev_ring_create,
	.flow_add = xdp_flow_add,
	.flow_remove = xdp_flow_remove,
	.check = xdp_check,
	.link_changed = xdp_link_changed,
	.rights_go = xdp_rights_go,
	.ending = xdp_ending,
	.close = xdp_close,
};

/* -- the back end ------------------------------------------------------------------ */

static int refuse(struct dev_verdict *why, int err, const char *what)
{
	why->err = err;
	why->refusal = err == -EPERM || err == -EACCES ? DEV_REFUSED_RIGHTS :
		       err == -ENOMEM || err == -ENOBUFS ?
						       DEV_REFUSED_MEMORY :
		       err == -EBUSY ? DEV_REFUSED_FOREIGN_PROGRAM :
		       err == -EOPNOTSUPP ? DEV_REFUSED_KIND :
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

static int refuse_owned(struct dev_verdict *why, int ifindex)
{
	int pid = owner_ask(ifindex);

	why->refusal = DEV_REFUSED_IN_USE;
	why->pid = MAX(pid, 0);
	if (pid > 0)
		snprintf(why->text, sizeof(why->text),
			 "interface in use by pid %d", pid);
	else if (pid < 0)
		snprintf(why->text, sizeof(why->text),
			 "interface in use, by a process that many ask");
	return -EEXIST;
}

static void init_dev(struct xdp_dev *own, const struct backend_request *request)
{
	struct dev *dev = &own->dev;

	dev->ops = &xdp_dev_ops;
	owner_init(&own->owner);
	dev->ifindex = request->ifindex;
	snprintf(dev->name, sizeof(dev->name), "%s", request->name);
	memcpy(dev->mac, request->mac, sizeof(dev->mac));
	dev->mtu = request->mtu;
	dev->rx_mtu = request->rx_mtu;
	dev->caps = (struct dev_caps){
		.kernel_verdicts = true,
		.needs_kick = true,
		.tx_len_max = frame_size_for(request->mtu) - XDP_HEADROOM,
	};
	own->queues = (struct queues_of){
		.ifindex = request->ifindex,
		.mac = dev->mac,
		.max = request->rx_queue_max,
	};
	own->queue_cnt = count_queues(own);
	own->is_virtual = request->is_virtual;
}

/* Not those of which a part would get no socket of ours. */
static int refuse_queues(const struct xdp_dev *own, struct dev_verdict *why)
{
	_Static_assert(STEER_QUEUES_MAX == 64, "as the line says");
	if (!own->queue_cnt)
		return refuse_kind(why, "how many receive queues it has is not shown: /sys is another namespace's");
	if (own->queue_cnt > STEER_QUEUES_MAX)
		return refuse_kind(why, "AF_XDP drives no more than 64 receive queues");
	return 0;
}

/* Each queue has to have some, and as many are for sending and for sockets to hold. */
enum { FRAMES_PER_QUEUE = 8 };

static int make_dev(struct xdp_back_end *end,
		    const struct backend_request *request, struct xdp_dev *own,
		    struct dev_verdict *why)
{
	int err = region_create(MAX(request->frame_cnt, FRAMES_PER_QUEUE * own->queue_cnt),
				frame_size_for(request->mtu), request->pages,
				&own->dev.region);

	if (!err)
		err = region_set_add(&own->dev.regions, own->dev.region);
	if (err)
		return refuse(why, err, "memory for frames");
	own->is_single = wants_single(&end->params, request->is_virtual);
	tags_see(&own->tags, &own->dev, own->is_virtual);
	err = choose_mode(own, end->params.mode);
	if (!err)
		return 0;
	if (own->is_in_use)
		err = refuse_owned(why, request->ifindex);
	else if (own->lacks_sg && err == -EOPNOTSUPP)
		refuse_kind(why, "AF_XDP of a kernel before Linux 6.6 drops packets longer than a frame");
	else
		refuse(why, err,
		       own->tags.are_off && !own->is_virtual ?
			       "AF_XDP, with VLAN tags that the card takes off" :
			       "AF_XDP");
	tags_ending(&own->tags, &own->dev, true);
	region_set_put(&own->dev.regions);
	return err;
}

static int xdp_open(struct backend *backend,
		    const struct backend_request *request, struct dev **dev_out,
		    struct dev_verdict *why)
{
	struct xdp_back_end *end =
		CONTAINER_OF(backend, struct xdp_back_end, backend);
	struct xdp_dev *own;
	int err;

	/* what is sent would need the tag, and the interface below has the queues */
	if (request->vlan_id)
		return refuse_kind(why, "AF_XDP drives no VLAN");
	/* not in each mode it sees a tag that somebody has taken off the frame */
	if (request->has_vlans)
		return refuse_kind(why, "AF_XDP drives none with VLANs on it");
	if (!steer_load_is_possible())
		return refuse_kind(why, "the program exports functions that have names of libbpf's");
	own = calloc(1, sizeof(*own));
	if (!own)
		return refuse(why, -ENOMEM, "memory");
	init_dev(own, request);
	own->rx_post_first = MAX(end->params.rx_post_first, least_post(request->mtu));
	err = refuse_queues(own, why);
	if (!err)
		err = make_dev(end, request, own, why);
	if (err) {
		free(own);
		return err;
	}
	owner_claim(&own->owner, request->ifindex);
	*dev_out = &own->dev;
	return 0;
}

struct backend *backend_make(const void *options)
{
	const struct xdp_params *params = options;
	static struct xdp_back_end end = {
		.backend = {
			.name = "xdp",
			.open = xdp_open,
		},
	};

	dev_ops_fill(&xdp_dev_ops);
	xdp_ring_module();
	end.params = *params;
	return &end.backend;
}
