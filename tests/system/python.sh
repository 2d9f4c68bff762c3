#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's tests of sockets, readiness, processes and signals, under the library.
. "${srcdir:-.}/tests/system/compare.sh"
. "${srcdir:-.}/tests/system/python_tests.sh"
# The others count their time on the processor as well.
side_by_side=net

program_net() {
	python_tests test_socket test_select test_epoll test_poll test_selectors
}

program_process() {
	python_tests test_subprocess test_signal test_os
}

compare_all ${*:-net process}
