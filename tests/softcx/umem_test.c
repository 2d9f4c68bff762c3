/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program's memory, as the card takes it: it must be there and allow what is
 * to be done with it, registration brings it in and counts it against the limit.
 * Run by umem.sh; see card_test.c. What comes of memory that goes away later is
 * in rules_test.c.
 */
#include "config.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "tests/support/test.h"

enum { PAGE = 4096, PAGES = 16, SIZE = PAGES * PAGE };

static uint8_t *map(int prot)
{
	void *at = mmap(NULL, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

/* 0 or errno; what was registered is deregistered again. */
static int try_reg(const void *at, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pair_a.pd, (void *)(uintptr_t)at, len,
				       access);

	if (!mr)
		return errno;
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	return 0;
}

TEST(memory_must_be_there)
{
	uint8_t *at = map(PROT_READ | PROT_WRITE);

	pair_open(NULL, NULL);
	CHECK_EQ(try_reg(at, SIZE, IBV_ACCESS_LOCAL_WRITE), 0);
	/* A hole, by whichever of its bytes it is reached. */
	CHECK_EQ(munmap(at + 8 * PAGE, PAGE), 0);
	CHECK_EQ(try_reg(at, 8 * PAGE, IBV_ACCESS_LOCAL_WRITE), 0);
	CHECK_EQ(try_reg(at, 8 * PAGE + 1, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	CHECK_EQ(try_reg(at + 9 * PAGE - 1, 2, 0), EFAULT);
	CHECK_EQ(try_reg(at, SIZE, 0), EFAULT);
	CHECK_EQ(try_reg(NULL, PAGE, 0), EFAULT);
	CHECK_EQ(try_reg((void *)(UINTPTR_MAX & ~(uintptr_t)0xffff), PAGE, 0),
		 EFAULT);
	munmap(at, SIZE);
	pair_close();
}

TEST(memory_must_allow_the_access)
{
	uint8_t *read_only = map(PROT_READ), *closed = map(PROT_NONE);

	pair_open(NULL, NULL);
	CHECK_EQ(try_reg(read_only, SIZE, 0), 0);
	CHECK_EQ(try_reg(read_only, SIZE, IBV_ACCESS_REMOTE_READ), 0);
	CHECK_EQ(try_reg(read_only, SIZE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	CHECK_EQ(try_reg(closed, SIZE, 0), EFAULT);
	munmap(read_only, SIZE);
	munmap(closed, SIZE);
	pair_close();
}

/* A mapping of a file is longer than the file. */
TEST(memory_beyond_a_file_is_not_there)
{
	int fd = memfd_create("umem_test", 0);
	uint8_t *at;

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, 8 * PAGE), 0);
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	pair_open(NULL, NULL);
	CHECK_EQ(try_reg(at, 8 * PAGE, IBV_ACCESS_LOCAL_WRITE), 0);
	CHECK_EQ(try_reg(at, SIZE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	munmap(at, SIZE);
	close(fd);
	pair_close();
}

static unsigned int n_resident(uint8_t *at)
{
	unsigned char there[PAGES];
	unsigned int n = 0;

	CHECK_EQ(mincore(at, SIZE, there), 0);
	for (unsigned int i = 0; i < PAGES; i++)
		n += there[i] & 1;
	return n;
}

TEST(registration_brings_memory_in)
{
	uint8_t *at = map(PROT_READ | PROT_WRITE);

	pair_open(NULL, NULL);
	CHECK_EQ(n_resident(at), 0);
	/* The pages that the bytes are on, and no others. */
	CHECK_EQ(try_reg(at + PAGE - 1, 2 * PAGE + 2, IBV_ACCESS_LOCAL_WRITE),
		 0);
	CHECK_EQ(n_resident(at), 4);
	munmap(at, SIZE);
	pair_close();
}

static void drop_ipc_lock(void)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	CHECK_EQ(syscall(SYS_capget, &hdr, data), 0);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	CHECK_EQ(syscall(SYS_capset, &hdr, data), 0);
}

/* What may be locked is counted in pages over all registrations; who may lock
 * without limit is not asked. In a child, which has a limit of its own. */
static int reach_the_limit(void)
{
	struct rlimit limit;
	uint8_t *at = map(PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;
	int ret = 0;

	pair_open(NULL, NULL);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	if (try_reg(at, SIZE, 0))
		return 1;
	drop_ipc_lock();
	if (try_reg(at, 1, 0) != ENOMEM)
		return 2;
	/* The rigs' own: slots, and the rings and records of their queues. */
	limit.rlim_cur = 4 << 20;
	while (!ret && limit.rlim_cur > 0) {
		limit.rlim_cur -= PAGE;
		setrlimit(RLIMIT_MEMLOCK, &limit);
		ret = try_reg(at, 8 * PAGE, 0);
	}
	limit.rlim_cur += PAGE;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	mr = ibv_reg_mr(pair_a.pd, at, 4 * PAGE, 0);
	if (ret != ENOMEM || !mr || try_reg(at, 4 * PAGE, 0) != 0 ||
	    try_reg(at, 5 * PAGE, 0) != ENOMEM)
		return 3;
	ibv_dereg_mr(mr);
	return try_reg(at, 8 * PAGE, 0) == 0 ? 0 : 4;
}

TEST(registration_counts_against_the_limit)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(reach_the_limit());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}
