/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of all locks, outermost first: a thread that holds a lock takes only
 * locks further down. Debug builds check it at each acquire. A new lock needs a
 * line here and a sentence why an existing one would not do.
 */
#ifndef BASE_LOCK_RANK_H
#define BASE_LOCK_RANK_H

enum lock_rank {
	/* The innermost rank is the last one. 0 is not a rank, so that one that was
	 * forgotten shows. */
	LOCK_RANK_NONE,
	/* a number becomes another file; everything else of ours may be done meanwhile */
	LOCK_RANK_FD_CHANGE,
	/* core: the start, and whatever must not be half done at a fork. */
	LOCK_RANK_START,
	/* sock: one socket's binding, connection and options: calls that change
	 * them are ordered around everything that follows from the change. */
	LOCK_RANK_SOCK_CONFIG,
	/* sock: what is known of other processes' ports; a socket's binding asks
	 * for it. */
	LOCK_RANK_UDP_PORTS,
	/* sock: the listeners that share their ports. One of them finds the others by it,
	 * whose own locks it may not take. */
	LOCK_RANK_TCP_SHARE,
	/* core: the network while it is made, for which all of the locks below are
	 * taken. */
	LOCK_RANK_NETWORK,
	/* sock: orders two writers of one TCP socket around the stack lock, after whose
	 * release ways are looked up under the control mutex. */
	LOCK_RANK_SOCK_WRITER,
	/* iomux: the members of an epoll set, which change in the kernel's set and
	 * in ours as one. A member's list is under its stack's lock; as to the
	 * control mutex, see above. */
	LOCK_RANK_EPOLL_CHANGES,
	/* iomux: the fds that wake who sleeps for sets in the kernel. Sets inside each
	 * other are woken as one, of which one alone is locked by the above. */
	LOCK_RANK_EPOLL_WAKE,
	/* net: rings, regions, rules, netlink, start-up. One, outermost of net. */
	LOCK_RANK_CONTROL,
	/* nl: calls into the netlink module. A fork waits for the call that is
	 * under way; to wait for the control mutex would take too long. */
	LOCK_RANK_NETLINK,
	/* net: everything a received packet can reach. */
	LOCK_RANK_STACK,
	/* iomux: which sets are in which. Something arrives for a socket in the
	 * inner one, and the outer ones hear of it. */
	LOCK_RANK_EPOLL_NESTING,
	/* iomux: what is ready in an epoll set, and who sleeps for it. Several
	 * stacks bring things to one set. */
	LOCK_RANK_EPOLL_SET,
	/* pkt: a region's store of magazines, taken by several stacks. */
	LOCK_RANK_REGION,
	/* dev/xdp: the fill and completion rings of one hardware queue. */
	LOCK_RANK_QUEUE,
	/* net: the list of unused waiters. Memory may be mapped under it. */
	LOCK_RANK_WAITERS,
	/* fd: the process that keeps rights answers one question after the other. */
	LOCK_RANK_RIGHT_KEEPER,
	/* sock: a child asks its parent for a connection, by a channel that must stay
	 * open until the answer has come. */
	LOCK_RANK_KIN,
	/* fd: which numbers are internal. Everybody has fds of his own, and closes them
	 * with his locks held. */
	LOCK_RANK_FD_INTERNAL,
	/* os: the table of the program's signal handlers; nothing is called
	 * under it. */
	LOCK_RANK_SIGNALS,
	/* fd: who visits which number. A close waits for visits with any lock held, and
	 * nothing is called under it. */
	LOCK_RANK_FD_VISITS,
	/* fd: the list of objects by inode. Nothing is called under it. */
	LOCK_RANK_FD_TABLE,
	/* fd: the unused objects of one kind. Memory may be mapped under it. */
	LOCK_RANK_FD_POOL,
	/* stats: which places of the shared region are taken; sockets are made
	 * and closed under many locks. Nothing is called under it. */
	LOCK_RANK_STATS,
	/* tests only */
	LOCK_RANK_TEST,
	LOCK_RANK_COUNT,
};

#endif
