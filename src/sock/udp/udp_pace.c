/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams at a pace (SO_MAX_PACING_RATE): the socket's destinations lead to rings of its
 * own, which the card paces (net/paced.h), or, where no card does that, to the kernel.
 */
#include "config.h"

#include <errno.h>

#include "base/clock.h"
#include "sock/sock_pace.h"
#include "sock/udp/udp_priv.h"

/* No destination leads to a ring any more that may be about to end: who has just sent may
 * still look at one. Under the stack's lock. */
static void drop_ways(struct udp *u)
{
	udp_forget_ways(&u->sock, NULL);
	for (int i = 0; i < UDP_WAYS; i++)
		udp_way_refuse(&u->ways[i], REASON_NONE);
	for (int i = 0; i < UDP_CONTROLLED_WAYS; i++)
		udp_way_refuse(&u->controlled[i], REASON_NONE);
}

/* From now on it has this pace, or none. Nobody looks up a destination meanwhile, and who
 * has looked one up before finds that the pace has changed since. With `config`; the socket
 * is in a stack. */
static void change(struct udp *u, const struct ring_pace *pace)
{
	struct net *net = sock_stack(&u->sock)->net;
	struct stack *stack;

	net_control_acquire(net);
	sock_lock(&u->sock, &stack);
	u->pace_gen++;
	atomic_store(&u->paced_kbps, pace ? MAX(pace->kbps, 1u) : 0);
	drop_ways(u);
	stack_unlock(stack);
	paced_set(net, &u->paced, pace);
	net_control_release(net);
}

void udp_pace_follow(struct udp *u)
{
	bool is_set = u->has_pace && !u->sock.has_left;

	u->has_pace_news = false;
	if (is_set || atomic_load(&u->paced_kbps))
		change(u, is_set ? &u->sock.pace : NULL);
}

long udp_pace_setsockopt(struct udp *u, int fd, const void *value, socklen_t len)
{
	struct sock_pace wish;
	bool is_read = sock_pace_read(value, len, &wish);
	bool is_vma = is_read && len == sizeof(struct sock_pace_vma);
	long result = sock_setsockopt(&u->sock.obj, fd, SOL_SOCKET,
				      SO_MAX_PACING_RATE,
				      is_vma ? &wish.linux_rate : value,
				      is_vma ? sizeof(wish.linux_rate) : len);

	if (result != 0 || !is_read)
		return result;
	mutex_acquire(&u->sock.config);
	if (sock_pace_is_twins(fd, &wish)) {
		u->has_pace = wish.is_set;
		u->sock.pace = wish.pace;
		u->has_pace_news = true;
		if (sock_stack(&u->sock))
			udp_pace_follow(u);
	}
	mutex_release(&u->sock.config);
	return 0;
}

void udp_pace_end(struct udp *u)
{
	if (atomic_load(&u->paced_kbps))
		change(u, NULL);
}

/* A queue that is full takes more when a frame has left. Of high rates, and of the device's own,
 * not each frame is waited for, and of low ones something else may have changed. */
enum { NAP_MIN_NS = 50 * 1000, NAP_MAX_NS = 20 * 1000 * 1000, FRAME_BITS = 1500 * 8 };

uint64_t udp_room_nap_ns(const struct udp *u)
{
	uint32_t kbps = atomic_load(&u->paced_kbps);
	uint64_t ns = kbps ? (uint64_t)FRAME_BITS * NS_PER_MS / kbps : 0;

	return MIN(MAX(ns, (uint64_t)NAP_MIN_NS), (uint64_t)NAP_MAX_NS);
}
