#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for each segment, by callgrind, over 10,000 of each kind:
# receiving 64 bytes (with the ACK of every second one), sending 64 bytes, and
# processing a pure ACK (one for every second segment sent).
# Usage: tcp_instructions.sh PROGRAM
set -eu
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# Sums what ran inside function $2 of loop $1.
count() {
	valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
		--toggle-collect="$2" "$program" "$1" >"$work/stdout" 2>&1
	sed -n 's/^\(totals\|summary\): *//p' "$work/out" | head -n 1
}

program=$1
printf 'segment received   %s (at most 220)\n' \
	$(($(count receive measured_input) / 10000))
printf 'segment sent       %s (at most 180)\n' \
	$(($(count send measured_send) / 10000))
printf 'pure ACK processed %s (at most 150)\n' \
	$(($(count send measured_input) / 5000))
