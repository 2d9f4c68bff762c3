/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "net/stack_lock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/test.h"

enum { ROUNDS = 20000 };

static struct stack_lock lock;
static int guarded; /* plain, so that a broken lock loses counts */
static _Atomic bool is_over;

static void count_to(int rounds)
{
	for (int i = 0; i < rounds; i++) {
		stack_lock_acquire(&lock);
		guarded++;
		stack_lock_release(&lock);
	}
}

static void *count_up(void *arg)
{
	(void)arg;
	count_to(ROUNDS);
	return NULL;
}

/* As the quick calls do it. Returns how often that way was there. */
static int count_up_plainly(void) NO_LOCK_ANALYSIS
{
	int plain = 0;

	for (int i = 0; i < ROUNDS; i++) {
		if (stack_lock_try_plain(&lock)) {
			guarded++;
			plain++;
			stack_lock_release_plain(&lock);
		} else {
			stack_lock_acquire(&lock);
			guarded++;
			stack_lock_release(&lock);
		}
	}
	return plain;
}

static void *thread_counts_plainly(void *arg)
{
	*(int *)arg = count_up_plainly();
	return NULL;
}

/* Three threads in this way, and how often it was there. */
static int count_plainly_with_threads(enum stack_lock_kind kind)
{
	pthread_t threads[3];
	int plain[3], sum = 0;

	stack_lock_init(&lock, kind);
	guarded = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL,
					thread_counts_plainly, &plain[i]),
			 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		sum += plain[i];
	}
	CHECK_EQ(guarded, 3 * ROUNDS);
	CHECK_EQ(atomic_load(&lock.word), 0);
	return sum;
}

static void *count_up_as_guest(void *arg)
{
	int *rounds = arg;

	os_thread.is_internal = true;
	while (!atomic_load(&is_over)) {
		stack_lock_acquire(&lock);
		guarded++;
		stack_lock_release(&lock);
		(*rounds)++;
	}
	return NULL;
}

static void count_with_threads(enum stack_lock_kind kind)
{
	pthread_t threads[3];

	stack_lock_init(&lock, kind);
	guarded = 0;
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, count_up, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(guarded, 3 * ROUNDS);
	CHECK_EQ(atomic_load(&lock.word), 0);
}

TEST(spinning_threads_exclude_each_other)
{
	count_with_threads(STACK_LOCK_SPIN);
}

TEST(sleeping_threads_exclude_each_other)
{
	count_with_threads(STACK_LOCK_SLEEP);
}

TEST(yielding_threads_exclude_each_other)
{
	count_with_threads(STACK_LOCK_YIELD);
}

/* -- on one processor -- */

enum { MANY_SPINS = 20000, TURNS = 10 };

static uint64_t own_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void *take_as_ours(void *arg)
{
	_Atomic uint64_t *time_ns = arg;

	os_thread.is_internal = true;
	stack_lock_acquire(&lock);
	atomic_store(time_ns, own_time_ns());
	stack_lock_release(&lock);
	return NULL;
}

/* What a thread of the library needs of the processor until it has the lock, which is held
 * for TURNS. */
static uint64_t wait_as_ours(void)
{
	_Atomic uint64_t time_ns = 0;
	pthread_t thread;

	stack_lock_init(&lock, STACK_LOCK_SPIN);
	stack_lock_acquire(&lock);
	CHECK_EQ(pthread_create(&thread, NULL, take_as_ours, &time_ns), 0);
	for (int i = 0; i < TURNS; i++)
		usleep(1000);
	stack_lock_release(&lock);
	pthread_join(thread, NULL);
	return atomic_load(&time_ns);
}

/* What it spins while it waits is the time of the program, which may have one processor for
 * both: in so many turns less than one who spins would in four. Other programs that run
 * there make it more, but not each time; who spins needs all of it each time. */
TEST(own_threads_give_way_soon)
{
	uint64_t least_ns = UINT64_MAX, spins_ns = own_time_ns();
	cpu_set_t before, one;

	for (int i = 0; i < MANY_SPINS; i++)
		cpu_relax();
	spins_ns = own_time_ns() - spins_ns;
	CHECK_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	for (int i = 0; i < 2000 && least_ns >= 4 * spins_ns; i++)
		least_ns = MIN(least_ns, wait_as_ours());
	test_note("%llu us, of which a spinner takes %llu in a turn",
		  (unsigned long long)least_ns / 1000,
		  (unsigned long long)spins_ns / 1000);
	CHECK(least_ns < 4 * spins_ns);
	sched_setaffinity(0, sizeof(before), &before);
}

TEST(owner_needs_no_word)
{
	stack_lock_init(&lock, STACK_LOCK_BIASED);
	stack_lock_acquire(&lock);
	stack_lock_release(&lock);
	CHECK(atomic_load(&lock.owner) == &os_thread);
	stack_lock_acquire(&lock);
	CHECK_EQ(atomic_load(&lock.word), 0);
	CHECK(atomic_load(&lock.is_owner_inside));
	stack_lock_release(&lock);
	CHECK(!atomic_load(&lock.is_owner_inside));
}

TEST(second_thread_ends_the_bias)
{
	count_with_threads(STACK_LOCK_BIASED);
	CHECK_EQ(atomic_load(&lock.kind), STACK_LOCK_SPIN);
	CHECK(atomic_load(&lock.owner) == NULL);
}

TEST(plain_ways_exclude_each_other)
{
	CHECK(count_plainly_with_threads(STACK_LOCK_SPIN) > 0);
	CHECK(count_plainly_with_threads(STACK_LOCK_YIELD) > 0);
	CHECK_EQ(count_plainly_with_threads(STACK_LOCK_SLEEP), 0);
	count_plainly_with_threads(STACK_LOCK_BIASED);
	CHECK_EQ(atomic_load(&lock.kind), STACK_LOCK_SPIN);
}

TEST(owner_has_the_plain_way)
{
	stack_lock_init(&lock, STACK_LOCK_BIASED);
	guarded = 0;
	/* the first one makes it the owner */
	CHECK_EQ(count_up_plainly(), ROUNDS - 1);
	CHECK_EQ(atomic_load(&lock.word), 0);
	CHECK(!atomic_load(&lock.is_owner_inside));
}

TEST(guest_leaves_the_bias)
{
	int guest_rounds = 0;
	pthread_t guest;

	stack_lock_init(&lock, STACK_LOCK_BIASED);
	guarded = 0;
	atomic_store(&is_over, false);
	count_up(NULL);
	CHECK_EQ(pthread_create(&guest, NULL, count_up_as_guest, &guest_rounds),
		 0);
	for (int i = 0; i < 10; i++) {
		count_up(NULL);
		count_up_plainly();
	}
	atomic_store(&is_over, true);
	pthread_join(guest, NULL);
	CHECK_EQ(guarded, 21 * ROUNDS + guest_rounds);
	CHECK_EQ(atomic_load(&lock.kind), STACK_LOCK_BIASED);
	CHECK(atomic_load(&lock.owner) == &os_thread);
	CHECK(!atomic_load(&lock.is_revoked));
}

static _Atomic bool is_taken;

static void *hold_until_over(void *arg UNUSED)
{
	stack_lock_acquire(&lock);
	atomic_store(&is_taken, true);
	while (!atomic_load(&is_over))
		usleep(100);
	stack_lock_release(&lock);
	return NULL;
}

TEST(looking_whether_it_is_free_ends)
{
	static const enum stack_lock_kind kinds[] = {
		STACK_LOCK_BIASED, STACK_LOCK_SPIN, STACK_LOCK_SLEEP,
		STACK_LOCK_YIELD,
	};
	pthread_t holder;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		stack_lock_init(&lock, kinds[i]);
		CHECK(stack_lock_is_free_within(&lock, 0));
		is_over = false;
		atomic_store(&is_taken, false);
		CHECK_EQ(pthread_create(&holder, NULL, hold_until_over, NULL),
			 0);
		while (!atomic_load(&is_taken))
			usleep(100);
		CHECK(!stack_lock_is_free_within(&lock, 10 * NS_PER_MS));
		atomic_store(&is_over, true);
		CHECK(stack_lock_is_free_within(&lock, NS_PER_SEC));
		pthread_join(holder, NULL);
	}
}

/* -- priorities ---------------------------------------------------------------------- */

static struct spinlock spinlock = SPINLOCK_INIT(LOCK_RANK_TEST);
static _Atomic bool is_held;

static void stay_on_first_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

/* Needs the processor for this long to get to its release. */
static void compute(unsigned ms)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	while ((uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec <
	       ms * NS_PER_MS);
}

static void *hold_lock(void *arg UNUSED)
{
	stay_on_first_cpu();
	stack_lock_acquire(&lock);
	atomic_store(&is_held, true);
	compute(30);
	stack_lock_release(&lock);
	return NULL;
}

static void *hold_spinlock(void *arg UNUSED)
{
	stay_on_first_cpu();
	spinlock_acquire(&spinlock);
	atomic_store(&is_held, true);
	compute(30);
	spinlock_release(&spinlock);
	return NULL;
}

static void take_lock(void)
{
	stack_lock_acquire(&lock);
	stack_lock_release(&lock);
}

static void take_spinlock(void)
{
	spinlock_acquire(&spinlock);
	spinlock_release(&spinlock);
}

/* Milliseconds that a real-time thread waits for what one on its processor holds that
 * is not. */
static uint64_t wait_in_real_time(void *(*hold)(void *), void (*take)(void))
{
	struct sched_param fifo = { .sched_priority = 1 }, other = { 0 };
	pthread_t holder;
	uint64_t start;

	atomic_store(&is_held, false);
	CHECK_EQ(pthread_create(&holder, NULL, hold, NULL), 0);
	while (!atomic_load(&is_held))
		usleep(100);
	stay_on_first_cpu();
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0)
		test_skip("needs the right to schedule in real time");
	start = clock_monotonic_ns();
	take();
	start = clock_monotonic_ns() - start;
	sched_setscheduler(0, SCHED_OTHER, &other);
	pthread_join(holder, NULL);
	return start / NS_PER_MS;
}

/* Linux itself would interfere after 950 ms. */
enum { PATIENCE_MS = 600 };

TEST(real_time_waiters_let_the_holder_run)
{
	stack_lock_init(&lock, STACK_LOCK_SPIN);
	CHECK(wait_in_real_time(hold_lock, take_lock) < PATIENCE_MS);
	stack_lock_init(&lock, STACK_LOCK_YIELD);
	CHECK(wait_in_real_time(hold_lock, take_lock) < PATIENCE_MS);
	stack_lock_init(&lock, STACK_LOCK_BIASED);
	CHECK(wait_in_real_time(hold_lock, take_lock) < PATIENCE_MS);
	CHECK(wait_in_real_time(hold_spinlock, take_spinlock) < PATIENCE_MS);
}

/* -- without the barrier ------------------------------------------------------------- */

/* From now on membarrier fails. */
static void forbid_barrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LEN(code), code };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static _Atomic bool is_guest_done;

static void *enter_once_as_guest(void *arg UNUSED)
{
	os_thread.is_internal = true;
	stack_lock_acquire(&lock);
	guarded++;
	stack_lock_release(&lock);
	atomic_store(&is_guest_done, true);
	return NULL;
}

/* The owner comes and goes, or sleeps: a guest gets in either way, and nobody is
 * there with another. */
static void be_owner_without_barrier(void)
{
	/* A change of hands is slow on processors that are busy, and there may be
	 * one in each round: so the time is looked at after a few of them. */
	enum { FEW = ROUNDS / 200 };
	uint64_t end = clock_monotonic_ns() + 3 * NS_PER_SEC;
	int rounds = 0, guest_rounds = 0;
	pthread_t guest;

	stack_lock_init(&lock, STACK_LOCK_BIASED);
	guarded = 0;
	atomic_store(&is_over, false);
	take_lock();
	forbid_barrier();
	pthread_create(&guest, NULL, count_up_as_guest, &guest_rounds);
	while (rounds < 200 * ROUNDS && clock_monotonic_ns() < end) {
		count_to(FEW);
		rounds += FEW;
	}
	atomic_store(&is_over, true);
	count_to(FEW);
	pthread_join(guest, NULL);
	if (guarded != rounds + FEW + guest_rounds || !guest_rounds)
		_exit(1);
	pthread_create(&guest, NULL, enter_once_as_guest, NULL);
	usleep(500000);
	if (!atomic_load(&is_guest_done))
		_exit(2);
	pthread_join(guest, NULL);
	pthread_create(&guest, NULL, count_up, NULL);
	pthread_join(guest, NULL);
	_exit(atomic_load(&lock.kind) == STACK_LOCK_SPIN ? 0 : 3);
}

TEST(bias_is_safe_without_the_barrier)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		be_owner_without_barrier();
	}
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
}
