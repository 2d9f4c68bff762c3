/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory on the card, for a queue that sends: payloads that are too long to be inline
 * are written there by the processor, so that the card need not fetch them from the
 * host. It is a ring of bytes, given back in the order in which it was taken.
 */
#ifndef DEV_RDMA_DEV_MEM_H
#define DEV_RDMA_DEV_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "pkt/pkt.h"

struct ibv_dm;
struct ibv_mr;
struct rdma_dev;

/* A payload begins at a multiple of that, so that the processor sends whole lines. */
enum { DEV_MEM_LINE = 64 };

struct dev_mem {
	/* fixed */
	uint8_t *at;	/* where we write it; the card calls its first byte 0 */
	uint32_t size;	/* 0: there is none */
	uint32_t lkey;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	/* the stack's lock */
	uint32_t head;	/* where the next payload begins, if there is room */
	uint32_t used;	/* bytes that are taken, with what was left out at the end */
};

/* Asks the device for as much as the user wants, or as it has. Without, the size is 0, and
 * the log says why. */
void dev_mem_open(struct dev_mem *mem, struct rdma_dev *dev, bool has_blue_flame);
/* No entry of the queue refers to it any more. */
void dev_mem_close(struct dev_mem *mem, const struct rdma_dev *dev);

/* Takes so many bytes in one piece, which begin at *at_out. Returns what dev_mem_give() has
 * to be told when the card has read them; 0: there is no room. */
uint32_t dev_mem_take(struct dev_mem *mem, uint32_t len, uint32_t *at_out)
	MUST_CHECK;
/* The oldest of what was taken is free again. */
static inline void dev_mem_give(struct dev_mem *mem, uint32_t taken)
{
	mem->used -= taken;
}

/* Writes the bytes of the packet, but for the first `skip` of its first part, to a place
 * that was taken for them. The card sees them before any doorbell that follows, whoever
 * rings it. */
void dev_mem_write(struct dev_mem *mem, uint32_t at, const struct pkt *pkt,
		   uint32_t skip);

#endif
