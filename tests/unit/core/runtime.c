/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's start and what it decides for sockets, which objects of this test
 * serve. A process starts it once, so each case has a process of its own.
 */
#include "config.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "conf/rules.h"

/* Steps of the start that a case may let fail, or hold up. */
static struct rules *make_rules(void);
#define rules_create make_rules
#include "core/runtime.c"
#undef rules_create

#include "os/file.h"
#include "tests/support/test.h"

static struct {
	bool has_no_memory;
	unsigned slow_us;
	_Atomic unsigned start_cnt, made_cnt, left_cnt;
	enum reason reason_left;
} world;

static char said[8192];

static void keep(void *ctx UNUSED, enum log_level level UNUSED, const char *line,
		 size_t len)
{
	size_t at = strlen(said);

	if (at + len < sizeof(said)) {
		memcpy(said + at, line, len);
		said[at + len] = '\0';
	}
}

static struct rules *make_rules(void)
{
	world.start_cnt++;
	usleep(world.slow_us);
	/* the log of the start goes to the standard error output by then */
	log_set_sink(keep, NULL);
	return world.has_no_memory ? NULL : rules_create();
}

/* -- objects ------------------------------------------------------------------------ */

static void leave(struct fd_object *obj UNUSED, int fd UNUSED, enum reason reason,
		  enum stats_decider decider UNUSED)
{
	world.left_cnt++;
	world.reason_left = reason;
}

static void release(struct fd_object *obj)
{
	free(obj);
}

static struct fd_ops ops = { .name = "test", .leave = leave, .release = release };

static struct fd_object *make(int fd UNUSED, int domain UNUSED, int type UNUSED,
			      int protocol UNUSED, int *reason_out UNUSED)
{
	struct fd_object *obj = calloc(1, sizeof(*obj));

	world.made_cnt++;
	fd_object_init(obj, &ops, 0);
	return obj;
}

static bool serves_datagrams(int type)
{
	return (type & 0xf) == SOCK_DGRAM;
}

/* -- a case ------------------------------------------------------------------------- */

/* The case goes on in a process of its own. */
static void begin(void)
{
	static char *nothing[] = { NULL };

	test_apart();
	environ = nothing;
	setenv("VMA_CONFIG_FILE", "", 1);
	setenv("VMA_STATS_SHMEM_DIR", "", 1);
	real_resolve();
	fd_ops_fill(&ops);
	runtime_set_sockets(make, serves_datagrams);
}

/* As the program makes one. Whether it is ours. */
static bool make_socket(int domain, int type, int *fd_out)
{
	int fd = real.socket(domain, type, 0);

	CHECK(fd >= 0);
	errno = ENOTRECOVERABLE;
	runtime_socket_made(fd, domain, type, 0);
	CHECK_EQ(errno, ENOTRECOVERABLE);
	if (fd_out)
		*fd_out = fd;
	return fd_table_has(fd);
}

static bool is_served(void)
{
	return make_socket(AF_INET, SOCK_DGRAM, NULL);
}

/* -- the start ------------------------------------------------------------------------ */

TEST(it_starts_at_the_first_socket_it_may_serve)
{
	int fd;

	begin();
	CHECK(!make_socket(AF_UNIX, SOCK_DGRAM, &fd));
	/* as if it were one that not everybody may make */
	runtime_socket_made(fd, AF_INET, SOCK_RAW, IPPROTO_ICMP);
	CHECK_EQ(world.start_cnt, 0);
	CHECK(is_served());
	CHECK(is_served());
	CHECK(make_socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			  NULL));
	CHECK_EQ(world.start_cnt, 1);
	CHECK_EQ(world.made_cnt, 3);
	/* nobody serves those */
	CHECK(!make_socket(AF_INET, SOCK_STREAM, NULL));
	CHECK_EQ(world.made_cnt, 3);
}

/* Whatever was begun, sockets work, by the kernel. */
TEST(a_start_that_fails_leaves_all_to_the_kernel)
{
	int fd;

	begin();
	world.has_no_memory = true;
	CHECK(!make_socket(AF_INET, SOCK_DGRAM, &fd));
	CHECK(strstr(said, "cannot start (Cannot allocate memory); all sockets stay with the kernel"));
	CHECK(real.fcntl(fd, F_GETFD) >= 0);
	/* it is not tried again, nor is anybody asked for an object */
	CHECK(!is_served());
	CHECK(!make_socket(AF_INET, SOCK_STREAM, NULL));
	CHECK_EQ(world.start_cnt, 1);
	CHECK_EQ(world.made_cnt, 0);
	/* and what goes on without it is not disturbed */
	runtime_handing_on(fd);
	runtime_spawning();
	runtime_exiting();
}

static void *make_one(void *arg)
{
	*(bool *)arg = is_served();
	return NULL;
}

/* None of them goes on before it has started. */
TEST(threads_that_make_the_first_socket_at_once)
{
	enum { THREADS = 8 };
	bool served[THREADS] = { false };
	pthread_t threads[THREADS];

	begin();
	world.slow_us = 20000;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, make_one, &served[i]),
			 0);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
		CHECK(served[i]);
	}
	CHECK_EQ(world.start_cnt, 1);
	CHECK_EQ(world.made_cnt, THREADS);
}

TEST(it_may_be_switched_off)
{
	begin();
	setenv("VMA_OFFLOADED_SOCKETS", "0", 1);
	CHECK(!is_served());
	CHECK_EQ(world.made_cnt, 0);
}

TEST(another_namespace_is_the_kernels)
{
	begin();
	CHECK(is_served());
	runtime_namespace_changing();
	CHECK(!is_served());
	runtime_namespace_changed(false);
	CHECK(is_served());
	/* of two at once one may fail */
	runtime_namespace_changing();
	runtime_namespace_changing();
	runtime_namespace_changed(true);
	runtime_namespace_changed(false);
	CHECK(!is_served());
}

/* -- forks ---------------------------------------------------------------------------- */

static pid_t fork_by_number(void)
{
	pid_t pid;

	runtime_before_fork();
	pid = fork();
	runtime_after_fork(pid == 0);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

TEST(a_child_forgets_and_goes_on)
{
	pid_t pid;
	int fd;

	begin();
	CHECK(make_socket(AF_INET, SOCK_DGRAM, &fd));
	pid = fork_by_number();
	if (pid == 0) {
		/* the socket is the kernel's, new ones are served */
		CHECK(!fd_table_has(fd));
		CHECK(real.fcntl(fd, F_GETFD) >= 0);
		CHECK(is_served());
		/* without another start, and the next ones by the short way again */
		CHECK_EQ(world.start_cnt, 1);
		CHECK_EQ(runtime.state, STARTED);
		_exit(0);
	}
	CHECK_EQ(wait_for(pid), 0);
	CHECK(fd_table_has(fd));
	CHECK(is_served());
}

/* Another thread's call is not the child's; a handler's child comes out of the call. */
TEST(a_child_of_one_that_leaves_its_network)
{
	pid_t pid;

	begin();
	CHECK(is_served());
	runtime_namespace_changing();
	pid = fork_by_number();
	if (pid == 0) {
		CHECK(is_served());
		runtime_namespace_changed(false);
		CHECK(is_served());
		_exit(0);
	}
	CHECK_EQ(wait_for(pid), 0);
	CHECK(!is_served());
	runtime_namespace_changed(false);
	CHECK(is_served());
}

TEST(a_child_from_before_the_start)
{
	pid_t pid;

	begin();
	pid = fork_by_number();
	if (pid == 0) {
		CHECK(is_served());
		CHECK_EQ(world.start_cnt, 1);
		_exit(0);
	}
	CHECK_EQ(wait_for(pid), 0);
	CHECK_EQ(world.start_cnt, 0);
	CHECK(is_served());
}

/* It waits for the start to end, so no child has half of it. */
static void *fork_meanwhile(void *arg)
{
	pid_t pid;

	while (!world.start_cnt)
		sched_yield();
	pid = fork_by_number();
	if (pid == 0) {
		alarm(5);
		_exit(is_served() && world.start_cnt == 1 ? 0 : 1);
	}
	*(int *)arg = wait_for(pid);
	return NULL;
}

TEST(a_fork_while_another_thread_starts)
{
	int status = -1;
	pthread_t thread;

	/* whose allocator the fork may find locked by the other thread */
	if (HAS_THREAD_SANITIZER || HAS_ADDRESS_SANITIZER)
		test_skip("not under a sanitizer");
	begin();
	world.slow_us = 50000;
	CHECK_EQ(pthread_create(&thread, NULL, fork_meanwhile, &status), 0);
	CHECK(is_served());
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(status, 0);
}

/* -- ends ----------------------------------------------------------------------------- */

TEST(a_filter_ends_it_for_good)
{
	int fd;

	begin();
	CHECK(make_socket(AF_INET, SOCK_DGRAM, &fd));
	runtime_filtering();
	CHECK_EQ(world.left_cnt, 1);
	CHECK_EQ(world.reason_left, REASON_SECCOMP);
	CHECK(!fd_table_has(fd));
	CHECK(!is_served());
	CHECK_EQ(world.made_cnt, 1);
	/* a second filter finds nothing more */
	runtime_filtering();
	CHECK_EQ(world.left_cnt, 1);
}

TEST(what_an_exec_inherits_is_handed_on)
{
	int kept, closed;

	begin();
	CHECK(make_socket(AF_INET, SOCK_DGRAM, &kept));
	CHECK(make_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, &closed));
	runtime_executing();
	CHECK_EQ(world.left_cnt, 1);
	CHECK_EQ(world.reason_left, REASON_HANDED_ON);
	errno = ENOENT;
	CHECK_EQ(runtime_goes_on(-1), -1);
	CHECK_EQ(errno, ENOENT);
	CHECK(is_served());
}

TEST(readers_among_others_have_their_socket)
{
	int fd, other;

	begin();
	CHECK(make_socket(AF_INET, SOCK_DGRAM, &fd));
	CHECK(make_socket(AF_INET, SOCK_DGRAM, &other));
	runtime_reading_by_kernel(fd);
	CHECK_EQ(world.left_cnt, 1);
	CHECK_EQ(world.reason_left, REASON_IO_URING);
	/* not even looked at */
	runtime_reading_by_kernel(-1);
	runtime_reading_by_kernel(1 << 29);
	CHECK_EQ(world.left_cnt, 1);
	runtime_ring_made();
	CHECK_EQ(world.left_cnt, 3);
	CHECK(!is_served());
}

/* The wish is asked for before the first socket, too. */
TEST(rings_are_hidden_as_the_environment_says)
{
	begin();
	setenv("VMA_IO_URING", "kernel", 1);
	CHECK(!runtime_hides_rings());
	CHECK(is_served());
	CHECK(!runtime_hides_rings());
}

TEST(rings_are_hidden_by_default)
{
	begin();
	CHECK(runtime_hides_rings());
	CHECK_EQ(world.start_cnt, 0);
}
