/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Visits and the closes that wait for them (fd_visit.h). */
#include "config.h"

#include "fd/fd_visit.h"

#include "base/lock.h"
#include "fd/fd_table.h"

static struct spinlock visits_lock = SPINLOCK_INIT(LOCK_RANK_FD_VISITS);
static struct list visits GUARDED_BY(visits_lock) = LIST_INIT(visits);
/* How many there are, so that a close without visits takes no lock. */
static _Atomic unsigned visit_cnt;

static void begin(struct fd_visit *visit, int fd, const struct fd_object *obj)
{
	visit->fd = fd;
	visit->obj = obj;
	visit->visitor = &os_thread;
	spinlock_acquire(&visits_lock);
	list_push_back(&visits, &visit->link);
	atomic_fetch_add(&visit_cnt, 1);
	spinlock_release(&visits_lock);
}

void fd_visit_end(struct fd_visit *visit)
{
	spinlock_acquire(&visits_lock);
	list_remove(&visit->link);
	atomic_fetch_sub(&visit_cnt, 1);
	spinlock_release(&visits_lock);
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

static bool visit_named(struct fd_object *named, int fd,
			bool (*each)(struct fd_object *obj, int fd))
{
	const struct fd_ops *ops = named->ops;
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_visit own;
	struct fd_object *obj;
	bool result;

	begin(&own, fd, named);
	/* All threads see this load, the exchange and the closer's load in one
	 * order. So either we see that the fd is closed, or the thread that closes
	 * it sees us. */
	obj = atomic_load(entry) == named ? fd_table_get_at(entry) : NULL;
	result = obj && obj == named && obj->ops == ops && each(obj, fd);
	fd_object_put(obj);
	fd_visit_end(&own);
	return result;
}

/* The outer visit has seen the object at its number, and a close waits for its end. */
static bool is_within_another(const struct fd_visit *visit)
{
	const struct fd_visit *other;
	bool result = false;

	spinlock_acquire(&visits_lock);
	LIST_FOR_EACH(other, &visits, link)
		result |= other != visit && other->fd == visit->fd &&
			  other->obj == visit->obj && other->visitor == visit->visitor;
	spinlock_release(&visits_lock);
	return result;
}

bool fd_visit_begin(struct fd_visit *visit, int fd, const struct fd_object *obj)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	if (!entry)
		return false;
	begin(visit, fd, obj);
	/* in the order of visit_named() */
	if (atomic_load(entry) == obj || is_within_another(visit))
		return true;
	fd_visit_end(visit);
	return false;
}

bool fd_visit_at(int fd, const struct fd_object *obj,
		 bool (*each)(struct fd_object *obj, int fd))
{
	struct fd_object *named = named_by(fd, NULL);

	return named && (!obj || named == obj) && visit_named(named, fd, each);
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
		result |= named && visit_named(named, fd, each);
	}
	return result;
}

static bool is_visited_by_others(int fd)
{
	struct fd_visit *other;
	bool result = false;

	if (!atomic_load(&visit_cnt))
		return false;
	spinlock_acquire(&visits_lock);
	LIST_FOR_EACH(other, &visits, link)
		result |= other->fd == fd && other->visitor != &os_thread;
	spinlock_release(&visits_lock);
	return result;
}

void fd_visit_await_end(int fd)
{
	for (unsigned spins = 0; is_visited_by_others(fd);)
		lock_spin(&spins, LOCK_SPINS);
}

void fd_visit_forked(void)
{
	spinlock_init(&visits_lock, LOCK_RANK_FD_VISITS);
	list_init(&visits);
	atomic_store(&visit_cnt, 0);
}
