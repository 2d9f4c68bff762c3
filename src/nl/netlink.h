/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The connection to the kernel's rtnetlink, which fills a net_view and keeps it up
 * to date: what libvma-nl.so exports, and how the rest of the library uses it.
 *
 * A connection belongs to the owner of the view and is used under the same lock. A
 * call may wait for the kernel's own lock of its tables, but never for a message;
 * only netlink_wait_synced() waits for messages.
 */
#ifndef NL_NETLINK_H
#define NL_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ipaddr.h"
#include "nl/firewall.h"
#include "nl/net_row.h"
#include "nl/net_view.h"

/* -- what the module exports ------------------------------------------------- */

struct netlink_params {
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

struct netlink_conn;

/*
 * There is one call at a time in the whole process, whatever the connection,
 * because libnl has state of its own, and so has the module. Calls are made inside
 * the bracket, and never under a stack lock, since libnl allocates memory. The
 * child of a fork does not repeat a call; it forgets the connections of its parent.
 */
struct netlink_ops {
	/* Connects to the namespace of the calling thread; reading begins at the
	 * first poll. Of the arguments, only the sink and its ctx are kept. 0 or a
	 * negative errno. */
	int (*open)(const struct netlink_params *params,
		    const struct net_sink *sink, void *ctx,
		    struct netlink_conn **conn_out) MUST_CHECK;
	void (*close)(struct netlink_conn *conn);
	/* Readable when poll has something to do; may change at each call. */
	int (*event_fd)(const struct netlink_conn *conn);
	/* Reads what is there, up to a limit, and gives its rows to the sink. 1:
	 * there may be more, call again (the caller may do other work first). 0:
	 * there is nothing more for now. A negative errno: the connection cannot be
	 * used any more. */
	int (*poll)(struct netlink_conn *conn) MUST_CHECK;
	/* All tables have been read, and nothing is to be read again because it was
	 * lost. */
	bool (*is_synced)(const struct netlink_conn *conn);
	/* The answer becomes a row. 0 or the kernel's error. */
	int (*resolve)(struct netlink_conn *conn, int ifindex,
		       const struct ip_addr *addr) MUST_CHECK;
	int (*read_link)(struct netlink_conn *conn, int ifindex) MUST_CHECK;
	int (*read_path)(struct netlink_conn *conn,
			 const struct path_mtu_info *about) MUST_CHECK;
	const struct netlink_counts *(*counts)(const struct netlink_conn *conn);
	/* Ask for nftables' chains, for the number of xfrm's policies, and for
	 * interfaces and which of them have filters of tc; give each answer to
	 * `take`. 0, or an error: -EPERM, or the kernel has no such thing. Need no
	 * connection. */
	int (*read_chains)(firewall_take_fn *take, void *ctx) MUST_CHECK;
	int (*read_policies)(firewall_take_fn *take, void *ctx) MUST_CHECK;
	int (*read_filters)(firewall_take_fn *take, void *ctx) MUST_CHECK;
};

/* -- a connection ------------------------------------------------------------ */

struct netlink {
	const struct netlink_ops *ops;
	/* NULL: closed */
	struct netlink_conn *conn;
	struct net_view *view;
};

/* The view is empty until netlink_wait_synced(), and must outlive the connection.
 * 0 or negative errno. */
int netlink_open(struct netlink *nl, const struct netlink_ops *ops,
		 struct net_view *view, const struct netlink_params *params)
	MUST_CHECK;
/* Harmless when it is closed. */
void netlink_close(struct netlink *nl);

/* These call the ops of the same names. */
int netlink_event_fd(const struct netlink *nl);
int netlink_poll(struct netlink *nl) MUST_CHECK;
bool netlink_is_synced(const struct netlink *nl);
const struct netlink_counts *netlink_counts(const struct netlink *nl);

/* Polls until all tables are read. This is the one call that waits for messages.
 * -ETIMEDOUT: the view has what was read so far, and each further poll adds to it. */
int netlink_wait_synced(struct netlink *nl, int timeout_ms) MUST_CHECK;

/*
 * Asks the kernel to find, or to confirm, the hardware address of a neighbour; what
 * it finds comes as an event. -EPERM: the process lacks CAP_NET_ADMIN; a datagram
 * sent through a kernel socket makes the kernel ask, too. -ENODEV and others are the
 * kernel's word.
 */
int netlink_resolve(struct netlink *nl, int ifindex,
		    const struct ip_addr *addr) MUST_CHECK;

/* Reads one link anew, for facts that come without an event (XDP). -ENODEV: there
 * is no such link. */
int netlink_read_link(struct netlink *nl, int ifindex) MUST_CHECK;

/* Asks what the kernel has learned of the path to a destination, for the view's
 * path_mtus. `ifindex` 0, any `src`: not known. */
int netlink_read_path(struct netlink *nl, const struct path_mtu_info *about)
	MUST_CHECK;
/* Asks the kernel again about the entry that was confirmed longest ago, because the
 * kernel may have forgotten it. */
void netlink_check_path(struct netlink *nl);

/* As the ops. */
int netlink_read_chains(const struct netlink_ops *ops, firewall_take_fn *take,
			void *ctx) MUST_CHECK;
int netlink_read_policies(const struct netlink_ops *ops, firewall_take_fn *take,
			  void *ctx) MUST_CHECK;
int netlink_read_filters(const struct netlink_ops *ops, firewall_take_fn *take,
			 void *ctx) MUST_CHECK;

/* -- fork ---------------------------------------------------------------------- */

/*
 * A fork must not copy the process while a call is under way: libnl has locks that
 * would stay taken in the child for ever. The first function waits for the call
 * that is under way, which is short. The second one is for the parent afterwards,
 * the third one for the child.
 */
void netlink_before_fork(void);
void netlink_after_fork(void);
void netlink_forked(void);

#endif
