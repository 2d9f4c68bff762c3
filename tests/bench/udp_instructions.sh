#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for each UDP call under the library, by callgrind, over veth: a
# connected send of 64 bytes, one to a name that was sent to before, one to a peer that
# is new, the receive of a datagram that waits (with its poll), and a receive with
# nothing there. The mean of 10,000, in bursts, so that what is
# done for many calls at once is in it. Then the same beside 10,000 bound sockets,
# and with the lock of the latency profile.
# Without a second argument what is counted ends with the call; with the name of
# one of the measured functions its callees are listed.
# Usage: udp_instructions.sh PROGRAM LIBRARY [measured_send|...]
set -eu
program=$1
library=$(realpath "$2")
. "$(dirname "$0")/udp_lab.sh"
ip netns exec $b "$program" echo 10.79.0.2 &
echo_pid=$!
# those who are new to it live behind the echo
ip -n $a route add 10.80.0.0/16 via 10.79.0.2

# The library's thread leaves what arrives to the receive that is measured.
export VMA_PROGRESS_ENGINE_INTERVAL=0

# Sums what ran inside a function: count FUNCTION SOCKETS
count() {
	VMA_LOG_FILE=$work/log LD_PRELOAD=$library ip netns exec $a \
		valgrind -q --tool=callgrind --dump-instr=yes \
		--callgrind-out-file="$work/out" --toggle-collect="$1" \
		"$program" calls 10.79.0.2 10.80.0.0 "$2" >"$work/stdout" 2>"$work/stderr"
	# few were late, or the figure means something else
	read -r sent received looked sent_to_new <"$work/stdout"
	if [ $((sent + received + looked)) -lt 39400 ] ||
		[ "$sent_to_new" != 10000 ] ||
		! grep -q 'is driven by xdp' "$work/log"; then
		cat "$work/stdout" "$work/stderr" "$work/log" >&2
		exit 1
	fi
	sed -n 's/^\(totals\|summary\): *//p' "$work"/out | head -n 1
}

if [ $# -gt 2 ]; then
	count "$3" 0 >/dev/null
	callgrind_annotate --auto=no --show-percs=no "$work/out" |
		grep -E '^ *[0-9,]+ ' | head -n 40
	exit
fi
row() {
	printf '%-44s %4d (at most %d)\n' "$1" "$(($2 / 10000))" "$3"
}
# (rows SOCKETS REMARK)
rows() {
	row "send, connected, 64 bytes; $2" "$(count measured_send "$1")" 250
	row "sendto, known, 64 bytes; $2" "$(count measured_sendto "$1")" 320
	row "sendto, new peer, 64 bytes; $2" "$(count measured_sendto_new "$1")" 900
	row "receive, one waits; $2" "$(count measured_receive "$1")" 300
	row "receive, nothing there; $2" "$(count measured_look "$1")" 120
}
rows 0 "alone"
rows 10000 "10000 more sockets"
export VMA_THREAD_MODE=0
rows 0 "VMA_THREAD_MODE=0"
