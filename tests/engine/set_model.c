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

#include "iomux/epoll_ready.h"

#include "fd/fd_table.h"
#include "tests/engine/sleepers.h"

enum { THREADS_MAX = 3, SETS_MAX = 2, SOCKETS_MAX = 2, STACKS_MAX = RINGS_MAX };
enum { SET_FD = 500, SOCKET_FD = 600 };

enum state {
	LOOKS,    /* about to poll the ring */
	HARVESTS, /* about to take what its set has */
	RESTS,    /* has found nothing, and is about to sleep: on further stacks */
	RESTS_AT_LAST, /* and on the first one */
	SLEEPS,
	JUMPED, /* a handler has left the sleep, and the call behind */
	RISES,  /* has left the first stack, and is about to leave the others */
	READS,  /* has an event, and is about to read */
	LEAVES, /* its time is over, and it has found nothing */
	ENDED,
};

struct thread {
	enum state state;
	struct epoll_call call;
	struct waiter *waiter;
	bool polls_ring[STACKS_MAX];
	bool hears_kernel, is_over, has_come;
	enum state next; /* after RISES */
	struct thing *has; /* what it reads from; NULL: the kernel's */
	unsigned wanted;
};

struct event {
	enum {
		STEP, WAKE, TIME_OUT, JUMP, COME_BACK, ARRIVE, POLL, KERNEL, WRITE
	} what;
	unsigned who; /* a thread, a set, a stack, or an eventfd */
};

/* The sockets, which all sets have. */
static struct thing {
	struct fd_object obj;
	struct endpoint end;
	unsigned data;
} things[SOCKETS_MAX];

static struct stack *stacks[STACKS_MAX];
static struct epoll_set *sets[SETS_MAX];
/* of all runs */
static uint64_t looks;

static struct {
	struct thread threads[THREADS_MAX];
	unsigned thread_cnt, set_cnt, socket_cnt, stack_cnt;
	unsigned arrivals_left, timeouts_left, jumps_left, kernel_left;
	unsigned polls_left;
	bool is_kernel_ready[SETS_MAX];
	/* has the watch of the ring; NULL: nobody */
	struct waiter *somebody;
} model;

static void deliver(unsigned whom)
{
	things[whom].data++;
	endpoint_set_ready(&things[whom].end, READY_IN);
}

static unsigned stack_of(const struct thing *thing)
{
	return (unsigned)(thing - things) % model.stack_cnt;
}

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

static void poll_stack(struct stack *stack)
{
	stack_lock(stack);
	stack_poll_locked(stack);
	stack_unlock(stack);
}

static void look(struct thread *thread)
{
	epoll_set_begin_look(set_of(thread));
	for (unsigned i = 0; i < model.stack_cnt; i++)
		poll_stack(stacks[i]);
	thread->state = HARVESTS;
}

static void harvest(struct thread *thread)
{
	bool *is_kernel_ready = &model.is_kernel_ready[place_of(thread)];
	struct epoll_event event;
	int n = epoll_set_harvest(set_of(thread), ++looks, &event, 1);

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
	struct thing *thing = thread->has;

	if (thing) {
		stack_lock(stacks[stack_of(thing)]);
		if (thing->data && --thing->data == 0)
			endpoint_clear_ready(&thing->end, READY_IN);
		stack_unlock(stacks[stack_of(thing)]);
	}
	if (--thread->wanted && !thread->is_over)
		begin_call(thread);
	else
		thread->state = ENDED;
}

static void put_waiters(struct thread *thread)
{
	struct waiter *more = thread->waiter->more;

	waiter_put(thread->waiter);
	if (more)
		waiter_put(more);
}

/* It leaves the first stack, and with it the set. */
static void end_sleep(struct thread *thread, enum state next)
{
	stack_lock(stacks[0]);
	epoll_set_end_sleep(set_of(thread), &thread->call);
	wait_end_locked(stacks[0], thread->waiter);
	stack_unlock(stacks[0]);
	thread->next = next;
	thread->state = RISES;
}

static void rise(struct thread *thread)
{
	struct waiter *more = thread->waiter->more;

	if (more) {
		stack_lock(more->stack);
		wait_end_locked(more->stack, more);
		stack_unlock(more->stack);
	}
	put_waiters(thread);
	thread->state = thread->next;
}

/* Without further stacks there is nothing to see between the two. */
static void end_all_sleep(struct thread *thread, enum state next)
{
	end_sleep(thread, next);
	if (!thread->waiter->more)
		rise(thread);
}

/* Returns whether something has come. */
static bool begin_in(struct thread *thread, unsigned i, struct waiter *waiter)
{
	struct pollfd fds[WAIT_FDS_MAX];
	bool has_watch, is_ready = false;

	wait_rearm(waiter);
	stack_lock(stacks[i]);
	has_watch = wait_begin_locked(stacks[i], waiter);
	if (i == 0)
		is_ready = epoll_set_begin_sleep(set_of(thread), &thread->call);
	is_ready |= has_watch && (!stack_arm_locked(stacks[i]) ||
				  stack_poll_locked(stacks[i]) > 0);
	thread->polls_ring[i] = wait_fds(stacks[i], waiter, fds) > 1;
	stack_unlock(stacks[i]);
	return is_ready;
}

static void rest(struct thread *thread)
{
	thread->waiter = thread->call.call.wait.waiter = waiter_get();
	thread->call.stacks_gen = atomic_load(&set_of(thread)->stacks_gen);
	thread->has_come = false;
	if (model.stack_cnt > 1) {
		thread->waiter->more = waiter_get();
		thread->has_come = begin_in(thread, 1, thread->waiter->more);
	}
	thread->state = RESTS_AT_LAST;
}

static void rest_at_last(struct thread *thread)
{
	thread->has_come |= begin_in(thread, 0, thread->waiter);
	thread->hears_kernel = thread->call.fds[0].fd >= 0;
	if (thread->has_come)
		end_all_sleep(thread, LOOKS);
	else
		thread->state = SLEEPS;
}

static void rest_at_once(struct thread *thread)
{
	rest(thread);
	if (model.stack_cnt == 1)
		rest_at_last(thread);
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
		rest_at_once(thread);
		break;
	case RESTS_AT_LAST:
		rest_at_last(thread);
		break;
	case RISES:
		rise(thread);
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
	struct waiter *more = thread->waiter->more;

	stack_lock(stacks[0]);
	wait_pause_locked(stacks[0], thread->waiter);
	epoll_set_pause_sleep(set_of(thread), &thread->call);
	stack_unlock(stacks[0]);
	if (more) {
		stack_lock(more->stack);
		wait_pause_locked(more->stack, more);
		stack_unlock(more->stack);
	}
	thread->state = JUMPED;
}

/* -- every order ------------------------------------------------------------------- */

static bool is_awake(const struct thread *thread)
{
	for (unsigned i = 0; i < model.stack_cnt; i++)
		if (thread->polls_ring[i] && kernel.rings[i].frame_cnt)
			return true;
	return is_signalled(thread->waiter) ||
	       (thread->waiter->more && is_signalled(thread->waiter->more)) ||
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
	for (unsigned i = 0; i < model.stack_cnt && model.polls_left; i++)
		if (kernel.rings[i].frame_cnt)
			events[n++] = (struct event){ POLL, i };
	if (model.kernel_left)
		events[n++] = (struct event){ KERNEL, 0 };
	for (unsigned fd = 0; fd < EVENT_FDS; fd++)
		if (kernel.writes_due[fd])
			events[n++] = (struct event){ WRITE, fd };
	return n;
}

static void happen(const struct event *event)
{
	struct thread *thread = &model.threads[event->who % THREADS_MAX];
	unsigned whom;

	switch (event->what) {
	case STEP:
		step(thread);
		break;
	case WAKE:
		end_all_sleep(thread, LOOKS);
		break;
	case TIME_OUT:
		model.timeouts_left--;
		thread->is_over = true;
		end_all_sleep(thread, LOOKS);
		break;
	case JUMP:
		model.jumps_left--;
		jump(thread);
		break;
	case COME_BACK:
		end_sleep(thread, JUMPED);
		rise(thread);
		abandon_call(thread);
		break;
	case ARRIVE:
		/* the last one is for the last socket */
		whom = model.arrivals_left-- % model.socket_cnt;
		arrive(stack_of(&things[whom]), whom);
		break;
	case POLL:
		/* by somebody who has nothing to do with sets */
		model.polls_left--;
		poll_stack(stacks[event->who]);
		break;
	case KERNEL:
		/* of the last set, whose sleepers need not watch the ring */
		model.kernel_left--;
		model.is_kernel_ready[model.set_cnt - 1] = true;
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
		if (events[i].what != POLL && events[i].what != COME_BACK && events[i].what != JUMP &&
		    events[i].what != TIME_OUT)
			return false;
	return true;
}

/* Of exclusive sets not all need hear of it, but one does. Here that one reads. */
static bool is_all_read(void)
{
	return model.set_cnt == 1 || !things[0].data;
}

static bool is_in_rings(void)
{
	return kernel.rings[0].frame_cnt || kernel.rings[1].frame_cnt;
}

static void check_nobody_is_forgotten(void)
{
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct thread *thread = &model.threads[i];

		if (thread->state != SLEEPS)
			continue;
		if (!epoll_set_is_ready(set_of(thread)) && !is_in_rings() &&
		    is_all_read() && !model.is_kernel_ready[place_of(thread)])
			continue;
		note_way();
		FAIL("thread %u sleeps over what its set has", i);
	}
}

struct scene {
	unsigned threads, sets, sockets, frames, timeouts, jumps, kernel;
	unsigned stacks; /* 0: one */
	unsigned polls;  /* by somebody else, who receives from another socket */
	bool is_watched; /* the ring, by somebody who is not of a set */
	unsigned wanted; /* by each thread */
	uint32_t flags;
};

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
					&things[i].end,
					stacks[stack_of(&things[i])],
					&event, false), 0);
}

/* Sets and items stay for all runs of a scene, which leave them as they were. */
static void begin_scene(const struct scene *scene)
{
	static struct fd_ops ops = { .name = "thing" };

	fd_ops_fill(&ops);
	epoll_sets_load();
	model.stack_cnt = MAX(scene->stacks, 1u);
	for (unsigned i = 0; i < STACKS_MAX; i++)
		stacks[i] = model_stack(i);
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

static void begin_somebody(void)
{
	model.somebody = waiter_get();
	wait_rearm(model.somebody);
	stack_lock(stacks[0]);
	CHECK(wait_begin_locked(stacks[0], model.somebody));
	CHECK(stack_arm_locked(stacks[0]));
	stack_unlock(stacks[0]);
}

static void end_somebody(void)
{
	stack_lock(stacks[0]);
	wait_end_locked(stacks[0], model.somebody);
	stack_unlock(stacks[0]);
	waiter_put(model.somebody);
}

static void begin(const struct scene *scene)
{
	memset(&model, 0, sizeof(model));
	model.stack_cnt = MAX(scene->stacks, 1u);
	begin_kernel(model.stack_cnt, deliver);
	model.thread_cnt = scene->threads;
	model.set_cnt = scene->sets;
	model.socket_cnt = scene->sockets;
	model.arrivals_left = scene->frames;
	model.timeouts_left = scene->timeouts;
	model.jumps_left = scene->jumps;
	model.kernel_left = scene->kernel;
	model.polls_left = scene->polls;
	if (scene->is_watched)
		begin_somebody();
	for (unsigned i = 0; i < scene->threads; i++) {
		struct thread *thread = &model.threads[i];

		thread->call.query.set = sets[(i + 1) / 2 % scene->sets];
		thread->call.query.epfd = SET_FD;
		thread->call.fds[0].fd = -1;
		thread->wanted = scene->wanted;
		begin_call(thread);
		/* They sleep; the orders in which they come to that are the
		 * second call's, but with two stacks one may watch each. */
		if (model.stack_cnt == 1)
			rest_at_once(thread);
		else
			thread->state = RESTS;
	}
}

static void end(void)
{
	if (model.somebody)
		end_somebody();
	for (unsigned i = 0; i < model.thread_cnt; i++) {
		struct thread *thread = &model.threads[i];

		if (thread->state == SLEEPS || thread->state == JUMPED) {
			end_sleep(thread, JUMPED);
			rise(thread);
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
	for (unsigned i = 0; i < model.stack_cnt; i++)
		check_stack_is_at_rest(stacks[i]);
}

enum { EVENTS_MAX = 3 * THREADS_MAX + 2 + STACKS_MAX + EVENT_FDS };

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

static void arrive_at(unsigned whom)
{
	arrive(0, whom);
	poll_stack(stacks[0]);
}

static void write_all(void)
{
	for (unsigned fd = 0; fd < EVENT_FDS; fd++)
		while (kernel.writes_due[fd])
			write_event(fd);
}

static void wake_up(struct thread *thread)
{
	write_all();
	CHECK(is_awake(thread));
	end_all_sleep(thread, LOOKS);
}

/* Until it sleeps or has ended. */
static void go_on(struct thread *thread)
{
	while (thread->state != SLEEPS && thread->state != ENDED)
		step(thread);
}

/* What comes of the kernel is heard by the last one. */
static void check_last_hears(struct thread *last)
{
	write_all();
	if (is_awake(last))
		wake_up(last);
	go_on(last);
	CHECK_EQ(last->state, SLEEPS);
	model.is_kernel_ready[0] = true;
	wake_up(last);
	go_on(last);
	CHECK_EQ(last->state, ENDED);
}

/* Of three threads one way at a time, since all ways are too many. The second is woken to take
 * the kernel's watch from the first, and does not. */
static const struct scene heirs = { .threads = 3,
				    .sets = 1,
				    .sockets = 2,
				    .wanted = 1,
				    .is_watched = true,
				    .flags = EPOLLET };

TEST(who_does_not_take_the_kernels_watch_passes_it_on)
{
	begin_scene(&heirs);
	begin(&heirs);
	arrive_at(0);
	wake_up(&model.threads[0]);
	arrive_at(1);
	wake_up(&model.threads[1]);
	/* so that neither finds the other's event left, and wakes the last one for it */
	step(&model.threads[1]);
	for (unsigned i = 0; i < 2; i++) {
		go_on(&model.threads[i]);
		CHECK_EQ(model.threads[i].state, ENDED);
	}
	check_last_hears(&model.threads[2]);
	end();
	end_scene(&heirs);
}

TEST(who_is_interrupted_before_he_takes_the_kernels_watch_passes_it_on)
{
	begin_scene(&heirs);
	begin(&heirs);
	arrive_at(0);
	wake_up(&model.threads[0]);
	jump(&model.threads[1]);
	go_on(&model.threads[0]);
	check_last_hears(&model.threads[2]);
	end();
	end_scene(&heirs);
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

/* A socket in each of two stacks: a thread that sleeps has a waiter in both, and may be
 * the watcher of one, of the other, or of both. */
TEST(two_stacks)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.stacks = 2,
					.frames = 2,
					.wanted = 1 });
}

TEST(two_stacks_edge_triggered)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.stacks = 2,
					.frames = 2,
					.wanted = 1,
					.flags = EPOLLET });
}

TEST(two_stacks_and_somebody_else)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.stacks = 2,
					.frames = 1,
					.wanted = 1,
					.polls = 1 });
}

TEST(two_stacks_a_timeout)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.stacks = 2,
					.frames = 1,
					.wanted = 1,
					.timeouts = 1 });
}

TEST(two_stacks_a_jump)
{
	try_everything(&(struct scene){ .threads = 2,
					.sets = 1,
					.sockets = 2,
					.stacks = 2,
					.frames = 2,
					.wanted = 1,
					.jumps = 1,
					.flags = EPOLLET });
}
