/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that sleep in the kernel for a set that is not ours, while another thread
 * makes it ours. They would not hear of our queues. So we put a readable fd into the
 * kernel's set, for as long as threads may sleep there that have not seen it.
 */
#include "config.h"

#include "iomux/epoll_wake.h"

#include <sys/single_threaded.h>

#include "base/clock.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/event_fd.h"
#include "os/inside.h"

struct mux_sleepers mux_sleepers[MUX_SLEEPER_PLACES];

/* After this time, a count belongs to another set or to a thread that has jumped
 * out of its wait. Until then, waits for the set do not sleep. */
#define WAKE_NS NS_PER_SEC

static uint64_t wake_data(const struct epoll_set *set)
{
	return (uint64_t)(uintptr_t)set;
}

void epoll_end_wake(struct epoll_set *set)
{
	/* this is its last fd, so the kernel takes it out of the set */
	fd_internal_close(&set->wake_fd);
}

void epoll_wake_sleepers(struct epoll_set *set)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = wake_data(set) };
	int fd, epfd;

	/* They counted themselves before they looked at live_cnt. */
	if (!atomic_load(mux_sleepers_at(epoll_set_number(set))) ||
	    atomic_load(&set->wake_fd) >= 0)
		return;
	epfd = epoll_set_fd(set);
	fd = epfd < 0 ? -1 : event_fd_open();
	if (fd < 0)
		return;
	event_fd_signal(fd);
	atomic_store(&set->wake_until_ns, clock_monotonic_ns() + WAKE_NS);
	if (fd_internal_adopt(fd, &set->wake_fd) != 0)
		inside_close(fd);
	else if (real.epoll_ctl(epfd, EPOLL_CTL_ADD,
				atomic_load(&set->wake_fd), &event) != 0)
		epoll_end_wake(set);
}

int epoll_take_wake(struct epoll_set *set, struct epoll_event *events, int n)
{
	int rest = 0;

	for (int i = 0; i < n; i++)
		if (events[i].data.u64 != wake_data(set))
			events[rest++] = events[i];
	if (rest < n && (!atomic_load(mux_sleepers_at(epoll_set_number(set))) ||
			 clock_monotonic_ns() >=
				 atomic_load(&set->wake_until_ns)))
		epoll_end_wake(set);
	return rest;
}

void epoll_wake_forked(void)
{
	/* A process with one thread has counted nobody, and then a fork need not
	 * touch four pages. */
	for (int i = 0; i < MUX_SLEEPER_PLACES && !__libc_single_threaded; i++)
		atomic_store(&mux_sleepers[i].cnt, 0);
}
