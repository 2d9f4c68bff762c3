#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's own tests of processes: multiprocessing by each way to start one, with its
# listeners, managers and sockets that are handed on, subprocess, and pools. On libc and
# with loopback as an accelerated device: the same verdict on each case. Minutes each, so
# `make check-servers` runs it.
. "${srcdir:-.}/tests/support/preload.sh"
. "${srcdir:-.}/tests/system/python_tests.sh"

if [ "$(id -u)" != 0 ]; then
	tap_skip python_processes "needs root"
	tap_end
	exit 0
fi
if [ -z "${PYTHON_INSIDE:-}" ]; then
	PYTHON_INSIDE=1 exec unshare --net -- "$0" "$@"
fi
ip link set lo up
library=$(realpath "$builddir/tests/shim/.libs/libvma-test.so")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHON_TESTS_SECONDS=900 PYTHON_TEST_SECONDS=600

# (compare CASE TESTS...) What the library itself has open on loopback is a number that
# fstat() finds, so those that list all numbers are not asked.
compare() {
	local name=$1
	shift
	python_tests -i 'test_close_fds*' -i 'test_pass_fds_redirected' "$@" >"$work/libc"
	VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_LOG_FILE=$work/log \
		preloaded "$library" python_tests -i 'test_close_fds*' -i 'test_pass_fds_redirected' "$@" >"$work/local"
	echo "# $(grep -c ' ok$' "$work/libc") cases"
	tap_check "$name" diff "$work/libc" "$work/local"
}

compare subprocess test_subprocess
compare multiprocessing_fork test_multiprocessing_fork
compare multiprocessing_spawn test_multiprocessing_spawn test_multiprocessing_main_handling
compare multiprocessing_forkserver test_multiprocessing_forkserver
compare pools test_concurrent_futures test_socketserver
tap_end
