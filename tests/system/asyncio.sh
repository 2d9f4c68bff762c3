#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's tests of asyncio, under the library; apart, because they take as long as
# all others.
. "${srcdir:-.}/tests/system/compare.sh"
. "${srcdir:-.}/tests/system/python_tests.sh"

# By its modules, which wait side by side; as one test it takes as long as a test may.
program_asyncio() {
	local modules
	mapfile -t modules < <(/usr/bin/python3 -c '
import pkgutil, test.test_asyncio as tests
for module in pkgutil.iter_modules(tests.__path__, "test.test_asyncio."):
    if ".test_" in module.name[len("test.test_asyncio"):]:
        print(module.name)')
	python_tests "${modules[@]}"
}

compare_all asyncio
