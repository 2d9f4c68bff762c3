#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What UDP sockets cost before any traffic (udp_start.c), on the kernel and under
# the library, over veth. The best of five runs in turn; the time asleep is that
# of the last one.
# Usage: udp_start.sh PROGRAM LIBRARY
set -eu
program=$1
library=$(realpath "$2")
. "$(dirname "$0")/udp_lab.sh"

for round in 1 2 3 4 5; do
	ip netns exec $a "$program" 10.79.0.1 10.79.0.2 >>"$work/kernel" &
	wait $!
	VMA_LOG_FILE=$work/log LD_PRELOAD=$library \
		ip netns exec $a "$program" 10.79.0.1 10.79.0.2 >>"$work/vma"
	grep -q 'is driven by xdp' "$work/log" || {
		cat "$work/log" >&2
		exit 1
	}
done
best() { sed -n "s/^$2 //p" "$work/$1" | sort -n | head -n 1; }
row() {
	printf '%-40s %10s %10s %12s\n' "$1" "$(best kernel "$2")" \
		"$(best vma "$2")" "$3"
}
printf '%-40s %10s %10s %12s\n' "" kernel library bound
row "first bound socket, us" first_us 20000
row "first bound socket, KB resident" first_kb 20480
row "each of the next 1000, us" next_us 100
row "each of the next 1000, KB resident" next_kb 4
row "first send, neighbour known, us" send_us 1000
row "10 s asleep in recv, us of CPU" asleep_us_cpu 1000
