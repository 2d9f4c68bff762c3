/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol of sleepers (net/wait.h), tried in every order in which things can
 * happen. A few threads wait for a datagram each, frames arrive, time runs out,
 * handlers jump out of the sleep: each run makes one choice after another, and the
 * next run another one, until all have been made. What runs is the library's own
 * code, on a ring that hands frames straight to endpoints; only the order is the
 * test's. Wake-ups are written after the unlock, by a thread that may be slow: each
 * write comes at any time after, and a waiter is signalled for a wait that is long
 * over, also while it begins the next one.
 *
 * If nothing can happen any more, every thread that still waits has got all that
 * arrived for it. That is the promise.
 */
#include "config.h"

#include "net/wait.h"

#include "tests/engine/sleepers.h"

enum { THREADS_MAX = 3 };

enum state {
	LOOKS,  /* about to look, and to sleep if there is nothing */
	SLEEPS, /* in ppoll */
	JUMPED, /* a handler has left the sleep, and the call behind */
	ENDED,
};

struct thread {
	enum state state;
	struct endpoint end;
	struct waiter *waiter;
	bool polls_ring; /* its fds are among those it sleeps on */
	unsigned data;
	unsigned wanted;
};

/* What can happen next. */
struct event {
	enum { RUN, WAKE, TIME_OUT, JUMP, COME_BACK, ARRIVE, WRITE } what;
	unsigned who; /* a thread; of WRITE the eventfd */
};

static struct {
	struct stack *stack;
	struct thread threads[THREADS_MAX];
	unsigned thread_cnt;
	unsigned arrivals_left;
	unsigned timeouts_left, jumps_left;
	/* signals of waits that are over */
	unsigned late_left;
} model;

/* -- the kernel's part -------------------------------------------------------- */

static void signal_late(int fd)
{
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct waiter *waiter = model.threads[i].waiter;

		if (waiter && atomic_load(&waiter->fd) == fd &&
		    model.late_left && choose(2)) {
			model.late_left--;
			waiter_signal(waiter);
			/* at once, or later */
			if (kernel.writes_due[event_of(fd)] && choose(2))
				write_event(event_of(fd));
			return;
		}
	}
}

static void deliver(unsigned whom)
{
	struct thread *thread = &model.threads[whom];

	thread->data++;
	endpoint_set_ready(&thread->end, READY_IN);
}

/* -- the threads' part: what a blocking receive does -------------------------- */

static void no_input(struct endpoint *end, struct pkt *pkt)
{
	(void)end, (void)pkt;
}

/* What has come is taken; a thread that has all it wants ends. */
static bool take(struct thread *thread)
{
	if (!thread->data)
		return false;
	thread->wanted -= MIN(thread->data, thread->wanted);
	thread->data = 0;
	endpoint_clear_ready(&thread->end, READY_IN);
	if (!thread->wanted)
		thread->state = ENDED;
	return true;
}

static void look_or_sleep(struct thread *thread)
{
	struct stack *stack = model.stack;
	struct pollfd fds[WAIT_FDS_MAX];
	bool has_watch;

	stack_lock(stack);
	stack_poll_locked(stack);
	if (take(thread)) {
		stack_unlock(stack);
		return;
	}
	stack_unlock(stack);

	thread->waiter = waiter_get();
	wait_rearm(thread->waiter);
	signal_late(atomic_load(&thread->waiter->fd));
	stack_lock(stack);
	has_watch = wait_begin_locked(stack, thread->waiter);
	endpoint_add_watch(&thread->end, &thread->waiter->watch);
	if (thread->data || (has_watch && !stack_arm_locked(stack))) {
		wait_end_locked(stack, thread->waiter);
	} else {
		thread->polls_ring =
			wait_fds(stack, thread->waiter, fds) > 1;
		thread->state = SLEEPS;
	}
	stack_unlock(stack);
	if (thread->state != SLEEPS)
		waiter_put(thread->waiter);
}

static void leave_sleep(struct thread *thread, enum state next)
{
	struct stack *stack = model.stack;

	stack_lock(stack);
	wait_end_locked(stack, thread->waiter);
	stack_poll_locked(stack);
	stack_unlock(stack);
	waiter_put(thread->waiter);
	thread->state = next;
}

/* The trampoline's part; the thread does not return for now. */
static void jump(struct thread *thread)
{
	stack_lock(model.stack);
	wait_pause_locked(model.stack, thread->waiter);
	stack_unlock(model.stack);
	thread->state = JUMPED;
}

/* -- every order ---------------------------------------------------------------- */

static bool is_awake(const struct thread *thread)
{
	return is_signalled(thread->waiter) ||
	       (thread->polls_ring && kernel.rings[0].frame_cnt);
}

/* What can happen by itself, and then what need not. */
static unsigned list_events(struct event *events)
{
	unsigned n = 0;

	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct thread *thread = &model.threads[i];

		if (thread->state == LOOKS)
			events[n++] = (struct event){ RUN, i };
		if (thread->state == SLEEPS && is_awake(thread))
			events[n++] = (struct event){ WAKE, i };
		if (thread->state == SLEEPS && model.timeouts_left)
			events[n++] = (struct event){ TIME_OUT, i };
		if (thread->state == SLEEPS && model.jumps_left)
			events[n++] = (struct event){ JUMP, i };
		if (thread->state == JUMPED)
			events[n++] = (struct event){ COME_BACK, i };
	}
	if (model.arrivals_left)
		events[n++] = (struct event){ ARRIVE, 0 };
	for (unsigned fd = 0; fd < EVENT_FDS; fd++)
		if (kernel.writes_due[fd])
			events[n++] = (struct event){ WRITE, fd };
	return n;
}

static void happen(const struct event *event)
{
	struct thread *thread = &model.threads[event->who % THREADS_MAX];

	switch (event->what) {
	case RUN:
		look_or_sleep(thread);
		break;
	case WAKE:
		leave_sleep(thread, LOOKS);
		break;
	case TIME_OUT:
		/* the call returns, and the program goes on to wait */
		model.timeouts_left--;
		leave_sleep(thread, LOOKS);
		break;
	case JUMP:
		model.jumps_left--;
		jump(thread);
		break;
	case COME_BACK:
		/* its next call cleans up, and it waits no more */
		leave_sleep(thread, ENDED);
		break;
	case ARRIVE:
		arrive(0, --model.arrivals_left % model.thread_cnt);
		break;
	case WRITE:
		write_event(event->who);
		break;
	}
}

/* A thread that jumped may never call us again: that must be enough, too. */
static bool is_stuck(const struct event *events, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (events[i].what != COME_BACK && events[i].what != JUMP &&
		    events[i].what != TIME_OUT)
			return false;
	return true;
}

static void check_nobody_is_forgotten(void)
{
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct thread *thread = &model.threads[i];

		if (thread->state != SLEEPS)
			continue;
		if (!thread->data && !kernel.rings[0].frame_cnt)
			continue;
		note_way();
		FAIL("thread %u sleeps over what has come", i);
	}
}

struct scene {
	unsigned threads, frames, timeouts, jumps, late;
};

static void begin(const struct scene *scene)
{
	begin_kernel(1, deliver);
	kernel.around_clear = signal_late;
	memset(&model, 0, sizeof(model));
	model.stack = model_stack(0);
	model.thread_cnt = scene->threads;
	model.arrivals_left = scene->frames;
	model.timeouts_left = scene->timeouts;
	model.jumps_left = scene->jumps;
	model.late_left = scene->late;
	for (unsigned i = 0; i < scene->threads; i++) {
		endpoint_init(&model.threads[i].end, no_input);
		model.threads[i].wanted =
			(scene->frames + scene->threads - 1 - i) /
			scene->threads;
		if (!model.threads[i].wanted)
			model.threads[i].wanted = 1;
	}
}

static void end(void)
{
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		enum state state = model.threads[i].state;

		if (state == SLEEPS || state == JUMPED)
			leave_sleep(&model.threads[i], ENDED);
	}
	check_stack_is_at_rest(model.stack);
}

enum { EVENTS_MAX = 4 * THREADS_MAX + 1 + EVENT_FDS };

static void run(void)
{
	struct event events[EVENTS_MAX];
	unsigned cnt;

	way.cnt = 0;
	for (;;) {
		cnt = list_events(events);
		if (is_stuck(events, cnt))
			check_nobody_is_forgotten();
		if (!cnt)
			return;
		happen(&events[choose(cnt)]);
	}
}

static void try_everything(const struct scene *scene)
{
	unsigned long runs = 0;

	way.given = 0;
	do {
		begin(scene);
		run();
		end();
		runs++;
	} while (next_way());
	test_note("%lu runs", runs);
	CHECK(runs > 10);
}

TEST(two_threads_two_frames)
{
	try_everything(&(struct scene){ .threads = 2, .frames = 2 });
}

TEST(two_threads_a_timeout)
{
	try_everything(
		&(struct scene){ .threads = 2, .frames = 2, .timeouts = 1 });
}

TEST(two_threads_a_jump)
{
	try_everything(
		&(struct scene){ .threads = 2, .frames = 2, .jumps = 1 });
}

TEST(two_threads_a_timeout_and_a_jump)
{
	try_everything(&(struct scene){
		.threads = 2, .frames = 2, .timeouts = 1, .jumps = 1 });
}

TEST(two_threads_a_late_signal)
{
	try_everything(
		&(struct scene){ .threads = 2, .frames = 2, .late = 2 });
}

TEST(two_threads_a_timeout_and_a_late_signal)
{
	try_everything(&(struct scene){
		.threads = 2, .frames = 2, .timeouts = 1, .late = 1 });
}

TEST(three_threads_two_frames)
{
	try_everything(&(struct scene){ .threads = 3, .frames = 2 });
}

TEST(three_threads_two_frames_a_jump)
{
	try_everything(
		&(struct scene){ .threads = 3, .frames = 2, .jumps = 1 });
}
