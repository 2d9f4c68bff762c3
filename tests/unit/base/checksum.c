/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/checksum.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"
#include "tests/support/test.h"

/* The definition, as plainly as it can be written. */
static uint16_t plain_checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;
	uint8_t bytes[2];
	uint16_t check;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? data[i] : (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum;
	bytes[0] = (uint8_t)(sum >> 8);
	bytes[1] = (uint8_t)sum;
	memcpy(&check, bytes, 2);
	return check;
}

static void fill(struct rand *rand, uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)rand_u32(rand);
}

TEST(example_of_rfc_1071)
{
	static const uint8_t data[] = { 0x00, 0x01, 0xf2, 0x03,
					0xf4, 0xf5, 0xf6, 0xf7 };
	static const uint8_t want[] = { 0x22, 0x0d };
	uint16_t check = csum_fold(csum_partial(data, sizeof(data), 0));

	CHECK_MEM(&check, want, 2);
}

TEST(agrees_with_the_definition)
{
	struct rand rand;
	uint8_t data[300], copy[300];

	rand_init(&rand, test_seed);
	for (int i = 0; i < 20000; i++) {
		size_t start = rand_below(&rand, 16);
		size_t len = rand_below(&rand, sizeof(data) - 16);
		uint16_t want;

		fill(&rand, data + start, len);
		if (i % 7 == 0)
			memset(data + start, 0xff, len);
		want = plain_checksum(data + start, len);
		CHECK_EQ(csum_fold(csum_partial(data + start, len, 0)), want);
		memset(copy, 0xa5, sizeof(copy));
		CHECK_EQ(csum_fold(csum_copy(copy + 3, data + start, len, 0)),
			 want);
		CHECK_MEM(copy + 3, data + start, len);
		CHECK_EQ(copy[2], 0xa5);
		CHECK_EQ(copy[3 + len], 0xa5);
	}
}

TEST(parts_add_up_at_odd_offsets)
{
	struct rand rand;
	uint8_t data[200];

	rand_init(&rand, test_seed);
	for (int i = 0; i < 20000; i++) {
		size_t len = rand_below(&rand, sizeof(data));
		size_t cut = rand_below(&rand, len + 1);
		uint32_t head, tail, whole;

		fill(&rand, data, len);
		whole = csum_partial(data, len, 0);
		head = csum_partial(data, cut, 0);
		tail = csum_partial(data + cut, len - cut, 0);
		CHECK_EQ(csum_fold(csum_block_add(head, tail, cut)),
			 csum_fold(whole));
		/* 0 and 0xffff are the same number in ones' complement */
		if (csum_fold(tail) != 0xffff && csum_fold(head) != 0xffff)
			CHECK_EQ(csum_fold(csum_block_sub(whole, tail, cut)),
				 csum_fold(head));
	}
}

TEST(update_equals_a_new_sum)
{
	struct rand rand;

	rand_init(&rand, test_seed);
	for (int i = 0; i < 20000; i++) {
		uint16_t words[10], to = (uint16_t)rand_u32(&rand);
		uint16_t check, from;

		fill(&rand, (uint8_t *)words, sizeof(words));
		check = csum_fold(csum_partial(words, sizeof(words), 0));
		from = words[3];
		words[3] = to;
		CHECK_EQ(csum_update(check, from, to),
			 csum_fold(csum_partial(words, sizeof(words), 0)));
	}
}

/* Another process writes what is copied, meanwhile. */
TEST(sum_is_that_of_the_copy)
{
	enum { LEN = 197, TIMES = 2000000 };
	uint8_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t copy[LEN];
	unsigned wrong = 0;
	pid_t pid;

	CHECK(shared != MAP_FAILED);
	pid = fork();
	if (pid == 0)
		for (uint8_t value = 0;; value++)
			for (size_t i = 0; i < LEN; i++)
				((volatile uint8_t *)shared)[i] = value;
	/* it runs */
	while (!((volatile uint8_t *)shared)[LEN - 1])
		usleep(100);
	for (int i = 0; i < TIMES; i++) {
		uint32_t sum = csum_copy(copy, shared, LEN, 0);

		wrong += csum_fold(sum) != csum_fold(csum_partial(copy, LEN, 0));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(shared, 4096);
	CHECK_EQ(wrong, 0);
}
