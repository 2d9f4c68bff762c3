#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for each segment, by callgrind, over 10,000 of each kind:
# receiving 64 bytes (with the ACK of every second one), sending 64 bytes, and
# processing a pure ACK (one for every second segment sent). A poll hands over a
# batch; the second figure of each kind is the worst case, one at a time.
# Usage: tcp_instructions.sh PROGRAM
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# Runs a loop and sums what ran inside the functions; a function called by one of
# them that is named too does not count: count LOOP FUNCTION...
count() {
	loop=$1
	shift
	# shellcheck disable=SC2086 # the loop may have an argument
	valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
		$(printf ' --toggle-collect=%s' "$@") "$program" $loop \
		>"$work/stdout" 2>&1
	sed -n 's/^\(totals\|summary\): *//p' "$work/out" | head -n 1
}

row() {
	printf '%-36s %4d (at most %d)\n' "$1" "$2" "$3"
}

for poll in 16 1; do
	row "segment received, $poll in a poll" \
		$(($(count "receive 0 $poll" tcp_input_batch tcp_input \
			take_segment) / 10000)) 220
done
for under_way in 64 2; do
	row "segment sent, $under_way under way" \
		$(($(count "send $under_way" tcp_write tcp_output \
			take_segment) / 10000)) 180
done
for poll in 16 1; do
	row "pure ACK processed, $poll in a poll" \
		$(($(count "send 64 $poll" tcp_input_batch tcp_input) / 4969)) 150
done
