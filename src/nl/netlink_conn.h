/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection to the kernel's rtnetlink: fills a net_view and keeps it true.
 *
 * Two fds: on one all dumps and events arrive, in the order of the kernel; on the
 * other single questions are asked and answered at once. Whoever opens the
 * connection may adopt them (netlink_conn_fds) and waits on the first.
 *
 * Belongs to the owner of the view, under the same lock. A call may wait for the
 * kernel's own lock of its tables, never for a message.
 */
#ifndef NL_NETLINK_CONN_H
#define NL_NETLINK_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"
#include "nl/net_view.h"

struct netlink_conn;

struct netlink_conn_params {
	/* bytes the kernel may queue for us; 0: 4 MB, or what it allows */
	int rx_size;
};

struct netlink_counts {
	uint64_t messages;
	/* the kernel had no room and dropped events; everything was read again */
	uint64_t overruns;
	/* readings of one table that something interrupted, and that were
	 * repeated */
	uint64_t repeats;
	/* messages that made no sense, and datagrams of somebody else */
	uint64_t rejects;
	/* complete readings of all tables */
	uint64_t syncs;
	/* neighbours asked for */
	uint64_t resolves;
};

/* Connects to the namespace of the calling thread and starts reading; the view
 * is empty until netlink_conn_wait_synced(). The view must outlive the
 * connection. 0 or negative errno. */
int netlink_conn_open(struct net_view *view,
		      const struct netlink_conn_params *params,
		      struct netlink_conn **conn_out) MUST_CHECK;
/* Closes both fds; NULL is a no-op. */
void netlink_conn_close(struct netlink_conn *conn);
/* The fds are no longer ours to close (the child of a fork has closed them);
 * frees the rest. */
void netlink_conn_forget(struct netlink_conn *conn);

/* [0]: readable when netlink_conn_poll() has something to do. [1]: for nobody to
 * wait on. */
void netlink_conn_fds(const struct netlink_conn *conn, int fds_out[2]);
/* The fds were moved to other numbers. */
void netlink_conn_moved(struct netlink_conn *conn, const int fds[2]);

/*
 * Reads what is there, up to a bound, and puts it into the view. Never waits.
 * 1: more may be there, call again (other work may come first); 0: nothing more
 * for now; negative errno: the connection is of no more use, the view will not
 * change any more.
 */
int netlink_conn_poll(struct netlink_conn *conn) MUST_CHECK;

/* All tables have been read, and nothing that was lost is still to be read
 * again. */
bool netlink_conn_is_synced(const struct netlink_conn *conn);
/* Polls until that is so: the one call that waits for messages. -ETIMEDOUT: the
 * view is what was read so far, and goes on filling with each poll. */
int netlink_conn_wait_synced(struct netlink_conn *conn, int timeout_ms)
	MUST_CHECK;

/*
 * Asks the kernel to find, or to confirm, the hardware address of a neighbour; what
 * it finds comes as an event. -EPERM: the process lacks CAP_NET_ADMIN; a datagram
 * sent through a kernel socket makes the kernel ask, too. -ENODEV and others are the
 * kernel's word.
 */
int netlink_conn_resolve(struct netlink_conn *conn, int ifindex,
			 const struct ip_addr *addr) MUST_CHECK;

/* Reads one link anew, for facts that come without an event (XDP). -ENODEV: there
 * is no such link. */
int netlink_conn_read_link(struct netlink_conn *conn, int ifindex) MUST_CHECK;

/* Asks what the kernel has learned of the path to a destination, for the view's
 * path_mtus. `ifindex` 0, any `src`: not known. */
int netlink_conn_read_path(struct netlink_conn *conn,
			   const struct path_mtu_info *about) MUST_CHECK;
/* Asks again for the entry that was confirmed longest ago, which it may have
 * forgotten. */
void netlink_conn_check_path(struct netlink_conn *conn);

const struct netlink_counts *netlink_conn_counts(
	const struct netlink_conn *conn);

#endif
