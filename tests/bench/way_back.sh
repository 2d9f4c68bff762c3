#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Forks, ways back and an exit with many connections (way_back.c), on the kernel and under
# the library, over veth: medians of three runs in turn, in microseconds. Beside the forks
# is what they take on the kernel of a program that has loaded what the library is linked
# with, and nothing of the library: a fork copies the map of each.
# Usage: [CONNECTIONS=N] way_back.sh PROGRAM LIBRARY
set -eu
program=$1
library=$(realpath "$2")
cnt=${CONNECTIONS:-10000}
. "$(dirname "$0")/udp_lab.sh"
ulimit -n "$(ulimit -H -n)"
# each connection is in TIME_WAIT once
ip netns exec $a sysctl -qw net.ipv4.ip_local_port_range="1024 65535"

# run NAME [PRELOAD-LIBRARY]: with a server of its own, which holds all connections.
run() {
	rm -f "$work/server"
	ip netns exec $b "$program" serve 10.79.0.2 7000 >"$work/server" &
	echo_pid=$!
	until grep -qs ready "$work/server"; do kill -0 $echo_pid; sleep 0.1; done
	VMA_LOG_FILE=$work/log ip netns exec $a \
		env ${2:+"LD_PRELOAD=$2"} "$program" ask 10.79.0.2 7000 "$cnt" >"$work/out"
	ended=$(($(date +%s%N) / 1000))
	awk -v end="$ended" '$1 == "exit_at" { print "exit_many", end - $2; next } { print }' \
		"$work/out" >>"$work/$1"
	kill $echo_pid
	wait $echo_pid || true
	echo_pid=
}
for round in 1 2 3; do
	run kernel
	run linked "libbpf.so.1 libnl-route-3.so.200"
	run vma "$library"
done
grep -q 'is driven by xdp' "$work/log" || { cat "$work/log" >&2; exit 1; }

median() { sed -n "s/^$2 //p" "$work/$1" | sort -n | sed -n 2p; }
row() {
	printf '%-46s %10s %10s %10s %10s\n' "$1" "$(median kernel "$2")" \
		"$(median linked "$2")" "$(median vma "$2")" "$3"
}
printf '%-46s %10s %10s %10s %10s\n' "" kernel linked library bound
row "fork with one connection" fork_one -
row "fork with $cnt" fork_many "1.1 x"
row "the same, and 32 MB of the program's" fork_large "1.1 x"
row "the system calls of a way back, alone" calls -
row "a way back, idle" back_idle 40
row "the calls of one with 64 KB each way, alone" calls_100k -
row "the same, 100 KB each way" back_100k 150
row "the same, 1 MB not sent" back_1m 1000
# a sum for comparison: calls that follow each other take less than those above
awk -v cnt="$cnt" '$1 == "calls" { calls = $2 } $1 == "exit_many" {
	print "exit_calls", int($2 + cnt * calls) }' "$work/kernel" >"$work/sums"
cat "$work/sums" >>"$work/kernel"
row "the kernel's exit with $cnt, and those calls" exit_calls -
row "exit with $cnt" exit_many 500000
