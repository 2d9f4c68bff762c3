/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that the program does not notice (own_thread.h). */
#include "config.h"

#include "os/own_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/syscall_raw.h"
#include "os/file.h"
#include "os/thread.h"

static struct {
	cpu_set_t cpus;
	bool has_cpus;
	struct own_thread_params params;
	/* libc's number of threads; NULL: it cannot be found */
	_Atomic unsigned *libc_cnt;
	pthread_t thread;
	_Atomic int tid;
} own;

void own_thread_load(void)
{
	own.has_cpus =
		sched_getaffinity(0, sizeof(own.cpus), &own.cpus) == 0;
}

/*
 * The process ends with its last thread. libc finds the last one by a number that
 * it counts down. Debuggers may read this number, so it has a name, though no
 * header has it. Our thread is taken out of the number, so libc runs exit(0) in the
 * program's last thread, at once and in the right place.
 */
static void find_libc_cnt(void)
{
	own.libc_cnt = dlvsym(RTLD_DEFAULT, "__nptl_nthreads", "GLIBC_PRIVATE");
}

bool own_thread_is_program_single(void)
{
	if (!own.libc_cnt)
		find_libc_cnt();
	return own.libc_cnt && atomic_load(own.libc_cnt) == 1;
}

bool own_thread_has_to_look(void)
{
	return !own.libc_cnt;
}

/* With one of the program's policies for real time, this thread could starve
 * others, or, while it spins for a lock, the thread that holds it. */
static void be_ordinary(void)
{
	static const struct sched_param ordinary;
	const cpu_set_t *asked = own.params.cpus;

	if (sched_getscheduler(0) != SCHED_OTHER &&
	    sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0)
		log_dbg("the library's thread has the program's scheduling policy: %m");
	if (asked && sched_setaffinity(0, sizeof(*asked), asked) == 0)
		return;
	if (asked)
		log_warn("the library's thread cannot run on the CPUs that are asked for (%m); going on where the program was started (VMA_INTERNAL_THREAD_AFFINITY)");
	/* Else it would have those of the thread that happens to start it. */
	if (own.has_cpus)
		(void)sched_setaffinity(0, sizeof(own.cpus), &own.cpus);
}

static void *run(void *arg UNUSED)
{
	pthread_setname_np(pthread_self(), own.params.name);
	atomic_store(&own.tid, (int)gettid());
	/* Everything this thread does is the library's own. */
	os_thread.is_internal = true;
	os_enter();
	be_ordinary();
	own.params.run();
	os_leave();
	/* libc is about to count this thread down. */
	if (own.libc_cnt)
		atomic_fetch_add(own.libc_cnt, 1);
	return NULL;
}

/* AddressSanitizer, unlike libc, leaves a child a heap that is locked for good, if a thread
 * is in it at the fork, as one that begins is. */
static void await_beginning(void)
{
	for (unsigned turn = 0; !atomic_load(&own.tid); turn++)
		lock_give_way(turn);
}

int own_thread_start(const struct own_thread_params *params)
{
	sigset_t all, old;
	int err;

	own.params = *params;
	atomic_store(&own.tid, 0);
	find_libc_cnt();
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = pthread_create(&own.thread, NULL, run, NULL);
	/* We do this here and not in the new thread, since here the caller's thread
	 * certainly counts. */
	if (!err && own.libc_cnt)
		atomic_fetch_sub(own.libc_cnt, 1);
	if (!err && HAS_ADDRESS_SANITIZER)
		await_beginning();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

void own_thread_join(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(own.thread, NULL);
	pthread_setcancelstate(state, NULL);
}

struct apart {
	void (*fn)(void *arg);
	void *arg;
	int err;
};

static void *run_apart(void *arg)
{
	struct apart *apart = arg;

	os_thread.is_internal = true;
	os_enter();
	/* Before Linux 5.9 there is no such call, and to hold all that the program has, when it
	 * closes it, would be worse than a number. */
	apart->err = (int)syscall_raw(SYS_close_range, STDERR_FILENO + 1, ~0u,
				      CLOSE_RANGE_UNSHARE, 0, 0, 0);
	if (!apart->err)
		apart->fn(apart->arg);
	os_leave();
	if (own.libc_cnt)
		atomic_fetch_add(own.libc_cnt, 1);
	return NULL;
}

int own_thread_run_apart(void (*fn)(void *arg), void *arg)
{
	struct apart apart = { .fn = fn, .arg = arg };
	pthread_t thread;
	int err = pthread_create(&thread, NULL, run_apart, &apart);

	if (err)
		return -err;
	if (own.libc_cnt)
		atomic_fetch_sub(own.libc_cnt, 1);
	pthread_join(thread, NULL);
	return apart.err;
}

/* Its number may be a new thread's of the program already. */
#define END_NS (NS_PER_SEC / 2)

void own_thread_await_end(void)
{
	uint64_t until = clock_monotonic_ns() + END_NS;
	unsigned turn = 0;

	while (tgkill(getpid(), atomic_load(&own.tid), 0) == 0 &&
	       clock_monotonic_ns() < until)
		lock_give_way(turn++);
}

bool own_thread_is_last(void)
{
	char text[1024];
	ssize_t len = file_peek("/proc/self/stat", text, sizeof(text) - 1);
	const char *at;

	text[MAX(len, 0)] = '\0';
	/* The first thread is there as long as its process, if only as a zombie.
	 * Its state is behind the name in "PID (NAME) Z", and the number of threads
	 * 17 fields later. */
	at = strrchr(text, ')');
	if (!at || strncmp(at, ") Z ", 4) != 0)
		return false;
	for (int field = 2; at && field < 20; field++)
		at = strchr(at + 1, ' ');
	return at && atoi(at) == 2;
}

void own_thread_end_process(void)
{
	os_leave();
	os_thread.is_internal = false;
	exit(0);
}
