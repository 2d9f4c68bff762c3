#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UDP of 64 bytes over veth by ways in turn: bare AF_XDP (the floor), the library,
# the kernel. There and back, one way in two batches, and sockperf in its four
# modes. Each end has a processor of its own, and nothing else should run. Prints
# medians and writes them to JSON-FILE.
# With VMA_RING (contrib/card-bench) bare AF_XDP is left out, and LIBRARY may be a list.
# LAB_CPUS_A and LAB_CPUS_B are other processors for the ends.
# Usage: [ROUNDS=N] [SOCKPERF_ROUNDS=N] udp_rates.sh PROGRAM LIBRARY JSON-FILE
set -eu
program=$1
json=$3
[ "$(nproc)" -ge 2 ] || { echo 'This takes two processors.' >&2; exit 1; }
. "$(dirname "$0")/udp_lab.sh"
library=$(preload_of "$2")
mac_b=$mac
mac_a=$(ip -n $a -br link show v0 | awk '{ print $3 }')
ip -n $b neighbour replace 10.79.0.1 lladdr "$mac_a" dev v0 nud permanent
results=$work/results
floor=floor
[ -z "${VMA_RING:-}" ] || floor=

# (at END VARIANT COMMAND...): becomes the command, in the end's namespace, on its
# processor, and with the sockets that the variant begins with.
at() {
	case $1 in
	a) set -- $a "${LAB_CPUS_A:-0}" "$@" ;;
	b) set -- $b "${LAB_CPUS_B:-1}" "$@" ;;
	esac
	namespace=$1 processor=$2 variant=$4 preload=
	export VMA_LOG_FILE="$work/log.$3"
	shift 4
	case $variant in
	latency-*) export VMA_SPEC=latency ;;
	default-sleeping) export VMA_RX_POLL=0 ;;
	esac
	case $variant in
	latency-* | default-*) preload=$library ;;
	esac
	exec ip netns exec "$namespace" taskset -c "$processor" timeout 20 \
		env ${preload:+"LD_PRELOAD=$preload"} "$@"
}

# (rates END VARIANT ROLE BATCH)
rates() {
	case $2 in
	floor) way=raw ;;
	*-waiting) way=block ;;
	*) way=spin ;;
	esac
	case $1 in
	a) at a "$2" "$program" $way "$3" 10.79.0.1 10.79.0.2 "$mac_b" "$4" ;;
	b) at b "$2" "$program" $way "$3" 10.79.0.2 10.79.0.1 "$mac_a" "$4" ;;
	esac
}

wait_for() {
	for look in $(seq 200); do
		grep -q "$1" "$2" && return
		sleep 0.02
	done
	return 1
}

# The other end is in a: first CONDITION COMMAND...; then `$first` is its process.
first() {
	condition=$1
	shift
	: >"$work/first"
	("$@") >"$work/first" 2>&1 &
	first=$!
	wait_for "$condition" "$work/first" || true
}

end_first() {
	kill "$first" 2>/dev/null || true
	wait "$first" 2>/dev/null || true
}

# A line of results: what, whose, batch, then figures if there are any.
note() {
	echo "$@" >>"$results"
}

ping_pong() {
	first ready rates a "$1" echo 1
	note ping "$1" 1 "$( (rates b "$1" ping 1) 2>/dev/null)"
	end_first
}

one_way() {
	first ready rates a "$1" count "$2"
	(rates b "$1" flood "$2") 2>/dev/null &
	flood=$!
	wait $first || true
	kill $flood
	wait $flood 2>/dev/null || true
	note rate "$1" "$2" "$(sed -n '/^[0-9]/p' "$work/first")"
}

# (sockperf_run SERVER-VARIANT CLIENT-VARIANT MODE OPTION...). The server says that
# it is ready before its socket is.
sockperf_run() {
	server=$1 client=$2 mode=$3
	shift 3
	first 'to terminate' at a "$server" sockperf server -i 10.79.0.1 \
		-p 7310 --nonblocked
	sleep 0.2
	(at b "$client" sockperf "$mode" -i 10.79.0.1 -p 7310 "$@") \
		>"$work/sockperf" 2>&1 || true
	end_first
	note "sockperf-$mode" "${server%%-*}" 1 "$(awk '
		/Message Rate is/ { rate = $(NF - 1) }
		/percentile 50.000/ { median = $NF * 1000 }
		/percentile 99.900/ { tail = $NF * 1000 }
		END { print rate, median, tail }' "$work/sockperf")"
}

# Where the client has two threads the one that sends spins, and the other shall
# not.
sockperf_round() {
	sockperf_run "$1" "$1" ping-pong --nonblocked -m 64 -t 1
	sockperf_run "$1" "$1" throughput -m 64 -t 1
	sockperf_run "$1" "$2" under-load -m 64 -t 1 --mps 10000
	sockperf_run "$1" "$2" playback --data-file "$work/playback"
}

round() {
	for variant in $floor latency-looking latency-waiting default-waiting \
		kernel-looking kernel-waiting; do
		ping_pong $variant
	done
	for variant in $floor latency-looking kernel-looking; do
		one_way $variant 1
		one_way $variant 32
	done
	note end
}

is_driven() {
	grep -q "is driven by ${VMA_RING:-xdp}" "$work/log.a" "$work/log.b" || {
		echo 'The library did not take the interface; its log:' >&2
		cat "$work/log.a" "$work/log.b" >&2
		exit 1
	}
}

# a message of 64 bytes each tenth of a millisecond
seq 10000 | awk '{ printf "%.6f, 64\n", $1 / 10000 }' >"$work/playback"
for number in $(seq "${ROUNDS:-15}"); do
	round
	is_driven
done
for number in $(seq "${SOCKPERF_ROUNDS:-5}"); do
	sockperf_round kernel-looking kernel-waiting
	sockperf_round latency-looking default-sleeping
	note end
done
python3 "$(dirname "$0")/udp_rates.py" "$results" "$json"
