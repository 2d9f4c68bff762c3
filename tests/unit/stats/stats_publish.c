/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "stats/stats_publish.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stats/stats_clean.h"
#include "stats/stats_snapshot.h"
#include "tests/support/test.h"

static char dir[64];
static char path[96];
static struct stats_handle handles[4];

/* A region of this process, in a directory of the test's. */
static void start(uint32_t socket_max, const char *file)
{
	struct stats_params params = {
		.dir = dir,
		.file = file,
		.socket_max = socket_max,
		.program = "stats_publish",
		.version = "1.2.3-4",
	};

	strcpy(dir, "/tmp/vma-unit-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/vmastat.%d", dir, getpid());
	stats_start(&params);
}

static void end(void)
{
	stats_end();
	CHECK(access(path, F_OK) != 0);
	CHECK(rmdir(dir) == 0);
	stats_forked(); /* the next case starts from nothing */
}

/* What a reader has. */
static struct stats_region *read_region(void)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	struct stats_region *r;

	CHECK(fd >= 0);
	CHECK(fstat(fd, &st) == 0);
	CHECK_EQ(st.st_mode & 07777, 0600);
	r = aligned_alloc(CACHE_LINE, ((size_t)st.st_size + 63) & ~63ul);
	CHECK_EQ(read(fd, r, (size_t)st.st_size), st.st_size);
	close(fd);
	CHECK_EQ(stats_snapshot_check(r, (size_t)st.st_size), 0);
	return r;
}

/* A process with a file in the directory, waiting to be killed. */
static pid_t start_other(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	CHECK(pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		stats_forked();
		stats_start_again();
		(void)!write(ready[1], "", 1);
		pause();
		_exit(0);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void path_of(pid_t pid, char *buf, size_t size)
{
	snprintf(buf, size, "%s/vmastat.%d", dir, pid);
}

static void end_other(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Gives the file another value at this offset. */
static void forge(const char *file, size_t offset, uint64_t value, size_t size)
{
	int fd = open(file, O_WRONLY);

	CHECK(fd >= 0);
	CHECK_EQ(pwrite(fd, &value, size, (off_t)offset), (ssize_t)size);
	close(fd);
}

TEST(files_of_dead_processes_go_at_the_next_start)
{
	char dead[96], living[96], elsewhere[96], newer[96], text[96];
	pid_t pid[4];

	start(3, "");
	for (size_t i = 0; i < ARRAY_LEN(pid); i++)
		pid[i] = start_other();
	path_of(pid[0], dead, sizeof(dead));
	path_of(pid[1], living, sizeof(living));
	path_of(pid[2], elsewhere, sizeof(elsewhere));
	path_of(pid[3], newer, sizeof(newer));
	end_other(pid[0]);
	/* of another pid namespace, where the number may be alive */
	forge(elsewhere, offsetof(struct stats_region, pid_namespace), 1, 8);
	end_other(pid[2]);
	/* of a build that we do not know */
	forge(newer, offsetof(struct stats_region, abi), 99999, 4);
	end_other(pid[3]);
	snprintf(text, sizeof(text), "%s/vmastat.1x", dir);
	close(open(text, O_CREAT | O_WRONLY, 0600));
	CHECK(access(dead, F_OK) == 0);
	stats_clean_dead(dir);
	CHECK(access(dead, F_OK) != 0);
	CHECK(access(living, F_OK) == 0);
	CHECK(access(elsewhere, F_OK) == 0);
	CHECK(access(newer, F_OK) == 0);
	CHECK(access(text, F_OK) == 0);
	CHECK(access(path, F_OK) == 0);
	/* A file of the number that the living one got after another. */
	forge(living, offsetof(struct stats_region, start_time), 1, 8);
	stats_clean_dead(dir);
	CHECK(access(living, F_OK) != 0);
	end_other(pid[1]);
	unlink(elsewhere);
	unlink(newer);
	unlink(text);
	end();
}

TEST(region_says_whose_it_is)
{
	struct stats_region *r;
	mode_t mask = umask(0777);

	start(3, "");
	umask(mask);
	r = read_region();
	CHECK_EQ(r->pid, getpid());
	CHECK_EQ(r->socket_max, 3);
	CHECK_STR(r->program, "stats_publish");
	CHECK_STR(r->version, "1.2.3-4");
	CHECK(r->start_time > 0);
	CHECK(r->pid_namespace > 0);
	CHECK(!r->has_ended);
	free(r);
	stats_set_ended(true);
	r = read_region();
	CHECK(r->has_ended);
	free(r);
	end();
}

static int end_as_another(void *arg)
{
	stats_set_ended(true);
	(void)arg;
	return 0;
}

/* A child by clone() that shares our memory runs another program. */
TEST(counters_end_with_their_own_process)
{
	static _Alignas(16) char stack[65536];
	struct stats_region *r;
	pid_t pid;

	/* neither knows such a child */
	if (HAS_THREAD_SANITIZER || getenv("TEST_UNDER_VALGRIND"))
		test_skip("not under a sanitizer");
	start(1, "");
	pid = clone(end_as_another, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	r = read_region();
	CHECK(!r->has_ended);
	free(r);
	end();
}

TEST(sockets_count_in_their_slots)
{
	struct stats_region *r;

	start(2, "");
	stats_socket_open(&handles[0], 5, 77, IPPROTO_UDP);
	stats_socket_open(&handles[1], 6, 78, IPPROTO_UDP);
	handles[0].at->counters.rx_packets += 3;
	stats_count_os_rx(&handles[1], 100);
	stats_count_os_rx(&handles[1], -EAGAIN);
	stats_count_os_rx(&handles[1], -ENOMEM);
	stats_count_os_tx(&handles[1], 7);
	stats_count_os_tx(&handles[1], -EAGAIN);
	stats_count_os_tx(&handles[1], -EPERM);
	r = read_region();
	CHECK_EQ(r->sockets[0].fd, 5);
	CHECK_EQ(r->sockets[0].inode, 77);
	CHECK_EQ(r->sockets[0].rx.reason, REASON_NOT_USED);
	CHECK_EQ(r->sockets[0].counters.rx_packets, 3);
	CHECK_EQ(r->sockets[1].counters.rx_os_packets, 1);
	CHECK_EQ(r->sockets[1].counters.rx_os_bytes, 100);
	CHECK_EQ(r->sockets[1].counters.rx_os_eagain, 1);
	CHECK_EQ(r->sockets[1].counters.rx_os_errors, 1);
	CHECK_EQ(r->sockets[1].counters.tx_os_packets, 1);
	CHECK_EQ(r->sockets[1].counters.tx_os_bytes, 7);
	CHECK_EQ(r->sockets[1].counters.tx_os_eagain, 1);
	CHECK_EQ(r->sockets[1].counters.tx_os_errors, 1);
	free(r);
	stats_socket_close(&handles[0]);
	stats_socket_open(&handles[2], 9, 79, IPPROTO_UDP);
	r = read_region();
	/* the same slot, a new socket */
	CHECK_EQ(r->sockets[0].fd, 9);
	CHECK_EQ(r->sockets[0].counters.rx_packets, 0);
	CHECK(atomic_load(&r->sockets[0].id) > 2);
	free(r);
	stats_socket_close(&handles[1]);
	stats_socket_close(&handles[2]);
	end();
}

/* A child has it from its parent, whose sums are others. */
TEST(what_another_process_has_opened_is_in_no_sum)
{
	struct stats_handle inherited = { .at = &inherited.own, .owner = getppid() };
	struct stats_region *r;

	start(1, "");
	stats_set_rx(&inherited, REASON_LOCAL, STATS_BY_BIND, 0, "");
	r = read_region();
	for (int i = 0; i < REASON_COUNT; i++)
		CHECK_EQ(r->unslotted[i], 0);
	free(r);
	end();
}

/* As that of a port is, whose socket has one of its own. */
TEST(what_is_no_socket_is_in_no_sum)
{
	struct stats_handle other = { .at = &other.own };
	struct stats_region *r;

	start(1, "");
	stats_set_rx(&other, REASON_LOCAL, STATS_BY_LISTEN, 0, "");
	stats_set_rx(&other, REASON_NONE, STATS_BY_LISTEN, 1, "");
	r = read_region();
	for (int i = 0; i < REASON_COUNT; i++)
		CHECK_EQ(r->unslotted[i], 0);
	free(r);
	end();
}

TEST(sockets_beyond_the_slots_are_sums_by_reason)
{
	struct stats_region *r;

	start(1, "");
	for (int i = 0; i < 4; i++)
		stats_socket_open(&handles[i], i, (ino_t)i + 1, IPPROTO_UDP);
	CHECK(handles[1].at == &handles[1].own);
	stats_set_rx(&handles[0], REASON_LOCAL, STATS_BY_BIND, 0, "");
	stats_set_rx(&handles[1], REASON_LOCAL, STATS_BY_BIND, 0, "");
	stats_set_rx(&handles[2], REASON_NONE, STATS_BY_BIND, 1, "");
	r = read_region();
	CHECK_EQ(r->unslotted[REASON_LOCAL], 1);
	CHECK_EQ(r->unslotted[REASON_NONE], 1);
	CHECK_EQ(r->unslotted[REASON_NOT_USED], 1);
	free(r);
	for (int i = 0; i < 4; i++)
		stats_socket_close(&handles[i]);
	stats_count_unserved(REASON_TCP);
	r = read_region();
	for (int i = 0; i < REASON_COUNT; i++) {
		CHECK_EQ(r->unslotted[i], 0);
		CHECK_EQ(r->unserved[i], i == REASON_TCP);
	}
	free(r);
	end();
}

TEST(rings_pools_and_sets_have_places)
{
	struct stats_ring *rings[STATS_RINGS_MAX + 1];
	struct stats_pool *pool;
	struct stats_mux *mux[STATS_EPOLLS_MAX + 1];
	struct stats_region *r;

	start(0, "");
	for (int i = 0; i <= STATS_RINGS_MAX; i++)
		rings[i] = stats_ring_open("eth0", "xdp", "native, copy");
	CHECK(rings[STATS_RINGS_MAX - 1] && !rings[STATS_RINGS_MAX]);
	CHECK_EQ(stats_ring_bit(rings[3]), 8);
	CHECK_EQ(stats_ring_bit(NULL), 0);
	stats_ring_close(rings[3]);
	CHECK(stats_ring_open("eth1", "xdp", "") == rings[3]);
	pool = stats_pool_open("eth0", 4096);
	CHECK(pool);
	for (int i = 0; i <= STATS_EPOLLS_MAX; i++)
		mux[i] = stats_mux_open(i);
	/* counts, though nobody sees it */
	stats_add(&mux[STATS_EPOLLS_MAX]->counters.errors, 1);
	stats_add(&mux[1]->counters.errors, 1);
	r = read_region();
	CHECK_STR(r->rings[3].interface, "eth1");
	CHECK_STR(r->rings[4].mode, "native, copy");
	CHECK_EQ(r->pools[0].total_cnt, 4096);
	CHECK_EQ(r->epolls[1].counters.errors, 1);
	CHECK_EQ(r->epolls[1].fd, 1);
	free(r);
	stats_pool_close(pool);
	for (int i = 0; i <= STATS_EPOLLS_MAX; i++)
		stats_mux_close(mux[i]);
	r = read_region();
	CHECK(!r->pools[0].is_used && !atomic_load(&r->epolls[1].is_used));
	free(r);
	end();
}

/* The reader's end of a request, by its own mapping. */
static struct stats_region *map_as_reader(void)
{
	int fd = open(path, O_RDWR);
	void *mem = mmap(NULL, sizeof(struct stats_region),
			 PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(mem != MAP_FAILED);
	close(fd);
	return mem;
}

TEST(requests_are_taken_once_and_answered)
{
	struct stats_region *reader;
	struct stats_order order;

	start(1, "");
	reader = map_as_reader();
	CHECK(!stats_take_order(&order));
	reader->request.wish = STATS_WISH_LOG_LEVEL;
	reader->request.value = 5;
	CHECK(!stats_take_order(&order));
	atomic_store(&reader->request.asked, 41);
	CHECK(stats_take_order(&order));
	CHECK_EQ(order.wish, STATS_WISH_LOG_LEVEL);
	CHECK_EQ(order.value, 5);
	CHECK_EQ(atomic_load(&reader->request.answered), 0);
	stats_answer_order(-EINVAL);
	CHECK_EQ(atomic_load(&reader->request.answered), 41);
	CHECK_EQ(atomic_load(&reader->request.result), -EINVAL);
	/* what a reader does to the answer brings nothing back */
	atomic_store(&reader->request.answered, 0);
	CHECK(!stats_take_order(&order));
	munmap(reader, sizeof(*reader));
	end();
}

TEST(zero_spares_what_was_not_named_and_what_waits)
{
	struct stats_order order = { .wish = STATS_WISH_ZERO };
	struct stats_ring *ring;
	struct stats_region *r;

	start(2, "");
	ring = stats_ring_open("eth0", "xdp", "");
	ring->counters.kicks = 4;
	for (int i = 0; i < 2; i++) {
		stats_socket_open(&handles[i], i, 1, IPPROTO_UDP);
		handles[i].at->counters.rx_queued_packets = 10;
		handles[i].at->counters.rx_queued_bytes = 1000;
		handles[i].at->counters.rx_packets = 7;
		handles[i].at->counters.rx_bytes = 600;
		handles[i].at->counters.rx_ready_pkt_max = 5;
	}
	stats_add(&stats_mux_poll()->counters.timeouts, 1);
	order.sockets[0] = 2;
	/* slots that do not exist */
	memset(&order.sockets[1], 0xff, sizeof(uint64_t));
	stats_zero(&order);
	r = read_region();
	CHECK_EQ(r->sockets[0].counters.rx_packets, 7);
	CHECK_EQ(r->sockets[1].counters.rx_packets, 0);
	CHECK_EQ(r->sockets[1].counters.rx_ready_pkt_max, 0);
	CHECK_EQ(stats_socket_ready_pkts(&r->sockets[1]), 3);
	CHECK_EQ(stats_socket_ready_bytes(&r->sockets[1]), 400);
	CHECK_EQ(r->rings[0].counters.kicks, 0);
	CHECK_EQ(r->poll.counters.timeouts, 0);
	free(r);
	for (int i = 0; i < 2; i++)
		stats_socket_close(&handles[i]);
	end();
}

/* A region full of lies: the library goes on, and answers nothing it has not
 * checked. */
TEST(hostile_reader_does_no_harm)
{
	struct stats_region *reader;
	struct stats_order order;
	size_t size;

	start(4, "");
	reader = map_as_reader();
	size = sizeof(*reader);
	stats_socket_open(&handles[0], 1, 1, IPPROTO_UDP);
	memset(reader, 0xff, size);
	CHECK(stats_take_order(&order));
	CHECK_EQ(order.wish, UINT32_MAX);
	order.wish = STATS_WISH_ZERO;
	stats_zero(&order);
	stats_answer_order(0);
	memset(reader, 0xff, size);
	/* which places are taken is not read from there */
	stats_socket_open(&handles[1], 2, 2, IPPROTO_UDP);
	CHECK(handles[1].at != handles[0].at);
	CHECK(handles[1].at != &handles[1].own);
	stats_set_rx(&handles[1], REASON_LOCAL, STATS_BY_BIND, ~0u, "x");
	stats_count_unserved(REASON_TCP);
	CHECK(stats_ring_open("eth0", "xdp", ""));
	memset(reader, 0xff, size);
	stats_socket_close(&handles[0]);
	stats_socket_close(&handles[1]);
	munmap(reader, size);
	end();
}

TEST(without_a_region_counting_goes_on)
{
	struct stats_params params = { .dir = "/nowhere/at/all", .file = "",
				       .socket_max = 5, .program = "",
				       .version = "" };
	struct stats_order order;

	stats_start(&params);
	stats_socket_open(&handles[0], 1, 1, IPPROTO_UDP);
	CHECK(handles[0].at == &handles[0].own);
	stats_count_os_tx(&handles[0], 5);
	CHECK_EQ(handles[0].own.counters.tx_os_bytes, 5);
	stats_set_rx(&handles[0], REASON_LOCAL, STATS_BY_BIND, 0, "");
	stats_count_unserved(REASON_TCP);
	CHECK(!stats_ring_open("eth0", "xdp", ""));
	CHECK(!stats_pool_open("eth0", 1));
	stats_add(&stats_mux_poll()->counters.errors, 1);
	stats_mux_close(stats_mux_open(3));
	CHECK(!stats_drops());
	CHECK(!stats_take_order(&order));
	stats_socket_close(&handles[0]);
	stats_end();
	params.dir = "";
	stats_start(&params);
	CHECK(!stats_ring_open("eth0", "xdp", ""));
	stats_forked();
}

TEST(foreign_file_is_left_alone)
{
	start(1, "");
	stats_end();
	/* a directory of the same name is none that we could remove */
	CHECK(mkdir(path, 0700) == 0);
	stats_forked();
	stats_start_again();
	CHECK(!stats_ring_open("eth0", "xdp", ""));
	CHECK(rmdir(path) == 0);
	CHECK(rmdir(dir) == 0);
}

/* In the child: nothing it counts is seen, until it has a file of its own. */
static int be_child(void)
{
	char own[96];

	stats_forked();
	handles[0].at->counters.rx_packets = 1000;
	stats_socket_close(&handles[0]);
	snprintf(own, sizeof(own), "%s/vmastat.%d", dir, getpid());
	stats_start_again();
	if (access(own, F_OK) != 0)
		return 1;
	stats_socket_open(&handles[1], 8, 8, IPPROTO_UDP);
	if (handles[1].at == &handles[1].own)
		return 2;
	stats_end();
	return access(own, F_OK) == 0 ? 3 : 0;
}

TEST(child_has_its_own_region)
{
	struct stats_region *r;
	int status;
	pid_t pid;

	start(1, "");
	stats_socket_open(&handles[0], 5, 5, IPPROTO_UDP);
	handles[0].at->counters.rx_packets = 1;
	pid = fork();
	if (pid == 0)
		_exit(be_child());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	r = read_region();
	CHECK_EQ(r->sockets[0].counters.rx_packets, 1);
	CHECK_EQ(r->sockets[0].fd, 5);
	free(r);
	stats_socket_close(&handles[0]);
	end();
}

/* The child must not have more private memory, of which it has got none. */
static int be_poor_child(void)
{
	struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_DATA, &none) != 0)
		return 1;
	stats_forked();
	handles[0].at->counters.rx_packets = 1000;
	return 0;
}

TEST(child_without_room_for_private_memory_leaves_the_region_alone)
{
	struct stats_region *r;
	int status;
	pid_t pid;

	start(1, "");
	stats_socket_open(&handles[0], 5, 5, IPPROTO_UDP);
	handles[0].at->counters.rx_packets = 1;
	pid = fork();
	if (pid == 0)
		_exit(be_poor_child());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	r = read_region();
	CHECK_EQ(r->sockets[0].counters.rx_packets, 1);
	free(r);
	stats_socket_close(&handles[0]);
	end();
}

TEST(closed_sockets_are_written_to_the_file)
{
	char file[] = "/tmp/vma-unit-file-XXXXXX";
	char text[4096] = "";
	int fd = mkstemp(file);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "old\n", 4), 4);
	start(1, file);
	for (int i = 0; i < 2; i++)
		stats_socket_open(&handles[i], 10 + i, 5, IPPROTO_UDP);
	handles[1].at->counters.tx_packets = 3;
	handles[1].at->counters.tx_bytes = 2048;
	stats_socket_close(&handles[1]);
	/* the other one is open at the end */
	end();
	CHECK(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	unlink(file);
	CHECK_STR(text,
		  "======================================================\n"
		  "\tFd=[11]\n"
		  "- UDP, Blocked\n"
		  "Tx Offload: 2 / 3 / 0 / 0 [kilobytes/packets/eagains/errors]\n"
		  "======================================================\n"
		  "\tFd=[10]\n"
		  "- UDP, Blocked\n"
		  "Rx and Tx where not active\n"
		  "======================================================\n");
}
