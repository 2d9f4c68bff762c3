/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/own_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/thread.h"
#include "tests/support/test.h"

/* What the thread found; in a child of the test. */
static _Atomic int policy, is_inside, is_signal_blocked;
static cpu_set_t cpus;
static _Atomic bool is_ready;

static void stay(void)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	is_signal_blocked = sigismember(&mask, SIGTERM);
	is_inside = os_is_inside() && os_thread.is_internal;
	policy = sched_getscheduler(0);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	atomic_store(&is_ready, true);
	for (;;)
		pause();
}

static void start(void (*run)(void), const cpu_set_t *where)
{
	struct own_thread_params params = { .name = "test",
					    .cpus = where,
					    .run = run };

	CHECK_EQ(own_thread_start(&params), 0);
}

/* The status of a child that runs `fn`; it has ten seconds. */
static int status_of_child(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(10);
		fn();
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void exit_with_seven(void)
{
	_exit(7);
}

static void *end_after_main(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	return NULL;
}

static void end_all_threads(void)
{
	static pthread_t main_thread;
	pthread_t thread;

	main_thread = pthread_self();
	start(stay, NULL);
	while (!atomic_load(&is_ready))
		usleep(1000);
	atexit(exit_with_seven);
	pthread_create(&thread, NULL, end_after_main, &main_thread);
	pthread_exit(NULL);
}

TEST(process_ends_with_the_programs_last_thread)
{
	/* which has a thread of its own */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	CHECK_EQ(status_of_child(end_all_threads), 7 << 8);
}

static void stay_within(void *arg UNUSED)
{
	stay();
}

static void stay_apart(void)
{
	(void)!own_thread_run_apart(stay_within, NULL);
}

static void end_beside_what_is_apart(void)
{
	start(stay_apart, NULL);
	while (!atomic_load(&is_ready))
		usleep(1000);
	if (!is_inside || !is_signal_blocked)
		_exit(1);
	atexit(exit_with_seven);
	pthread_exit(NULL);
}

/* Nor does the thread count by which ours opens files. */
TEST(process_ends_beside_a_thread_that_is_apart)
{
	/* which has a thread of its own */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	CHECK_EQ(status_of_child(end_beside_what_is_apart), 7 << 8);
}

/* As if libc's number were not to be found. */
static void count_it_again(void)
{
	_Atomic unsigned *cnt = dlvsym(RTLD_DEFAULT, "__nptl_nthreads",
				       "GLIBC_PRIVATE");

	if (cnt)
		atomic_fetch_add(cnt, 1);
}

static void look(void)
{
	/* not while a thread of the program is there */
	if (own_thread_is_last())
		_exit(1);
	atomic_store(&is_ready, true);
	while (!own_thread_is_last())
		usleep(1000);
	own_thread_end_process();
}

static void end_all_threads_unheard(void)
{
	start(look, NULL);
	count_it_again();
	while (!atomic_load(&is_ready))
		usleep(1000);
	atexit(exit_with_seven);
	pthread_exit(NULL);
}

TEST(process_ends_when_the_thread_sees_that_it_is_alone)
{
	/* which has a thread of its own */
	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	CHECK_EQ(status_of_child(end_all_threads_unheard), 7 << 8);
}

static void start_in_real_time(void)
{
	struct sched_param fifo = { .sched_priority = 1 };
	cpu_set_t first;

	own_thread_load();
	CPU_ZERO(&first);
	CPU_SET(sched_getcpu(), &first);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0)
		_exit(errno == EPERM ? 77 : 1);
	sched_setaffinity(0, sizeof(first), &first);
	start(stay, NULL);
	while (!atomic_load(&is_ready))
		usleep(1000);
	_exit(policy == SCHED_OTHER && is_inside && is_signal_blocked &&
			      CPU_COUNT(&cpus) == sysconf(_SC_NPROCESSORS_ONLN) ?
		      0 :
		      2);
}

TEST(thread_is_ordinary_in_a_real_time_program)
{
	int status = status_of_child(start_in_real_time);

	if (status == 77 << 8)
		test_skip("needs the right to schedule in real time");
	CHECK_EQ(status, 0);
}

static void start_where_asked(void)
{
	cpu_set_t first;

	own_thread_load();
	CPU_ZERO(&first);
	CPU_SET(sched_getcpu(), &first);
	start(stay, &first);
	while (!atomic_load(&is_ready))
		usleep(1000);
	_exit(CPU_EQUAL(&cpus, &first) ? 0 : 2);
}

TEST(thread_runs_where_it_is_asked_to)
{
	CHECK_EQ(status_of_child(start_where_asked), 0);
}

/* By a thread that has one CPU to itself. */
static void start_where_nobody_can(void)
{
	cpu_set_t first, none;

	own_thread_load();
	CPU_ZERO(&first);
	CPU_SET(sched_getcpu(), &first);
	sched_setaffinity(0, sizeof(first), &first);
	CPU_ZERO(&none);
	CPU_SET(CPU_SETSIZE - 1, &none);
	start(stay, &none);
	while (!atomic_load(&is_ready))
		usleep(1000);
	_exit(CPU_COUNT(&cpus) == sysconf(_SC_NPROCESSORS_ONLN) ? 0 : 2);
}

TEST(thread_runs_where_the_program_started_if_not_where_it_is_asked_to)
{
	CHECK_EQ(status_of_child(start_where_nobody_can), 0);
}
