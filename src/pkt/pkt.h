/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet, or a piece of one: a descriptor for bytes in a buffer that belongs to a
 * pool. There is one kind of descriptor for a frame of an AF_XDP region, for a
 * buffer posted to a work queue, and for memory that holds TCP data until it is
 * acknowledged.
 *
 * The descriptor and its reference count are plain memory under the lock of the
 * stack that uses it. Pools are in pkt_pool.h.
 */
#ifndef PKT_PKT_H
#define PKT_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/list.h"

struct pkt_pool;

/* What is known of a received packet's IP and transport checksums. */
enum pkt_csum {
	PKT_CSUM_UNKNOWN, /* software has to look */
	PKT_CSUM_GOOD,
	PKT_CSUM_BAD,
};

enum pkt_flag {
	/* csum_sum is the partial checksum of data[0..len) */
	PKT_HAS_SUM = 1 << 0,
	/* only the device knows of it: posted, or on its way out */
	PKT_WITH_DEVICE = 1 << 1,
	/* card_ns says when the card has received it */
	PKT_CARD_STAMPED = 1 << 2,
	/* the priority in the tag of a VLAN's frame, where the tag's first byte has it */
	PKT_PCP = 7 << 5,
};

/* Room for whichever layer owns the packet at the moment. */
enum { PKT_CB_SIZE = 32 };

/* Receive and transmit touch only the first cache line of a packet. */
struct pkt {
	/* the queue of the present owner */
	struct list link;
	/* the bytes; data may move within [buf, buf + buf_size) */
	uint8_t *data;
	uint32_t len;
	union {
		/* of a packet to be sent, see PKT_HAS_SUM */
		uint32_t csum_sum;
		/* of a received one: that of the flow rule that matched, where devices
		 * can say it (ring.has_tags); 0, or more than FLOW_TAG_MAX, is none */
		uint32_t flow_tag;
	};
	uint32_t refs;
	/* enum pkt_csum */
	uint8_t csum_verdict;
	/* enum pkt_flag */
	uint8_t flags;
	/* which of its device's regions it lies in (region.h) */
	uint16_t region_id;
	/* index of the buffer in its pool: where in a region it lies */
	uint32_t frame_id;
	uint32_t buf_size;
	/* the next buffer of the same packet, which belongs to this one; in a free
	 * packet, the next free one */
	struct pkt *next_part;
	/* when it was received, on the caller's clock; 0 is unknown */
	uint64_t time_ns;

	uint8_t *buf;
	struct pkt_pool *pool;
	/* the packet whose buffer this one borrows; it holds a reference */
	struct pkt *lender;
	/* see PKT_CARD_STAMPED */
	uint64_t card_ns;
	uint64_t cb[PKT_CB_SIZE / 8];
};
_Static_assert(sizeof(struct pkt) == 2 * CACHE_LINE, "two cache lines");
_Static_assert(offsetof(struct pkt, buf) == CACHE_LINE, "hot part in one");

/* The owner's view of the scratch room. */
#define PKT_CB(pkt, type) ((type *)(void *)(pkt)->cb)

static inline struct pkt *pkt_from_link(struct list *link)
{
	return LIST_ENTRY(link, struct pkt, link);
}

/* When the card has received it; 0: it has not said. */
static inline uint64_t pkt_card_ns(const struct pkt *pkt)
{
	return pkt->flags & PKT_CARD_STAMPED ? pkt->card_ns : 0;
}

/* Gives it the time stamps of another one, as far as that has any. */
static inline void pkt_take_stamps(struct pkt *pkt, const struct pkt *from)
{
	if (from->time_ns)
		pkt->time_ns = from->time_ns;
	if (LIKELY(!(from->flags & PKT_CARD_STAMPED)))
		return;
	pkt->card_ns = from->card_ns;
	pkt->flags |= PKT_CARD_STAMPED;
}

static inline uint32_t pkt_headroom(const struct pkt *pkt)
{
	return (uint32_t)(pkt->data - pkt->buf);
}

static inline uint32_t pkt_tailroom(const struct pkt *pkt)
{
	return pkt->buf_size - pkt_headroom(pkt) - pkt->len;
}

/* Makes room for `len` bytes in front of the data and returns its start. The
 * caller has checked the headroom. */
static inline uint8_t *pkt_push(struct pkt *pkt, uint32_t len)
{
	INVARIANT(pkt_headroom(pkt) >= len, "no headroom");
	pkt->data -= len;
	pkt->len += len;
	return pkt->data;
}

/* Takes `len` bytes off the front. */
static inline void pkt_pull(struct pkt *pkt, uint32_t len)
{
	INVARIANT(pkt->len >= len, "pulled more than there is");
	pkt->data += len;
	pkt->len -= len;
}

/* Adds `len` bytes at the end, which the caller fills. Only the holder of the
 * single reference may do this, because a borrower may show the bytes behind the
 * end. */
static inline uint8_t *pkt_append(struct pkt *pkt, uint32_t len)
{
	uint8_t *end = pkt->data + pkt->len;

	INVARIANT(pkt_tailroom(pkt) >= len, "no tailroom");
	pkt->len += len;
	return end;
}

/* Cuts the packet to its first `len` bytes. */
static inline void pkt_trim(struct pkt *pkt, uint32_t len)
{
	INVARIANT(pkt->len >= len, "trimmed to more than there is");
	pkt->len = len;
}

static inline void pkt_get(struct pkt *pkt)
{
	pkt->refs++;
}

/* The last reference is gone; this part is out of line. Drops the reference that
 * the packet holds on its next part or on a lender. */
void pkt_release(struct pkt *pkt);

/* Drops a reference. NULL is a no-op. */
static inline void pkt_put(struct pkt *pkt)
{
	if (pkt && --pkt->refs == 0)
		pkt_release(pkt);
}

/* The bytes of the packet and all its further parts. */
static inline uint32_t pkt_total_len(const struct pkt *pkt)
{
	uint32_t len = 0;

	for (; pkt; pkt = pkt->next_part)
		len += pkt->len;
	return len;
}

/* Drops a reference of each packet on the list. */
void pkt_put_list(struct list *pkts);

#endif
