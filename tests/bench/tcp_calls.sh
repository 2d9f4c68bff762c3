#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for each TCP call under the library, by callgrind, over veth: requests of
# 64 bytes to an echo of the kernel's, one after the other. A send; the receive of an
# answer that waits, with its poll and what it acknowledges; the same of a connection that
# nothing is sent by; the receive of an answer that epoll_wait has told of; a receive with
# nothing there; epoll_wait that finds a segment in the ring, and once more with the socket
# ready. The mean of 4,000, from libc's entry to its return.
# Without a third argument what is counted ends with the call; with the name of
# one of the measured functions its callees are listed.
# Usage: tcp_calls.sh PROGRAM LIBRARY [measured_send|...]
set -eu
program=$1
library=$(realpath "$2")
. "$(dirname "$0")/udp_lab.sh"
mkfifo "$work/pipe"
ip netns exec $b sh -c "ulimit -n 20000; exec $program echo 10.79.0.2 $work/pipe" &
echo_pid=$!
sleep 0.3

# The library's thread leaves what arrives to the receive that is measured.
export VMA_PROGRESS_ENGINE_INTERVAL=0

# Sums what ran inside a function: count FUNCTION SOCKETS
count() {
	VMA_LOG_FILE=$work/log LD_PRELOAD=$library ip netns exec $a \
		valgrind -q --tool=callgrind --dump-instr=yes \
		--callgrind-out-file="$work/out" --toggle-collect="$1" \
		"$program" calls 10.79.0.2 "$work/pipe" "$2" >"$work/stdout" 2>"$work/stderr"
	# few were late, or the figure means something else
	read -r sent received taken looked waited told ready <"$work/stdout"
	if [ "$sent" != 4000 ] || [ "$received" -lt 3800 ] ||
		[ "$taken" -lt 3600 ] || [ "$looked" -lt 3800 ] || [ "$waited" -lt 3800 ] ||
		[ "$told" -lt 3800 ] || [ "$ready" -lt 3800 ] ||
		! grep -q 'is driven by xdp' "$work/log"; then
		cat "$work/stdout" "$work/stderr" "$work/log" >&2
		exit 1
	fi
	sed -n 's/^\(totals\|summary\): *//p' "$work"/out | head -n 1
}

if [ $# -gt 2 ]; then
	count "$3" 0 >/dev/null
	callgrind_annotate --auto=no --show-percs=no "$work/out" |
		grep -E '^ *[0-9,]+ ' | head -n 60
	exit
fi
row() {
	printf '%-44s %4d (at most %d)\n' "$1" "$(($2 / 4000))" "$3"
}
# (rows SOCKETS REMARK)
rows() {
	row "send, 64 bytes; $2" "$(count measured_send "$1")" 420
	row "receive, an answer and its ACK; $2" "$(count measured_receive "$1")" 420
	row "receive, a segment waits; $2" "$(count measured_take "$1")" 420
	row "receive, epoll_wait has told of it; $2" "$(count measured_told "$1")" 420
	row "receive, nothing there; $2" "$(count measured_look "$1")" 120
	row "epoll_wait, a segment waits; $2" "$(count measured_epoll "$1")" 750
	row "epoll_wait, it is ready; $2" "$(count measured_ready "$1")" 330
}
rows 0 "alone"
rows 1000 "1000 more connections"
export VMA_THREAD_MODE=0
rows 0 "VMA_THREAD_MODE=0"
