/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between the stack and whatever moves frames: AF_XDP, a work-queue
 * NIC, or memory (the fake). Two objects:
 *
 * A *device* is an interface that this process drives. It owns what exists once
 * for each interface: the region of frames, the steering program or rules, the
 * hardware's queues. Its operations are of the control plane: they are called
 * under the control mutex, may block, and may make system calls.
 *
 * A *ring* is what one stack uses of a device: its way to send, and the frames
 * steered to it. Its operations are of the data path: they are called under the
 * stack's lock and make no system call, with the exceptions named below.
 *
 * Frames are Ethernet frames without their checksum. A packet that goes into a
 * ring or comes out of one has the Ethernet header at `data`.
 *
 * Nor have they a tag, also where a device is the interface of a VLAN (dev.vlan_id): such
 * a device puts the tag on what it sends, and takes it off what it receives. In what it is
 * to send, the type of the Ethernet header, which would be IPv4's, is the tag's word (TCI)
 * instead, and the header is no part of the payload. What it has received has the
 * priority of its tag in the packet's flags (PKT_PCP). Frames without this tag are not its
 * own; if one comes, it drops it as an error.
 */
#ifndef DEV_RING_H
#define DEV_RING_H

#include <stdatomic.h>

#include "base/ipaddr.h"
#include "pkt/region.h"
#include "stats/stats_abi.h"

struct dev;
struct ring;

/* How fast a ring sends. */
struct ring_pace {
	/* in thousands of bits a second */
	uint32_t kbps;
	/* how many bytes may leave at once, and how long frames mostly are; 0: as the
	 * device chooses */
	uint32_t burst;
	uint16_t frame_len;
};

/* What a device can do. Callers ask this, and never conclude it from the kind of
 * device. */
struct dev_caps {
	/* Frames may carry a checksum that is no more than the sum of their
	 * pseudo header, because there is no wire between us and the sender: it is
	 * this machine's kernel, or that of another one on the same host. */
	bool rx_partial_csum;
	/* Rules may say FLOW_TO_KERNEL. Where they cannot, what is the kernel's behind
	 * a wider rule comes to the ring, and the stack gives it back. */
	bool kernel_verdicts;
	/* Until it is closed, it keeps from the kernel what its rules name, also when it has
	 * failed. So connections may leave first. */
	bool rules_outlast_failure;
	/* It may be driven while there are VLANs on its interface: it has rules for each of
	 * them, too, if they are driven, and a frame with a tag that its own rules bring
	 * comes with the tag, so that the stack gives it back. */
	bool bears_vlans;
	/* What was given back to the kernel (net/give_back.h) comes to the ring again where a
	 * rule names it. */
	bool takes_given;
	/* kick() is needed after sending. */
	bool needs_kick;
	/* The most bytes of one frame it sends, Ethernet header included. */
	uint32_t tx_len_max;
	/* The most bytes of TCP that it cuts into segments (ring_tx.segment_len); 0: it
	 * cuts none. */
	uint32_t tso_max;
	/* The least and the highest kbps at which it can make a ring of its own for a
	 * sender; both 0: it cannot. */
	uint32_t pace_min;
	uint32_t pace_max;
};

enum flow_verdict {
	/* they belong to the ring */
	FLOW_TO_RING,
	/* they are the kernel's, whatever a wider rule says; only for devices
	 * with caps.kernel_verdicts */
	FLOW_TO_KERNEL,
};

/*
 * Some frames, and what becomes of them: addressed to this interface, of the
 * protocol, to `dst` and `dst_port`, and unless `src` is the any-address, from `src`
 * and `src_port`. The more specific rule wins; the verdict does not make it another
 * rule. Everything no rule names is the kernel's, and so are tagged frames, unless the
 * device is the interface of their VLAN.
 *
 * Of UDP fragments, packets with IP options, and what a sender on this host has left
 * for a card to split are the kernel's too, whatever the rules say. Of TCP no frame
 * that belongs to the ring reaches the kernel: there it comes in as many buffers as
 * it takes, with its IP options; first fragments are dropped and counted.
 */
struct flow_rule {
	struct ip_addr dst;
	struct ip_addr src;
	__be16 dst_port;
	__be16 src_port;
	uint8_t proto;
	/* enum flow_verdict */
	uint8_t verdict;
};

/* As many rules of one ring can have tags. */
enum { FLOW_TAG_MAX = 1 << 20 };

/* What a back end says of itself, and of an interface that it was not given. */
enum dev_refusal {
	DEV_REFUSED_NOT, /* it drives the interface */
	/* another process does; `pid` says which, if it is known */
	DEV_REFUSED_IN_USE,
	/* somebody's XDP program is attached */
	DEV_REFUSED_FOREIGN_PROGRAM,
	/* it cannot drive this kind of interface, or none in this state */
	DEV_REFUSED_KIND,
	/* rights are missing */
	DEV_REFUSED_RIGHTS,
	/* memory, or the limit on locked memory */
	DEV_REFUSED_MEMORY,
	/* the kernel's answer; `err` has it */
	DEV_REFUSED_ERROR,
};

struct dev_verdict {
	enum dev_refusal refusal;
	int err; /* negative errno, or 0 */
	int pid;
	/* For the line that is logged: what exactly, a complete clause. */
	char text[128];
};

/* How far a process is that ends, or becomes another program. */
enum dev_end {
	DEV_GOES_ON, /* after all */
	/* The sockets leave. A handler may end the process that it has interrupted in the
	 * middle of malloc: from now on flow_remove() leaves memory as it is. */
	DEV_IS_LEFT,
	/* They have left: what the device has changed and would outlast the process is
	 * undone. */
	DEV_ENDS,
};

struct dev_ops {
	/* "xdp", for logs and statistics. */
	const char *name;

	/*
	 * Makes the stack's ring. `pool` is the stack's and takes the frames
	 * that the ring uses; it is only touched under the stack's lock, which
	 * is not held now and is not needed, since nobody knows the ring yet.
	 * -ENOBUFS when the device has no queue or frames left.
	 */
	int (*ring_create)(struct dev *dev, struct pkt_pool *pool,
			   struct ring **ring_out) MUST_CHECK;

	/*
	 * Makes a ring that only sends, by a queue of its own and not faster than that:
	 * no frame comes to it, it has no fds, and it follows no frames. Otherwise as
	 * ring_create. The pace is within the caps. -EOPNOTSUPP: the device has no such
	 * rings, or refuses this one's burst; an error of its own: it can have no more.
	 */
	int (*paced_ring_create)(struct dev *dev, const struct ring_pace *pace,
				 struct pkt_pool *pool, struct ring **ring_out)
		MUST_CHECK;

	/*
	 * The rule holds from now on. Frames for the ring carry the tag, at most
	 * FLOW_TAG_MAX, as their flow_tag if the ring has tags, by which ConnectX spares
	 * them a look-up; 0 is none.
	 * A more specific rule wins. -EEXIST: the device has exactly this rule already;
	 * -ENOSPC: no room for another one.
	 */
	int (*flow_add)(struct dev *dev, const struct flow_rule *rule,
			struct ring *ring, uint32_t tag) MUST_CHECK;

	/* Frames that match go where they would have gone without the rule;
	 * some may still arrive. Harmless for a rule that is not there. */
	void (*flow_remove)(struct dev *dev, const struct flow_rule *rule);

	/* A received frame, in one piece, that is the kernel's after all. Only for
	 * a device that is no interface of the kernel's: for all others net/
	 * give_back.h does it, which -EOPNOTSUPP asks for. */
	int (*give_back)(struct dev *dev, const void *frame, uint32_t len)
		MUST_CHECK;

	/* Registers another region of so many frames, because those that there are
	 * run low. -EOPNOTSUPP: the device can only have one region, as with
	 * AF_XDP. */
	int (*region_add)(struct dev *dev, uint32_t frame_cnt) MUST_CHECK;

	/* Gets ready to send and receive frames of a region that other devices have, too,
	 * and which the caller adds to the device's set as this number, then. NULL: of the
	 * last one, which was not added, nothing comes. Only of back ends with
	 * shares_regions. */
	int (*region_share)(struct dev *dev, struct region *region, uint32_t id)
		MUST_CHECK;

	/* Whether the device still works: 0, or why it does not, as when its
	 * program was replaced or the interface is gone. Asked at link events
	 * and about once a second. */
	int (*check)(struct dev *dev) MUST_CHECK;

	/* The interface's address or MTU has changed, or what may come; dev->mac, dev->mtu
	 * and dev->rx_mtu say the new ones. -EOPNOTSUPP: the device cannot go on with
	 * them. */
	int (*link_changed)(struct dev *dev) MUST_CHECK;

	/* Of a bond: these ports send and receive now, a bit for each. */
	void (*ports_changed)(struct dev *dev, uint32_t active);

	/* The process may be about to give up rights: what takes them, and may be needed
	 * later, is done now. */
	void (*rights_go)(struct dev *dev);

	/* The process is about to end, or to become another program, without closing the
	 * device. */
	void (*ending)(struct dev *dev, enum dev_end how_far);

	/* Ends it; all rings are closed. The device is one user less of its
	 * region, which lives on while sockets hold frames of it. */
	void (*close)(struct dev *dev);
};

/* The part that all devices begin with. It is fixed while the device lives, except
 * for the address and MTU, which change under the control mutex, and for further
 * regions. */
struct dev {
	const struct dev_ops *ops;
	/* the first one of `regions`, and the only one of most devices */
	struct region *region;
	struct region_set regions;
	struct dev_caps caps;
	int ifindex;
	char name[16];
	uint8_t mac[6];
	/* 0: it is no VLAN's */
	uint16_t vlan_id;
	uint32_t mtu;
	/* The longest packet that may come: of a VLAN, and of a bond, the interfaces below may
	 * have a larger MTU, and let through what others send. */
	uint32_t rx_mtu;
	/* For the line at attachment: "native, copy" */
	char mode[32];
};

/* Bytes of metadata in front of a frame that went back to the kernel, for a device
 * that looks at what the kernel receives. Nobody else has so many. */
enum { RING_GIVEN_BACK_META = 12 };

/* The room at ring.tx_frame: 256 bytes of a program's, and headers of TCP with time stamps. */
enum { RING_TX_FRAME_LEN = 328 };

enum ring_tx_flag {
	/* Store the transport checksum `csum_at` bytes into the frame. */
	RING_TX_CSUM = 1 << 0,
	/* UDP: a checksum of 0 is sent as 0xffff. */
	RING_TX_CSUM_NOT_ZERO = 1 << 1,
};

/* One frame to send: a header, then a payload. A frame that is complete in itself
 * is a payload with an empty header. Or several frames of TCP, which the device makes of one
 * header and a run of bytes. */
struct ring_tx {
	const uint8_t *header;
	uint16_t header_len;
	/* Bytes of the run in each frame, but for the last, which may have fewer; 0: there
	 * is a payload instead. Only of devices with caps.tso_max, and more than one frame.
	 * The header is that of the first frame up to TCP's last option; lengths,
	 * identifications, sequence numbers, checksums and flags of each are the device's
	 * business. */
	uint16_t segment_len;
	/* The run: so many packets, linked by `link`, which stay the caller's; and all their
	 * bytes. */
	struct pkt *run;
	uint32_t run_cnt;
	uint32_t run_len;
	/* The ring owns it from the call on, whatever comes of it. */
	struct pkt *payload;
	/* enum ring_tx_flag */
	uint16_t flags;
	uint16_t csum_at;
	/* The partial sum of the pseudo header and the transport header, in
	 * which the checksum field is 0. */
	uint32_t csum_sum;
};

enum ring_kick {
	RING_KICKED,
	RING_KICK_MORE,  /* more is left: call again */
	RING_KICK_LATER, /* it takes no more for now: call after a while */
};

/* A received frame in one buffer; small enough for two registers. */
struct ring_frame {
	const uint8_t *data;
	uint32_t len;
	uint16_t csum_verdict; /* enum pkt_csum */
	/* another one waits behind it, or may do so */
	bool has_more;
};

#define RING_NO_FRAME ((struct ring_frame){ NULL, 0, PKT_CSUM_UNKNOWN, false })

/* The beginning of the scratch room of a record that says when a frame has left. */
struct ring_followed {
	/* The card has said it (pkt_card_ns), or nobody will. Takes the record. Called under
	 * the stack's lock, from within the ring: it calls nothing of that, and as an
	 * endpoint's input, it queues the record and tells the watches. */
	void (*told)(struct pkt *record);
} __attribute__((may_alias));

struct ring_ops {
	/*
	 * Fills `batch` with up to `cnt` received packets, the caller's from
	 * then on, and gives the device new frames. A packet of several frames
	 * is a chain by next_part. A checksum verdict is given where it is
	 * known. No system call, unless the device cannot go on without one.
	 */
	unsigned (*rx_poll)(struct ring *ring, struct pkt **batch,
			    unsigned cnt);

	/*
	 * The frame that a poll would bring first, where it lies: it stays there
	 * until rx_done, which takes it, or the next rx_poll. No data: there
	 * is none, or it is one for rx_poll, as one of several buffers.
	 */
	struct ring_frame (*rx_peek)(struct ring *ring);

	/* The frame that rx_peek has just shown is the device's again. */
	void (*rx_done)(struct ring *ring);

	/*
	 * Sends a frame, at the latest at the next kick. 0, or -EAGAIN: the
	 * queue is full, or there is no frame to copy to; a payload is released
	 * then too.
	 */
	int (*tx)(struct ring *ring, const struct ring_tx *tx) MUST_CHECK;

	/*
	 * Sends the frame that was written to ring.tx_frame, complete with its
	 * checksums, as tx does, and says where the next one goes.
	 */
	void (*tx_commit)(struct ring *ring, size_t len);

	/*
	 * The next frame that is sent is followed: when the card has said when it left,
	 * polls and reap find that out, and the record is told (struct ring_followed). The
	 * fds become readable then, too. Of the record the ring has a reference of its own
	 * until then. NULL, under the same hold of the lock, ends the wish: if no frame has
	 * been sent, none is followed. Only of rings with follows_tx.
	 */
	void (*tx_follow)(struct ring *ring, struct pkt *record);

	/*
	 * Whether tx would now take `cnt` frames. The payloads of `copied` of them lie
	 * anywhere, so each needs a packet of the pool to be copied to. Those of the others
	 * lie in packets of this ring, with room for their headers in front. What has been
	 * sent is taken back before the answer is no. For more than ring.tx_fits_max it may
	 * never be true; nor for many to copy, since others may have the pool's packets for
	 * long.
	 */
	bool (*tx_fits)(struct ring *ring, uint32_t cnt, uint32_t copied);

	/*
	 * Whether everything that was sent has left the device's queue. A queue that
	 * would not tell by itself is made to. Called again and again, with kicks,
	 * before the process ends and its queues with it. Rings that leave that to
	 * the kernel have no need of it.
	 */
	bool (*tx_is_done)(struct ring *ring);

	/*
	 * Takes back frames whose transmission is complete, and has a tx_frame
	 * again if it can. Called when room is short; the ring does it by
	 * itself now and then.
	 */
	void (*reap)(struct ring *ring);

	/*
	 * Outside the stack's lock, by one thread at a time: tells the device
	 * that there is something to send. May make system calls.
	 */
	enum ring_kick (*kick)(struct ring *ring);

	/*
	 * Fds that become readable when frames arrive; at most `cnt` of them
	 * are stored. Returns how many there are. They stay the same while the
	 * ring lives.
	 */
	unsigned (*fds)(struct ring *ring, int *fds, unsigned cnt);

	/* From now on the fds become readable at the next arrival. False: a
	 * frame has arrived already, poll again. Whoever sleeps on the fds calls
	 * it first, each time. A new ring is armed. */
	bool (*arm)(struct ring *ring);

	/* Outside the stack's lock, by one thread at a time, while another one may kick: takes
	 * note of what has made the fds readable, so that they no longer are. Only of
	 * rings with needs_ack; before they are armed again, so that no later
	 * arrival is taken for one that is known. Another thread may sleep on them
	 * meanwhile, or be about to, and has armed them: for it they stay armed, and
	 * become readable again by what nobody has polled. May make system calls. */
	void (*acknowledge)(struct ring *ring);

	/* How many frames of the pool the device has: posted, not delivered
	 * yet, or on their way out. */
	uint32_t (*device_cnt)(const struct ring *ring);

	/* Under the control mutex, and without the stack's lock: a ring that was made by
	 * paced_ring_create goes at another pace, which is within the caps. What it has
	 * not sent yet does, too. -EOPNOTSUPP and the like: it goes on as before. */
	int (*set_pace)(struct ring *ring, const struct ring_pace *pace) MUST_CHECK;

	/* The device has more frames than when the ring was made, so it may post
	 * more, which rx_post_max says from then on. */
	void (*rx_grow)(struct ring *ring);

	/*
	 * The end of a ring in three steps, under the control mutex, when no rule leads
	 * to it and nobody polls or kicks it. It stops: the device has none of its frames
	 * any more. All of them go back to the pool: this alone is under the stack's lock,
	 * since sockets put packets of the same pool. It is freed.
	 */
	void (*stop)(struct ring *ring);
	void (*take_back)(struct ring *ring);
	void (*close)(struct ring *ring);
};

/* Fill the gaps of a table, once, before it is used. A ring needs tx and close; for an
 * op that it leaves out, there is nothing to receive, to show, to do or to wait for. A
 * device needs its name, ring_create, flow_add, flow_remove and close. Without the other
 * ops, its frames are given back through its interface, it works until it is closed, it
 * follows the link without being told, it has one region and no ports, needs no rights
 * later, and leaves nothing behind. */
void ring_ops_fill(struct ring_ops *ops);
void dev_ops_fill(struct dev_ops *ops);

/* The part that all rings begin with; inline functions of the data path need
 * its members. */
struct ring {
	const struct ring_ops *ops;
	struct dev *dev;
	struct pkt_pool *pool;
	/* The most frames that it posts to receive into; changes by rx_grow. */
	uint32_t rx_post_max;
	/* The most frames for which tx_fits becomes true in time, whatever was sent before,
	 * if none is to be copied; fixed. 0: no number is too large. */
	uint32_t tx_fits_max;
	/* It has run out of nearly all of them, and its queue has room for more: a
	 * further region would help. Set under the stack's lock. */
	bool wants_region;
	/* Somebody wishes for the card's time stamps of what is received
	 * (PKT_CARD_STAMPED). A ring whose device has none ignores it. Set under the
	 * stack's lock. */
	bool wants_stamps;
	/* What it receives says which rule has brought it (pkt.flow_tag). Fixed. */
	bool has_tags;
	/* The place where a short frame can be written, RING_TX_FRAME_LEN bytes.
	 * NULL: there is no room. Under the stack's lock. */
	uint8_t *tx_frame;
	/* Frames wait for a kick. Set under the stack's lock by tx and by polls,
	 * and by whoever commits a tx_frame if that needs a kick. */
	bool wants_kick;
	bool needs_kick; /* fixed */
	/* The device computes the transport checksum of what is written to tx_frame,
	 * whose field need not be right; fixed. */
	bool fills_csum;
	/* Its fds stay readable until they are acknowledged, as those of
	 * completion queues; fixed. */
	bool needs_ack;
	/* It only sends, at a pace (paced_ring_create); fixed. Its pool has the frames that it
	 * was made with, and gets no others. */
	bool is_paced;
	/* Bytes of the device's own memory that it sends from; fixed. */
	uint32_t dev_mem;
	/* The device says when a frame has left (tx_follow); fixed. */
	bool follows_tx;
	/* The records of frames that it has not said so of, in the order of sending; under the
	 * stack's lock, and only of rings with follows_tx. */
	struct list followed;
	/* the stack's number for it */
	uint8_t slot;
	/* A thread acknowledges. Set by the stack under its lock, and cleared without. */
	_Atomic bool is_acknowledged;
	/* 0: nobody kicks, and nobody begins to as long as the stack's lock is held, so the
	 * ring may do itself what a kick does. Written by the stack (net/stack.h); a bond's
	 * ports may be kicked at any moment. */
	_Atomic int kick_state;
	/* While the word has this value, a poll would bring nothing and has nothing
	 * else to do, so it is not made. Rings that cannot tell use
	 * ring_set_busy(). */
	uint32_t rx_quiet;
	const _Atomic uint32_t *rx_word;
	/* The ring writes these under the stack's lock, at the place that the stack
	 * chooses: at first in the ring itself, then in the shared region if there
	 * is room. */
	struct stats_ring_counters *counts;
	struct stats_ring_counters own_counts;
	struct stats_ring *stats; /* NULL: no room */
};

/* Ends a ring that no stack knows, whose pool is the caller's alone. */
static inline void ring_end(struct ring *ring)
{
	ring->ops->stop(ring);
	ring->ops->take_back(ring);
	ring->ops->close(ring);
}

/* Makes the word one that is never quiet. */
static inline void ring_set_busy(struct ring *ring)
{
	static const _Atomic uint32_t busy = 1;

	ring->rx_word = &busy;
	ring->rx_quiet = 0;
}

/* Makes the word one that is always quiet. */
static inline void ring_set_silent(struct ring *ring)
{
	static const _Atomic uint32_t silent = 1;

	ring->rx_word = &silent;
	ring->rx_quiet = 1;
}

static inline bool ring_is_quiet(const struct ring *ring)
{
	/* acquire: the poll sees what was written before the word */
	return atomic_load_explicit(ring->rx_word, memory_order_acquire) ==
	       ring->rx_quiet;
}

static inline bool ring_has_followed(const struct ring *ring)
{
	return ring->follows_tx && !list_is_empty(&ring->followed);
}

/* Counts the frames that the device makes of a run. */
static inline void ring_count_run(struct ring *ring, const struct ring_tx *tx)
{
	uint32_t cnt = (tx->run_len + tx->segment_len - 1) / tx->segment_len;

	ring->counts->tx_pkts += cnt;
	ring->counts->tx_bytes += (uint64_t)cnt * tx->header_len + tx->run_len;
}

/* Nobody will hear any more of the frames that are followed. Under the stack's lock. */
static inline void ring_forget_followed(struct ring *ring)
{
	while (ring_has_followed(ring)) {
		struct pkt *record =
			pkt_from_link(list_pop_front(&ring->followed));

		PKT_CB(record, struct ring_followed)->told(record);
	}
}

/* Takes a packet of the stack's pool, which gets a magazine from the region when it
 * has none left, unless the ring is paced: what waits for its pace must not be what others
 * need. NULL: there is none. Under the stack's lock. */
static inline struct pkt *ring_pkt_alloc(struct ring *ring)
{
	struct pkt_pool *pool = ring->pool;

	if (UNLIKELY(!pool->free) && !ring->is_paced)
		region_set_take(&ring->dev->regions, pool, REGION_MAGAZINE);
	return pkt_alloc(pool);
}

/* Whether ring_pkt_alloc would give so many packets now, one after the other. */
static inline bool ring_has_pkts(struct ring *ring, uint32_t cnt)
{
	struct pkt_pool *pool = ring->pool;

	if (UNLIKELY(pool->free_cnt < cnt) && !ring->is_paced)
		region_set_take(&ring->dev->regions, pool,
				MAX(cnt - pool->free_cnt, (uint32_t)REGION_MAGAZINE));
	return pool->free_cnt >= cnt;
}

#endif
