/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's side of netlink.h. It makes one call into the module at a time, and
 * does what needs no netlink. */
#include "config.h"

#include "nl/netlink.h"

#include <errno.h>

#include "base/clock.h"
#include "base/lock.h"
#include "nl/net_feed.h"
#include "os/real.h"

/* Taken around each call into the module, so that a fork can wait until there is
 * none. The control mutex, under which the calls are made, is held for too long for
 * that. */
static struct mutex calls = MUTEX_INIT(LOCK_RANK_NETLINK);

int netlink_open(struct netlink *nl, const struct netlink_ops *ops,
		 struct net_view *view, const struct netlink_params *params)
{
	int err;

	*nl = (struct netlink){ .ops = ops, .view = view };
	mutex_acquire(&calls);
	err = ops->open(params, &net_feed_sink, view, &nl->conn);
	mutex_release(&calls);
	return err;
}

void netlink_close(struct netlink *nl)
{
	if (!nl->conn)
		return;
	mutex_acquire(&calls);
	nl->ops->close(nl->conn);
	mutex_release(&calls);
	nl->conn = NULL;
}

int netlink_event_fd(const struct netlink *nl)
{
	return nl->ops->event_fd(nl->conn);
}

int netlink_poll(struct netlink *nl)
{
	int rc;

	mutex_acquire(&calls);
	rc = nl->ops->poll(nl->conn);
	mutex_release(&calls);
	return rc;
}

bool netlink_is_synced(const struct netlink *nl)
{
	return nl->ops->is_synced(nl->conn);
}

const struct netlink_counts *netlink_counts(const struct netlink *nl)
{
	return nl->ops->counts(nl->conn);
}

/* Who stood still meanwhile, or waited for a lock of the kernel's, has not waited for a
 * message: what is there counts. But news without an end are no reason to wait for ever. */
enum { LATENESS_MAX = 10 };

int netlink_wait_synced(struct netlink *nl, int timeout_ms)
{
	uint64_t timeout_ns = (uint64_t)timeout_ms * NS_PER_MS;
	uint64_t end_ns = clock_monotonic_ns() + timeout_ns;

	for (;;) {
		struct pollfd pfd = { .events = POLLIN };
		int rc = netlink_poll(nl), left_ms = 0;
		uint64_t now_ns = clock_monotonic_ns();

		if (rc < 0)
			return rc;
		if (netlink_is_synced(nl))
			return 0;
		if (now_ns >= end_ns + LATENESS_MAX * timeout_ns)
			return -ETIMEDOUT;
		if (rc > 0)
			continue;
		if (now_ns < end_ns)
			left_ms = (int)((end_ns - now_ns) / NS_PER_MS) + 1;
		pfd.fd = netlink_event_fd(nl);
		if (real.poll(&pfd, 1, left_ms) == 0 && !left_ms)
			return -ETIMEDOUT;
	}
}

int netlink_resolve(struct netlink *nl, int ifindex,
		    const struct ip_addr *addr)
{
	int rc;

	mutex_acquire(&calls);
	rc = nl->ops->resolve(nl->conn, ifindex, addr);
	mutex_release(&calls);
	return rc;
}

int netlink_read_link(struct netlink *nl, int ifindex)
{
	int rc;

	mutex_acquire(&calls);
	rc = nl->ops->read_link(nl->conn, ifindex);
	mutex_release(&calls);
	return rc;
}

int netlink_read_path(struct netlink *nl, const struct path_mtu_info *about)
{
	int rc;

	mutex_acquire(&calls);
	rc = nl->ops->read_path(nl->conn, about);
	mutex_release(&calls);
	return rc;
}

void netlink_check_path(struct netlink *nl)
{
	const struct path_mtu_info *info =
		path_mtu_tab_doubt(&nl->view->path_mtus);
	struct path_mtu_info about;

	if (!info)
		return;
	about = *info;
	/* An error is an answer: there is no such path any more. */
	(void)!netlink_read_path(nl, &about);
	if (path_mtu_tab_settle(&nl->view->path_mtus))
		net_view_neighs_changed(nl->view);
}

int netlink_read_chains(const struct netlink_ops *ops, firewall_take_fn *take,
			void *ctx)
{
	int rc;

	mutex_acquire(&calls);
	rc = ops->read_chains(take, ctx);
	mutex_release(&calls);
	return rc;
}

int netlink_read_policies(const struct netlink_ops *ops, firewall_take_fn *take,
			  void *ctx)
{
	int rc;

	mutex_acquire(&calls);
	rc = ops->read_policies(take, ctx);
	mutex_release(&calls);
	return rc;
}

int netlink_read_filters(const struct netlink_ops *ops, firewall_take_fn *take,
			 void *ctx)
{
	int rc;

	mutex_acquire(&calls);
	rc = ops->read_filters(take, ctx);
	mutex_release(&calls);
	return rc;
}

/* These three functions take and release the lock together: pthread_atfork() calls
 * the first one and then one of the others. */
NO_LOCK_ANALYSIS void netlink_before_fork(void)
{
	mutex_acquire(&calls);
}

NO_LOCK_ANALYSIS void netlink_after_fork(void)
{
	mutex_release(&calls);
}

NO_LOCK_ANALYSIS void netlink_forked(void)
{
	lock_witness_forked(&calls.witness);
	mutex_release(&calls);
}
