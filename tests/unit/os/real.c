/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "os/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "tests/support/test.h"

/* This program defines no call itself, so libc's are what the plain names are. */
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
	CHECK((void *)real.read == dlsym(RTLD_DEFAULT, "read"));
}

TEST(every_call_is_found_in_this_libc)
{
	errno = ENOENT;
	real_resolve();
	CHECK_EQ(errno, ENOENT);
#define CALL_REAL(ret, name, params, args)                           \
	{                                                            \
		void *fn = dlsym(RTLD_DEFAULT, #name);               \
		if (fn && (void *)real.name != fn)                   \
			FAIL("%s is not libc's", #name);             \
		if (!fn && strcmp(#name, "sigvec") != 0)             \
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
