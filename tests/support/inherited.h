/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the child of a fork has of our memory. */
#ifndef TESTS_SUPPORT_INHERITED_H
#define TESTS_SUPPORT_INHERITED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/support/test.h"

/* Whether the child of a fork has something there. A child under the thread sanitizer maps
 * memory of its own wherever there is room, so the case is skipped. */
static inline bool is_inherited(const void *mem)
{
	uintptr_t page = (uintptr_t)mem & ~(uintptr_t)4095;
	unsigned char is_in_core;
	int status;
	pid_t pid;

	if (HAS_THREAD_SANITIZER)
		test_skip("not under a sanitizer");
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(mincore((void *)page, 4096, &is_in_core) == 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#endif
