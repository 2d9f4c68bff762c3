/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time stamps of what a socket has sent by our ways (SO_TIMESTAMPING). A record says when
 * a datagram, or a byte of a stream, was at one of its stations. The program reads it with
 * MSG_ERRQUEUE, where Linux has its own. Records are packets of the stack, since a send
 * may run in a handler that has interrupted malloc.
 */
#ifndef SOCK_TX_STAMPS_H
#define SOCK_TX_STAMPS_H

#include <time.h>
/* needs the former */
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>

#include "net/endpoint.h"
#include "pkt/wire.h"
#include "sock/user_msg.h"

/* Flags of the option that say which stations there are records of, where we know them; a
 * card's only where there is one that says it. A control message may say so for one send. */
enum {
	TX_STAMPS_STATIONS = SOF_TIMESTAMPING_TX_SOFTWARE |
			     SOF_TIMESTAMPING_TX_HARDWARE |
			     SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_ACK,
};

/* What a record is of; in the packet's scratch room. Its bytes are the frame that was sent,
 * or none (SOF_TIMESTAMPING_OPT_TSONLY). Its time is real time; a card's record has the card's
 * stamp instead (pkt_card_ns). */
struct tx_stamp {
	/* SCM_TSTAMP_SND, SCM_TSTAMP_SCHED or SCM_TSTAMP_ACK */
	uint32_t station;
	/* with SOF_TIMESTAMPING_OPT_ID; else 0 */
	uint32_t number;
	/* Which of the datagrams it is of, whether numbers are wished for or not; streams have
	 * no use for it. */
	uint32_t order;
	/* of the interface; counts for a record with a frame */
	uint32_t ifindex;
};

struct tx_stamps {
	/* SOF_TIMESTAMPING_ flags as the program has set them; written with the stack's lock,
	 * where there is a stack */
	_Atomic uint32_t flags;

	/* the stack's lock */
	struct list records;
	/* what they take of the receive buffer */
	uint32_t taken;
	/* those that cards have yet to tell (tx_followed.h); the socket stays in its stack
	 * meanwhile */
	uint32_t waiting;
};

static inline void tx_stamps_init(struct tx_stamps *stamps)
{
	list_init(&stamps->records);
}

static inline uint32_t tx_stamps_flags(const struct tx_stamps *stamps)
{
	return atomic_load_explicit(&stamps->flags, memory_order_relaxed);
}

static inline const struct tx_stamp *tx_stamp_of(const struct pkt *record)
{
	return PKT_CB(record, const struct tx_stamp);
}

/* Appends a record, which is the queue's from now on. `room`: what is left of the receive
 * buffer; without enough the record is dropped, as by Linux. Returns whether it was
 * queued. Under the stack's lock, as all of these. */
bool tx_stamps_put(struct tx_stamps *stamps, struct pkt *record,
		   const struct tx_stamp *what, uint64_t time_ns, uint32_t room);
/* The oldest one, which is the caller's then; NULL: there is none. */
struct pkt *tx_stamps_take(struct tx_stamps *stamps);
void tx_stamps_purge(struct tx_stamps *stamps);

/* -- to the program; without a lock -- */

/* The record's time, as the flags and the wishes (enum user_stamp) ask for it. */
void tx_stamp_put_time(struct user_control *control, uint32_t flags,
		       uint32_t wishes, const struct pkt *record);
/* The record itself: IP_RECVERR, or IPV6_RECVERR on a socket of AF_INET6. `ip`: the header
 * that names who has sent it; NULL: it is not told. */
void tx_stamp_put_record(struct user_control *control, int domain,
			 const struct pkt *record, const struct wire_ipv4 *ip);
/* The record's bytes. Returns how many were copied. */
size_t tx_stamp_copy(const struct pkt *record, const struct iovec *iov,
		     size_t iov_cnt, size_t len);

/* Where in the control messages that the kernel has put into this message a record of its own
 * has its number; NULL: there is none. It may not be aligned. */
uint8_t *tx_stamp_number_in(const struct msghdr *msg);

#endif
