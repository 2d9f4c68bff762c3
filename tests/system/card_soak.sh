#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Datagrams of 0 to 65507 bytes between two programs on software ConnectX, each way as
# many as CARD_SOAK says, and a hundredth of them longer than a frame: every one arrives,
# once, unchanged, in its order. Those up to a frame pass the kernel's sockets by.
# CARD_SOAK_SEED repeats the lengths.
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/udp_lab.sh"

program=$builddir/tests/system/card_soak
cnt=${CARD_SOAK:-200000}
seed=${CARD_SOAK_SEED:-$RANDOM}

# by_kernel_at_most CNT
by_kernel_at_most() {
	local of_a=$(($(kernel_cnt $a) - in_a)) of_b=$(($(kernel_cnt $b) - in_b))
	[ "$of_a" -le "$1" ] && [ "$of_b" -le "$1" ] ||
		{ echo "$of_a and $of_b by the kernel, not $1"; return 1; }
}

all_sizes_by() {
	local LAB_CARD=$1 in_a in_b said long=$((cnt / 100))
	start a.log $program echo 10.78.0.1 || return 1
	in_a=$(kernel_cnt $a) in_b=$(kernel_cnt $b)
	said=$( (in_ns $b b.log $program ask 10.78.0.1 "$cnt" "$long" "$seed") 2>&1)
	case $said in
	"right: $cnt up to a frame, $long longer, "*) ;;
	*) echo "seed $seed: $said"; return 1 ;;
	esac
	echo "# $1, seed $seed: $said" >&3
	by_kernel_at_most $((long + cnt / 1000 + 10)) &&
		wait_for "v0 is driven by $1" "$work/a.log" &&
		wait_for "v0 is driven by $1" "$work/b.log"
}

all_sizes_on_mlx5() {
	all_sizes_by mlx5
}
all_sizes_on_verbs() {
	all_sizes_by verbs
}

exec 3>&1
run_cases all_sizes_on_mlx5 all_sizes_on_verbs
