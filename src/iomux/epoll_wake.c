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
#include "base/lock.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/event_fd.h"
#include "os/inside.h"

struct mux_sleepers mux_sleepers[MUX_SLEEPER_PLACES];

/* After this time, a count belongs to another set or to a thread that has jumped
 * out of its wait. Until then, waits for the set do not sleep. */
#define WAKE_NS NS_PER_SEC

/* of these fds in whichever set */
const char mux_wake_mark;

static uint64_t wake_word(void)
{
	return (uint64_t)(uintptr_t)&mux_wake_mark;
}

/* Fds are put into sets, and taken out again, by one thread at a time. */
static struct mutex waking = MUTEX_INIT(LOCK_RANK_EPOLL_WAKE);

/* this is its last fd, so the kernel takes it out of the set */
static void end_locked(struct epoll_set *set) REQUIRES(waking)
{
	INVARIANT(lock_witness_is_mine(&waking.witness), "ended without the lock");
	fd_internal_close(&set->wake_fd);
}

void epoll_end_wake(struct epoll_set *set)
{
	mutex_acquire(&waking);
	end_locked(set);
	mutex_release(&waking);
}

static void add_to(struct epoll_set *set, int epfd) REQUIRES(waking)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = wake_word() };
	int fd = event_fd_open();

	INVARIANT(lock_witness_is_mine(&waking.witness), "woken without the lock");
	if (fd < 0)
		return;
	event_fd_signal(fd);
	if (fd_internal_adopt(fd, &set->wake_fd) != 0)
		inside_close(fd);
	else if (real.epoll_ctl(epfd, EPOLL_CTL_ADD,
				atomic_load(&set->wake_fd), &event) != 0)
		end_locked(set);
}

void epoll_wake_sleepers(struct epoll_set *set)
{
	int epfd;

	/* They counted themselves before they looked at live_cnt. */
	if (!atomic_load(mux_sleepers_at(epoll_set_number(set))))
		return;
	mutex_acquire(&waking);
	epfd = epoll_set_begin_use(set, epoll_set_number(set));
	/* The one that is there stays for those who have come since. */
	atomic_store(&set->wake_until_ns, clock_monotonic_ns() + WAKE_NS);
	if (epfd >= 0 && atomic_load(&set->wake_fd) < 0)
		add_to(set, epfd);
	epoll_set_end_use(set, epfd);
	mutex_release(&waking);
}

static void end_if_due(struct epoll_set *set)
{
	mutex_acquire(&waking);
	if (!atomic_load(mux_sleepers_at(epoll_set_number(set))) ||
	    clock_monotonic_ns() >= atomic_load(&set->wake_until_ns))
		end_locked(set);
	mutex_release(&waking);
}

int epoll_take_wake(struct epoll_set *set, struct epoll_event *events, int n)
{
	int rest = 0;

	for (int i = 0; i < n; i++)
		if (events[i].data.u64 != wake_word())
			events[rest++] = events[i];
	if (rest < n && set)
		end_if_due(set);
	return rest;
}

void epoll_wake_forked(void)
{
	/* another thread of the parent may have had it */
	mutex_init(&waking, LOCK_RANK_EPOLL_WAKE);
	/* A process with one thread has counted nobody, and then a fork need not
	 * touch four pages. */
	for (int i = 0; i < MUX_SLEEPER_PLACES && !__libc_single_threaded; i++)
		atomic_store(&mux_sleepers[i].cnt, 0);
}
