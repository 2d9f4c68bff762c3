#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Software that was not written for this card: rdma-core's and perftest's own
# programs, as the distribution packages them. And what is left behind after
# a process was killed: nothing.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_two 2
# What perftest does not free is not our affair.
export ASAN_OPTIONS=detect_leaks=0
tmp=$(mktemp -d)
trap 'lab_end; rm -rf "$tmp"' EXIT

in_ns a timeout 60 ibv_devices >"$tmp/out" 2>&1
grep -q mlx5_0 "$tmp/out" && grep -q mlx5_1 "$tmp/out"
tap $? ibv_devices_lists_both

in_ns a timeout 60 ibv_devinfo -v >"$tmp/out" 2>&1
[ "$(grep -c 'PORT_ACTIVE (4)' "$tmp/out")" = 2 ]
tap $? ibv_devinfo_shows_active_ports
grep -q 'link_layer:.*Ethernet' "$tmp/out" && grep -q RAW_IP_CSUM "$tmp/out" &&
	grep -q MANAGED_FLOW_STEERING "$tmp/out"
tap $? ibv_devinfo_shows_capabilities

# perftest NAME PROGRAM OPTIONS: server in b, client in a, which starts when the
# server has its rule: there is no hand-shake, and a lost first frame is waited for.
has_rule() {
	grep -q 'create_flow: ok$' "$tmp/server"
}
perftest() {
	name=$1 program=$2
	shift 2
	a=$(mac_of a) b=$(mac_of b)
	ends="-J $LAB_IP_B -j $LAB_IP_A -K 5000 -k 5001"
	: >"$tmp/server"
	in_ns b SOFTCX_TRACE=1 timeout 120 "$program" --server -d mlx5_0 -B "$b" -E "$a" \
		$ends "$@" >"$tmp/server" 2>&1 </dev/null &
	server=$!
	wait_for has_rule
	sleep 1
	in_ns a timeout 120 "$program" --client -d mlx5_0 -B "$a" -E "$b" \
		$ends "$@" >"$tmp/client" 2>&1 </dev/null
	result=$?
	wait $server || { echo "# server: $?"; result=1; }
	[ $result = 0 ] || sed 's/^/# /' "$tmp/client" "$tmp/server"
	grep -E '^ *[0-9]+ +[0-9]+ ' "$tmp/client" | sed 's/^/# /'
	tap $result "$name"
}

if command -v raw_ethernet_lat >/dev/null; then
	perftest raw_ethernet_lat raw_ethernet_lat -s 128 -n 5000
	# One way, and without flow control: all has to find room.
	perftest raw_ethernet_bw raw_ethernet_bw -s 1024 -n 8000 -r 8192
	# Its options are the program's own needs, see README.
	perftest raw_ethernet_burst_lat raw_ethernet_burst_lat -s 128 \
		-n 128 -Q 1 --burst_size=16 --reply_every=128 \
		--rate_limit=100 --rate_units=M --rate_limit_type=PP
else
	for name in lat bw burst_lat; do
		tap 0 "raw_ethernet_$name # SKIP needs perftest"
	done
fi

# A killed process takes its filter with it, and the next one starts at once. Its
# programs by their numbers: others on this machine may have cards, too.
filter_is_gone() {
	for id in $filter; do
		! bpftool prog show id "$id" >/dev/null 2>&1 || return 1
	done
}
if command -v bpftool >/dev/null; then
	: >"$tmp/out"
	(sleep 300) | in_ns a "${builddir:-.}/tests/softcx/exchange" \
		-m 02:00:00:00:00:01 >"$tmp/out" 2>&1 &
	wait_for grep -q ready "$tmp/out"
	victim=$(ip netns pids "$lab-a" | while read -r pid; do
		[ "$(cat /proc/$pid/comm)" = exchange ] && echo "$pid"
	done)
	filter=$(sed -n 's/^prog_id:[[:space:]]*//p' /proc/$victim/fdinfo/* |
		sort -u)
	[ -n "$filter" ] && ! filter_is_gone
	tap $? filter_is_there
	kill -KILL $victim
	[ -n "$filter" ] && wait_for filter_is_gone
	tap $? sigkill_leaves_no_filter
else
	tap 0 "filter_is_there # SKIP needs bpftool"
	tap 0 "sigkill_leaves_no_filter # SKIP needs bpftool"
fi
in_ns a timeout 60 ibv_devinfo >"$tmp/out" 2>&1 && grep -q PORT_ACTIVE "$tmp/out"
tap $? next_start_works_at_once
tap_end
