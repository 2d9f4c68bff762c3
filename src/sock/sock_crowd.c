/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who spins where (sock_crowd.h). */
#include "config.h"

#include "sock/sock_crowd.h"

#include <sched.h>
#include <sys/single_threaded.h>

#include "base/clock.h"

struct sock_crowd_place sock_crowd[SOCK_CROWD_PLACES];

/* Of the thread that asks. -1, where Linux does not say, is a place as well. */
static int place_here(void)
{
	return (int)((unsigned)sched_getcpu() % SOCK_CROWD_PLACES);
}

static void move_to(struct sock_spinner *spinner, int place)
{
	sock_crowd_leave(spinner);
	atomic_fetch_add_explicit(&sock_crowd[place].cnt, 1,
				  memory_order_relaxed);
	spinner->place = place;
}

bool sock_crowd_is_here(struct sock_spinner *spinner)
{
	int place = place_here();

	if (UNLIKELY(place != spinner->place))
		move_to(spinner, place);
	return atomic_load_explicit(&sock_crowd[place].cnt,
				    memory_order_relaxed) > 1;
}

void sock_crowd_leave(struct sock_spinner *spinner)
{
	spinner->looked_ns = 0;
	if (spinner->place < 0)
		return;
	atomic_fetch_sub_explicit(&sock_crowd[spinner->place].cnt, 1,
				  memory_order_relaxed);
	spinner->place = -1;
}

/* A look takes microseconds, and whoever wakes up to do little gives the processor back
 * soon; the scheduler's time slices are longer. */
#define OFF_NS NS_PER_MS
#define WANTED_NS (20 * NS_PER_MS)

bool sock_crowd_is_wanted(struct sock_spinner *spinner, uint64_t now_ns)
{
	bool was_off = spinner->looked_ns && now_ns - spinner->looked_ns >= OFF_NS;

	/* it may have been moved to another one because of that */
	if (UNLIKELY(was_off && spinner->place >= 0))
		atomic_store_explicit(&sock_crowd[spinner->place].wanted_until_ns,
				      now_ns + WANTED_NS, memory_order_relaxed);
	spinner->looked_ns = now_ns;
	return now_ns < atomic_load_explicit(
				&sock_crowd[place_here()].wanted_until_ns,
				memory_order_relaxed);
}

void sock_crowd_forked(void)
{
	for (int i = 0; i < SOCK_CROWD_PLACES && !__libc_single_threaded; i++)
		atomic_store(&sock_crowd[i].cnt, 0);
}
