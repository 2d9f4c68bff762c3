/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Visits and the closes that wait for them (fd_visit.h). */
#include "config.h"

#include "fd/fd_visit.h"

#include "base/lock.h"
#include "fd/fd_table.h"
#include "os/thread.h"

/* The numbers by which objects are being visited. Each thread that visits needs a place.
 * If there are more threads than places, closes do not wait for the visits of the
 * others. */
enum { VISITORS_MAX = 4 };
static struct place {
	/* 0: the place is free; TAKEN: it does not say yet by whom it is used */
	_Atomic uint32_t number; /* the fd, and 1 */
	/* whose number this is */
	const struct os_thread *_Atomic visitor;
} places[VISITORS_MAX];

#define TAKEN UINT32_MAX

static struct place *begin(int fd)
{
	for (int i = 0; i < VISITORS_MAX; i++) {
		uint32_t nobody = 0;

		if (!atomic_compare_exchange_strong(&places[i].number, &nobody,
						    TAKEN))
			continue;
		atomic_store(&places[i].visitor, &os_thread);
		atomic_store(&places[i].number, (uint32_t)fd + 1);
		return &places[i];
	}
	return NULL;
}

/* What the fd names, if that may be visited, without a reference, which after a fork would
 * cost a page of memory. A look at one that is gone does no harm. */
static struct fd_object *named_by(int fd, const struct fd_ops *ops)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *named = entry ? atomic_load(entry) : NULL;
	const struct fd_ops *its = named ? named->ops : NULL;

	return its && (ops ? its == ops : !its->is_internal) ? named : NULL;
}

static bool visit(struct fd_object *named, int fd,
		  bool (*each)(struct fd_object *obj, int fd))
{
	const struct fd_ops *ops = named->ops;
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct place *place = begin(fd);
	struct fd_object *obj;
	bool result;

	/* All threads see this load, the exchange and the closer's load in one
	 * order. So either we see that the fd is closed, or the thread that closes
	 * it sees us. */
	obj = atomic_load(entry) == named ? fd_table_get_at(entry) : NULL;
	result = obj && obj == named && obj->ops == ops && each(obj, fd);
	fd_object_put(obj);
	if (place)
		atomic_store(&place->number, 0);
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

void fd_visit_await_end(int fd)
{
	for (int i = 0; i < VISITORS_MAX; i++)
		for (unsigned spins = 0;
		     atomic_load(&places[i].number) == (uint32_t)fd + 1 &&
		     atomic_load(&places[i].visitor) != &os_thread;)
			lock_spin(&spins, LOCK_SPINS);
}

void fd_visit_forked(void)
{
	for (int i = 0; i < VISITORS_MAX; i++)
		atomic_store(&places[i].number, 0);
}
