/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time stamps of sent datagrams (tx_stamps.h), and the error queue of a socket that has
 * them. Some datagrams are the twin's to send, and the kernel stamps those. The program
 * sees one queue: what it reads next is the older one of the two, and a number of the
 * kernel's, which counts its own datagrams alone, becomes one that counts all.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"
#include "fd/fd_visit.h"
#include "os/inside.h"
#include "sock/tx_followed.h"
#include "sock/udp/udp_priv.h"

/* udp_stamps.twin_since: nobody knows of anything in the twin's error queue */
#define NEVER UINT64_MAX

/* An acknowledgment is no station of a datagram. */
enum {
	STATIONS = SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE |
		   SOF_TIMESTAMPING_TX_HARDWARE,
};

/* -- what is asked for ------------------------------------------------------------ */

/* Linux numbers anew from the moment when numbers are wished for. */
static void take_flags(struct udp *u, uint32_t flags)
{
	struct udp_stamps *stamps = &u->stamps;

	if (flags & ~tx_stamps_flags(&stamps->own) & SOF_TIMESTAMPING_OPT_ID) {
		stamps->first = stamps->next;
		stamps->twin_next = 0;
		stamps->run_cnt = 0;
	}
	atomic_store(&stamps->own.flags, flags);
}

void udp_stamps_follow(struct udp *u, int fd)
{
	uint32_t flags = (uint32_t)sock_twin_option(fd, SOL_SOCKET,
						    SO_TIMESTAMPING);
	bool tells_urgent = sock_twin_option(fd, SOL_SOCKET, SO_SELECT_ERR_QUEUE);
	struct stack *stack;
	bool has_stack = sock_try_lock(&u->sock, &stack);

	take_flags(u, flags);
	u->stamps.ready = READY_ERR | (tells_urgent ? READY_PRI : 0);
	udp_settle_error(u);
	if (has_stack)
		stack_unlock(stack);
	if (flags & STATIONS)
		sock_hold_tx(&u->sock, SOCK_TX_STAMPED);
	else
		sock_release_tx(&u->sock, SOCK_TX_STAMPED);
}

uint32_t udp_stamps_stations(const struct udp *u, const struct tx_control *control)
{
	uint32_t stations = control && control->has_stations ?
				    control->stations :
				    tx_stamps_flags(&u->stamps.own);

	return stations & STATIONS;
}

static uint32_t record_cnt(uint32_t stations)
{
	return !!(stations & SOF_TIMESTAMPING_TX_SCHED) +
	       !!(stations & SOF_TIMESTAMPING_TX_SOFTWARE) +
	       !!(stations & SOF_TIMESTAMPING_TX_HARDWARE);
}

/* -- records of ours -------------------------------------------------------------- */

/* Packets for so many bytes, or NULL: there is no memory. */
static struct pkt *alloc_bytes(struct stack *stack, size_t len)
	REQUIRES(stack->lock)
{
	struct pkt *first = NULL, **at = &first;

	for (size_t room = 0; room < len; at = &(*at)->next_part) {
		*at = stack_send_alloc_locked(stack);
		if (!*at) {
			pkt_put(first);
			return NULL;
		}
		room += pkt_tailroom(*at);
	}
	return first;
}

/* False: there is no memory now; there may be after the unlock. */
static bool alloc_draft(struct udp_draft *draft, struct stack *stack, size_t len)
	REQUIRES(stack->lock)
{
	draft->bytes = alloc_bytes(stack, len);
	if (len && !draft->bytes)
		return false;
	for (unsigned i = 0; i < draft->cnt; i++) {
		draft->records[i] = stack_send_alloc_locked(stack);
		if (!draft->records[i]) {
			while (i--)
				pkt_put(draft->records[i]);
			pkt_put(draft->bytes);
			return false;
		}
	}
	return true;
}

void udp_draft_begin(struct udp *u, struct udp_draft *draft, uint32_t stations,
		     const struct iovec *iov, size_t iov_cnt, size_t len)
{
	bool has_frame = !(tx_stamps_flags(&u->stamps.own) &
			   SOF_TIMESTAMPING_OPT_TSONLY);
	struct stack *stack;
	bool has_memory = false;
	size_t done = 0;

	*draft = (struct udp_draft){ .stations = stations,
				     .has_frame = has_frame };
	/* what no datagram can have is refused later */
	if (len <= UDP_PAYLOAD_MAX)
		draft->cnt = record_cnt(stations);
	for (int tries = 0; draft->cnt && !has_memory && tries < 2; tries++) {
		sock_lock(&u->sock, &stack);
		has_memory = alloc_draft(draft, stack, has_frame ? len : 0);
		stack_unlock(stack);
	}
	if (!has_memory) {
		/* without a record, as Linux does it */
		draft->cnt = 0;
		draft->bytes = NULL;
	}
	for (struct pkt *pkt = draft->bytes; pkt; pkt = pkt->next_part) {
		uint32_t n = (uint32_t)MIN((size_t)pkt_tailroom(pkt), len - done);

		user_iov_read(iov, iov_cnt, done, pkt_append(pkt, n), n);
		pkt->csum_sum = csum_partial(pkt->data, n, 0);
		done += n;
	}
	draft->scheduled_ns = clock_realtime_ns();
}

/* The headers of the frame that has just been sent by this way. */
static struct udp_header make_header(const struct udp_way *way,
				     const struct pkt *bytes, uint32_t len)
{
	struct udp_way copy = *way;
	uint32_t sum;

	udp_way_set_len(&copy, len);
	copy.dst.next_id--;
	udp_way_number(&copy, &copy.header);
	sum = copy.udp_sum;
	/* each part but the last has an even length */
	for (; bytes; bytes = bytes->next_part)
		sum = csum_add(sum, bytes->csum_sum);
	copy.header.udp.check = csum_fold_not_zero(sum);
	return copy.header;
}

static void trim_bytes(struct pkt *pkt, uint32_t len)
{
	while (pkt && pkt->len < len) {
		len -= pkt->len;
		pkt = pkt->next_part;
	}
	if (!pkt)
		return;
	pkt_trim(pkt, len);
	pkt_put(pkt->next_part);
	pkt->next_part = NULL;
}

/* Of a datagram in pieces, Linux stamps the first. */
static void make_first_piece(const struct udp_way *way, struct udp_header *header,
			     struct udp_draft *draft)
{
	uint32_t len = (way->dst.cut_mtu - (uint32_t)sizeof(header->ip)) & ~7u;

	header->ip.frag = htobe16(WIRE_IPV4_MF);
	header->ip.total_len = htobe16((uint16_t)(len + sizeof(header->ip)));
	header->ip.check = 0;
	header->ip.check = csum_fold(
		csum_words(&header->ip, sizeof(header->ip) / 4));
	trim_bytes(draft->bytes, len - (uint32_t)sizeof(header->udp));
}

/* Puts the frame into the records: each has the headers, and all share the bytes. */
static void show_frame(const struct udp_way *way, struct udp_draft *draft,
		       uint32_t len)
{
	struct udp_header header = make_header(way, draft->bytes, len);

	if (len > way->payload_max)
		make_first_piece(way, &header, draft);
	for (unsigned i = 0; i < draft->cnt; i++) {
		struct pkt *record = draft->records[i];

		memcpy(pkt_append(record, sizeof(header)), &header,
		       sizeof(header));
		record->next_part = draft->bytes;
		if (draft->bytes)
			pkt_get(draft->bytes);
	}
}

static void put_record(struct udp *u, struct pkt *record, struct tx_stamp *what,
		       uint32_t station, uint64_t time_ns)
{
	uint32_t used = udp_rx_used(u);
	uint32_t room = u->rx_limit - MIN(used, u->rx_limit);

	what->station = station;
	if (!tx_stamps_put(&u->stamps.own, record, what, time_ns, room))
		return;
	udp_settle_limit(u);
	endpoint_set_ready(&u->sock.end, u->stamps.ready);
}

/* The card has said when the frame left, or nobody will. */
static void told(struct pkt *record)
{
	struct tx_stamp what;
	struct tx_stamps *stamps = tx_followed_told(record, &what);

	if (stamps)
		put_record(CONTAINER_OF(stamps, struct udp, stamps.own), record,
			   &what, SCM_TSTAMP_SND, 0);
}

/* The last one of a draft that is to be followed. */
static struct pkt *card_record(const struct udp_draft *draft)
{
	return draft->cnt && draft->stations & SOF_TIMESTAMPING_TX_HARDWARE ?
		       draft->records[draft->cnt - 1] :
		       NULL;
}

void udp_draft_follow(const struct udp_draft *draft, struct ring *ring)
{
	struct pkt *record = card_record(draft);

	if (record && ring->follows_tx)
		tx_follow(ring, record, told);
}

void udp_draft_unfollow(const struct udp_draft *draft, struct ring *ring)
{
	if (card_record(draft) && ring->follows_tx)
		ring->ops->tx_follow(ring, NULL);
}

bool udp_draft_is_for(const struct udp_draft *draft, const struct ring *ring)
{
	return !(draft->stations & SOF_TIMESTAMPING_TX_HARDWARE) || ring->follows_tx;
}

/* The record is complete: now it may be queued, by us or by who tells it. */
static void leave_to_card(struct udp *u, struct pkt *record, struct tx_stamp *what)
{
	record = tx_followed_leave(record, &u->stamps.own, what);
	if (record)
		put_record(u, record, what, SCM_TSTAMP_SND, 0);
}

/* Queues them, for a frame of this way. `order`: the datagram's. */
static void put_records(struct udp *u, const struct udp_way *way,
			struct udp_draft *draft, uint32_t order)
{
	uint32_t flags = tx_stamps_flags(&u->stamps.own);
	bool has_number = flags & SOF_TIMESTAMPING_OPT_ID;
	struct pkt **record = draft->records, *card = card_record(draft);
	/* Linux takes the card's time for the better one of two */
	bool has_soft = flags & SOF_TIMESTAMPING_OPT_TX_SWHW || !card ||
			!tx_is_followed(card);
	struct tx_stamp what = {
		.number = has_number ? order - u->stamps.first : 0,
		.order = order,
		.ifindex = (uint32_t)way->dst.ring->dev->ifindex,
	};

	if (draft->stations & SOF_TIMESTAMPING_TX_SCHED)
		put_record(u, *record++, &what, SCM_TSTAMP_SCHED,
			   draft->scheduled_ns);
	if (draft->stations & SOF_TIMESTAMPING_TX_SOFTWARE && has_soft)
		put_record(u, *record, &what, SCM_TSTAMP_SND,
			   clock_realtime_ns());
	else if (draft->stations & SOF_TIMESTAMPING_TX_SOFTWARE)
		pkt_put(*record);
	if (card)
		leave_to_card(u, card, &what);
	draft->cnt = 0;
}

void udp_draft_end(struct udp *u, struct udp_draft *draft,
		   const struct udp_way *way, size_t len)
{
	uint32_t order = u->stamps.next++;

	if (draft->cnt && way && way->dst.ring) {
		if (draft->has_frame)
			show_frame(way, draft, (uint32_t)len);
		put_records(u, way, draft, order);
	}
	udp_draft_drop(draft);
}

void udp_draft_drop(struct udp_draft *draft)
{
	for (unsigned i = 0; i < draft->cnt; i++)
		pkt_put(draft->records[i]);
	draft->cnt = 0;
	pkt_put(draft->bytes);
	draft->bytes = NULL;
}

/* -- datagrams of the twin -------------------------------------------------------- */

static struct udp_stamp_run *last_run(struct udp_stamps *stamps)
{
	return stamps->run_cnt ? &stamps->runs[stamps->run_cnt - 1] : NULL;
}

/* Room for a run behind the others; those that were read whole are not needed any more. */
static bool make_room(struct udp_stamps *stamps)
{
	unsigned i = 0;

	if (stamps->run_cnt < UDP_STAMP_RUNS)
		return true;
	while (i < stamps->run_cnt && !stamps->runs[i].left)
		i++;
	memmove(stamps->runs, stamps->runs + i,
		(stamps->run_cnt - i) * sizeof(stamps->runs[0]));
	stamps->run_cnt -= i;
	return stamps->run_cnt < UDP_STAMP_RUNS;
}

/* Notes a datagram that the twin has sent with stamps. */
static void note_sent(struct udp_stamps *stamps, uint32_t records)
{
	struct udp_stamp_run *run = last_run(stamps);
	uint32_t own = stamps->next++, twins = stamps->twin_next++;

	if (!run || own - run->own_first != twins - run->twin_first) {
		run = &stamps->runs[stamps->run_cnt++];
		*run = (struct udp_stamp_run){ .own_first = own,
					       .twin_first = twins };
	}
	run->left += records;
}

/* The twin's error queue may have something of this datagram or of one behind it. */
static void note_twin(struct udp_stamps *stamps, uint64_t since)
{
	uint64_t never = NEVER;

	atomic_compare_exchange_strong(&stamps->twin_since, &never, since);
}

void udp_stamps_twin_event(struct udp *u)
{
	/* a number that is a little old makes no great difference */
	note_twin(&u->stamps, atomic_load(&u->stamps.next));
}

long udp_stamps_send_by_twin(struct udp *u, int fd, const struct msghdr *msg,
			     int flags, uint32_t stations)
{
	struct udp_stamps *stamps = &u->stamps;
	struct fd_visit visit;
	struct stack *stack;
	bool has_room;
	long n = -EOVERFLOW;

	mutex_acquire(&u->sock.config);
	sock_lock(&u->sock, &stack);
	has_room = make_room(stamps);
	note_twin(stamps, atomic_load(&stamps->next));
	stack_unlock(stack);
	/* the number may have been closed while we waited for the lock, and be another file's */
	if (!u->sock.has_left && has_room && !fd_visit_begin(&visit, fd, &u->sock.obj)) {
		n = -EBADF;
	} else if (!u->sock.has_left && has_room) {
		n = inside_sendmsg(fd, msg, flags | MSG_DONTWAIT);
		fd_visit_end(&visit);
	}
	if (n >= 0) {
		sock_lock(&u->sock, &stack);
		/* whether the card has stamps for the kernel nobody knows */
		note_sent(stamps,
			  record_cnt(stations &
				     ~(uint32_t)SOF_TIMESTAMPING_TX_HARDWARE));
		stack_unlock(stack);
	}
	mutex_release(&u->sock.config);
	return n;
}

/* Which of all datagrams one of the twin's is. */
static uint32_t order_of(const struct udp_stamps *stamps, uint32_t twins)
{
	/* the socket has left, and all are the twin's */
	if ((int32_t)(twins - stamps->twin_next) >= 0)
		return stamps->next + (twins - stamps->twin_next);
	for (unsigned i = stamps->run_cnt; i--;) {
		uint32_t by = twins - stamps->runs[i].twin_first;

		if ((int32_t)by >= 0)
			return stamps->runs[i].own_first + by;
	}
	return twins;
}

/* A record of the twin's was read, of this datagram; NULL: it is not known of which. The next
 * one there is of the same datagram or of one behind it. */
static void note_read(struct udp_stamps *stamps, const uint32_t *order)
{
	uint64_t since = NEVER;

	for (unsigned i = 0; i < stamps->run_cnt; i++) {
		struct udp_stamp_run *run = &stamps->runs[i];
		bool is_passed = order && i + 1 < stamps->run_cnt &&
				 (int32_t)(*order - run[1].own_first) >= 0;

		if (is_passed)
			run->left = 0;
		if (!run->left)
			continue;
		run->left--;
		break;
	}
	for (unsigned i = stamps->run_cnt; i--;)
		if (stamps->runs[i].left)
			since = stamps->runs[i].own_first;
	atomic_store(&stamps->twin_since, since);
}

/* -- reading ---------------------------------------------------------------------- */

void udp_settle_error(struct udp *u)
{
	bool has_record = !list_is_empty(&u->stamps.own.records);
	uint32_t bits = has_record ? u->stamps.ready : 0;

	if (atomic_load(&u->kept_error))
		bits |= READY_ERR;
	endpoint_clear_ready(&u->sock.end, (READY_ERR | READY_PRI) & ~bits);
	endpoint_add_ready(&u->sock.end, bits);
}

/* The twin's error queue has the older record, as far as anybody can tell. */
static bool is_twin_first(struct udp *u)
{
	struct udp_stamps *stamps = &u->stamps;
	uint64_t since = atomic_load(&stamps->twin_since);
	struct stack *stack;
	struct list *first;
	bool result = true;

	if (!sock_try_lock(&u->sock, &stack))
		return true;
	first = list_first(&stamps->own.records);
	if (since == NEVER)
		result = !first;
	else if (first)
		result = (int32_t)((uint32_t)since -
				   PKT_CB(pkt_from_link(first), struct tx_stamp)
					   ->order) <= 0;
	stack_unlock(stack);
	return result;
}

/* The twin's next record. -EAGAIN: it has none. With `config`. */
static long read_twin(struct udp *u, int fd, struct msghdr *msg, int flags)
{
	struct udp_stamps *stamps = &u->stamps;
	bool has_numbers = tx_stamps_flags(&stamps->own) & SOF_TIMESTAMPING_OPT_ID;
	uint8_t *record;
	struct fd_visit visit;
	struct stack *stack;
	uint32_t number, order = 0;
	long n;

	if (!fd_visit_begin(&visit, fd, &u->sock.obj))
		return -EBADF;
	/* before the read: what comes after it is noted again */
	if (!last_run(stamps) || !last_run(stamps)->left)
		atomic_store(&stamps->twin_since, NEVER);
	n = inside_recvmsg(fd, msg, flags | MSG_DONTWAIT);
	fd_visit_end(&visit);
	if (n < 0) {
		if (n == -EAGAIN)
			atomic_store(&stamps->twin_since, NEVER);
		return n;
	}
	stats_count_os_rx(&u->sock.stats, n);
	record = tx_stamp_number_in(msg);
	if (!sock_try_lock(&u->sock, &stack))
		return n;
	if (record && has_numbers) {
		memcpy(&number, record, sizeof(number));
		order = order_of(stamps, number);
		number = order - stamps->first;
		memcpy(record, &number, sizeof(number));
	}
	/* without control messages it is a record by all appearances */
	if (record || !msg->msg_control)
		note_read(stamps, record && has_numbers ? &order : NULL);
	stack_unlock(stack);
	return n;
}

/* With SOF_TIMESTAMPING_OPT_CMSG on a socket of AF_INET, and always on one of AF_INET6. */
static const struct wire_ipv4 *shown_ip(const struct udp *u,
					const struct pkt *record)
{
	bool is_shown = u->sock.domain == AF_INET6 ||
			tx_stamps_flags(&u->stamps.own) & SOF_TIMESTAMPING_OPT_CMSG;

	if (!is_shown || !record->len)
		return NULL;
	return &((const struct udp_header *)(const void *)record->data)->ip;
}

static void give_control(const struct udp *u, struct msghdr *msg,
			 const struct pkt *record)
{
	struct user_control control = { .at = msg->msg_control,
					.room = msg->msg_controllen };
	const struct wire_ipv4 *ip = shown_ip(u, record);
	uint32_t wishes = u->sock.set.wishes;

	tx_stamp_put_time(&control, tx_stamps_flags(&u->stamps.own), wishes,
			  record);
	if (ip)
		udp_put_ip_control(&control, wishes, ip,
				   tx_stamp_of(record)->ifindex,
				   ip->src);
	tx_stamp_put_record(&control, u->sock.domain, record, ip);
	msg->msg_controllen -= control.room;
	msg->msg_flags |= control.flags;
}

/* Our next record. -EAGAIN: there is none. */
static long read_own(struct udp *u, struct msghdr *msg, size_t len, int flags)
{
	struct stack *stack;
	struct pkt *record;
	size_t full, done;

	if (!sock_try_lock(&u->sock, &stack))
		return -EAGAIN;
	record = tx_stamps_take(&u->stamps.own);
	udp_settle_limit(u);
	udp_settle_error(u);
	stack_unlock(stack);
	if (!record)
		return -EAGAIN;

	full = pkt_total_len(record);
	done = tx_stamp_copy(record, msg->msg_iov, msg->msg_iovlen, MIN(full, len));
	msg->msg_flags = (flags & MSG_CMSG_CLOEXEC) | MSG_ERRQUEUE |
			 (done < full ? MSG_TRUNC : 0);
	msg->msg_namelen = 0;
	give_control(u, msg, record);
	stack_lock(stack);
	pkt_put(record);
	stack_unlock(stack);
	return (long)done;
}

long udp_receive_record(struct udp *u, int fd, struct msghdr *msg, int flags)
{
	ssize_t len = user_iov_len(msg->msg_iov, msg->msg_iovlen);
	struct stack *stack;
	long n = -EAGAIN;

	if (len < 0 || !user_is_plausible(msg->msg_control, msg->msg_controllen))
		return FD_PASS;
	mutex_acquire(&u->sock.config);
	if (sock_try_lock(&u->sock, &stack)) {
		tx_followed_look(&u->stamps.own, stack);
		stack_unlock(stack);
	}
	if (!atomic_load(&u->stamps.next) && !u->stamps.twin_next)
		n = FD_PASS;
	else if (is_twin_first(u))
		n = read_twin(u, fd, msg, flags);
	if (n == -EAGAIN)
		n = read_own(u, msg, (size_t)len, flags);
	if (n == -EAGAIN)
		n = read_twin(u, fd, msg, flags);
	mutex_release(&u->sock.config);
	return n;
}
