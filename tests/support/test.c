/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The main program of every test: runs the registered cases, speaks TAP. */
#include "tests/support/test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t test_seed = 1;

static struct test_case *cases, **cases_end = &cases;
static int cases_cnt;

/* How the running case ended, and the way out of it. */
static enum { PASSED, FAILED, SKIPPED } verdict;
static char reason[512];
static jmp_buf leave_case;
/* who runs the cases */
static pid_t runner;
static void (*say_more)(void);

void test_register(struct test_case *test)
{
	*cases_end = test;
	cases_end = &test->next;
	cases_cnt++;
}

void test_on_failure(void (*say)(void))
{
	say_more = say;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	if (say_more)
		say_more();
	printf("# %s:%d: %s\n", file, line, reason);
	if (getpid() != runner) {
		fflush(stdout);
		_exit(1);
	}
	verdict = FAILED;
	longjmp(leave_case, 1);
}

void test_apart(void)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		return;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	longjmp(leave_case, 1);
}

void test_skip(const char *why)
{
	snprintf(reason, sizeof(reason), "%s", why);
	verdict = SKIPPED;
	longjmp(leave_case, 1);
}

void test_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	printf("# ");
	vprintf(fmt, args);
	printf("\n");
	va_end(args);
}

void test_check_mem(const char *file, int line, const char *what,
		    const void *got, const void *want, size_t len)
{
	const unsigned char *g = got, *w = want;

	for (size_t i = 0; i < len; i++)
		if (g[i] != w[i])
			test_fail(file, line, "%s[%zu] is %#x, expected %#x",
				  what, i, g[i], w[i]);
}

static bool is_wanted(const struct test_case *test, char *const *names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strcmp(*names, test->name) == 0)
			return true;
	return false;
}

static void run_case(const struct test_case *test, int number)
{
	verdict = PASSED;
	say_more = NULL;
	if (setjmp(leave_case) == 0)
		test->run();
	/* test_apart() */
	if (getpid() != runner) {
		fflush(stdout);
		_exit(0);
	}
	printf("%s %d - %s", verdict == FAILED ? "not ok" : "ok", number,
	       test->name);
	if (verdict == SKIPPED)
		printf(" # SKIP %s", reason);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int wanted_cnt = 0, number = 0;
	char **names = argv + 1;
	bool has_failed = false;

	runner = getpid();
	if (argc > 1 && strcmp(argv[1], "--list") == 0) {
		for (struct test_case *test = cases; test; test = test->next)
			puts(test->name);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
		test_seed = strtoull(argv[2], NULL, 0);
		names += 2;
	}
	for (struct test_case *test = cases; test; test = test->next)
		wanted_cnt += is_wanted(test, names);
	printf("1..%d\n# seed %" PRIu64 "\n", wanted_cnt, test_seed);
	fflush(stdout);
	for (struct test_case *test = cases; test; test = test->next) {
		if (!is_wanted(test, names))
			continue;
		run_case(test, ++number);
		has_failed |= verdict == FAILED;
	}
	return has_failed || wanted_cnt == 0;
}
