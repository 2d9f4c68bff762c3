/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sparse table from fds to objects, and the objects' reference counts. */
#include "config.h"

#include "fd/fd_table.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "fd/fd_change.h"
#include "fd/fd_visit.h"
#include "fd/fd_wait.h"
#include "os/thread.h"

_Atomic(struct fd_root *) fd_table_root;
struct fd_leaf fd_table_first;

/* All objects that can be recognised by inode. */
static struct spinlock inode_lock = SPINLOCK_INIT(LOCK_RANK_FD_TABLE);
static struct list inode_objects GUARDED_BY(inode_lock) =
	LIST_INIT(inode_objects);

/* Pages that read as zero until touched, or NULL. Not malloc: this runs inside
 * calls that an allocator makes. */
static void *reserve(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

/* Publishes `size` fresh bytes in `slot`. When another thread was faster, its bytes
 * stay. Returns what is there afterwards. */
static void *publish(_Atomic(void *) *slot, size_t size)
{
	void *there = atomic_load_explicit(slot, memory_order_acquire);
	void *fresh;

	if (there)
		return there;
	fresh = reserve(size);
	if (!fresh)
		return NULL;
	if (atomic_compare_exchange_strong(slot, &there, fresh))
		return fresh;
	munmap(fresh, size);
	return there;
}

/* A bit for each word of fd_root.used that is not 0. So a walk through the table,
 * which every fork does twice, looks at one page of memory and at those with
 * entries, and touches no others. */
enum { USED_WORDS = FD_TABLE_LIMIT / FD_PAGE_SIZE / 64 };
static _Atomic uint64_t used_words[USED_WORDS / 64];

/* Called before the entry is stored, so that a walk does not miss it: whoever sees the page's
 * bit, and does not set it, finds the word's set as well. */
static void mark_used(struct fd_root *root, int fd)
{
	unsigned page = (unsigned)fd / FD_PAGE_SIZE, word = page / 64;
	uint64_t bit = UINT64_C(1) << page % 64;

	if (atomic_load_explicit(&root->used[word], memory_order_acquire) & bit)
		return;
	atomic_fetch_or(&used_words[word / 64], UINT64_C(1) << word % 64);
	atomic_fetch_or(&root->used[word], bit);
}

/* The first bit from `at` on among `cnt`, or -1. */
static int next_bit(const _Atomic uint64_t *bits, unsigned at, unsigned cnt)
{
	while (at < cnt) {
		uint64_t rest = atomic_load(&bits[at / 64]) >> at % 64;

		if (rest)
			return (int)at + __builtin_ctzll(rest);
		at = (at | 63) + 1;
	}
	return -1;
}

/* The next page, from this one on, that may have entries, or -1. */
static int next_page(const struct fd_root *root, unsigned page)
{
	int word = next_bit(used_words, page / 64, USED_WORDS), found;

	while (word >= 0) {
		if ((unsigned)word > page / 64)
			page = (unsigned)word * 64;
		found = next_bit(root->used, page, (unsigned)(word + 1) * 64);
		if (found >= 0)
			return found;
		word = next_bit(used_words, (unsigned)word + 1, USED_WORDS);
	}
	return -1;
}

static _Atomic(struct fd_object *) *make_entry(int fd)
{
	struct fd_root *root;
	struct fd_leaf *leaf;

	root = publish((_Atomic(void *) *)&fd_table_root, sizeof(*root));
	if (!root)
		return NULL;
	atomic_store(&root->leaves[0], &fd_table_first);
	leaf = publish((_Atomic(void *) *)&root->leaves[fd >> FD_LEAF_BITS],
		       sizeof(*leaf));
	if (leaf)
		mark_used(root, fd);
	return leaf ? &leaf->entries[fd & (FD_LEAF_SIZE - 1)] : NULL;
}

struct fd_object *fd_object_hold(struct fd_object *obj)
{
	int refs = atomic_fetch_add_explicit(&obj->refs, 1,
					     memory_order_relaxed);

	INVARIANT(refs > 0, "only who has a reference makes another");
	(void)refs;
	return obj;
}

void fd_object_init(struct fd_object *obj, const struct fd_ops *ops,
		    ino_t inode)
{
	atomic_store_explicit(&obj->ops, ops, memory_order_relaxed);
	atomic_store_explicit(&obj->ready, NULL, memory_order_relaxed);
	obj->inode = inode;
	list_init(&obj->by_inode);
	atomic_store_explicit(&obj->lingers, false, memory_order_relaxed);
	atomic_store_explicit(&obj->fd_cnt, 0, memory_order_relaxed);
	TSAN_RELEASED(obj);
	/* release: a look-up that gets a reference sees the rest */
	atomic_store_explicit(&obj->refs, 1, memory_order_release);
}

/* Before the table names it, and after it does no more. */
static void count_number(const struct fd_object *obj, int change)
{
	_Atomic uint64_t *numbers = obj->ops->numbers;

	if (numbers)
		atomic_fetch_add(numbers, (UINT64_C(1) << 32) + (uint64_t)change);
}

/* An object is found by its inode while an fd names it. The count and the list change
 * together: while one thread closes the last number, another may make a new one. */
void fd_object_add_fd(struct fd_object *obj)
{
	fd_object_hold(obj);
	count_number(obj, 1);
	spinlock_acquire(&inode_lock);
	if (atomic_fetch_add(&obj->fd_cnt, 1) == 0 && obj->inode)
		list_push_back(&inode_objects, &obj->by_inode);
	spinlock_release(&inode_lock);
}

/* Returns whether it was the last one. */
static bool drop_number(struct fd_object *obj)
{
	bool is_last;

	spinlock_acquire(&inode_lock);
	is_last = atomic_fetch_sub(&obj->fd_cnt, 1) == 1;
	if (is_last)
		list_remove(&obj->by_inode);
	spinlock_release(&inode_lock);
	count_number(obj, -1);
	return is_last;
}

void fd_object_drop_fd(struct fd_object *obj, int fd)
{
	if (fd >= 0)
		fd_visit_await_end(fd);
	if (drop_number(obj))
		obj->ops->last_close(obj, fd);
	fd_object_put(obj);
}

void fd_object_put_lingering(struct fd_object *obj)
{
	if (obj && fd_object_lingers(obj) && obj->ops->linger(obj) == FD_ABANDONED)
		return;
	fd_object_put(obj);
}

struct fd_object *fd_table_get_settled(const _Atomic(struct fd_object *) *entry)
{
	struct fd_object *obj = fd_table_get_at(entry);

	while (UNLIKELY(obj && obj->ops->is_change)) {
		fd_change_await(obj);
		obj = fd_table_get_at(entry);
	}
	return obj;
}

struct fd_object *fd_table_get(int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry ? fd_table_get_settled(entry) : NULL;
}

static void tell_before_close(const _Atomic(struct fd_object *) *entry, int fd)
{
	struct fd_object *obj = fd_table_get_at(entry);

	if (obj)
		obj->ops->before_close(obj, fd);
	fd_object_put(obj);
}

/* The object has this number as well, which the caller is about to enter. */
static int add_number(int fd, struct fd_object *obj,
		      _Atomic(struct fd_object *) **entry_out)
{
	if ((unsigned)fd >= FD_TABLE_LIMIT)
		return -EBADF;
	*entry_out = make_entry(fd);
	if (!*entry_out)
		return -ENOMEM;
	fd_object_add_fd(obj);
	return 0;
}

int fd_table_install(int fd, struct fd_object *obj)
{
	_Atomic(struct fd_object *) *entry;
	struct fd_object *old;
	int err = add_number(fd, obj, &entry);

	if (err)
		return err;
	tell_before_close(entry, fd);
	old = atomic_exchange(entry, obj);
	if (old)
		fd_object_drop_fd(old, fd);
	return 0;
}

int fd_table_swap(int fd, struct fd_object *obj, struct fd_object **old_out)
{
	_Atomic(struct fd_object *) *entry;
	int err = add_number(fd, obj, &entry);

	if (err)
		return err;
	*old_out = atomic_exchange(entry, obj);
	return 0;
}

int fd_table_exchange(int fd, struct fd_object *old, struct fd_object *obj)
{
	_Atomic(struct fd_object *) *entry;
	int err = add_number(fd, obj, &entry);

	if (err)
		return err;
	if (atomic_compare_exchange_strong(entry, &old, obj))
		return 0;
	/* no fd has ever named it, so nothing is closed */
	(void)drop_number(obj);
	fd_object_put(obj);
	return -EEXIST;
}

bool fd_table_remove(int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	struct fd_object *old;

	if (!entry)
		return false;
	tell_before_close(entry, fd);
	old = atomic_exchange(entry, NULL);
	if (old)
		fd_object_drop_fd(old, fd);
	return old != NULL;
}

void fd_table_forget_named(int fd)
{
	int saved_errno = errno;
	bool is_outside = !os_is_inside();

	if (is_outside)
		os_enter();
	(void)fd_table_remove(fd);
	if (is_outside)
		os_leave();
	errno = saved_errno;
}

/* The first fd in first..last, which are on one page, that names an object, or -1. */
static int next_on_page(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last; fd++)
		if (fd_table_has((int)fd))
			return (int)fd;
	return -1;
}

/* The next fd at or after `fd` and up to `last` that names an object, skipping
 * what was never used; -1 when there is none. */
static int next_used(unsigned fd, unsigned last)
{
	struct fd_root *root = atomic_load(&fd_table_root);
	int page, found;

	last = MIN(last, (unsigned)FD_TABLE_LIMIT - 1);
	while (root && fd <= last) {
		page = next_page(root, fd / FD_PAGE_SIZE);
		if (page < 0)
			break;
		fd = MAX(fd, (unsigned)page * FD_PAGE_SIZE);
		found = next_on_page(fd, MIN(last, fd | (FD_PAGE_SIZE - 1)));
		if (found >= 0)
			return found;
		fd = (fd | (FD_PAGE_SIZE - 1)) + 1;
	}
	return -1;
}

int fd_table_next(unsigned first)
{
	return next_used(first, FD_TABLE_LIMIT - 1);
}

/* Returns what is not kept. */
static struct fd_object *keep_lingering(struct fd_lingering *lingering,
					struct fd_object *obj)
{
	if (!fd_object_lingers(obj) || lingering->cnt == ARRAY_LEN(lingering->objs))
		return obj;
	lingering->objs[lingering->cnt++] = obj;
	return NULL;
}

void fd_table_remove_range(unsigned first, unsigned last, struct fd_lingering *lingering)
{
	for (int fd = next_used(first, last); fd >= 0;
	     fd = next_used((unsigned)fd + 1, last)) {
		struct fd_object *obj = fd_table_get(fd);

		if (obj && !obj->ops->is_internal) {
			fd_table_remove(fd);
			obj = keep_lingering(lingering, obj);
		}
		fd_object_put_lingering(obj);
	}
}

void fd_table_end_lingering(struct fd_lingering *lingering)
{
	while (lingering->cnt)
		fd_object_put_lingering(lingering->objs[--lingering->cnt]);
}

bool fd_table_take(int fd, struct fd_object *obj)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);

	return entry && atomic_compare_exchange_strong(entry, &obj, NULL);
}

int fd_table_next_internal(unsigned first, unsigned last)
{
	int fd = next_used(first, last);

	while (fd >= 0 && !fd_table_is_internal(fd))
		fd = next_used((unsigned)fd + 1, last);
	return fd;
}

static _Atomic bool is_closed;

void fd_table_close(void)
{
	atomic_store(&is_closed, true);
}

bool fd_table_is_closed(void)
{
	return atomic_load_explicit(&is_closed, memory_order_relaxed);
}

struct fd_object *fd_table_find_inode(ino_t inode)
{
	struct fd_object *obj, *found = NULL;

	spinlock_acquire(&inode_lock);
	LIST_FOR_EACH(obj, &inode_objects, by_inode) {
		if (obj->inode == inode && fd_object_try_hold(obj)) {
			found = obj;
			break;
		}
	}
	spinlock_release(&inode_lock);
	return found;
}

static void name_heir(int fd, struct fd_object *heir)
{
	fd_object_add_fd(heir);
	atomic_store(fd_table_entry(fd), heir);
	fd_object_put(heir);
}

void fd_table_forked(void)
{
	struct fd_root *root = atomic_load(&fd_table_root);

	/* Another thread of the parent may have been inside. */
	spinlock_init(&inode_lock, LOCK_RANK_FD_TABLE);
	list_init(&inode_objects);
	if (!root)
		return;
	for (int fd = next_used(0, FD_TABLE_LIMIT - 1); fd >= 0;
	     fd = next_used((unsigned)fd + 1, FD_TABLE_LIMIT - 1)) {
		struct fd_object *obj =
			atomic_exchange(fd_table_entry(fd), NULL);
		struct fd_object *heir = obj->ops->heir(obj, fd);

		count_number(obj, -1);
		if (heir)
			name_heir(fd, heir);

		/* The counts are the parent's and mean nothing here. The object is
		 * told once, with its last fd. Nothing is written to most of them, as
		 * that would cost a page of memory. */
		if (atomic_load(&obj->fd_cnt) == 1 ||
		    atomic_fetch_sub(&obj->fd_cnt, 1) == 1)
			obj->ops->forked(obj);
	}
}
