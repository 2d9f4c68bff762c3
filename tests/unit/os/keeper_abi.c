/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests to the process that keeps rights: what is right, and all that is not. */
#include "config.h"

#include "os/keeper_abi.h"

#include "base/compiler.h"
#include "tests/support/test.h"

/* One of each, with the number of its descriptors. */
static const struct {
	struct keeper_request request;
	unsigned fds;
} good[] = {
	{ { .op = KEEPER_REPAIR, .value = 1 }, 1 },
	{ { .op = KEEPER_XSK }, 0 },
	{ { .op = KEEPER_ICMP }, 0 },
	{ { .op = KEEPER_PASS }, 0 },
	{ { .op = KEEPER_STEER,
	    .flags = KEEPER_NATIVE | KEEPER_SINGLE,
	    .ifindex = 7,
	    .sight = 2,
	    .rules_max = 4096 },
	  0 },
	{ { .op = KEEPER_ATTACH, .flags = KEEPER_NATIVE, .ifindex = 7 }, 1 },
	{ { .op = KEEPER_DROP }, 0 },
	{ { .op = KEEPER_HAND_OVER, .ifindex = 7 }, 0 },
	{ { .op = KEEPER_NEIGHBOUR, .ifindex = 7, .addr = { 1 } }, 0 },
	{ { .op = KEEPER_JOIN }, 1 },
};

static const uint32_t of_interfaces[] = { KEEPER_STEER, KEEPER_ATTACH, KEEPER_HAND_OVER,
					KEEPER_NEIGHBOUR };

static bool is_of_interface(uint32_t op)
{
	for (size_t i = 0; i < ARRAY_LEN(of_interfaces); i++)
		if (of_interfaces[i] == op)
			return true;
	return false;
}

static int parse(const struct keeper_request *request, unsigned fds)
{
	struct keeper_request out;

	return keeper_request_parse(request, sizeof(*request), fds, &out);
}

TEST(what_is_right_is_taken_as_it_is)
{
	struct keeper_request out;

	CHECK_EQ(ARRAY_LEN(good), KEEPER_OP_CNT);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK_EQ(good[i].request.op, i);
		CHECK_EQ(keeper_request_parse(&good[i].request, sizeof(out),
					      good[i].fds, &out),
			 0);
		CHECK_EQ(memcmp(&out, &good[i].request, sizeof(out)), 0);
	}
}

TEST(lengths_and_descriptors_are_exact)
{
	uint8_t bytes[2 * sizeof(struct keeper_request)] = { 0 };
	struct keeper_request out;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		memcpy(bytes, &good[i].request, sizeof(out));
		for (size_t len = 0; len <= sizeof(bytes); len++)
			CHECK_EQ(keeper_request_parse(bytes, len, good[i].fds, &out),
				 len == sizeof(out) ? 0 : -EINVAL);
		for (unsigned fds = 0; fds <= KEEPER_FDS_MAX + 1; fds++)
			CHECK_EQ(parse(&good[i].request, fds),
				 fds == good[i].fds ? 0 : -EINVAL);
	}
}

TEST(values_are_those_that_there_are)
{
	struct keeper_request r = good[KEEPER_REPAIR].request;

	for (r.value = -5; r.value <= 5; r.value++)
		CHECK_EQ(parse(&r, 1), r.value >= -1 && r.value <= 1 ? 0 : -EINVAL);
	r = (struct keeper_request){ .op = KEEPER_OP_CNT };
	CHECK_EQ(parse(&r, 0), -EINVAL);
	r.op = UINT32_MAX;
	CHECK_EQ(parse(&r, 0), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(of_interfaces); i++) {
		uint32_t op = of_interfaces[i];

		r = good[op].request;
		r.ifindex = 0;
		CHECK_EQ(parse(&r, good[op].fds), -EINVAL);
		r.ifindex = -1;
		CHECK_EQ(parse(&r, good[op].fds), -EINVAL);
	}
}

/* Whatever is turned on in a field that an op does not have is wrong. */
TEST(what_an_op_does_not_have_is_empty)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		bool is_steer = i == KEEPER_STEER, has_if = is_of_interface((uint32_t)i);

		for (int bit = 0; bit < 32; bit++) {
			uint32_t one = UINT32_C(1) << bit;
			struct keeper_request r = good[i].request;

			r.flags |= one;
			CHECK_EQ(parse(&r, good[i].fds),
				 r.flags & ~keeper_flags(r.op) ? -EINVAL : 0);
			r = good[i].request;
			r.sight |= one;
			CHECK_EQ(parse(&r, good[i].fds), is_steer ? 0 : -EINVAL);
			r = good[i].request;
			r.rules_max |= one;
			CHECK_EQ(parse(&r, good[i].fds), is_steer ? 0 : -EINVAL);
			r = good[i].request;
			r.ifindex |= (int32_t)one;
			CHECK_EQ(parse(&r, good[i].fds),
				 has_if && r.ifindex > 0 ? 0 : -EINVAL);
			r = good[i].request;
			r.value |= (int32_t)one;
			CHECK_EQ(parse(&r, good[i].fds),
				 i == KEEPER_REPAIR && r.value == 1 ? 0 : -EINVAL);
		}
		for (size_t at = 0; at < sizeof(good[i].request.addr); at++) {
			struct keeper_request r = good[i].request;

			r.addr[at] |= 0x80;
			CHECK_EQ(parse(&r, good[i].fds), i == KEEPER_NEIGHBOUR ? 0 : -EINVAL);
		}
	}
}
