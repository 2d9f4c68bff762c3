/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Visits and the closes that wait for them (fd_visit.h). */
#include "config.h"

#include "fd/fd_visit.h"

#include "base/lock.h"
#include "fd/fd_table.h"
#include "os/inside.h"

/* The objects that are being visited. Each thread that visits needs a place. If
 * there are more threads than places, closes do not wait for the visits of the
 * others. */
enum { VISITORS_MAX = 4 };
static _Atomic(struct fd_object *) visited[VISITORS_MAX];

static _Atomic(struct fd_object *) *begin(struct fd_object *obj)
{
	for (int i = 0; i < VISITORS_MAX; i++) {
		struct fd_object *nobody = NULL;

		if (atomic_compare_exchange_strong(&visited[i], &nobody, obj))
			return &visited[i];
	}
	return NULL;
}

static bool visit(const struct fd_ops *ops, int fd,
		  bool (*each)(struct fd_object *obj, int fd))
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd), *place;
	struct fd_object *named = entry ? atomic_load(entry) : NULL, *obj;
	bool result;

	/* A look at one that is gone does no harm. After a fork, a reference would cost a
	 * page of memory. */
	if (!named || (ops && named->ops != ops))
		return false;
	place = begin(named);
	/* All threads see this load, the exchange and the closer's load in one
	 * order. So either we see that the fd is closed, or the thread that closes
	 * it sees us. */
	obj = atomic_load(entry) == named ? fd_table_get_at(entry) : NULL;
	result = obj && obj == named && (!ops || obj->ops == ops) &&
		 each(obj, fd);
	fd_object_put(obj);
	if (place)
		atomic_store(place, NULL);
	return result;
}

bool fd_visit_at(int fd, bool (*each)(struct fd_object *obj, int fd))
{
	return visit(NULL, fd, each);
}

bool fd_visit(const struct fd_ops *ops,
	      bool (*each)(struct fd_object *obj, int fd))
{
	bool result = false;

	for (int fd = fd_table_next(0); fd >= 0;
	     fd = fd_table_next((unsigned)fd + 1))
		result |= visit(ops, fd, each);
	return result;
}

void fd_visit_await_end(const struct fd_object *obj)
{
	for (int i = 0; i < VISITORS_MAX; i++)
		for (unsigned spins = 0; atomic_load(&visited[i]) == obj;)
			lock_spin(&spins, LOCK_SPINS);
}

void fd_visit_forked(void)
{
	for (int i = 0; i < VISITORS_MAX; i++)
		atomic_store(&visited[i], NULL);
}
