/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Twins that take a connection over (tcp_twin.h). */
#include "config.h"

#include "sock/tcp/tcp_twin.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "fd/right_keeper.h"
#include "os/drop_program.h"
#include "os/inside.h"
#include "os/real.h"
#include "sock/tcp_right.h"
#include "sock/tcp/tsock_priv.h"
#include "sock/user_msg.h"
#include "tcp/tcp_seq.h"

/* TCP_REPAIR's values besides on and off: off without a probe of the window. */
enum { REPAIR_OFF = 0, REPAIR_ON = 1, REPAIR_OFF_SILENTLY = -1 };

/* Option kinds of TCP_REPAIR_OPTIONS (RFC 7323, RFC 2018). */
enum { OPTION_SCALE = 3, OPTION_SACK = 4, OPTION_TIMESTAMPS = 8 };

/* The most that TCP_MAXSEG takes. */
enum { MAXSEG_MAX = 32767 };

/* What every peer takes (RFC 9293). */
enum { MSS_OF_ANY = 536 };

/* Packets that one call takes. */
enum { IOVS = 64 };

static int set(int fd, int level, int name, int value)
{
	return real.setsockopt(fd, level, name, &value, sizeof(value)) ?
		       -errno :
		       0;
}

static int set_tcp(int fd, int name, int value)
{
	return set(fd, IPPROTO_TCP, name, value);
}

static int get(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	(void)!real.getsockopt(fd, SOL_SOCKET, name, &value, &len);
	return value;
}

/* -- names -------------------------------------------------------------------- */

static socklen_t write_name(int domain, const struct ip_addr *addr, __be16 port,
			    struct sockaddr_storage *out)
{
	struct user_name name = { *addr, port };
	socklen_t len = sizeof(*out);

	user_name_write(&name, domain, out, &len);
	return len;
}

/* The port in its name, which a socket that was disconnected has not always. */
static __be16 port_of(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	/* both families have it at the same place */
	return real.getsockname(fd, (struct sockaddr *)&name, &len) == 0 ?
		       ((struct sockaddr_in *)&name)->sin_port :
		       0;
}

/* In repair this is possible beside a listener of the same port, and whoever else has
 * it. One that is bound refuses. */
static int bind_twin(int fd, int domain, const struct flow_key *key)
{
	struct sockaddr_storage name;
	socklen_t len = write_name(domain, &key->local, key->local_port, &name);

	if (real.bind(fd, (struct sockaddr *)&name, len) == 0)
		return 0;
	return errno == EINVAL && port_of(fd) == key->local_port ? 0 : -errno;
}

/* No packet leaves. */
static int connect_twin(int fd, int domain, const struct flow_key *key)
{
	struct sockaddr_storage name;
	socklen_t len = write_name(domain, &key->remote, key->remote_port, &name);

	return real.connect(fd, (struct sockaddr *)&name, len) ? -errno : 0;
}

/* In repair this is no word to the peer, and drops the queues. A port that the kernel has
 * chosen is given up. */
static void disconnect_twin(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	(void)!real.connect(fd, &none, sizeof(none));
	/* which is an error to a socket in repair */
	(void)get(fd, SO_ERROR);
}

/* Of one that was disconnected and may be connected by the program later. */
static void forget_numbers(int fd)
{
	/* The kernel would go on from here in a later connection, where anybody can foresee
	 * it; from 0 it draws a number. */
	(void)!set_tcp(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
	(void)!set_tcp(fd, TCP_QUEUE_SEQ, 0);
	(void)!set_tcp(fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
}

/* -- guards -------------------------------------------------------------------- */

bool tcp_twin_is_guard(int fd)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return real.getsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &value, &len) == 0 &&
	       value == REPAIR_ON;
}

/*
 * A filter that takes none of a packet's bytes: one program for all guards. A classic one is
 * compiled for each of them, which takes 6 to 8 % of a server that accepts and closes, and
 * kernels refuse it to a process that has given up its rights. It is for those that have
 * never had CAP_BPF. A child that has no rights has the helper load it.
 *
 * The first one is kept. No lock orders those who load one at the same time: its number may
 * have been one of the program's connections, which is closed when we take it, and that may
 * need a guard itself.
 */
static struct {
	_Atomic bool is_kept;
	_Atomic int fd; /* -1: not loaded */
} dropper = { false, -1 };

/* The fd of one that is the caller's, or a negative errno. */
static int load_dropper(void)
{
	const struct keeper_request request = { .op = KEEPER_DROP };
	int fd = drop_program_load();

	if (fd == -EPERM)
		fd = right_keeper_ask_one(&request, NULL);
	if (fd >= 0)
		fd_table_forget(fd);
	return fd;
}

static int keep_dropper(int fd)
{
	int err;

	if (atomic_exchange(&dropper.is_kept, true)) {
		inside_close(fd);
		return 0;
	}
	err = fd_internal_adopt(fd, &dropper.fd);
	if (!err)
		return 0;
	inside_close(fd);
	atomic_store(&dropper.is_kept, false);
	return err;
}

int tcp_twin_load_dropper(void)
{
	int fd;

	if (LIKELY(atomic_load(&dropper.fd) >= 0))
		return 0;
	fd = load_dropper();
	return fd < 0 ? fd : keep_dropper(fd);
}

void tcp_twins_forked(void)
{
	atomic_store(&dropper.is_kept, false);
}

static int attach_classic(int fd)
{
	struct sock_filter drop = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog program = { .len = 1, .filter = &drop };

	return real.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			       sizeof(program)) ?
		       -errno :
		       0;
}

static int attach_dropper(int fd)
{
	int program = atomic_load(&dropper.fd), err;

	if (LIKELY(program >= 0))
		return set(fd, SOL_SOCKET, SO_ATTACH_BPF, program);
	program = load_dropper();
	if (program < 0)
		return attach_classic(fd);
	err = set(fd, SOL_SOCKET, SO_ATTACH_BPF, program);
	(void)!keep_dropper(program);
	return err;
}

/* The switch changes what others may do with the port. */
static void end_guard(int fd, int reuse_addr, const struct flow_key *key)
{
	disconnect_twin(fd);
	forget_numbers(fd);
	if (key)
		(void)!bind_twin(fd, get(fd, SO_DOMAIN), key);
	(void)!tcp_right_switch(fd, REPAIR_OFF_SILENTLY);
	(void)!set(fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
	(void)!set(fd, SOL_SOCKET, SO_REUSEADDR, reuse_addr);
}

/* What the program has set. */
static bool has_reuse_addr(const struct tcp_twin_socket *socket)
{
	return socket->reuse_addr < 0 ? get(socket->fd, SO_REUSEADDR) :
					socket->reuse_addr;
}

int tcp_twin_guard(struct tcp_twin_socket *socket, const struct flow_key *key,
		   bool is_bound)
{
	int fd = socket->fd, reuse_addr = has_reuse_addr(socket);
	int err = attach_dropper(fd);

	if (err)
		return err;
	err = tcp_right_switch(fd, REPAIR_ON);
	if (!err && !is_bound)
		err = bind_twin(fd, socket->domain, key);
	if (!err)
		err = connect_twin(fd, socket->domain, key);
	if (!err)
		err = set(fd, SOL_SOCKET, SO_REUSEADDR, reuse_addr);
	if (err)
		end_guard(fd, reuse_addr, NULL);
	socket->is_guard = !err;
	socket->is_bound = !err && !is_bound;
	return err;
}

void tcp_twin_unguard(int fd, const struct flow_key *key)
{
	if (tcp_twin_is_guard(fd))
		end_guard(fd, get(fd, SO_REUSEADDR), key);
}

/*
 * While a guard becomes the connection it has no names for a moment, and the kernel would
 * answer a segment with a reset. A listener at the local end hears it instead, and is
 * deaf. A SYN that reaches the kernel in this moment is lost with it, and sent again. This is
 * a third of the time that an idle connection needs, so where the kernel hears nothing nobody
 * listens.
 */
static int listen_deaf(int fd, const struct flow_key *key)
{
	int err = attach_dropper(fd);

	if (!err)
		err = tcp_right_switch(fd, REPAIR_ON);
	if (!err)
		err = bind_twin(fd, AF_INET, key);
	return !err && real.listen(fd, 1) != 0 ? -errno : err;
}

/* -1 in `slot`: there is none. */
static void open_deaf(const struct flow_key *key, _Atomic int *slot)
{
	int fd = real.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return;
	err = fd_internal_adopt(fd, slot);
	if (err)
		real.close(fd);
	else
		err = listen_deaf(atomic_load(slot), key);
	if (err)
		log_dbg("nobody hears what comes while a connection goes back: %s",
			strerror(-err));
}

/* An option by which routes are found, from one socket to another. */
static int copy_option(int from, int to, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	if (real.getsockopt(from, level, name, &value, &len) != 0 || !value)
		return 0;
	return set(to, level, name, value);
}

/* Names another socket as the twin, but for the port. No packet leaves. */
static int try_names(int fd, int twin_fd, const struct flow_key *key)
{
	struct sockaddr_storage name;
	socklen_t len = write_name(AF_INET, &key->local, 0, &name);

	/* what cannot be asked is tried */
	if (copy_option(twin_fd, fd, SOL_SOCKET, SO_MARK) != 0 ||
	    copy_option(twin_fd, fd, SOL_SOCKET, SO_BINDTOIFINDEX) != 0 ||
	    copy_option(twin_fd, fd, SOL_SOCKET, SO_DONTROUTE) != 0 ||
	    copy_option(twin_fd, fd, IPPROTO_IP, IP_TOS) != 0 ||
	    copy_option(twin_fd, fd, IPPROTO_IP, IP_TRANSPARENT) != 0 ||
	    copy_option(twin_fd, fd, IPPROTO_IP, IP_FREEBIND) != 0)
		return 0;
	if (real.bind(fd, (struct sockaddr *)&name, len) != 0)
		return -errno;
	return connect_twin(fd, AF_INET, key);
}

/*
 * Whether the kernel has the local address, and a route to the peer. Where it has not, a guard
 * could become neither the connection nor a guard again, and when address and route come back
 * the kernel would reset the peer: such a guard is left as it is. A datagram socket is asked,
 * since one of TCP would need a port that no other connection to the peer has. A routing rule
 * for one of the two protocols alone makes this answer wrong; nobody is known to have such.
 */
static int ask_for_way(const struct tcp_twin *twin)
{
	int fd = real.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	_Atomic int slot = -1;

	if (fd < 0)
		return 0;
	if (fd_internal_adopt(fd, &slot) != 0) {
		real.close(fd);
		return 0;
	}
	err = try_names(atomic_load(&slot), twin->fd, twin->key);
	fd_internal_close(&slot);
	return err;
}

/* -- numbers ------------------------------------------------------------------ */

static int set_queue_seq(int fd, int queue, uint32_t seq)
{
	int err = set_tcp(fd, TCP_REPAIR_QUEUE, queue);

	return err ? err : set_tcp(fd, TCP_QUEUE_SEQ, (int)seq);
}

static int set_numbers(const struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	int err = set_queue_seq(twin->fd, TCP_SEND_QUEUE, s->snd_una);

	if (!err)
		err = set_queue_seq(twin->fd, TCP_RECV_QUEUE,
				    s->rcv_nxt - s->unread);
	/* later the kernel would not compute its segments' size from it */
	if (!err)
		err = set_tcp(twin->fd, TCP_MAXSEG,
			      MIN(s->mss_peer, MAXSEG_MAX));
	return err;
}

static int set_options(const struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	struct tcp_repair_opt options[3];
	unsigned cnt = 0;
	int err;

	/* Without an agreement it is 0: left out, it would be the system's own. */
	options[cnt++] = (struct tcp_repair_opt){
		.opt_code = OPTION_SCALE,
		.opt_val = s->has_scale ?
				   s->snd_scale | (uint32_t)s->rcv_scale << 16 :
				   0,
	};
	if (s->has_sack)
		options[cnt++].opt_code = OPTION_SACK;
	if (s->has_timestamps)
		options[cnt++].opt_code = OPTION_TIMESTAMPS;
	for (unsigned i = 1; i < cnt; i++)
		options[i].opt_val = 0;
	err = real.setsockopt(twin->fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS,
			      options, cnt * sizeof(options[0])) ?
		      -errno :
		      0;
	if (!err && s->has_timestamps)
		err = set_tcp(twin->fd, TCP_TIMESTAMP, (int)s->ts_next);
	return err;
}

static int set_windows(const struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	struct tcp_repair_window window = {
		.snd_wl1 = s->snd_wl1,
		.snd_wnd = s->snd_wnd,
		.max_window = s->snd_wnd_max,
		.rcv_wnd = s->rcv_wnd,
		.rcv_wup = s->rcv_wup,
	};

	return real.setsockopt(twin->fd, IPPROTO_TCP, TCP_REPAIR_WINDOW,
			       &window, sizeof(window)) ?
		       -errno :
		       0;
}

/* -- bytes -------------------------------------------------------------------- */

/* Makes a buffer wide enough for so many bytes, whatever the program has set: they
 * have found room in ours. */
static void widen(const struct tcp_twin *twin, int name, int force_name,
		  uint32_t bytes, struct tcp_twin_buffer *was_out)
{
	/* the kernel counts its own memory, too, and doubles what is set */
	int wanted = (int)MIN(bytes + (64u << 10), (uint32_t)INT_MAX / 2);
	int size;

	was_out->size = -1;
	if (!bytes)
		return;
	size = get(twin->fd, name);
	if (size >= 2 * wanted)
		return;
	was_out->size = size;
	if (set(twin->fd, SOL_SOCKET, force_name, wanted) != 0)
		(void)!set(twin->fd, SOL_SOCKET, name, wanted);
}

/* Without CAP_NET_ADMIN a buffer grows to net.core.wmem_max alone. What the twin cannot take
 * would be found out when it cannot be undone any more. */
static bool has_room(const struct tcp_twin *twin, int name, uint32_t bytes)
{
	return !bytes || (uint32_t)get(twin->fd, name) >= bytes + bytes / 8;
}

static void narrow(const struct tcp_twin *twin, int name, int force_name,
		   const struct tcp_twin_buffer *was)
{
	if (was->size < 0)
		return;
	if (set(twin->fd, SOL_SOCKET, force_name, was->size / 2) != 0)
		(void)!set(twin->fd, SOL_SOCKET, name, was->size / 2);
	(void)!set(twin->fd, SOL_SOCKET, SO_BUF_LOCK, twin->buf_lock);
}

typedef struct pkt *(*next_fn)(const struct tcp_pcb *pcb,
			       const struct pkt *pkt);

/* `len` bytes of a queue of packets from `from` on. */
struct stretch {
	const struct tcp_pcb *pcb;
	next_fn next;
	uint32_t from, len;
	/* where those that the program follows may still be stamped */
	uint32_t stations;
};

static unsigned gather(const struct stretch *s, struct iovec iov[IOVS])
{
	uint32_t at = 0, left = s->len;
	struct pkt *pkt = NULL;
	unsigned cnt = 0;

	while (left && cnt < IOVS && (pkt = s->next(s->pcb, pkt))) {
		uint32_t skip = s->from > at ? s->from - at : 0;
		uint32_t n;

		at += pkt->len;
		if (skip >= pkt->len)
			continue;
		n = MIN(pkt->len - skip, left);
		iov[cnt++] = (struct iovec){ pkt->data + skip, n };
		left -= n;
	}
	return cnt;
}

/* The part of it that one call gives: it ends with a byte that is followed, for which there
 * is a control message (tsock_stamps.c). */
static struct stretch begin_of(const struct stretch *s, uint32_t *stations_out)
{
	struct tcp_user *user = tcp_user(s->pcb);
	struct stretch part = *s;

	*stations_out = 0;
	if (!s->stations || !user || user->is_port)
		return part;
	part.len = tsock_stamps_stretch(CONTAINER_OF(user, struct tsock, user),
					tcp_stamp_places(s->pcb).unacked + s->from,
					s->len, stations_out);
	*stations_out &= s->stations;
	return part;
}

static void put_stations(struct msghdr *msg, void *room, size_t size,
			 uint32_t stations)
{
	struct cmsghdr *c = room;

	if (!stations)
		return;
	memset(room, 0, size);
	c->cmsg_len = CMSG_LEN(sizeof(stations));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SO_TIMESTAMPING;
	memcpy(CMSG_DATA(c), &stations, sizeof(stations));
	msg->msg_control = room;
	msg->msg_controllen = size;
}

static size_t len_of(const struct msghdr *msg)
{
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	return len;
}

/* All of it, or an error. */
static int feed(int fd, struct stretch s)
{
	while (s.len) {
		_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(uint32_t))];
		uint32_t stations;
		struct stretch part = begin_of(&s, &stations);
		struct iovec iov[IOVS];
		struct msghdr msg = { .msg_iov = iov,
				      .msg_iovlen = gather(&part, iov) };
		ssize_t n;

		if (len_of(&msg) == part.len)
			put_stations(&msg, room, sizeof(room), stations);
		n = real.sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n <= 0)
			return n ? -errno : -EIO;
		s.from += (uint32_t)n;
		s.len -= (uint32_t)n;
	}
	return 0;
}

/* In repair: to the end of one of the twin's queues. An idle connection has nothing for
 * either, and needs no calls. */
static int feed_unread(const struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	struct stretch all = { .pcb = twin->pcb, .next = tcp_unread_next, .len = s->unread };
	int err;

	if (!all.len)
		return 0;
	err = set_tcp(twin->fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
	/* without the urgent byte */
	if (!err && s->urgent_at < s->unread) {
		all.len = s->urgent_at;
		err = feed(twin->fd, all);
		all.from = s->urgent_at + 1;
		all.len = s->unread - s->urgent_at;
	}
	return err ? err : feed(twin->fd, all);
}

static int feed_unacked(const struct tcp_twin *twin)
{
	const struct stretch all = { .pcb = twin->pcb, .next = tcp_queued_next,
				     .len = twin->state.unacked,
				     .stations = SOF_TIMESTAMPING_TX_ACK };
	int err;

	if (!all.len)
		return 0;
	err = set_tcp(twin->fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
	return err ? err : feed(twin->fd, all);
}

static int fill_queues(struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	int err;

	/* before the sizes are set, which locks them */
	if (s->unread || s->unacked || s->unsent)
		twin->buf_lock = get(twin->fd, SO_BUF_LOCK);
	widen(twin, SO_RCVBUF, SO_RCVBUFFORCE, s->unread, &twin->rcv);
	widen(twin, SO_SNDBUF, SO_SNDBUFFORCE, s->unacked + s->unsent,
	      &twin->snd);
	if (!has_room(twin, SO_SNDBUF, s->unacked + s->unsent))
		return -ENOBUFS;
	err = feed_unread(twin);
	if (!err)
		err = feed_unacked(twin);
	/* the kernel checks them against what has been received */
	return err ? err : set_windows(twin);
}

/* -- the course of it --------------------------------------------------------- */

/* What is appended to the send queue under repair counts as sent, and our FIN, too. */
static int end_silently(int fd)
{
	int err = set_tcp(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);

	if (!err && real.shutdown(fd, SHUT_WR) != 0)
		err = -errno;
	return err;
}

static int build(struct tcp_twin *twin)
{
	int domain = twin->socket.domain;
	int err = twin->socket.is_bound ? 0 : bind_twin(twin->fd, domain, twin->key);

	if (!err)
		err = set_numbers(twin);
	if (!err)
		err = connect_twin(twin->fd, domain, twin->key);
	if (!err)
		err = set_options(twin);
	if (!err)
		err = fill_queues(twin);
	if (!err && twin->is_over)
		err = end_silently(twin->fd);
	/* while it is the send queue's turn nothing is sent */
	if (!err && (twin->state.unacked || twin->is_over))
		err = set_tcp(twin->fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
	return err;
}

/* The filter is that of a guard, and stays until tcp_twin_hear. */
static int become(struct tcp_twin *twin)
{
	int err = tcp_right_switch(twin->fd, REPAIR_ON);

	if (err)
		return err;
	if (twin->socket.is_guard)
		disconnect_twin(twin->fd);
	else
		err = attach_dropper(twin->fd);
	if (!err)
		err = build(twin);
	if (err)
		tcp_twin_undo(twin);
	return err;
}

/* `twin->state` says what. */
static int begin(struct tcp_twin *twin, bool is_unheard)
{
	bool was_heard = twin->socket.is_guard && !is_unheard;
	_Atomic int deaf = -1;
	int err = was_heard ? ask_for_way(twin) : 0;

	if (err)
		return err;
	/* a socket that has just been put in repair says something else */
	twin->has_reuse_addr = has_reuse_addr(&twin->socket);
	if (was_heard)
		open_deaf(twin->key, &deaf);
	err = become(twin);
	if (was_heard)
		fd_internal_close(&deaf);
	return err;
}

int tcp_twin_begin(struct tcp_twin *twin, const struct tcp_twin_socket *socket,
		   const struct tcp_pcb *pcb, bool is_unheard, uint64_t now_ns)
{
	int err;

	*twin = (struct tcp_twin){ .fd = socket->fd, .socket = *socket,
				   .key = tcp_key(pcb), .pcb = pcb,
				   .rcv.size = -1, .snd.size = -1 };
	err = tcp_get_repair(pcb, &twin->state, now_ns);
	if (err)
		return err;
	return twin->state.has_ecn ? -EOPNOTSUPP : begin(twin, is_unheard);
}

int tcp_twin_begin_ended(struct tcp_twin *twin, const struct tcp_twin_socket *socket,
			 const struct flow_key *key, const struct tcp_pcb *pcb)
{
	uint32_t urgent_at = UINT32_MAX;
	uint32_t unread = pcb ? tcp_unread_len(pcb, &urgent_at) : 0;

	*twin = (struct tcp_twin){
		.fd = socket->fd,
		.socket = *socket,
		.key = key,
		.pcb = pcb,
		.state = {
			.mss_peer = MSS_OF_ANY,
			.rcv_nxt = unread,
			.unread = unread,
			.urgent_at = urgent_at,
			.rcv_wup = unread,
			.rcv_wnd = UINT16_MAX,
			.snd_wl1 = unread,
			.snd_wnd = 1,
			.snd_wnd_max = 1,
		},
		.rcv.size = -1,
		.snd.size = -1,
	};
	return begin(twin, true);
}

int tcp_twin_begin_over(struct tcp_twin *twin, const struct tcp_twin_socket *socket,
			const struct tcp_waiting *waiting, const struct tcp_pcb *pcb)
{
	*twin = (struct tcp_twin){ .fd = socket->fd, .socket = *socket,
				   .key = &waiting->key, .pcb = pcb,
				   .state = waiting->repair, .is_over = true,
				   .rcv.size = -1, .snd.size = -1 };
	return begin(twin, true);
}

int tcp_twin_hear(struct tcp_twin *twin)
{
	return set(twin->fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
}

/* The largest segment was the connection's; the program's own is not ours to know. */
static void forget_maxseg(const struct tcp_twin *twin)
{
	(void)!set_tcp(twin->fd, TCP_MAXSEG, 0);
}

void tcp_twin_undo(struct tcp_twin *twin)
{
	/* its repair has ended, and the peer would hear of this */
	if (twin->is_over)
		(void)!tcp_right_switch(twin->fd, REPAIR_ON);
	disconnect_twin(twin->fd);
	forget_numbers(twin->fd);
	(void)!set(twin->fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
	forget_maxseg(twin);
	narrow(twin, SO_RCVBUF, SO_RCVBUFFORCE, &twin->rcv);
	narrow(twin, SO_SNDBUF, SO_SNDBUFFORCE, &twin->snd);
	(void)!tcp_right_switch(twin->fd, REPAIR_OFF_SILENTLY);
	if (twin->has_reuse_addr)
		(void)!set(twin->fd, SOL_SOCKET, SO_REUSEADDR, 1);
}

/* Both sides have closed, and the peer waits for the acknowledgment of our FIN alone:
 * that is sent while the kernel does not yet answer. */
static bool is_last_ack(const struct tcp_repair *s)
{
	return s->has_fin && s->fin >= TCP_FIN_SENT;
}

/* The kernel may ask the peer with its first word, whose answer acknowledges what has arrived,
 * and opens a window. If neither is awaited, it would be two packets for nothing. After
 * our FIN it would not be known to the peer that we know of it, or costs an answer more. */
static int repair_off(const struct tcp_repair *s)
{
	bool has_question = s->unacked || !s->snd_wnd;

	return is_last_ack(s) || s->fin == TCP_FIN_ACKED || !has_question ?
		       REPAIR_OFF_SILENTLY :
		       REPAIR_OFF;
}

bool tcp_twin_has_more(const struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	uint32_t next = 0;
	socklen_t len = sizeof(next);

	if (set_tcp(twin->fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE) != 0 ||
	    real.getsockopt(twin->fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &next, &len) != 0)
		return false;
	return seq_after(next, s->rcv_nxt + s->has_fin);
}

bool tcp_twin_is_closed(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return real.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

/* The kernel has no memory for what was never sent, though the buffer has room. What the
 * program writes next must not follow the gap: the peer is reset. */
static COLD void reset(const struct tcp_twin *twin, int err)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	/* the peer was quicker */
	if (err == -ECONNRESET || err == -EPIPE)
		return;
	log_err("fd %d: the kernel has no room for %u bytes that wait to be sent (error %d); the connection is reset",
		twin->fd, twin->state.unsent, -err);
	(void)!real.connect(twin->fd, &none, sizeof(none));
}

/* What waits has found room in ours, whatever TCP_NOTSENT_LOWAT says of what comes next. One
 * that the peer has reset meanwhile has the error for the program, and a write would take it. */
static void feed_unsent(const struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	int lowat = 0, fd = twin->fd, err;
	socklen_t len = sizeof(lowat);

	if (!s->unsent || tcp_twin_is_closed(fd))
		return;
	(void)!real.getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, &len);
	/* with 0 the host's limit counts */
	(void)!set_tcp(fd, TCP_NOTSENT_LOWAT, -1);
	err = feed(fd, (struct stretch){ twin->pcb, tcp_queued_next, s->unacked,
					 s->unsent, TX_STAMPS_STATIONS });
	if (err)
		reset(twin, err);
	(void)!set_tcp(fd, TCP_NOTSENT_LOWAT, lowat);
}

int tcp_twin_end(struct tcp_twin *twin)
{
	const struct tcp_repair *s = &twin->state;
	int fd = twin->fd, err;

	if (is_last_ack(s))
		(void)!real.shutdown(fd, SHUT_WR);
	err = tcp_right_switch(fd, repair_off(s));
	if (err)
		return err;
	forget_maxseg(twin);
	if (twin->has_reuse_addr)
		(void)!set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	feed_unsent(twin);
	if (s->fin != TCP_FIN_NONE && !is_last_ack(s))
		(void)!real.shutdown(fd, SHUT_WR);
	narrow(twin, SO_RCVBUF, SO_RCVBUFFORCE, &twin->rcv);
	narrow(twin, SO_SNDBUF, SO_SNDBUFFORCE, &twin->snd);
	return 0;
}
