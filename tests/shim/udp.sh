#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each UDP scenario on libc, and under the test library with loopback as an
# accelerated device: sleeping at once, and polling before it sleeps, with a lock
# that belongs to the first thread. The outputs must be the same.
# VMA_SELECT_SKIP_OS=0, since its default lets kernel descriptors wait for a few
# calls.
#
# CASES="NAME...": only these.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/udp
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
# A child's sockets get a network of their own, with its thread.
TSAN_OPTIONS=$TSAN_OPTIONS:die_after_fork=0
export VMA_LOG_FILE=$work/log
# Threads that poll leave each other little of two processors.
patience=20
is_thread_sanitized && patience=60

# accelerated OUTPUT SCENARIO VARIABLE=VALUE...
accelerated() {
	local output=$1 scenario=$2
	shift 2
	VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_SELECT_SKIP_OS=0 preloaded "$library" env "$@" \
		timeout -k 5 $patience "$program" "$scenario" </dev/null \
		>"$output" 2>&1 || echo "exit $?" >>"$output"
}

# Under the thread sanitizer a thread that is cancelled in its sleep does not end, on libc
# as well, and it keeps handlers until the call they interrupt returns. Of sockets
# that are made while a thread is in epoll_wait it does not see how they get there, and
# takes a close under another thread's poll, or a change of its array, for the mistake
# that it is, and a connect beside another thread's send for one. A child of several threads
# may not start another.
is_beyond_thread_sanitizer() {
	case $1 in
	restarted_and_served_by_its_handler | jumps_out_of_a_wait*) ;;
	handlers_in_waits | events_of_interrupted_polls | handlers_around_looks) ;;
	threads_end_in_sleeps | cancelled_in_waits_by_number | exits_in_each_sleep) ;;
	sleepers_of_a_set_without_sockets | time_of_a_set_that_gets_sockets) ;;
	sleepers_leave_a_set_without_sockets) ;;
	sleepers_of_a_set_that_gets_a_ready_socket | sleepers_of_a_copied_set) ;;
	number_changes_under_a_poll | array_changes_under_a_poll) ;;
	connects_under_a_sender | batches_whose_number_changes) ;;
	set_of_a_child_gets_a_socket | closed_within_*) ;;
	*) false ;;
	esac
}

# The address sanitizer forgets the frames that a thread leaves by its end, on libc
# as well, and then finds its own in the same place. A fork in a handler may find its locks
# held, for ever.
is_beyond_address_sanitizer() {
	case $1 in
	threads_end_in_sleeps | threads_end_in_calls | cancelled_in_waits_by_number) ;;
	sleepers_leave_a_set_without_sockets) ;;
	handlers_in_a_batch | jumps_out_of_a_wait_and_ends) ;;
	*) false ;;
	esac
}

is_beyond_sanitizer() {
	{ is_thread_sanitized && is_beyond_thread_sanitizer "$1"; } ||
		{ is_address_sanitized && is_beyond_address_sanitizer "$1"; }
}

for scenario in ${CASES:-$("$program" --list)}; do
	if is_beyond_sanitizer "$scenario"; then
		tap_skip "$scenario" "not under a sanitizer"
		continue
	fi
	timeout -k 5 $patience "$program" "$scenario" </dev/null >"$work/libc" 2>&1 ||
		echo "exit $?" >>"$work/libc"
	accelerated "$work/sleeping" "$scenario" VMA_RX_POLL=0 VMA_SELECT_POLL=0
	rx_poll=2000 select_poll=500
	[ "$scenario" != cancelled_in_each_spin ] || rx_poll=-1 select_poll=-1
	accelerated "$work/polling" "$scenario" VMA_RX_POLL=$rx_poll \
		VMA_SELECT_POLL=$select_poll VMA_THREAD_MODE=0
	tap_alike "$scenario" "$work/libc" "$work/sleeping" "$work/polling"
done
tap_end
