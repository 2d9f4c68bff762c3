/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* epoll_wait: what our queues have and what the kernel has become one list of events
 * (epoll_set.h). */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "fd/fd_pool.h"
#include "fd/fd_quick.h"
#include "fd/fd_table.h"
#include "iomux/epoll_ready.h"
#include "iomux/epoll_wake.h"
#include "os/file.h"
#include "os/inside.h"
#include "sock/kin.h"
#include "sock/user_msg.h"

static struct fd_pool calls = FD_POOL_INIT(struct epoll_call);

static struct epoll_call *call_of(struct mux_call *call)
{
	return CONTAINER_OF(call, struct epoll_call, call);
}

/* -- the kernel's events --------------------------------------------------------- */

/* How the events of a look lie: ours first, then the kernel's that stay. */
struct batch {
	struct epoll_set *set;
	struct epoll_event *events;
	uint64_t look;
	int cnt;
	/* -- when the kernel has been asked -- */
	int epfd; /* names the set */
	/* what its count (change_cnt) was before */
	uint32_t asked_at;
};

static inline void begin_batch(struct batch *batch, struct epoll_set *set,
			       struct epoll_event *events)
{
	batch->set = set;
	batch->events = events;
	batch->look = atomic_fetch_add(&set->looks, 1) + 1;
	batch->cnt = 0;
}

/* Whether the event may be of a time before the kernel's side of the item was changed. */
static bool is_changed(const struct batch *batch, const struct epoll_item *item)
{
	return UNLIKELY((int32_t)(item->changed_at - batch->asked_at) > 0);
}

/* To a program, fds with the same data word look the same. So if several members have
 * the word, the one that the kernel means is one that is ready there. */
static bool is_ready_in_kernel(const struct epoll_item *item)
{
	struct pollfd fd = {
		.fd = item->fd,
		/* by the same names */
		.events = (short)(item->event.events & SHRT_MAX),
	};

	return inside_poll(&fd, 1) > 0;
}

enum verdict {
	REPORT, /* it is news */
	MERGE,  /* it belongs to the event that the look has of the item */
	DROP,   /* the program has heard of it */
};

/* The event that the look has of the item already, or NULL. A later look may have reported
 * the item as well, and have taken its note. */
static struct epoll_event *place_of(const struct batch *batch,
				    const struct epoll_item *item)
{
	if (item->look == batch->look)
		return item->place;
	if (UNLIKELY(item->look > batch->look))
		for (int i = 0; i < batch->cnt; i++)
			if (batch->events[i].data.u64 == item->event.data.u64)
				return &batch->events[i];
	return NULL;
}

/* A one-shot item reports once, whoever says so first. If the kernel's side was armed after
 * this event, it will tell once more, and that is not news then. */
static enum verdict judge_one_shot(const struct batch *batch, struct epoll_item *item,
				   bool has_place)
{
	enum verdict verdict = DROP;

	if (!is_changed(batch, item)) {
		item->is_armed_in_kernel = false;
		list_remove(&item->in_spent);
	}
	if (item->wanted)
		verdict = REPORT;
	else if (has_place)
		verdict = MERGE;
	return verdict;
}

static enum verdict judge(const struct batch *batch, struct epoll_item *item,
			  uint32_t events, bool has_place)
{
	bool was_said = item->is_out_said;

	if (item->event.events & EPOLLONESHOT)
		return judge_one_shot(batch, item, has_place);
	item->is_out_due = false;
	item->is_out_said = false;
	if (has_place)
		return MERGE;
	return item->event.events & EPOLLET && was_said &&
			       !(events & ~EPOLL_OUT_NAMES) ?
		       DROP :
		       REPORT;
}

enum meaning {
	NOT_MEANT,
	/* it was so when the kernel told, and is not any more; or it has not been so */
	MAYBE_MEANT,
	MEANT,
};

/* Whether the kernel's event is this item's. One whose number is another file's cannot be
 * asked. */
static enum meaning meaning_of(const struct batch *batch, const struct epoll_item *item)
{
	bool was_changed = is_changed(batch, item);

	if (UNLIKELY(item->is_hidden))
		return was_changed ? MAYBE_MEANT : NOT_MEANT;
	if (!(item->event.events & EPOLLONESHOT))
		return MEANT;
	if (!item->is_armed_in_kernel && !was_changed)
		return NOT_MEANT;
	return !epoll_item_has_number(item) || is_ready_in_kernel(item) ? MEANT :
									  MAYBE_MEANT;
}

/* What the kernel's set has with a data word. */
struct others {
	uint64_t word;
	int but; /* this fd */
	bool are_there;
};

static void look_for_others(void *ctx, const char *line)
{
	struct others *others = ctx;
	uint64_t word;
	int fd;

	if (sscanf(line, "tfd: %d events: %*x data: %" SCNx64, &fd, &word) == 2)
		others->are_there |= word == others->word && fd != others->but;
}

/* Fds that have no items may have any word as well. */
static COLD bool has_word_alone(const struct batch *batch, const struct epoll_item *item)
{
	struct others others = {
		.word = item->event.data.u64,
		.but = item->is_hidden ? -1 : item->fd,
	};
	char path[48];

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", batch->epfd);
	file_for_lines(path, look_for_others, &others);
	return !others.are_there;
}

static struct epoll_item *item_meant(const struct batch *batch, uint64_t word)
{
	struct epoll_item *item = epoll_item_by_word(batch->set, word);
	struct epoll_item *maybe = NULL;

	for (; item; item = epoll_item_next_by_word(item)) {
		enum meaning meaning = meaning_of(batch, item);

		if (LIKELY(meaning == MEANT))
			return item;
		if (meaning == MAYBE_MEANT && !maybe)
			maybe = item;
	}
	return UNLIKELY(maybe) && has_word_alone(batch, maybe) ? maybe : NULL;
}

/* Puts an event of the kernel where it belongs. */
static void sort_in(struct batch *batch, struct epoll_event event)
{
	struct epoll_item *item = item_meant(batch, event.data.u64);
	enum verdict verdict = REPORT;
	struct epoll_event *place = NULL;

	if (item) {
		spinlock_acquire(&batch->set->lock);
		/* its member may have been closed meanwhile */
		if (!item->is_dead) {
			if (event.events & (EPOLLIN | EPOLLERR))
				epoll_item_tell_twins(item, event.events);
			place = place_of(batch, item);
			verdict = judge(batch, item, event.events, place);
		}
		/* one that was armed meanwhile may have a place all the same */
		if (verdict == REPORT && !item->is_dead)
			event.events |= epoll_item_join_report(
				item, batch->look,
				place ? place : &batch->events[batch->cnt]);
		spinlock_release(&batch->set->lock);
	}
	if (verdict == REPORT && !place)
		batch->events[batch->cnt++] = event;
	else if (verdict != DROP)
		place->events |= event.events;
}

/* `from` may be in the batch, where there is room. */
static void sort_all_in(struct batch *batch, const struct epoll_event *from, int n)
{
	mutex_acquire_unbarred(&batch->set->changes);
	for (int i = 0; i < n; i++)
		sort_in(batch, from[i]);
	mutex_release_unbarred(&batch->set->changes);
}

/* Adds the kernel's events, at most `room`. Negative: an error. If nothing is left of as many
 * as there was room for, others may stand behind them. What was told before does not come
 * again; the fd that wakes comes last then. */
static int add_kernels(struct epoll_query *query, struct batch *batch,
		       int room)
{
	struct epoll_event *from = batch->events + batch->cnt;
	int n, rest, wakes = 0;

	if (UNLIKELY(query->epfd < 0 || !room))
		return 0;
	batch->epfd = query->epfd;
	do {
		batch->asked_at = atomic_load(&query->set->change_cnt);
		n = (int)inside_epoll_wait(query->epfd, from, room);
		if (n <= 0)
			return n;
		rest = epoll_take_wake(query->set, from, n);
		wakes += rest < n;
		if (rest)
			sort_all_in(batch, from, rest);
	} while (UNLIKELY(!batch->cnt && n == room && wakes < 2));
	return rest;
}

/* A wait that began in the kernel, when the set was not ours, has these events. Our part
 * of them is added, and what the program has heard of is left out. */
static int join_woken(struct epoll_set *set, int epfd, struct epoll_event *events, int n)
{
	struct batch batch;

	begin_batch(&batch, set, events);
	batch.epfd = epfd;
	/* nobody knows when, but not before half of all counts */
	batch.asked_at = atomic_load(&set->change_cnt) - INT32_MAX;
	epoll_set_begin_look(set);
	epoll_set_poll_rings(set);
	sort_all_in(&batch, events, n);
	epoll_set_end_look(set);
	return batch.cnt;
}

/* Whoever has made the kernel's set ready may not have changed ours yet. */
static bool has_members(struct epoll_set *set)
{
	mutex_acquire_unbarred(&set->changes);
	mutex_release_unbarred(&set->changes);
	return epoll_set_stack(set);
}

int mux_epoll_woken(int epfd, struct epoll_event *events, int n)
{
	struct epoll_set *set = epoll_set_get(epfd);
	int rest = epoll_take_wake(set, events, n);

	/* The number may have become another set's in the meantime. Nothing tells the events
	 * of the two apart. */
	if (set) {
		if (rest && has_members(set))
			rest = join_woken(set, epfd, events, rest);
		fd_object_put(&set->obj);
	}
	return rest ? rest : MUX_WOKEN;
}

/* -- looking --------------------------------------------------------------------- */

/* To an empty batch. */
static inline int add_own(struct batch *batch, int room)
{
	if (room)
		batch->cnt = epoll_set_harvest(batch->set, batch->look, batch->events,
					       room);
	return batch->cnt;
}

static NOINLINE int add_more_own(struct batch *batch, int room)
{
	int n;

	if (!batch->cnt)
		return add_own(batch, room);
	n = epoll_set_harvest_more(batch->set, batch->look,
				   &batch->events[batch->cnt], room);
	batch->cnt += n;
	return n;
}

/* How many places are ours before the kernel is asked. The last one is for its events,
 * however busy our sockets are; a single one is ours and the kernel's in turn. */
static int own_places(struct epoll_set *set, int cnt)
{
	return cnt > 1 ? cnt - 1 : (int)(atomic_fetch_add(&set->turns, 1) & 1);
}

/* Returns the number of our events, and an error of the kernel's in *err_out. */
static int look_at_both(struct epoll_query *query, struct batch *batch,
			bool with_kernel, int *err_out)
{
	struct epoll_set *set = query->set;
	int places = own_places(set, query->cnt), own = add_own(batch, places);
	int n = 0;

	/* if there was no place for any, some may be ready all the same */
	if (own || with_kernel || (!places && epoll_set_may_be_ready(set)))
		n = add_kernels(query, batch, query->cnt - batch->cnt);
	*err_out = MIN(n, 0);
	/* what was ready beside goes where the kernel has left room */
	if (own == places && batch->cnt < query->cnt)
		own += add_more_own(batch, query->cnt - batch->cnt);
	if (own)
		atomic_store(&set->skips_left, mux_params.skip_os);
	return own;
}

/* While our sockets are busy, the kernel is not asked each time. */
static inline int look_at_ours(struct epoll_query *query, struct batch *batch)
{
	struct epoll_set *set = query->set;
	unsigned left = atomic_load_explicit(&set->skips_left,
					     memory_order_relaxed);
	int own;

	if (!left)
		return 0;
	own = add_own(batch, query->cnt);
	if (own)
		atomic_store_explicit(&set->skips_left, left - 1,
				      memory_order_relaxed);
	return own;
}

static inline bool has_outers(const struct epoll_set *set)
{
	return UNLIKELY(atomic_load_explicit(&set->has_outers, memory_order_relaxed));
}

/* One look. Returns the number of events, or an error; *own_out are ours. As under Linux, a
 * wait goes on in its set, whatever becomes of the number. */
static long look(struct epoll_query *query, bool with_kernel,
		 unsigned *own_out)
{
	struct epoll_set *set = query->set;
	struct batch batch;
	int own = 0, err = 0;

	begin_batch(&batch, set, query->events);
	query->epfd = epoll_set_begin_use(set, query->epfd);
	epoll_set_begin_look(set);
	epoll_set_poll_rings(set);
	epoll_items_show_left(set, query->epfd);
	if (!has_outers(set) || !epoll_nest_tells_once(set))
		own = look_at_ours(query, &batch);
	if (!own)
		own = look_at_both(query, &batch, with_kernel, &err);
	epoll_set_end_look(set);
	if (has_outers(set))
		epoll_items_hide_spent(set, query->epfd);
	epoll_set_end_use(set, query->epfd);
	*own_out = (unsigned)own;
	return batch.cnt ? batch.cnt : err;
}

/* -- waiting --------------------------------------------------------------------- */

static long wait_look(struct mux_call *call, bool with_kernel)
{
	return look(&call_of(call)->query, with_kernel, &call->own_cnt);
}

/* Its waiters stand ready before it is among the sleepers, who are woken by them. */
static void wait_prepare(struct mux_call *call)
{
	struct epoll_call *wait = call_of(call);
	struct epoll_set *set = wait->query.set;
	unsigned cnt = 0;

	wait->stacks_gen = atomic_load(&set->stacks_gen);
	for (unsigned i = 1; i < epoll_set_place_cnt(set); i++) {
		wait->more[cnt] = epoll_set_stack_at(set, i);
		cnt += wait->more[cnt] != NULL;
	}
	call->wait.more = wait->more;
	call->wait.more_cnt = cnt;
}

static bool nothing_more(struct mux_call *call UNUSED,
			 struct waiter *waiter UNUSED)
{
	return false;
}

static void end_nothing_more(struct mux_call *call UNUSED,
			     struct waiter *waiter UNUSED)
{
}

static bool wait_watch(struct mux_call *call)
{
	return epoll_set_begin_sleep(call_of(call)->query.set, call_of(call));
}

static void wait_unwatch(struct mux_call *call)
{
	epoll_set_end_sleep(call_of(call)->query.set, call_of(call));
}

/* As after any other sleep: the handler ends the wait. */
static void wait_pause(struct mux_call *call)
{
	struct epoll_call *wait = call_of(call);

	if (!wait->is_interrupted)
		wait->was_ready = epoll_set_may_be_ready(wait->query.set);
	wait->is_interrupted = true;
	epoll_set_pause_sleep(wait->query.set, wait);
}

static void wait_abandoned(struct mux_call *call)
{
	struct epoll_set *set = call_of(call)->query.set;

	epoll_set_end_wait(set, call_of(call));
	fd_pool_put(&calls, call_of(call));
	atomic_fetch_sub(&set->caller_cnt, 1);
	epoll_set_pass_on(set);
	fd_object_put(&set->obj);
}

static const struct mux_ops epoll_mux_ops = {
	.look = wait_look,
	.prepare = wait_prepare,
	.watch = wait_watch,
	.unwatch = wait_unwatch,
	.watch_more = nothing_more,
	.unwatch_more = end_nothing_more,
	.pause = wait_pause,
	.abandoned = wait_abandoned,
};

static struct epoll_call *begin_wait(struct epoll_query *query)
{
	struct epoll_call *wait = fd_pool_get(&calls);

	if (!wait)
		return NULL;
	wait->call = (struct mux_call){
		.wait = {
			.stack = epoll_set_stack(query->set),
			.fds = wait->fds,
			.fd_cnt = 1,
		},
		.ops = &epoll_mux_ops,
		.stats = query->set->stats,
	};
	wait->query = *query;
	wait->is_interrupted = wait->was_ready = false;
	wait->fds[0] = (struct pollfd){ .fd = query->epfd, .events = POLLIN };
	epoll_set_begin_wait(query->set, wait);
	atomic_fetch_add(&query->set->caller_cnt, 1);
	return wait;
}

/* What has come since a handler began is not for this call, as little as what it does
 * itself. */
static long leave_to_others(struct epoll_call *wait, long n)
{
	epoll_set_end_wait(wait->query.set, wait);
	epoll_set_pass_on(wait->query.set);
	return n;
}

/* The wait has ended with `n`: nothing, or an error. But as under Linux, what has come
 * for it since its last look is reported rather. */
static long last_looks(struct epoll_call *wait, long n)
{
	struct epoll_set *set = wait->query.set;
	unsigned own;
	long found;

	if (n == -EINTR && !wait->was_ready)
		return leave_to_others(wait, n);
	while (!epoll_set_try_end_wait(set, wait)) {
		found = look(&wait->query, false, &own);
		if (found > 0) {
			epoll_set_end_wait(set, wait);
			return found;
		}
	}
	return n;
}

/* FD_ABANDONED: the reference to the set is gone as well. */
static COLD long wait_for(struct epoll_query *query,
			  const struct timespec *timeout,
			  const struct signals_mark *mark, uint64_t from_ns)
{
	struct epoll_call *wait = begin_wait(query);
	long n;

	if (!wait)
		return -ENOMEM;
	n = mux_wait(&wait->call, timeout, mark, from_ns);
	if (n == FD_ABANDONED)
		return n;
	if (n <= 0)
		n = last_looks(wait, n);
	else
		epoll_set_end_wait(query->set, wait);
	fd_pool_put(&calls, wait);
	atomic_fetch_sub(&query->set->caller_cnt, 1);
	return n;
}

static long look_and_wait(struct epoll_query *query,
			  const struct timespec *timeout,
			  const struct signals_mark *mark)
{
	uint64_t from_ns = mux_begin();
	unsigned own = 0;
	long n = -EINTR;

	/* as ppoll does with a signal that its mask lets in */
	if (!signals_is_interrupted(mark, false))
		n = look(query, true, &own);
	if (!n && timeout == &mux_first_look)
		return 0;
	if (n || mux_is_look(timeout))
		return mux_found(query->set->stats, n, own, from_ns);
	return wait_for(query, timeout, mark, from_ns);
}

static long check(const struct epoll_event *events, int cnt)
{
	if (cnt <= 0 || cnt > INT_MAX / (int)sizeof(*events))
		return -EINVAL;
	return user_is_plausible(events, (size_t)cnt * sizeof(*events)) ?
		       0 :
		       -EFAULT;
}

long mux_epoll_wait(int epfd, struct epoll_event *events, int cnt,
		    const struct timespec *timeout,
		    const struct signals_mark *mark)
{
	struct epoll_query query = {
		.set = epoll_set_get(epfd),
		.events = events,
		.cnt = cnt,
		.epfd = epfd,
	};
	long n;

	if (!query.set)
		return -EAGAIN;
	/* it has one for good once it has been ours */
	n = epoll_set_stack(query.set) ? check(events, cnt) : -EAGAIN;
	if (!n)
		n = look_and_wait(&query, timeout, mark);
	if (n != FD_ABANDONED)
		fd_object_put(&query.set->obj);
	return n;
}

/* -- without the kernel -------------------------------------------------------------- */

static ALWAYS_INLINE int look_quickly(struct epoll_set *set,
				      struct epoll_event *events, int cnt,
				      unsigned left)
{
	uint64_t look = atomic_fetch_add_explicit(&set->looks, 1,
						  memory_order_relaxed);
	int n;

	epoll_set_begin_look(set);
	mux_poll_rings_quickly(epoll_set_stack(set));
	n = epoll_set_harvest(set, look + 1, events, cnt);
	epoll_set_end_look(set);
	if (LIKELY(n)) {
		atomic_store_explicit(&set->skips_left, left - 1,
				      memory_order_relaxed);
		mux_count_own(set->stats, n);
	}
	return n;
}

/* Sets of several stacks, and those that are seen from outside, have more to do. */
static inline bool is_plain(const struct epoll_set *set)
{
	return epoll_set_place_cnt(set) == 1 && !has_outers(set) && !mux_params.measures;
}

mux_epoll_wait_fn *mux_slow_epoll_wait;

int mux_quick_epoll_wait(int epfd, struct epoll_event *events, int cnt, int timeout,
			 const _Atomic(struct fd_object *) *entry)
{
	struct fd_object *obj =
		atomic_load_explicit(entry, memory_order_acquire);
	struct epoll_set *set;
	unsigned left;
	int n = 0;

	/* Without a reference: what was a set stays one for ever. */
	if (!obj || !epoll_is_set(obj) || fd_quick_is_odd())
		return mux_slow_epoll_wait(epfd, events, cnt, timeout);
	set = epoll_set_of(obj);
	left = atomic_load_explicit(&set->skips_left, memory_order_relaxed);
	if (!left || !is_plain(set) || check(events, cnt) != 0)
		return mux_slow_epoll_wait(epfd, events, cnt, timeout);
	os_enter_first();
	if (LIKELY(fd_object_try_hold(obj))) {
		if (LIKELY(fd_quick_is_mine(obj, &epoll_set_ops, entry)))
			n = look_quickly(set, events, cnt, left);
		fd_object_put(obj);
	}
	os_leave_last();
	return LIKELY(n) ? n :
			   mux_slow_epoll_wait(epfd, events, cnt, timeout);
}

_Atomic unsigned *mux_sleepers_of(int epfd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(epfd);
	struct fd_object *obj =
		entry ? atomic_load_explicit(entry, memory_order_acquire) :
			NULL;

	/* duplicates have one count */
	return mux_sleepers_at(obj && epoll_is_set(obj) ?
				       epoll_set_number(epoll_set_of(obj)) :
				       epfd);
}

static COLD void ask_parent(int epfd)
{
	int saved_errno = errno;

	if (os_is_inside())
		return;
	os_enter();
	epoll_set_ask_parent(epfd, false);
	os_leave();
	errno = saved_errno;
}

bool mux_epoll_is_ours(int epfd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(epfd);
	struct fd_object *obj;

	if (LIKELY(!entry))
		return false;
	/* Without a reference: what was a set stays one for ever. */
	obj = atomic_load_explicit(entry, memory_order_acquire);
	if (UNLIKELY(obj && kin_is_heir(obj)))
		ask_parent(epfd);
	return obj && epoll_is_set(obj) &&
	       atomic_load(&epoll_set_of(obj)->live_cnt);
}

void mux_load(void)
{
	epoll_sets_load();
}

void mux_start(const struct mux_params *params)
{
	atomic_store(&mux_params.poll_us, params->poll_us);
	atomic_store(&mux_params.does_ease, params->does_ease);
	atomic_store(&mux_params.os_ratio, params->os_ratio);
	atomic_store(&mux_params.skip_os, params->skip_os);
	atomic_store(&mux_params.measures, params->measures);
}

void mux_before_fork(void)
{
	epoll_sets_show_left();
}

void mux_before_exit(void)
{
	if (kin_is_shared())
		epoll_sets_leave();
}

void mux_forked(void)
{
	fd_pool_forked(&calls);
	epoll_sets_forked();
	epoll_wake_forked();
	poll_forked();
}
