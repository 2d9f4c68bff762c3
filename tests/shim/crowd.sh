#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Threads that do whatever comes to their minds to accelerated sockets and to sets, for
# CROWD_SECONDS (crowd.c), with each kind of lock and with a new seed each time.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/crowd
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
seconds=${CROWD_SECONDS:-2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"

# The log is of interest only when something is wrong.
crowd() {
	local said
	said=$(VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_LOG_FILE=$work/log \
		preloaded "$library" env "$@" timeout -k 5 $((seconds + 60)) \
		"$program" "$seconds" $RANDOM 2>"$work/stderr") ||
		said="exit $?: $said"
	[ "$said" = works ] || { echo "$said"; cat "$work/stderr" "$work/log"
		return 1; }
	sed 's/^/# /' "$work/stderr"
}

threads_that_sleep_at_once() { crowd VMA_RX_POLL=0 VMA_SELECT_POLL=0; }
threads_that_spin() { crowd VMA_SELECT_POLL=1000; }
threads_with_a_mutex() { crowd VMA_THREAD_MODE=2; }

for case in threads_that_sleep_at_once threads_that_spin threads_with_a_mutex; do
	tap_check "$case" "$case"
done
tap_end
