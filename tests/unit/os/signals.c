/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/thread.h"
#include "tests/support/sleeper.h"
#include "tests/support/test.h"
#include "tests/unit/os/signal_notes.h"

static volatile sig_atomic_t seen_code, seen_value, is_usr2_blocked;
static sigjmp_buf way_out;

static void note_info(int sig, siginfo_t *info, void *context)
{
	sigset_t mask;

	(void)context;
	note(sig);
	seen_code = info->si_code;
	seen_value = info->si_value.sival_int;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	is_usr2_blocked = sigismember(&mask, SIGUSR2);
}

static void jump(int sig)
{
	(void)sig;
	siglongjmp(way_out, 1);
}

/* Handlers from before the activation are taken over, too; every test after this
 * one runs with the trampoline. */
TEST(activation_takes_over_existing_handlers)
{
	struct sigaction act = { .sa_handler = note, .sa_flags = SA_RESTART };
	struct sigaction seen;

	sigaction(SIGUSR1, &act, NULL);
	signals_activate();
	signals_activate();
	sigaction(SIGUSR1, NULL, &seen);
	CHECK(seen.sa_handler != note); /* the kernel has the trampoline */
	CHECK_EQ(signals_sigaction(SIGUSR1, NULL, &seen), 0);
	CHECK(seen.sa_handler == note);
	CHECK(!(seen.sa_flags & SA_SIGINFO));
	CHECK(seen.sa_flags & SA_RESTART);
	runs = 0;
	raise(SIGUSR1);
	CHECK_EQ(runs, 1);
}

TEST(handler_runs_at_once_outside_the_bracket)
{
	install(SIGUSR1, note, 0);
	raise(SIGUSR1);
	CHECK_EQ(runs, 1);
	CHECK_EQ(seen_depth, 0);
}

TEST(handler_waits_until_the_bracket_is_left)
{
	install(SIGUSR1, note, 0);
	os_enter();
	os_enter();
	raise(SIGUSR1);
	CHECK_EQ(runs, 0);
	leave();
	CHECK_EQ(runs, 0);
	errno = EDOM;
	leave();
	CHECK_EQ(errno, EDOM);
	CHECK_EQ(runs, 1);
	CHECK_EQ(seen_depth, 0);
}

TEST(siginfo_and_mask_survive_deferral)
{
	struct sigaction act = { .sa_sigaction = note_info,
				 .sa_flags = SA_SIGINFO };
	union sigval value = { .sival_int = 4711 };
	sigset_t mask;

	runs = 0;
	sigaddset(&act.sa_mask, SIGUSR2);
	CHECK_EQ(signals_sigaction(SIGRTMIN, &act, NULL), 0);
	os_enter();
	CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
	CHECK_EQ(runs, 0);
	leave();
	CHECK_EQ(runs, 1);
	CHECK_EQ(seen_code, SI_QUEUE);
	CHECK_EQ(seen_value, 4711);
	CHECK(is_usr2_blocked);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	CHECK(!sigismember(&mask, SIGUSR2));
	CHECK(!sigismember(&mask, SIGUSR1));
}

TEST(several_signals_in_one_bracket_all_arrive)
{
	union sigval value = { .sival_int = 0 };
	struct sigaction act = { .sa_sigaction = note_info,
				 .sa_flags = SA_SIGINFO };

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	install(SIGUSR1, note, 0);
	CHECK_EQ(signals_sigaction(SIGRTMIN, &act, NULL), 0);
	os_enter();
	for (value.sival_int = 1; value.sival_int <= 3; value.sival_int++)
		sigqueue(getpid(), SIGRTMIN, value);
	raise(SIGUSR1);
	CHECK_EQ(runs, 0);
	leave();
	CHECK_EQ(runs, 4);
	CHECK_EQ(seen_value, 3); /* in the order they were queued */
}

/* The kernel delivers both before the trampoline of either has begun. */
TEST(signals_of_one_moment_all_arrive)
{
	struct sigaction act = { .sa_sigaction = note_info,
				 .sa_flags = SA_SIGINFO };
	union sigval value = { .sival_int = 4711 };
	sigset_t both, before, after;

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	sigaddset(&act.sa_mask, SIGUSR2);
	CHECK_EQ(signals_sigaction(SIGRTMIN, &act, NULL), 0);
	install(SIGUSR1, note, 0);
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGRTMIN);
	seen_value = 0;
	sigprocmask(SIG_BLOCK, &both, &before);
	CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
	raise(SIGUSR1);
	os_enter();
	errno = EDOM;
	sigprocmask(SIG_UNBLOCK, &both, NULL);
	CHECK_EQ(errno, EDOM);
	CHECK_EQ(runs, 0);
	leave();
	CHECK_EQ(runs, 2);
	CHECK_EQ(seen_value, 4711);
	sigprocmask(SIG_SETMASK, &before, &after);
	for (int sig = 1; sig < SIGRTMAX; sig++)
		CHECK_EQ(sigismember(&after, sig), sigismember(&before, sig));
}

static volatile int stack_was_alternate;

static void note_stack(int sig)
{
	stack_t stack;

	(void)sig;
	sigaltstack(NULL, &stack);
	stack_was_alternate = !!(stack.ss_flags & SS_ONSTACK);
}

TEST(deferred_handler_gets_its_alternate_stack)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 }, off = {
		.ss_flags = SS_DISABLE
	};

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	sigaltstack(&stack, NULL);
	install(SIGUSR1, note_stack, SA_ONSTACK);
	os_enter();
	raise(SIGUSR1);
	leave();
	CHECK(stack_was_alternate);
	sigaltstack(&off, NULL);
	free(stack.ss_sp);
}

TEST(resethand_is_once_deferred_or_not)
{
	struct sigaction now;

	install(SIGUSR1, note, (int)SA_RESETHAND);
	CHECK_EQ(signals_sigaction(SIGUSR1, NULL, &now), 0);
	CHECK(now.sa_flags & (int)SA_RESETHAND);
	os_enter();
	raise(SIGUSR1);
	leave();
	CHECK_EQ(runs, 1);
	CHECK_EQ(signals_sigaction(SIGUSR1, NULL, &now), 0);
	CHECK(now.sa_handler == SIG_DFL);
}

static volatile int nesting, deepest;

static void nest(int sig)
{
	nesting++;
	if (nesting > deepest)
		deepest = nesting;
	if (nesting < 3)
		raise(sig);
	nesting--;
}

TEST(nodefer_lets_a_handler_interrupt_itself)
{
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	deepest = 0;
	install(SIGUSR1, nest, SA_NODEFER);
	os_enter();
	raise(SIGUSR1);
	leave();
	CHECK_EQ(deepest, 3);
}

TEST(synchronous_faults_are_left_alone)
{
	struct sigaction act = { .sa_handler = jump }, seen;

	CHECK_EQ(signals_sigaction(SIGSEGV, &act, NULL), 0);
	sigaction(SIGSEGV, NULL, &seen);
	CHECK(seen.sa_handler == jump);
	act.sa_handler = SIG_DFL;
	signals_sigaction(SIGSEGV, &act, NULL);
}

TEST(jump_out_of_a_handler_leaves_no_bracket)
{
	install(SIGUSR1, jump, SA_NODEFER);
	if (sigsetjmp(way_out, 1) == 0) {
		os_enter();
		raise(SIGUSR1);
		leave();
		FAIL("the handler did not jump");
	}
	CHECK_EQ(os_thread.depth, 0);
	CHECK(!os_thread.has_deferred);
}

TEST(signal_and_its_relatives_set_their_flags)
{
	struct sigaction now;

	CHECK(signals_signal(SIGUSR1, note) != SIG_ERR);
	signals_sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_handler == note && (now.sa_flags & SA_RESTART));
	CHECK_EQ(signals_siginterrupt(SIGUSR1, 1), 0);
	signals_sigaction(SIGUSR1, NULL, &now);
	CHECK(!(now.sa_flags & SA_RESTART));
	CHECK(signals_signal(SIGUSR1, note) == note);
	signals_sigaction(SIGUSR1, NULL, &now);
	CHECK(!(now.sa_flags & SA_RESTART));
	signals_siginterrupt(SIGUSR1, 0);
	CHECK(signals_sysv_signal(SIGUSR1, note) == note);
	signals_sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_flags & (int)SA_RESETHAND);
	CHECK(now.sa_flags & SA_NODEFER);
	errno = 0;
	CHECK(signals_signal(99, note) == SIG_ERR);
	CHECK_EQ(errno, EINVAL);
	CHECK(signals_signal(SIGKILL, note) == SIG_ERR);
}

TEST(failed_change_keeps_the_old_handler)
{
	struct sigaction act = { .sa_handler = note }, now;

	install(SIGUSR1, note, 0);
	CHECK_EQ(signals_sigaction(SIGKILL, &act, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	signals_sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_handler == note);
}

TEST(sigset_holds_and_releases)
{
	CHECK(signals_sigset(SIGUSR1, note) != SIG_ERR);
	runs = 0;
	CHECK(signals_sigset(SIGUSR1, SIG_HOLD) == note);
	raise(SIGUSR1);
	CHECK_EQ(runs, 0);
	CHECK(signals_sigset(SIGUSR1, note) == SIG_HOLD);
	CHECK_EQ(runs, 1);
}

TEST(sigvec_translates_both_ways)
{
	struct sigvec_compat vec = { .handler = note, .flags = 2 }, old;
	struct sigaction now;

	vec.mask = 1 << (SIGUSR2 - 1);
	CHECK_EQ(signals_sigvec(SIGUSR1, &vec, NULL), 0);
	signals_sigaction(SIGUSR1, NULL, &now);
	CHECK(now.sa_handler == note);
	CHECK(!(now.sa_flags & SA_RESTART));
	CHECK(sigismember(&now.sa_mask, SIGUSR2));
	CHECK_EQ(signals_sigvec(SIGUSR1, NULL, &old), 0);
	CHECK(old.handler == note);
	CHECK_EQ(old.mask, vec.mask);
	CHECK_EQ(old.flags, 2);
}

static void alarm_in_ms(int ms)
{
	struct itimerval timer = { .it_value = { ms / 1000,
						 ms % 1000 * 1000 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static int sleep_in_bracket(struct pollfd *fds, nfds_t cnt,
			    const struct timespec *timeout,
			    const struct signals_mark *mark, bool may_restart)
{
	int result;

	os_enter();
	result = signals_sleep(fds, cnt, timeout, mark, may_restart);
	os_leave();
	return result;
}

TEST(sleep_ends_with_a_handler)
{
	struct signals_mark mark = signals_mark();
	struct timespec timeout = { .tv_sec = 10 };

	install(SIGALRM, note, 0);
	alarm_in_ms(20);
	CHECK_EQ(sleep_in_bracket(NULL, 0, &timeout, &mark, true), -EINTR);
	CHECK_EQ(runs, 1);
}

TEST(sleep_restarts_if_all_agree)
{
	struct signals_mark mark = signals_mark();
	struct timespec timeout = { .tv_nsec = 60 * 1000000 };

	install(SIGALRM, note, SA_RESTART);
	alarm_in_ms(20);
	CHECK_EQ(sleep_in_bracket(NULL, 0, &timeout, &mark, true), 0);
	CHECK_EQ(runs, 1);
	mark = signals_mark();
	alarm_in_ms(20);
	timeout.tv_sec = 10;
	CHECK_EQ(sleep_in_bracket(NULL, 0, &timeout, &mark, false), -EINTR);
}

/* The signal that comes between the start of a call and its sleep. */
TEST(sleep_notices_an_earlier_handler)
{
	struct signals_mark mark = signals_mark();
	struct timespec timeout = { .tv_sec = 10 };

	install(SIGUSR1, note, 0);
	raise(SIGUSR1);
	CHECK_EQ(sleep_in_bracket(NULL, 0, &timeout, &mark, true), -EINTR);
	CHECK(signals_is_interrupted(&mark, true));
	mark = signals_mark();
	CHECK(!signals_is_interrupted(&mark, true));
}

/* A signal comes in the moment in which the kernel has found an event. */
static int ppoll_and_signal(struct pollfd *fds, nfds_t cnt,
			    const struct timespec *timeout, const sigset_t *mask)
{
	int n = (int)real.syscall(SYS_ppoll, fds, (long)cnt, timeout, mask, 8L);

	raise(SIGUSR1);
	return n;
}

/* What the handler does must not be among what the caller finds. */
TEST(sleep_that_found_something_is_interrupted)
{
	struct signals_mark mark = signals_mark();
	struct pollfd fd = { .events = POLLIN };
	int fds[2];

	/* which runs the handler when it likes */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	fd.fd = fds[0];
	install(SIGUSR1, note, 0);
	real.ppoll = ppoll_and_signal;
	CHECK_EQ(sleep_in_bracket(&fd, 1, NULL, &mark, false), -EINTR);
	real.ppoll = ppoll;
	CHECK_EQ(runs, 1);
	CHECK_EQ(fd.fd, fds[0]);
	close(fds[0]);
	close(fds[1]);
}

/* A signal comes when all is looked at, and the sleep does not know it yet. */
static int signal_and_ppoll(struct pollfd *fds, nfds_t cnt,
			    const struct timespec *timeout, const sigset_t *mask)
{
	if (runs < 2)
		raise(SIGUSR1);
	return (int)real.syscall(SYS_ppoll, fds, (long)cnt, timeout, mask, 8L);
}

static void note_and_sleep(int sig)
{
	struct signals_mark mark;
	struct timespec timeout = { .tv_nsec = 1 };
	struct pollfd fds[3] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };

	note(sig);
	real.ppoll = ppoll;
	mark = signals_mark();
	CHECK_EQ(sleep_in_bracket(fds, 3, &timeout, &mark, true), 0);
	real.ppoll = signal_and_ppoll;
}

static int sleep_after_signal(struct pollfd *fds, nfds_t cnt,
			      const struct timespec *timeout, bool may_restart)
{
	struct signals_mark mark = signals_mark();
	int result;

	real.ppoll = signal_and_ppoll;
	result = sleep_in_bracket(fds, cnt, timeout, &mark, may_restart);
	real.ppoll = ppoll;
	return result;
}

/* Few and many fds; the handler sleeps as well, or does not. */
TEST(sleep_does_not_begin_behind_a_handler)
{
	enum { MANY = 40 };
	static void (*const handlers[])(int) = { note, note_and_sleep };
	int pipe_fds[2];

	/* which runs the handler when it likes */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	CHECK_EQ(pipe(pipe_fds), 0);
	CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
	for (int i = 0; i <= 2 * MANY; i++) {
		struct timespec timeout = { .tv_nsec = 1 };
		struct pollfd fds[MANY];
		nfds_t cnt = (nfds_t)i / 2;

		for (nfds_t k = 0; k < cnt; k++)
			fds[k] = (struct pollfd){ .fd = pipe_fds[0],
						  .events = POLLIN };
		install(SIGUSR1, handlers[i % 2], 0);
		CHECK_EQ(sleep_after_signal(fds, cnt, NULL, false), -EINTR);
		CHECK_EQ(runs, 1);
		for (nfds_t k = 0; k < cnt; k++)
			CHECK_EQ(fds[k].fd, pipe_fds[0]);
		/* begins once more */
		install(SIGUSR1, handlers[i % 2], SA_RESTART);
		CHECK_EQ(sleep_after_signal(fds, cnt, &timeout, true), (int)cnt);
		CHECK_EQ(runs, 2);
		for (nfds_t k = 0; k < cnt; k++)
			CHECK_EQ(fds[k].revents, POLLIN);
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* -- signals for the process, and who gets them -------------------------------------- */

enum { SIGNALS = 3000 };

struct crowd {
	pthread_t threads[3];
	int wakeup[2];
	_Atomic int handled, ended, astray;
	_Atomic bool is_over;
	_Atomic pid_t others[2];
	pid_t first;
};
static struct crowd crowd;

static void note_who(int sig)
{
	(void)sig;
	crowd.astray += gettid() != crowd.first;
	crowd.handled++;
}

static void *be_there(void *arg)
{
	struct timespec timeout = { .tv_sec = 60 };
	struct pollfd fd = { .fd = crowd.wakeup[0], .events = POLLIN };

	*(_Atomic pid_t *)arg = gettid();
	while (!crowd.is_over) {
		struct signals_mark mark = signals_mark();

		(void)sleep_in_bracket(&fd, 1, &timeout, &mark, false);
	}
	return NULL;
}

/* One after the other: while a thread handles a signal another one is the right one. */
static void *send_to_all(void *arg)
{
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	/* Who opens his mask takes what waits for the process, and libc blocks signals
	 * in who creates a thread and in who begins. */
	CHECK(sleeper_await(crowd.first));
	for (int i = 0; i < SIGNALS; i++) {
		kill(getpid(), SIGUSR1);
		while (crowd.ended <= i - crowd.astray)
			sched_yield();
	}
	crowd.is_over = true;
	(void)!write(crowd.wakeup[1], "x", 1);
	return NULL;
}

TEST(sleeping_thread_takes_what_is_for_the_process)
{
	struct pollfd fd = { .events = POLLIN };
	struct signals_mark before;

	/* which has a thread of its own run the handler */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	crowd = (struct crowd){ .first = gettid() };
	CHECK_EQ(pipe(crowd.wakeup), 0);
	fd.fd = crowd.wakeup[0];
	install(SIGUSR1, note_who, 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(pthread_create(&crowd.threads[i], NULL, be_there,
					&crowd.others[i]),
			 0);
		while (!crowd.others[i])
			sched_yield();
		CHECK(sleeper_await(crowd.others[i]));
	}
	CHECK_EQ(pthread_create(&crowd.threads[2], NULL, send_to_all, NULL), 0);
	before = signals_mark();
	while (!crowd.is_over) {
		struct signals_mark mark = signals_mark();

		crowd.ended = (int)(mark.handler_cnt - before.handler_cnt);
		(void)sleep_in_bracket(&fd, 1, NULL, &mark, false);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(crowd.threads[i], NULL);
	CHECK_EQ(crowd.astray, 0);
	CHECK_EQ(crowd.handled, SIGNALS);
	CHECK_EQ(crowd.ended, SIGNALS);
	close(crowd.wakeup[0]);
	close(crowd.wakeup[1]);
}

static void *raise_many(void *arg)
{
	pthread_t target = *(pthread_t *)arg;
	union sigval value = { 0 };

	for (int i = 0; i < 2000; i++)
		while (pthread_sigqueue(target, SIGRTMIN + 1, value) == EAGAIN)
			sched_yield();
	return NULL;
}

static void count(int sig)
{
	(void)sig;
	runs++;
	seen_depth |= os_thread.depth;
}

struct cancelled {
	_Atomic pid_t tid;
	int fd;
};

static void *sleep_on(void *arg)
{
	struct cancelled *c = arg;
	struct pollfd fd = { .fd = c->fd, .events = POLLIN };
	struct signals_mark mark = signals_mark();

	c->tid = gettid();
	(void)sleep_in_bracket(&fd, 1, NULL, &mark, false);
	return NULL;
}

/* libc cancels by a signal of its own, and waits for that signal before it leaves the
 * call. What the thread sleeps for may come at the same time. */
TEST(sleep_ends_when_it_is_cancelled_and_woken)
{
	/* which forgets the frames that a thread leaves by its end */
	if (HAS_ADDRESS_SANITIZER)
		test_skip("not under a sanitizer");
	for (int i = 0; i < 100; i++) {
		struct cancelled c = { 0 };
		struct timespec deadline;
		pthread_t thread;
		int fds[2];

		CHECK_EQ(pipe(fds), 0);
		c.fd = fds[0];
		CHECK_EQ(pthread_create(&thread, NULL, sleep_on, &c), 0);
		while (!c.tid)
			sched_yield();
		CHECK(sleeper_await(c.tid));
		CHECK_EQ(pthread_cancel(thread), 0);
		CHECK_EQ(write(fds[1], "x", 1), 1);
		clock_gettime(CLOCK_REALTIME, &deadline);
		deadline.tv_sec += 5;
		CHECK_EQ(pthread_timedjoin_np(thread, NULL, &deadline), 0);
		close(fds[0]);
		close(fds[1]);
	}
}

TEST(no_signal_is_lost_under_fire)
{
	pthread_t self = pthread_self(), thread;
	uint64_t end = clock_monotonic_ns() + 20 * NS_PER_SEC;
	struct sigaction act = { .sa_handler = count };

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	CHECK_EQ(signals_sigaction(SIGRTMIN + 1, &act, NULL), 0);
	runs = 0;
	seen_depth = 0;
	CHECK_EQ(pthread_create(&thread, NULL, raise_many, &self), 0);
	while (runs < 2000 && clock_monotonic_ns() < end) {
		os_enter();
		os_enter();
		os_leave();
		os_leave();
	}
	pthread_join(thread, NULL);
	CHECK_EQ(runs, 2000);
	CHECK_EQ(seen_depth, 0);
}

/* Two handlers, each of which lets the other signal in while its trampoline runs. */
static _Atomic int usr_cnt[2];

static void count_usr(int sig)
{
	usr_cnt[sig == SIGUSR2]++;
	seen_depth |= os_thread.depth;
}

static void *send_both(void *arg)
{
	pthread_t target = *(pthread_t *)arg;

	for (int i = 0; i < SIGNALS; i++) {
		uint64_t end = clock_monotonic_ns() + 5 * NS_PER_SEC;

		pthread_kill(target, SIGUSR1);
		pthread_kill(target, SIGUSR2);
		while ((usr_cnt[0] <= i || usr_cnt[1] <= i) &&
		       clock_monotonic_ns() < end)
			sched_yield();
		if (usr_cnt[0] <= i || usr_cnt[1] <= i)
			break;
	}
	crowd.is_over = true;
	return NULL;
}

TEST(two_signals_at_once_are_both_handled)
{
	pthread_t self = pthread_self(), thread;

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	install(SIGUSR1, count_usr, 0);
	install(SIGUSR2, count_usr, 0);
	crowd.is_over = false;
	seen_depth = 0;
	CHECK_EQ(pthread_create(&thread, NULL, send_both, &self), 0);
	while (!crowd.is_over) {
		os_enter();
		os_enter();
		os_leave();
		os_leave();
	}
	pthread_join(thread, NULL);
	CHECK_EQ(usr_cnt[0], SIGNALS);
	CHECK_EQ(usr_cnt[1], SIGNALS);
	CHECK_EQ(seen_depth, 0);
}

/* -- handlers that other threads install ----------------------------------------------- */

enum { CHANGES = 10000 };

static _Atomic int once_cnt;
static _Atomic bool is_over;

static void note_once(int sig UNUSED)
{
	once_cnt++;
}

static void set_urgent(void (*fn)(int), int flags)
{
	struct sigaction act = { .sa_handler = fn, .sa_flags = flags };

	CHECK_EQ(signals_sigaction(SIGURG, &act, NULL), 0);
}

static bool has_urgent(void (*fn)(int))
{
	struct sigaction seen;

	CHECK_EQ(signals_sigaction(SIGURG, NULL, &seen), 0);
	return seen.sa_handler == fn;
}

/* A signal whose default is to be ignored. */
static void *change_handlers(void *arg UNUSED)
{
	for (int i = 0; i < CHANGES; i++) {
		set_urgent(note_once, (int)SA_RESETHAND);
		set_urgent(note, 0);
		for (int j = 0; j < 20; j++)
			CHECK(has_urgent(note));
	}
	is_over = true;
	return NULL;
}

/* The flags of the one are not taken for those of the other, nor does the reset of the one
 * hit the other. */
TEST(a_handler_stays_that_comes_while_another_is_reset)
{
	pthread_t thread;

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	signals_activate();
	install(SIGURG, note, 0);
	is_over = false;
	CHECK_EQ(pthread_create(&thread, NULL, change_handlers, NULL), 0);
	while (!is_over)
		raise(SIGURG);
	pthread_join(thread, NULL);
	runs = 0;
	raise(SIGURG);
	CHECK_EQ(runs, 1);
}

static void *install_once(void *arg UNUSED)
{
	for (int i = 0; i < CHANGES; i++)
		set_urgent(note_once, (int)SA_RESETHAND);
	is_over = true;
	return NULL;
}

TEST(each_handler_that_is_reset_runs_once)
{
	pthread_t thread;

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	signals_activate();
	install(SIGURG, SIG_DFL, 0);
	once_cnt = 0;
	is_over = false;
	CHECK_EQ(pthread_create(&thread, NULL, install_once, NULL), 0);
	while (!is_over)
		raise(SIGURG);
	pthread_join(thread, NULL);
	CHECK(once_cnt > 0 && once_cnt <= CHANGES);
	/* the last one is there still, or has run */
	raise(SIGURG);
	CHECK(has_urgent(SIG_DFL));
	CHECK(once_cnt <= CHANGES);
}

/* -- faults while a signal waits ------------------------------------------------------ */

static void jump_out(int sig)
{
	siglongjmp(way_out, sig);
}

static void fault_while_a_signal_waits(int fault)
{
	volatile uintptr_t nowhere = 8;
	struct sigaction act = { .sa_handler = note };

	runs = 0;
	signals_activate();
	signals_sigaction(SIGUSR1, &act, NULL);
	act.sa_handler = jump_out;
	signals_sigaction(fault, &act, NULL);
	os_enter();
	raise(SIGUSR1);
	if (runs || !os_thread.has_deferred)
		_exit(1);
	if (sigsetjmp(way_out, 0) == 0) {
		if (fault == SIGSEGV)
			*(volatile int *)nowhere = 1;
		else
			raise(fault);
		_exit(2);
	}
	leave();
	_exit(runs == 1 ? 0 : 3);
}

TEST(faults_reach_their_handler_while_a_signal_waits)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
				      SIGABRT, SIGSYS };

	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			fault_while_a_signal_waits(faults[i]);
		waitpid(pid, &status, 0);
		CHECK_EQ(status, 0);
	}
}

/* A line of the log to a pipe without a reader, while a signal waits or comes. */
TEST(quiet_write_brings_no_signal_and_loses_none)
{
	struct signals_quiet quiet;
	sigset_t set;
	int fds[2];

	install(SIGUSR1, note, 0);
	CHECK_EQ(pipe(fds), 0);
	close(fds[0]);
	for (int when = 0; when < 3; when++) {
		runs = 0;
		os_enter();
		if (when == 0)
			raise(SIGUSR1);
		signals_quiet_begin(&quiet);
		if (when == 1)
			raise(SIGUSR1);
		CHECK_EQ(write(fds[1], "q", 1), -1);
		signals_quiet_end(&quiet);
		leave();
		CHECK_EQ(runs, when < 2);
		sigprocmask(SIG_BLOCK, NULL, &set);
		CHECK(!sigismember(&set, SIGPIPE));
		CHECK(!sigismember(&set, SIGTTOU));
		CHECK(!sigismember(&set, SIGUSR1));
	}
	close(fds[1]);
}

/* The program's own SIGPIPE is still there. */
TEST(quiet_write_takes_nothing_of_the_programs)
{
	struct signals_quiet quiet;
	sigset_t set, waiting;
	int fds[2];

	install(SIGPIPE, note, 0);
	CHECK_EQ(pipe(fds), 0);
	close(fds[0]);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGPIPE);
	signals_quiet_begin(&quiet);
	CHECK_EQ(write(fds[1], "q", 1), -1);
	signals_quiet_end(&quiet);
	sigpending(&waiting);
	CHECK(sigismember(&waiting, SIGPIPE));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	CHECK_EQ(runs, 1);
	install(SIGPIPE, SIG_DFL, 0);
	close(fds[1]);
}
