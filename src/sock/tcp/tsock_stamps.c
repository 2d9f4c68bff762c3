/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time stamps of what is written (tx_stamps.h). A call's last byte is followed by the engine
 * (tcp.h, enum tcp_stamp), and each station makes a record. Records have no bytes: a socket
 * that wants the segments themselves with them is the kernel's. While a connection is ours
 * its twin knows nothing of stations and numbers: it has no connection to number, and what is
 * fed to it when it gets one is no sending. When a connection goes back, the twin's numbers
 * are counted on from ours. A card's stamp comes when the segment has left (tx_followed.h);
 * where the way has no ring that says it, the connection is the kernel's.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "os/inside.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/tx_followed.h"

/* newer than some headers of the kernel */
enum { OPT_ID_TCP = 1 << 16 };

/* what the twin of a connection of ours is not told */
enum {
	NUMBERS = SOF_TIMESTAMPING_OPT_ID | OPT_ID_TCP,
	OURS = TX_STAMPS_STATIONS | NUMBERS,
};

/* A byte that is followed; in the scratch room of the packet that will be its last record. */
struct followed {
	uint32_t byte;
	uint32_t stations;
};

static struct followed *followed_of(struct pkt *pkt)
{
	return PKT_CB(pkt, struct followed);
}

/* -- what is received --------------------------------------------------------------- */

void tsock_take_stamps(struct tsock *t)
{
	struct tcp_engine *engine = t->engine;

	if (!tsock_tells_stamps(t))
		return;
	atomic_store_explicit(&engine->takes_stamps, true, memory_order_relaxed);
	if (!(atomic_load(&t->stamps_in) & USER_CARD_STAMP))
		return;
	stack_lock(engine->stack);
	stack_want_stamps_locked(engine->stack);
	stack_unlock(engine->stack);
}

/* -- the option ---------------------------------------------------------------------- */

static bool has_stamps(const struct ring *ring, uint32_t flags)
{
	return !(flags & SOF_TIMESTAMPING_TX_HARDWARE) || ring->follows_tx;
}

bool tsock_stamps_fit(const struct tsock *t, const struct ring *ring)
{
	return has_stamps(ring, tx_stamps_flags(&t->stamps.own));
}

/* A way that is not known yet says it later. */
static bool has_way_with(struct tsock *t, uint32_t flags)
{
	const struct ring *ring;
	bool result;

	if (!tsock_lock_ours(t))
		return true;
	ring = t->way ? tcp_way_ring(t->way) : NULL;
	result = !ring || has_stamps(ring, flags);
	tsock_unlock(t);
	return result;
}

bool tsock_stamps_are_kernels(struct tsock *t, uint32_t flags)
{
	if (flags & SOF_TIMESTAMPING_OPT_STATS ||
	    (flags & TX_STAMPS_STATIONS && !(flags & SOF_TIMESTAMPING_OPT_TSONLY)))
		return true;
	return flags & SOF_TIMESTAMPING_TX_HARDWARE && !has_way_with(t, flags);
}

/* Under the lock, where there is a connection. */
void tsock_stamps_apply(struct tsock *t)
{
	if (t->pcb)
		tcp_set_stamped(t->pcb, tx_stamps_flags(&t->stamps.own) &
						TX_STAMPS_STATIONS);
}

/* Linux numbers from the moment when numbers are wished for. */
static void take_flags(struct tsock *t, uint32_t flags) REQUIRES(t->engine->stack->lock)
{
	struct tcp_stamp_places places;

	if (t->pcb && flags & ~tx_stamps_flags(&t->stamps.own) &
			      SOF_TIMESTAMPING_OPT_ID) {
		places = tcp_stamp_places(t->pcb);
		t->stamps.first = flags & OPT_ID_TCP ? places.unwritten :
						       places.unacked;
	}
	atomic_store(&t->stamps.own.flags, flags);
	tsock_stamps_apply(t);
}

static int set_twin(int fd, const void *value, socklen_t len)
{
	return real.setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, value, len) ?
		       -errno :
		       0;
}

int tsock_stamps_set(struct tsock *t, int fd, const void *value, socklen_t len)
{
	/* flags, and the clock that a newer form of the option names */
	uint32_t words[2] = { 0 };
	uint32_t flags;
	bool is_closed;
	int err;

	if (len < sizeof(flags) || !user_is_plausible(value, len))
		return set_twin(fd, value, len);
	memcpy(words, value, MIN(len, sizeof(words)));
	flags = words[0];
	tsock_lock(t);
	is_closed = !t->pcb || tcp_state(t->pcb) == TCPS_CLOSED;
	tsock_unlock(t);
	/* what is no number of anything Linux refuses */
	if (is_closed || (flags & NUMBERS) == OPT_ID_TCP)
		return set_twin(fd, value, len);
	words[0] &= ~(uint32_t)OURS;
	err = set_twin(fd, words, MIN(len, sizeof(words)));
	if (err)
		return err;
	tsock_lock(t);
	take_flags(t, flags);
	tsock_unlock(t);
	return 0;
}

long tsock_stamps_get(struct tsock *t, int fd, void *value, socklen_t *len)
{
	uint32_t flags = tx_stamps_flags(&t->stamps.own);

	if (real.getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, value, len) != 0)
		return -errno;
	memcpy(value, &flags, MIN(*len, sizeof(flags)));
	return 0;
}

/* -- bytes that are followed ----------------------------------------------------------- */

void tsock_stamp_written(struct tsock *t, uint32_t stations)
{
	struct pkt *pkt = stack_send_alloc_locked(t->engine->stack);
	struct tcp_pcb_info info;
	uint32_t byte;

	/* without memory there is no record, as with Linux */
	if (!pkt)
		return;
	if (!tcp_stamp_last(t->pcb, &byte)) {
		pkt_put(pkt);
		return;
	}
	tcp_get_info(t->pcb, &info);
	t->stamps.rcv_buf = info.rcv_buf;
	*followed_of(pkt) = (struct followed){ byte, stations };
	list_push_back(&t->stamps.followed, &pkt->link);
}

/* Mostly it is one of the last that is sent, and the first that is acknowledged. */
static struct pkt *find(struct tsock *t, uint32_t byte, bool is_acked)
{
	struct list *head = &t->stamps.followed, *link;

	for (link = is_acked ? head->next : head->prev; link != head;
	     link = is_acked ? link->next : link->prev)
		if (followed_of(pkt_from_link(link))->byte == byte)
			return pkt_from_link(link);
	return NULL;
}

static struct tx_stamp stamp_of(const struct tsock *t, uint32_t station, uint32_t byte)
{
	bool has_number = tx_stamps_flags(&t->stamps.own) & SOF_TIMESTAMPING_OPT_ID;

	return (struct tx_stamp){
		.station = station,
		.number = has_number ? byte - t->stamps.first : 0,
	};
}

static void put_record(struct tsock *t, struct pkt *record,
		       const struct tx_stamp *what, uint64_t time_ns)
{
	uint32_t taken = MIN(t->stamps.own.taken, t->stamps.rcv_buf);

	if (!tx_stamps_put(&t->stamps.own, record, what, time_ns,
			   t->stamps.rcv_buf - taken))
		return;
	t->has_record = READY_ERR;
	tsock_update(t, READY_ERR);
}

static void put_now(struct tsock *t, struct pkt *record, uint32_t station,
		    uint32_t byte)
{
	struct tx_stamp what = stamp_of(t, station, byte);

	put_record(t, record, &what, clock_realtime_ns());
}

/* Without memory there is no record, as with Linux. */
static void put_new(struct tsock *t, uint32_t station, uint32_t byte)
	REQUIRES(t->engine->stack->lock)
{
	struct pkt *record = stack_send_alloc_locked(t->engine->stack);

	if (record)
		put_now(t, record, station, byte);
}

/* -- by a card -- */

/* It has said when the segment left, or nobody will. */
static void told(struct pkt *record)
{
	struct tx_stamp what;
	struct tx_stamps *stamps = tx_followed_told(record, &what);
	struct tsock *t;

	if (!stamps)
		return;
	t = CONTAINER_OF(stamps, struct tsock, stamps.own);
	if (t->is_orphan)
		pkt_put(record);
	else
		put_record(t, record, &what, 0);
}

/* No segment of this wish will be sent, or it has been. */
static struct tcp_wish end_wish(struct tcp_engine *engine)
{
	struct tcp_wish wish = engine->wish;

	engine->wish.record = NULL;
	if (wish.record)
		wish.ring->ops->tx_follow(wish.ring, NULL);
	return wish;
}

/* Of two bytes in what a device splits, the later one's stamp is told, as by Linux. */
static void begin_wish(struct tsock *t, uint32_t byte)
	REQUIRES(t->engine->stack->lock)
{
	struct ring *ring = t->way ? tcp_way_ring(t->way) : NULL;
	struct pkt *record;

	pkt_put(end_wish(t->engine).record);
	if (!ring || !ring->follows_tx)
		return;
	record = stack_send_alloc_locked(t->engine->stack);
	if (!record)
		return;
	t->engine->wish = (struct tcp_wish){ record, ring, byte };
	tx_follow(ring, record, told);
}

/* The card's stamp is the better one of two. */
static void was_sent(struct tsock *t, uint32_t byte, uint32_t stations)
	REQUIRES(t->engine->stack->lock)
{
	struct tx_stamp what = stamp_of(t, SCM_TSTAMP_SND, byte);
	struct tcp_wish wish = { .record = NULL };
	bool has_soft = true;

	if (t->engine->wish.byte == byte)
		wish = end_wish(t->engine);
	if (wish.record && tx_is_followed(wish.record))
		has_soft = tx_stamps_flags(&t->stamps.own) &
			   SOF_TIMESTAMPING_OPT_TX_SWHW;
	if (stations & SOF_TIMESTAMPING_TX_SOFTWARE && has_soft)
		put_new(t, SCM_TSTAMP_SND, byte);
	if (wish.record)
		wish.record = tx_followed_leave(wish.record, &t->stamps.own, &what);
	if (wish.record)
		put_record(t, wish.record, &what, 0);
}

/* -- at each station -- */

/* The stack is the engine's own, which the analysis does not see. */
NO_LOCK_ANALYSIS void tsock_stamped(struct tsock *t, enum tcp_stamp station, uint32_t byte)
{
	struct pkt *pkt = find(t, byte, station == TCP_STAMP_ACKED);
	uint32_t stations;

	if (!pkt)
		return;
	stations = t->is_orphan ? 0 : followed_of(pkt)->stations;
	switch (station) {
	case TCP_STAMP_SCHEDULED:
		if (stations & SOF_TIMESTAMPING_TX_SCHED)
			put_new(t, SCM_TSTAMP_SCHED, byte);
		if (stations & SOF_TIMESTAMPING_TX_HARDWARE)
			begin_wish(t, byte);
		break;
	case TCP_STAMP_SENT:
		was_sent(t, byte, stations);
		break;
	case TCP_STAMP_REFUSED:
		/* It was scheduled, and is not once more. */
		followed_of(pkt)->stations &= ~(uint32_t)SOF_TIMESTAMPING_TX_SCHED;
		pkt_put(end_wish(t->engine).record);
		break;
	case TCP_STAMP_ACKED:
		list_remove(&pkt->link);
		if (stations & SOF_TIMESTAMPING_TX_ACK)
			put_now(t, pkt, SCM_TSTAMP_ACK, byte);
		else
			pkt_put(pkt);
		break;
	}
}

/* -- reading ------------------------------------------------------------------------------- */

/* The oldest record; NULL: there is none. Whoever waits for the twin of one that has gone
 * back looks at that alone again when there is none left. */
static struct pkt *take(struct tsock *t)
{
	struct pkt *record;

	tsock_lock(t);
	tx_followed_look(&t->stamps.own, t->engine->stack);
	record = tx_stamps_take(&t->stamps.own);
	if (record && list_is_empty(&t->stamps.own.records)) {
		t->has_record = 0;
		if (tsock_phase(t) == TSOCK_OURS) {
			tsock_update(t, 0);
		} else {
			atomic_store(&t->sock.end.ready, 0);
			endpoint_fire(&t->sock.end, READY_ANY);
		}
	}
	tsock_unlock(t);
	return record;
}

static long give(struct tsock *t, struct msghdr *msg, int flags,
		 struct pkt *record)
{
	struct user_control control = { .at = msg->msg_control,
					.room = msg->msg_controllen };
	uint32_t wishes = atomic_load_explicit(&t->stamps_in, memory_order_relaxed);

	tx_stamp_put_time(&control, tx_stamps_flags(&t->stamps.own), wishes,
			  record);
	tx_stamp_put_record(&control, t->sock.domain, record, NULL);
	msg->msg_controllen -= control.room;
	msg->msg_flags = control.flags | (flags & MSG_CMSG_CLOEXEC) | MSG_ERRQUEUE;
	msg->msg_namelen = 0;
	tsock_lock(t);
	pkt_put(record);
	tsock_unlock(t);
	return 0;
}

/* The kernel's own, of one that has gone back. */
static long read_twin(struct tsock *t, int fd, struct msghdr *msg, int flags)
{
	uint32_t number;
	uint8_t *at;
	long n;

	if (!sock_owns_fd(&t->sock, fd))
		return -EBADF;
	n = inside_recvmsg(fd, msg, flags);
	at = n >= 0 ? tx_stamp_number_in(msg) : NULL;
	if (at && tx_stamps_flags(&t->stamps.own) & SOF_TIMESTAMPING_OPT_ID) {
		memcpy(&number, at, sizeof(number));
		number += t->stamps.by_us;
		memcpy(at, &number, sizeof(number));
	}
	return n;
}

long tsock_receive_record(struct tsock *t, int fd, struct msghdr *msg, int flags)
{
	enum tsock_phase phase = tsock_phase(t);
	struct pkt *record;

	if ((phase != TSOCK_OURS && phase != TSOCK_KERNELS) || !t->engine ||
	    user_iov_len(msg->msg_iov, msg->msg_iovlen) < 0 ||
	    !user_is_plausible(msg->msg_control, msg->msg_controllen))
		return FD_PASS;
	record = take(t);
	if (record)
		return give(t, msg, flags, record);
	return phase == TSOCK_OURS ? -EAGAIN : read_twin(t, fd, msg, flags);
}

/* -- the way back ---------------------------------------------------------------------------- */

static bool has_any(const struct tsock *t)
{
	return tx_stamps_flags(&t->stamps.own) & OURS;
}

static int set_flags(int fd, uint32_t flags)
{
	return set_twin(fd, &flags, sizeof(flags));
}

void tsock_stamps_before_move(struct tsock *t, int fd)
{
	if (has_any(t))
		(void)!set_flags(fd, tx_stamps_flags(&t->stamps.own) &
					     ~(uint32_t)OURS);
}

void tsock_stamps_number_twin(struct tsock *t, int fd)
{
	uint32_t flags = tx_stamps_flags(&t->stamps.own) & ~(uint32_t)OURS;
	struct tcp_stamp_places places;

	if (!(tx_stamps_flags(&t->stamps.own) & SOF_TIMESTAMPING_OPT_ID))
		return;
	places = tcp_stamp_places(t->pcb);
	/* from what was written to it, or by a kernel that does not know that, from what was
	 * acknowledged */
	if (set_flags(fd, flags | NUMBERS) == 0)
		t->stamps.by_us = places.unsent - t->stamps.first;
	else if (set_flags(fd, flags | SOF_TIMESTAMPING_OPT_ID) == 0)
		t->stamps.by_us = places.unacked - t->stamps.first;
}

uint32_t tsock_stamps_stretch(const struct tsock *t, uint32_t place, uint32_t len,
			      uint32_t *stations_out)
{
	struct pkt *pkt;

	*stations_out = 0;
	LIST_FOR_EACH(pkt, &t->stamps.followed, link) {
		uint32_t ahead = followed_of(pkt)->byte - place;

		/* those before it are far ahead, as far as numbers go */
		if (ahead < len) {
			*stations_out = followed_of(pkt)->stations;
			return ahead + 1;
		}
	}
	return len;
}

void tsock_stamps_moved(struct tsock *t, int fd)
{
	if (has_any(t))
		(void)!set_flags(fd, tx_stamps_flags(&t->stamps.own));
}

void tsock_stamps_tell(struct tsock *t)
{
	tsock_lock(t);
	if (t->has_record) {
		atomic_store(&t->sock.end.ready, t->has_record);
		endpoint_fire(&t->sock.end, READY_ANY);
	}
	tsock_unlock(t);
}

void tsock_stamps_unfollow(struct tsock *t)
{
	pkt_put_list(&t->stamps.followed);
	tx_followed_forget(&t->stamps.own, t->engine->stack);
}

void tsock_stamps_end(struct tsock *t)
{
	tsock_stamps_unfollow(t);
	tx_stamps_purge(&t->stamps.own);
	t->has_record = 0;
}
