#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for each segment, by callgrind, over 10,000 in-order segments:
# receiving 64 bytes (with the ACK of every ninth one), sending 64 bytes, and
# processing the pure ACKs, which come for every second segment sent. A poll hands
# over a batch; "1 in a poll" is the worst case, where each comes alone. An ACK that
# comes alone pays for letting go of two segments: the bound is for each of them, and
# the whole is shown beside it.
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
	printf '%-48s %4d%s\n' "$1" "$2" "${3:+ (at most $3)}"
}

segments=10000
# the last 64 segments are not acknowledged
acked=$((segments - 62)) acks=$(((segments - 62) / 2))
for poll in 16 1; do
	row "segment received, $poll in a poll" \
		$(($(count "receive 0 $poll" tcp_input_batch tcp_input \
			take_segment) / segments)) 220
done
for under_way in 64 2; do
	row "segment sent, $under_way under way" \
		$(($(count "send $under_way" tcp_write tcp_output \
			take_segment) / segments)) 180
done
all=$(count "send 64 16" tcp_input_batch tcp_input)
row "pure ACK processed, 16 in a poll" $((all / acks)) 150
all=$(count "send 64 1" tcp_input_batch tcp_input)
row "pure ACK processed, 1 in a poll, for each segment" $((all / acked)) 150
row "pure ACK processed, 1 in a poll, as a whole" $((all / acks)) ''
