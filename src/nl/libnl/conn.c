/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads rtnetlink with libnl. One table is dumped at a time, on the socket that
 * also gets the events, so that a change to what the dump has already shown comes behind
 * it. The other order is not sure: the kernel fills a part of the dump, and says that a route
 * goes, before the change is over; so a part may show what an event before it has
 * changed (is_overtaken, net_feed.c). A set of bits says which tables must be read again:
 * all of them at the start, and when the kernel dropped events. The other socket is for
 * questions that are answered at once.
 *
 * libnl makes the sockets and takes messages apart. It sends and receives through
 * our hooks, because our fds move when the program wants their numbers; so libnl
 * does not know the fds (hand_over).
 */
#include "config.h"

#include "nl/libnl/conn.h"

#include <errno.h>
#include <limits.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/route/neighbour.h>
#include <netlink/socket.h>
#include <stdlib.h>
#include <string.h>

#include "nl/libnl/rows.h"
#include "os/real.h"
#include "os/services.h"

enum {
	DEFAULT_RX_SIZE = 4 << 20,
	/* The kernel fills up to 32 KB at once with a dump. */
	FIRST_BUF_SIZE = 64 << 10,
	LAST_BUF_SIZE = 4 << 20,
	/* Limits, so that neither a flood of messages nor the reading of a large table keeps
	 * the caller's lock for long. */
	DATAGRAMS_AT_ONCE = 16,
	BYTES_AT_ONCE = 32 << 10,
	ALL_PARTS = (1 << NET_PARTS) - 1,
};

/* One of the two sockets. */
struct port {
	struct nl_sock *sock;
	/* one of the library's own fds, which may move; -1: none */
	_Atomic int fd;
};

struct netlink_conn {
	const struct net_sink *sink;
	void *sink_ctx;
	struct nl_cb *cb;
	struct port events;
	struct port requests;

	/* the table that is being dumped, or NET_PARTS, and the number of the
	 * request */
	enum net_part part;
	uint32_t part_seq;
	/* the dump under way does not show all of the table */
	bool is_interrupted;
	/* tables to be read again */
	unsigned stale;
	/* true until all tables have been read */
	bool is_syncing;

	/* About the call that is under way: how many datagrams and bytes it may still read,
	 * whether there were no more of them, and the errno that ends the
	 * connection. */
	int budget;
	int bytes_left;
	bool is_drained;
	int failure;
	/* The number of the question that is under way, or 0, and its result. */
	uint32_t question_seq;
	int answer;

	uint8_t *buf;
	size_t buf_size;
	struct row_room room;
	struct netlink_counts counts;
};

static const int groups[] = {
	RTNLGRP_LINK,	      RTNLGRP_NEIGH,	   RTNLGRP_IPV4_IFADDR,
	RTNLGRP_IPV6_IFADDR,  RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV4_RULE,
	RTNLGRP_IPV4_NETCONF, RTNLGRP_NEXTHOP,
};

/* The connection whose call is under way, since libnl does not tell its hooks.
 * There is one call at a time (nl/netlink.h). */
static struct netlink_conn *current;

/* -- what is lost -------------------------------------------------------------- */

static void read_all_again(struct netlink_conn *conn)
{
	conn->stale = ALL_PARTS;
	conn->is_syncing = true;
}

/* We do not know what was lost, so everything may be wrong. */
static void note_loss(struct netlink_conn *conn)
{
	read_all_again(conn);
	conn->is_interrupted = true;
}

/* -- dumps --------------------------------------------------------------------- */

/* A table that the kernel does not have is an empty table. */
static bool is_table_missing(int error)
{
	return error == -EOPNOTSUPP || error == -EAFNOSUPPORT;
}

static bool is_transient(int error)
{
	return error == -EINTR || error == -EAGAIN || error == -EBUSY ||
	       error == -ENOBUFS || error == -ENOMEM;
}

static bool is_of_dump(const struct netlink_conn *conn,
		       const struct nlmsghdr *msg)
{
	return conn->part != NET_PARTS &&
	       msg->nlmsg_pid == nl_socket_get_local_port(conn->events.sock) &&
	       msg->nlmsg_seq == conn->part_seq;
}

static void end_dump(struct netlink_conn *conn, int error)
{
	enum net_part part = conn->part;

	conn->part = NET_PARTS;
	if (error && !is_table_missing(error) && !is_transient(error)) {
		conn->failure = error;
		return;
	}
	if (conn->is_interrupted || is_transient(error)) {
		conn->stale |= NET_BIT(part);
		conn->counts.repeats++;
		return;
	}
	conn->sink->end(conn->sink_ctx, part);
	if (!conn->stale && conn->is_syncing) {
		conn->is_syncing = false;
		conn->counts.syncs++;
	}
}

/* -- messages: libnl's callbacks ------------------------------------------------ */

static bool is_answer(const struct netlink_conn *conn,
		      const struct nlmsghdr *msg)
{
	return conn->question_seq && msg->nlmsg_seq == conn->question_seq;
}

static void note_answer(struct netlink_conn *conn, int rc)
{
	conn->question_seq = 0;
	conn->answer = rc;
}

/* A part of the dump that is yet to come may show this object as it was. The dump is
 * repeated then, unless the event is remembered until its end: routes are many, and links
 * and neighbours change all the time. The same rule may exist twice, so that of one nobody
 * can tell at all. */
static bool is_overtaken(const struct netlink_conn *conn, const struct net_row *row)
{
	if ((int)row->kind != (int)conn->part || row->kind == NET_ROW_ROUTE)
		return false;
	return row->is_gone || row->kind == NET_ROW_POLICY || row->kind == NET_ROW_ADDR;
}

/* 0, or the reason why there is no row or why the sink did not take it. */
static int take_row(struct netlink_conn *conn, struct nl_msg *msg, bool is_dump)
{
	int rc = rows_read(msg, is_dump, &conn->room);
	enum net_row_kind kind = conn->room.row.kind;

	if (rc == ROWS_NONE)
		return 0;
	if (!rc)
		rc = conn->sink->take(conn->sink_ctx, &conn->room.row,
				      &conn->stale);
	if (rc == -EBADMSG)
		conn->counts.rejects++;
	if (rc == -ENOMEM && kind < NET_ROW_PATH_MTU)
		conn->stale |= NET_BIT(kind);
	if (!rc && !is_dump && is_overtaken(conn, &conn->room.row))
		conn->is_interrupted = true;
	return rc;
}

static int on_any(struct nl_msg *msg UNUSED, void *arg)
{
	struct netlink_conn *conn = arg;

	conn->counts.messages++;
	return NL_OK;
}

/* Events and the parts of dumps come in one stream, and each message says what it
 * is. So we do not let libnl check the numbers. */
static int on_sequence(struct nl_msg *msg UNUSED, void *arg UNUSED)
{
	return NL_OK;
}

static int on_interrupted(struct nl_msg *msg, void *arg)
{
	struct netlink_conn *conn = arg;

	if (is_of_dump(conn, nlmsg_hdr(msg)))
		conn->is_interrupted = true;
	return NL_OK;
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct netlink_conn *conn = arg;
	struct nlmsghdr *head = nlmsg_hdr(msg);

	if (is_answer(conn, head))
		note_answer(conn, take_row(conn, msg, false));
	else if (!conn->question_seq)
		(void)!take_row(conn, msg, is_of_dump(conn, head));
	return NL_OK;
}

/* A message without sense that ends a dump or a question: the dump is repeated, the
 * question has failed. */
static void note_nonsense(struct netlink_conn *conn, const struct nlmsghdr *msg)
{
	conn->counts.rejects++;
	if (is_answer(conn, msg))
		note_answer(conn, -EBADMSG);
	else if (is_of_dump(conn, msg))
		end_dump(conn, -EAGAIN);
}

/* The end of a dump. NLMSG_DONE may hold an error, which libnl does not look at. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	struct netlink_conn *conn = arg;
	int error = 0;

	if (!is_of_dump(conn, nlmsg_hdr(msg)))
		return NL_OK;
	if (nlmsg_datalen(nlmsg_hdr(msg)) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(nlmsg_hdr(msg)), sizeof(error));
	if (error > 0)
		note_nonsense(conn, nlmsg_hdr(msg));
	else
		end_dump(conn, error);
	return NL_OK;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	struct netlink_conn *conn = arg;

	if (is_answer(conn, nlmsg_hdr(msg)))
		note_answer(conn, 0);
	else if (is_of_dump(conn, nlmsg_hdr(msg)))
		end_dump(conn, 0);
	return NL_OK;
}

/* An NLMSG_ERROR that holds an error. The message's header stands in front of it. */
static int on_error(struct sockaddr_nl *from UNUSED, struct nlmsgerr *error,
		    void *arg)
{
	struct netlink_conn *conn = arg;
	const struct nlmsghdr *head =
		(const void *)((const uint8_t *)error - NLMSG_HDRLEN);

	if (error->error > 0)
		note_nonsense(conn, head);
	else if (is_answer(conn, head))
		note_answer(conn, error->error);
	else if (is_of_dump(conn, head))
		end_dump(conn, error->error);
	return NL_SKIP;
}

/* An NLMSG_ERROR that is too short. */
static int on_invalid(struct nl_msg *msg, void *arg)
{
	note_nonsense(arg, nlmsg_hdr(msg));
	return NL_SKIP;
}

/* An NLMSG_OVERRUN. No kernel of today sends it. */
static int on_overrun(struct nl_msg *msg UNUSED, void *arg)
{
	struct netlink_conn *conn = arg;

	conn->counts.overruns++;
	note_loss(conn);
	return NL_SKIP;
}

static struct nl_cb *make_callbacks(struct netlink_conn *conn)
{
	static const struct {
		enum nl_cb_type type;
		nl_recvmsg_msg_cb_t fn;
	} callbacks[] = {
		{ NL_CB_MSG_IN, on_any },
		{ NL_CB_SEQ_CHECK, on_sequence },
		{ NL_CB_DUMP_INTR, on_interrupted },
		{ NL_CB_VALID, on_valid },
		{ NL_CB_FINISH, on_finish },
		{ NL_CB_ACK, on_ack },
		{ NL_CB_INVALID, on_invalid },
		{ NL_CB_OVERRUN, on_overrun },
	};
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);

	if (!cb)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(callbacks); i++)
		nl_cb_set(cb, callbacks[i].type, NL_CB_CUSTOM, callbacks[i].fn,
			  conn);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, conn);
	return cb;
}

/* -- datagrams: libnl's hooks --------------------------------------------------- */

static int fd_of(const struct netlink_conn *conn, const struct nl_sock *sock)
{
	return atomic_load(sock == conn->events.sock ? &conn->events.fd :
						       &conn->requests.fd);
}

/* A message that does not fit is lost; the larger buffer is for the next one. */
static void grow_buf(struct netlink_conn *conn)
{
	uint8_t *bigger;

	if (conn->buf_size >= LAST_BUF_SIZE)
		return;
	bigger = malloc(2 * conn->buf_size);
	if (!bigger)
		return;
	free(conn->buf);
	conn->buf = bigger;
	conn->buf_size *= 2;
}

/* Receives one datagram into the buffer. Returns its length or a negative errno. 0:
 * it is to be ignored. */
static ssize_t receive(struct netlink_conn *conn, int fd,
		       struct sockaddr_nl *from)
{
	struct iovec iov = { conn->buf, conn->buf_size };
	struct msghdr msg = {
		.msg_name = from,
		.msg_namelen = sizeof(*from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t len = real.recvmsg(fd, &msg, 0);

	if (len < 0)
		return -errno;
	if (msg.msg_flags & MSG_TRUNC) {
		grow_buf(conn);
		return -ENOBUFS;
	}
	/* Any process in the namespace may send to us; we only listen to the
	 * kernel. */
	if (msg.msg_namelen != sizeof(*from) || from->nl_pid != 0) {
		conn->counts.rejects++;
		return 0;
	}
	return len;
}

/* Receives until there is a datagram that is not to be ignored. 0: there is none
 * for now. */
static ssize_t receive_one(struct netlink_conn *conn, struct nl_sock *sock,
			   struct sockaddr_nl *from)
{
	bool is_event = sock == conn->events.sock;

	while (conn->bytes_left > 0 && conn->budget-- > 0) {
		ssize_t len = receive(conn, fd_of(conn, sock), from);

		if (len > 0) {
			conn->bytes_left -= (int)len;
			return len;
		}
		if (len == 0 || len == -EINTR)
			continue;
		if (len == -EAGAIN) {
			conn->is_drained = true;
			return 0;
		}
		/* what is short is short for a while */
		if (!is_event || !is_transient((int)len)) {
			conn->failure = (int)len;
			return 0;
		}
		conn->counts.overruns++;
		note_loss(conn);
	}
	return 0;
}

/* Whether there are bytes behind the last message that make no message. libnl would
 * ignore them. */
static bool has_rest(uint8_t *buf, ssize_t len)
{
	struct nlmsghdr *msg = (struct nlmsghdr *)buf;
	int left = (int)len;

	while (nlmsg_ok(msg, left))
		msg = nlmsg_next(msg, &left);
	return left > 0;
}

/* Gives libnl a datagram in memory that libnl frees. The memory has exactly the
 * length of the datagram, so that a sanitizer sees who reads beyond the end. */
static int hook_receive(struct nl_sock *sock, struct sockaddr_nl *from,
			unsigned char **buf_out, struct ucred **creds UNUSED)
{
	struct netlink_conn *conn = current;
	ssize_t len = receive_one(conn, sock, from);

	if (len <= 0)
		return 0;
	*buf_out = malloc((size_t)len);
	if (!*buf_out) {
		note_loss(conn);
		return 0;
	}
	memcpy(*buf_out, conn->buf, (size_t)len);
	if (has_rest(*buf_out, len))
		conn->counts.rejects++;
	return (int)len;
}

static int hook_send(struct nl_sock *sock, struct nl_msg *msg)
{
	const struct nlmsghdr *head = nlmsg_hdr(msg);
	int fd = fd_of(current, sock);

	for (;;) {
		if (real.send(fd, head, head->nlmsg_len, 0) >= 0)
			return 0;
		/* This is an errno, not one of libnl's numbers; the caller knows. */
		if (errno != EINTR)
			return -errno;
	}
}

/* Completes the message, sends it and frees it. `seq_out` gets its number. */
static int send_or_free(struct netlink_conn *conn, struct port *port,
			struct nl_msg *msg, uint32_t *seq_out)
{
	int rc;

	current = conn;
	nl_complete_msg(port->sock, msg);
	*seq_out = nlmsg_hdr(msg)->nlmsg_seq;
	rc = nl_send(port->sock, msg);
	nlmsg_free(msg);
	return rc;
}

/* -- opening and closing --------------------------------------------------------- */

/* Each of libnl's numbers stands for several errnos. This gives back those that
 * matter to us. */
static int errno_of(int nl_error)
{
	switch (-nl_error) {
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
		return -EPERM;
	case NLE_NOACCESS:
		return -EACCES;
	case NLE_PROTO_MISMATCH:
		return -EPROTONOSUPPORT;
	default:
		return -EIO;
	}
}

int sock_open(int protocol, struct nl_cb *cb, struct nl_sock **sock_out)
{
	struct nl_sock *sock = nl_socket_alloc_cb(cb);
	int err;

	if (!sock)
		return -ENOMEM;
	nl_socket_disable_auto_ack(sock);
	errno = 0;
	err = nl_connect(sock, protocol);
	if (err < 0) {
		err = errno ? -errno : errno_of(err);
		nl_socket_free(sock);
		return err;
	}
	*sock_out = sock;
	return 0;
}

static void set_rx_size(int fd, int size)
{
	/* SO_RCVBUFFORCE may go beyond the system's limit, but needs a privilege. */
	if (real.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size,
			    sizeof(size)) != 0)
		real.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

static int join_groups(struct nl_sock *sock)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		int err = nl_socket_add_membership(sock, groups[i]);

		/* An old kernel does not know the newest one. */
		if (err < 0 && groups[i] != RTNLGRP_NEXTHOP)
			return errno_of(err);
	}
	return 0;
}

/* The socket becomes one of the library's own fds. libnl forgets and closes its own
 * number, since it would otherwise close whatever the program has at that number
 * later. */
static int hand_over(struct port *port)
{
	int err = nl_socket_set_nonblocking(port->sock);

	if (err < 0)
		return errno_of(err);
	err = services_copy_fd(nl_socket_get_fd(port->sock), &port->fd);
	if (!err)
		nl_close(port->sock);
	return err;
}

static int open_events(struct netlink_conn *conn, int rx_size)
{
	int err = sock_open(NETLINK_ROUTE, conn->cb, &conn->events.sock);

	if (err)
		return err;
	set_rx_size(nl_socket_get_fd(conn->events.sock),
		    rx_size ? rx_size : DEFAULT_RX_SIZE);
	err = join_groups(conn->events.sock);
	return err ? err : hand_over(&conn->events);
}

static int open_requests(struct netlink_conn *conn)
{
	int err = sock_open(NETLINK_ROUTE, conn->cb, &conn->requests.sock);

	return err ? err : hand_over(&conn->requests);
}

/* This order keeps libnl's port number in use until the socket is closed. */
static void close_port(struct port *port)
{
	services_close_fd(&port->fd);
	nl_socket_free(port->sock);
}

static void conn_close(struct netlink_conn *conn)
{
	close_port(&conn->requests);
	close_port(&conn->events);
	nl_cb_put(conn->cb);
	free(conn->buf);
	free(conn);
}

static int conn_open(const struct netlink_params *params,
		     const struct net_sink *sink, void *ctx,
		     struct netlink_conn **conn_out)
{
	struct netlink_conn *conn = calloc(1, sizeof(*conn));
	int err = -ENOMEM;

	if (!conn)
		return -ENOMEM;
	conn->sink = sink;
	conn->sink_ctx = ctx;
	conn->part = NET_PARTS;
	atomic_init(&conn->events.fd, -1);
	atomic_init(&conn->requests.fd, -1);
	conn->buf_size = FIRST_BUF_SIZE;
	conn->buf = malloc(conn->buf_size);
	conn->cb = make_callbacks(conn);
	if (!conn->buf || !conn->cb)
		goto err_close;
	nl_cb_overwrite_recv(conn->cb, hook_receive);
	nl_cb_overwrite_send(conn->cb, hook_send);
	err = open_events(conn, params->rx_size);
	if (!err)
		err = open_requests(conn);
	if (err)
		goto err_close;
	read_all_again(conn);
	*conn_out = conn;
	return 0;

err_close:
	conn_close(conn);
	return err;
}

static int conn_event_fd(const struct netlink_conn *conn)
{
	return atomic_load(&conn->events.fd);
}

/* -- questions -------------------------------------------------------------------- */

static void read_datagrams(struct netlink_conn *conn, struct port *port)
{
	int err = nl_recvmsgs(port->sock, conn->cb);

	/* The rest of the datagram was lost with it. */
	if (err == -NLE_NOMEM)
		note_loss(conn);
}

/* The kernel answers before the sender's call returns, so we do not have to wait
 * for the answer. Answers to earlier requests may still be in the queue. A `msg` of
 * NULL means that there was no memory. */
static int ask_or_free(struct netlink_conn *conn, struct nl_msg *msg)
{
	uint32_t seq;
	int rc = msg ? send_or_free(conn, &conn->requests, msg, &seq) : -ENOMEM;

	if (rc)
		return rc;
	conn->question_seq = seq;
	conn->answer = -EAGAIN;
	conn->is_drained = false;
	conn->budget = DATAGRAMS_AT_ONCE;
	conn->bytes_left = BYTES_AT_ONCE;
	while (conn->question_seq && !conn->is_drained && !conn->failure &&
	       conn->budget > 0 && conn->bytes_left > 0)
		read_datagrams(conn, &conn->requests);
	conn->question_seq = 0;
	/* A failure of this socket does not end the connection, since the view does
	 * not depend on it. */
	rc = conn->failure ? conn->failure : conn->answer;
	conn->failure = 0;
	return rc;
}

static struct nl_addr *make_addr(const struct ip_addr *addr)
{
	return ip_addr_is_v4(addr) ?
		       nl_addr_build(AF_INET, &addr->byte[12], 4) :
		       nl_addr_build(AF_INET6, addr->byte, sizeof(addr->byte));
}

static struct nl_msg *make_resolve_request(int ifindex,
					   const struct ip_addr *addr)
{
	struct rtnl_neigh *neigh = rtnl_neigh_alloc();
	struct nl_addr *dst = make_addr(addr);
	struct nl_msg *msg = NULL;

	if (neigh && dst) {
		rtnl_neigh_set_ifindex(neigh, ifindex);
		rtnl_neigh_set_dst(neigh, dst);
		rtnl_neigh_set_state(neigh, NUD_NONE);
		rtnl_neigh_set_flags(neigh, NTF_USE);
		if (rtnl_neigh_build_add_request(
			    neigh, NLM_F_CREATE | NLM_F_ACK, &msg) < 0)
			msg = NULL;
	}
	nl_addr_put(dst);
	rtnl_neigh_put(neigh);
	return msg;
}

static int conn_resolve(struct netlink_conn *conn, int ifindex,
			const struct ip_addr *addr)
{
	conn->counts.resolves++;
	return ask_or_free(conn, make_resolve_request(ifindex, addr));
}

/* We do not use rtnl_link_build_get_request(): it also asks for the virtual
 * functions, for which a driver may have to ask its card. */
static int conn_read_link(struct netlink_conn *conn, int ifindex)
{
	struct ifinfomsg body = { .ifi_index = ifindex };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETLINK, 0);

	if (msg && nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO) < 0) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return ask_or_free(conn, msg);
}

static int conn_read_path(struct netlink_conn *conn,
			  const struct path_mtu_info *about)
{
	__be32 dst = ip_addr_v4(&about->dst), src = ip_addr_v4(&about->src);
	struct rtmsg body = {
		.rtm_family = AF_INET,
		.rtm_dst_len = 32,
		.rtm_src_len = src ? 32 : 0,
	};
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETROUTE, 0);

	if (msg &&
	    (nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO) < 0 ||
	     nla_put_u32(msg, RTA_DST, dst) < 0 ||
	     (src && nla_put_u32(msg, RTA_SRC, src) < 0) ||
	     (about->ifindex &&
	      nla_put_u32(msg, RTA_OIF, (uint32_t)about->ifindex) < 0))) {
		nlmsg_free(msg);
		msg = NULL;
	}
	return ask_or_free(conn, msg);
}

/* -- polling --------------------------------------------------------------------- */

/* Makes the request for all of a table. Each kind of message has a body of its own,
 * but all bodies begin with the address family. */
static struct nl_msg *make_dump_request(enum net_part part)
{
	static const struct {
		uint16_t type;
		uint8_t family;
		uint8_t body_size;
	} dumps[NET_PARTS] = {
		[NET_LINKS] = { RTM_GETLINK, AF_UNSPEC,
				sizeof(struct ifinfomsg) },
		[NET_ADDRS] = { RTM_GETADDR, AF_UNSPEC,
				sizeof(struct ifaddrmsg) },
		[NET_ROUTES] = { RTM_GETROUTE, AF_INET, sizeof(struct rtmsg) },
		[NET_POLICIES] = { RTM_GETRULE, AF_INET,
				   sizeof(struct fib_rule_hdr) },
		[NET_NEIGHS] = { RTM_GETNEIGH, AF_UNSPEC,
				 sizeof(struct ndmsg) },
		[NET_NETCONFS] = { RTM_GETNETCONF, AF_INET,
				   sizeof(struct netconfmsg) },
	};
	uint8_t body[32] = { dumps[part].family };
	struct nl_msg *msg = nlmsg_alloc_simple(dumps[part].type, NLM_F_DUMP);

	if (msg && nlmsg_append(msg, body, dumps[part].body_size,
				NLMSG_ALIGNTO) < 0) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/*
 * When a link goes down the kernel says so first, and then takes its routes without a word.
 * Since Linux 6.9 a reading of routes does not wait for the end of that, and would show them. A
 * question about a link does wait; about one that nobody has, whose answer changes nothing.
 */
static void await_changes(struct netlink_conn *conn)
{
	(void)!conn_read_link(conn, INT_MAX);
}

static int start_dump(struct netlink_conn *conn)
{
	enum net_part part = (enum net_part)__builtin_ctz(conn->stale);
	struct nl_msg *msg = make_dump_request(part);
	uint32_t seq;
	int err;

	if (part == NET_ROUTES)
		await_changes(conn);
	err = msg ? send_or_free(conn, &conn->events, msg, &seq) : -ENOMEM;
	/* The kernel is short of memory, or still busy with the last one. */
	if (err == -ENOBUFS || err == -ENOMEM || err == -EAGAIN)
		return 0;
	if (err)
		return err;
	conn->stale &= ~NET_BIT(part);
	conn->part = part;
	conn->part_seq = seq;
	conn->is_interrupted = false;
	conn->sink->begin(conn->sink_ctx, part);
	return 1;
}

static int conn_poll(struct netlink_conn *conn)
{
	current = conn;
	conn->budget = DATAGRAMS_AT_ONCE;
	conn->bytes_left = BYTES_AT_ONCE;
	conn->is_drained = false;
	while (!conn->failure && !conn->is_drained && conn->budget > 0 && conn->bytes_left > 0)
		read_datagrams(conn, &conn->events);
	if (conn->failure)
		return conn->failure;
	/* We begin to read only now, so that a table that several events ask for is
	 * read once. */
	if (conn->part == NET_PARTS && conn->stale)
		return start_dump(conn);
	return !conn->is_drained;
}

static bool conn_is_synced(const struct netlink_conn *conn)
{
	return conn->part == NET_PARTS && !conn->stale;
}

static const struct netlink_counts *conn_counts(const struct netlink_conn *conn)
{
	return &conn->counts;
}

const struct netlink_ops libnl_ops = {
	.open = conn_open,
	.close = conn_close,
	.event_fd = conn_event_fd,
	.poll = conn_poll,
	.is_synced = conn_is_synced,
	.resolve = conn_resolve,
	.read_link = conn_read_link,
	.read_path = conn_read_path,
	.counts = conn_counts,
	.read_chains = libnl_read_chains,
	.read_policies = libnl_read_policies,
	.read_filters = libnl_read_filters,
};
