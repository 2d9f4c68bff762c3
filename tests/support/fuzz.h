/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fuzz target is a source of tests/fuzz with LLVMFuzzerTestOneInput() and
 * FUZZ_CHECKs. `make fuzz` builds it with clang's fuzzer, `make check` with
 * fuzz_main.c, which replays what the fuzzer has found so far.
 */
#ifndef SUPPORT_FUZZ_H
#define SUPPORT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Stays in every build, unlike an assert. */
#define FUZZ_CHECK(cond)                                                  \
	do {                                                              \
		if (!(cond)) {                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,  \
				__LINE__, #cond);                         \
			abort();                                          \
		}                                                         \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
