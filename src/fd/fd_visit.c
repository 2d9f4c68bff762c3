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

/* What the fd names, without a reference, which after a fork would cost a page of memory.
 * A look at one that is gone does no harm. */
static struct fd_object *named_by(int fd, const struct fd_ops *ops)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *named = entry ? atomic_load(entry) : NULL;

	return named && (!ops || named->ops == ops) ? named : NULL;
}

static bool visit(struct fd_object *named, int fd,
		  bool (*each)(struct fd_object *obj, int fd))
{
	const struct fd_ops *ops = named->ops;
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd), *place;
	struct fd_object *obj;
	bool result;

	place = begin(named);
	/* All threads see this load, the exchange and the closer's load in one
	 * order. So either we see that the fd is closed, or the thread that closes
	 * it sees us. */
	obj = atomic_load(entry) == named ? fd_table_get_at(entry) : NULL;
	result = obj && obj == named && obj->ops == ops && each(obj, fd);
	fd_object_put(obj);
	if (place)
		atomic_store(place, NULL);
	return result;
}

bool fd_visit_at(int fd, const struct fd_object *obj,
		 bool (*each)(struct fd_object *obj, int fd))
{
	struct fd_object *named = named_by(fd, NULL);

	return named && (!obj || named == obj) && visit(named, fd, each);
}

bool fd_visit(const struct fd_ops *ops,
	      bool (*each)(struct fd_object *obj, int fd))
{
	_Atomic uint64_t *numbers = ops ? ops->numbers : NULL;
	uint64_t first = numbers ? atomic_load(numbers) : 0;
	uint32_t seen = 0;
	bool result = false;

	/* While nothing comes or goes, those that were counted first are all. */
	for (int fd = fd_table_next(0);
	     fd >= 0 && !(numbers && seen == (uint32_t)first &&
			  atomic_load(numbers) == first);
	     fd = fd_table_next((unsigned)fd + 1)) {
		struct fd_object *named = named_by(fd, ops);

		seen += named != NULL;
		result |= named && visit(named, fd, each);
	}
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
