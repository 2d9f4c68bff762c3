#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The random programs of tests/sequences over AF_XDP, by a mirror (udp_mirror.sh), after
# each call of which everything that was sent has arrived. Each runs on libc, and under
# the library sleeping at once and polling before it sleeps; the outputs must be the same.
# SEQUENCES: how many, SEQUENCES_FIRST: the seed of the first one.
. "${srcdir:-.}/tests/system/udp_lab.sh"

sequences=$builddir/tests/sequences/sequences
first=${SEQUENCES_FIRST:-1} cnt=${SEQUENCES:-150} len=${SEQUENCES_LENGTH:-40}

# play OUTPUT LOG SEED VARIABLE=VALUE...
play() {
	local output=$1 log=$2 seed=$3
	shift 3
	(in_ns $a "$log" env SEQUENCES_TAME=1 SEQUENCES_OWNED=10.78.0.1 \
		SEQUENCES_HEARD_AT=$mirror VMA_SELECT_SKIP_OS=0 "$@" timeout -k 5 20 \
		"$sequences" play "$seed" "$len") >"$work/$output" 2>/dev/null ||
		echo "exit $?" >>"$work/$output"
}
differs() {
	play libc - "$1"
	play ours a.log "$@"
	! cmp -s "$work/libc" "$work/ours"
}

# What differs by chance has to do so again.
are_equal() {
	local seed way
	for seed in $(seq "$first" $((first + cnt - 1))); do
		for way in "VMA_RX_POLL=0 VMA_SELECT_POLL=0" \
			"VMA_RX_POLL=2000 VMA_SELECT_POLL=500"; do
			if differs "$seed" $way && differs "$seed" $way &&
				differs "$seed" $way; then
				echo "seed $seed, $way"
				diff "$work/libc" "$work/ours"
				return 1
			fi
		done
	done
}

# batch LOG VARIABLE=VALUE...: all of them in one process, and who has carried them.
is_accelerated_there() {
	local before said
	before=$(kernel_cnt $a)
	said=$( (in_ns $a a.log env SEQUENCES_TAME=1 SEQUENCES_OWNED=10.78.0.1 \
		SEQUENCES_HEARD_AT=$mirror timeout -k 5 120 "$sequences" batch "$first" \
		"$cnt" "$len") 2>&1 >/dev/null | sed -n 's/^# received \([0-9]*\),.*/\1/p')
	[ "${said:-0}" -gt 100 ] || { echo "received: $said"; return 1; }
	[ $((($(kernel_cnt $a) - before) * 5)) -le "$said" ] || {
		echo "$(($(kernel_cnt $a) - before)) by the kernel, $said in all"; return 1; }
}

if [ "$(id -u)" != 0 ]; then
	tap_skip are_equal "needs root"
	tap_end
	exit
fi
make_mirror || { tap_not_ok mirror "cannot make the mirror"; tap_end; exit; }
tap_check are_equal are_equal
tap_check is_accelerated_there is_accelerated_there
tap_end
