#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What waiting costs, in turn under the library and on the kernel, over veth: ping-pong by
# a blocking receive, by epoll, poll and select; how long it takes until a sleeper of
# epoll has returned; two threads that wait on one processor; what of 64 threads that sleep in one set a datagram wakes; and what
# processor time a sleeping server with a thousand sockets takes (with IDLE_ROUNDS, as it
# takes ten seconds). Each end has a processor of its own, and nothing else should run.
# Prints medians and writes them to JSON-FILE.
# Usage: [ROUNDS=N] [IDLE_ROUNDS=N] ready_rates.sh PROGRAM LIBRARY JSON-FILE
set -eu
program=$1
library=$(realpath "$2")
json=$3
[ "$(nproc)" -ge 2 ] || { echo 'This takes two processors.' >&2; exit 1; }
. "$(dirname "$0")/udp_lab.sh"
mac_a=$(ip -n $a -br link show v0 | awk '{ print $3 }')
ip -n $b neighbour replace 10.79.0.1 lladdr "$mac_a" dev v0 nud permanent
results=$work/results

# (at END VARIANT ROLE WAY): becomes the program, in the end's namespace, on its
# processor, with the sockets of the variant.
at() {
	case $1 in
	a) namespace=$a processor=0 ends='10.79.0.1 10.79.0.2' ;;
	b) namespace=$b processor=1 ends='10.79.0.2 10.79.0.1' ;;
	esac
	preload= variant=$2
	export VMA_LOG_FILE="$work/log.$1"
	shift 2
	case $variant in
	spinning) export VMA_SPEC=latency ;;
	sleeping) export VMA_RX_POLL=0 VMA_SELECT_POLL=0 ;;
	esac
	[ $variant = kernel ] || preload=$library
	exec ip netns exec "$namespace" taskset -c "$processor" timeout 20 \
		env ${preload:+"LD_PRELOAD=$preload"} "$program" "$@" $ends
}

# The other end is in b: `other VARIANT ROLE WAY`; then $other is its process.
other() {
	: >"$work/other"
	(at b "$@") >"$work/other" 2>&1 &
	other=$!
	for look in $(seq 200); do
		grep -q ready "$work/other" && return
		sleep 0.02
	done
}

end_other() {
	kill "$other" 2>/dev/null || true
	wait "$other" 2>/dev/null || true
}

# A line of results: what, whose, then figures if there are any.
note() {
	echo "$@" >>"$results"
}

# measure WHAT VARIANT WAY ROLE OTHERS-VARIANT OTHERS-ROLE
measure() {
	other "$5" "$6" block
	note "$1" "$2" 1 "$( (at a "$2" "$4" "$3") 2>"$work/err")"
	end_other
}

round() {
	for way in block epoll poll select; do
		measure "ping-$way" spinning $way ping spinning echo
		measure "ping-$way" kernel $way ping kernel echo
	done
	for variant in spinning kernel; do
		measure pair $variant epoll pair $variant echo-any
	done
	for variant in sleeping kernel; do
		measure hear $variant epoll hear kernel ticks
		measure crowd $variant epoll crowd kernel ticks
	done
}

is_driven() {
	grep -q 'is driven by xdp' "$work/log.a" || {
		echo 'The library did not take the interface; its log:' >&2
		cat "$work/log.a" >&2
		exit 1
	}
}

for number in $(seq "${ROUNDS:-15}"); do
	round
	is_driven
	if [ "$number" -le "${IDLE_ROUNDS:-1}" ]; then
		note idle sleeping 1 "$( (at a sleeping idle epoll) 2>"$work/err")"
		note idle spinning 1 "$( (at a default idle epoll) 2>"$work/err")"
		note idle kernel 1 "$( (at a kernel idle epoll) 2>"$work/err")"
	fi
	note end
done
python3 "$(dirname "$0")/ready_rates.py" "$results" "$json"
