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
#include "os/own_thread.h"
#include "os/real.h"
#include "sock/udp/udp.h"

/* For so long what may be a child's waits for us to read it. */
#define HEIRS_NS (50 * NS_PER_MS)

/* The kernel has taken a router's complaint that we have heard by then, and who
 * complains without end is heard a hundred times a second. */
#define ROUTERS_NS (10 * NS_PER_MS)

enum { EVENTS_MAX = 64, RING_FDS_MAX = 64 };
#define IDLE_NS (2 * NS_PER_SEC)

/* What an event is about, in the place of an object's address. */
enum { ABOUT_NETLINK = 1, ABOUT_RING = 2, ABOUT_ROUTERS = 3 };

enum phase {
	/* Somebody polls: look again after an interval whether that is still
	 * so. */
	PHASE_LOOK,
	/* Nobody polls, or a sleeper watches: the rings' fds wake us. */
	PHASE_GUARD,
};

static struct {
	struct progress_params params;
	_Atomic int epfd;
	/* this thread's alone */
	enum phase phase;
	int ring_fds[RING_FDS_MAX];
	unsigned ring_fd_cnt;
	/* the stack's, when they were collected */
	unsigned ring_gen;
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

static void guard(struct stack *stack)
{
	progress.phase = PHASE_GUARD;
	progress.ring_gen = atomic_load(&stack->ring_gen);
	progress.ring_fd_cnt =
		stack_fds(stack, progress.ring_fds, RING_FDS_MAX);
	for (unsigned i = 0; i < progress.ring_fd_cnt; i++)
		(void)!add_fd(progress.ring_fds[i], EPOLLIN, ABOUT_RING);
}

/* From now on each second counts. */
static void check_soon(void)
{
	progress.next_second_ns = MIN(progress.next_second_ns,
				      clock_monotonic_ns() + NS_PER_SEC);
}

static void unguard(void)
{
	check_soon();
	for (unsigned i = 0; i < progress.ring_fd_cnt; i++)
		real.epoll_ctl(epfd(), EPOLL_CTL_DEL, progress.ring_fds[i],
			       NULL);
	progress.ring_fd_cnt = 0;
	progress.phase = PHASE_LOOK;
}

/* Each second: an interface may have been opened since we began to guard. */
static void follow_rings(struct stack *stack)
{
	if (progress.phase == PHASE_GUARD &&
	    progress.ring_gen != atomic_load(&stack->ring_gen))
		unguard();
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
	if (done && udp_has_heirs())
		look_after_heirs_soon();
}

/* An interval is over. */
static void look(struct stack *stack)
{
	if (was_polled(stack))
		return;
	drain(stack);
	guard(stack);
}

/* A packet has come while we guarded. */
static void wake_up(struct stack *stack)
{
	unguard();
	if (!was_polled(stack))
		drain(stack);
}

/* -- the thread ---------------------------------------------------------------- */

static void handle(const struct epoll_event *event)
{
	struct net *net = progress.params.net;

	switch (event->data.u64) {
	case ABOUT_NETLINK:
		net_events(net);
		break;
	case ABOUT_RING:
		if (progress.phase == PHASE_GUARD)
			wake_up(net->stack);
		break;
	case ABOUT_ROUTERS:
		progress.next_routers_ns = clock_monotonic_ns() + ROUTERS_NS;
		break;
	default:
		udp_twin_event((struct fd_object *)(uintptr_t)event->data.u64,
			       event->events & EPOLLERR);
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

	if (progress.phase == PHASE_LOOK && progress.params.interval_ms)
		ms = MIN(ms, (int)progress.params.interval_ms);
	return ms;
}

/* Nothing moves: a wake-up costs more than what it does. Without a ring to guard the
 * first one may be about to come. */
static bool is_idle(void)
{
	return progress.phase == PHASE_GUARD && progress.ring_fd_cnt &&
	       !udp_has_heirs() && !udp_looks_at_ports();
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
	udp_look_at_ports();
	follow_rings(progress.params.net->stack);
	if (udp_has_heirs()) {
		(void)stack_poll_unwatched(progress.params.net->stack);
		look_after_heirs_soon();
	}
}

static void look_after_heirs(uint64_t now)
{
	if (now < progress.next_heirs_ns)
		return;
	progress.next_heirs_ns = UINT64_MAX;
	if (udp_look_after_heirs())
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
	udp_follow_news();
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
	if (progress.phase == PHASE_LOOK && progress.params.interval_ms &&
	    now >= *next_look_ns) {
		look(progress.params.net->stack);
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

	while (epfd() >= 0)
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
	progress.phase = PHASE_LOOK;
	progress.ring_fd_cnt = 0;
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
	return err;
}

void progress_forked(void)
{
	atomic_store(&progress.epfd, -1);
}
