/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames on their way back to the kernel: what becomes of long ones and of checksums.
 * That the kernel takes them is shown in tests/unit/dev/xdp/program.c. */
#include "config.h"

#include "net/give_back.h"

#include <errno.h>
#include <stdlib.h>

#include "pkt/wire.h"
#include "tests/support/test.h"

enum { PIECES_MAX = 64, LEN_MAX = 70000 };

static struct {
	uint8_t bytes[PIECES_MAX][GIVE_BACK_LEN_MAX];
	uint32_t lens[PIECES_MAX];
	unsigned cnt;
	/* the piece that the kernel refuses */
	unsigned refused;
} kernel;

static int take(void *ctx UNUSED, const uint8_t *piece, uint32_t len)
{
	CHECK(kernel.cnt < PIECES_MAX);
	CHECK(len <= GIVE_BACK_LEN_MAX);
	if (kernel.cnt + 1 == kernel.refused)
		return -ENOMEM;
	memcpy(kernel.bytes[kernel.cnt], piece, len);
	kernel.lens[kernel.cnt++] = len;
	return 0;
}

/* -- frames ------------------------------------------------------------------ */

static uint8_t frame[LEN_MAX];

static struct wire_ipv4 *ip_of(uint8_t *bytes)
{
	return (void *)(bytes + sizeof(struct wire_eth));
}

static uint32_t ip_len_of(uint8_t *bytes)
{
	return (ip_of(bytes)->version_ihl & 0xfu) * 4;
}

static uint8_t *transport_of(uint8_t *bytes)
{
	return (uint8_t *)ip_of(bytes) + ip_len_of(bytes);
}

static uint32_t pseudo(const struct wire_ipv4 *ip, uint32_t len)
{
	uint32_t sum = csum_partial(&ip->src, 8, 0);

	return csum_add(csum_add(sum, htobe16(ip->proto)),
			htobe16((uint16_t)len));
}

static bool is_sum_good(uint8_t *bytes)
{
	struct wire_ipv4 *ip = ip_of(bytes);
	uint32_t len = be16toh(ip->total_len) - ip_len_of(bytes);

	return csum_fold(csum_partial(ip, ip_len_of(bytes), 0)) == 0 &&
	       csum_fold(csum_partial(transport_of(bytes), len,
				      pseudo(ip, len))) == 0;
}

enum sum { WHOLE, PARTIAL, WRONG };

/* Its length. `payload_len` bytes that go on and on. */
static uint32_t make(uint8_t proto, uint32_t payload_len, enum sum sum)
{
	struct wire_ipv4 *ip = ip_of(frame);
	uint32_t own = proto == WIRE_PROTO_TCP ? sizeof(struct wire_tcp) + 12 :
						 sizeof(struct wire_udp);
	uint32_t len = own + payload_len;
	uint8_t *at = (uint8_t *)(ip + 1);
	uint16_t check;

	memset(frame, 0, sizeof(frame));
	memset(&kernel, 0, sizeof(kernel));
	*ip = (struct wire_ipv4){
		.version_ihl = 0x45,
		.total_len = htobe16((uint16_t)(sizeof(*ip) + len)),
		.id = htobe16(0xfffe),
		.frag = htobe16(WIRE_IPV4_DF),
		.ttl = 9,
		.proto = proto,
		.src = htobe32(0x0a000002),
		.dst = htobe32(0x0a000001),
	};
	ip->check = csum_fold(csum_partial(ip, sizeof(*ip), 0));
	for (uint32_t i = 0; i < payload_len; i++)
		at[own + i] = (uint8_t)(i * 7 / 3);
	if (proto == WIRE_PROTO_TCP)
		*(struct wire_tcp *)(void *)at = (struct wire_tcp){
			.seq = htobe32(0xfffff000),
			.offset_ae = 8 << 4,
			.flags = WIRE_TCP_ACK | WIRE_TCP_PSH | WIRE_TCP_FIN |
				 WIRE_TCP_CWR,
		};
	else
		*(struct wire_udp *)(void *)at = (struct wire_udp){
			.dst_port = htobe16(7),
			.len = htobe16((uint16_t)len),
		};
	check = (uint16_t)~csum_fold(pseudo(ip, len));
	if (sum != PARTIAL)
		check = csum_fold(csum_partial(at, len, pseudo(ip, len)));
	if (sum == WRONG)
		check ^= 0x0101;
	memcpy(at + (proto == WIRE_PROTO_TCP ? 16 : 6), &check, sizeof(check));
	return (uint32_t)sizeof(struct wire_eth) + (uint32_t)sizeof(*ip) + len;
}

static int cut(uint32_t len, bool may_be_partial)
{
	return give_back_cut(frame, len, may_be_partial, take, NULL);
}

/* -- short frames ------------------------------------------------------------- */

TEST(a_short_frame_goes_as_it_is)
{
	static const uint8_t protos[] = { WIRE_PROTO_UDP, WIRE_PROTO_TCP };

	for (size_t i = 0; i < ARRAY_LEN(protos); i++) {
		for (int sum = WHOLE; sum <= WRONG; sum++) {
			uint32_t len = make(protos[i], 100, (enum sum)sum);
			uint8_t before[200];

			memcpy(before, frame, len);
			CHECK_EQ(cut(len, false), 0);
			CHECK_EQ(kernel.cnt, 1);
			CHECK_EQ(kernel.lens[0], len);
			CHECK(memcmp(kernel.bytes[0], before, len) == 0);
		}
	}
}

TEST(padding_is_cut_off)
{
	uint32_t len = make(WIRE_PROTO_UDP, 1, WHOLE);

	CHECK_EQ(cut(60, false), 0);
	CHECK_EQ(kernel.lens[0], len);
}

TEST(a_partial_sum_is_completed)
{
	static const uint8_t protos[] = { WIRE_PROTO_UDP, WIRE_PROTO_TCP };

	for (size_t i = 0; i < ARRAY_LEN(protos); i++) {
		CHECK_EQ(cut(make(protos[i], 101, PARTIAL), true), 0);
		CHECK(is_sum_good(kernel.bytes[0]));
		/* one that is wrong otherwise is for the kernel to see */
		CHECK_EQ(cut(make(protos[i], 101, WRONG), true), 0);
		CHECK(!is_sum_good(kernel.bytes[0]));
	}
}

/* -- long ones ----------------------------------------------------------------- */

TEST(a_long_datagram_goes_as_fragments)
{
	static uint8_t joined[LEN_MAX];

	for (uint32_t payload = 2040; payload < 65000; payload += 7001) {
		uint32_t len = make(WIRE_PROTO_UDP, payload, PARTIAL), at = 0;

		CHECK_EQ(cut(len, true), 0);
		CHECK(kernel.cnt > 1);
		for (unsigned i = 0; i < kernel.cnt; i++) {
			struct wire_ipv4 *ip = ip_of(kernel.bytes[i]);
			uint16_t frag = be16toh(ip->frag);
			uint32_t part = be16toh(ip->total_len) -
					(uint32_t)sizeof(*ip);

			CHECK_EQ(csum_fold(csum_partial(ip, sizeof(*ip), 0)), 0);
			CHECK_EQ((frag & WIRE_IPV4_OFFSET) * 8, at);
			CHECK_EQ(!!(frag & WIRE_IPV4_MF), i + 1 < kernel.cnt);
			CHECK_EQ(be16toh(ip->id), 0xfffe);
			memcpy(joined + at, ip + 1, part);
			at += part;
		}
		/* the sum of the whole has been completed before */
		CHECK_EQ(at, len - 34);
		CHECK(memcmp(joined, frame + 34, at) == 0);
		CHECK(is_sum_good(frame));
	}
}

TEST(a_long_segment_goes_as_several)
{
	static uint8_t joined[LEN_MAX];

	for (uint32_t payload = 1990; payload < 65000; payload += 7001) {
		uint32_t len = make(WIRE_PROTO_TCP, payload,
				    payload % 2 ? PARTIAL : WHOLE);
		uint32_t at = 0;

		CHECK_EQ(cut(len, true), 0);
		CHECK(kernel.cnt > 1);
		for (unsigned i = 0; i < kernel.cnt; i++) {
			struct wire_tcp *tcp =
				(void *)transport_of(kernel.bytes[i]);
			uint32_t part = kernel.lens[i] - 14 - 20 - 32;
			bool is_last = i + 1 == kernel.cnt;

			CHECK(is_sum_good(kernel.bytes[i]));
			CHECK_EQ(be32toh(tcp->seq), 0xfffff000 + at);
			CHECK_EQ(be16toh(ip_of(kernel.bytes[i])->id),
				 (uint16_t)(0xfffe + i));
			CHECK_EQ(!!(tcp->flags & WIRE_TCP_FIN), is_last);
			CHECK_EQ(!!(tcp->flags & WIRE_TCP_PSH), is_last);
			CHECK_EQ(!!(tcp->flags & WIRE_TCP_CWR), i == 0);
			memcpy(joined + at, (uint8_t *)tcp + 32, part);
			at += part;
		}
		CHECK_EQ(at, payload);
		CHECK(memcmp(joined, frame + 66, at) == 0);
	}
}

/* The pointer counts from the beginning of its segment, and marks the byte before it. */
TEST(pieces_mark_the_same_urgent_byte)
{
	static const uint16_t pointers[] = { 0, 1, 1982, 1983, 3000, 5000, 9000 };

	for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
		uint32_t at = 0, len = make(WIRE_PROTO_TCP, 5000, PARTIAL);
		struct wire_tcp *whole = (void *)transport_of(frame);

		whole->flags |= WIRE_TCP_URG;
		whole->urgent = htobe16(pointers[i]);
		CHECK_EQ(cut(len, true), 0);
		CHECK(kernel.cnt > 2);
		for (unsigned n = 0; n < kernel.cnt; n++) {
			struct wire_tcp *tcp = (void *)transport_of(kernel.bytes[n]);
			bool is_ahead = n == 0 || pointers[i] > at;

			CHECK(is_sum_good(kernel.bytes[n]));
			CHECK_EQ(!!(tcp->flags & WIRE_TCP_URG), is_ahead);
			CHECK_EQ(be16toh(tcp->urgent), is_ahead ? pointers[i] - at : 0);
			at += kernel.lens[n] - 14 - 20 - 32;
		}
	}
}

/* New sums would make it a good one. */
TEST(a_long_segment_that_is_damaged_goes_nowhere)
{
	CHECK_EQ(cut(make(WIRE_PROTO_TCP, 5000, WRONG), true), -EBADMSG);
	CHECK_EQ(cut(make(WIRE_PROTO_TCP, 5000, PARTIAL), false), -EBADMSG);
	CHECK_EQ(kernel.cnt, 0);
}

TEST(what_the_kernel_refuses_ends_it)
{
	uint32_t len = make(WIRE_PROTO_TCP, 20000, WHOLE);

	kernel.refused = 3;
	CHECK_EQ(cut(len, true), -ENOMEM);
	CHECK_EQ(kernel.cnt, 2);
}

/* -- lies ------------------------------------------------------------------------ */

TEST(headers_that_lie_go_nowhere)
{
	uint32_t len = make(WIRE_PROTO_TCP, 100, WHOLE);

	for (uint32_t i = 0; i < len; i++) {
		uint8_t *exact = malloc(i);

		memcpy(exact, frame, i);
		CHECK_EQ(give_back_cut(exact, i, true, take, NULL), -EBADMSG);
		free(exact);
	}
	ip_of(frame)->version_ihl = 0x44;
	CHECK_EQ(cut(len, true), -EBADMSG);
	ip_of(frame)->version_ihl = 0x65;
	CHECK_EQ(cut(len, true), -EBADMSG);
	len = make(WIRE_PROTO_TCP, 100, WHOLE);
	frame[34 + 12] = 4 << 4;
	CHECK_EQ(cut(len, true), -EBADMSG);
	len = make(WIRE_PROTO_TCP, 0, WHOLE);
	frame[34 + 12] = 15 << 4;
	CHECK_EQ(cut(len, true), -EBADMSG);
	len = make(WIRE_PROTO_UDP, 0, WHOLE);
	ip_of(frame)->total_len = htobe16(27);
	CHECK_EQ(cut(len, true), -EBADMSG);
}

TEST(without_a_door_it_is_said)
{
	struct give_back_tags none = { .len = 0 };
	struct give_back door = { -1 };

	CHECK_EQ(give_back_frame(&door, 1, &none, frame,
				 make(WIRE_PROTO_UDP, 1, WHOLE), false),
		 -EPERM);
	give_back_close(&door);
}

/* -- frames of VLANs ------------------------------------------------------------ */

#define ADDRS 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2

static const uint8_t bare[] = { ADDRS, 0x08, 0x00, 0x45, 0, 7 };
static const uint8_t tagged[] = { ADDRS, 0x81, 0x00, 0xa0, 0x64, 0x08, 0x00, 0x45, 0, 7 };
static const uint8_t twice[] = {
	ADDRS, 0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0xa0, 0x64, 0x08, 0x00, 0x45, 0, 7,
};

TEST(a_tag_is_put_behind_the_addresses)
{
	struct give_back_tags tags = give_back_tag_of(0xa064);
	uint8_t bytes[GIVE_BACK_TAGGED_MAX];

	CHECK_EQ(give_back_tag(bytes, bare, sizeof(bare), &tags), sizeof(tagged));
	CHECK_MEM(bytes, tagged, sizeof(tagged));
}

TEST(tags_are_taken_off_and_put_on_again)
{
	static const struct {
		const uint8_t *frame;
		uint32_t len;
	} cases[] = {
		{ bare, sizeof(bare) },
		{ tagged, sizeof(tagged) },
		{ twice, sizeof(twice) },
	};
	uint8_t bytes[GIVE_BACK_TAGGED_MAX], again[GIVE_BACK_TAGGED_MAX];

	for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct give_back_tags tags;
		uint8_t *start;

		memcpy(bytes, cases[i].frame, cases[i].len);
		start = give_back_untag(bytes, cases[i].len, &tags);
		CHECK_EQ(tags.len, 4 * i);
		CHECK_EQ(start - bytes, 4 * i);
		CHECK_MEM(start, bare, sizeof(bare));
		CHECK_EQ(give_back_tag(again, start, sizeof(bare), &tags),
			 cases[i].len);
		CHECK_MEM(again, cases[i].frame, cases[i].len);
	}
}

TEST(tags_that_are_cut_short_stay)
{
	struct give_back_tags tags;
	uint8_t bytes[sizeof(tagged)];

	memcpy(bytes, tagged, sizeof(tagged));
	for (uint32_t len = 0; len < 16; len++) {
		CHECK(give_back_untag(bytes, len, &tags) == bytes);
		CHECK_MEM(bytes, tagged, sizeof(tagged));
	}
}
