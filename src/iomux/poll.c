/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poll, and the waiting of select (mux.h, poll.h). */
#include "config.h"

#include "iomux/poll.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/pages.h"
#include "fd/fd_pool.h"
#include "fd/fd_table.h"
#include "fd/fd_wait.h"
#include "iomux/epoll_nest.h"
#include "iomux/epoll_ready.h"
#include "os/inside.h"
#include "sock/user_msg.h"

/* A socket of ours, or a set of epoll with such sockets. */
struct source {
	struct fd_object *obj; /* with a reference */
	struct endpoint *end;  /* NULL: it is a set */
	struct stack *stack;  /* of the endpoint */
	nfds_t at; /* in the array */
	bool is_alone; /* the kernel is not asked about it */
	bool is_in_table; /* its number named it; one of a set may not, that has nothing of ours */
	union {
		struct watch watch;
		struct epoll_watch outer; /* of a set */
	};
	/* which it hears of the socket by */
	struct waiter *waiter;
	unsigned stacks_gen; /* of the set, when its stacks were read */
};

/* Sets up to this size take no system call for their memory. */
enum { SMALL_SET = 64 };

/* A poll in progress. It outlives the calling frame when a handler jumps. */
struct poll_call {
	struct mux_call call;
	nfds_t cnt;
	nfds_t source_cnt;
	/* there is no stack yet; when there is one, more sockets may be ours */
	bool is_early;
	/* some of ours are not shown to the kernel */
	bool has_alone;
	/* the program asks whether some of ours can be written to, which the kernel
	 * knows */
	bool asks_to_write;
	/* there are sets among the sources, whose stacks may change */
	bool has_sets;
	bool has_looked;
	/* not everything that an fd is ready for counts */
	bool is_select;
	/* some were ready in the kernel for what does not count, and their fds are ~fd for the
	 * next sleep */
	bool has_idle;
	/* it may sleep; until the end of its time another thread may put something of
	 * ours into a set that has nothing of ours */
	bool does_wait;
	/* of all sources */
	struct stack *stacks[NET_STACKS_MAX];
	unsigned stack_cnt;
	size_t mapped; /* bytes, if it is not from the pool */
	struct source *sources; /* cnt */
	/* cnt + WAIT_FDS. The first ones are the program's as they were at the call, but
	 * that an fd which the kernel is not to be asked about is ~fd (number_of). A select
	 * has no negative ones of its own. */
	struct pollfd *fds;
};

/* What a sleep on all stacks needs. */
enum { WAIT_FDS = NET_STACKS_MAX * WAIT_FDS_MAX };

struct small_call {
	struct poll_call poll;
	struct source sources[SMALL_SET];
	struct pollfd fds[SMALL_SET + WAIT_FDS];
};

static struct fd_pool pool = FD_POOL_INIT(struct small_call);

/* How many further calls of this thread that find something of ours do without the
 * kernel, and the stack of all that it has polled; NULL: it is not known, or there are
 * several. */
static _Thread_local unsigned skips_left;
static _Thread_local struct stack *last_stack;
static _Thread_local bool has_many_stacks;

void poll_forked(void)
{
	fd_pool_forked(&pool);
	last_stack = NULL;
}

static struct poll_call *make_small(void)
{
	struct small_call *small = fd_pool_get(&pool);

	if (!small)
		return NULL;
	small->poll.sources = small->sources;
	small->poll.fds = small->fds;
	small->poll.mapped = 0;
	return &small->poll;
}

static struct poll_call *make_large(nfds_t cnt)
{
	size_t size = sizeof(struct poll_call) + cnt * sizeof(struct source) +
		      (cnt + WAIT_FDS) * sizeof(struct pollfd);
	struct poll_call *poll = pages_map(size);

	if (!poll)
		return NULL;
	poll->sources = (struct source *)(poll + 1);
	poll->fds = (struct pollfd *)(poll->sources + cnt);
	poll->mapped = size;
	return poll;
}

static void drop_sources(struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->source_cnt; i++)
		fd_object_put(poll->sources[i].obj);
	poll->source_cnt = 0;
}

static void destroy(struct poll_call *poll)
{
	drop_sources(poll);
	if (poll->mapped)
		munmap(poll, poll->mapped);
	else
		fd_pool_put(&pool, CONTAINER_OF(poll, struct small_call, poll));
}

static struct poll_call *poll_of(struct mux_call *call)
{
	return CONTAINER_OF(call, struct poll_call, call);
}

/* -- what is ours ---------------------------------------------------------------- */

/* The kernel refuses sets that are larger than the limit on fds. It is asked for
 * only when the number is unusual. */
static bool is_cnt_sound(nfds_t cnt)
{
	struct rlimit limit;

	return cnt <= FD_SETSIZE ||
	       (!fd_table_is_closed() &&
		getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
		cnt <= limit.rlim_cur);
}

bool mux_poll_is_ours(const struct pollfd *fds, nfds_t cnt, bool does_wait)
{
	bool with_sets = poll_asks_for_sets(does_wait);

	if (LIKELY(!atomic_load_explicit(&fd_table_root, memory_order_relaxed) &&
		   !with_sets) ||
	    !is_cnt_sound(cnt) ||
	    !user_is_array_plausible(fds, cnt, sizeof(*fds)))
		return false;
	for (nfds_t i = 0; i < cnt; i++) {
		if (fd_table_has(fds[i].fd))
			return true;
		if (UNLIKELY(with_sets) && mux_is_noted(fds[i].fd))
			return !fd_table_is_closed();
	}
	return false;
}

/* A set that has nothing of ours yet is the kernel's, but for who waits. */
static enum fd_await await_set(struct epoll_set *set, bool does_wait)
{
	return atomic_load(&set->live_cnt) || poll_asks_for_sets(does_wait) ?
		       FD_AWAIT_STACK :
		       FD_AWAIT_KERNEL;
}

static enum fd_await await(const struct poll_call *poll, struct fd_object *obj,
			   struct endpoint **end_out, struct stack **stack_out)
{
	*end_out = NULL;
	*stack_out = NULL;
	return epoll_is_set(obj) ?
		       await_set(epoll_set_of(obj), poll->does_wait) :
		       obj->ops->await(obj, end_out, stack_out);
}

/* What the fd names, with a reference, or NULL. */
static struct fd_object *object_at(const struct poll_call *poll, int fd)
{
	struct fd_object *obj = fd_table_get(fd);

	return obj || !poll_asks_for_sets(poll->does_wait) ? obj :
							epoll_noted_set(fd);
}

static void add_source(struct poll_call *poll, nfds_t at)
{
	int fd = poll->fds[at].fd;
	struct fd_object *obj = object_at(poll, fd);
	enum fd_await how = FD_AWAIT_KERNEL;
	struct endpoint *end;
	struct stack *stack;

	if (obj)
		how = await(poll, obj, &end, &stack);
	poll->is_early |= how == FD_AWAIT_EARLY;
	if (how != FD_AWAIT_STACK && how != FD_AWAIT_ALONE) {
		fd_object_put(obj);
		return;
	}
	/* the kernel is not asked about it */
	if (how == FD_AWAIT_ALONE) {
		poll->fds[at].fd = ~fd;
		poll->has_alone = true;
	}
	poll->asks_to_write |= poll->fds[at].events &
			       (POLLOUT | POLLWRNORM | POLLWRBAND);
	poll->sources[poll->source_cnt++] = (struct source){
		.obj = obj,
		.end = end,
		.stack = stack,
		.at = at,
		.is_alone = how == FD_AWAIT_ALONE,
		.is_in_table = atomic_load_explicit(fd_table_entry(fd), memory_order_relaxed) ==
			       obj,
	};
	poll->has_sets |= !end;
}

static void add_stack(struct poll_call *poll, struct stack *stack)
{
	for (unsigned i = 0; i < poll->stack_cnt; i++)
		if (LIKELY(poll->stacks[i] == stack))
			return;
	poll->stacks[poll->stack_cnt++] = stack;
}

static void add_stacks_of(struct poll_call *poll, struct source *source)
{
	struct epoll_set *set = epoll_set_of(source->obj);
	struct stack *stack;

	source->stacks_gen = atomic_load(&set->stacks_gen);
	for (unsigned i = 0; i < epoll_set_place_cnt(set); i++) {
		stack = epoll_set_stack_at(set, i);
		if (stack)
			add_stack(poll, stack);
	}
}

static void find_stacks(struct poll_call *poll)
{
	struct sock_wait *wait = &poll->call.wait;

	poll->stack_cnt = 0;
	for (nfds_t i = 0; i < poll->source_cnt; i++)
		if (LIKELY(poll->sources[i].end))
			add_stack(poll, poll->sources[i].stack);
		else
			add_stacks_of(poll, &poll->sources[i]);
	wait->stack = poll->stack_cnt ? poll->stacks[0] : NULL;
	wait->is_alone = !poll->is_early;
	wait->more = poll->stacks + 1;
	wait->more_cnt = poll->stack_cnt ? poll->stack_cnt - 1 : 0;
}

/* To the program, internal fds look closed. */
static int seen_fd(int fd)
{
	struct fd_object *obj = fd_table_get(fd);
	bool is_hidden = obj && obj->ops->is_internal;

	fd_object_put(obj);
	/* a number that no file can have */
	return is_hidden ? FD_TABLE_LIMIT : fd;
}

static void find_sources(struct poll_call *poll)
{
	bool with_sets = poll_asks_for_sets(poll->does_wait);

	poll->is_early = false;
	poll->has_alone = false;
	poll->asks_to_write = false;
	poll->has_sets = false;
	for (nfds_t i = 0; i < poll->cnt; i++) {
		if (poll_is_heeded(poll->fds[i].fd, with_sets)) {
			poll->fds[i].fd = seen_fd(poll->fds[i].fd);
			add_source(poll, i);
		}
	}
	find_stacks(poll);
}

static int number_of(const struct poll_call *poll, const struct source *source)
{
	int fd = poll->fds[source->at].fd;

	return fd < 0 ? ~fd : fd;
}

/* Other sockets are ours by now, or the numbers name other files. */
static void find_sources_again(struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->source_cnt; i++)
		poll->fds[poll->sources[i].at].fd =
			number_of(poll, &poll->sources[i]);
	drop_sources(poll);
	find_sources(poll);
}

/* -- looking --------------------------------------------------------------------- */

static short as_poll_events(uint32_t ready)
{
	return (short)endpoint_poll_events(ready);
}

/* What counts of all that is found for an fd which is asked about these events. A select does
 * not end by the end of a connection that it does not read from. */
static short counted(bool is_select, short events)
{
	short all = events | POLLERR | POLLHUP | POLLNVAL;

	if (LIKELY(!is_select))
		return all;
	return (short)(all & ((events & POLLIN ? SELECT_IN : 0) |
			      (events & POLLOUT ? SELECT_OUT : 0) |
			      (events & POLLPRI ? SELECT_EXCEPT : 0)));
}

/* Drops what the kernel has found that does not count. It would find the same at once again, so
 * the next sleep is one without these fds, and a short one. */
static COLD void set_idle_aside(struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->cnt; i++) {
		struct pollfd *fd = &poll->fds[i];

		if (!fd->revents || fd->revents & counted(true, fd->events))
			continue;
		fd->revents = 0;
		fd->fd = ~fd->fd;
		poll->has_idle = true;
	}
	poll->call.wait.is_deaf = poll->has_idle;
}

static COLD void take_idle_back(struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->cnt; i++)
		if (poll->fds[i].fd < 0)
			poll->fds[i].fd = ~poll->fds[i].fd;
	for (nfds_t i = 0; i < poll->source_cnt; i++)
		if (poll->sources[i].is_alone) {
			struct pollfd *fd = &poll->fds[poll->sources[i].at];

			fd->fd = ~fd->fd;
		}
	poll->has_idle = false;
	poll->call.wait.is_deaf = false;
}

static uint32_t state_of(const struct source *source)
{
	if (LIKELY(source->end))
		return endpoint_ready(source->end);
	return epoll_set_is_ready(epoll_set_of(source->obj)) ? READY_IN : 0;
}

/* What our queues have is noted in fds, and counted. */
static void add_sources(struct poll_call *poll)
{
	poll->call.own_cnt = 0;
	for (nfds_t i = 0; i < poll->source_cnt; i++) {
		struct pollfd *fd = &poll->fds[poll->sources[i].at];
		short own = (short)(as_poll_events(state_of(&poll->sources[i])) &
				    counted(poll->is_select, fd->events));

		fd->revents |= own;
		poll->call.own_cnt += own != 0;
	}
}

/* Who is told that a twin has something looks there at once: our thread may not have heard of
 * it yet. */
static void tell_sources(const struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->source_cnt; i++) {
		struct fd_object *obj = poll->sources[i].obj;
		short events = poll->fds[poll->sources[i].at].revents;

		if (events & (POLLIN | POLLERR))
			obj->ops->twin_event(obj, (uint32_t)events);
	}
}

static void clear_events(struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->cnt; i++)
		poll->fds[i].revents = 0;
}

static long count_ready(const struct poll_call *poll)
{
	long n = 0;

	for (nfds_t i = 0; i < poll->cnt; i++)
		n += poll->fds[i].revents != 0;
	return n;
}

/* How many calls do without the kernel from now on: now and then one fewer, by chance. Of a
 * thread that polls several arrays in turn, a steady number would meet the same ones each time,
 * and the kernel would never be asked about what is in the others. */
static unsigned draw_skips(void)
{
	static _Thread_local uint32_t drawn;

	drawn = drawn * 1664525 + 1013904223;
	return mux_params.skip_os - (mux_params.skip_os && drawn >> 29 == 0);
}

/* Ours are noted already. Whether that is all that the look finds. */
static bool may_skip_kernel(struct poll_call *poll, bool with_kernel)
{
	if (!poll->call.own_cnt)
		return !with_kernel;
	if (skips_left && !poll->asks_to_write) {
		skips_left--;
		return true;
	}
	has_many_stacks |= poll->stack_cnt > 1 ||
			   (last_stack && last_stack != poll->stacks[0]);
	last_stack = has_many_stacks ? NULL : poll->stacks[0];
	skips_left = draw_skips();
	return false;
}

/* The kernel's view of sets is right then. */
static void hide_spent(struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->source_cnt; i++)
		if (!poll->sources[i].end) {
			struct epoll_set *set =
				epoll_set_of(poll->sources[i].obj);
			int fd = poll->fds[poll->sources[i].at].fd;

			epoll_items_hide_spent(set, fd);
			epoll_items_show_left(set, fd);
		}
}

/* One of those that the kernel is not asked about has become its own. */
static bool has_left(const struct poll_call *poll)
{
	if (LIKELY(!poll->has_alone))
		return false;
	for (nfds_t i = 0; i < poll->source_cnt; i++) {
		const struct source *source = &poll->sources[i];

		if (poll->fds[source->at].fd < 0 &&
		    source->obj->ops->word(source->obj) != FD_WORD_ALL)
			return true;
	}
	return false;
}

/* A number names something else than in the look before: as in Linux, each looks by the
 * numbers. A set that has nothing of ours may be in no table. */
static bool has_changed(const struct poll_call *poll)
{
	for (nfds_t i = 0; i < poll->source_cnt; i++) {
		const struct source *source = &poll->sources[i];
		const _Atomic(struct fd_object *) *entry =
			fd_table_entry(number_of(poll, source));
		const struct fd_object *obj = atomic_load_explicit(
			entry, memory_order_relaxed);

		if (UNLIKELY(obj != source->obj && (obj || source->is_in_table)))
			return true;
	}
	return false;
}

static long poll_look(struct mux_call *call, bool with_kernel)
{
	struct poll_call *poll = poll_of(call);
	long n;

	if (UNLIKELY(poll->has_idle))
		take_idle_back(poll);
	if (UNLIKELY(poll->is_early || has_left(poll) ||
		     (with_kernel && poll->has_looked &&
		      has_changed(poll))))
		find_sources_again(poll);
	else if (UNLIKELY(poll->has_sets))
		find_stacks(poll);
	poll->has_looked = true;
	for (unsigned i = 0; i < poll->stack_cnt; i++)
		mux_poll_rings(poll->stacks[i]);
	clear_events(poll);
	add_sources(poll);
	if (may_skip_kernel(poll, with_kernel))
		return call->own_cnt;
	/* We ask it about the other fds, and about the same ones: what the twins
	 * have. That takes the place of our events. */
	hide_spent(poll);
	n = inside_poll(poll->fds, poll->cnt);
	/* a signal that has come ends a look that finds nothing, and ours have been found */
	if (n < 0 && !(n == -EINTR && poll->call.own_cnt))
		return n;
	if (n > 0)
		tell_sources(poll);
	if (n > 0 && poll->is_select)
		set_idle_aside(poll);
	add_sources(poll);
	return count_ready(poll);
}

/* -- sleeping -------------------------------------------------------------------- */

static bool source_fire(struct watch *watch, uint32_t bits UNUSED)
{
	struct source *source = CONTAINER_OF(watch, struct source, watch);

	waiter_wake_locked(source->waiter);
	return true;
}

/* Returns whether it may be ready already, for one of these events. */
static bool watch_socket(struct source *source, struct waiter *waiter,
			 short events)
{
	source->waiter = waiter;
	source->watch = (struct watch){ .fire = source_fire };
	endpoint_add_watch(source->end, &source->watch);
	return as_poll_events(endpoint_ready(source->end)) & events;
}

/* The same of a set. By `first`, all waiters of the poll are found. */
static bool watch_set(struct source *source, struct waiter *first, short events)
{
	struct epoll_set *set = epoll_set_of(source->obj);

	source->outer = (struct epoll_watch){ .waiter = first };
	return !epoll_set_watch(set, &source->outer, source->stacks_gen) ||
	       (as_poll_events(READY_IN) & events && epoll_set_may_be_ready(set));
}

static short asked_of(const struct poll_call *poll, const struct source *source)
{
	return counted(poll->is_select, poll->fds[source->at].events);
}

static bool watch_sockets(struct poll_call *poll, struct waiter *waiter,
			  const struct stack *stack)
{
	bool is_ready = false;

	for (nfds_t i = 0; i < poll->source_cnt; i++) {
		struct source *source = &poll->sources[i];

		if (source->end && source->stack == stack)
			is_ready |= watch_socket(source, waiter,
						 asked_of(poll, source));
	}
	return is_ready;
}

static void unwatch_sockets(struct poll_call *poll, const struct stack *stack)
{
	for (nfds_t i = 0; i < poll->source_cnt; i++)
		if (poll->sources[i].end && poll->sources[i].stack == stack)
			list_remove(&poll->sources[i].watch.link);
}

static void poll_prepare(struct mux_call *call)
{
	if (poll_of(call)->has_sets)
		find_stacks(poll_of(call));
}

static bool poll_watch_more(struct mux_call *call, struct waiter *waiter)
{
	return watch_sockets(poll_of(call), waiter, waiter->stack);
}

static void poll_unwatch_more(struct mux_call *call, struct waiter *waiter)
{
	unwatch_sockets(poll_of(call), waiter->stack);
}

/* Sets come last, when there is a waiter in each of their stacks. */
static bool poll_watch(struct mux_call *call)
{
	struct poll_call *poll = poll_of(call);
	bool is_ready = watch_sockets(poll, call->wait.waiter, call->wait.stack);

	for (nfds_t i = 0; i < poll->source_cnt && poll->has_sets; i++)
		if (!poll->sources[i].end)
			is_ready |= watch_set(&poll->sources[i], call->wait.waiter,
					      asked_of(poll, &poll->sources[i]));
	return is_ready;
}

static void poll_unwatch(struct mux_call *call)
{
	struct poll_call *poll = poll_of(call);

	for (nfds_t i = 0; i < poll->source_cnt && poll->has_sets; i++)
		if (!poll->sources[i].end)
			epoll_set_unwatch(&poll->sources[i].outer);
	unwatch_sockets(poll, call->wait.stack);
}

static void poll_abandoned(struct mux_call *call)
{
	destroy(poll_of(call));
}

/* -- calls ----------------------------------------------------------------------- */

static const struct mux_ops poll_mux_ops = {
	.look = poll_look,
	.prepare = poll_prepare,
	.watch = poll_watch,
	.unwatch = poll_unwatch,
	.watch_more = poll_watch_more,
	.unwatch_more = poll_unwatch_more,
	.abandoned = poll_abandoned,
};

static struct poll_call *make(struct pollfd *fds, nfds_t cnt, bool does_wait,
			      bool is_select, struct stats_mux *stats)
{
	struct poll_call *poll = cnt <= SMALL_SET ? make_small() :
						    make_large(cnt);

	if (!poll)
		return NULL;
	poll->call = (struct mux_call){
		.wait = { .fds = poll->fds, .fd_cnt = (unsigned)cnt },
		.ops = &poll_mux_ops,
		.stats = stats,
	};
	memcpy(poll->fds, fds, cnt * sizeof(*fds));
	poll->cnt = cnt;
	poll->does_wait = does_wait;
	poll->source_cnt = 0;
	poll->has_looked = false;
	poll->is_select = is_select;
	poll->has_idle = false;
	find_sources(poll);
	return poll;
}

static void nothing_to_pause(void *arg UNUSED)
{
}

static void abandoned(void *arg)
{
	destroy(arg);
}

/* Without any source the kernel can do all of the call, the sleep included. */
static long leave_to_kernel(struct poll_call *poll,
			    const struct timespec *timeout,
			    const struct signals_mark *mark)
{
	static const struct fd_wait_hold hold = {
		.handler_runs = nothing_to_pause,
		.abandoned = abandoned,
	};
	int n = fd_wait(NULL, poll->fds, poll->cnt, timeout, mark, false, &hold,
			poll);

	return n == -ECANCELED ? FD_ABANDONED : n;
}

static long look_and_wait(struct poll_call *poll, const struct timespec *timeout,
			  const struct signals_mark *mark, bool *has_waited_out)
{
	uint64_t from_ns = mux_begin();
	long n = -EINTR;

	/* as ppoll does with a signal that its mask lets in */
	if (!signals_is_interrupted(mark, false))
		n = poll_look(&poll->call, true);
	if (!n && timeout == &mux_first_look)
		return 0;
	if (n || mux_is_look(timeout))
		return mux_found(poll->call.stats, n, poll->call.own_cnt,
				 from_ns);
	if (has_waited_out)
		*has_waited_out = true;
	return mux_wait(&poll->call, timeout, mark, from_ns);
}

/* What is left of it. */
static struct timespec less(const struct timespec *time, uint64_t gone_ns)
{
	struct timespec left = {
		.tv_sec = time->tv_sec - (time_t)(gone_ns / NS_PER_SEC),
		.tv_nsec = time->tv_nsec - (long)(gone_ns % NS_PER_SEC),
	};

	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += NS_PER_SEC;
	}
	return left.tv_sec < 0 ? (struct timespec){ 0 } : left;
}

/* The kernel's sleep ends also by what does not count for a select. The wait goes on then. */
static long leave_select_to_kernel(struct poll_call *poll,
				   const struct timespec *timeout,
				   const struct signals_mark *mark,
				   bool *has_waited_out)
{
	uint64_t from_ns = clock_monotonic_ns();
	struct timespec left;
	long n;

	*has_waited_out = inside_poll(poll->fds, poll->cnt) == 0;
	n = leave_to_kernel(poll, timeout, mark);
	if (n <= 0)
		return n;
	set_idle_aside(poll);
	n = count_ready(poll);
	if (n || mux_is_look(timeout))
		return n;
	if (timeout)
		left = less(timeout, clock_monotonic_ns() - from_ns);
	return look_and_wait(poll, timeout ? &left : NULL, mark, has_waited_out);
}

/* Tells the program. A wait that is interrupted has found nothing, which Linux says as well. */
static void say_events(const struct poll_call *poll, long result, struct pollfd *fds)
{
	if (result < 0 && result != -EINTR)
		return;
	for (nfds_t i = 0; i < poll->cnt; i++)
		fds[i].revents = result < 0 ? 0 : poll->fds[i].revents;
}

/* For select, *has_waited_out becomes true if what it finds has come during the call; NULL: it
 * is a poll. */
static long poll_slowly(struct pollfd *fds, nfds_t cnt,
			const struct timespec *timeout,
			const struct signals_mark *mark,
			struct stats_mux *stats, bool *has_waited_out)
{
	struct poll_call *poll = make(fds, cnt, !mux_is_look(timeout),
				      has_waited_out, stats);
	long n;

	if (!poll)
		return -ENOMEM;
	if (poll->source_cnt || poll->is_early)
		n = look_and_wait(poll, timeout, mark, has_waited_out);
	else if (poll->is_select)
		n = leave_select_to_kernel(poll, timeout, mark, has_waited_out);
	else
		n = leave_to_kernel(poll, timeout, mark);
	if (n == FD_ABANDONED)
		return n;
	say_events(poll, n, fds);
	destroy(poll);
	return n;
}

/* -- without the kernel ------------------------------------------------------------ */

/* What the socket that an fd names is ready for; 0, if it is not ours. Without a
 * reference: it may be another one already. But its memory is an object's for ever. */
static inline uint32_t ready_at(int fd)
{
	_Atomic(struct fd_object *) *entry = fd_table_entry(fd);
	const struct fd_object *obj = entry ? atomic_load_explicit(
		entry, memory_order_acquire) : NULL;
	const _Atomic uint32_t *ready = obj ? atomic_load_explicit(
		&obj->ready, memory_order_relaxed) : NULL;

	return ready ? atomic_load_explicit(ready, memory_order_relaxed) : 0;
}

/* A look at our queues alone, which is all there is to do while the kernel is not to be
 * asked. Returns how many are ready; 0: look at the rest as well. */
static ALWAYS_INLINE long look_quickly(struct pollfd *fds, nfds_t cnt,
				       bool is_select)
{
	long n = 0;

	for (nfds_t i = 0; i < cnt; i++) {
		uint32_t ready = ready_at(fds[i].fd);

		fds[i].revents = 0;
		if (UNLIKELY(fds[i].events & (POLLOUT | POLLWRNORM | POLLWRBAND)))
			return 0;
		if (LIKELY(!ready))
			continue;
		fds[i].revents = (short)(as_poll_events(ready) &
					 counted(is_select, fds[i].events));
		n += fds[i].revents != 0;
	}
	return n;
}

/* The same, if the last calls allow it. */
static ALWAYS_INLINE long poll_quickly(struct pollfd *fds, nfds_t cnt,
				       bool is_select,
				       const struct signals_mark *mark)
{
	long n = 0;

	if (!skips_left || !last_stack || mux_params.measures ||
	    signals_is_interrupted(mark, false))
		return 0;
	mux_poll_rings_quickly(last_stack);
	n = look_quickly(fds, cnt, is_select);
	skips_left -= n > 0;
	return n;
}

long mux_poll(struct pollfd *fds, nfds_t cnt, const struct timespec *timeout,
	      const struct signals_mark *mark)
{
	long n = poll_quickly(fds, cnt, false, mark);

	if (!n)
		return poll_slowly(fds, cnt, timeout, mark, stats_mux_poll(),
				   NULL);
	mux_count_own(stats_mux_poll(), (int)n);
	return n;
}

long poll_select(struct pollfd *fds, nfds_t cnt, const struct timespec *timeout,
		 const struct signals_mark *mark, bool *has_waited)
{
	long n = poll_quickly(fds, cnt, true, mark);

	if (!n)
		return poll_slowly(fds, cnt, timeout, mark, stats_mux_select(),
				   has_waited);
	mux_count_own(stats_mux_select(), (int)n);
	return n;
}
