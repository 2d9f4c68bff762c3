/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the kernel's description of its types: one that is made here, piece by piece,
 * and the running kernel's. */
#include "config.h"

#include "dev/xdp/kernel_btf.h"

#include <linux/btf.h>
#include <stdlib.h>

#include "base/btf.h"
#include "dev/xdp/steer.h"
#include "tests/support/test.h"

static struct {
	struct btf_header header;
	uint32_t types[200];
	char strings[400];
} btf;
static uint32_t type_cnt;

static uint32_t name(const char *text)
{
	uint32_t at = btf.header.str_len;

	strcpy(btf.strings + at, text);
	btf.header.str_len += (uint32_t)strlen(text) + 1;
	return at;
}

static void word(uint32_t value)
{
	btf.types[btf.header.type_len / 4] = value;
	btf.header.type_len += 4;
}

/* Its number. */
static uint32_t type(const char *text, uint32_t kind, uint32_t cnt, uint32_t size)
{
	word(*text ? name(text) : 0);
	word(kind << 24 | cnt);
	word(size);
	return ++type_cnt;
}

static void member(const char *text, uint32_t its_type, uint32_t offset)
{
	word(*text ? name(text) : 0);
	word(its_type);
	word(offset * 8);
}

static void begin(void)
{
	memset(&btf, 0, sizeof(btf));
	type_cnt = 0;
	btf.header = (struct btf_header){
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(btf.header),
		.str_off = sizeof(btf.types),
		.str_len = 1,
	};
}

static struct kernel_btf parse(void)
{
	return kernel_btf_parse(&btf, sizeof(btf));
}

struct numbers {
	uint32_t info, ctx, cast, tag;
};

/* As in Linux 6.18, where frame_sz lies in a struct in a union. */
static struct numbers describe(uint32_t frame_sz_at, uint32_t gso_size_at)
{
	struct numbers numbers;
	uint32_t number = type("unsigned", BTF_KIND_INT, 0, 4);
	uint32_t pair, both;

	word(32);
	pair = type("", BTF_KIND_STRUCT, 2, 8);
	member("frame_sz", number, 0);
	member("flags", number, 4);
	both = type("", BTF_KIND_UNION, 2, 8);
	member("", pair, 0);
	member("frame_sz_flags_init", number, 0);
	type("xdp_buff", BTF_KIND_STRUCT, 2, 56);
	member("data_hard_start", number, 24);
	member("", both, frame_sz_at);
	numbers.info = type("skb_shared_info", BTF_KIND_STRUCT, 2, 320);
	member("meta_len", number, 1);
	member("gso_size", number, gso_size_at);
	type("", BTF_KIND_FUNC_PROTO, 1, 0);
	word(0);
	word(number);
	numbers.ctx = type("bpf_cast_to_kern_ctx", BTF_KIND_FUNC, 1, 0);
	numbers.cast = type("bpf_rdonly_cast", BTF_KIND_FUNC, 1, 0);
	numbers.tag = type("bpf_xdp_metadata_rx_vlan_tag", BTF_KIND_FUNC, 1, 0);
	return numbers;
}

TEST(what_the_program_wants_is_found)
{
	struct numbers numbers;
	struct kernel_btf found;

	begin();
	numbers = describe(48, 4);
	found = parse();
	CHECK_EQ(found.cast_to_kern_ctx, numbers.ctx);
	CHECK_EQ(found.rdonly_cast, numbers.cast);
	CHECK_EQ(found.rx_vlan_tag, numbers.tag);
	CHECK_EQ(found.shared_info, numbers.info);
	CHECK_EQ(found.shared_info_size, 320);
	CHECK(found.has_known_layout);
}

TEST(a_function_is_found_by_its_name)
{
	struct numbers numbers;

	begin();
	numbers = describe(48, 4);
	CHECK_EQ(btf_function(&btf, sizeof(btf), "bpf_rdonly_cast"), numbers.cast);
	CHECK_EQ(btf_function(&btf, sizeof(btf), "skb_shared_info"), 0);
	CHECK_EQ(btf_function(&btf, sizeof(btf), "bpf_rdonly"), 0);
	CHECK_EQ(btf_function(&btf, sizeof(btf.header), "bpf_rdonly_cast"), 0);
}

TEST(another_layout_is_noticed)
{
	begin();
	describe(40, 4);
	CHECK(!parse().has_known_layout);
	CHECK(parse().shared_info);
	begin();
	describe(48, 6);
	CHECK(!parse().has_known_layout);
	begin();
	type("skb_shared_info", BTF_KIND_STRUCT, 0, 320);
	CHECK(!parse().has_known_layout);
}

/* A union that is its own member. */
TEST(types_without_end_come_to_one)
{
	uint32_t itself;

	begin();
	itself = type_cnt + 1;
	type("", BTF_KIND_UNION, 1, 8);
	member("", itself, 0);
	type("xdp_buff", BTF_KIND_STRUCT, 1, 56);
	member("", itself, 0);
	CHECK(!parse().has_known_layout);
}

static bool is_nothing(struct kernel_btf found)
{
	return !found.cast_to_kern_ctx && !found.rdonly_cast &&
	       !found.shared_info && !found.has_known_layout;
}

TEST(lies_are_nothing)
{
	uint32_t *values[] = { &btf.header.type_off, &btf.header.type_len,
			       &btf.header.str_off, &btf.header.str_len,
			       &btf.header.hdr_len };

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		begin();
		describe(48, 4);
		*values[i] = UINT32_MAX - 3;
		CHECK(is_nothing(parse()));
	}
	/* of a kind that nobody knows, or with more members than bytes */
	begin();
	describe(48, 4);
	btf.types[1] = 30u << 24;
	CHECK(is_nothing(parse()));
	begin();
	describe(48, 4);
	btf.types[1] = BTF_KIND_STRUCT << 24 | 0xffff;
	CHECK(is_nothing(parse()));
	/* strings without an end */
	begin();
	describe(48, 4);
	btf.header.str_len -= 1;
	CHECK(is_nothing(parse()));
	begin();
	btf.header.magic = 0;
	CHECK(is_nothing(parse()));
}

/* Under the address sanitizer nothing behind the end is read. */
TEST(bytes_that_end_early_are_nothing)
{
	begin();
	describe(48, 4);
	btf.header.str_off = btf.header.type_len;
	memmove((char *)btf.types + btf.header.type_len, btf.strings,
		btf.header.str_len);
	for (size_t len = 0;
	     len < sizeof(btf.header) + btf.header.type_len + btf.header.str_len;
	     len++) {
		void *exact = malloc(len);

		memcpy(exact, &btf, len);
		CHECK(is_nothing(kernel_btf_parse(exact, len)));
		free(exact);
	}
}
