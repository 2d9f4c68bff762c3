/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading rtnetlink. One table is dumped at a time, on the socket that gets the
 * events, so that a dump and the changes to what it has shown already arrive in the
 * order in which they happened. Which tables must be read again is a set of bits;
 * all of them at the start and when the kernel dropped events.
 */
#include "config.h"

#include "nl/netlink_conn.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nl/netlink_msg.h"
#include "os/real.h"

enum {
	DEFAULT_RX_SIZE = 4 << 20,
	/* The kernel fills up to 32 KB at once with a dump. */
	FIRST_BUF_SIZE = 64 << 10,
	LAST_BUF_SIZE = 4 << 20,
	/* So that a flood does not hold the caller's lock for long. */
	DATAGRAMS_AT_ONCE = 16,
	ALL_PARTS = (1 << NETLINK_PARTS) - 1,
};

struct netlink_conn {
	struct net_view *view;
	int event_fd;
	int request_fd;
	/* the event socket's address */
	uint32_t port;
	uint32_t seq;
	/* the table that is being dumped, or NETLINK_PARTS; its request */
	enum netlink_part part;
	uint32_t part_seq;
	/* the dump under way does not show all of the table */
	bool is_interrupted;
	/* tables to be read again */
	unsigned stale;
	/* since all of them were to be */
	bool is_syncing;
	uint8_t *buf;
	size_t buf_size;
	struct netlink_counts counts;
};

static const int groups[] = {
	RTNLGRP_LINK,	      RTNLGRP_NEIGH,	   RTNLGRP_IPV4_IFADDR,
	RTNLGRP_IPV6_IFADDR,  RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV4_RULE,
	RTNLGRP_IPV4_NETCONF, RTNLGRP_NEXTHOP,
};

static void set_rx_size(int fd, int size)
{
	/* The first goes beyond the system's limit and needs a privilege. */
	if (real.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size,
			    sizeof(size)) != 0)
		real.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

static int join_groups(int fd)
{
	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		int rc = real.setsockopt(fd, SOL_NETLINK,
					 NETLINK_ADD_MEMBERSHIP, &groups[i],
					 sizeof(groups[i]));

		/* An old kernel does not know the newest one. */
		if (rc != 0 && groups[i] != RTNLGRP_NEXTHOP)
			return -errno;
	}
	return 0;
}

/* A socket with an address of its own, or negative errno. */
static int open_socket(uint32_t *port_out)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(addr);
	int fd = real.socket(AF_NETLINK,
			     SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			     NETLINK_ROUTE);
	int err;

	if (fd < 0)
		return -errno;
	if (real.bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    real.getsockname(fd, (struct sockaddr *)&addr, &len) != 0) {
		err = -errno;
		real.close(fd);
		return err;
	}
	*port_out = addr.nl_pid;
	return fd;
}

static int open_sockets(struct netlink_conn *conn, int rx_size)
{
	uint32_t request_port;
	int err;

	conn->event_fd = open_socket(&conn->port);
	if (conn->event_fd < 0)
		return conn->event_fd;
	set_rx_size(conn->event_fd, rx_size ? rx_size : DEFAULT_RX_SIZE);
	err = join_groups(conn->event_fd);
	if (err)
		goto err_close;
	conn->request_fd = open_socket(&request_port);
	if (conn->request_fd < 0) {
		err = conn->request_fd;
		goto err_close;
	}
	return 0;

err_close:
	real.close(conn->event_fd);
	return err;
}

static void read_all_again(struct netlink_conn *conn)
{
	conn->stale = ALL_PARTS;
	conn->is_syncing = true;
}

int netlink_conn_open(struct net_view *view,
		      const struct netlink_conn_params *params,
		      struct netlink_conn **conn_out)
{
	struct netlink_conn *conn = calloc(1, sizeof(*conn));
	int err;

	if (!conn)
		return -ENOMEM;
	conn->view = view;
	conn->part = NETLINK_PARTS;
	conn->buf_size = FIRST_BUF_SIZE;
	conn->buf = malloc(conn->buf_size);
	if (!conn->buf) {
		err = -ENOMEM;
		goto err_free;
	}
	err = open_sockets(conn, params->rx_size);
	if (err)
		goto err_free;
	read_all_again(conn);
	*conn_out = conn;
	return 0;

err_free:
	netlink_conn_forget(conn);
	return err;
}

void netlink_conn_close(struct netlink_conn *conn)
{
	if (!conn)
		return;
	real.close(conn->request_fd);
	real.close(conn->event_fd);
	netlink_conn_forget(conn);
}

void netlink_conn_forget(struct netlink_conn *conn)
{
	if (!conn)
		return;
	free(conn->buf);
	free(conn);
}

void netlink_conn_fds(const struct netlink_conn *conn, int fds_out[2])
{
	fds_out[0] = conn->event_fd;
	fds_out[1] = conn->request_fd;
}

void netlink_conn_moved(struct netlink_conn *conn, const int fds[2])
{
	conn->event_fd = fds[0];
	conn->request_fd = fds[1];
}

static int send_request(int fd, const void *request, size_t len)
{
	for (;;) {
		if (real.send(fd, request, len, 0) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* What asks for all of a table. Each kind of message has a body of its own, and
 * all of them begin with the family. */
static int request_dump(struct netlink_conn *conn, enum netlink_part part)
{
	static const struct {
		uint16_t type;
		uint8_t family;
		uint8_t body_size;
	} dumps[NETLINK_PARTS] = {
		[NETLINK_LINKS] = { RTM_GETLINK, AF_UNSPEC,
				    sizeof(struct ifinfomsg) },
		[NETLINK_ADDRS] = { RTM_GETADDR, AF_UNSPEC,
				    sizeof(struct ifaddrmsg) },
		[NETLINK_ROUTES] = { RTM_GETROUTE, AF_INET,
				     sizeof(struct rtmsg) },
		[NETLINK_POLICIES] = { RTM_GETRULE, AF_INET,
				       sizeof(struct fib_rule_hdr) },
		[NETLINK_NEIGHS] = { RTM_GETNEIGH, AF_UNSPEC,
				     sizeof(struct ndmsg) },
		[NETLINK_NETCONFS] = { RTM_GETNETCONF, AF_INET,
				       sizeof(struct netconfmsg) },
	};
	struct {
		struct nlmsghdr head;
		uint8_t body[32];
	} request = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(dumps[part].body_size),
			.nlmsg_type = dumps[part].type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = ++conn->seq,
		},
		.body = { dumps[part].family },
	};

	return send_request(conn->event_fd, &request, request.head.nlmsg_len);
}

static int start_dump(struct netlink_conn *conn)
{
	enum netlink_part part =
		(enum netlink_part)__builtin_ctz(conn->stale);
	int err = request_dump(conn, part);

	/* The kernel is short of memory, or still busy with the last one. */
	if (err == -ENOBUFS || err == -ENOMEM || err == -EAGAIN)
		return 0;
	if (err)
		return err;
	conn->stale &= ~NETLINK_BIT(part);
	conn->part = part;
	conn->part_seq = conn->seq;
	conn->is_interrupted = false;
	netlink_part_begin(conn->view, part);
	return 0;
}

/* A kernel without a table has nothing in it. */
static bool is_table_missing(int error)
{
	return error == -EOPNOTSUPP || error == -EAFNOSUPPORT;
}

static bool is_transient(int error)
{
	return error == -EINTR || error == -EAGAIN || error == -EBUSY ||
	       error == -ENOBUFS || error == -ENOMEM;
}

/* 0, or the error that ends the connection. */
static int end_dump(struct netlink_conn *conn, int error)
{
	enum netlink_part part = conn->part;

	conn->part = NETLINK_PARTS;
	if (error && !is_table_missing(error) && !is_transient(error))
		return error;
	if (conn->is_interrupted || is_transient(error)) {
		conn->stale |= NETLINK_BIT(part);
		conn->counts.repeats++;
		return 0;
	}
	netlink_part_end(conn->view, part);
	if (!conn->stale && conn->is_syncing) {
		conn->is_syncing = false;
		conn->counts.syncs++;
	}
	return 0;
}

static void note_effect(struct netlink_conn *conn, int rc, bool is_dump,
			const struct netlink_effect *effect)
{
	conn->stale |= effect->stale;
	if (rc == -EBADMSG)
		conn->counts.rejects++;
	if (rc == -ENOMEM && effect->part != NETLINK_PARTS)
		conn->stale |= NETLINK_BIT(effect->part);
	/* The same rule may be there twice, and whether the dump shows the one
	 * of the event or another cannot be told. */
	if (!is_dump && effect->part == NETLINK_POLICIES &&
	    conn->part == NETLINK_POLICIES)
		conn->is_interrupted = true;
}

static int handle_message(struct netlink_conn *conn, const struct nlmsghdr *msg)
{
	bool is_dump = conn->part != NETLINK_PARTS &&
		       msg->nlmsg_pid == conn->port &&
		       msg->nlmsg_seq == conn->part_seq;
	struct netlink_effect effect;
	int rc;

	conn->counts.messages++;
	if (is_dump && (msg->nlmsg_flags & NLM_F_DUMP_INTR))
		conn->is_interrupted = true;
	if (msg->nlmsg_type == NLMSG_DONE || msg->nlmsg_type == NLMSG_ERROR)
		return is_dump ? end_dump(conn, netlink_error(msg)) : 0;
	rc = netlink_apply(conn->view, msg, is_dump, &effect);
	note_effect(conn, rc, is_dump, &effect);
	return 0;
}

static int handle_datagram(struct netlink_conn *conn, size_t len)
{
	const uint8_t *at = conn->buf;
	const struct nlmsghdr *msg;
	int err = 0;

	while (!err && (msg = netlink_next(&at, &len)))
		err = handle_message(conn, msg);
	if (!err && len)
		conn->counts.rejects++;
	return err;
}

/* What was lost is unknown, so everything may be wrong. */
static void note_loss(struct netlink_conn *conn)
{
	read_all_again(conn);
	conn->is_interrupted = true;
}

/* A message that does not fit is lost; the next one will. */
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

/* One datagram into the buffer: its length, or negative errno. 0: it is to be
 * passed over. */
static ssize_t receive(struct netlink_conn *conn, int fd)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { conn->buf, conn->buf_size };
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
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
	/* Anybody in the namespace may write to us; only the kernel is heard. */
	if (msg.msg_namelen != sizeof(from) || from.nl_pid != 0) {
		conn->counts.rejects++;
		return 0;
	}
	return len;
}

/* 1: something was there, 0: nothing, or the error that ends the connection. */
static int read_event(struct netlink_conn *conn)
{
	ssize_t len = receive(conn, conn->event_fd);
	int err;

	switch (len) {
	case -EINTR:
		return 1;
	case -EAGAIN:
		return 0;
	case -ENOBUFS:
		conn->counts.overruns++;
		note_loss(conn);
		return 1;
	}
	if (len < 0)
		return (int)len;
	err = handle_datagram(conn, (size_t)len);
	return err ? err : 1;
}

int netlink_conn_poll(struct netlink_conn *conn)
{
	int rc = 1;

	for (int i = 0; rc > 0 && i < DATAGRAMS_AT_ONCE; i++)
		rc = read_event(conn);
	if (rc < 0 || conn->part != NETLINK_PARTS || !conn->stale)
		return rc;
	/* Only now: what several events ask for is read once. */
	rc = start_dump(conn);
	return rc ? rc : 1;
}

bool netlink_conn_is_synced(const struct netlink_conn *conn)
{
	return conn->part == NETLINK_PARTS && !conn->stale;
}

int netlink_conn_wait_synced(struct netlink_conn *conn, int timeout_ms)
{
	uint64_t end_ns = clock_monotonic_ns() +
			  (uint64_t)timeout_ms * NS_PER_MS;
	struct pollfd pfd = { .fd = conn->event_fd, .events = POLLIN };

	for (;;) {
		int rc = netlink_conn_poll(conn);
		uint64_t now_ns = clock_monotonic_ns();

		if (rc < 0)
			return rc;
		if (netlink_conn_is_synced(conn))
			return 0;
		if (now_ns >= end_ns)
			return -ETIMEDOUT;
		if (rc == 0)
			real.poll(&pfd, 1, (int)((end_ns - now_ns) / NS_PER_MS) +
						   1);
	}
}

/* The answer to the last request: 0 or the kernel's error. What it brings is put
 * into the view. */
static int read_answer(struct netlink_conn *conn, size_t len)
{
	const uint8_t *at = conn->buf;
	struct netlink_effect effect;
	const struct nlmsghdr *msg;
	int rc;

	while ((msg = netlink_next(&at, &len))) {
		if (msg->nlmsg_seq != conn->seq)
			continue;
		if (msg->nlmsg_type == NLMSG_ERROR)
			return netlink_error(msg);
		rc = netlink_apply(conn->view, msg, false, &effect);
		note_effect(conn, rc, false, &effect);
		return rc;
	}
	return -ENOMSG;
}

/* The kernel answers before it lets go of the sender, so nothing has to be waited
 * for; answers to earlier requests may still lie there. */
static int ask(struct netlink_conn *conn, struct nlmsghdr *request)
{
	ssize_t len;
	int rc;

	request->nlmsg_seq = ++conn->seq;
	rc = send_request(conn->request_fd, request, request->nlmsg_len);
	if (rc)
		return rc;
	do {
		len = receive(conn, conn->request_fd);
		if (len >= 0)
			rc = read_answer(conn, (size_t)len);
	} while (len == -EINTR || (len >= 0 && rc == -ENOMSG));
	return len < 0 ? (int)len : rc;
}

/* Appends to a request with room for it. */
static void add_attr(struct nlmsghdr *request, uint16_t type, const void *data,
		     size_t len)
{
	struct nlattr head = {
		.nla_len = (uint16_t)(NLA_HDRLEN + len),
		.nla_type = type,
	};
	uint8_t *at = (uint8_t *)request + NLMSG_ALIGN(request->nlmsg_len);

	memcpy(at, &head, sizeof(head));
	memcpy(at + NLA_HDRLEN, data, len);
	request->nlmsg_len = NLMSG_ALIGN(request->nlmsg_len) +
			     (uint32_t)NLA_ALIGN(head.nla_len);
}

int netlink_conn_resolve(struct netlink_conn *conn, int ifindex,
			 const struct ip_addr *addr)
{
	bool is_v4 = ip_addr_is_v4(addr);
	struct {
		struct nlmsghdr head;
		struct ndmsg body;
		uint8_t attrs[32];
	} request = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			.nlmsg_type = RTM_NEWNEIGH,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK,
		},
		.body = {
			.ndm_family = is_v4 ? AF_INET : AF_INET6,
			.ndm_ifindex = ifindex,
			.ndm_state = NUD_NONE,
			.ndm_flags = NTF_USE,
		},
	};

	conn->counts.resolves++;
	add_attr(&request.head, NDA_DST, is_v4 ? &addr->byte[12] : addr->byte,
		 is_v4 ? 4 : 16);
	return ask(conn, &request.head);
}

int netlink_conn_read_link(struct netlink_conn *conn, int ifindex)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
	} request = {
		.head = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = { .ifi_index = ifindex },
	};

	return ask(conn, &request.head);
}

int netlink_conn_read_path(struct netlink_conn *conn,
			   const struct path_mtu_info *about)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg body;
		uint8_t attrs[32];
	} request = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			.nlmsg_type = RTM_GETROUTE,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = { .rtm_family = AF_INET, .rtm_dst_len = 32 },
	};
	__be32 dst = ip_addr_v4(&about->dst), src = ip_addr_v4(&about->src);

	add_attr(&request.head, RTA_DST, &dst, sizeof(dst));
	if (src) {
		request.body.rtm_src_len = 32;
		add_attr(&request.head, RTA_SRC, &src, sizeof(src));
	}
	if (about->ifindex)
		add_attr(&request.head, RTA_OIF, &about->ifindex,
			 sizeof(about->ifindex));
	return ask(conn, &request.head);
}

void netlink_conn_check_path(struct netlink_conn *conn)
{
	const struct path_mtu_info *info =
		path_mtu_tab_doubt(&conn->view->path_mtus);
	struct path_mtu_info about;

	if (!info)
		return;
	about = *info;
	/* An error is an answer: there is no such path any more. */
	(void)!netlink_conn_read_path(conn, &about);
	if (path_mtu_tab_settle(&conn->view->path_mtus))
		net_view_neighs_changed(conn->view);
}

const struct netlink_counts *netlink_conn_counts(const struct netlink_conn *conn)
{
	return &conn->counts;
}
