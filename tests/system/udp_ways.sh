#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Datagrams that take several ways, or ways that change: a program must see what it
# sees on the kernel. b's second address is behind another interface:
#
#      10.79.0.1 --- w0 -------- veth -------- w0 --- 10.79.0.2
. "${srcdir:-.}/tests/system/udp_lab.sh"

ways="/usr/bin/python3 $srcdir/tests/system/udp_ways.py"
stats=$builddir/tools/vma_stats/vma_stats

# Multicast and broadcasts are for v0.
for_all_of() {
	ip -n "$1" route add 224.0.0.0/4 dev v0 &&
		ip -n "$1" route add broadcast 255.255.255.255 dev v0
}

make_ways() {
	make_lab &&
		ip link add w0 netns $a type veth peer name w0 netns $b &&
		ip -n $a address add 10.79.0.1/24 dev w0 &&
		ip -n $b address add 10.79.0.2/24 dev w0 &&
		ip -n $b address add 10.99.0.1/32 dev lo &&
		ip -n $b route add local 10.99.0.0/16 dev lo &&
		ip -n $a link set w0 up && ip -n $b link set w0 up &&
		for_all_of $a && for_all_of $b &&
		ip netns exec $b sysctl -qw net.ipv4.conf.all.rp_filter=0 \
			net.ipv4.conf.v0.rp_filter=0 net.ipv4.conf.w0.rp_filter=0 &&
		ip netns exec $b ping -q -c 1 -W 2 10.79.0.1 >/dev/null || return 1
	: >"$work/peer"
	(in_ns $b - $ways peer) >"$work/peer" 2>&1 &
	wait_for ready "$work/peer"
}

# see LOG CASE [ARGUMENT...]: what the program prints, in $work/out; it stays.
see() {
	local log=$1
	shift
	make_ways || return 1
	: >"$work/out"
	(in_ns $a "$log" $ways "$@") >"$work/out" 2>&1 &
	server=$!
	for _ in $(seq 1500); do
		grep -q '^done' "$work/out" && return 0
		[ -e /proc/$server ] || break
		sleep 0.02
	done
	echo "did not end:"
	cat "$work/out"
	return 1
}

# same CASE [ARGUMENT...]: on the kernel, then under the library.
same() {
	see - "$@" && mv "$work/out" "$work/out.libc" && see a.log "$@" &&
		diff "$work/out.libc" "$work/out" || return 1
	"$stats" -p $server --why >"$work/why"
	"$stats" -p $server --raw >"$work/raw"
}

# said PATTERN: by vma_stats --why.
said() {
	grep -qE "$1" "$work/why" || { echo "no \"$1\" in:"; cat "$work/why"; return 1; }
}

# count_of FD COUNTER
count_of() {
	awk -v name="socket.$1.$2" '$1 == name { n = $2 } END { print n + 0 }' \
		"$work/raw"
}

# counted FD COUNTER=VALUE...
counted() {
	local fd=$1 pair
	shift
	for pair in "$@"; do
		expect "$fd.${pair%=*}=$(count_of "$fd" "${pair%=*}")" \
			"$fd.$pair" || return 1
	done
}

# by_rings FD CNT: sent so many or more, and by the kernel those few that come while a new
# next hop is not known yet.
by_rings() {
	local ours theirs
	ours=$(count_of "$1" tx_packets) theirs=$(count_of "$1" tx_os_packets)
	[ "$ours" -ge "$2" ] && [ $((theirs * 5)) -le "$ours" ] ||
		{ echo "$1: $ours sent by our rings, $theirs by the kernel"; return 1; }
}

# The library's socket, one that is connected to the group, one bound to another one. What is
# said of sends is the last way that was looked up, which need not be that of the last send.
multicast() {
	same multicast &&
		said '^  receives  accelerated by ring' &&
		counted 3 rx_packets=3 rx_os_packets=2 tx_packets=3 tx_os_packets=1 &&
		expect "$(grep -c '^  receives .*\[MULTICAST\]' "$work/why")" 2
}

broadcast() {
	same broadcast &&
		counted 3 rx_packets=3 rx_os_packets=2 tx_packets=3 tx_os_packets=2
}

bound_to_devices() {
	in_three_tries same devices &&
		said '^  receives  accelerated by ring [0-9] on v0 \(xdp: [a-z]*\)$' &&
		said '^  receives  accelerated by ring [0-9] on w0 \(xdp: [a-z]*\)$' &&
		counted 3 rx_os_packets=0 && counted 4 rx_os_packets=0
}

follows_routes() {
	same routes &&
		by_rings 3 50 && by_rings 4 50 && counted 3 rx_os_packets=0
}
routes_change() {
	in_three_tries follows_routes
}

# The kernel has those alone that meet a rule as it changes.
renamed_in_a_stream() {
	see a.log renamed || return 1
	"$stats" -p $server --raw >"$work/raw"
	grep -qx 'twice none' "$work/out" && grep -qxE 'late (none|few)' "$work/out" &&
		grep -qxE 'lost (none|few)' "$work/out" || { cat "$work/out"; return 1; }
	[ "$(count_of 3 rx_os_packets)" -le 20 ] ||
		{ echo "by the kernel: $(count_of 3 rx_os_packets)"; return 1; }
}

peers_are_new() {
	# but for a moment after each change
	same crowd && counted 3 rx_os_packets=0 &&
		[ "$(count_of 3 tx_packets)" -ge 200 ]
}

# What only the kernel sends waits for room behind what we have sent.
batches_wait_for_room() {
	same batches && grep -qx 'batch: 100' "$work/out" &&
		said '^  receives  accelerated by ring'
}

changed_root() {
	mkdir -p "$work/nothing"
	same confined "$work/nothing" &&
		counted 3 rx_packets=201 tx_packets=201 rx_os_packets=0 &&
		counted 4 rx_packets=200 tx_packets=200 rx_os_packets=0
}

changed_namespace() {
	same elsewhere /run/netns/$b && said '\[NAMESPACE\]' &&
		counted 3 rx_packets=1 tx_packets=1
}

rules_of_udp() {
	cat >"$work/rules" <<-'END'
	application-id * *
	use os udp_receiver *:7001
	use os udp_sender *:7003
	use os udp_connect *:7004
	END
	export VMA_CONFIG_FILE=$work/rules
	same ruled &&
		said 'rules:2: use os udp_receiver \*:7001' &&
		said 'rules:4: use os udp_connect \*:7004' &&
		counted 3 rx_packets=50 rx_os_packets=0 tx_packets=50 &&
		counted 4 rx_packets=0 rx_os_packets=50 tx_packets=0 &&
		counted 5 rx_packets=1 tx_packets=1 tx_os_packets=50 &&
		counted 6 tx_packets=0 tx_os_packets=1
}

# large_by MODE: frames that take several buffers.
large_by() {
	local len in_a in_b
	ip -n $a link set v0 mtu 9000 && ip -n $b link set v0 mtu 9000 || return 1
	export VMA_XDP_MODE=$1
	start a.log $program echo 0.0.0.0 7000 || return 1
	in_a=$(kernel_cnt $a) in_b=$(kernel_cnt $b)
	for len in 64 1473 4000 4096 8192 8972; do
		expect "$(ask b.log 50 $len)" "right 50" || return 1
	done
	is_accelerated $a "$in_a" 300 && is_accelerated $b "$in_b" 300 &&
		wait_for "v0 is driven by xdp ($1" "$work/a.log"
}

large_frames() {
	large_by native && end_server && large_by generic
}

is_listening() {
	ip netns exec $a ss -Htln 'sport = 7100' | grep -q .
}

# As many bytes by TCP as are asked for, in packets of up to 64 KB.
bulk() {
	(in_ns $a - timeout 20 socat -u TCP-LISTEN:7100 OPEN:"$work/bulk",creat) &
	wait_until is_listening || return 1
	(in_ns $b - timeout 20 socat -u EXEC:"head -c $1 /dev/zero" TCP:10.78.0.1:7100)
	wait $!
	expect "$(stat -c %s "$work/bulk")" "$1"
}

# The same where the program gets everything in one buffer; native XDP could not.
single_buffers() {
	export VMA_XDP_MULTI_BUFFER=0
	large_by generic && wait_for 'xdp (generic, single buffers)' "$work/a.log" &&
		bulk 100000000 && end_server && large_by native
}

run_cases multicast broadcast bound_to_devices routes_change renamed_in_a_stream \
	peers_are_new batches_wait_for_room changed_root changed_namespace rules_of_udp \
	large_frames single_buffers
