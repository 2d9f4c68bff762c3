/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol of threads that wait in epoll sets (iomux/epoll_set.h), tried in every
 * order. Threads look, harvest, sleep, are woken, read, leave by time or by a handler
 * that jumps; frames arrive on a ring that one sleeper watches, and the kernel's set
 * becomes ready, which one sleeper of each set hears of. What runs is the library's
 * code; only the order is the test's. Between any two steps of a thread the others may
 * do theirs, also between its look at the ring and its look at the set.
 *
 * If nothing can happen any more, no thread sleeps in a set that has something to
 * report.
 */
#include "config.h"

#include "iomux/epoll_set.h"

#include <string.h>

#include "fd/fd_table.h"
#include "net/stack.h"
#include "os/event_fd.h"
#include "tests/engine/ways.h"

enum { THREADS_MAX = 3, SETS_MAX = 2, SOCKETS_MAX = 2, FRAMES_MAX = 4, EVENT_FDS = 64 };
enum { SET_FD = 500, SOCKET_FD = 600 };

enum state {
	LOOKS,    /* about to poll the ring */
	HARVESTS, /* about to take what its set has */
	RESTS,    /* has found nothing, and is about to sleep */
	SLEEPS,
	JUMPED, /* a handler has left the sleep, and the call behind */
	READS,  /* has an event, and is about to read */
	LEAVES, /* its time is over, and it has found nothing */
	ENDED,
};

struct thread {
	enum state state;
	struct epoll_call call;
	struct waiter *waiter;
	bool polls_ring, hears_kernel, is_over;
	struct thing *has; /* what it reads from; NULL: the kernel's */
	unsigned wanted;
};

struct event {
	enum { STEP, WAKE, TIME_OUT, JUMP, COME_BACK, ARRIVE, KERNEL, WRITE } what;
	unsigned who; /* a thread, a set, or an eventfd */
};

/* The sockets, which all sets have. */
static struct thing {
	struct fd_object obj;
	struct endpoint end;
	unsigned data;
} things[SOCKETS_MAX];

static struct stack *stack;
static struct epoll_set *sets[SETS_MAX];
/* of all runs */
static uint64_t looks;

static struct {
	struct pkt_pool pool;
	struct ring ring;
	struct thread threads[THREADS_MAX];
	unsigned thread_cnt, set_cnt, socket_cnt;
	/* in the ring: for which socket */
	unsigned frames[FRAMES_MAX], frame_cnt;
	unsigned arrivals_left, timeouts_left, jumps_left, kernel_left;
	bool is_kernel_ready[SETS_MAX];
	bool is_signalled[EVENT_FDS];
	unsigned writes_due[EVENT_FDS];
} model;

/* -- the kernel's part -------------------------------------------------------------- */

/* It stands in for os/event_fd.c. Their numbers are none that a file can have. */
enum { EVENT_FD_FIRST = 1 << 30 };

static unsigned event_of(int fd)
{
	return (unsigned)fd - EVENT_FD_FIRST;
}

int event_fd_open(void)
{
	static int next;

	return EVENT_FD_FIRST + next++ % EVENT_FDS;
}

void event_fd_signal(int fd)
{
	model.writes_due[event_of(fd)]++;
}

void event_fd_clear(int fd)
{
	model.is_signalled[event_of(fd)] = false;
}

static unsigned poll_ring(struct ring *ring UNUSED, struct pkt **batch UNUSED,
			  unsigned cnt UNUSED)
{
	while (model.frame_cnt) {
		struct thing *thing = &things[model.frames[--model.frame_cnt]];

		thing->data++;
		endpoint_set_ready(&thing->end, READY_IN);
	}
	return 0;
}

static bool arm_ring(struct ring *ring UNUSED)
{
	return model.frame_cnt == 0;
}

static unsigned ring_fds(struct ring *ring UNUSED, int *fds, unsigned cnt)
{
	if (cnt)
		fds[0] = 1000;
	return 1;
}

static const struct ring_ops ring_ops = {
	.rx_poll = poll_ring,
	.arm = arm_ring,
	.fds = ring_fds,
};

/* -- the threads' part: what epoll_wait and sock_wait do --------------------------- */

static struct epoll_set *set_of(const struct thread *thread)
{
	return thread->call.query.set;
}

static unsigned place_of(const struct thread *thread)
{
	return (unsigned)(set_of(thread)->fd - SET_FD);
}

static void begin_call(struct thread *thread)
{
	epoll_set_begin_wait(set_of(thread), &thread->call);
	thread->state = LOOKS;
}

static void abandon_call(struct thread *thread)
{
	epoll_set_end_wait(set_of(thread), &thread->call);
	epoll_set_pass_on(set_of(thread));
	thread->state = ENDED;
}

static void look(struct thread *thread)
{
	epoll_set_begin_look(set_of(thread));
	stack_lock(stack);
	stack_poll_locked(stack);
	stack_unlock(stack);
	thread->state = HARVESTS;
}

static void harvest(struct thread *thread)
{
	bool *is_kernel_ready = &model.is_kernel_ready[place_of(thread)];
	struct epoll_event event;
	int n = epoll_set_harvest(set_of(thread), ++looks, &event, 0, 1);

	thread->has = n ? &things[event.data.u32] : NULL;
	if (!n && *is_kernel_ready) {
		*is_kernel_ready = false;
		n = 1;
	}
	epoll_set_end_look(set_of(thread));
	if (n) {
		epoll_set_end_wait(set_of(thread), &thread->call);
		thread->state = READS;
	} else {
		thread->state = thread->is_over ? LEAVES : RESTS;
	}
}

static void leave(struct thread *thread)
{
	bool may_end = epoll_set_try_end_wait(set_of(thread), &thread->call);

	thread->state = may_end ? ENDED : LOOKS;
}

static void read_one(struct thread *thread)
{
	stack_lock(stack);
	if (thread->has && thread->has->data && --thread->has->data == 0)
		endpoint_clear_ready(&thread->has->end, READY_IN);
	stack_unlock(stack);
	if (--thread->wanted && !thread->is_over)
		begin_call(thread);
	else
		thread->state = ENDED;
}

static void end_sleep(struct thread *thread, enum state next)
{
	stack_lock(stack);
	epoll_set_end_sleep(set_of(thread), &thread->call);
	wait_end_locked(stack, thread->waiter);
	stack_unlock(stack);
	waiter_put(thread->waiter);
	thread->state = next;
}

static void rest(struct thread *thread)
{
	struct pollfd fds[WAIT_FDS_MAX];
	bool has_watch, is_ready;

	thread->waiter = thread->call.call.wait.waiter = waiter_get();
	wait_rearm(thread->waiter);
	stack_lock(stack);
	has_watch = wait_begin_locked(stack, thread->waiter);
	is_ready = epoll_set_begin_sleep(set_of(thread), &thread->call) ||
		   (has_watch && (!stack_arm_locked(stack) ||
				  stack_poll_locked(stack) > 0));
	thread->polls_ring = wait_fds(stack, thread->waiter, fds) > 1;
	thread->hears_kernel = thread->call.fds[0].fd >= 0;
	stack_unlock(stack);
	if (is_ready)
		end_sleep(thread, LOOKS);
	else
		thread->state = SLEEPS;
}

static void step(struct thread *thread)
{
	switch (thread->state) {
	case LOOKS:
		look(thread);
		break;
	case HARVESTS:
		harvest(thread);
		break;
	case RESTS:
		rest(thread);
		break;
	case LEAVES:
		leave(thread);
		break;
	default:
		read_one(thread);
	}
}

/* The trampoline's part; the thread does not return for now. */
static void jump(struct thread *thread)
{
	stack_lock(stack);
	wait_pause_locked(stack, thread->waiter);
	epoll_set_end_sleep(set_of(thread), &thread->call);
	stack_unlock(stack);
	thread->state = JUMPED;
}

/* -- every order ------------------------------------------------------------------- */

static bool is_awake(const struct thread *thread)
{
	return model.is_signalled[event_of(atomic_load(&thread->waiter->fd))] ||
	       (thread->polls_ring && model.frame_cnt) ||
	       (thread->hears_kernel &&
		model.is_kernel_ready[place_of(thread)]);
}

static unsigned list_sleeper(struct event *events, unsigned i)
{
	unsigned n = 0;

	if (is_awake(&model.threads[i]))
		events[n++] = (struct event){ WAKE, i };
	if (model.timeouts_left)
		events[n++] = (struct event){ TIME_OUT, i };
	if (model.jumps_left)
		events[n++] = (struct event){ JUMP, i };
	return n;
}

static unsigned list_thread(struct event *events, unsigned i)
{
	switch (model.threads[i].state) {
	case ENDED:
		return 0;
	case SLEEPS:
		return list_sleeper(events, i);
	case JUMPED:
		events[0] = (struct event){ COME_BACK, i };
		return 1;
	default:
		events[0] = (struct event){ STEP, i };
		return 1;
	}
}

static unsigned list_events(struct event *events)
{
	unsigned n = 0;

	for (unsigned i = 0; i < model.thread_cnt; i++)
		n += list_thread(events + n, i);
	if (model.arrivals_left)
		events[n++] = (struct event){ ARRIVE, 0 };
	if (model.kernel_left)
		events[n++] = (struct event){ KERNEL, 0 };
	for (unsigned fd = 0; fd < EVENT_FDS; fd++)
		if (model.writes_due[fd])
			events[n++] = (struct event){ WRITE, fd };
	return n;
}

static void happen(const struct event *event)
{
	struct thread *thread = &model.threads[event->who % THREADS_MAX];

	switch (event->what) {
	case STEP:
		step(thread);
		break;
	case WAKE:
		end_sleep(thread, LOOKS);
		break;
	case TIME_OUT:
		model.timeouts_left--;
		thread->is_over = true;
		end_sleep(thread, LOOKS);
		break;
	case JUMP:
		model.jumps_left--;
		jump(thread);
		break;
	case COME_BACK:
		end_sleep(thread, JUMPED);
		abandon_call(thread);
		break;
	case ARRIVE:
		model.frames[model.frame_cnt++] =
			--model.arrivals_left % model.socket_cnt;
		break;
	case KERNEL:
		/* of the last set, whose sleepers need not watch the ring */
		model.kernel_left--;
		model.is_kernel_ready[model.set_cnt - 1] = true;
		break;
	case WRITE:
		model.writes_due[event->who]--;
		model.is_signalled[event->who] = true;
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

/* Of exclusive sets not all need hear of it, but one does. Here that one reads. */
static bool is_all_read(void)
{
	return model.set_cnt == 1 || !things[0].data;
}

static void check_nobody_is_forgotten(void)
{
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct thread *thread = &model.threads[i];

		if (thread->state != SLEEPS)
			continue;
		if (!epoll_set_is_ready(set_of(thread)) && !model.frame_cnt &&
		    is_all_read() && !model.is_kernel_ready[place_of(thread)])
			continue;
		note_way();
		FAIL("thread %u sleeps over what its set has", i);
	}
}

struct scene {
	unsigned threads, sets, sockets, frames, timeouts, jumps, kernel;
	unsigned wanted; /* by each thread */
	uint32_t flags;
};

/* The same thread finds the same waiter in each run, with no signal on its way. */
static void reset_waiters(void)
{
	struct waiter *sorted[THREADS_MAX], *waiter;
	unsigned at;

	for (unsigned i = 0; i < THREADS_MAX; i++) {
		waiter = waiter_get();
		for (at = i; at && atomic_load(&sorted[at - 1]->fd) <
					   atomic_load(&waiter->fd);
		     at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = waiter;
		atomic_store(&waiter->is_woken, false);
	}
	for (unsigned i = 0; i < THREADS_MAX; i++)
		waiter_put(sorted[i]);
}

static void begin_socket(const struct scene *scene, unsigned i,
			 const struct fd_ops *ops)
{
	struct epoll_event event = { .events = EPOLLIN | scene->flags,
				     .data.u32 = i };
	int fd = SOCKET_FD + (int)i;

	endpoint_init(&things[i].end, NULL);
	fd_object_init(&things[i].obj, ops, 0);
	CHECK_EQ(fd_table_install(fd, &things[i].obj), 0);
	for (unsigned k = 0; k < scene->sets; k++)
		CHECK_EQ(epoll_item_add(sets[k], &things[i].obj, fd,
					&things[i].end, stack, &event), 0);
}

/* Sets and items stay for all runs of a scene, which leave them as they were. */
static void begin_scene(const struct scene *scene)
{
	struct stack_params params = { .lock_kind = STACK_LOCK_SPIN,
				       .poll_batch = 16 };
	static struct fd_ops ops = { .name = "thing" };

	fd_ops_fill(&ops);
	epoll_sets_load();
	if (!stack)
		CHECK_EQ(stack_create(&params, &stack), 0);
	for (unsigned i = 0; i < scene->sets; i++) {
		sets[i] = epoll_set_make(SET_FD + (int)i);
		CHECK(sets[i]);
	}
	for (unsigned i = 0; i < scene->sockets; i++)
		begin_socket(scene, i, &ops);
}

static void end_scene(const struct scene *scene)
{
	for (unsigned i = 0; i < scene->sets; i++) {
		fd_object_put(&sets[i]->obj);
		fd_table_remove(SET_FD + (int)i);
	}
	for (unsigned i = 0; i < scene->sockets; i++) {
		fd_table_remove(SOCKET_FD + (int)i);
		CHECK(list_is_empty(&things[i].end.watches));
	}
}

static void begin(const struct scene *scene)
{
	reset_waiters();
	memset(&model, 0, sizeof(model));
	model.ring.ops = &ring_ops;
	pkt_pool_init(&model.pool, 0);
	model.ring.pool = &model.pool;
	ring_set_busy(&model.ring);
	stack->rings[0] = &model.ring;
	stack->ring_cnt = 1;
	model.thread_cnt = scene->threads;
	model.set_cnt = scene->sets;
	model.socket_cnt = scene->sockets;
	model.arrivals_left = scene->frames;
	model.timeouts_left = scene->timeouts;
	model.jumps_left = scene->jumps;
	model.kernel_left = scene->kernel;
	for (unsigned i = 0; i < scene->threads; i++) {
		struct thread *thread = &model.threads[i];

		thread->call.query.set = sets[(i + 1) / 2 % scene->sets];
		thread->call.query.epfd = SET_FD;
		thread->call.fds[0].fd = -1;
		thread->wanted = scene->wanted;
		begin_call(thread);
		/* they sleep; the orders in which they come to that are the
		 * second call's */
		thread->state = RESTS;
		rest(thread);
	}
}

static void end(void)
{
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct thread *thread = &model.threads[i];

		if (thread->state == SLEEPS || thread->state == JUMPED) {
			end_sleep(thread, JUMPED);
			abandon_call(thread);
		}
	}
	for (unsigned i = 0; i < model.socket_cnt; i++) {
		things[i].data = 0;
		endpoint_clear_ready(&things[i].end, READY_IN);
	}
	for (unsigned i = 0; i < model.set_cnt; i++) {
		CHECK(!epoll_set_is_ready(sets[i]));
		CHECK(!sets[i]->kernels_watcher);
		CHECK_EQ(sets[i]->sleeper_cnt, 0);
		CHECK_EQ(sets[i]->waiting_cnt, 0);
		CHECK_EQ(sets[i]->looking_cnt, 0);
	}
	CHECK(stack->watcher == NULL);
	CHECK(list_is_empty(&stack->waiters));
	CHECK(list_is_empty(&stack->wakes));
}

enum { EVENTS_MAX = 3 * THREADS_MAX + 2 + EVENT_FDS };

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

	begin_scene(scene);
	way.given = 0;
	do {
		begin(scene);
		run();
		end();
		runs++;
	} while (next_way());
	end_scene(scene);
	test_note("%lu runs", runs);
	CHECK(runs > 10);
}

/* One that has what it wants does not come back: what is left is another one's. */
TEST(two_sockets_level_triggered)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.frames = 2,
					.wanted = 1 });
}

TEST(two_sockets_edge_triggered)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.frames = 2,
					.wanted = 1,
					.flags = EPOLLET });
}

TEST(two_sockets_a_timeout)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.frames = 2,
					.wanted = 1,
					.timeouts = 1,
					.flags = EPOLLET });
}

TEST(two_sockets_a_jump)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.frames = 2,
					.wanted = 1,
					.jumps = 1,
					.flags = EPOLLET });
}

TEST(two_calls_each_level_triggered)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 1,
					.frames = 1,
					.wanted = 2 });
}

TEST(two_calls_each_edge_triggered)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 1,
					.frames = 2,
					.wanted = 2,
					.flags = EPOLLET });
}

TEST(two_calls_each_and_the_kernel)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 1,
					.frames = 1,
					.wanted = 2,
					.kernel = 1,
					.flags = EPOLLET });
}

TEST(the_kernel_twice)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 1,
					.wanted = 1,
					.kernel = 2 });
}

TEST(the_kernel_twice_for_who_do_not_watch_the_ring)
{
	try_everything(&(struct scene){ .threads = 3,
					.sets = 2,
					.sockets = 1,
					.wanted = 1,
					.kernel = 2 });
}

TEST(the_kernel_twice_and_a_jump)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 1,
					.wanted = 1,
					.kernel = 2,
					.jumps = 1 });
}

TEST(two_sets_edge_triggered)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 2,
					.sockets = 1,
					.frames = 1,
					.wanted = 2,
					.flags = EPOLLET });
}

TEST(two_exclusive_sets)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 2,
					.sockets = 1,
					.frames = 2,
					.wanted = 1,
					.flags = EPOLLET | EPOLLEXCLUSIVE });
}

TEST(two_exclusive_sets_a_timeout)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 2,
					.sockets = 1,
					.frames = 1,
					.wanted = 1,
					.timeouts = 1,
					.flags = EPOLLET | EPOLLEXCLUSIVE });
}
