#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Unmodified UDP programs over AF_XDP.
. "${srcdir:-.}/tests/system/udp_lab.sh"

both_ends_are_accelerated() {
	local in_a in_b
	start a.log $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a) in_b=$(kernel_cnt $b)
	expect "$(ask b.log 2000 64)" "right 2000" &&
		is_accelerated $a "$in_a" 2000 && is_accelerated $b "$in_b" 2000 &&
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log"
}

# stats_of PID COUNTER: the sum over its sockets.
stats_of() {
	"$builddir/tools/vma_stats/vma_stats" -p "$1" --raw |
		awk -v name="$2" '{ sub(/^socket\.[0-9]*\./, "") }
			$1 == name { n += $2 } END { print n + 0 }'
}

# ring_stat PID COUNTER
ring_stat() {
	"$builddir/tools/vma_stats/vma_stats" -p "$1" --raw |
		awk -v name="ring.0.$2" '$1 == name { n = $2 }
			END { print n + 0 }'
}

# one_by_ring [ADDRESS]: what is asked comes by the ring, and the answer goes by it.
one_by_ring() {
	local pid rx tx
	pid=$(ip netns pids $a | head -1)
	rx=$(ring_stat "$pid" rx_pkts) tx=$(ring_stat "$pid" tx_pkts)
	[ "$(ask - 1 64 "${1:-10.78.0.1}" 2)" = "right 1" ] &&
		[ "$(ring_stat "$pid" rx_pkts)" -gt "$rx" ] &&
		[ "$(ring_stat "$pid" tx_pkts)" -gt "$tx" ]
}

# 2000 short datagrams by our rings, and 50 that are longer than a frame by the
# kernel; its own counters say the same of the namespace.
counters_agree_with_the_kernel() {
	local in_a pid now
	start a.log $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 2000 64)" "right 2000" &&
		expect "$(ask - 50 3000)" "right 50" || return 1
	pid=$(ip netns pids $a | head -1)
	now=$(kernel_cnt $a)
	expect "$(stats_of "$pid" rx_os_packets)" $((now - in_a)) &&
		expect "$(($(stats_of "$pid" rx_packets) + now - in_a))" 2050 &&
		expect "$(($(stats_of "$pid" rx_bytes) +
			$(stats_of "$pid" rx_os_bytes)))" 278000 &&
		expect "$(($(stats_of "$pid" tx_packets) +
			$(stats_of "$pid" tx_os_packets)))" 2050 &&
		expect "$(($(stats_of "$pid" tx_bytes) +
			$(stats_of "$pid" tx_os_bytes)))" 278000 &&
		"$builddir/tools/vma_stats/vma_stats" -p "$pid" --why |
		grep -q "^  receives  accelerated by ring 0 on v0 (${LAB_CARD:-xdp}: "
}

sizes_up_to_a_frame() {
	local len in_a
	start a.log $program echo 0.0.0.0 7000 || return 1
	in_a=$(kernel_cnt $a)
	for len in 1 64 255 256 257 1000 1471 1472; do
		expect "$(ask b.log 50 $len)" "right 50" || return 1
	done
	is_accelerated $a "$in_a" 400
}

# sent_by_kernel NAMESPACE: datagrams.
sent_by_kernel() {
	ip netns exec "$1" awk '/^Udp:/ { n = $5 } END { print n }' /proc/net/snmp
}

# They leave in pieces of ours; what arrives in pieces is the kernel's to put together.
longer_ones() {
	local len sent_a sent_b in_a
	start a.log $program echo 0.0.0.0 7000 || return 1
	in_a=$(kernel_cnt $a)
	sent_a=$(sent_by_kernel $a) sent_b=$(sent_by_kernel $b)
	for len in 1473 9000 65507; do
		expect "$(ask b.log 20 $len)" "right 20" || return 1
	done
	sent_a=$(($(sent_by_kernel $a) - sent_a))
	sent_b=$(($(sent_by_kernel $b) - sent_b))
	[ $sent_a -le 3 ] && [ $sent_b -le 3 ] &&
		expect "$(($(kernel_cnt $a) - in_a))" 60 ||
		{ echo "$sent_a and $sent_b sent by the kernel"; return 1; }
}

peer_on_the_kernel() {
	local in_a
	start a.log $program echo 0.0.0.0 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 1000 300)" "right 1000" && is_accelerated $a "$in_a" 1000
}

# It stays with the kernel.
program_has_names_of_libbpf() {
	library=$library:$builddir/tests/system/.libs/namesakes.so \
		start a.log $program echo 0.0.0.0 7000 || return 1
	expect "$(ask - 100 300)" "right 100" &&
		wait_for "names of libbpf's" "$work/a.log"
}

server_on_the_kernel() {
	local in_b
	start - $program echo 10.78.0.1 7000 || return 1
	in_b=$(kernel_cnt $b)
	expect "$(ask b.log 1000 300)" "right 1000" && is_accelerated $b "$in_b" 1000
}

# has_port PORT: somebody in a has it.
has_port() {
	ip netns exec $a grep -q ":$(printf %04X "$1") " /proc/net/udp
}

other_traffic_is_undisturbed() {
	start a.log $program echo 10.78.0.1 7000 || return 1
	expect "$(ask b.log 10 64)" "right 10" || return 1
	ip netns exec $b ping -q -c 3 -i 0.05 -W 2 10.78.0.1 >/dev/null ||
		{ echo "no answer to ping"; return 1; }
	ip netns exec $a timeout 10 socat UDP4-RECVFROM:7001,bind=10.78.0.1 \
		SYSTEM:'read line; echo by the kernel' &
	wait_until has_port 7001 || return 1
	expect "$(ip netns exec $b timeout 5 bash -c 'exec 3<>/dev/udp/10.78.0.1/7001
		echo hello >&3 && head -n 1 <&3')" "by the kernel"
}

# 10,000 datagrams that nobody reads, and 4096 frames: they move to ordinary
# memory, and the socket beside them loses nothing.
slow_reader_takes_no_frames() {
	local in_a pid
	start a.log $program hoarding 10.78.0.1 7000 1000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 30 $program ask_hoarder 10.78.0.1 7000 \
		1000) 2>&1)" "right 1000" &&
		wait_for 'hoarded 10000$' "$work/out" &&
		is_accelerated $a "$in_a" 11000 || return 1
	pid=$(ip netns pids $a | head -1)
	[ "$(ring_stat "$pid" rx_spilled)" -gt 5000 ] &&
		expect "$(ring_stat "$pid" rx_spill_drops)" 0
}

# child_hears_what WAY: what waited at the fork, and what came later.
child_hears_what() {
	start a.log $program heir 10.78.0.1 7000 "$1" || return 1
	(in_ns $b - $program bequeath 10.78.0.1 7000 early)
	wait_for alone "$work/out" || return 1
	(in_ns $b - $program bequeath 10.78.0.1 7000 late)
	wait_for 'heir 40$' "$work/out" &&
		wait_for 'a child process has it too' "$work/a.log"
}

child_of_a_parent_that_exits() {
	child_hears_what exit
}

child_of_a_parent_that_does_not_read() {
	child_hears_what stay
}

killed_process_leaves_nothing() {
	local round
	for round in 1 2 3 4 5; do
		start a.log $program echo 10.78.0.1 7000 || return 1
		expect "$(ask - 20 64)" "right 20" || return 1
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log" || return 1
		end_server
		! ip -n $a link show v0 | grep -q xdp ||
			{ echo "round $round: a program is left on v0"; return 1; }
	done
	start - $program echo 10.78.0.1 7000 &&
		expect "$(ask - 20 64)" "right 20"
}

killed_while_a_child_lives() {
	local child
	start a.log $program forking 10.78.0.1 7000 || return 1
	expect "$(ask - 20 64)" "right 20" || return 1
	end_server
	! ip -n $a link show v0 | grep -q xdp ||
		{ echo "a program is left on v0"; return 1; }
	# the child has the port, and so the next one says
	for child in $(ip netns pids $a); do kill -9 "$child"; done
}

program_closes_all_it_has() {
	local in_a
	start a.log $program closing 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask b.log 500 64)" "right 500" && is_accelerated $a "$in_a" 500
}

second_process_is_told_who_has_it() {
	local other
	start a.log $program echo 10.78.0.1 7000 || return 1
	wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log" || return 1
	(in_ns $a second.log $program echo 10.78.0.1 7002) >"$work/second" 2>&1 &
	other=$!
	wait_for 'interface in use by pid' "$work/second.log"
	local status=$?
	kill -9 $other
	wait $other 2>/dev/null
	return $status
}

# Anybody may take the name by which the owner is found; it keeps nobody out.
name_of_another_proves_nothing() {
	local index in_a
	index=$(ip netns exec $a cat /sys/class/net/v0/ifindex)
	(in_ns $a - socat ABSTRACT-LISTEN:"libvma/xdp/$index",fork -) >/dev/null 2>&1 &
	wait_until has_name "libvma/xdp/$index" || return 1
	start a.log $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" && is_accelerated $a "$in_a" 500
}

has_name() {
	ip netns exec $a grep -q "@$1\$" /proc/net/unix
}

foreign_program_is_respected() {
	ip -n $a link set dev v0 xdpgeneric obj \
		"$builddir/tests/system/pass.bpf.o" sec xdp || return 1
	start a.log $program echo 10.78.0.1 7000 || return 1
	wait_for 'XDP program of somebody else' "$work/a.log" &&
		expect "$(ask - 20 64)" "right 20" &&
		ip -n $a link show v0 | grep -q xdp
}

excluded_interface_is_left_alone() {
	export VMA_XDP_INTERFACES=eth7,v00
	start a.log $program echo 10.78.0.1 7000
	local status=$?
	unset VMA_XDP_INTERFACES
	[ $status = 0 ] || return 1
	expect "$(ask - 20 64)" "right 20" || return 1
	! ip -n $a link show v0 | grep -q xdp || { echo "v0 was taken"; return 1; }
}

# is_named_or_respected PATTERN [COMMAND...]: what would see packets; the server is
# started by the command.
is_named_or_respected() {
	local pattern=$1 status
	shift
	start a.log "$@" $program echo 10.78.0.1 7000 &&
		wait_for "not seen by: .*$pattern.*VMA_RESPECT_FIREWALL=1 keeps" \
			"$work/a.log" && wait_for 'v0 is driven' "$work/a.log" ||
		return 1
	end_server
	rm "$work/a.log"
	export VMA_RESPECT_FIREWALL=1
	start a.log "$@" $program echo 10.78.0.1 7000 &&
		wait_for "not seen by: .*$pattern" "$work/a.log" &&
		expect "$(ask - 20 64)" "right 20" &&
		! grep -q 'is driven' "$work/a.log"
	status=$?
	unset VMA_RESPECT_FIREWALL
	end_server
	rm -f "$work/a.log"
	return $status
}

firewall_is_named_or_respected() {
	ip netns exec $a nft add table ip guard &&
		ip netns exec $a nft add chain ip guard in \
			'{ type filter hook input priority 0; }' &&
		is_named_or_respected 'nftables ip guard in'
}

# The socket that is there goes back.
firewall_that_comes_later() {
	local status
	export VMA_RESPECT_FIREWALL=1
	start a.log $program echo 10.78.0.1 7000 &&
		wait_for 'v0 is driven' "$work/a.log" &&
		expect "$(ask - 20 64)" "right 20" &&
		ip netns exec $a nft add table ip guard &&
		ip netns exec $a nft add chain ip guard in \
			'{ type filter hook input priority 0; }' &&
		wait_for 'not seen by: nftables ip guard in; sockets go back' "$work/a.log" &&
		ip netns exec $a nft add rule ip guard in udp dport 7000 counter &&
		expect "$(ask - 20 64)" "right 20" &&
		ip netns exec $a nft list table ip guard | grep -q 'counter packets 20 '
	status=$?
	unset VMA_RESPECT_FIREWALL
	end_server
	rm -f "$work/a.log"
	return $status
}

filters_of_tc_are_named_or_respected() {
	ip netns exec $a tc qdisc add dev v0 clsact &&
		ip netns exec $a tc filter add dev v0 ingress \
			bpf bytecode '1,6 0 0 0' &&
		is_named_or_respected 'tc ingress v0'
}

# in_cgroup DIR COMMAND...: a process of a namespace has a /sys of its own, without
# cgroups.
in_cgroup='mount -t cgroup2 none /sys/fs/cgroup && dir=/sys/fs/cgroup/$1 && shift &&
	echo 0 >$dir/cgroup.procs && exec "$@"'

# As with IPAddressDeny= in a unit of systemd.
programs_of_the_cgroup_are_named_or_respected() {
	local dir=vma-test.$$ status
	mkdir "$work/cgroup" "$work/bpf" &&
		mount -t cgroup2 none "$work/cgroup" &&
		mount -t bpf none "$work/bpf" &&
		mkdir "$work/cgroup/$dir" &&
		bpftool prog load "$builddir/tests/system/cgroup.bpf.o" \
			"$work/bpf/deny" &&
		bpftool cgroup attach "$work/cgroup/$dir" ingress \
			pinned "$work/bpf/deny" &&
		is_named_or_respected 'cgroup ingress deny_nothing' \
			sh -c "$in_cgroup" sh "$dir"
	status=$?
	wait_until rmdir "$work/cgroup/$dir"
	umount "$work/bpf" "$work/cgroup"
	return $status
}

mode_is_chosen() {
	local mode
	for mode in native generic; do
		export VMA_XDP_MODE=$mode
		start a.log $program echo 10.78.0.1 7000 &&
			expect "$(ask b.log 200 64)" "right 200" &&
			wait_for "v0 is driven by ${LAB_CARD:-xdp} ($mode" "$work/a.log"
		local status=$?
		unset VMA_XDP_MODE
		[ $status = 0 ] || return 1
		end_server
	done
}

address_added_while_it_runs() {
	local in_a
	start a.log $program echo 0.0.0.0 7000 || return 1
	expect "$(ask - 10 64)" "right 10" || return 1
	ip -n $a address add 10.79.0.1/24 dev v0
	ip -n $b address add 10.79.0.2/24 dev v0
	ip netns exec $b ping -q -c 1 -W 2 10.79.0.1 >/dev/null
	wait_until one_by_ring 10.79.0.1 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64 10.79.0.1)" "right 500" &&
		is_accelerated $a "$in_a" 500
}

mac_changed_while_it_runs() {
	local in_a
	start a.log $program echo 10.78.0.1 7000 || return 1
	expect "$(ask - 10 64)" "right 10" || return 1
	ip -n $a link set v0 address 02:00:00:00:00:77
	ip -n $b neigh flush dev v0
	ip netns exec $b ping -q -c 1 -W 2 10.78.0.1 >/dev/null
	wait_until one_by_ring || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" && is_accelerated $a "$in_a" 500
}

# has_answers CNT
has_answers() {
	[ "$(grep -c right "$work/answers")" -ge "$1" ]
}

# peer_mac MAC WAY: b's address, of which a learns by asking anew, or is told while
# it thinks that it knows (the kernel's entry is valid before and after). Whoever
# asks all the time goes on to be answered, by the ring.
peer_mac() {
	ip -n $b link set v0 address "$1"
	if [ "$2" = told ]; then
		ip -n $a neigh replace 10.78.0.2 lladdr "$1" dev v0 nud permanent
	else
		ip -n $a neigh del 10.78.0.2 dev v0
	fi
	ip netns exec $a ping -q -c 1 -W 2 10.78.0.2 >/dev/null
	wait_until has_answers $(($(grep -c right "$work/answers") + 5)) &&
		{ fifty_by_ring || fifty_by_ring || fifty_by_ring; }
}
# Of the next answers; a machine that stands still may be late to learn where to.
fifty_by_ring() {
	local by_kernel
	by_kernel=$(stats_of "$pid" tx_os_packets)
	wait_until has_answers $(($(grep -c right "$work/answers") + 50)) || return 1
	by_kernel=$(($(stats_of "$pid" tx_os_packets) - by_kernel))
	[ $by_kernel -le 5 ] || { echo "$by_kernel of 50 by the kernel"; return 1; }
}

# Without IPv6, whose neighbours would be news at the same time.
peer_mac_changed_while_it_runs() {
	local asker status pid
	ip netns exec $a sysctl -qw net.ipv6.conf.v0.disable_ipv6=1
	start a.log $program echo 10.78.0.1 7000 || return 1
	pid=$(ip netns pids $a | head -1)
	: >"$work/answers"
	(in_ns $b - $program go_on_asking 10.78.0.1 7000) >"$work/answers" &
	asker=$!
	wait_until has_answers 1 && wait_until one_by_ring &&
		peer_mac 02:00:00:00:00:78 asked && peer_mac 02:00:00:00:00:79 told &&
		peer_mac 02:00:00:00:00:7a told && peer_mac 02:00:00:00:00:7b asked
	status=$?
	kill $asker
	wait $asker 2>/dev/null
	return $status
}

nobody_answers() {
	[ "$(ask - 1 64 "$1" 2 | tail -1)" = "right 0" ]
}

# b goes on to send to where the address was; that is the kernel's from then on, as
# it is on the kernel, which may forward it.
address_removed_while_it_runs() {
	local mac in_a pid rx
	ip -n $a address add 10.79.0.1/24 dev v0
	start a.log $program echo 0.0.0.0 7000 || return 1
	mac=$(ip netns exec $a cat /sys/class/net/v0/address)
	ip -n $b address add 10.79.0.2/24 dev v0
	ip -n $b neigh replace 10.79.0.1 lladdr "$mac" dev v0
	expect "$(ask - 10 64 10.79.0.1)" "right 10" || return 1
	ip -n $a address del 10.79.0.1/24 dev v0
	wait_until nobody_answers 10.79.0.1 || return 1
	pid=$(ip netns pids $a | head -1)
	rx=$(ring_stat "$pid" rx_pkts)
	(in_ns $b - $program shower 10.79.0.1 7000 20) &&
		expect "$(ask - 1 64)" "right 1" &&
		expect "$(($(ring_stat "$pid" rx_pkts) - rx))" 1 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" && is_accelerated $a "$in_a" 500
}

# Another link between the two: 10.79.0.1 and .2 on v1.
add_link() {
	ip link add v1 netns $a type veth peer name v1 netns $b &&
		ip -n $a address add 10.79.0.1/24 dev v1 &&
		ip -n $b address add 10.79.0.2/24 dev v1 &&
		ip -n $a link set v1 up && ip -n $b link set v1 up &&
		ip netns exec $b ping -q -c 1 -W 2 10.79.0.1 >/dev/null
}

# says_why PATTERN: of the server's only socket.
says_why() {
	"$builddir/tools/vma_stats/vma_stats" -p "$(ip netns pids $a | head -1)" \
		--why >"$work/why"
	grep -q "$1" "$work/why" || { cat "$work/why"; return 1; }
}

# Its only call sleeps on the first one when the second one comes.
interface_added_while_it_runs() {
	local in_a
	start a.log $program echo 0.0.0.0 7000 || return 1
	expect "$(ask - 10 64)" "right 10" && add_link &&
		wait_for 'v1 is driven by xdp' "$work/a.log" || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64 10.79.0.1)" "right 500" &&
		expect "$(ask - 500 64)" "right 500" &&
		is_accelerated $a "$in_a" 1000 &&
		says_why '^  receives  accelerated by ring 0 on v0 .*, ring 1 on v1 '
}

# A program that is started before there is any.
first_interface_added_while_it_runs() {
	local in_a
	ip -n $a link del v0
	start a.log $program echo 0.0.0.0 7000 && make_lab_again &&
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log" || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" &&
		is_accelerated $a "$in_a" 500 &&
		says_why '^  receives  accelerated by ring 0 on v0 '
}

# The interface is there, and has no address yet.
first_address_added_while_it_runs() {
	local in_a
	ip -n $a address flush dev v0
	start a.log $program echo 0.0.0.0 7000 &&
		ip -n $a address add 10.78.0.1/24 dev v0 &&
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log" || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" &&
		is_accelerated $a "$in_a" 500 &&
		says_why '^  receives  accelerated by ring 0 on v0 '
}

interface_deleted_while_it_runs() {
	start a.log $program echo 0.0.0.0 7000 || return 1
	expect "$(ask - 10 64)" "right 10" || return 1
	ip -n $a link del v0
	wait_for 'v0 cannot be driven any more' "$work/a.log" || return 1
	kill -0 "$server" || { echo "the program is gone"; return 1; }
	make_lab_again
	expect "$(ask - 10 64)" "right 10"
}

# is_said CNT TEXT: so often in the log of a.
is_said() {
	[ "$(grep -c "$2" "$work/a.log")" -ge "$1" ]
}

# Whoever reads late holds a datagram of each: neither places nor memory run out.
interface_lost_again_and_again() {
	local i in_a
	start a.log $program keeping 0.0.0.0 7000 || return 1
	for i in $(seq 40); do
		wait_until is_said "$i" "v0 is driven by ${LAB_CARD:-xdp}" || return 1
		(in_ns $b - $program shower 10.78.0.1 7001 1)
		expect "$(ask - 1 64)" "right 1" || return 1
		ip -n $a link del v0
		wait_until is_said "$i" 'v0 cannot be driven any more' || return 1
		make_lab_again
	done
	wait_until is_said 41 "v0 is driven by ${LAB_CARD:-xdp}" || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" && is_accelerated $a "$in_a" 500 ||
		return 1
	(in_ns $b - $program say 10.78.0.1 7000 bye)
	wait_for 'kept 40$' "$work/out"
}

# looks_at_twin RATIO: how often the kernel's socket was asked during 1000 receives.
looks_at_twin() {
	(export VMA_RX_UDP_POLL_OS_RATIO=$1
		in_ns $a a.log strace -f -e trace=ppoll,recvmsg -o "$work/calls" \
			$program look 10.78.0.1 7000 1000) >"$work/looked" 2>&1
	grep -qx 'looked 1000' "$work/looked" ||
		{ cat "$work/looked" >&2; return 1; }
	grep -E '(MSG_DONTWAIT\) = -1|events=POLLIN\}\], 1, \{tv_sec=0, tv_nsec=0\})' "$work/calls" |
		wc -l
}

twin_is_asked_every_so_often() {
	local often seldom each
	seldom=$(looks_at_twin 0) && often=$(looks_at_twin 100) &&
		each=$(looks_at_twin 1) || return 1
	[ "$seldom" -le 2 ] && [ "$often" -ge 10 ] && [ "$often" -le 13 ] &&
		[ "$each" -ge 1000 ] && [ "$each" -le 1010 ] || { echo "$seldom $often $each"; return 1; }
}

# A program that is stopped takes nothing; the ring is full after 2048 frames.
frames_that_xdp_drops_are_counted() {
	local pid cnt sum
	start a.log $program echo 10.78.0.1 7000 || return 1
	pid=$(ip netns pids $a | head -1)
	expect "$(ask b.log 10 64)" "right 10" || return 1
	cnt=$(stats_of "$pid" ring.0.rx_pkts)
	kill -STOP "$pid"
	(in_ns $b - $program shower 10.78.0.1 7000 5000) || return 1
	kill -CONT "$pid"
	for _ in $(seq 200); do
		sum=$(($(stats_of "$pid" ring.0.rx_pkts) +
			$(stats_of "$pid" ring.0.rx_errors) - cnt))
		[ $sum -lt 5000 ] || break
		sleep 0.02
	done
	expect $sum 5000 && [ "$(stats_of "$pid" ring.0.rx_errors)" -gt 2000 ]
}

# Nanoseconds on a processor, and how often it went to sleep, of all its threads.
use_of() {
	cat /proc/"$1"/task/*/schedstat /proc/"$1"/task/*/status |
		awk 'NF == 3 && $1 ~ /^[0-9]+$/ { ns += $1 }
			/^voluntary_ctxt_switches/ { cnt += $2 }
			END { print ns, cnt }'
}

# is_idle PID NS SLEEPS: the library's thread looks around every two and a half. A busy machine
# takes its time for that, but a call that spins would have all of it.
is_idle() {
	local ns cnt
	read -r ns cnt < <(use_of "$1")
	echo "# $((ns - $2)) ns, woken $((cnt - $3)) times" >&3
	[ $((ns - $2)) -le 50000000 ] && [ $((cnt - $3)) -le 8 ]
}

# For 10 s: a program whose calls wait, and one where nobody does and the library's
# thread guards the rings. Somebody reads the statistics meanwhile.
sleepers_use_no_processor() {
	local waiting idle waiting_use idle_use
	start a.log $program asleep 10.78.0.1 7000 recv select poll epoll ||
		return 1
	(in_ns $b b.log $program asleep 10.78.0.2 7000 pause) >"$work/idle" &
	wait_for ready "$work/idle" &&
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log" &&
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/b.log" || return 1
	waiting=$(ip netns pids $a) idle=$(ip netns pids $b)
	# longer than any of them polls
	sleep 2
	waiting_use=$(use_of "$waiting") idle_use=$(use_of "$idle")
	for _ in $(seq 10); do
		"$builddir/tools/vma_stats/vma_stats" -p "$waiting" -v 1 -c 1 \
			>"$work/stats"
		sleep 1
	done
	is_idle "$waiting" $waiting_use && is_idle "$idle" $idle_use
}

make_lab_again() {
	ip link add v0 netns $a type veth peer name v0 netns $b
	ip -n $a address add 10.78.0.1/24 dev v0
	ip -n $b address add 10.78.0.2/24 dev v0
	ip -n $a link set v0 up
	ip -n $b link set v0 up
	ip netns exec $b ping -q -c 1 -W 2 10.78.0.1 >/dev/null
}

sockperf_in_each_way() {
	local way out
	printf 'U:10.78.0.1:7100\nU:10.78.0.1:7101\n' >"$work/feed"
	for way in select poll epoll; do
		(in_ns $a a.log timeout 30 sockperf server -f "$work/feed" -F $way) \
			>"$work/out" 2>&1 &
		server=$!
		wait_for "v0 is driven by ${LAB_CARD:-xdp}" "$work/a.log" &&
			wait_until is_bound $a 7101 || return 1
		sleep 0.5
		out=$( (in_ns $b b.log timeout 20 sockperf ping-pong -f "$work/feed" -t 1 \
			-m 400 --data-integrity -F $way) 2>&1)
		grep -q '# dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' \
			<<<"$out" || { echo "$way:"; echo "$out"
				cat "$work/out" "$work/a.log" "$work/b.log"; return 1; }
		kill "$server"
		wait "$server" 2>/dev/null
		server=
		rm "$work/a.log"
	done
}

# has_heard_of CNT: the two, as far as they have said so.
has_heard_of() {
	[ "$(heard "$work/out" "$work/other")" -ge "$1" ]
}
heard() {
	cat "$@" | awk '$1 == "heard" { n += $2 } END { print n + 0 }'
}

# two_processes LOG LOG OPTION: on one port, the second one later; what each has
# heard of 200 senders in $first and $second. One of them may be ours, until it finds the other.
two_processes() {
	local other log
	: >"$work/other"
	start "$1" $program sharing 10.78.0.1 7000 "$3" || return 1
	ip netns exec $b $program spread 10.78.0.1 7000 20
	wait_until has_heard_of 20 || return 1
	(in_ns $a "$2" $program sharing 10.78.0.1 7000 "$3") >"$work/other" 2>&1 &
	other=$!
	wait_for ready "$work/other" || return 1
	for log in "$1" "$2"; do
		[ "$log" = - ] || wait_for 'another process has the same port' \
			"$work/$log" || return 1
	done
	ip netns exec $b $program spread 10.78.0.1 7000 200
	wait_until has_heard_of 220
	# and what comes twice
	sleep 0.5
	kill -9 $other
	wait $other 2>/dev/null
	first=$(($(heard "$work/out") - 20)) second=$(heard "$work/other")
	expect $((first + second)) 200
}

is_balanced() {
	[ "$first" -gt 50 ] && [ "$second" -gt 50 ] ||
		{ echo "$first to the first, $second to the second"; return 1; }
}

port_taken_by_another_process() {
	two_processes a.log - REUSEPORT && is_balanced &&
		wait_for 'another process has the same port' "$work/a.log"
}
port_of_another_process() {
	two_processes - a.log REUSEPORT && is_balanced &&
		wait_for 'another process has the same port' "$work/a.log"
}
address_taken_by_another_process() {
	two_processes a.log - REUSEADDR && expect "$first, $second" "0, 200"
}
# What Linux does, by which the three above are measured.
port_shared_on_the_kernel() {
	two_processes - - REUSEPORT && is_balanced || return 1
	end_server
	two_processes - - REUSEADDR && expect "$first, $second" "0, 200"
}

cases="both_ends_are_accelerated counters_agree_with_the_kernel sizes_up_to_a_frame longer_ones
slow_reader_takes_no_frames child_of_a_parent_that_exits
child_of_a_parent_that_does_not_read peer_on_the_kernel program_has_names_of_libbpf server_on_the_kernel other_traffic_is_undisturbed
killed_process_leaves_nothing killed_while_a_child_lives program_closes_all_it_has
second_process_is_told_who_has_it name_of_another_proves_nothing foreign_program_is_respected
excluded_interface_is_left_alone firewall_is_named_or_respected firewall_that_comes_later
filters_of_tc_are_named_or_respected programs_of_the_cgroup_are_named_or_respected
mode_is_chosen address_added_while_it_runs
mac_changed_while_it_runs peer_mac_changed_while_it_runs address_removed_while_it_runs
interface_added_while_it_runs first_interface_added_while_it_runs
first_address_added_while_it_runs interface_deleted_while_it_runs
interface_lost_again_and_again sockperf_in_each_way twin_is_asked_every_so_often
frames_that_xdp_drops_are_counted
sleepers_use_no_processor
port_taken_by_another_process port_of_another_process address_taken_by_another_process
port_shared_on_the_kernel"

exec 3>&1
run_cases $cases
