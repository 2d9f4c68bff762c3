/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets of ours. The program's fd is the kernel's socket, the twin, which
 * holds port, address, options and errors; beside it we receive what our flows
 * bring and send where our rings lead. Whatever is not ours to do the twin does,
 * so a call that an accelerated socket cannot serve is passed on, not refused.
 */
#ifndef SOCK_UDP_UDP_H
#define SOCK_UDP_UDP_H

#include "fd/fd_ops.h"
#include "net/net.h"

/* The roles of libvma.conf that a UDP socket can be in. */
enum udp_role { UDP_RECEIVER, UDP_SENDER, UDP_CONNECT };

/* VMA_EXCEPTION_HANDLING; -2 is as PASS for sockets. */
enum udp_exception_mode {
	UDP_EXCEPTION_PASS = -1,
	UDP_EXCEPTION_LEAVE = 0,
	UDP_EXCEPTION_LEAVE_LOUDLY = 1,
	UDP_EXCEPTION_REFUSE = 2,
	UDP_EXCEPTION_ABORT = 3,
};

struct udp_end {
	struct ip_addr addr;
	__be16 port;
};

/* What the sockets know of the world; fixed after the start. */
struct udp_params {
	/* The network, started if it is not yet; NULL: it cannot be, for
	 * *reason_out. In the bracket. */
	struct net *(*net)(enum reason *reason_out);
	/* The same, if it has been started already. */
	struct net *(*net_if_made)(void);
	/* Whether a rule leaves a socket in this role to the kernel, and which
	 * does. Either end may be NULL. */
	bool (*is_kernel_by_rule)(enum udp_role role,
				  const struct udp_end *local,
				  const struct udp_end *remote,
				  char detail[STATS_DETAIL_SIZE]);
	/* Somebody is to call udp_twin_event when the twin becomes readable or
	 * has an error; until unwatch, or the twin is closed. */
	void (*watch_twin)(int fd, struct fd_object *obj);

	/* polls before a blocking call sleeps; -1: it never does */
	int rx_polls;
	/* the twin is looked at once in so many polls; 0: only when flagged */
	unsigned os_ratio;
	bool does_yield;
	/* the least room for received data, in bytes */
	uint32_t rx_bytes_min;
	/* Without room to send, a non-blocking send says EAGAIN; otherwise it
	 * drops the datagram, as a network may. */
	bool tx_eagain;
	enum udp_exception_mode exception_mode;
};

/* Once, before the first socket. */
void udp_start(const struct udp_params *params);

/* The object for a new kernel socket, with a reference, or NULL: no memory. */
struct fd_object *udp_create(int fd, int domain, int type) MUST_CHECK;

/* The twin has something to read, or an error to tell. Any thread, inside the
 * bracket, with a reference. */
void udp_twin_event(struct fd_object *obj, bool has_error);

/* The socket's endpoint. Valid while the caller has its reference. */
struct endpoint *udp_endpoint(struct fd_object *obj);

/* How a call that may block can hear of the socket's datagrams. Of one that the
 * kernel has, too: another thread may name it, connect it elsewhere or send from it,
 * and whoever slept in the kernel by then would not hear what our rings bring. */
enum udp_wait {
	UDP_WAIT_KERNEL, /* the kernel has it for good */
	UDP_WAIT_STACK, /* by the endpoint, and the twin */
	/* the same, and there is no stack yet: by wait_early_begin, and the twin */
	UDP_WAIT_EARLY,
};
enum udp_wait udp_await(struct fd_object *obj, struct stack **stack_out);

/* The endpoint for somebody who will wait for it for long: a socket that is not bound
 * yet gets a network for it. NULL: it will be the kernel's for good. Inside the
 * bracket. */
struct endpoint *udp_follow(struct fd_object *obj, struct stack **stack_out);

bool udp_is_one(const struct fd_object *obj);

/* Gives the socket back to the kernel for good, with what is queued; what the
 * kernel does not take is delivered first. Inside the bracket. */
void udp_leave(struct fd_object *obj, int fd, enum reason reason,
	       enum stats_decider decider);

/* After news of interfaces, addresses or routes: sockets that no interface served may
 * be served now. Those that are attached follow by themselves. Inside the bracket. */
void udp_follow_news(void);

/* In the child of a fork: there are no sockets, and whatever another thread of the
 * parent was about is nobody's. */
void udp_forked(void);

/* Each second: sockets whose port another process has by now, too, go back to the
 * kernel. Inside the bracket. */
void udp_look_at_ports(void);
/* Whether there is something to look for, each second. */
bool udp_looks_at_ports(void);

/* -- sockets that a child of a fork has too (udp_heir.c) -- */

/* Inside the bracket, before each fork: what is queued becomes the kernel's, for
 * either process to read. */
void udp_before_fork(void);
/* Whether there may be such sockets. */
bool udp_has_heirs(void);
/* Now and then: those whose datagrams nobody has read, or waited for, since the
 * call before are the kernel's from now on. True: there are some that the next
 * call decides on. Inside the bracket. */
bool udp_look_after_heirs(void);
/* The same for all of them, before the process ends. Inside the bracket. */
void udp_before_exit(void);

#endif
