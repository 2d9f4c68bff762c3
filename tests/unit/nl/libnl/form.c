/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nl/libnl/form.h"

#include <errno.h>
#include <net/if.h>

#include "tests/support/test.h"

enum { LAST = 5 };

static const struct nla_policy policy[LAST + 1] = {
	[1] = FORM_U32,
	[2] = FORM_U8,
	[3] = FORM_SIZE(2),
	[4] = FORM_BYTES(3),
	[5] = FORM_NAME,
};
static const struct form form = { 0, LAST, policy };
static struct nlattr *attrs[LAST + 1];
static uint8_t copy[64] __attribute__((aligned(4)));

static int check(const void *bytes, size_t len)
{
	CHECK(len <= sizeof(copy));
	memcpy(copy, bytes, len);
	return form_check_bytes(copy, (int)len, &form, attrs);
}

#define CHECK_FORM(bytes) check(bytes, sizeof(bytes) - 1)

TEST(sorted_by_type)
{
	CHECK_EQ(CHECK_FORM("\x06\0\3\0xy\0\0\x08\0\1\0abcd"), 3);
	CHECK(attrs[1] && attrs[3]);
	CHECK(!attrs[0] && !attrs[2]);
	CHECK_EQ(nla_len(attrs[3]), 2);
	CHECK_MEM(nla_data(attrs[1]), "abcd", 4);
	CHECK_EQ(CHECK_FORM(""), 0);
}

TEST(the_last_of_a_type_wins_and_may_lack_its_padding)
{
	CHECK_EQ(CHECK_FORM("\x05\0\2\x80x\0\0\0\x05\0\2\0y"), 2);
	CHECK_EQ(nla_get_u8(attrs[2]), 'y');
}

TEST(lengths_that_lie)
{
	CHECK_EQ(CHECK_FORM("\x03\0\1\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\0\0\1\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x09\0\1\0abcd"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x08\0\1\0abcd\x04\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\xff\xff\1\0abcd"), -EBADMSG);
}

TEST(sizes_that_do_not_fit)
{
	CHECK_EQ(CHECK_FORM("\x07\0\1\0abc\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x04\0\2\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x05\0\3\0a\0\0\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x07\0\3\0abc\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x08\0\4\0abcd"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x04\0\4\0"), 4);
}

TEST(names_end)
{
	CHECK_EQ(CHECK_FORM("\x09\0\5\0eth0\0\0\0\0"), 5);
	CHECK_STR(nla_get_string(attrs[5]), "eth0");
	CHECK_EQ(CHECK_FORM("\x08\0\5\0eth0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x04\0\5\0"), -EBADMSG);
	CHECK_EQ(CHECK_FORM("\x15\0\5\0a_name_of_16_byt\0\0\0\0"),
		 -EBADMSG);
}

/* Whoever parses the message afterwards sees no type that the form has not. */
TEST(what_the_form_has_not_is_hidden)
{
	struct nlattr *seen[0x11 + 1];

	CHECK_EQ(CHECK_FORM("\x05\0\0\0x\0\0\0\x05\0\x10\x40x\0\0\0"
			    "\x05\0\2\0x\0\0\0\x04\0\x11\0"), 0x11);
	CHECK(attrs[2]);
	CHECK_EQ(nla_parse(seen, 0x11, (struct nlattr *)copy, 28, NULL), 0);
	CHECK(!seen[0] && !seen[0x10] && !seen[0x11]);
	CHECK(seen[2]);
	form_hide(attrs[2]);
	CHECK_EQ(nla_parse(seen, 0x11, (struct nlattr *)copy, 28, NULL), 0);
	CHECK(!seen[2]);
	form_hide(NULL);
}
