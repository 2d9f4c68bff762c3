#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's tests of asyncio, under the library; apart, because they take as long as
# all others.
. "${srcdir:-.}/tests/system/compare.sh"
. "${srcdir:-.}/tests/system/python_tests.sh"

program_asyncio() {
	python_tests test_asyncio
}

compare_all asyncio
