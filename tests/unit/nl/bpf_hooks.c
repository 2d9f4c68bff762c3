/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What needs no kernel; tests/system/net_view_test.c attaches programs. */
#include "nl/bpf_hooks.h"

#include <errno.h>

#include "base/text.h"
#include "tests/support/test.h"

static char dir[64];

static int find(const char *lines)
{
	return bpf_hooks_cgroup_dir(lines, "/cg", dir, sizeof(dir));
}

TEST(the_cgroup_of_version_2)
{
	CHECK_EQ(find("0::/system.slice/a.service\n"), 0);
	CHECK_STR(dir, "/cg/system.slice/a.service");
	CHECK_EQ(find("9:name=systemd:/x\n10::/y\n0::/a b\n1:cpu:/z\n"), 0);
	CHECK_STR(dir, "/cg/a b");
	CHECK_EQ(find("0::/"), 0);
	CHECK_STR(dir, "/cg/");
}

TEST(no_cgroup_of_version_2)
{
	CHECK_EQ(find(""), -ENOENT);
	CHECK_EQ(find("4:memory:/0::/a\n"), -ENOENT);
	CHECK_EQ(find("0::/123456789012345678901234567890123456789012345678901"
		      "234567890\n"), -ENAMETOOLONG);
}

/* The kernel may know no such interface, or tell us nothing. */
TEST(an_interface_that_is_not_there)
{
	char buf[64];
	struct text text = text_in(buf, sizeof(buf));

	CHECK(bpf_hooks_read_link(INT32_MAX, "none", false, &text) < 0);
	CHECK_STR(buf, "");
}
