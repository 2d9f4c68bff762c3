/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "conf/cpus.h"

#include <errno.h>

#include "tests/support/test.h"

/* The set as its lowest 64 bits. */
static uint64_t low(const char *text)
{
	struct cpus cpus;
	int err = cpus_parse(text, &cpus);

	if (err)
		FAIL("%s: %d", text, err);
	CHECK(cpus.is_chosen);
	return cpus.bits[0];
}

static int refused(const char *text)
{
	struct cpus cpus;

	return cpus_parse(text, &cpus);
}

TEST(minus_one_is_any_cpu)
{
	struct cpus cpus;

	CHECK_EQ(cpus_parse("-1", &cpus), 0);
	CHECK(!cpus.is_chosen);
	CHECK(!cpus_has(&cpus, 0));
}

TEST(masks)
{
	CHECK_EQ(low("0x1"), 1);
	CHECK_EQ(low("0X7"), 7);
	CHECK_EQ(low("0xAb"), 0xab);
	CHECK_EQ(low("0x00000003"), 3);
	CHECK_EQ(low("0xffffffffffffffff"), ~UINT64_C(0));
}

TEST(lists_and_ranges)
{
	CHECK_EQ(low("0"), 1);
	CHECK_EQ(low("0,4,8"), 0x111);
	CHECK_EQ(low("0,1,7-10"), 0x783);
	CHECK_EQ(low("3-3"), 8);
	CHECK_EQ(low("0,0"), 1);
}

TEST(high_cpus)
{
	char mask[2 + CPUS_MAX / 4 + 1] = "0x8";
	struct cpus cpus;

	CHECK_EQ(cpus_parse("1023", &cpus), 0);
	CHECK(cpus_has(&cpus, 1023));
	memset(mask + 3, '0', CPUS_MAX / 4 - 1);
	CHECK_EQ(cpus_parse(mask, &cpus), 0);
	CHECK(cpus_has(&cpus, 1023));
	CHECK(!cpus_has(&cpus, 1022));
}

TEST(bad_sets_are_refused)
{
	static const char *const bad[] = { "",	 "x",	"0x",  "0xg", "0x0",
					   "-2", "1-", "-",   "4-2", "1,,2",
					   ",1", "1,", "1 ",  " 1",  "1;2",
					   "--1", "1-2-3" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (refused(bad[i]) != -EINVAL)
			FAIL("\"%s\" gives %d", bad[i], refused(bad[i]));
	CHECK_EQ(refused("1024"), -ERANGE);
	CHECK_EQ(refused("0-99999999999999999999"), -ERANGE);
	CHECK_EQ(refused("4294967296"), -ERANGE);
}

TEST(mask_beyond_the_last_cpu)
{
	char mask[2 + CPUS_MAX / 4 + 2] = "0x1";

	memset(mask + 3, '0', CPUS_MAX / 4);
	CHECK_EQ(refused(mask), -ERANGE);
	mask[2] = '0';
	CHECK_EQ(refused(mask), -EINVAL);
}
