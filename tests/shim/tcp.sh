#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each TCP scenario on libc, and under the test library with loopback as an
# accelerated device: sleeping at once, and polling before it sleeps, with a lock
# that belongs to the first thread. The outputs must be the same. The three run at once,
# each in a network namespace of its own, where who carried the segments can be
# counted; where that may not be made, without the count.
#
# CASES="NAME...": only these. TCP_CARRIER=kernel, ours or mixed says who has to carry
# all of them, whatever the scenarios' lines say.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/tcp
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
# A child's sockets get a network of their own, with its thread.
TSAN_OPTIONS=$TSAN_OPTIONS:die_after_fork=0
export VMA_LOG_FILE=$work/log TCP_CARRIER
# Threads that poll leave each other little of two processors.
patience=30
is_thread_sanitized && patience=90

# The thread sanitizer keeps handlers until the call they interrupt returns, and takes
# a close under another thread's call for the mistake that it is, and a child that goes on
# beside a vfork for one that waits. The address sanitizer forgets the frames that a thread
# leaves by its end, and does not know the stack that clone() is given. Both map memory of
# their own at any time, and end the program when they cannot.
is_beyond_sanitizer() {
	case $1 in
	restarted_after_a_signal | goes_back_within_a_connect | closed_within_* | closed_under_* | \
	forks_behind_a_closed_number | closed_beside_a_* | handed_on_beside_* | lingers_behind_a_* | \
	replaced_under_* | number_changes_under_*)
		is_thread_sanitized ;;
	ends_of_a_sharer) is_address_sanitized ;;
	cancelled_in_its_wait | sends_without_memory | forks_beside_an_awaited_child)
		is_thread_sanitized || is_address_sanitized ;;
	*) false ;;
	esac
}

in_a_net() {
	if [ -n "$nets" ]; then
		TCP_ALONE=1 $nets sh -c 'ip link set lo up
			echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
			exec "$@"' sh "$@"
	else
		"$@"
	fi
}

nets=
for way in "unshare --net --" "unshare --map-root-user --net --"; do
	$way ip link set lo up 2>/dev/null && nets=$way && break
done

# run OUTPUT COMMAND...
run() {
	local output=$1
	shift
	in_a_net "$@" </dev/null >"$work/$output" 2>&1 || echo "exit $?" >>"$work/$output"
}

# For the program alone, not for what puts it into its namespace.
preloads=$(preloaded "$library" env | grep -E '^(LD_PRELOAD|ASAN_OPTIONS)=')
# Whether TCP is switched on for a scenario: the kernel's are those where we do not agree
# with it yet.
carriers=$("$program" --carriers)
has_tcp() {
	[ "${TCP_CARRIER:-$(awk -v name="$1" '$1 == name { print $2 }' \
		<<<"$carriers")}" != kernel ] && echo 1 || echo 0
}

# accelerated OUTPUT SCENARIO VARIABLE=VALUE...
accelerated() {
	local output=$1 scenario=$2
	shift 2
	run "$output" env VMA_TCP="$(has_tcp "$scenario")" VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_SELECT_SKIP_OS=0 \
		"$@" timeout -k 5 $patience env $preloads "$program" "$scenario"
}

for scenario in ${CASES:-$("$program" --list)}; do
	if is_beyond_sanitizer "$scenario"; then
		tap_skip "$scenario" "not under a sanitizer"
		continue
	fi
	run libc timeout -k 5 $patience "$program" "$scenario" &
	accelerated sleeping "$scenario" VMA_RX_POLL=0 VMA_SELECT_POLL=0 &
	accelerated polling "$scenario" VMA_RX_POLL=2000 VMA_SELECT_POLL=500 \
		VMA_THREAD_MODE=0 &
	wait
	tap_alike "$scenario" "$work/libc" "$work/sleeping" "$work/polling"
done
tap_end
