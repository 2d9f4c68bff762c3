/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits that survive, and clean up after, handlers that jump out of them. */
#include "config.h"

#include "fd/fd_wait.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "fd/fd_table.h"
#include "os/clean_up.h"
#include "os/thread.h"

/*
 * A thread's unfinished waits, os_thread.wait_cnt of them, outermost first. There
 * is a second one when a handler that interrupted the first waits too. They are not
 * on the stack of the waiting function, which a jump makes invalid.
 */
enum { WAITS_MAX = 16 };

struct wait_record {
	struct fd_object *obj; /* or NULL */
	const struct fd_wait_hold *hold; /* or NULL */
	void *arg;
	uintptr_t frame; /* address of the waiting frame */
	unsigned id;
};

static _Thread_local struct {
	struct wait_record records[WAITS_MAX];
	unsigned last_id;
	/* the last one before this process was forked from a handler */
	unsigned parents_last_id;
	/* the last one that was abandoned had been interrupted */
	bool is_interrupted;
} waits;

/* The largest size of a stack. Frames that are further apart are on different
 * stacks. */
enum { STACK_MAX = 64 << 20 };

static bool is_on_alternate_stack(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
}

static void abandon(const struct wait_record *record)
{
	if (record->hold)
		record->hold->abandoned(record->arg);
	fd_object_put(record->obj);
}

/*
 * A waiting frame below ours on the same stack cannot be alive. A handler that
 * still runs on top of the wait has a lower address, or is on the alternate stack.
 * (A handler that switches to a coroutine whose stack has higher addresses looks
 * like a jump. Its wait then finds its record gone, which is why waits look for
 * it.)
 */
void fd_wait_collect(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!os_thread.wait_cnt || is_on_alternate_stack())
		return;
	while (os_thread.wait_cnt) {
		struct wait_record *last = &waits.records[os_thread.wait_cnt - 1];

		if (last->frame >= here || here - last->frame > STACK_MAX)
			return;
		/* by a fault's handler, which is not ours */
		os_thread.sleep_fd = NULL;
		abandon(&waits.records[--os_thread.wait_cnt]);
	}
}

/* From the trampoline, outside the bracket. */
static void before_handler(void)
{
	for (int i = 0; i < os_thread.wait_cnt; i++) {
		struct wait_record *record = &waits.records[i];

		if (!record->hold)
			continue;
		os_enter();
		record->hold->handler_runs(record->arg);
		os_leave();
	}
}

void fd_wait_forked(void)
{
	os_thread.wait_cnt = 0;
	waits.parents_last_id = waits.last_id;
}

bool fd_wait_was_interrupted(void)
{
	bool result = waits.is_interrupted;

	waits.is_interrupted = false;
	return result;
}

/* The position of the record, or -1 when it was collected. */
static int find_record(unsigned id)
{
	for (int i = os_thread.wait_cnt - 1; i >= 0; i--)
		if (waits.records[i].id == id)
			return i;
	return -1;
}

/* Ends the wait with this number, and those that handlers began on top of it, for
 * good. */
static void abandon_from(unsigned id)
{
	if (find_record(id) < 0)
		return;
	while (waits.records[os_thread.wait_cnt - 1].id != id)
		abandon(&waits.records[--os_thread.wait_cnt]);
	abandon(&waits.records[--os_thread.wait_cnt]);
}

/* The thread ends in its sleep: it was cancelled, or a handler called pthread_exit. Or a handler
 * has jumped out of it by longjmp(). */
static void ended(void *arg)
{
	const unsigned *id = arg;

	os_enter();
	abandon_from(*id);
	os_leave();
}

/* The wrapper gives back a reference after a result, and the wait's is gone. */
long fd_wait_abandoned(struct fd_object *obj, long done)
{
	if (!done || !fd_object_try_hold(obj))
		return FD_ABANDONED;
	waits.is_interrupted = false;
	return done;
}

int fd_wait(struct fd_object *obj, struct pollfd *fds, nfds_t cnt,
	    const struct timespec *timeout, const struct signals_mark *mark,
	    bool may_restart, const struct fd_wait_hold *hold, void *arg)
{
	unsigned id = ++waits.last_id;
	/* If waits are nested deeper than we can note, a jump leaks what the wait
	 * holds. */
	bool is_noted = os_thread.wait_cnt < WAITS_MAX;
	struct clean_up clean_up;
	int result;

	if (hold)
		signals_set_before_handler(before_handler);

	if (is_noted)
		waits.records[os_thread.wait_cnt++] = (struct wait_record){
			.obj = obj,
			.hold = hold,
			.arg = arg,
			.frame = (uintptr_t)__builtin_frame_address(0),
			.id = id,
		};
	clean_up_begin(&clean_up, ended, &id);
	result = signals_sleep(fds, cnt, timeout, mark, may_restart);
	clean_up_end(&clean_up);
	if (!is_noted)
		return result;
	if (find_record(id) < 0) {
		waits.is_interrupted = result == -EINTR &&
				       (int)(id - waits.parents_last_id) <= 0;
		return -ECANCELED;
	}
	/* Anything noted after ours belonged to handlers that are gone. */
	while (waits.records[os_thread.wait_cnt - 1].id != id)
		abandon(&waits.records[--os_thread.wait_cnt]);
	os_thread.wait_cnt--;
	return result;
}
