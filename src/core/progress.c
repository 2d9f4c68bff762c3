/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread (progress.h). */
#include "config.h"

#include "core/progress.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "fd/fd_internal.h"
#include "fd/fd_table.h"
#include "os/event_fd.h"
#include "os/own_thread.h"
#include "os/real.h"
#include "sock/sock_kinds.h"

/* How long packets that may be for a child wait for this process to read them. */
#define HEIRS_NS (50 * NS_PER_MS)

/* How long we wait after a router's complaint. By then the kernel has processed it,
 * too. It also means that a router that complains all the time is heard at most a
 * hundred times a second. */
#define ROUTERS_NS (10 * NS_PER_MS)

/* How soon we look again whether an interface that has failed can be closed. */
#define FAILED_NS (5 * NS_PER_MS)

/* How late the watcher of a stack may be before this thread sees to the stack's
 * timers. */
#define GRACE_NS NS_PER_MS

enum { EVENTS_MAX = 64 };
#define IDLE_NS (5 * NS_PER_SEC / 2)

/* How soon a thread that is woken by each packet guards a stack again. */
enum { GUARD_SOON_MS = 10 };

/* How often in a row it takes packets that came while it was about to guard. */
enum { GUARD_TRIES = 4 };

/* What an event is about. Smaller values than ABOUT_OBJECT stand in the place of an
 * object's address. From ABOUT_STACK on they are the stacks, by their number. */
enum {
	ABOUT_NETLINK = 1,
	ABOUT_ROUTERS = 2,
	ABOUT_US = 3,
	ABOUT_STACK = 4,
	ABOUT_OBJECT = ABOUT_STACK + NET_STACKS_MAX,
};

enum phase {
	/* The program polls. After an interval we look whether it still does. A new
	 * stack begins in this phase. */
	PHASE_LOOK = 0,
	/* The program does not poll, or a sleeper is the watcher. The fds of the
	 * rings wake us. */
	PHASE_GUARD,
};

/* What has become of the wish that is made before the process ends. */
enum end {
	END_UNKNOWN = 0,
	END_WISHED,
	END_PREPARED,
};

/* What this thread does for a stack. */
struct care {
	enum phase phase;
	/* for the stack's own timers, unless we look at the stack soon anyway */
	struct timer timer;
};

static struct {
	struct progress_params params;
	_Atomic int epfd;
	/* wakes the thread, which then looks at its orders, the next two members */
	_Atomic int order_fd;
	_Atomic bool is_stopping;
	_Atomic bool has_sooner;
	/* enum end */
	_Atomic uint32_t end;
	/* The thread runs. */
	_Atomic bool is_running;
	/* for this thread alone, from here on */
	struct timer_wheel timers;
	/* fires every second, or every two while nothing moves */
	struct timer second;
	bool is_slow;
	struct timer looks, heirs, routers, failed;
	/* There is a packet that the next look must not be late for. */
	bool is_hasty;
	struct care cares[NET_STACKS_MAX];
	/* the view's generation when the sockets were last told of news */
	uint32_t route_gen;
} progress = { .epfd = -1, .order_fd = -1 };

static void set_timer(struct timer *timer, uint64_t delay_ns)
{
	timer_set(&progress.timers, timer, clock_monotonic_ns() + delay_ns);
}

static int epfd(void)
{
	return atomic_load(&progress.epfd);
}

static int add_fd(int fd, uint32_t events, uint64_t about)
{
	struct epoll_event event = { .events = events, .data.u64 = about };

	return real.epoll_ctl(epfd(), EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Wakes us once, and has to be asked for again after that: by the number that the fd has
 * now, while epoll knows it by the one that it had before a dup2() of the program onto that,
 * and could not be told to forget it. */
static int await(int fd, uint64_t about)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.u64 = about };

	if (fd < 0 || real.epoll_ctl(epfd(), EPOLL_CTL_MOD, fd, &event) == 0)
		return 0;
	return errno == ENOENT ? add_fd(fd, event.events, about) : -errno;
}

static int await_netlink(void)
{
	return await(net_event_fd(progress.params.net), ABOUT_NETLINK);
}

static int await_routers(void)
{
	return await(net_icmp_fd(progress.params.net), ABOUT_ROUTERS);
}

void progress_watch_twin(int fd, struct fd_object *obj)
{
	int err;

	/* The thread gets the address by the kernel. The memory of an object stays
	 * that of an object, so a late event does no harm. */
	TSAN_RELEASED(obj);
	err = add_fd(fd, EPOLLIN | EPOLLERR | EPOLLET,
		     (uint64_t)(uintptr_t)obj);
	if (err && err != -EEXIST)
		log_dbg("fd %d: cannot watch what the kernel brings (%s)", fd,
			strerror(-err));
}

/* While the kernel reads for us what an fd has to tell, it holds the file. This waits for
 * that. One that we know by another number it does not find. */
void progress_forget_twin(int fd)
{
	int set = epfd();

	if (set >= 0)
		(void)syscall_raw(SYS_epoll_ctl, set, EPOLL_CTL_DEL, fd, 0, 0, 0);
}

/* -- rings --------------------------------------------------------------------- */

#define FOR_EACH_STACK(stack)                                              \
	for (unsigned i_ = 0; i_ < net_stack_cnt(progress.params.net); i_++) \
		for (struct stack *stack = progress.params.net->stacks[i_]; \
		     stack; stack = NULL)

static struct care *care_of(const struct stack *stack)
{
	return &progress.cares[stack->index];
}

/* What comes for the kernel is looked for where nothing else is: who has to have it may
 * never ask us. */
static bool is_looked_at(const struct stack *stack)
{
	return care_of(stack)->phase == PHASE_LOOK &&
	       (progress.params.is_woken || progress.params.interval_ms ||
		stack_has_guests(stack));
}

/* From now on we check every second. */
static void check_soon(void)
{
	if (!progress.is_slow)
		return;
	progress.is_slow = false;
	set_timer(&progress.second, NS_PER_SEC);
}

static bool was_polled(struct stack *stack)
{
	return atomic_exchange_explicit(&stack->was_polled, false,
					memory_order_relaxed);
}

/* Packets that nobody took may be for a child of ours. Two looks decide that. */
static void look_after_heirs_soon(void)
{
	if (!timer_is_pending(&progress.heirs))
		set_timer(&progress.heirs, HEIRS_NS);
}

/* Sets our timer to when we have to see to the stack's timers. */
static void time_stack(struct stack *stack)
{
	struct timer *timer = &care_of(stack)->timer;
	uint64_t until = TIMER_NEVER;

	if (is_looked_at(stack))
		stack_sleep_over(stack);
	else
		until = stack_sleep_until(stack, GRACE_NS);
	if (until == TIMER_NEVER)
		timer_cancel(&progress.timers, timer);
	else
		timer_set(&progress.timers, timer, until);
}

static void stack_is_late(struct timer *timer, uint64_t now_ns UNUSED)
{
	struct care *care = CONTAINER_OF(timer, struct care, timer);
	struct stack *stack =
		progress.params.net->stacks[care - progress.cares];

	stack_run_timers(stack);
	time_stack(stack);
}

/* Processes what the rings have, unless a sleeper is the watcher, who does it
 * himself; and what an engine has to tidy up after that. Our own polling must not count as
 * the program's. */
static void drain(struct stack *stack)
{
	unsigned done = 0, cnt;

	do {
		cnt = stack_poll_unwatched(stack);
		done += cnt;
	} while (cnt && done < progress.params.batch_max);
	was_polled(stack);
	stack_tidy(stack);
	if (done && sock_kinds_have_heirs())
		look_after_heirs_soon();
}

/* Begins to guard the stack, unless a packet has come already, which the next look
 * takes, as it takes all if the kernel has no memory to wake us. */
static void guard(struct stack *stack)
{
	int err;

	if (!stack_arm_unwatched(stack))
		return;
	err = add_fd(stack_fd(stack), EPOLLIN, ABOUT_STACK + stack->index);
	if (err && err != -EEXIST)
		return;
	care_of(stack)->phase = PHASE_GUARD;
	time_stack(stack);
}

static void unguard(struct stack *stack)
{
	check_soon();
	care_of(stack)->phase = PHASE_LOOK;
	real.epoll_ctl(epfd(), EPOLL_CTL_DEL, stack_fd(stack), NULL);
	time_stack(stack);
}

/* An interval is over. A thread that polls runs no timers while each of its looks
 * finds a packet at once; so we run them. */
static void look(struct stack *stack)
{
	if (!is_looked_at(stack))
		return;
	if (!progress.params.is_woken && was_polled(stack)) {
		stack_run_timers(stack);
		stack_unwatch_unused(stack);
		return;
	}
	drain(stack);
	guard(stack);
}

/* False: packets came all the time. */
static bool drain_and_guard_on(struct stack *stack)
{
	for (int i = 0; i < GUARD_TRIES; i++) {
		drain(stack);
		if (stack_arm_unwatched(stack))
			return true;
	}
	return false;
}

/* A packet has come while we guarded. One for the kernel is no sign that the program
 * begins to poll, and the next is not to wait for a look, unless there is a sleeper, who
 * takes that. */
static void wake_up(struct stack *stack)
{
	bool is_polled, is_guest;

	if (care_of(stack)->phase != PHASE_GUARD)
		return;
	is_polled = was_polled(stack);
	is_guest = stack_has_guests(stack) && !is_polled &&
		   !stack_has_watcher(stack);
	if ((progress.params.is_woken || is_guest) && drain_and_guard_on(stack))
		return;
	progress.is_hasty |= is_guest;
	unguard(stack);
	if (!is_polled)
		drain(stack);
}

/* Whether the program may be polling, so that we have to look at intervals. */
static bool has_looks(void)
{
	FOR_EACH_STACK(stack)
		if (is_looked_at(stack))
			return true;
	return false;
}

static unsigned interval_ms(void)
{
	if (progress.is_hasty)
		return 0;
	return progress.params.is_woken || !progress.params.interval_ms ?
		       GUARD_SOON_MS :
		       progress.params.interval_ms;
}

static void look_soon(void)
{
	if (has_looks() &&
	    (progress.is_hasty || !timer_is_pending(&progress.looks)))
		set_timer(&progress.looks, interval_ms() * NS_PER_MS);
	progress.is_hasty = false;
}

static void look_at_all(struct timer *timer UNUSED, uint64_t now_ns UNUSED)
{
	FOR_EACH_STACK(stack)
		look(stack);
	look_soon();
}

/* A stack may have a timer that is due before we would wake up: it is in use, so we
 * look at it at intervals. Or its engine has something to tidy up, which says nothing. */
static void heed_stacks(void)
{
	if (!atomic_exchange(&progress.has_sooner, false))
		return;
	FOR_EACH_STACK(stack) {
		stack_tidy(stack);
		if (care_of(stack)->phase == PHASE_GUARD &&
		    stack_is_slept_over(stack))
			unguard(stack);
		else
			time_stack(stack);
	}
}

/* -- the end of the process ------------------------------------------------------ */

static void heed_end(void)
{
	if (atomic_load(&progress.end) != END_WISHED)
		return;
	progress.params.before_end();
	atomic_store(&progress.end, END_PREPARED);
	syscall_raw(SYS_futex, (long)&progress.end, FUTEX_WAKE_PRIVATE, INT_MAX,
		    0, 0, 0);
}

void progress_before_end(uint64_t patience_ns)
{
	uint64_t until = clock_monotonic_ns() + patience_ns, now;
	uint32_t unknown = END_UNKNOWN;

	if (!atomic_load(&progress.is_running))
		return;
	if (atomic_compare_exchange_strong(&progress.end, &unknown, END_WISHED))
		event_fd_signal(atomic_load(&progress.order_fd));
	while (atomic_load(&progress.end) == END_WISHED &&
	       (now = clock_monotonic_ns()) < until) {
		struct timespec left = {
			.tv_sec = (time_t)((until - now) / NS_PER_SEC),
			.tv_nsec = (long)((until - now) % NS_PER_SEC),
		};

		syscall_raw(SYS_futex, (long)&progress.end, FUTEX_WAIT_PRIVATE,
			    END_WISHED, (long)&left, 0, 0);
	}
}

/* -- the thread ---------------------------------------------------------------- */

static void handle(const struct epoll_event *event)
{
	struct net *net = progress.params.net;
	struct fd_object *obj;

	if (event->data.u64 >= ABOUT_OBJECT) {
		/* The memory stays that of an object. But the socket may have been
		 * closed since the kernel reported the event, and the memory may be
		 * about to serve another one. */
		obj = (struct fd_object *)(uintptr_t)event->data.u64;
		TSAN_ACQUIRED(obj);
		if (fd_object_try_hold(obj)) {
			obj->ops->twin_event(obj, event->events);
			fd_object_put(obj);
		}
		return;
	}

	switch (event->data.u64) {
	case ABOUT_NETLINK:
		/* else we would be woken for it for ever */
		if (net_events(net))
			(void)!await_netlink();
		break;
	case ABOUT_US:
		event_fd_clear(atomic_load(&progress.order_fd));
		heed_stacks();
		heed_end();
		break;
	case ABOUT_ROUTERS:
		set_timer(&progress.routers, ROUTERS_NS);
		break;
	default:
		wake_up(net->stacks[event->data.u64 - ABOUT_STACK]);
	}
}

/* The time in whole milliseconds. Linux's own timers of this kind are as coarse. */
static int time_to_sleep_ms(void)
{
	uint64_t now = clock_monotonic_ns();
	uint64_t next = timer_wheel_first_ns(&progress.timers);
	uint64_t left = next > now ? next - now : 0;

	return (int)((MIN(left, IDLE_NS) + NS_PER_MS - 1) / NS_PER_MS);
}

/* Whether nothing moves, so that a wake-up would cost more than it is worth. While
 * there is no ring to guard, the first one may be about to come. */
static bool is_idle(void)
{
	bool has_rings = false;

	FOR_EACH_STACK(stack)
		has_rings |= stack_has_rings(stack);
	return has_rings && !has_looks() && !sock_kinds_want_seconds();
}

/* Without looks in between. */
static void unwatch_unused(void)
{
	FOR_EACH_STACK(stack)
		if (care_of(stack)->phase == PHASE_LOOK && !is_looked_at(stack))
			stack_unwatch_unused(stack);
}

static void each_second(struct timer *timer, uint64_t now_ns UNUSED)
{
	progress.is_slow = !net_check(progress.params.net) && is_idle();
	set_timer(timer, progress.is_slow ? IDLE_NS : NS_PER_SEC);
	progress.params.each_second();
	unwatch_unused();
	if (own_thread_has_to_look() && own_thread_is_last())
		own_thread_end_process();
	sock_kinds_each_second();
	if (!sock_kinds_have_heirs())
		return;
	FOR_EACH_STACK(stack)
		(void)stack_poll_unwatched(stack);
	look_after_heirs_soon();
}

static void look_after_heirs(struct timer *timer UNUSED, uint64_t now_ns UNUSED)
{
	if (sock_kinds_look_after_heirs())
		look_after_heirs_soon();
}

static void hear_routers(struct timer *timer UNUSED, uint64_t now_ns UNUSED)
{
	net_hear_routers(progress.params.net);
	(void)!await_routers();
}

static void close_failed(struct timer *timer UNUSED, uint64_t now_ns UNUSED)
{
	net_close_failed(progress.params.net);
}

/* An interface has failed: its connections leave, and it is closed soon. */
static void heed_failing(void)
{
	if (net_is_failing(progress.params.net) &&
	    !timer_is_pending(&progress.failed))
		set_timer(&progress.failed, FAILED_NS);
}

static uint32_t route_gen(void)
{
	return net_followed_gen(progress.params.net);
}

static void tell_sockets(void)
{
	if (progress.route_gen == route_gen())
		return;
	progress.route_gen = route_gen();
	sock_kinds_follow_news();
}

static void run_once(void)
{
	struct epoll_event events[EVENTS_MAX];
	int cnt = real.epoll_wait(epfd(), events, EVENTS_MAX,
				  time_to_sleep_ms());

	for (int i = 0; i < cnt; i++)
		handle(&events[i]);
	look_soon();
	timer_wheel_advance(&progress.timers, clock_monotonic_ns());
	tell_sockets();
	heed_failing();
}

static void run(void)
{
	while (epfd() >= 0 && !atomic_load(&progress.is_stopping))
		run_once();
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

static void init_timers(void)
{
	timer_wheel_init(&progress.timers, clock_monotonic_ns());
	timer_init(&progress.second, each_second);
	timer_init(&progress.looks, look_at_all);
	timer_init(&progress.heirs, look_after_heirs);
	timer_init(&progress.routers, hear_routers);
	timer_init(&progress.failed, close_failed);
	for (int i = 0; i < NET_STACKS_MAX; i++) {
		progress.cares[i].phase = PHASE_LOOK;
		timer_init(&progress.cares[i].timer, stack_is_late);
	}
	progress.is_slow = false;
	set_timer(&progress.second, 0);
}

/* Makes `fd` an internal fd, and stores it in *where. */
static int adopt(int fd, _Atomic int *where)
{
	if (fd < 0)
		return fd;
	if (fd_internal_adopt(fd, where) != 0)
		atomic_store(where, fd);
	return 0;
}

static int open_fds(void)
{
	int fd = real.epoll_create1(EPOLL_CLOEXEC);
	int err = adopt(fd < 0 ? -errno : fd, &progress.epfd);

	if (!err)
		err = adopt(event_fd_open(), &progress.order_fd);
	if (!err)
		err = add_fd(atomic_load(&progress.order_fd), EPOLLIN, ABOUT_US);
	if (!err)
		err = await_netlink();
	return err ? err : await_routers();
}

static void close_fds(void)
{
	fd_internal_close(&progress.epfd);
	fd_internal_close(&progress.order_fd);
}

int progress_start(const struct progress_params *params)
{
	int err;

	progress.params = *params;
	progress.route_gen = route_gen();
	atomic_store(&progress.is_stopping, false);
	atomic_store(&progress.has_sooner, false);
	atomic_store(&progress.end, END_UNKNOWN);
	init_timers();
	err = open_fds();
	if (!err)
		err = start_thread();
	if (err)
		close_fds();
	else
		atomic_store(&progress.is_running, true);
	return err;
}

static void order(_Atomic bool *what)
{
	int fd = atomic_load(&progress.order_fd);

	atomic_store(what, true);
	if (fd >= 0)
		event_fd_signal(fd);
}

void progress_timer_is_sooner(struct stack *stack UNUSED)
{
	order(&progress.has_sooner);
}

/* Of several who stop it one does, who hears so. */
static bool stop(void)
{
	if (!atomic_exchange(&progress.is_running, false))
		return false;
	order(&progress.is_stopping);
	own_thread_join();
	return true;
}

void progress_stop(void)
{
	(void)stop();
}

bool progress_pause(void)
{
	if (!stop())
		return false;
	own_thread_await_end();
	return true;
}

/* What has been ordered meanwhile is read from the order's fd. */
bool progress_resume(void)
{
	int err;

	atomic_store(&progress.is_stopping, false);
	err = start_thread();
	if (err)
		log_warn("the library's thread does not start again (%s)", strerror(-err));
	else
		atomic_store(&progress.is_running, true);
	return !err;
}

void progress_forked(void)
{
	atomic_store(&progress.epfd, -1);
	atomic_store(&progress.order_fd, -1);
	atomic_store(&progress.is_running, false);
}
