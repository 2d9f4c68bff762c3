#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What UDP sockets cost before any traffic (udp_start.c), on the kernel and under
# the library, over veth. The best of five runs in turn; the time asleep is that
# of the last one. With RING (mlx5 or verbs) and CARD, the library has the software
# ConnectX; what that and libibverbs take by themselves is a column of its own, and is
# part of the library's.
# Usage: udp_start.sh PROGRAM LIBRARY [RING CARD]
set -eu
program=$1
ring=${3:-xdp}
library=$(realpath "$2")
. "$(dirname "$0")/udp_lab.sh"
: >"$work/open"
if [ "$ring" != xdp ]; then
	card=$(realpath "$4")
	library="$library $card"
	export VMA_RING=$ring
	# until the kernel says that the port is active
	for _ in $(seq 300); do
		ip netns exec $a grep -qx up /sys/class/net/v0/operstate && break
		sleep 0.02
	done
fi

for round in 1 2 3 4 5; do
	ip netns exec $a "$program" 10.79.0.1 10.79.0.2 >>"$work/kernel" &
	wait $!
	[ "$ring" = xdp ] || SOFTCX=mlx5_0:v0 LD_PRELOAD=$card \
		ip netns exec $a "$program" --open-card >>"$work/open"
	[ "$ring" = xdp ] || export SOFTCX=mlx5_0:v0
	VMA_LOG_FILE=$work/log LD_PRELOAD=$library \
		ip netns exec $a "$program" 10.79.0.1 10.79.0.2 >>"$work/vma"
	unset SOFTCX
	grep -q "is driven by $ring" "$work/log" || {
		cat "$work/log" >&2
		exit 1
	}
done
best() { sed -n "s/^$2 //p" "$work/$1" | sort -n | head -n 1; }
row() {
	printf '%-40s %10s %10s %10s %12s\n' "$1" "$(best kernel "$2")" \
		"$(best vma "$2")" "$(best open "open_${2#first_}")" "$3"
}
limit_us=20000
[ "$ring" = xdp ] || limit_us=30000
printf '%-40s %10s %10s %10s %12s\n' "$ring" kernel library "card alone" bound
row "first bound socket, us" first_us $limit_us
row "first bound socket, KB resident" first_kb 20480
row "first bound socket, fds (one: the log)" first_fds 12
row "first bound socket, threads" first_threads 2
row "each of the next 1000, us" next_us 100
row "each of the next 1000, KB resident" next_kb 4
row "first send, neighbour known, us" send_us 1000
row "10 s asleep in recv, us of CPU" asleep_us_cpu 1000
