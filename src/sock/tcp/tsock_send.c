/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sending on a connection of ours. Bytes are copied once, into packets of the stack's
 * send stock, and the engine keeps them until they are acknowledged. Few bytes are
 * copied under the lock; for more the packets are taken under it, filled without it, and
 * queued under it again. Meanwhile the socket's writer mutex keeps other writers away.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/syscall_raw.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/tcp/tsock_tx.h"

enum {
	/* So many bytes are copied under the stack's lock. */
	COPY_LOCKED_MAX = 256,
	/* so many packets are filled in one go */
	RUN_MAX = 32,
	/* how often we try to get memory that another thread is about to make */
	MEMORY_TRIES = 1000,
};

#define MEMORY_NAP_NS 100000

/* Packets on their way from the program to the engine. */
struct run {
	struct pkt *pkts[RUN_MAX];
	unsigned cnt;
	/* their checksums are the card's business, mostly */
	bool is_split;
};

/* -- one go -------------------------------------------------------------------------- */

/* Why nothing can be written; 0: it can. Under the lock. */
static long check_writable(struct tsock *t, bool has_some)
{
	enum tcp_state state = t->pcb ? tcp_state(t->pcb) : TCPS_CLOSED;

	/* it has left since the caller looked */
	if (UNLIKELY(!tsock_is_ours(t)))
		return FD_PASS;
	/* the caller waits for the move, and begins anew */
	if (tsock_is_moving(t))
		return -EBUSY;
	/* whose call has written some before says that, and the next one why it ended */
	if (UNLIKELY(t->error))
		return has_some ? t->error : tsock_take_error(t);
	if (UNLIKELY(state == TCPS_CLOSED || t->is_shut_wr))
		return -EPIPE;
	return UNLIKELY(tsock_is_opening_state(state)) ? -EAGAIN : 0;
}

/* How many bytes may be written now. Under the lock. */
static uint32_t find_room(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	uint32_t room = tcp_sndbuf(t->pcb);

	if (LIKELY(room))
		return room;
	tsock_poll_locked(t);
	if (!t->pcb)
		return 0;
	room = tcp_sndbuf(t->pcb);
	if (room)
		return room;
	t->wants_room = true;
	tcp_wants_room(t->pcb, tsock_now(t));
	tsock_update(t, 0);
	return 0;
}

static unsigned flags_of(const struct tx_call *call, bool is_last)
{
	unsigned flags = 0;

	if (!is_last || call->flags & MSG_MORE)
		flags |= TCP_WRITE_MORE;
	if (is_last && call->flags & MSG_EOR)
		flags |= TCP_WRITE_EOR;
	if (is_last && call->flags & MSG_OOB)
		flags |= TCP_WRITE_URGENT;
	return flags;
}

static void count(struct tsock *t, size_t len)
{
	struct stats_socket_counters *c = sock_counters(&t->sock);

	c->tx_packets++;
	c->tx_bytes += len;
}

/* What is not on its way yet takes as much as makes it a full segment, so that small
 * writes need no packet each. Under the lock. */
static void extend_last(struct tsock *t, struct tx_call *call, uint32_t room)
	REQUIRES(t->engine->stack->lock)
{
	size_t rest = MIN(call->len - call->done, (size_t)room);
	uint32_t len = (uint32_t)MIN(rest, (size_t)tcp_extend_room(t->pcb));
	bool is_last = call->done + len == call->len;

	if (!len)
		return;
	user_iov_read(call->iov, call->iov_cnt, call->done,
		      tcp_extend(t->pcb, len, flags_of(call, is_last)), len);
	call->done += len;
}

/* There is no packet. If the unlock may bring more, the caller tries again; otherwise the
 * socket waits until somebody's are given back. */
static COLD long starve(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	if (!stack_send_is_used_up_locked(t->engine->stack))
		return -ENOMEM;
	if (!list_is_linked(&t->starved))
		list_push_back(&t->engine->starved, &t->starved);
	tsock_update(t, 0);
	return -EAGAIN;
}

/* Few bytes, which are copied under the lock. */
static long write_short(struct tsock *t, struct tx_call *call)
	REQUIRES(t->engine->stack->lock)
{
	uint32_t len = (uint32_t)(call->len - call->done);
	struct pkt *pkt = stack_send_alloc_locked(t->engine->stack);
	long err;

	if (UNLIKELY(!pkt))
		return starve(t);
	user_iov_read(call->iov, call->iov_cnt, call->done,
		      pkt_append(pkt, len), len);
	err = tcp_write_with(t->pcb, pkt, flags_of(call, true));
	if (LIKELY(!err)) {
		call->done += len;
		return 0;
	}
	pkt_put(pkt);
	/* what the packet before has taken of this call was the last room there is */
	return err == -ENOBUFS ? 0 : err;
}

/* Packets for so many bytes, as many as there are. */
static void take_packets(struct tsock *t, struct run *run, size_t len)
	REQUIRES(t->engine->stack->lock)
{
	size_t room = 0;

	run->cnt = 0;
	while (room < len && run->cnt < RUN_MAX) {
		struct pkt *pkt = stack_send_alloc_locked(t->engine->stack);

		if (!pkt)
			return;
		run->pkts[run->cnt++] = pkt;
		room += MIN(pkt_tailroom(pkt), tcp_mss(t->pcb));
	}
}

static long read_at(int file, void *to, size_t len, off64_t offset)
{
	return syscall_raw(SYS_pread64, file, (long)to, (long)len, offset, 0, 0);
}

/* A file that was opened with O_DIRECT is read by whole blocks into memory that begins as
 * they do. */
static NOINLINE COLD long read_direct(int file, void *to, size_t max, off64_t offset)
{
	enum { BLOCK = 4096 };
	_Alignas(BLOCK) uint8_t block[BLOCK];
	long at = offset % BLOCK;
	long n = read_at(file, block, BLOCK, offset - at);

	if (n < 0)
		return n;
	n = MIN(MAX(n - at, 0), (long)max);
	memcpy(to, block + at, (size_t)n);
	return n;
}

static long read_file(int file, void *to, size_t max, off64_t offset)
{
	long n = read_at(file, to, max, offset);

	return UNLIKELY(n == -EINVAL) ? read_direct(file, to, max, offset) : n;
}

static long fill_from_file(struct tx_call *call, struct pkt *pkt, uint32_t max)
{
	long n = read_file(call->file, pkt->data + pkt->len, max, call->offset);

	if (n <= 0)
		return n;
	(void)pkt_append(pkt, (uint32_t)n);
	call->offset += n;
	return n;
}

static void fill_from_memory(const struct tx_call *call, size_t at,
			     struct pkt *pkt, uint32_t len, bool is_split)
{
	uint8_t *to = pkt_append(pkt, len);

	if (LIKELY(call->iov_cnt == 1 && !is_split)) {
		memcpy(to, (const uint8_t *)call->iov[0].iov_base + at, len);
		/* of the copy: another thread may change the program's bytes */
		pkt->csum_sum = csum_partial(to, len, 0);
		pkt->flags |= PKT_HAS_SUM;
		return;
	}
	user_iov_read(call->iov, call->iov_cnt, at, to, len);
}

/* Without the lock. Returns the bytes that they have now, or an error of the file. */
static long fill(struct tx_call *call, struct run *run, uint32_t mss, size_t max)
{
	size_t done = 0;

	for (unsigned i = 0; i < run->cnt && done < max; i++) {
		struct pkt *pkt = run->pkts[i];
		uint32_t len = (uint32_t)MIN(
			max - done, (size_t)MIN(pkt_tailroom(pkt), mss));
		long n = len;

		if (call->file >= 0)
			n = fill_from_file(call, pkt, len);
		else
			fill_from_memory(call, call->done + done, pkt, len,
					 run->is_split);
		if (n < 0 && !done)
			return n;
		if (n <= 0) {
			call->is_at_end = true;
			break;
		}
		done += (size_t)n;
	}
	return (long)done;
}

/* Gives the engine what has been filled. Under the lock. */
static long queue(struct tsock *t, struct tx_call *call, struct run *run,
		  size_t len)
{
	long err = check_writable(t, call->done);

	for (unsigned i = 0; i < run->cnt; i++) {
		struct pkt *pkt = run->pkts[i];
		bool is_last = call->done + pkt->len == call->len ||
			       (call->is_at_end && len == pkt->len);
		uint32_t pkt_len = pkt->len;

		if (!err && pkt_len)
			err = tcp_write_with(t->pcb, pkt,
					     flags_of(call, is_last));
		if (err || !pkt_len) {
			pkt_put(pkt);
			continue;
		}
		call->done += pkt_len;
		len -= pkt_len;
	}
	run->cnt = 0;
	/* the file is read there again */
	call->offset -= (off64_t)len;
	if (UNLIKELY(len))
		call->is_at_end = false;
	/* the buffer is full: there was room for a segment, which is several packets */
	return err == -ENOBUFS ? 0 : err;
}

/* Under the lock. */
static void drop_run(struct run *run)
{
	for (unsigned i = 0; i < run->cnt; i++)
		pkt_put(run->pkts[i]);
}

/* Under the lock, which is released for the copy. */
static long write_long(struct tsock *t, struct tx_call *call, uint32_t room)
	REQUIRES(t->engine->stack->lock)
{
	size_t max = MIN(call->len - call->done, (size_t)room);
	uint32_t mss = tcp_mss(t->pcb);
	struct run run;
	long n;

	take_packets(t, &run, max);
	if (!run.cnt)
		return starve(t);
	run.is_split = tcp_is_split(t->pcb);
	tsock_unlock(t);
	n = fill(call, &run, mss, max);
	tsock_lock(t);
	if (UNLIKELY(n < 0)) {
		drop_run(&run);
		return n;
	}
	return queue(t, call, &run, (size_t)n);
}

/* A packet for what the SYN may carry, and how much that is; 0: it carries nothing. Where
 * the stock is empty, the unlock may bring more. */
static uint32_t take_for_syn(struct tsock *t, const struct tx_call *call,
			     struct run *run)
{
	size_t left = call->len - call->done;
	uint32_t room = 0;
	bool is_over;

	run->cnt = 0;
	run->is_split = false;
	for (unsigned tries = 0; !run->cnt && tries < MEMORY_TRIES; tries++) {
		if (tries)
			inside_nap(tries > 1 ? MEMORY_NAP_NS : 1);
		tsock_lock(t);
		if (t->is_deferred && t->pcb)
			room = tcp_fast_room(t->pcb, tsock_now(t));
		room = (uint32_t)MIN((size_t)room, left);
		run->pkts[0] = room ? stack_send_alloc_locked(t->engine->stack) :
				      NULL;
		run->cnt = run->pkts[0] != NULL;
		is_over = !room || stack_send_is_used_up_locked(t->engine->stack);
		tsock_unlock(t);
		if (is_over)
			break;
	}
	return run->cnt ? room : 0;
}

/* The SYN leaves with as much of the call as it may carry, which is copied without the
 * lock. Nobody else writes meanwhile, but another thread may end the connection. 0: it has
 * left, or somebody else's has. */
static COLD long open_deferred(struct tsock *t, struct tx_call *call)
{
	struct run run;
	uint32_t room;
	long n = 0;

	mutex_acquire(&t->writer);
	room = take_for_syn(t, call, &run);
	if (room)
		n = fill(call, &run, room, room);
	tsock_lock(t);
	if (n >= 0 && t->is_deferred && t->pcb && !tsock_is_moving(t)) {
		t->is_deferred = false;
		t->began_ns = tsock_now(t);
		tcp_open_held(t->pcb, run.cnt ? run.pkts[0] : NULL, t->began_ns);
		if (n)
			count(t, (size_t)n);
		call->done += (size_t)n;
		run.cnt = n = 0;
		tcp_engine_due_locked(t->engine);
		tsock_update(t, 0);
	}
	/* the file is read there again */
	call->offset -= n > 0 ? n : 0;
	drop_run(&run);
	tsock_unlock(t);
	mutex_release(&t->writer);
	return MIN(n, 0l);
}

/* The call's last byte is followed, where it wishes for that (tsock_stamps.c). A call that
 * does not block ends where there is no room, whatever an acknowledgment makes of that. */
static void stamp(struct tsock *t, struct tx_call *call)
	REQUIRES(t->engine->stack->lock)
{
	uint32_t stations = (call->has_stations ?
				     call->stations :
				     tx_stamps_flags(&t->stamps.own)) &
			    TX_STAMPS_STATIONS;
	bool is_over = call->done == call->len || call->is_at_end ||
		       (!sock_is_blocking(&t->sock, call->flags) && t->pcb &&
			!tcp_sndbuf(t->pcb));

	if (stations && is_over && t->pcb && !tsock_is_moving(t)) {
		tsock_stamp_written(t, stations);
		call->is_stamped = true;
	}
}

/* Sends what has been queued. While the lock was released for a copy the connection may
 * have ended, or have begun to go back to the kernel with its queue. Under the lock. */
static void push(struct tsock *t) REQUIRES(t->engine->stack->lock)
{
	if (UNLIKELY(!t->pcb || tsock_is_moving(t)))
		return;
	tcp_output(t->pcb, tsock_now(t));
	tsock_update(t, 0);
}

static inline bool wants_stamps(const struct tsock *t, const struct tx_call *call)
{
	return call->has_stations ||
	       tx_stamps_flags(&t->stamps.own) & TX_STAMPS_STATIONS;
}

/* 0: all is written, or the file has ended; 1: some is; -EAGAIN: there is no room;
 * another error. */
static long write_once(struct tsock *t, struct tx_call *call)
{
	size_t before = call->done;
	uint32_t room;
	long n;

	tsock_lock(t);
	if (UNLIKELY(sock_params.tcp.polls_on_send))
		tsock_poll_locked(t);
	n = check_writable(t, call->done);
	room = n ? 0 : find_room(t);
	if (UNLIKELY(!room)) {
		tsock_unlock(t);
		return n ? n : -EAGAIN;
	}
	if (call->file < 0)
		extend_last(t, call, room);
	room -= MIN(room, (uint32_t)(call->done - before));
	if (LIKELY(call->len - call->done <= COPY_LOCKED_MAX && call->file < 0))
		n = call->done < call->len ? write_short(t, call) : 0;
	else if (room)
		n = write_long(t, call, room);
	if (LIKELY(call->done > before)) {
		count(t, call->done - before);
		if (UNLIKELY(wants_stamps(t, call)))
			stamp(t, call);
		push(t);
	}
	tcp_engine_due_locked(t->engine);
	tsock_unlock(t);
	if (n)
		return n;
	return call->done < call->len && !call->is_at_end && !call->is_stamped;
}

/* -- a whole call ---------------------------------------------------------------------- */

static long look_for_room(struct tsock_wait *w)
{
	struct tsock *t = w->t;
	long n;

	if (!tsock_lock_ours(t))
		return FD_PASS;
	tsock_poll_locked(t);
	n = check_writable(t, true);
	if (!n && (list_is_linked(&t->starved) || !find_room(t)))
		n = -EAGAIN;
	/* any other end the write itself says, or it waits for the move */
	if (n != -EAGAIN)
		n = 0;
	tsock_unlock(t);
	return n;
}

static void begin_wait(struct tsock *t, struct tx_call *call)
{
	if (call->has_waited)
		return;
	atomic_fetch_add(&t->waiting_cnt, 1);
	call->has_waited = true;
	call->deadline_ns = tsock_deadline(atomic_load(&t->sock.tx_timeout_ns));
}

static long wait_for_room(struct tsock *t, int fd, struct tx_call *call)
{
	begin_wait(t, call);
	return tsock_wait(t, fd, look_for_room, NULL,
			  READY_OUT | READY_ERR | READY_HUP, call->deadline_ns,
			  call->done > 0);
}

/* As much as goes without a wait. One writer at a time. */
static long write_all(struct tsock *t, struct tx_call *call)
{
	unsigned tries = 0;
	long n;

	mutex_acquire(&t->writer);
	atomic_store(&t->is_writing, true);
	do {
		n = write_once(t, call);
		if (UNLIKELY(n == -EBUSY)) {
			atomic_store(&t->is_writing, false);
			mutex_release(&t->writer);
			tsock_await_move(t);
			mutex_acquire(&t->writer);
			atomic_store(&t->is_writing, true);
			n = 1;
		}
		if (UNLIKELY(n == -ENOMEM) && tries++ < MEMORY_TRIES) {
			inside_nap(tries > 1 ? MEMORY_NAP_NS : 1);
			n = 1;
		}
	} while (n == 1);
	atomic_store(&t->is_writing, false);
	mutex_release(&t->writer);
	return n;
}

/* The same for room at the twin, once the connection is the kernel's. */
static COLD long wait_for_twins_room(struct tsock *t, int fd, struct tx_call *call)
{
	begin_wait(t, call);
	return tsock_wait_for_twin(t, fd, POLLOUT, call->deadline_ns, call->done > 0);
}

static long memory_to_twin(int fd, const struct tx_call *call)
{
	struct iovec iov[64];
	struct msghdr msg = { .msg_iov = iov };

	msg.msg_iovlen = user_iov_rest(call->iov, call->iov_cnt, call->done, iov,
				       ARRAY_LEN(iov));
	return inside_sendmsg(fd, &msg,
			      call->flags | MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* sendfile() itself would wait. 0: the file has ended. */
static long file_to_twin(int fd, const struct tx_call *call)
{
	char bytes[4096];
	struct iovec iov = { .iov_base = bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t len = MIN(call->len - call->done, sizeof(bytes));
	long n = read_file(call->file, bytes, len, call->offset);

	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	return inside_sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Nobody reads any more. As Linux does, to the thread that has called. */
static COLD long broken_pipe(int flags)
{
	if (!(flags & MSG_NOSIGNAL))
		(void)syscall_raw(SYS_tgkill, getpid(), gettid(), SIGPIPE, 0, 0,
				  0);
	return -EPIPE;
}

/* -EAGAIN: it has no room. An error is for the next call, if this one has something to tell. */
static long write_twin(struct tsock *t, int fd, const struct tx_call *call)
{
	struct pollfd pfd = { .events = POLLOUT };
	struct fd_visit visit;
	long n;

	pfd.fd = tsock_begin_twin(t, fd, &visit);
	if (pfd.fd < 0)
		n = pfd.fd;
	else if (call->done && inside_poll(&pfd, 1) > 0 && pfd.revents & POLLHUP)
		n = 0;
	else
		n = call->file >= 0 ? file_to_twin(pfd.fd, call) :
				      memory_to_twin(pfd.fd, call);
	tsock_end_twin(pfd.fd, &visit);
	return n;
}

/* The connection has become the kernel's while the call waited, or had written some: the twin
 * takes the rest, and a call that blocks goes on waiting for room. */
static COLD long go_on_with_twin(struct tsock *t, int fd, struct tx_call *call)
{
	bool may_wait = call->has_waited || sock_is_blocking(&t->sock, call->flags);
	long n = 0;

	if (!call->done && !call->has_waited)
		return FD_PASS;
	begin_wait(t, call);
	while (call->done < call->len) {
		n = write_twin(t, fd, call);
		if (n > 0) {
			call->done += (size_t)n;
			call->offset += n;
			continue;
		}
		if (n != -EAGAIN || !may_wait)
			break;
		n = wait_for_twins_room(t, fd, call);
		if (n == FD_ABANDONED)
			return fd_wait_abandoned(&t->sock.obj, (long)call->done);
		if (n)
			break;
	}
	if (call->done)
		return (long)call->done;
	return n == -EPIPE ? broken_pipe(call->flags) : n;
}

long tsock_send_leaves(struct tsock *t, int fd, int flags, const char *what)
{
	int err = tsock_leave_for(t, fd, REASON_SEND, STATS_BY_SEND, what,
				  flags);

	return err ? err : FD_PASS;
}

enum {
	TX_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM | MSG_EOR |
		   MSG_MORE | MSG_OOB | MSG_DONTROUTE |
		   /* of receiving, which Linux takes no notice of */
		   MSG_WAITALL | MSG_PEEK | MSG_TRUNC,
};

/* Linux knows more flags; MSG_FASTOPEN with one of them even connects. */
static COLD long send_oddly(struct tsock *t, int fd, int flags)
{
	if (tsock_is_ours(t) || flags & MSG_FASTOPEN)
		return tsock_send_leaves(t, fd, flags, "a send with these flags");
	return FD_PASS;
}

/* 0: it is open, and what is left of the call may follow. What the SYN has taken is told
 * where the call ends without a connection. Linux tells it then, too, but where a signal
 * has interrupted the wait: there the program would send it twice. */
static COLD long open_and_wait(struct tsock *t, int fd, struct tx_call *call)
{
	long n = open_deferred(t, call);

	if (!n)
		n = tsock_opened_by_send(t, fd, call->flags);
	if (n == FD_PASS)
		return go_on_with_twin(t, fd, call);
	if (call->done && (n == -EINPROGRESS || n == -EALREADY || n == -EINTR))
		return (long)call->done;
	return n == FD_ABANDONED ?
		       fd_wait_abandoned(&t->sock.obj, (long)call->done) :
		       n;
}

/* Whether something could be written. What has only begun is waited for, as by any send. */
static COLD long write_nothing(struct tsock *t, int fd, struct tx_call *call)
{
	long n;

	do {
		tsock_lock(t);
		n = check_writable(t, call->done);
		tsock_unlock(t);
		if (n != -EAGAIN || !sock_is_blocking(&t->sock, call->flags))
			break;
		n = wait_for_room(t, fd, call);
	} while (!n);
	if (n == -EPIPE)
		return broken_pipe(call->flags);
	/* the number may be another file's by now */
	if (n == FD_PASS && !sock_owns_fd(&t->sock, fd))
		return -EBADF;
	return n == -EBUSY ? 0 : n;
}

/* Linux reads first, and where there is nothing it does not come to the socket. */
static COLD bool has_ended(int file, off64_t offset)
{
	char byte;

	return read_file(file, &byte, 1, offset) == 0;
}

static long send_all(struct tsock *t, int fd, struct tx_call *call);

/* MSG_ZEROCOPY, which means nothing without the option. Servers of gRPC set that on each
 * listener, and hardly one sends so. */
static COLD long send_uncopied(struct tsock *t, int fd, struct tx_call *call)
{
	if (sock_twin_option(fd, SOL_SOCKET, SO_ZEROCOPY))
		return send_oddly(t, fd, call->flags);
	call->flags &= ~MSG_ZEROCOPY;
	return send_all(t, fd, call);
}

/* MSG_FASTOPEN connects first. */
static COLD long send_fast(struct tsock *t, int fd, struct tx_call *call)
{
	long n;

	if (call->flags & ~(TX_FLAGS | MSG_FASTOPEN))
		return send_oddly(t, fd, call->flags);
	n = tsock_connect_to_send(t, fd, call->name, call->name_len,
				  call->flags);
	call->flags &= ~MSG_FASTOPEN;
	return n ? n : send_all(t, fd, call);
}

static long send_all(struct tsock *t, int fd, struct tx_call *call)
{
	long n;

	if (UNLIKELY(call->flags & ~TX_FLAGS))
		return call->flags & MSG_ZEROCOPY ? send_uncopied(t, fd, call) :
		       call->flags & MSG_FASTOPEN ? send_fast(t, fd, call) :
						    send_oddly(t, fd, call->flags);
	if (UNLIKELY(!tsock_is_ours(t))) {
		n = tsock_fresh_error(t);
		return n ? n : FD_PASS;
	}
	if (UNLIKELY(!call->len) && !atomic_load(&t->is_deferred))
		return write_nothing(t, fd, call);
	for (;;) {
		n = write_all(t, call);
		if (n == -EAGAIN && UNLIKELY(atomic_load(&t->is_deferred))) {
			n = open_and_wait(t, fd, call);
			if (n)
				return n;
			if (call->done < call->len)
				continue;
		}
		if (n == -EAGAIN && UNLIKELY(call->file >= 0) &&
		    has_ended(call->file, call->offset))
			n = 0;
		if (n != -EAGAIN || !sock_is_blocking(&t->sock, call->flags))
			break;
		n = wait_for_room(t, fd, call);
		if (n)
			break;
	}
	if (UNLIKELY(n == FD_ABANDONED))
		return fd_wait_abandoned(&t->sock.obj, (long)call->done);
	if (UNLIKELY(n == FD_PASS))
		return go_on_with_twin(t, fd, call);
	/* what was written counts for more than how it ended */
	if (LIKELY(call->done || !n))
		return (long)call->done;
	if (n == -ENOMEM)
		return -ENOBUFS;
	return n == -EPIPE ? broken_pipe(call->flags) : n;
}

long tsock_send_call(struct tsock *t, int fd, struct tx_call *call)
{
	long n = send_all(t, fd, call);

	if (UNLIKELY(call->has_waited) && n != FD_ABANDONED)
		tsock_end_waiting(t);
	return n;
}

/* -- sendfile ---------------------------------------------------------------------------- */

static bool is_file(int fd)
{
	return S_ISREG(file_identify(fd).mode);
}

static bool is_pipe(int fd)
{
	return S_ISFIFO(file_identify(fd).mode);
}

static off64_t seek(int fd, off64_t by)
{
	return syscall_raw(SYS_lseek, fd, by, SEEK_CUR, 0, 0, 0);
}

static bool may_be_written(struct tsock *t)
{
	bool result;

	if (!tsock_lock_ours(t))
		return true;
	result = t->pcb && !t->error && !t->is_shut_wr &&
		 tcp_state(t->pcb) != TCPS_CLOSED &&
		 !tsock_is_opening_state(tcp_state(t->pcb));
	tsock_unlock(t);
	return result;
}

long tsock_sendfile64(struct fd_object *obj, int fd, int fd2, off64_t *offset,
		      size_t len)
{
	struct tsock *t = tsock_of(obj);
	struct tx_call call = {
		.len = MIN(len, (size_t)USER_LEN_MAX),
		.file = fd2,
	};
	long n;

	/* the kernel has none of its bytes */
	if (!sock_owns_fd(&t->sock, fd) && tsock_is_ours(t) && len && is_pipe(fd))
		return tsock_send_leaves(t, fd2, 0, "a sendfile of a socket");
	/* from one of our sockets to somewhere else, or nothing, of which the socket hears
	 * nothing */
	if (!sock_owns_fd(&t->sock, fd) || !tsock_is_ours(t) || !len)
		return FD_PASS;
	if (offset && !user_is_plausible(offset, sizeof(*offset)))
		return -EFAULT;
	if (!is_file(fd2))
		return tsock_send_leaves(t, fd, 0, "a sendfile of no file");
	call.offset = offset ? *offset : seek(fd2, 0);
	if (call.offset < 0)
		return -EINVAL;
	if (UNLIKELY(!may_be_written(t)) && has_ended(fd2, call.offset))
		return 0;
	n = tsock_send_call(t, fd, &call);
	if (n <= 0)
		return n;
	if (offset)
		*offset += n;
	else
		(void)seek(fd2, n);
	return n;
}

long tsock_sendfile(struct fd_object *obj, int fd, int fd2, off_t *offset,
		    size_t len)
{
	_Static_assert(sizeof(off_t) == sizeof(off64_t), "one kind of offsets");
	return tsock_sendfile64(obj, fd, fd2, offset, len);
}
