#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sending over AF_XDP: a scenario of udp_tx.py runs on libc and under the library,
# and what it was told and what came over the wire must be the same.
. "${srcdir:-.}/tests/system/udp_lab.sh"

tx_program="/usr/bin/python3 $srcdir/tests/system/udp_tx.py"

# What the kernel's UDP has sent in namespace b.
kernel_sent_cnt() {
	ip netns exec $b cat /proc/net/snmp |
		awk '/^Udp:/ { n = $5 } END { print n }'
}

# observe LOG SCENARIO: both sides of it in $work/told and $work/wire; the number of
# datagrams that the kernel sent in $by_kernel.
observe() {
	local before
	start - $tx_program sniff || return 1
	before=$(kernel_sent_cnt)
	(in_ns $b "$1" timeout 60 $tx_program "$2") >"$work/told" 2>&1 ||
		{ cat "$work/told"; return 1; }
	for _ in $(seq 200); do
		kill -0 "$server" 2>/dev/null || break
		sleep 0.02
	done
	grep -v ready "$work/out" >"$work/wire"
	end_server
	by_kernel=$(($(kernel_sent_cnt) - before))
}

# same_as_libc SCENARIO MOST: at most so many datagrams go by the kernel.
same_as_libc() {
	observe - "$1" || return 1
	mv "$work/told" "$work/told.libc"
	mv "$work/wire" "$work/wire.libc"
	observe b.log "$1" || return 1
	diff "$work/told.libc" "$work/told" &&
		diff "$work/wire.libc" "$work/wire" || return 1
	grep -q "datagram to 9: 3 bytes" "$work/wire" ||
		{ echo "not all was seen"; return 1; }
	! grep WRONG "$work/wire" || return 1
	[ "$by_kernel" -le "$2" ] ||
		{ echo "$by_kernel datagrams by the kernel"; return 1; }
}

every_length() { same_as_libc lengths 2; }
# What is refused by the kernel's socket in half of the modes may be told by the
# next send, which is the kernel's then.
mtu_discovery() { same_as_libc discovery 6; }
ttl_and_tos() { same_as_libc headers 1; }
gathered_by_cork() { same_as_libc gathered 5; }
refused_by_the_peer() {
	ip netns exec $a sysctl -q net.ipv4.icmp_ratelimit=0
	in_three_tries same_as_libc refused 1
}
# Of 14 wishes the kernel refuses five and sends at most one.
control_messages() {
	ip -n $b address add 10.78.0.3/24 dev v0
	same_as_libc controlled 10
}
# Up to 128 fragments are ours, more are the kernel's.
many_fragments() {
	ip -n $b link set v0 mtu 500
	same_as_libc pieces 2 && expect "$by_kernel" 2
}
mtu_changes() { same_as_libc changing 1; }

# As if the link said so.
mtu_by_option() {
	local status
	ip -n $b link set v0 mtu 1000
	observe - lengths || return 1
	mv "$work/told" "$work/told.libc"
	mv "$work/wire" "$work/wire.libc"
	ip -n $b link set v0 mtu 1500
	export VMA_MTU=1000
	observe b.log lengths
	status=$?
	unset VMA_MTU
	[ $status = 0 ] && diff "$work/told.libc" "$work/told" &&
		diff "$work/wire.libc" "$work/wire" && [ "$by_kernel" -le 2 ]
}

# Memory is asked for by a call that the program sees, as its own comes first.
pages_by_option() {
	local type
	for type in 0 1 2; do
		(
			export VMA_MEM_ALLOC_TYPE=$type
			in_ns $b b.log timeout 60 "$builddir/tests/shim/options" \
				pages
		) >"$work/pages" 2>&1
		grep -v '\[VMA_' "$work/pages" | grep -q "huge pages asked for: $((type == 2))" ||
			{ echo "$type: $(cat "$work/pages")"; return 1; }
	done
}

# They have 2 KB each, and 2 MB more are asked for, to begin where a large page does.
frames_by_option() {
	local cnt
	for cnt in 1024 4096 8192; do
		(
			export VMA_XDP_FRAMES=$cnt
			in_ns $b b.log timeout 60 "$builddir/tests/shim/options" \
				pages
		) >"$work/pages" 2>&1
		expect "$(grep -oE ' (4096|10240|18432) ' "$work/pages" | sort -u)" \
			" $((cnt * 2 + 2048)) " || { cat "$work/pages"; return 1; }
	done
}

# A router between them, and 1000 bytes beyond it:
#
#   b v0 10.78.0.2 -- v1 10.78.0.254 r v2 -- 1000 -- v0 10.78.0.1, .100 and on a
r=vma-ur.$$
put_router_between() {
	local i
	ip netns add $r && ip -n $b link del v0 &&
		ip link add v0 netns $b type veth peer name v1 netns $r &&
		ip link add v0 mtu 1000 netns $a type veth \
			peer name v2 mtu 1000 netns $r &&
		ip -n $b address add 10.78.0.2/32 dev v0 &&
		ip -n $a address add 10.78.0.1/32 dev v0 &&
		ip -n $r address add 10.78.0.254/32 dev v1 || return 1
	for i in $a,v0 $b,v0 $r,v1 $r,v2; do
		ip -n ${i%,*} link set ${i#*,} up || return 1
	done
	for i in $(seq 100 120); do
		ip -n $a address add 10.78.0.$i/32 dev v0 || return 1
	done
	ip netns exec $r sysctl -qw net.ipv4.ip_forward=1 \
		net.ipv4.icmp_ratelimit=0 &&
		ip -n $r route add 10.78.0.2 dev v1 &&
		ip -n $r route add 10.78.0.0/24 dev v2 &&
		ip -n $b route add 10.78.0.254 dev v0 &&
		ip -n $b route add 10.78.0.0/24 via 10.78.0.254 &&
		ip -n $a route add 10.78.0.0/24 dev v0 &&
		ip netns exec $r sysctl -qw net.ipv4.conf.v2.proxy_arp=1 &&
		ip netns exec $b ping -q -c 1 -W 2 10.78.0.1 >/dev/null
}

# with_router CASE ARGUMENTS...
with_router() {
	local status
	put_router_between && "$@"
	status=$?
	ip netns del $r
	return $status
}

narrow_way() { with_router in_three_tries same_as_libc narrow 1; }

way_is_forgotten() {
	ip netns exec $b sysctl -qw net.ipv4.route.mtu_expires=2
	with_router in_three_tries same_as_libc forgotten 1
}

known_way() {
	expect "$(in_ns $b - $tx_program teach)" "taught: EMSGSIZE" &&
		same_as_libc known 1
}
way_known_before() { with_router in_three_tries known_way; }

run_cases every_length mtu_discovery ttl_and_tos gathered_by_cork refused_by_the_peer \
	control_messages many_fragments mtu_changes narrow_way \
	way_is_forgotten way_known_before mtu_by_option pages_by_option \
	frames_by_option
