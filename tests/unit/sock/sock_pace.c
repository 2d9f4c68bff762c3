/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What SO_MAX_PACING_RATE says, in its forms (src/sock/sock_pace.c). */
#include "config.h"

#include "sock/sock_pace.h"

#include "tests/support/test.h"

static struct sock_pace read_word(uint32_t word)
{
	struct sock_pace pace;

	CHECK(sock_pace_read(&word, sizeof(word), &pace));
	return pace;
}

static struct sock_pace read_long(uint64_t rate)
{
	struct sock_pace pace;

	CHECK(sock_pace_read(&rate, sizeof(rate), &pace));
	return pace;
}

static struct sock_pace read_vma(uint32_t kbps, uint32_t burst, uint16_t frame_len)
{
	struct sock_pace_vma vma = { kbps, burst, frame_len };
	struct sock_pace pace;

	CHECK(sock_pace_read(&vma, sizeof(vma), &pace));
	return pace;
}

TEST(forms_of_the_option)
{
	struct sock_pace pace = read_vma(8000, 65000, 1400);

	CHECK(pace.is_set);
	CHECK_EQ(pace.pace.kbps, 8000);
	CHECK_EQ(pace.pace.burst, 65000);
	CHECK_EQ(pace.pace.frame_len, 1400);
	CHECK_EQ(pace.linux_rate, 1000000);
	CHECK_EQ(read_vma(UINT32_MAX - 1, 0, 0).linux_rate,
		 (uint64_t)(UINT32_MAX - 1) * 125);
	pace = read_word(1000000);
	CHECK(pace.is_set);
	CHECK_EQ(pace.pace.kbps, 8000);
	CHECK_EQ(pace.pace.burst, 0);
	CHECK_EQ(read_long(5000000000).pace.kbps, 40000000);
	CHECK_EQ(read_long(UINT64_MAX - 1).pace.kbps, UINT32_MAX);
	/* a pace that is too slow for any device is one */
	CHECK(read_word(99).is_set);
	CHECK_EQ(read_word(99).pace.kbps, 0);
}

TEST(values_that_are_none)
{
	static const uint8_t bytes[3] = { 1, 1, 1 };
	struct sock_pace pace;

	CHECK(!read_word(0).is_set);
	CHECK(!read_word(UINT32_MAX).is_set);
	CHECK_EQ(read_word(UINT32_MAX).linux_rate, UINT64_MAX);
	CHECK(!read_long(UINT64_MAX).is_set);
	CHECK(read_long(UINT32_MAX).is_set);
	CHECK(!read_vma(0, 1000, 100).is_set);
	CHECK(!read_vma(UINT32_MAX, 0, 0).is_set);
	CHECK_EQ(read_vma(0, 1000, 100).linux_rate, UINT64_MAX);
	/* Linux is to refuse these */
	CHECK(!sock_pace_read(bytes, sizeof(bytes), &pace));
	CHECK(!sock_pace_read(NULL, 4, &pace));
}
