#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Random programs of socket calls (sequences.c) on libc and under the test library, with
# loopback as an accelerated device: every result, errno and list of events must be the
# same. A difference is shrunk to the shortest program that shows it.
#
# Known differences, which the programs stay away from:
#  1. Datagrams that come by the kernel and by our queues may be received in another
#     order than they were sent (no MSG_MORE, no MSG_DONTROUTE, no disconnect with
#     something to read, no send that fails from a socket without a name).
#  2. The error that a datagram of the kernel's brings back is told a moment later, if the
#     next one goes by our queues (nobody sends to whom is not there).
#  3. Linux reports an edge of EPOLLOUT for each datagram that has left; here one comes
#     when there was no room and there is room again (SEQUENCES_TAME). A send that fires
#     it would wake programs that ask for EPOLLIN | EPOLLOUT | EPOLLET once and for all,
#     as many event loops do, for each datagram.
#  4. Who waits in a set whose last number another thread closes does not hear of the
#     kernel's fds in it any more, only of our sockets (nothing becomes ready then).
#  With TCP: names and ports of what has ended or was dissolved (no look at it, no bind and no connect to itself then, no
#     AF_UNSPEC); late data while something from before the shutdown waits (no shutdown
#     then); EPOLL_CTL_ADD between the moment in which a socket becomes the kernel's and the
#     next look at the set (each is looked at before); urgent data.
#  5. A one-shot socket that has been told, and was closed by the number it was added with
#     while a duplicate lives, cannot be taken out of the kernel's set: to poll, select and
#     sets around, its set is ready when something comes to the twin, a shutdown for
#     example. epoll_wait is right (one in a million programs does it).
#  With several processes (SEQUENCES_PROCESSES, by sequences_processes.sh and
#     sequences_tcp_processes.sh):
#  6. A connection that becomes the kernel's is a new member of the kernel's sets: an edge is
#     told once more (no EPOLLET with TCP). A one-shot member that has been told is not there
#     for a child until its process arms it again (no EPOLLONESHOT). One whose number is
#     another file's by then stays out (programs take what they close out of their sets).
#  7. Whom a listener has queued stays with the process that completed the connection (no fork,
#     exec or sending of fds then).
#  8. A parent does not hear that a child connects or shuts down a UDP socket that both have,
#     or changes a set that has one (no child does). Of several datagrams, see 1 (one is
#     read before the next one is sent, or anything changes hands).
#  The device of the tests is a process's own: nobody connects to a listener by it that
#     another process or program may have.
#
# SEQUENCES: how many, SEQUENCES_LENGTH: of how many calls each, SEQUENCES_FIRST: the
# seed of the first one. SEQUENCES_TAME= plays 3, too.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/sequences/sequences
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
first=${SEQUENCES_FIRST:-1} cnt=${SEQUENCES:-10000} len=${SEQUENCES_LENGTH:-40}
per_late=${SEQUENCES_PROCESSES:+20}
per_late=${per_late:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
export VMA_TRACELEVEL=error VMA_STATS_SHMEM_DIR= VMA_TEST_LOCAL=1 \
	VMA_XDP_INTERFACES=lo VMA_SELECT_SKIP_OS=0
export SEQUENCES_PRELOAD=$(LD_PRELOAD=; preloaded "$library" printenv LD_PRELOAD)
export SEQUENCES_TAME=${SEQUENCES_TAME-1}
[ -n "$SEQUENCES_TAME" ] || unset SEQUENCES_TAME

# as_it_waits WAY COMMAND...
as_it_waits() {
	local polls=0
	[ "$1" = sleeping ] || polls=2000
	shift
	VMA_RX_POLL=$polls VMA_SELECT_POLL=$polls "$@"
}

batch() {
	"$@" timeout -k 5 500 "$program" batch "$first" "$cnt" "$len" </dev/null
}

# The seeds whose results differ.
differing() {
	join -a 1 <(sort "$work/libc") <(sort "$1") |
		awk 'NF != 3 || $2 != $3 { print $1 }' | sort -n
}

# Some differences are the weather's: a network interrupt of the kernel that runs late.
# What counts is what differs again, by itself.
shrunk() {
	local seed result
	for seed in $(head -20 "$work/seeds"); do
		ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} timeout -k 5 200 \
			"$program" shrink "$seed" "$len" >"$work/shrunk"
		result=$?
		# it does not differ by itself
		[ $result != 1 ] || continue
		cat "$work/shrunk"
		[ $result = 0 ] || echo "shrinking seed $seed: exit $result"
		break
	done
}

results_are_equal() {
	local shrunk
	differing "$work/$1" >"$work/seeds"
	shrunk=$(as_it_waits "$1" shrunk)
	[ -z "$shrunk" ] || { echo "$shrunk"; return 1; }
	# Also when each is right by itself. With several processes the kernel's own news of a
	# datagram comes late more often.
	[ "$(wc -l <"$work/seeds")" -lt $((cnt / per_late + 2)) ] ||
		{ echo "$(wc -l <"$work/seeds") of $cnt seeds differ"; return 1; }
	[ "$(wc -l <"$work/$1")" = "$cnt" ] || { echo "it ended early"; return 1; }
}

# Most of what is received has to have come by us, or nothing is shown; half of it where
# there are children, who have it from the kernel.
is_accelerated() {
	sed -nE 's/^# received ([0-9]+), carried by the library ([0-9]+)$/\1 \2/p' "$work/$1.said" |
		awk -v most="${SEQUENCES_PROCESSES:+2}" \
			'{ print; n++; bad = $1 > $2 * (most ? most : 1) } END { exit n != 1 || bad }'
}

# The programs close what another thread waits for, which is a race to the sanitizer.
if is_thread_sanitized; then
	for way in sleeping polling; do
		tap_skip "results_are_equal_$way" "not under a sanitizer"
		tap_skip "sockets_were_accelerated_$way" "not under a sanitizer"
	done
	tap_end
	exit
fi
batch env >"$work/libc" 2>"$work/libc.said"
for way in sleeping polling; do
	as_it_waits $way batch preloaded "$library" >"$work/$way" 2>"$work/$way.said"
done
for way in sleeping polling; do
	tap_check "results_are_equal_$way" results_are_equal $way
	tap_check "sockets_were_accelerated_$way" is_accelerated $way
done
tap_end
