/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies of received packets (spill.h). */
#include "config.h"

#include "net/spill.h"

#include <string.h>

/* A short datagram, a frame, a large frame. */
static const uint32_t buf_sizes[SPILL_SIZES] = { 256, 2048, 4096 };

enum {
	SLAB_SIZE = 256 << 10,
	/* what polls may take before the next slab is there */
	LOW = 64,
};

void spill_init(struct spill *spill)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		pkt_pool_init(&spill->pools[i], 0);
	spill->wanted = 0;
}

void spill_destroy(struct spill *spill)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		(void)!pkt_pool_destroy(&spill->pools[i]);
}

/* SPILL_SIZES: it is not to be copied. */
static int size_for(const struct pkt *pkt)
{
	int size = 0;

	while (size < SPILL_SIZES &&
	       (pkt->next_part || buf_sizes[size] < pkt->len))
		size++;
	return size;
}

void spill_prepare(struct spill *spill, const struct pkt *pkt)
{
	int size = size_for(pkt);

	if (size < SPILL_SIZES && spill->pools[size].free_cnt <= LOW)
		spill->wanted |= 1u << size;
}

struct pkt *spill_copy(struct spill *spill, const struct pkt *pkt)
{
	int size = size_for(pkt);
	struct pkt *copy = NULL;

	if (size < SPILL_SIZES)
		copy = pkt_alloc(&spill->pools[size]);
	if (!copy)
		return NULL;
	memcpy(pkt_append(copy, pkt->len), pkt->data, pkt->len);
	copy->csum_verdict = pkt->csum_verdict;
	copy->flags = pkt->flags;
	copy->flow_tag = pkt->flow_tag;
	copy->time_ns = pkt->time_ns;
	return copy;
}

unsigned spill_take_wanted(struct spill *spill)
{
	unsigned wanted = spill->wanted;

	spill->wanted = 0;
	return wanted;
}

struct spill_slabs spill_grow(unsigned wanted)
{
	struct spill_slabs more = { 0 };

	for (int i = 0; i < SPILL_SIZES; i++)
		if (wanted >> i & 1)
			more.slabs[i] = pkt_slab_create(
				SLAB_SIZE / buf_sizes[i], buf_sizes[i], NULL);
	return more;
}

void spill_add(struct spill *spill, const struct spill_slabs *more)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		if (more->slabs[i])
			pkt_pool_add(&spill->pools[i], more->slabs[i]);
}

struct spill_slabs spill_shrink(struct spill *spill)
{
	struct spill_slabs idle = { 0 };

	for (int i = 0; i < SPILL_SIZES; i++)
		if (pkt_pool_is_full(&spill->pools[i]))
			idle.slabs[i] = pkt_pool_take_slabs(&spill->pools[i]);
	return idle;
}

void spill_free(const struct spill_slabs *slabs)
{
	for (int i = 0; i < SPILL_SIZES; i++)
		pkt_slabs_free(slabs->slabs[i]);
}
