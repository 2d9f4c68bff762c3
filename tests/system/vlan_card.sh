# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced with LAB_CARD: VLANs on the software ConnectX. The kernel need not know VLANs:
# the links w0 and w1 are none, but libvma-test.so is told that they are VLANs 100 and 200
# of v0 (tests/shim/pretend_links.c), in both namespaces. What the kernel sends by them goes
# to a veth that nobody has an address on, so all that arrives has come by the card, with the tag.
#
#      10.79.0.1 --- w0 --- VLAN 100 of v0 --- w0 --- 10.79.0.2
#      10.80.0.1 --- w1 --- VLAN 200 of v0 --- w1 --- 10.80.0.2
cases="both_ends_are_accelerated all_sizes longer_frames_than_it_sends priority_is_in_the_tag
connections_are_tagged two_vlans_of_one_card interface_below_is_driven_too other_tags_are_not_ours two_processes_in_one_vlan parent_of_a_child
given_back_with_the_tag vlan_removed interface_below_removed mtu_changed egress_map_changed"

. "${srcdir:-.}/tests/system/udp_lab.sh"
library=$builddir/tests/shim/.libs/libvma-test.so
vlan="/usr/bin/python3 $srcdir/tests/system/vlan.py"
# priorities 3 and 6 of sockets have lines in the egress map
export VMA_TEST_VLANS=w0:v0:100:3-5:6-7,w1:v0:200
export SOFTCX_PCAP

mac_of() {
	ip netns exec "$1" cat "/sys/class/net/$2/address"
}

# make_vlan NAME NETWORK: at both ends.
make_vlan() {
	local end number=1 mac
	for end in $a $b; do
		mac=$(mac_of $end v0)
		ip -n $end link add "$1" type veth peer name "$1-end" &&
			ip -n $end link set "$1-end" up &&
			ip -n $end link set "$1" address "$mac" up &&
			ip -n $end address add "$2.$number/24" dev "$1" || return 1
		number=$((number + 1))
	done
	ip -n $a neighbour add "$2.2" dev "$1" lladdr "$(mac_of $b v0)" nud permanent &&
		ip -n $b neighbour add "$2.1" dev "$1" lladdr "$(mac_of $a v0)" \
			nud permanent
}

# tags_are TAGS: of the frames to and from the port 7000 that the asker's card has sent
# and received.
tags_are() {
	expect "$($vlan tags "$work/pcap" 7000)" "$1"
}

# ask_by_vlan CNT LEN [ADDRESS]: as "ask", and the wire is recorded.
ask_by_vlan() {
	SOFTCX_PCAP=$work/pcap ask b.log "$1" "$2" "${3:-10.79.0.1}"
}

both_ends_are_accelerated() {
	make_vlan w0 10.79.0 && start a.log $program echo 10.79.0.1 7000 &&
		expect "$(ask_by_vlan 300 64)" "right 300" && tags_are 100.0 &&
		wait_for "w0 is driven by $LAB_CARD (mlx5_0 port 1, VLAN 100)" "$work/a.log" &&
		expect "$(kernel_cnt $a)" 0
}

# Whole frames, and datagrams of several.
all_sizes() {
	make_vlan w0 10.79.0 && start a.log $program echo 10.79.0.1 7000 || return 1
	for len in 0 1 250 300 1472; do
		expect "$(ask_by_vlan 20 $len)" "right 20" && tags_are 100.0 ||
			return 1
	done
}

# The interface below has a larger MTU than the VLAN, and so has a neighbour's VLAN. When
# that becomes larger later, the frames that were made are too short.
longer_frames_than_it_sends() {
	for end in $a $b; do
		ip -n $end link set v0 mtu 4000 || return 1
	done
	make_vlan w0 10.79.0 && ip -n $b link set w0 mtu 9000 &&
		start a.log $vlan measure 10.79.0.1 7000 || return 1
	touch "$work/end"
	(SOFTCX_PCAP=$work/pcap in_ns $b b.log timeout 20 $vlan drip 10.79.0.1 7000 \
		"$work/end" 3000) || return 1
	expect "$($vlan lengths "$work/pcap")" 3046 && tags_are 100.0 || return 1
	wait_for '^10 of 3000$' "$work/out" && expect "$(kernel_cnt $a)" 0 &&
		! grep 'cannot be driven' "$work/a.log" || return 1
	ip -n $a link set v0 mtu 9000 &&
		wait_for 'w0 cannot be driven any more' "$work/a.log"
}

# The map's lines, and 0 without one; long frames and fragments, too, and what a socket's own
# queue sends at a pace.
priority_is_in_the_tag() {
	make_vlan w0 10.79.0 && start a.log $program echo 10.79.0.1 7000 || return 1
	(SOFTCX_PCAP=$work/pcap in_ns $b b.log timeout 20 $vlan priorities 10.79.0.1 \
		7001) || return 1
	expect "$($vlan tags "$work/pcap" 7001)" \
		"100.0 100.5 100.0 100.7 100.0 100.7 100.5 100.0 100.5" &&
		grep -q 'a queue of a socket begins' "$work/b.log"
}

# A listener has a priority that its connections do not have. What a connection answers
# that has ended (TIME_WAIT) has that of any between the two addresses.
connections_are_tagged() {
	make_vlan w0 10.79.0 && start a.log $vlan serve 10.79.0.1 7000 || return 1
	expect "$( (SOFTCX_PCAP=$work/pcap in_ns $b b.log timeout 30 $vlan stream \
		10.79.0.1 7000 2000000) 2>&1)" "right 2000000" &&
		expect "$($vlan tags "$work/pcap" 7000 to | cut -d' ' -f 1,2)" \
			"100.0 100.5" &&
		expect "$($vlan tags "$work/pcap" 7000 from | cut -d' ' -f 1,2)" \
			"100.5 100.0" &&
		wait_for 'served 2000000' "$work/out"
}

# One socket has a ring on each.
two_vlans_of_one_card() {
	make_vlan w0 10.79.0 && make_vlan w1 10.80.0 &&
		start a.log $program echo 0.0.0.0 7000 &&
		expect "$(ask_by_vlan 100 64)" "right 100" && tags_are 100.0 &&
		expect "$(ask_by_vlan 100 64 10.80.0.1)" "right 100" && tags_are 200.0
}

# What has another tag is not the interface's. The kernel has no VLAN for it.
other_tags_are_not_ours() {
	make_vlan w0 10.79.0 && make_vlan w1 10.80.0 &&
		start a.log $vlan collect 10.79.0.1 7000 2 || return 1
	(in_ns $b - $vlan forge v0 "$(mac_of $a v0)" 10.79.0.1 10.79.0.2 7000 \
		200 101 100 300 57444) &&
		wait_for 'tag 57444' "$work/out" &&
		expect "$(grep tag "$work/out" | xargs)" "tag 100 tag 57444"
}

# gives_back TEXT: what comes by the interface below with a tag, as it was.
gives_back() {
	local watcher status
	: >"$work/watch"
	(in_ns $a - $vlan watch v0 "$1" 6) >"$work/watch" 2>&1 &
	watcher=$!
	wait_for watching "$work/watch" &&
		(FORGED=$1 in_ns $b - $vlan forge v0 "$(mac_of $a v0)" 10.78.0.1 10.78.0.2 \
			7000 300 100 41260) &&
		wait_for '^seen 100.0 x 2 300.0 x 2 300.5 x 2$' "$work/watch"
	status=$?
	kill -9 $watcher 2>/dev/null
	wait $watcher 2>/dev/null
	return $status
}

# The interface below is driven, too. Its rules cannot say that there is no tag; what has
# one it gives back to the kernel as it was. The software card may see such a frame itself
# before it has noted that it is one, and then there is one more: not each time.
interface_below_is_driven_too() {
	local in_a
	make_vlan w0 10.79.0 && start a.log $program echo 0.0.0.0 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask_by_vlan 100 64)" "right 100" && tags_are 100.0 &&
		expect "$(ask_by_vlan 100 64 10.78.0.1)" "right 100" && tags_are none &&
		expect "$(kernel_cnt $a)" "$in_a" || return 1
	gives_back first || gives_back second || gives_back third || return 1
	expect "$(ask_by_vlan 100 64 10.78.0.1)" "right 100"
}

# Each has its port and its rules.
two_processes_in_one_vlan() {
	local other status
	make_vlan w0 10.79.0 && start a.log $program echo 10.79.0.1 7000 || return 1
	: >"$work/second"
	(in_ns $a second.log $program echo 10.79.0.1 7002) >"$work/second" 2>&1 &
	other=$!
	wait_for ready "$work/second" && expect "$(ask_by_vlan 100 64)" "right 100" &&
		expect "$( (in_ns $b b.log timeout 30 $program ask 10.79.0.1 7002 100 \
			64) 2>&1)" "right 100"
	status=$?
	kill -9 $other
	wait $other 2>/dev/null
	[ $status = 0 ] && expect "$(ask_by_vlan 100 64)" "right 100"
}

parent_of_a_child() {
	make_vlan w0 10.79.0 && start a.log $program forking 10.79.0.1 7000 &&
		expect "$(ask_by_vlan 100 64)" "right 100" && tags_are 100.0
}

# What a fork gives back to the kernel comes by the interface below, with its tag.
given_back_with_the_tag() {
	local watcher
	make_vlan w0 10.79.0 && start a.log $program heir 10.79.0.1 7000 exit || return 1
	: >"$work/watch"
	(in_ns $a - $vlan watch v0 early 40) >"$work/watch" 2>&1 &
	watcher=$!
	wait_for watching "$work/watch" &&
		(in_ns $b b.log $vlan early 10.79.0.1 7000) &&
		wait_for '^seen 100.5 x 40$' "$work/watch"
	local status=$?
	kill -9 $watcher 2>/dev/null
	wait $watcher 2>/dev/null
	return $status
}

# The socket goes on with what there is.
vlan_removed() {
	make_vlan w0 10.79.0 && start a.log $program echo 0.0.0.0 7000 &&
		expect "$(ask_by_vlan 100 64)" "right 100" || return 1
	ip -n $a link del w0 && ip -n $b link del w0 &&
		wait_for 'w0 cannot be driven any more' "$work/a.log" &&
		expect "$(ask_by_vlan 100 64 10.78.0.1)" "right 100" && tags_are none &&
		make_vlan w0 10.79.0 && expect "$(ask_by_vlan 100 64)" "right 100" &&
		tags_are 100.0
}

interface_below_removed() {
	make_vlan w0 10.79.0 && start a.log $program echo 0.0.0.0 7000 &&
		expect "$(ask_by_vlan 100 64)" "right 100" || return 1
	ip -n $a link del v0 && wait_for 'w0 cannot be driven any more' "$work/a.log" &&
		kill -0 "$server"
}

# while_dripping COMMAND...: what happens to w0 in b while a program sends there.
while_dripping() {
	local status
	make_vlan w0 10.79.0 || return 1
	rm -f "$work/end"
	(SOFTCX_PCAP=$work/pcap in_ns $b b.log timeout 30 $vlan drip 10.79.0.1 7000 \
		"$work/end") >"$work/out" 2>&1 &
	server=$!
	wait_for 'w0 is driven' "$work/b.log" && await_frames $a v0 10 && "$@" &&
		await_frames $a v0 20
	status=$?
	touch "$work/end"
	wait "$server"
	server=
	return $status
}

# Datagrams are cut to what the VLAN takes.
mtu_changed() {
	while_dripping ip -n $b link set w0 mtu 1000 &&
		expect "$($vlan lengths "$work/pcap")" "1446 1014 470" && tags_are 100.0
}

# The line of the priority 0.
egress_map_changed() {
	while_dripping ip -n $b link set w0 group 4 &&
		expect "$($vlan tags "$work/pcap" 7000 to)" "100.0 100.4"
}

run_cases $cases
