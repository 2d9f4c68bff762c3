/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals and processes: what a child of a fork has of them, and ends by a signal. */
#include "config.h"

#include "os/signals.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/thread.h"
#include "tests/support/test.h"
#include "tests/unit/os/signal_notes.h"

/* The signal was for the parent, and only the parent gets it. */
TEST(child_has_the_mask_from_before_a_deferral)
{
	int status;
	pid_t pid;

	signals_activate();
	install(SIGUSR1, note, 0);
	os_enter();
	raise(SIGUSR1);
	pid = fork();
	if (pid == 0) {
		sigset_t mask;

		signals_forked(false);
		os_leave();
		sigprocmask(SIG_BLOCK, NULL, &mask);
		_exit(runs || sigismember(&mask, SIGUSR1) ||
		      sigismember(&mask, SIGTERM));
	}
	leave();
	CHECK_EQ(runs, 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* -- a fork while another thread changes a handler --------------------------------------- */

static void first_handler(int sig UNUSED)
{
}

static void second_handler(int sig UNUSED)
{
}

/* What belongs to either of them. */
static struct sigaction action_of(bool is_second)
{
	struct sigaction act = {
		.sa_handler = is_second ? second_handler : first_handler,
		.sa_flags = is_second ? 0 : SA_RESTART,
	};

	sigaddset(&act.sa_mask, is_second ? SIGTERM : SIGHUP);
	return act;
}

static _Atomic bool is_changing;

static void *alternate_handlers(void *arg UNUSED)
{
	for (unsigned i = 0; is_changing; i++) {
		struct sigaction act = action_of(i & 1);

		CHECK_EQ(signals_sigaction(SIGUSR2, &act, NULL), 0);
	}
	return NULL;
}

static bool has_one_of_them(void)
{
	struct sigaction now, whole;

	if (signals_sigaction(SIGUSR2, NULL, &now) != 0)
		return false;
	whole = action_of(now.sa_handler == second_handler);
	return now.sa_handler == whole.sa_handler &&
	       (now.sa_flags & SA_RESTART) == whole.sa_flags &&
	       sigismember(&now.sa_mask, SIGTERM) ==
		       sigismember(&whole.sa_mask, SIGTERM);
}

/* As handlers of the fork that are not ours may do. */
TEST(forking_thread_changes_handlers)
{
	struct sigaction act = action_of(true);

	signals_activate();
	os_enter();
	signals_before_fork();
	CHECK_EQ(signals_sigaction(SIGUSR2, &act, NULL), 0);
	signals_after_fork();
	os_leave();
	CHECK(has_one_of_them());
	act = action_of(false);
	CHECK_EQ(signals_sigaction(SIGUSR2, &act, NULL), 0);
}

TEST(child_has_a_whole_handler)
{
	struct sigaction act = action_of(false);
	pthread_t thread;
	int status, bad_cnt = 0;

	signals_activate();
	CHECK_EQ(signals_sigaction(SIGUSR2, &act, NULL), 0);
	is_changing = true;
	CHECK(!pthread_create(&thread, NULL, alternate_handlers, NULL));
	for (int i = 0; i < 300; i++) {
		pid_t pid;

		os_enter();
		signals_before_fork();
		pid = fork();
		if (pid == 0) {
			signals_forked(false);
			os_leave();
			_exit(!has_one_of_them());
		}
		signals_after_fork();
		os_leave();
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		bad_cnt += status != 0;
	}
	is_changing = false;
	pthread_join(thread, NULL);
	CHECK_EQ(bad_cnt, 0);
}

static void *install_second(void *arg UNUSED)
{
	struct sigaction act = action_of(true);

	CHECK_EQ(signals_sigaction(SIGUSR2, &act, NULL), 0);
	return NULL;
}

/* It may be in a handler that has interrupted malloc(), whose lock the fork waits for. */
TEST(a_fork_keeps_no_thread_from_changing_a_handler)
{
	struct sigaction act = action_of(false), now;
	struct timespec deadline;
	pthread_t thread;
	int status, rc;
	pid_t pid;

	signals_activate();
	CHECK_EQ(signals_sigaction(SIGUSR2, &act, NULL), 0);
	os_enter();
	signals_before_fork();
	CHECK(!pthread_create(&thread, NULL, install_second, NULL));
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 5;
	rc = pthread_timedjoin_np(thread, NULL, &deadline);
	CHECK_EQ(rc, 0);
	pid = fork();
	if (pid == 0) {
		/* as a handler of the fork that is not ours, and comes first */
		int bad = signals_sigaction(SIGUSR2, NULL, &now) != 0 ||
			  !has_one_of_them();

		bad |= signals_sigaction(SIGUSR2, &act, NULL);
		signals_forked(false);
		os_leave();
		_exit(bad || signals_sigaction(SIGUSR2, NULL, &now) != 0 ||
		      now.sa_handler != first_handler || !has_one_of_them());
	}
	signals_after_fork();
	os_leave();
	if (rc != 0)
		pthread_join(thread, NULL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(signals_sigaction(SIGUSR2, NULL, &now), 0);
	CHECK_EQ(now.sa_handler == second_handler, 1);
	CHECK(has_one_of_them());
}

/* -- signals that the program does not catch ------------------------------------------ */

static int told[2];

static void tell(void)
{
	(void)!write(told[1], "t", 1);
}

/* Runs `fn` in a child, and returns how that has ended. */
static int status_of(void (*fn)(int), int arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		signals_activate();
		signals_before_end(tell);
		fn(arg);
		_exit(77);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static unsigned times_told(void)
{
	char bytes[16];
	ssize_t n = read(told[0], bytes, sizeof(bytes));

	return n < 0 ? 0 : (unsigned)n;
}

static void open_told(void)
{
	CHECK_EQ(pipe2(told, O_NONBLOCK), 0);
}

static void close_told(void)
{
	close(told[0]);
	close(told[1]);
}

static void die_of(int sig)
{
	struct sigaction act;

	/* an earlier test may have caught it */
	install(sig, SIG_DFL, 0);
	/* the program sees what it would see without us */
	if (signals_sigaction(sig, NULL, &act) != 0 ||
	    act.sa_handler != SIG_DFL || act.sa_flags)
		_exit(1);
	raise(sig);
}

TEST(end_by_a_signal_is_told_before)
{
	const int sigs[] = { SIGHUP,  SIGINT,  SIGTERM, SIGALRM,  SIGUSR1,
			     SIGPIPE, SIGPOLL, SIGPROF, SIGRTMIN, SIGRTMAX };

	open_told();
	for (size_t i = 0; i < ARRAY_LEN(sigs); i++) {
		int status = status_of(die_of, sigs[i]);

		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), sigs[i]);
		CHECK_EQ(times_told(), 1);
	}
	close_told();
}

static void change_and_die(int how)
{
	runs = 0;
	if (how == 0)
		signals_signal(SIGTERM, SIG_IGN);
	else
		install(SIGTERM, note, how == 2 ? (int)SA_RESETHAND : 0);
	raise(SIGTERM);
	if (runs != (how > 0))
		_exit(1);
	if (how < 2)
		signals_signal(SIGTERM, SIG_DFL);
	raise(SIGTERM);
}

/* Ignored or caught, it ends nothing; once it is neither any more, it does. */
TEST(signal_that_the_program_looks_after_is_not_an_end)
{
	open_told();
	for (int how = 0; how < 3; how++) {
		int status = status_of(change_and_die, how);

		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), SIGTERM);
		CHECK_EQ(times_told(), 1);
	}
	close_told();
}

static void die_inside(int sig)
{
	/* a shell starts its background jobs with SIGINT ignored */
	signals_signal(sig, SIG_DFL);
	os_enter();
	raise(sig);
	if (times_told())
		_exit(1);
	leave();
}

TEST(end_inside_the_bracket_waits_for_its_end)
{
	int status;

	open_told();
	status = status_of(die_inside, SIGINT);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(times_told(), 1);
	close_told();
}

static void fork_and_die(int sig)
{
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		kill(getpid(), sig);
		_exit(77);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
	    times_told())
		_exit(1);
	raise(sig);
}

/* Such a child has nothing of its own; its parent goes on. */
TEST(child_of_vfork_tells_nothing)
{
	int status;

	open_told();
	status = status_of(fork_and_die, SIGTERM);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(times_told(), 1);
	close_told();
}
