/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bad link of impair.h. Frames in flight form one list ordered by the time
 * they are due. Times mostly grow with each frame, so inserting from the end is
 * constant work except for jitter that reorders.
 */
#include "dev/fake/impair.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/rand.h"

#define DEFAULT_HOLD_NS (10 * NS_PER_MS)

struct flight {
	/* on impair.flights, by due_ns */
	struct list link;
	/* on impair.held while later frames may still overtake it */
	struct list held_link;
	void *frame;
	size_t len;
	uint64_t due_ns;
	/* how many later frames go first */
	uint32_t overtakers;
};

struct impair {
	struct impair_params params;
	struct rand rand;
	const struct impair_ops *ops;
	void *ctx;
	struct list flights;
	struct list held;
	/* struct flight to use again */
	struct list spare;
	size_t in_flight;
	/* when the last accepted frame will have left the queue */
	uint64_t busy_until_ns;
	/* the latest arrival that later frames must not come before */
	uint64_t last_due_ns;
	uint32_t burst_left;
	bool is_bad_state;
	struct impair_counts counts;
};

struct impair *impair_create(const struct impair_params *params, uint64_t seed,
			     const struct impair_ops *ops, void *ctx)
{
	struct impair *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->params = *params;
	link->ops = ops;
	link->ctx = ctx;
	rand_init(&link->rand, seed);
	list_init(&link->flights);
	list_init(&link->held);
	list_init(&link->spare);
	return link;
}

void impair_destroy(struct impair *link)
{
	struct list *entry;

	if (!link)
		return;
	list_splice_back(&link->spare, &link->flights);
	while ((entry = list_pop_front(&link->spare))) {
		struct flight *flight = LIST_ENTRY(entry, struct flight, link);

		if (flight->frame)
			link->ops->drop(link->ctx, flight->frame);
		free(flight);
	}
	free(link);
}

void impair_set_params(struct impair *link, const struct impair_params *params)
{
	link->params = *params;
}

const struct impair_params *impair_params(const struct impair *link)
{
	return &link->params;
}

/* All three kinds of loss are drawn for each frame, so that switching one off does
 * not change what the others do. */
static bool is_lost(struct impair *link)
{
	const struct impair_params *p = &link->params;
	bool lost = rand_chance(&link->rand, p->loss_ppm);

	if (link->burst_left) {
		link->burst_left--;
		lost = true;
	} else if (rand_chance(&link->rand, p->burst_ppm)) {
		link->burst_left = p->burst_cnt ? p->burst_cnt - 1 : 0;
		lost = true;
	}
	if (rand_chance(&link->rand, link->is_bad_state ? p->ge_to_good_ppm
							: p->ge_to_bad_ppm))
		link->is_bad_state = !link->is_bad_state;
	if (rand_chance(&link->rand, link->is_bad_state ? p->ge_bad_loss_ppm
							: p->ge_good_loss_ppm))
		lost = true;
	return lost;
}

static uint64_t bits_to_ns(uint64_t bits, uint64_t rate_bps)
{
	return (uint64_t)((unsigned __int128)bits * NS_PER_SEC / rate_bps);
}

uint64_t impair_backlog_bytes(const struct impair *link, uint64_t now_ns)
{
	uint64_t rate_bps = link->params.rate_bps;

	if (!rate_bps || link->busy_until_ns <= now_ns)
		return 0;
	return (uint64_t)((unsigned __int128)(link->busy_until_ns - now_ns) *
			  rate_bps / (8 * NS_PER_SEC));
}

/* The reason why the frame is dropped, as a DROPPED bit; 0 if it is not. */
static unsigned drop_reason(struct impair *link, uint64_t backlog, size_t len)
{
	const struct impair_params *p = &link->params;
	bool lost = is_lost(link);

	if (p->mtu_bytes && len > p->mtu_bytes)
		return IMPAIR_DROPPED_MTU;
	if (lost)
		return IMPAIR_DROPPED_LOSS;
	if (p->queue_bytes && backlog >= p->queue_bytes)
		return IMPAIR_DROPPED_QUEUE;
	return 0;
}

static bool wants_mark(struct impair *link, uint64_t backlog)
{
	const struct impair_params *p = &link->params;

	return rand_chance(&link->rand, p->mark_ppm) ||
	       (p->mark_queue_bytes && backlog >= p->mark_queue_bytes);
}

/* When a frame that is accepted now reaches the other end. */
static uint64_t arrival_ns(struct impair *link, uint64_t now_ns, size_t len)
{
	const struct impair_params *p = &link->params;
	uint64_t due_ns = MAX(now_ns, link->busy_until_ns);

	if (p->rate_bps) {
		due_ns += bits_to_ns(8 * (uint64_t)(len + p->overhead_bytes),
				     p->rate_bps);
		link->busy_until_ns = due_ns;
	}
	due_ns += p->delay_ns;
	if (p->jitter_ns)
		due_ns += rand_between(&link->rand, 0, p->jitter_ns);
	if (!p->jitter_reorders) {
		due_ns = MAX(due_ns, link->last_due_ns);
		link->last_due_ns = due_ns;
	}
	return due_ns;
}

/* Puts it behind every frame that is due at the same time. */
static void insert_by_due(struct impair *link, struct flight *flight)
{
	struct list *before = link->flights.prev;

	while (before != &link->flights &&
	       LIST_ENTRY(before, struct flight, link)->due_ns > flight->due_ns)
		before = before->prev;
	list_insert_after(before, &flight->link);
}

/* A frame of the given time counts as having overtaken those held; the ones
 * that have waited enough follow right behind it. */
static void overtake(struct impair *link, uint64_t due_ns)
{
	struct flight *flight, *following;

	LIST_FOR_EACH_SAFE(flight, following, &link->held, held_link) {
		if (--flight->overtakers)
			continue;
		list_remove(&flight->held_link);
		if (flight->due_ns <= due_ns)
			continue;
		flight->due_ns = due_ns;
		list_remove(&flight->link);
		insert_by_due(link, flight);
	}
}

static struct flight *flight_get(struct impair *link)
{
	struct list *entry = list_pop_front(&link->spare);
	struct flight *flight;

	if (entry)
		return LIST_ENTRY(entry, struct flight, link);
	flight = calloc(1, sizeof(*flight));
	if (!flight)
		return NULL;
	list_init(&flight->link);
	list_init(&flight->held_link);
	return flight;
}

/* Takes the frame. Without memory it is lost. */
static bool put_in_flight(struct impair *link, void *frame, size_t len,
			  uint64_t due_ns, uint32_t overtakers)
{
	struct flight *flight = flight_get(link);

	if (!flight) {
		link->ops->drop(link->ctx, frame);
		return false;
	}
	flight->frame = frame;
	flight->len = len;
	flight->due_ns = due_ns;
	flight->overtakers = overtakers;
	insert_by_due(link, flight);
	if (overtakers)
		list_push_back(&link->held, &flight->held_link);
	link->in_flight++;
	return true;
}

static void count_fate(struct impair_counts *counts, unsigned fate)
{
	counts->sent++;
	counts->lost += !!(fate & IMPAIR_DROPPED_LOSS);
	counts->queue_drops += !!(fate & IMPAIR_DROPPED_QUEUE);
	counts->mtu_drops += !!(fate & IMPAIR_DROPPED_MTU);
	counts->duplicated += !!(fate & IMPAIR_DUPLICATED);
	counts->corrupted += !!(fate & IMPAIR_CORRUPTED);
	counts->held += !!(fate & IMPAIR_HELD);
	counts->marked += !!(fate & IMPAIR_MARKED);
}

static void tell(struct impair *link, const void *frame, size_t len,
		 unsigned fate)
{
	count_fate(&link->counts, fate);
	link->ops->report(link->ctx, frame, len, fate);
}

/* Carries a frame that is not dropped. */
static void carry(struct impair *link, uint64_t now_ns, void *frame, size_t len,
		  uint64_t backlog)
{
	const struct impair_params *p = &link->params;
	unsigned fate = IMPAIR_PASSED;
	uint32_t overtakers = 0;
	uint64_t due_ns;
	void *twin = NULL;

	if (wants_mark(link, backlog) && link->ops->mark(link->ctx, frame))
		fate |= IMPAIR_MARKED;
	if (len && rand_chance(&link->rand, p->corrupt_ppm) &&
	    link->ops->flip(link->ctx, frame,
			    rand_below(&link->rand, 8 * len)))
		fate |= IMPAIR_CORRUPTED;
	due_ns = arrival_ns(link, now_ns, len);
	if (p->reorder_cnt && rand_chance(&link->rand, p->reorder_ppm)) {
		overtakers = (uint32_t)rand_between(&link->rand, 1,
						    p->reorder_cnt);
		fate |= IMPAIR_HELD;
	}
	if (rand_chance(&link->rand, p->dup_ppm))
		twin = link->ops->copy(link->ctx, frame);
	if (twin)
		fate |= IMPAIR_DUPLICATED;

	tell(link, frame, len, fate);
	if (overtakers) {
		uint64_t hold_ns = p->reorder_hold_ns ? p->reorder_hold_ns
						      : DEFAULT_HOLD_NS;

		put_in_flight(link, frame, len, due_ns + hold_ns, overtakers);
	} else if (put_in_flight(link, frame, len, due_ns, 0)) {
		overtake(link, due_ns);
	}
	/* A duplicate needs no queue of its own: it was made on the way. */
	if (twin)
		put_in_flight(link, twin, len, due_ns, 0);
}

void impair_send(struct impair *link, uint64_t now_ns, void *frame, size_t len)
{
	uint64_t backlog = impair_backlog_bytes(link, now_ns);
	unsigned reason = drop_reason(link, backlog, len);

	if (reason) {
		tell(link, frame, len, reason);
		link->ops->drop(link->ctx, frame);
		return;
	}
	carry(link, now_ns, frame, len, backlog);
}

void *impair_recv(struct impair *link, uint64_t now_ns, size_t *len_out)
{
	struct list *first = list_first(&link->flights);
	struct flight *flight;
	void *frame;

	if (!first)
		return NULL;
	flight = LIST_ENTRY(first, struct flight, link);
	if (flight->due_ns > now_ns)
		return NULL;
	list_remove(&flight->link);
	list_remove(&flight->held_link);
	frame = flight->frame;
	*len_out = flight->len;
	flight->frame = NULL;
	list_push_front(&link->spare, &flight->link);
	link->in_flight--;
	link->counts.delivered++;
	return frame;
}

uint64_t impair_next_ns(const struct impair *link)
{
	struct list *first = list_first(&link->flights);

	return first ? LIST_ENTRY(first, struct flight, link)->due_ns
		     : IMPAIR_NEVER;
}

size_t impair_in_flight(const struct impair *link)
{
	return link->in_flight;
}

const struct impair_counts *impair_counts(const struct impair *link)
{
	return &link->counts;
}

struct impair_bytes *impair_bytes_create(const void *data, size_t len)
{
	struct impair_bytes *bytes = malloc(sizeof(*bytes) + len);

	if (!bytes)
		return NULL;
	bytes->len = len;
	memcpy(bytes->data, data, len);
	return bytes;
}

static void *bytes_copy(void *ctx UNUSED, void *frame)
{
	const struct impair_bytes *bytes = frame;

	return impair_bytes_create(bytes->data, bytes->len);
}

static void bytes_drop(void *ctx UNUSED, void *frame)
{
	free(frame);
}

static bool bytes_flip(void *ctx UNUSED, void *frame, size_t bit)
{
	struct impair_bytes *bytes = frame;

	bytes->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	return true;
}

static bool mark_ipv4(uint8_t *ip)
{
	unsigned sum = (unsigned)ip[10] << 8 | ip[11];
	unsigned added = 3u - (ip[1] & 3u);

	if ((ip[1] & 3) == 0)
		return false;
	ip[1] |= 3;
	/* RFC 1624: the complemented sum falls by what the field rose. */
	sum = (~sum & 0xffff) + added;
	sum = ~(sum + (sum >> 16)) & 0xffff;
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
	return true;
}

bool impair_mark_ip(uint8_t *ip, size_t len)
{
	if (len >= 20 && ip[0] >> 4 == 4)
		return mark_ipv4(ip);
	/* IPv6: the two lowest bits of the traffic class */
	if (len >= 40 && ip[0] >> 4 == 6 && (ip[1] & 0x30)) {
		ip[1] |= 0x30;
		return true;
	}
	return false;
}

static bool bytes_mark(void *ctx UNUSED, void *frame)
{
	struct impair_bytes *bytes = frame;

	return bytes->len > 14 &&
	       impair_mark_ip(bytes->data + 14, bytes->len - 14);
}

static void bytes_report(void *ctx UNUSED, const void *frame UNUSED,
			 size_t len UNUSED, unsigned fate UNUSED)
{
}

const struct impair_ops impair_bytes_ops = {
	.copy = bytes_copy,
	.drop = bytes_drop,
	.flip = bytes_flip,
	.mark = bytes_mark,
	.report = bytes_report,
};
