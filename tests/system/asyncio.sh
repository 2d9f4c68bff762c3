#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's tests of asyncio, under the library; apart, because they take as long as
# all others.
. "${srcdir:-.}/tests/system/compare.sh"
. "${srcdir:-.}/tests/system/python_tests.sh"

# By its modules, which wait side by side; as one test it takes as long as a test may.
# ASYNCIO_HALF=0 or 1: every other one of them.
program_asyncio() {
	local modules
	mapfile -t modules < <(/usr/bin/python3 -c '
import os, pkgutil, test.test_asyncio as tests
names = [module.name for module in pkgutil.iter_modules(tests.__path__, "test.test_asyncio.")]
names = [name for name in names if ".test_" in name[len("test.test_asyncio"):]]
half = os.environ.get("ASYNCIO_HALF")
print(*names[int(half)::2] if half else names, sep="\n")')
	python_tests "${modules[@]}"
}

compare_all asyncio
