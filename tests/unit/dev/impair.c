/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dev/fake/impair.h"

#include <stdlib.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/rand.h"
#include "tests/support/test.h"

/* Frames are numbers; what the ops saw is kept. */
struct carrier {
	unsigned drops;
	unsigned flips;
	unsigned copies;
	unsigned marks;
	unsigned reports;
	unsigned last_fate;
	unsigned dropped_reports;
};

static void *number_copy(void *ctx, void *frame)
{
	((struct carrier *)ctx)->copies++;
	return frame;
}

static void number_drop(void *ctx, void *frame UNUSED)
{
	((struct carrier *)ctx)->drops++;
}

static bool number_flip(void *ctx, void *frame UNUSED, size_t bit)
{
	CHECK(bit < 8 * 100);
	((struct carrier *)ctx)->flips++;
	return true;
}

static bool number_mark(void *ctx, void *frame UNUSED)
{
	((struct carrier *)ctx)->marks++;
	return true;
}

static void number_report(void *ctx, const void *frame UNUSED,
			  size_t len UNUSED, unsigned fate)
{
	struct carrier *carrier = ctx;

	carrier->reports++;
	carrier->last_fate = fate;
	carrier->dropped_reports += !!(fate & IMPAIR_DROPPED);
}

static const struct impair_ops number_ops = {
	.copy = number_copy,
	.drop = number_drop,
	.flip = number_flip,
	.mark = number_mark,
	.report = number_report,
};

static struct impair *make(const struct impair_params *params,
			   struct carrier *carrier)
{
	struct impair *link;

	memset(carrier, 0, sizeof(*carrier));
	link = impair_create(params, test_seed, &number_ops, carrier);
	CHECK(link != NULL);
	return link;
}

static void send_number(struct impair *link, uint64_t now_ns, uintptr_t number)
{
	impair_send(link, now_ns, (void *)number, 100);
}

/* The next number due by now_ns, 0 if none. */
static uintptr_t recv_number(struct impair *link, uint64_t now_ns)
{
	size_t len;
	void *frame = impair_recv(link, now_ns, &len);

	if (frame)
		CHECK_EQ(len, 100);
	return (uintptr_t)frame;
}

TEST(perfect_link_passes_at_once_in_order)
{
	struct impair_params params = { 0 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	for (uintptr_t i = 1; i <= 5; i++)
		send_number(link, 10, i);
	CHECK_EQ(impair_next_ns(link), 10);
	for (uintptr_t i = 1; i <= 5; i++)
		CHECK_EQ(recv_number(link, 10), i);
	CHECK_EQ(recv_number(link, 1000), 0);
	CHECK(impair_next_ns(link) == IMPAIR_NEVER);
	CHECK_EQ(carrier.reports, 5);
	CHECK_EQ(carrier.last_fate, IMPAIR_PASSED);
	impair_destroy(link);
}

TEST(delay_is_exact)
{
	struct impair_params params = { .delay_ns = 500 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	send_number(link, 100, 7);
	CHECK_EQ(impair_next_ns(link), 600);
	CHECK_EQ(recv_number(link, 599), 0);
	CHECK_EQ(recv_number(link, 600), 7);
	impair_destroy(link);
}

TEST(rate_serialises_and_queue_overflows)
{
	/* 100 bytes at 800 Mbit/s are one microsecond */
	struct impair_params params = { .rate_bps = 800000000,
					.queue_bytes = 250 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	for (uintptr_t i = 1; i <= 4; i++)
		send_number(link, 0, i);
	/* 0, 100 and 200 bytes wait before the first three, 300 before the
	 * fourth */
	CHECK_EQ(impair_counts(link)->queue_drops, 1);
	CHECK_EQ(carrier.last_fate, IMPAIR_DROPPED_QUEUE);
	CHECK_EQ(carrier.drops, 1);
	CHECK_EQ(impair_backlog_bytes(link, 0), 300);
	CHECK_EQ(impair_backlog_bytes(link, 1500), 150);
	for (uintptr_t i = 1; i <= 3; i++) {
		CHECK_EQ(impair_next_ns(link), 1000 * i);
		CHECK_EQ(recv_number(link, 1000 * i), i);
	}
	CHECK_EQ(impair_backlog_bytes(link, 3000), 0);
	impair_destroy(link);
}

TEST(jitter_alone_keeps_the_order)
{
	struct impair_params params = { .delay_ns = 1000, .jitter_ns = 100000 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	for (uintptr_t i = 1; i <= 100; i++)
		send_number(link, i * 100, i);
	for (uintptr_t i = 1; i <= 100; i++)
		CHECK_EQ(recv_number(link, NS_PER_SEC), i);
	impair_destroy(link);
}

TEST(jitter_may_reorder)
{
	struct impair_params params = { .jitter_ns = 100000,
					.jitter_reorders = true };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);
	unsigned descents = 0;
	uintptr_t last = 0;

	for (uintptr_t i = 1; i <= 100; i++)
		send_number(link, i * 100, i);
	for (int i = 0; i < 100; i++) {
		uint64_t due_ns = impair_next_ns(link);
		uintptr_t number = recv_number(link, due_ns);

		CHECK(number != 0);
		CHECK(due_ns >= number * 100);
		descents += number < last;
		last = number;
	}
	CHECK(descents > 10);
	impair_destroy(link);
}

TEST(reordering_lets_at_most_so_many_overtake)
{
	struct impair_params params = { .reorder_ppm = 100000,
					.reorder_cnt = 5 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);
	bool seen[2001] = { false };
	unsigned late_cnt = 0;

	for (uintptr_t i = 1; i <= 2000; i++)
		send_number(link, i * 1000, i);
	for (int i = 0; i < 2000; i++) {
		uintptr_t number = recv_number(link, NS_PER_SEC);
		unsigned overtakers = 0;

		CHECK(number != 0 && !seen[number]);
		seen[number] = true;
		for (uintptr_t later = number + 1; later <= 2000; later++)
			overtakers += seen[later];
		/* held ones may pass each other: each waits for 5 frames that
		 * are not held */
		CHECK(overtakers <= 10);
		late_cnt += overtakers > 0;
	}
	CHECK(late_cnt > 120 && late_cnt < 280);
	CHECK(impair_counts(link)->held >= late_cnt);
	impair_destroy(link);
}

TEST(held_frame_comes_out_without_successors)
{
	struct impair_params params = { .reorder_ppm = RAND_CERTAIN,
					.reorder_cnt = 3,
					.reorder_hold_ns = 700,
					.delay_ns = 50 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	send_number(link, 0, 1);
	CHECK(carrier.last_fate & IMPAIR_HELD);
	CHECK_EQ(impair_next_ns(link), 750);
	CHECK_EQ(recv_number(link, 750), 1);
	impair_destroy(link);
}

TEST(random_loss_has_its_rate)
{
	struct impair_params params = { .loss_ppm = 30000 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	for (int i = 0; i < 100000; i++) {
		send_number(link, 0, 1);
		while (recv_number(link, 0))
			;
	}
	CHECK(impair_counts(link)->lost > 2700);
	CHECK(impair_counts(link)->lost < 3300);
	CHECK_EQ(impair_counts(link)->lost, carrier.drops);
	CHECK_EQ(impair_counts(link)->lost, carrier.dropped_reports);
	CHECK_EQ(impair_counts(link)->delivered + carrier.drops, 100000);
	impair_destroy(link);
}

TEST(burst_takes_frames_in_a_row)
{
	struct impair_params params = { .burst_ppm = 1000, .burst_cnt = 20 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);
	unsigned run = 0, bursts = 0;

	for (int i = 0; i < 100000; i++) {
		send_number(link, 0, 1);
		if (!recv_number(link, 0)) {
			run++;
			continue;
		}
		CHECK_EQ(run % 20, 0);
		bursts += run / 20;
		run = 0;
	}
	CHECK(bursts > 60 && bursts < 140);
	impair_destroy(link);
}

TEST(gilbert_elliott_loses_in_bad_times)
{
	/* bad one time in ten, and then for ten frames on average */
	struct impair_params params = { .ge_to_bad_ppm = 11111,
					.ge_to_good_ppm = 100000,
					.ge_bad_loss_ppm = RAND_CERTAIN };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);
	unsigned runs = 0;
	bool was_lost = false;

	for (int i = 0; i < 100000; i++) {
		bool lost;

		send_number(link, 0, 1);
		lost = !recv_number(link, 0);
		runs += lost && !was_lost;
		was_lost = lost;
	}
	CHECK(impair_counts(link)->lost > 8000);
	CHECK(impair_counts(link)->lost < 12000);
	CHECK(impair_counts(link)->lost / runs >= 8);
	CHECK(impair_counts(link)->lost / runs <= 12);
	impair_destroy(link);
}

TEST(duplicates_and_damage_are_reported)
{
	struct impair_params params = { .dup_ppm = RAND_CERTAIN,
					.corrupt_ppm = RAND_CERTAIN };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	send_number(link, 0, 9);
	CHECK_EQ(recv_number(link, 0), 9);
	CHECK_EQ(recv_number(link, 0), 9);
	CHECK_EQ(recv_number(link, 0), 0);
	CHECK_EQ(carrier.copies, 1);
	CHECK_EQ(carrier.flips, 1);
	CHECK_EQ(carrier.last_fate,
		 IMPAIR_PASSED | IMPAIR_DUPLICATED | IMPAIR_CORRUPTED);
	impair_destroy(link);
}

TEST(marks_when_the_queue_is_long)
{
	struct impair_params params = { .rate_bps = 800000000,
					.mark_queue_bytes = 200 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	send_number(link, 0, 1);
	send_number(link, 0, 2);
	CHECK_EQ(carrier.marks, 0);
	send_number(link, 0, 3);
	CHECK_EQ(carrier.marks, 1);
	CHECK(carrier.last_fate & IMPAIR_MARKED);
	impair_destroy(link);
	/* what was in flight was dropped */
	CHECK_EQ(carrier.drops, 3);
}

TEST(mtu_may_change)
{
	struct impair_params params = { .mtu_bytes = 99 };
	struct carrier carrier;
	struct impair *link = make(&params, &carrier);

	send_number(link, 0, 1);
	CHECK_EQ(carrier.last_fate, IMPAIR_DROPPED_MTU);
	params.mtu_bytes = 100;
	impair_set_params(link, &params);
	CHECK_EQ(impair_params(link)->mtu_bytes, 100);
	send_number(link, 0, 2);
	CHECK_EQ(recv_number(link, 0), 2);
	impair_destroy(link);
}

/* The fates of 1000 frames over a link that does everything, as one number. */
static uint64_t fingerprint(uint64_t seed)
{
	struct impair_params params = {
		.loss_ppm = 50000, .dup_ppm = 50000, .corrupt_ppm = 50000,
		.reorder_ppm = 50000, .reorder_cnt = 4, .jitter_ns = 3000,
		.delay_ns = 10000, .rate_bps = 100000000, .queue_bytes = 5000,
	};
	struct carrier carrier = { 0 };
	struct impair *link = impair_create(&params, seed, &number_ops,
					    &carrier);
	uint64_t print = 0, now_ns = 0;
	uintptr_t number;

	CHECK(link != NULL);
	for (uintptr_t i = 1; i <= 1000; i++) {
		now_ns += 7000;
		send_number(link, now_ns, i);
		while ((number = recv_number(link, now_ns)))
			print = print * 31 + number * now_ns;
		print = print * 31 + carrier.last_fate;
	}
	impair_destroy(link);
	return print;
}

TEST(seed_decides_everything)
{
	CHECK(fingerprint(5) == fingerprint(5));
	CHECK(fingerprint(5) != fingerprint(6));
}

TEST(byte_frames_are_copied_flipped_and_marked)
{
	uint8_t frame[14 + 20] = {
		[12] = 8, [14] = 0x45, [15] = 0x02, [17] = 20, [22] = 64,
		[23] = 6, [26] = 10, [29] = 1, [30] = 10, [33] = 2,
	};
	struct impair_params params = { .mark_ppm = RAND_CERTAIN,
					.dup_ppm = RAND_CERTAIN };
	uint16_t sum = csum_fold(csum_partial(frame + 14, 20, 0));
	struct impair_bytes *first, *second;
	struct impair *link;
	size_t len;

	memcpy(frame + 24, &sum, 2);
	link = impair_create(&params, 1, &impair_bytes_ops, NULL);
	CHECK(link != NULL);
	impair_send(link, 0, impair_bytes_create(frame, sizeof(frame)),
		    sizeof(frame));
	first = impair_recv(link, 0, &len);
	second = impair_recv(link, 0, &len);
	CHECK(first && second && first != second);
	CHECK_EQ(len, sizeof(frame));
	CHECK_EQ(first->data[15], 3);
	CHECK_EQ(csum_fold(csum_partial(first->data + 14, 20, 0)), 0);
	CHECK_MEM(second->data, first->data, sizeof(frame));
	CHECK(impair_bytes_ops.flip(NULL, first, 8 * 33 + 1));
	CHECK_EQ(first->data[33], 0);
	free(first);
	free(second);
	impair_destroy(link);
}

TEST(marks_only_what_is_ecn_capable)
{
	uint8_t v4[20] = { 0x45 }, v6[40] = { 0x60, 0x10 };

	CHECK(!impair_mark_ip(v4, sizeof(v4)));
	CHECK(impair_mark_ip(v6, sizeof(v6)));
	CHECK_EQ(v6[1], 0x30);
	v6[1] = 0x0f;
	CHECK(!impair_mark_ip(v6, sizeof(v6)));
	CHECK(!impair_mark_ip(v6, 39));
}
