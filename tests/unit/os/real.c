/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "tests/support/test.h"

/* This program defines no call itself: the table has libc's, or what a sanitizer
 * put before libc's for everybody. */
static bool is_libc_fn(void *fn, const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	bool is_libc = fn == dlsym(libc, name);

	dlclose(libc);
	return fn && (is_libc || fn == dlsym(RTLD_DEFAULT, name));
}

TEST(first_use_resolves_the_table)
{
	int fds[2];
	char byte;

	CHECK_EQ(real.pipe(fds), 0);
	CHECK_EQ(real.write(fds[1], "x", 1), 1);
	CHECK_EQ(real.read(fds[0], &byte, 1), 1);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(real.close(fds[0]), 0);
	CHECK_EQ(real.close(fds[1]), 0);
	CHECK(is_libc_fn((void *)real.read, "read"));
}

TEST(every_call_is_found_in_this_libc)
{
	errno = ENOENT;
	real_resolve();
	CHECK_EQ(errno, ENOENT);
#define CALL_REAL(ret, name, params, args)                           \
	{                                                            \
		bool is_there = dlsym(RTLD_DEFAULT, #name);          \
		if (is_there && !is_libc_fn((void *)real.name, #name)) \
			FAIL("%s is not libc's", #name);             \
		if (!is_there && strcmp(#name, "sigvec") != 0)       \
			FAIL("this libc has no %s", #name);          \
	}
#define CALL_REAL_VA(ret, name, va_params, params, args) \
	CALL_REAL(ret, name, params, args)
#include "os/calls.def"
}

TEST(old_versions_are_found_too)
{
	struct sigvec_compat old;

	real_resolve();
	CHECK_EQ(real.sigvec(SIGUSR1, NULL, &old), 0);
	CHECK(old.handler == SIG_DFL);
}
