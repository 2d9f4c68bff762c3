/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiters and the watch (wait.h). */
#include "config.h"

#include "net/wait.h"

#include "base/pages.h"
#include "fd/fd_internal.h"
#include "net/stack.h"
#include "os/event_fd.h"

enum { CHUNK = 64 };

static struct {
	struct spinlock lock;
	struct waiter *free; /* under the lock */
	/* those that wait for the first stack, and whether there is one now */
	struct list early;
	bool is_early_over;
} waiters = {
	.lock = SPINLOCK_INIT(LOCK_RANK_WAITERS),
	.early = LIST_INIT(waiters.early),
};

/* The memory does not come from malloc, since allocators may wait, too. */
static void grow_locked(void) REQUIRES(waiters.lock)
{
	struct waiter *chunk = pages_map(CHUNK * sizeof(*chunk));

	INVARIANT(lock_witness_is_mine(&waiters.lock.witness),
		  "grown without the lock");
	if (!chunk)
		return;
	for (int i = 0; i < CHUNK; i++) {
		atomic_init(&chunk[i].fd, -1);
		list_init(&chunk[i].wake_link);
		list_init(&chunk[i].by_stack);
		list_init(&chunk[i].watch.link);
		chunk[i].watch.fire = waiter_watch_fire;
		chunk[i].next_free = waiters.free;
		waiters.free = &chunk[i];
	}
}

static struct waiter *take_free(void)
{
	struct waiter *waiter;

	spinlock_acquire(&waiters.lock);
	if (!waiters.free)
		grow_locked();
	waiter = waiters.free;
	if (waiter) {
		waiters.free = waiter->next_free;
		waiter->more = NULL;
		waiter->is_alone = false;
	}
	spinlock_release(&waiters.lock);
	return waiter;
}

static void open_fd(struct waiter *waiter)
{
	int fd = event_fd_open();

	if (fd >= 0 && fd_internal_adopt(fd, &waiter->fd) != 0)
		atomic_store(&waiter->fd, fd);
}

struct waiter *waiter_get(void)
{
	struct waiter *waiter = take_free();

	if (waiter && UNLIKELY(atomic_load(&waiter->fd) < 0))
		open_fd(waiter);
	return waiter;
}

void waiter_put(struct waiter *waiter)
{
	INVARIANT(!list_is_linked(&waiter->by_stack), "still registered");
	spinlock_acquire(&waiters.lock);
	waiter->next_free = waiters.free;
	waiters.free = waiter;
	spinlock_release(&waiters.lock);
}

void waiters_forked(void)
{
	/* The waiters that other threads of the parent had are lost to the child, a
	 * few hundred bytes each. */
	spinlock_init(&waiters.lock, LOCK_RANK_WAITERS);
	list_init(&waiters.early);
	waiters.is_early_over = false;
	for (struct waiter *w = waiters.free; w; w = w->next_free)
		atomic_store(&w->fd, -1);
}

void waiter_wake_locked(struct waiter *waiter)
{
	struct stack *stack = waiter->stack;

	INVARIANT(stack_lock_is_mine(&stack->lock), "woken without the lock");
	if (!list_is_linked(&waiter->wake_link))
		list_push_back(&stack->wakes, &waiter->wake_link);
	stack->afterwards |= STACK_WAKES;
}

bool waiter_watch_fire(struct watch *watch, uint32_t bits UNUSED)
{
	waiter_wake_locked(CONTAINER_OF(watch, struct waiter, watch));
	return true;
}

void waiter_signal(struct waiter *waiter)
{
	if (!atomic_exchange_explicit(&waiter->is_woken, true,
				      memory_order_acq_rel))
		event_fd_signal(atomic_load(&waiter->fd));
}

/* Empties the eventfd. The order matters. A thread that was slow after its unlock
 * may still signal for the wait before. If we cleared the flag first, that thread
 * could set the flag and write, and our read could then take its write. The flag
 * would stay set, and no later signal would be written. */
void wait_rearm(struct waiter *waiter)
{
	event_fd_clear(atomic_load(&waiter->fd));
	atomic_store_explicit(&waiter->is_woken, false, memory_order_release);
}

bool wait_begin_locked(struct stack *stack, struct waiter *waiter)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "begun without the lock");
	waiter->stack = stack;
	if (!list_is_linked(&waiter->by_stack))
		list_push_back(&stack->waiters, &waiter->by_stack);
	if (stack->watcher)
		return false;
	stack->watcher = waiter;
	waiter->is_watcher = true;
	return true;
}

static void pass_the_watch(struct stack *stack)
{
	struct list *next;

	stack->watcher = NULL;
	next = list_first(&stack->waiters);
	if (next)
		waiter_wake_locked(LIST_ENTRY(next, struct waiter, by_stack));
}

void wait_end_locked(struct stack *stack, struct waiter *waiter)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "ended without the lock");
	list_remove(&waiter->by_stack);
	list_remove(&waiter->watch.link);
	list_remove(&waiter->wake_link);
	/* A waiter that was woken to take the watch, and that leaves instead, must
	 * wake the next one. */
	if (waiter->is_watcher || !stack->watcher)
		pass_the_watch(stack);
	waiter->is_watcher = false;
}

void wait_pause_locked(struct stack *stack, struct waiter *waiter)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "paused without the lock");
	/* From now on nobody may ask it to take the watch. If it has been asked, or
	 * has the watch, another waiter gets it. */
	list_remove(&waiter->by_stack);
	if (waiter->is_watcher || !stack->watcher)
		pass_the_watch(stack);
	waiter->is_watcher = false;
}

static struct pollfd own_fd(const struct waiter *waiter)
{
	return (struct pollfd){ .fd = atomic_load(&waiter->fd),
				.events = POLLIN };
}

uint64_t wait_until_locked(struct stack *stack, const struct waiter *waiter,
			   uint64_t deadline_ns)
{
	INVARIANT(stack_lock_is_mine(&stack->lock), "asked without the lock");
	if (!waiter->is_watcher)
		return deadline_ns;
	stack->watch_until_ns = MIN(deadline_ns, stack_next_timer_ns(stack));
	return stack->watch_until_ns;
}

bool wait_early_begin(struct waiter *waiter, struct pollfd *fd_out)
{
	bool is_over;

	waiter->stack = NULL;
	*fd_out = own_fd(waiter);
	spinlock_acquire(&waiters.lock);
	is_over = waiters.is_early_over;
	if (!is_over)
		list_push_back(&waiters.early, &waiter->by_stack);
	spinlock_release(&waiters.lock);
	return !is_over;
}

void wait_alone_begin(struct waiter *waiter, struct pollfd *fd_out)
{
	waiter->stack = NULL;
	waiter->is_alone = true;
	*fd_out = own_fd(waiter);
}

void wait_early_end(struct waiter *waiter)
{
	spinlock_acquire(&waiters.lock);
	list_remove(&waiter->by_stack);
	spinlock_release(&waiters.lock);
}

/* A waiter may leave between the unlock and its signal. Then it gets the signal in
 * its next wait, if at all, which does no harm. */
void wait_early_over(void)
{
	struct list *link;

	do {
		spinlock_acquire(&waiters.lock);
		waiters.is_early_over = true;
		link = list_pop_front(&waiters.early);
		spinlock_release(&waiters.lock);
		if (link)
			waiter_signal(LIST_ENTRY(link, struct waiter, by_stack));
	} while (link);
}

unsigned wait_fds(struct stack *stack, struct waiter *waiter,
		  struct pollfd *fds) REQUIRES(stack->lock)
{
	fds[0] = own_fd(waiter);
	if (!waiter->is_watcher)
		return 1;
	fds[1] = (struct pollfd){ .fd = stack_fd(stack), .events = POLLIN };
	return 2;
}
