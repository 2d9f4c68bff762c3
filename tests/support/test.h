/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A test program: TEST(name) { ... } for each case, CHECKs inside, no main. It
 * speaks TAP on stdout. `./program` runs all cases in file order, `./program
 * name...` only those; --list names them. --seed N sets test_seed, which is
 * printed first, so that a random case can be run again.
 *
 * A CHECK that fails ends its case, not the program. Cases run in one process;
 * each must leave nothing behind. In a child that a case has forked, a CHECK that
 * fails ends the child, with status 1.
 */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};

void test_register(struct test_case *test);

extern uint64_t test_seed;

#define TEST(name)                                                      \
	static void test_##name(void);                                  \
	__attribute__((constructor)) static void register_##name(void)  \
	{                                                               \
		static struct test_case test = { #name, test_##name, 0 }; \
		test_register(&test);                                   \
	}                                                               \
	static void test_##name(void)

/* Leave the case at once. */
NO_RETURN void test_fail(const char *file, int line, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* `why` must begin with a reason that tests/support/skips.txt declares. */
NO_RETURN void test_skip(const char *why);
/* The rest of the case runs in a process of its own, for what a process does once. */
void test_apart(void);
/* Called when a CHECK of this case fails, to say more; or NULL. */
void test_on_failure(void (*say)(void));
/* A comment in the output. */
void test_note(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* HAS_THREAD_SANITIZER (base/compiler.h): the sanitizer stands between the kernel and
 * every handler. It runs most of them later, at the end of the next libc call it
 * knows, one for each signal, on the ordinary stack and with all others blocked. */

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(cond)                               \
	do {                                      \
		if (!(cond))                      \
			FAIL("not so: %s", #cond); \
	} while (0)

/* Whole numbers of any type; the expected value comes second. */
#define CHECK_EQ(got, want)                                                   \
	do {                                                                  \
		long long got_ = (long long)(got), want_ = (long long)(want); \
		if (got_ != want_)                                            \
			FAIL("%s is %lld (%#llx), expected %lld (%#llx)",     \
			     #got, got_, (unsigned long long)got_, want_,     \
			     (unsigned long long)want_);                      \
	} while (0)

#define CHECK_STR(got, want)                                           \
	do {                                                           \
		const char *got_ = (got), *want_ = (want);             \
		if (!got_ || strcmp(got_, want_) != 0)                 \
			FAIL("%s is \"%s\", expected \"%s\"", #got,    \
			     got_ ? got_ : "(null)", want_);           \
	} while (0)

#define CHECK_MEM(got, want, len) \
	test_check_mem(__FILE__, __LINE__, #got, got, want, len)

void test_check_mem(const char *file, int line, const char *what,
		    const void *got, const void *want, size_t len);

#endif
