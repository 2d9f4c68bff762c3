/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rings of sockets that send at a pace (paced.h). */
#include "config.h"

#include "net/paced.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/netif.h"

struct paced_ring {
	struct list in_netif;
	/* of the socket; not linked: that has ended, and the ring sends what it has */
	struct list in_paced;
	struct netif *netif;
	struct stack *stack;
	struct ring *ring;
	/* it ends at this time, whatever it has, if its socket has */
	uint64_t ends_at_ns;
};

/* A slow queue may take minutes for what it has. */
#define PARTING_NS (60 * NS_PER_SEC)

/* -- ends -------------------------------------------------------------------------- */

static void end(struct paced_ring *own)
{
	log_dbg("%s: a queue of a socket ends", own->netif->name);
	list_remove(&own->in_netif);
	if (list_is_linked(&own->in_paced))
		list_remove(&own->in_paced);
	stack_remove_ring(own->stack, own->ring);
	free(own);
}

static bool has_sent(struct paced_ring *own)
{
	bool result;

	stack_lock(own->stack);
	result = own->ring->ops->tx_is_done(own->ring);
	stack_note_kick(own->stack, own->ring);
	stack_unlock(own->stack);
	return result;
}

/* The socket does without it. What it has not sent yet is to leave all the same. */
static void part(struct paced_ring *own)
{
	list_remove(&own->in_paced);
	own->ends_at_ns = clock_monotonic_ns() + PARTING_NS;
	if (has_sent(own))
		end(own);
}

void paced_check(struct netif *netif)
{
	struct paced_ring *own, *following;
	uint64_t now = clock_monotonic_ns();

	LIST_FOR_EACH_SAFE(own, following, &netif->paced, in_netif)
		if (!list_is_linked(&own->in_paced) &&
		    (has_sent(own) || now >= own->ends_at_ns))
			end(own);
}

void paced_end_all(struct netif *netif)
{
	struct paced_ring *own, *following;

	LIST_FOR_EACH_SAFE(own, following, &netif->paced, in_netif)
		end(own);
}

/* -- rings ------------------------------------------------------------------------- */

/* What there is to say of an interface once. */
enum refusal { REFUSED_NO_PACES, REFUSED_RANGE, REFUSED_RING };

static int refuse(struct netif *netif, const struct ring_pace *pace,
		  enum refusal why, int err)
{
	const struct dev *dev = netif->dev;
	unsigned bit = 1u << why;

	if (netif->paced_refusals & bit)
		return err;
	netif->paced_refusals |= (uint8_t)bit;
	if (why == REFUSED_NO_PACES)
		log_info("%s: sends with SO_MAX_PACING_RATE are the kernel's: its device, driven by %s, keeps no pace",
			 netif->name, dev->ops->name);
	else if (why == REFUSED_RANGE)
		log_info("%s: sends with an SO_MAX_PACING_RATE %s %u kbit/s are the kernel's: its device keeps paces from %u to %u kbit/s",
			 netif->name, pace->kbps ? "of" : "below",
			 MAX(pace->kbps, 1u), dev->caps.pace_min,
			 dev->caps.pace_max);
	else
		log_info("%s: sends with an SO_MAX_PACING_RATE of %u kbit/s are the kernel's: there is no further queue that keeps this pace, with bursts of %u bytes (%s)",
			 netif->name, pace->kbps, pace->burst, strerror(-err));
	return err;
}

static int weigh(struct netif *netif, const struct ring_pace *pace)
{
	const struct dev_caps *caps = &netif->dev->caps;

	if (!caps->pace_max)
		return refuse(netif, pace, REFUSED_NO_PACES, -EOPNOTSUPP);
	if (pace->kbps < caps->pace_min || pace->kbps > caps->pace_max)
		return refuse(netif, pace, REFUSED_RANGE, -ERANGE);
	return 0;
}

static struct paced_ring *find(struct paced *paced, const struct netif *netif,
			       const struct stack *stack)
{
	struct paced_ring *own;

	if (!paced->has_list)
		return NULL;
	LIST_FOR_EACH(own, &paced->rings, in_paced)
		if (own->netif == netif && own->stack == stack)
			return own;
	return NULL;
}

/* What waits for a pace may wait for minutes, so a ring has frames of its own, and no sender
 * waits for those of another one. It has this share of a region at most, and all together
 * have a quarter of the interface's frames. */
enum { FRAMES_MAX = 128, FRAMES_SHARE = 8, ALL_SHARE = 4 };

/* Whether one more ring may have so many frames. */
static bool has_frames_for(const struct netif *netif, uint32_t cnt)
{
	struct region_set *set = &netif->dev->regions;
	uint32_t all = cnt, free_cnt = 0;
	const struct paced_ring *own;

	LIST_FOR_EACH(own, &netif->paced, in_netif)
		all += cnt;
	for (uint32_t i = 0; i < atomic_load(&set->cnt); i++)
		free_cnt += region_free_cnt(set->regions[i]);
	return all <= region_set_frame_cnt(set) / ALL_SHARE && cnt <= free_cnt;
}

static int make(struct paced *paced, struct netif *netif, struct stack *stack,
		struct paced_ring **own_out)
{
	uint32_t frame_cnt = MIN(netif->dev->region->frame_cnt / FRAMES_SHARE,
				 (uint32_t)FRAMES_MAX);
	struct paced_ring *own;
	int err = 0;

	while (!err && !has_frames_for(netif, frame_cnt))
		err = netif_add_frames(stack->net, netif);
	if (err)
		return err;
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	err = stack_add_paced_ring(stack, netif->dev, &paced->pace, frame_cnt,
				   &own->ring);
	if (err) {
		free(own);
		return err;
	}
	own->netif = netif;
	own->stack = stack;
	if (!paced->has_list)
		list_init(&paced->rings);
	paced->has_list = true;
	list_push_back(&netif->paced, &own->in_netif);
	list_push_back(&paced->rings, &own->in_paced);
	log_dbg("%s: a queue of a socket begins: %u kbit/s, bursts of %u bytes", netif->name,
		paced->pace.kbps, paced->pace.burst);
	*own_out = own;
	return 0;
}

int paced_ring(struct paced *paced, struct netif *netif, struct stack *stack,
	       struct ring **ring_out)
{
	struct paced_ring *own = find(paced, netif, stack);
	int err = 0;

	if (!paced->is_wanted)
		return -ESTALE; /* that has ended meanwhile, and the answer is not used */
	if (!own) {
		err = weigh(netif, &paced->pace);
		if (err)
			return err;
		/* those that are about to go may have the last places */
		paced_check(netif);
		err = make(paced, netif, stack, &own);
	}
	if (err)
		return refuse(netif, &paced->pace, REFUSED_RING, err);
	*ring_out = own->ring;
	return 0;
}

static bool keeps(struct paced_ring *own, const struct ring_pace *pace)
{
	int err;

	if (!netif_is_driven(own->netif) || weigh(own->netif, pace) != 0)
		return false;
	err = own->ring->ops->set_pace(own->ring, pace);
	if (err)
		refuse(own->netif, pace, REFUSED_RING, err);
	return !err;
}

void paced_set(struct net *net, struct paced *paced, const struct ring_pace *pace)
{
	struct paced_ring *own, *following;

	INVARIANT(net_control_is_mine(net), "paced without the mutex");
	paced->is_wanted = pace;
	if (pace)
		paced->pace = *pace;
	if (paced->has_list)
		LIST_FOR_EACH_SAFE(own, following, &paced->rings, in_paced)
			if (!pace || !keeps(own, pace))
				part(own);
}
