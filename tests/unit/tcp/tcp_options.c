/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tcp/tcp_options.h"

#include "base/rand.h"
#include "tests/support/test.h"

static const uint8_t syn_bytes[] = {
	2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7,
};

TEST(syn_is_built_and_read_byte_by_byte)
{
	struct tcp_options o = {
		.mss = 1460, .has_scale = true, .scale = 7, .has_sack_ok = true,
		.has_ts = true, .ts_val = 1, .ts_ecr = 2,
	};
	uint8_t bytes[TCP_OPTIONS_MAX];

	CHECK_EQ(tcp_options_build(bytes, &o), sizeof(syn_bytes));
	CHECK_MEM(bytes, syn_bytes, sizeof(syn_bytes));
	memset(&o, 0xa5, sizeof(o));
	tcp_options_parse(syn_bytes, sizeof(syn_bytes), true, &o);
	CHECK_EQ(o.mss, 1460);
	CHECK(o.has_scale && o.has_sack_ok && o.has_ts);
	CHECK_EQ(o.scale, 7);
	CHECK_EQ(o.ts_val, 1);
	CHECK_EQ(o.ts_ecr, 2);
	CHECK_EQ(o.sack_cnt, 0);
}

TEST(syn_options_count_only_in_a_syn)
{
	struct tcp_options o;

	tcp_options_parse(syn_bytes, sizeof(syn_bytes), false, &o);
	CHECK_EQ(o.mss, 0);
	CHECK(!o.has_scale && !o.has_sack_ok && o.has_ts);
}

TEST(sack_blocks_fit_the_header)
{
	struct tcp_options o = { .has_ts = true, .sack_cnt = 4 }, back;
	uint8_t bytes[TCP_OPTIONS_MAX];
	size_t len;

	for (uint32_t i = 0; i < 4; i++)
		o.sack[i] = (struct tcp_sack_block){ 100 * i, 100 * i + 50 };
	len = tcp_options_build(bytes, &o);
	CHECK_EQ(len, 40);
	tcp_options_parse(bytes, len, false, &back);
	CHECK_EQ(back.sack_cnt, 3);
	CHECK_EQ(back.sack[2].start, 200);
	CHECK_EQ(back.sack[2].end, 250);
	o.has_ts = false;
	len = tcp_options_build(bytes, &o);
	CHECK_EQ(len, 36);
	tcp_options_parse(bytes, len, false, &back);
	CHECK_EQ(back.sack_cnt, 4);
}

TEST(impossible_lengths_end_the_reading)
{
	static const uint8_t zero_len[] = { 3, 3, 5, 9, 0, 4, 2, 0 };
	static const uint8_t too_long[] = { 3, 3, 5, 4, 9, 0, 0, 0 };
	static const uint8_t cut[] = { 1, 1, 1, 8 };
	static const uint8_t ended[] = { 0, 3, 3, 5 };
	static const uint8_t big_scale[] = { 3, 3, 200, 1 };
	static const uint8_t wrong_size[] = { 2, 3, 9, 1, 8, 4, 1, 1 };
	struct tcp_options o;

	tcp_options_parse(zero_len, sizeof(zero_len), true, &o);
	CHECK(o.has_scale && !o.has_sack_ok);
	tcp_options_parse(too_long, sizeof(too_long), true, &o);
	CHECK(o.has_scale && !o.has_sack_ok);
	tcp_options_parse(cut, sizeof(cut), true, &o);
	CHECK(!o.has_ts);
	tcp_options_parse(ended, sizeof(ended), true, &o);
	CHECK(!o.has_scale);
	/* RFC 7323 section 2.3 */
	tcp_options_parse(big_scale, sizeof(big_scale), true, &o);
	CHECK_EQ(o.scale, 14);
	tcp_options_parse(wrong_size, sizeof(wrong_size), true, &o);
	CHECK(!o.mss && !o.has_ts);
}

/* Whatever comes in, nothing outside is touched (the sanitizer build sees), and
 * what is read can be built again. */
TEST(random_bytes_do_no_harm)
{
	struct rand rand;

	rand_init(&rand, test_seed);
	for (int i = 0; i < 200000; i++) {
		uint8_t bytes[TCP_OPTIONS_MAX], again[TCP_OPTIONS_MAX];
		size_t len = 4 * rand_below(&rand, 11);
		struct tcp_options o;

		for (size_t j = 0; j < len; j++)
			bytes[j] = (uint8_t)rand_below(&rand, j % 2 ? 12 : 9);
		tcp_options_parse(bytes, len, rand_chance(&rand, 500000), &o);
		CHECK(o.sack_cnt <= TCP_SACK_BLOCKS_MAX);
		CHECK(o.scale <= TCP_SCALE_MAX);
		CHECK(tcp_options_build(again, &o) <= TCP_OPTIONS_MAX);
	}
}

TEST(cookies_are_built_and_read)
{
	static const uint8_t bytes[] = { 2, 4, 5, 0xb4, 34, 8, 1, 2,
					 3, 4, 5, 6 };
	static const uint8_t asks[] = { 2, 4, 5, 0xb4, 34, 2, 1, 1 };
	struct tcp_options o = { .mss = 1460, .has_cookie = true,
				 .cookie_len = 6,
				 .cookie = { 1, 2, 3, 4, 5, 6 } }, back;
	uint8_t built[TCP_OPTIONS_MAX];

	CHECK_EQ(tcp_options_build(built, &o), sizeof(bytes));
	CHECK_MEM(built, bytes, sizeof(bytes));
	tcp_options_parse(built, sizeof(bytes), true, &back);
	CHECK(back.has_cookie);
	CHECK_EQ(back.cookie_len, 6);
	CHECK_MEM(back.cookie, bytes + 6, 6);
	tcp_options_parse(built, sizeof(bytes), false, &back);
	CHECK(!back.has_cookie);
	o.cookie_len = 0;
	CHECK_EQ(tcp_options_build(built, &o), sizeof(asks));
	CHECK_MEM(built, asks, sizeof(asks));
	tcp_options_parse(built, sizeof(asks), true, &back);
	CHECK(back.has_cookie && !back.cookie_len);
}

TEST(longest_cookie_fits_beside_all_others)
{
	struct tcp_options o = {
		.mss = 1460, .has_scale = true, .has_sack_ok = true,
		.has_ts = true, .has_cookie = true,
		.cookie_len = TCP_FO_COOKIE_MAX,
	};
	uint8_t built[TCP_OPTIONS_MAX];

	CHECK_EQ(tcp_options_build(built, &o), TCP_OPTIONS_MAX);
}

TEST(cookies_of_other_lengths_are_none)
{
	static const uint8_t odd[] = { 34, 7, 1, 2, 3, 4, 5, 0 };
	static const uint8_t two_bytes[] = { 34, 4, 1, 2 };
	static const uint8_t eighteen[20] = { 34, 20 };
	struct tcp_options o;

	tcp_options_parse(odd, sizeof(odd), true, &o);
	CHECK(!o.has_cookie);
	tcp_options_parse(two_bytes, sizeof(two_bytes), true, &o);
	CHECK(!o.has_cookie);
	tcp_options_parse(eighteen, sizeof(eighteen), true, &o);
	CHECK(!o.has_cookie);
}

TEST(counters_of_ecn_are_built_and_read)
{
	static const uint8_t bytes[] = { 172, 11, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1 };
	static const uint8_t reversed[] = { 174, 11, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1 };
	static const uint8_t two[] = { 172, 8, 0, 0, 1, 0, 1, 0 };
	static const uint8_t uneven[] = { 172, 6, 0, 0, 1, 0, 1, 1 };
	struct tcp_options o = { .counter_cnt = 3, .ect0_bytes = 1,
				 .ce_bytes = 256, .ect1_bytes = 65536 };
	uint8_t built[TCP_OPTIONS_MAX];

	CHECK_EQ(tcp_options_build(built, &o), sizeof(bytes));
	CHECK_MEM(built, bytes, sizeof(bytes));
	for (int i = 0; i < 2; i++) {
		tcp_options_parse(i ? reversed : bytes, sizeof(bytes), false, &o);
		CHECK_EQ(o.counter_cnt, 3);
		CHECK_EQ(o.ect0_bytes, 1);
		CHECK_EQ(o.ce_bytes, 256);
		CHECK_EQ(o.ect1_bytes, 65536);
	}
	tcp_options_parse(two, sizeof(two), false, &o);
	CHECK_EQ(o.counter_cnt, 2);
	CHECK_EQ(o.ce_bytes, 256);
	tcp_options_parse(uneven, sizeof(uneven), false, &o);
	CHECK_EQ(o.counter_cnt, 0);
}
