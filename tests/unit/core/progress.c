/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The library's own thread, on a network that does what a case says. */
#include "config.h"

#include "core/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/real.h"
#include "pkt/wire.h"
#include "tests/support/test.h"
#include "tests/unit/net/nic.h"

#define PATIENCE_NS (10 * NS_PER_SEC)

static _Atomic unsigned fire_cnt, second_cnt;
static _Atomic uint64_t fired_ns;
static struct timer timer;
static struct stack_engine engine;
static int event_fd;

static void fire(struct timer *which UNUSED, uint64_t now_ns)
{
	atomic_store(&fired_ns, now_ns);
	atomic_fetch_add(&fire_cnt, 1);
}

static void run_engine(struct stack_engine *which UNUSED,
		       struct stack *stack UNUSED)
{
}

static void count_second(void)
{
	atomic_fetch_add(&second_cnt, 1);
}

/* What happens between the network's start and the thread's. */
static void (*before_start)(void);

static void begin(unsigned interval_ms)
{
	struct progress_params params = {
		.interval_ms = interval_ms,
		.batch_max = 16,
		.each_second = count_second,
	};

	real_resolve();
	atomic_store(&fire_cnt, 0);
	atomic_store(&second_cnt, 0);
	nic_begin("all");
	net->stacks[0]->sooner = progress_timer_is_sooner;
	nic.event_fd = event_fd = eventfd(0, EFD_CLOEXEC);
	timer_init(&timer, fire);
	stack_engine_init(&engine, run_engine);
	params.net = net;
	if (before_start)
		before_start();
	CHECK_EQ(progress_start(&params), 0);
}

static void end(void)
{
	progress_stop();
	before_start = NULL;
	close(event_fd);
	nic_end();
}

/* As an engine sets it. Returns when. */
static uint64_t set_timer_in(uint64_t delay_ns)
{
	struct stack *stack = net->stacks[0];
	uint64_t now_ns = clock_monotonic_ns();

	stack_lock(stack);
	timer_set(&stack->timers, &timer, now_ns + delay_ns);
	stack_engine_due_locked(stack, &engine);
	stack_unlock(stack);
	return now_ns;
}

/* Not before its time, and not a great while after. */
static void expect_fire(uint64_t set_ns, uint64_t delay_ns, unsigned cnt)
{
	while (atomic_load(&fire_cnt) < cnt) {
		usleep(500);
		CHECK(clock_monotonic_ns() - set_ns < delay_ns + PATIENCE_NS);
	}
	CHECK_EQ(atomic_load(&fire_cnt), cnt);
	CHECK(atomic_load(&fired_ns) >= set_ns + delay_ns);
}

/* Until the thread has said for how long it sleeps, and hears of what is earlier. */
static void until_it_sleeps(void)
{
	uint64_t start_ns = clock_monotonic_ns();

	while (!atomic_load(&net->stacks[0]->thread_until_ns)) {
		usleep(500);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
}

static void check_timers(unsigned interval_ms)
{
	uint64_t set_ns;

	begin(interval_ms);
	set_ns = set_timer_in(30 * NS_PER_MS);
	expect_fire(set_ns, 30 * NS_PER_MS, 1);
	until_it_sleeps();
	set_ns = set_timer_in(30 * NS_PER_MS);
	expect_fire(set_ns, 30 * NS_PER_MS, 2);
	end();
}

TEST(a_timer_fires_though_nobody_polls)
{
	check_timers(10);
}

/* VMA_PROGRESS_ENGINE_INTERVAL=0 is about packets. */
TEST(so_it_does_where_the_thread_takes_no_packets)
{
	check_timers(0);
}

/* The thread sleeps until the first one, and hears of an earlier one. */
TEST(a_timer_that_becomes_earlier_is_in_time)
{
	uint64_t set_ns;

	begin(0);
	(void)set_timer_in(3600 * NS_PER_SEC);
	until_it_sleeps();
	set_ns = set_timer_in(20 * NS_PER_MS);
	expect_fire(set_ns, 20 * NS_PER_MS, 1);
	end();
}

/* Somebody polls all the time: the timers are his, and the thread only sees to those
 * that he leaves. */
TEST(who_polls_runs_the_timers)
{
	struct stack *stack;
	uint64_t set_ns;

	begin(10);
	stack = net->stacks[0];
	set_ns = set_timer_in(30 * NS_PER_MS);
	while (!atomic_load(&fire_cnt)) {
		stack_lock(stack);
		stack_poll_locked(stack);
		stack_unlock(stack);
		CHECK(clock_monotonic_ns() - set_ns < PATIENCE_NS);
	}
	CHECK(atomic_load(&fired_ns) >= set_ns + 30 * NS_PER_MS);
	end();
}

static void input(struct endpoint *end UNUSED, struct pkt *pkt)
{
	pkt_put(pkt);
}

static void frame_comes(void)
{
	uint64_t once = 1;

	CHECK_EQ(write(nic.ring_fd, &once, sizeof(once)), (long)sizeof(once));
}

/* What was announced is known once somebody polls. */
static void until_polled(unsigned before)
{
	uint64_t start_ns = clock_monotonic_ns(), cnt;

	while (atomic_load(&nic.polls) == before) {
		usleep(100);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
	CHECK_EQ(read(nic.ring_fd, &cnt, sizeof(cnt)), (long)sizeof(cnt));
}

static struct {
	struct attachment att;
	struct endpoint point;
	struct stats_handle stats;
	struct stack *stack;
} member;

/* With a ring of frame_comes(). */
static void begin_attached(unsigned interval_ms)
{
	struct attach_where where = {
		.proto = WIRE_PROTO_TCP,
		.local = nic_addr(),
		.local_port = htobe16(7000),
		.decider = STATS_BY_BIND,
		.stats = &member.stats,
	};

	begin(interval_ms);
	nic.ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	member.att = (struct attachment){ 0 };
	endpoint_init(&member.point, input);
	stats_socket_open(&member.stats, -1, 0, WIRE_PROTO_TCP);
	where.stack = member.stack = net_choose_stack(net);
	CHECK_EQ(net_attach(net, &member.att, &member.point, &where), REASON_NONE);
}

static void end_attached(void)
{
	net_detach(net, &member.att);
	stats_socket_close(&member.stats);
	close(nic.ring_fd);
	end();
}

/* A connection has gone back, and no rule of the device can say so: whoever has it waits
 * in the kernel. The thread takes each packet as it comes, and never at intervals, though
 * it is to take none for the program. */
TEST(packets_for_the_kernel_do_not_wait_for_a_look)
{
	struct flow_key key = { .local = nic_addr(), .remote = nic_addr() };

	begin_attached(0);
	nic.is_full = true;
	CHECK_EQ(net_except(net, &member.att, &key), -EOPNOTSUPP);
	until_it_sleeps();
	for (int i = 0; i < 20; i++) {
		unsigned before = atomic_load(&nic.polls);

		frame_comes();
		until_polled(before);
		CHECK(!stack_is_slept_over(member.stack));
	}
	end_attached();
}

TEST(each_second_is_told)
{
	uint64_t start_ns = clock_monotonic_ns();

	begin(10);
	while (atomic_load(&second_cnt) < 3) {
		usleep(1000);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
	/* the first one at once */
	CHECK(clock_monotonic_ns() - start_ns >= 2 * NS_PER_SEC - NS_PER_MS);
	end();
}

static uint64_t process_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

/* What cannot be read stays readable, and nobody spins for it meanwhile. */
static void lose_tables(void)
{
	uint64_t one = 1, before_ns;

	nic.tables_err = -ENOBUFS;
	CHECK_EQ(write(event_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	usleep(100 * 1000);
	before_ns = process_ns();
	usleep(500 * 1000);
	CHECK(process_ns() - before_ns < 250 * NS_PER_MS);
	nic.tables_err = 0;
}

TEST(tables_that_are_lost_are_not_asked_for_ever)
{
	begin(10);
	lose_tables();
	end();
}

/* As an fd of ours gives way to the program's dup2(). Returns its new number. */
static int move(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int other = eventfd(0, EFD_CLOEXEC);

	CHECK(moved >= 0);
	CHECK_EQ(dup2(other, fd), fd);
	close(other);
	return moved;
}

/* So it is with one that has another number than the kernel has been told of. */
TEST(nor_are_they_by_another_number)
{
	int old;

	begin(10);
	old = event_fd;
	nic.event_fd = event_fd = move(old);
	lose_tables();
	end();
	close(old);
}

static int router;

static void hear_from_socket(void)
{
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
			    fds),
		 0);
	router = fds[1];
	atomic_store(&net->icmp_fd, fds[0]);
}

static void router_complains(void)
{
	uint64_t start_ns = clock_monotonic_ns();
	int left = 1;

	CHECK_EQ(send(router, "?", 1, 0), 1);
	while (left) {
		usleep(1000);
		CHECK_EQ(ioctl(atomic_load(&net->icmp_fd), FIONREAD, &left), 0);
		CHECK(clock_monotonic_ns() - start_ns < PATIENCE_NS);
	}
}

TEST(routers_are_heard_by_another_number)
{
	int old;

	before_start = hear_from_socket;
	begin(10);
	router_complains();
	old = atomic_load(&net->icmp_fd);
	atomic_store(&net->icmp_fd, move(old));
	for (int i = 0; i < 3; i++)
		router_complains();
	end();
	close(old);
	close(router);
}

static int (*epoll_ctl_of_libc)(int, int, int, struct epoll_event *);

/* As where max_user_watches is reached. */
static int epoll_ctl_without_room(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && fd == stack_fd(net->stacks[0])) {
		errno = ENOSPC;
		return -1;
	}
	return epoll_ctl_of_libc(epfd, op, fd, event);
}

static void leave_no_room(void)
{
	epoll_ctl_of_libc = real.epoll_ctl;
	real.epoll_ctl = epoll_ctl_without_room;
}

/* Nothing wakes the thread then, so it looks, as it does while the program polls. */
TEST(packets_that_wake_nobody_are_looked_for)
{
	before_start = leave_no_room;
	begin_attached(10);
	usleep(100 * 1000);
	frame_comes();
	until_polled(atomic_load(&nic.polls));
	end_attached();
	real.epoll_ctl = epoll_ctl_of_libc;
}
