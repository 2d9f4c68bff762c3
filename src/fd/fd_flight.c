/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The objects that are on their way through local sockets. */
#include "config.h"

#include "fd/fd_flight.h"

#include "base/lock.h"
#include "fd/fd_table.h"

enum { FLIGHTS_MAX = 64 };

static struct spinlock lock = SPINLOCK_INIT(LOCK_RANK_FD_TABLE);
/* A ring: the next place holds the oldest flight, or nothing. */
static struct fd_object *flights[FLIGHTS_MAX] GUARDED_BY(lock);
static unsigned next_place GUARDED_BY(lock);

void fd_flight_start(int fd)
{
	struct fd_object *obj = fd_table_get(fd), *oldest;

	if (!obj)
		return;
	fd_object_add_fd(obj);
	spinlock_acquire(&lock);
	oldest = flights[next_place];
	flights[next_place] = obj;
	next_place = (next_place + 1) % FLIGHTS_MAX;
	spinlock_release(&lock);
	if (oldest)
		fd_object_drop_fd(oldest, -1);
	fd_object_put(obj);
}

void fd_flight_end(struct fd_object *obj)
{
	bool was_in_flight = false;

	spinlock_acquire(&lock);
	for (int i = 0; i < FLIGHTS_MAX && !was_in_flight; i++) {
		if (flights[i] != obj)
			continue;
		flights[i] = NULL;
		was_in_flight = true;
	}
	spinlock_release(&lock);
	if (was_in_flight)
		fd_object_drop_fd(obj, -1);
}

ALONE_AFTER_FORK void fd_flight_forked(void)
{
	spinlock_init(&lock, LOCK_RANK_FD_TABLE);
	for (int i = 0; i < FLIGHTS_MAX; i++)
		if (flights[i]) /* or its page stays the parent's */
			flights[i] = NULL;
}
