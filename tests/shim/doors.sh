#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each scenario of doors.c on libc, and under the test library with loopback as an
# accelerated device; the outputs must be the same. SAID names what the library has to
# say of it, so that a scenario cannot pass by not being accelerated.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/doors
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
TSAN_OPTIONS=$TSAN_OPTIONS:die_after_fork=0
export VMA_LOG_FILE=$work/log VMA_TRACELEVEL=debug VMA_STATS_SHMEM_DIR=

# No search for leaks at the end: it makes calls that the filters forbid.
run() {
	ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} timeout -k 5 30 "$@" </dev/null 2>&1 || echo "exit $?"
}

accelerated() {
	VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_SELECT_SKIP_OS=0 \
		preloaded "$library" timeout -k 5 30 "$program" "$1" \
		</dev/null 2>&1 || echo "exit $?"
}

# What the log has to say after a scenario; nothing, if it is not here. A new image
# begins a new log.
said_of() {
	case $1 in
	passed_to_another_process)
		echo "goes back to the kernel: the program has handed it on" ;;
	ring_of_its_own_after_sockets)
		echo "Sockets go back to the kernel: the process has an io_uring" ;;
	context_of_its_own_after_sockets)
		echo "Sockets go back to the kernel: the process has an io_uring" ;;
	aio_* | posix_aio_*) echo "goes back to the kernel: the process has an io_uring or uses AIO" ;;
	fds_of_one_* | child_shares_*)
		echo "Sockets go back to the kernel: threads of the program have different fds" ;;
	processes_*)
		echo "Sockets go back to the kernel: the library cannot have a thread" ;;
	filter_before_sockets) ;;
	filter_*) echo "Sockets go back to the kernel: a filter of system calls" ;;
	signals_for_datagrams | stamps_of_the_last_datagram)
		echo "goes back to the kernel: the program has set an option" ;;
	esac
}

is_said() {
	local said
	said=$(said_of "$1")
	[ -z "$said" ] || grep -q "$said" "$work/log" ||
		{ echo "the log does not say \"$said\":"; grep ': fd ' "$work/log"; return 1; }
}

# The address sanitizer looks at the array of poll() before any library behind it, and
# warns, with addresses, of children that end on a stack of their own.
is_beyond_address_sanitizer() {
	case $1 in
	counts_beyond_everything | cloned_children_* | filter_without_*) ;;
	*) false ;;
	esac
}

# The thread sanitizer also has a thread of its own, which stays when the last one of
# the program ends, and no program has a single one. And it knows of children by fork() alone: in one by clone() it takes
# what the parent's threads have done for done by threads of the child.
is_beyond_thread_sanitizer() {
	case $1 in
	counts_beyond_everything | last_thread_ends | filter_for_all_threads | \
			processes_* | fds_of_a_single_thread | child_shares_fds | cloned_children_* | \
			filter_without_*) ;;
	*) false ;;
	esac
}

is_beyond_sanitizer() {
	{ is_thread_sanitized && is_beyond_thread_sanitizer "$1"; } ||
		{ is_address_sanitized && is_beyond_address_sanitizer "$1"; }
}

for scenario in ${SCENARIOS:-$("$program" --list)}; do
	if is_beyond_sanitizer "$scenario"; then
		tap_skip "$scenario" "not under a sanitizer"
		continue
	fi
	rm -f "$work/log"
	run "$program" "$scenario" >"$work/libc"
	accelerated "$scenario" >"$work/accelerated"
	if ! said=$(is_said "$scenario"); then
		echo "$said" >>"$work/accelerated"
	fi
	tap_alike "$scenario" "$work/libc" "$work/accelerated"
done
tap_end
