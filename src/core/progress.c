/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread (progress.h). */
#include "config.h"

#include "core/progress.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/event_fd.h"
#include "os/own_thread.h"
#include "os/real.h"
#include "sock/sock_kinds.h"

/* For so long what may be a child's waits for us to read it. */
#define HEIRS_NS (50 * NS_PER_MS)

/* The kernel has taken a router's complaint that we have heard by then, and who
 * complains without end is heard a hundred times a second. */
#define ROUTERS_NS (10 * NS_PER_MS)

enum { EVENTS_MAX = 64 };
#define IDLE_NS (2 * NS_PER_SEC)

/* What an event is about, in the place of an object's address: the last ones are the
 * stacks', by their number. */
enum {
	ABOUT_NETLINK = 1,
	ABOUT_ROUTERS = 2,
	ABOUT_END = 3,
	ABOUT_STACK = 4,
	ABOUT_OBJECT = ABOUT_STACK + NET_STACKS_MAX,
};

enum phase {
	/* Somebody polls: look again after an interval whether that is still
	 * so. A new stack begins with it. */
	PHASE_LOOK = 0,
	/* Nobody polls, or a sleeper watches: the rings' fds wake us. */
	PHASE_GUARD,
};

static struct {
	struct progress_params params;
	_Atomic int epfd;
	/* The thread runs, and it is to end. */
	_Atomic bool is_running, is_stopping;
	/* this thread's alone */
	enum phase phases[NET_STACKS_MAX];
	/* the view's, when the sockets were told of it */
	uint32_t route_gen;
	uint64_t next_second_ns;
	/* UINT64_MAX: not before there is a reason to */
	uint64_t next_heirs_ns;
	uint64_t next_routers_ns;
} progress = { .epfd = -1 };

static int epfd(void)
{
	return atomic_load(&progress.epfd);
}

/* Routers have complained: once, until it is asked for again. */
static int await_routers(int op)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.u64 = ABOUT_ROUTERS };
	int fd = net_icmp_fd(progress.params.net);

	if (fd < 0)
		return 0;
	return real.epoll_ctl(epfd(), op, fd, &event) ? -errno : 0;
}

static int add_fd(int fd, uint32_t events, uint64_t about)
{
	struct epoll_event event = { .events = events, .data.u64 = about };

	return real.epoll_ctl(epfd(), EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void progress_watch_twin(int fd, struct fd_object *obj)
{
	/* An object's memory stays an object's; a late event is harmless. */
	int err = add_fd(fd, EPOLLIN | EPOLLERR | EPOLLET,
			 (uint64_t)(uintptr_t)obj);

	if (err && err != -EEXIST)
		log_dbg("fd %d: cannot watch what the kernel brings (%s)", fd,
			strerror(-err));
}

/* -- rings --------------------------------------------------------------------- */

#define FOR_EACH_STACK(stack)                                              \
	for (unsigned i_ = 0; i_ < net_stack_cnt(progress.params.net); i_++) \
		for (struct stack *stack = progress.params.net->stacks[i_]; \
		     stack; stack = NULL)

static enum phase *phase_of(const struct stack *stack)
{
	return &progress.phases[stack->index];
}

/* From now on each second counts. */
static void check_soon(void)
{
	progress.next_second_ns = MIN(progress.next_second_ns,
				      clock_monotonic_ns() + NS_PER_SEC);
}

static bool was_polled(struct stack *stack)
{
	return atomic_exchange_explicit(&stack->was_polled, false,
					memory_order_relaxed);
}

/* What nobody took may be for a child of ours, which two looks decide. */
static void look_after_heirs_soon(void)
{
	progress.next_heirs_ns =
		MIN(progress.next_heirs_ns, clock_monotonic_ns() + HEIRS_NS);
}

/* Processes what the rings have, unless somebody sleeps on them: it is the
 * sleeper's. Our own polling is not the program's. */
static void drain(struct stack *stack)
{
	unsigned done = 0, cnt;

	do {
		cnt = stack_poll_unwatched(stack);
		done += cnt;
	} while (cnt && done < progress.params.batch_max);
	was_polled(stack);
	if (done && sock_kinds_have_heirs())
		look_after_heirs_soon();
}

/* Unless something has come already, which the next look takes. */
static void guard(struct stack *stack)
{
	if (!stack_arm_unwatched(stack))
		return;
	*phase_of(stack) = PHASE_GUARD;
	(void)!add_fd(stack_fd(stack), EPOLLIN, ABOUT_STACK + stack->index);
}

static void unguard(struct stack *stack)
{
	check_soon();
	*phase_of(stack) = PHASE_LOOK;
	real.epoll_ctl(epfd(), EPOLL_CTL_DEL, stack_fd(stack), NULL);
}

/* An interval is over. */
static void look(struct stack *stack)
{
	if (*phase_of(stack) == PHASE_GUARD || was_polled(stack))
		return;
	drain(stack);
	guard(stack);
}

/* A packet has come while we guarded. */
static void wake_up(struct stack *stack)
{
	if (*phase_of(stack) != PHASE_GUARD)
		return;
	unguard(stack);
	if (!was_polled(stack))
		drain(stack);
}

/* Whether somebody may be polling, so that it has to be looked for. */
static bool has_looks(void)
{
	FOR_EACH_STACK(stack)
		if (*phase_of(stack) == PHASE_LOOK)
			return progress.params.interval_ms != 0;
	return false;
}

/* -- the thread ---------------------------------------------------------------- */

static void handle(const struct epoll_event *event)
{
	struct net *net = progress.params.net;
	struct fd_object *obj;

	if (event->data.u64 >= ABOUT_OBJECT) {
		/* Its memory stays an object's. It may have been closed since the
		 * kernel told us, and be in the making for another socket now. */
		obj = (struct fd_object *)(uintptr_t)event->data.u64;
		if (fd_object_try_hold(obj)) {
			obj->ops->twin_event(obj, event->events);
			fd_object_put(obj);
		}
		return;
	}

	switch (event->data.u64) {
	case ABOUT_NETLINK:
		net_events(net);
		break;
	case ABOUT_END:
		break;
	case ABOUT_ROUTERS:
		progress.next_routers_ns = clock_monotonic_ns() + ROUTERS_NS;
		break;
	default:
		wake_up(net->stacks[event->data.u64 - ABOUT_STACK]);
	}
}

static int time_to_sleep_ms(void)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t next = MIN(progress.next_second_ns, progress.next_heirs_ns);
	uint64_t left;
	int ms;

	next = MIN(next, progress.next_routers_ns);
	left = next > now ? next - now : 0;
	ms = (int)((left + NS_PER_MS - 1) / NS_PER_MS);

	if (has_looks())
		ms = MIN(ms, (int)progress.params.interval_ms);
	return ms;
}

/* Nothing moves: a wake-up costs more than what it does. Without a ring to guard the
 * first one may be about to come. */
static bool is_idle(void)
{
	bool has_rings = false;

	FOR_EACH_STACK(stack)
		has_rings |= stack_has_rings(stack);
	return has_rings && !has_looks() && !sock_kinds_want_seconds();
}

static void each_second(void)
{
	uint64_t now = clock_monotonic_ns();

	if (now < progress.next_second_ns)
		return;
	progress.next_second_ns = now + NS_PER_SEC;
	if (!net_check(progress.params.net) && is_idle())
		progress.next_second_ns = now + IDLE_NS;
	progress.params.each_second();
	if (own_thread_has_to_look() && own_thread_is_last())
		own_thread_end_process();
	sock_kinds_each_second();
	if (!sock_kinds_have_heirs())
		return;
	FOR_EACH_STACK(stack)
		(void)stack_poll_unwatched(stack);
	look_after_heirs_soon();
}

static void look_after_heirs(uint64_t now)
{
	if (now < progress.next_heirs_ns)
		return;
	progress.next_heirs_ns = UINT64_MAX;
	if (sock_kinds_look_after_heirs())
		look_after_heirs_soon();
}

static void hear_routers(uint64_t now)
{
	if (now < progress.next_routers_ns)
		return;
	progress.next_routers_ns = UINT64_MAX;
	net_hear_routers(progress.params.net);
	(void)!await_routers(EPOLL_CTL_MOD);
}

static uint32_t route_gen(void)
{
	return net_view_route_gen(&progress.params.net->view);
}

static void tell_sockets(void)
{
	if (progress.route_gen == route_gen())
		return;
	progress.route_gen = route_gen();
	sock_kinds_follow_news();
}

static void run_once(uint64_t *next_look_ns)
{
	struct epoll_event events[EVENTS_MAX];
	int cnt = real.epoll_wait(epfd(), events, EVENTS_MAX,
				  time_to_sleep_ms());
	uint64_t now;

	for (int i = 0; i < cnt; i++)
		handle(&events[i]);
	now = clock_monotonic_ns();
	if (has_looks() && now >= *next_look_ns) {
		FOR_EACH_STACK(stack)
			look(stack);
		*next_look_ns = now + progress.params.interval_ms * NS_PER_MS;
	}
	hear_routers(now);
	look_after_heirs(now);
	each_second();
	tell_sockets();
}

static void run(void)
{
	uint64_t next_look_ns = 0;

	while (epfd() >= 0 && !atomic_load(&progress.is_stopping))
		run_once(&next_look_ns);
}

static int start_thread(void)
{
	struct own_thread_params params = {
		.name = "vma",
		.cpus = progress.params.cpus,
		.run = run,
	};

	return own_thread_start(&params);
}

int progress_start(const struct progress_params *params)
{
	int fd, err;

	progress.params = *params;
	memset(progress.phases, 0, sizeof(progress.phases));
	progress.route_gen = route_gen();
	progress.next_heirs_ns = UINT64_MAX;
	progress.next_routers_ns = UINT64_MAX;
	fd = real.epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fd_internal_adopt(fd, &progress.epfd) != 0)
		atomic_store(&progress.epfd, fd);
	err = add_fd(net_event_fd(params->net), EPOLLIN, ABOUT_NETLINK);
	if (!err)
		err = await_routers(EPOLL_CTL_ADD);
	if (!err)
		err = start_thread();
	if (err)
		fd_internal_close(&progress.epfd);
	else
		atomic_store(&progress.is_running, true);
	return err;
}

void progress_stop(void)
{
	int fd;

	if (!atomic_exchange(&progress.is_running, false))
		return;
	atomic_store(&progress.is_stopping, true);
	/* Wakes it up: an event that is there when it is asked for. Without one it
	 * ends at the next second. */
	fd = event_fd_open();
	if (fd >= 0) {
		event_fd_signal(fd);
		(void)!add_fd(fd, EPOLLIN, ABOUT_END);
	}
	own_thread_join();
	if (fd >= 0)
		real.close(fd);
}

void progress_forked(void)
{
	atomic_store(&progress.epfd, -1);
	atomic_store(&progress.is_running, false);
}
