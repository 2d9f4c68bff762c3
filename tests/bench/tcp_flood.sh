#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What a flood of SYNs does to a server over veth, which answers them by cookies.
#
# First the instructions of a SYN, by callgrind: all that the process does more than without
# any, for a SYN that is answered and for one that is dropped (net.ipv4.tcp_syncookies 0).
# The sender is behind a gateway; what the kernel does for either is not in it.
#
# Then the rate of an established connection from a client on the kernel, by turns: alone;
# with as many frames on the wire that are not for this host, which is what the flooder and
# the wire cost; and in the flood. The server is ours, and then the kernel's. Each end has a
# processor, and nothing else should run.
# Usage: [ROUNDS=N] [RATE=SYNS_PER_SECOND] tcp_flood.sh PROGRAM FLOOD LIBRARY
set -eu
program=$1
flood=$2
. "$(dirname "$0")/udp_lab.sh"
library=$(preload_of "$3")
rate=${RATE:-20000}
ip -n $b route add 10.80.0.0/16 via 10.79.0.1
ip netns exec $a ping -q -c 1 10.79.0.2 >/dev/null
mac=$(ip netns exec $b cat /sys/class/net/v0/address)
nobody=02:00:00:00:00:01

# serve WHOSE [COMMAND...]: becomes the server in b.
serve() {
	whose=$1
	shift
	[ "$whose" = theirs ] || export VMA_LOG_FILE="$work/log" LD_PRELOAD="$library"
	exec ip netns exec $b "$@" "$program" serve block 10.79.0.2
}
# A listener is ours from its first wait on.
await_server() {
	for look in $(seq 400); do
		if [ "$1" = theirs ]; then
			grep -q ready "$work/server" && return
		else
			grep -qs 'is driven by' "$work/log" && sleep 0.3 && return
		fi
		sleep 0.05
	done
	cat "$work/server" "$work/log" >&2
	exit 1
}
# send_syns MAC CNT RATE
send_syns() {
	exec ip netns exec $a taskset -c 1 "$flood" v0 "$1" 10.79.0.2 7009 "$2" "$3"
}

# instructions CNT: of a server under callgrind for so many SYNs.
instructions() {
	rm -f "$work/log" "$work/out"
	(serve ours valgrind -q --tool=callgrind --callgrind-out-file="$work/out") \
		>"$work/server" 2>&1 &
	echo_pid=$!
	await_server ours
	sleep 1
	(send_syns "$mac" "$1" 2000) >"$work/syns" 2>/dev/null
	end_server
	sed -n 's/^\(totals\|summary\): *//p' "$work/out" | head -n 1
}
# row NAME: the SYNs of the first thousand make connections that are half open.
row() {
	before=$(instructions 1000)
	after=$(instructions 21000)
	printf '%-40s %6d instructions   (%s)\n' "$1" $(((after - before) / 20000)) \
		"$(cat "$work/syns")"
}
ip netns exec $b sysctl -qw net.ipv4.tcp_max_syn_backlog=256 \
	net.ipv4.tcp_synack_retries=0
row 'a SYN that a cookie answers'
ip netns exec $b sysctl -qw net.ipv4.tcp_syncookies=0
row 'a SYN that is dropped'
ip netns exec $b sysctl -qw net.ipv4.tcp_syncookies=1

# measure NAME WHOSE MAC: megabits per second.
measure() {
	rm -f "$work/log"
	(serve "$2" taskset -c 0) >"$work/server" 2>&1 &
	echo_pid=$!
	await_server "$2"
	flood_pid=
	if [ "$3" != - ]; then
		(send_syns "$3" 200000 "$rate") >"$work/syns" 2>/dev/null &
		flood_pid=$!
		sleep 0.3
	fi
	echo "$1 $(ip netns exec $a taskset -c 1 timeout 20 "$program" send block \
		10.79.0.2)" >>"$work/results"
	[ -z "$flood_pid" ] || kill "$flood_pid"
	[ -z "$flood_pid" ] || wait "$flood_pid"
	end_server
}
for round in $(seq "${ROUNDS:-5}"); do
	for whose in ours theirs; do
		measure "$whose.alone" $whose -
		measure "$whose.beside" $whose $nobody
		measure "$whose.flood" $whose "$mac"
	done
done
for whose in ours theirs; do
	for way in alone beside flood; do
		median=$(awk -v name=$whose.$way '$1 == name { print $2 }' "$work/results" |
			sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
		[ $way != alone ] || alone=$median
		[ $way != beside ] || beside=$median
		echo "$whose $way $median $alone ${beside:-$alone}"
		beside=${beside:-}
	done
	beside=
done | awk -v rate="$rate" '
	BEGIN { printf "A connection at %d SYNs per second, Mbit/s:\n", rate }
	{ printf "%-8s %-8s %8d  %.2f of alone", $1, $2, $3, $3 / $4
	  if ($2 == "flood") printf "  %.2f of what the wire leaves", $3 / $5
	  printf "\n" }'
