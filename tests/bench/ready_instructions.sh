#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions of readiness calls under the library, by callgrind, over veth: epoll_wait
# with one of 10, 1,000 and 10,000 sockets ready, with none, epoll_ctl's MOD, and poll
# of ten with one ready. The mean of 5,000. What is ready has been received before, so
# these are the calls' own instructions, with a look at the ring. While something of
# ours is ready the kernel is asked now and then only (VMA_SELECT_SKIP_OS): the calls in
# between are counted, and then all of them.
# Usage: ready_instructions.sh PROGRAM ECHO LIBRARY [measured_epoll_wait|... SOCKETS]
set -eu
program=$1
echo_program=$2
library=$(realpath "$3")
. "$(dirname "$0")/udp_lab.sh"
ip netns exec $b "$echo_program" echo 10.79.0.2 &
echo_pid=$!

# The library's thread leaves what arrives to the call that is measured.
export VMA_PROGRESS_ENGINE_INTERVAL=0

# Sums what ran inside a function: count FUNCTION SOCKETS
count() {
	VMA_LOG_FILE=$work/log LD_PRELOAD=$library ip netns exec $a \
		valgrind -q --tool=callgrind --dump-instr=yes \
		--callgrind-out-file="$work/out" --toggle-collect="$1" \
		"$program" 10.79.0.2 "$2" >"$work/stdout" 2>"$work/stderr"
	if [ "$(cat "$work/stdout")" != "5000 5000 5000 5000" ] ||
		! grep -q 'is driven by xdp' "$work/log"; then
		cat "$work/stdout" "$work/stderr" "$work/log" >&2
		exit 1
	fi
	sed -n 's/^\(totals\|summary\): *//p' "$work"/out | head -n 1
}

if [ $# -gt 3 ]; then
	count "$4" "$5" >/dev/null
	callgrind_annotate --auto=no --show-percs=no "$work/out" |
		grep -E '^ *[0-9,]+ ' | head -n 40
	exit
fi
row() {
	printf '%-44s %4d (at most %d)\n' "$1" "$(($2 / 5000))" "$3"
}
within=10000
for sockets in 10 1000 10000; do
	export VMA_SELECT_SKIP_OS=$within
	row "epoll_wait, one ready of $sockets" \
		"$(count measured_epoll_wait $sockets)" 300
	unset VMA_SELECT_SKIP_OS
	row "epoll_ctl, MOD, $sockets in the set" \
		"$(count measured_epoll_mod $sockets)" 400
done
row "epoll_wait, one ready of 10, as by default" \
	"$(count measured_epoll_wait 10)" 400
# a look without the kernel comes before that with it
row "epoll_wait, none ready of 10" "$(count measured_epoll_idle 10)" 550
row "poll, one ready of 10, as by default" "$(count measured_poll 10)" 1100
export VMA_SELECT_SKIP_OS=$within
row "poll, one ready of 10" "$(count measured_poll 10)" 500
