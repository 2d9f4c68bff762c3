# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced with LAB_CARD: bonds of two software ConnectX. The kernel need not have the
# driver: w0 in a is none, but libvma-test.so is told that it is a bond of v0 and v1
# (tests/shim/pretend_links.c), of which those are active whose group is 0. What the kernel
# sends by it goes to a veth that nobody has an address on. b is the kernel's, behind a
# bridge: a switch that learns where the address of the bond is, and sends to both ports as
# long as it does not know.
#
#                   /- v0 --- v0 -\
#      10.79.0.1 w0                br0 10.79.0.2
#                   \- v1 --- v1 -/
cases="datagrams_by_the_active_port connection_goes_on_by_the_other_port
link_is_lost_under_a_connection what_comes_twice_is_taken_once both_ports_of_lacp_carry
bulk_over_both_ports frames_of_further_regions address_moves_with_the_port
port_removed_and_added connection_leaves_a_bond_that_changes who_cannot_leave_waits
vlan_on_a_bond two_processes_on_a_bond parent_of_a_child ports_of_one_rdma_device
port_without_card other_modes"

. "${srcdir:-.}/tests/system/udp_lab.sh"
library=$builddir/tests/shim/.libs/libvma-test.so
talker="/usr/bin/python3 $srcdir/tests/system/bond.py"
vlan="/usr/bin/python3 $srcdir/tests/system/vlan.py"
export VMA_TEST_BONDS=w0:1:1:v0:v1 VMA_TEST_VLANS=
LAB_CARDS=mlx5_0:v0,mlx5_1:v1

mac_of() {
	ip netns exec "$1" cat "/sys/class/net/$2/address"
}

# A link that nobody else hears, with the address of v0.
make_quiet_link() {
	ip -n "$1" link add "$2" type veth peer name "$2-end" &&
		ip -n "$1" link set "$2-end" up &&
		ip -n "$1" link set "$2" address "$(mac_of "$1" v0)" up
}

# make_second_wire: v1 at both ends, with the address of v0.
make_second_wire() {
	local end
	ip link add v1 netns $a type veth peer name v1 netns $b || return 1
	for end in $a $b; do
		# a port of a bond says nothing of its own
		ip netns exec $end sysctl -qw net.ipv6.conf.all.disable_ipv6=1 &&
			ip -n $end link set v1 address "$(mac_of $end v0)" up &&
			ip -n $end address flush dev v0 || return 1
	done
	make_wire v1
}

# The first port is active.
make_bond() {
	local port
	make_second_wire && make_quiet_link $a w0 &&
		ip -n $a link set v1 group "${1:-1}" &&
		ip -n $a address add 10.79.0.1/24 dev w0 &&
		ip -n $b link add br0 address 02:00:00:00:00:77 type bridge &&
		ip -n $b link set br0 up || return 1
	for port in v0 v1; do
		ip -n $b link set $port master br0 || return 1
	done
	ip -n $b address add 10.79.0.2/24 dev br0 &&
		ip -n $a neighbour add 10.79.0.2 dev w0 lladdr "$(mac_of $b br0)" \
			nud permanent &&
		ip -n $b neighbour add 10.79.0.1 dev br0 lladdr "$(mac_of $a w0)" \
			nud permanent
}

# has_come PORT: frames that have come to b by it.
has_come() {
	frames_at $b "$1"
}

# As the driver does it when a link is lost: one becomes the backup, the other active, and
# the switch hears of it.
fail_over() {
	ip -n $a link set "$1" group 1 && ip -n $a link set "$2" group 0 && switch_forgets &&
		wait_until uses a.log "$2"
}
# uses LOG PORTS: the last news was that these are the active ones.
uses() {
	[ "$(sed -n 's/.*w[01]: active ports: //p' "$work/$1" | tail -1)" = "$2" ]
}
switch_forgets() {
	ip -n $b link set v0 type bridge_slave fdb_flush &&
		ip -n $b link set v1 type bridge_slave fdb_flush
}

ask_bond() {
	ask - "$1" "$2" 10.79.0.1
}

# carried_by PORT OTHER COMMAND...: 50 frames or more by the one, next to nothing by the
# other.
carried_by() {
	local port=$1 other=$2 by_port by_other
	shift 2
	by_port=$(has_come $port) by_other=$(has_come $other)
	"$@" || return 1
	[ $(($(has_come $port) - by_port)) -ge 50 ] &&
		[ $(($(has_come $other) - by_other)) -le 10 ] ||
		{ echo "$port $by_port to $(has_come $port), $other $by_other to $(has_come $other)"
			return 1; }
}
asks_well() {
	expect "$(ask_bond "$1" "$2")" "right $1"
}

datagrams_by_the_active_port() {
	local in_a
	make_bond && start a.log $program echo 10.79.0.1 7000 &&
		wait_for "w0 is driven by $LAB_CARD (mlx5_0 port 1 + mlx5_1 port 1)" \
			"$work/a.log" || return 1
	in_a=$(kernel_cnt $a)
	carried_by v0 v1 asks_well 200 64 && carried_by v0 v1 asks_well 100 1472 &&
		fail_over v0 v1 &&
		carried_by v1 v0 asks_well 200 64 &&
		expect "$(kernel_cnt $a)" "$in_a"
}

# while_talking COMMAND...: happens to a connection from b.
while_talking() {
	local talk status
	make_bond && start a.log $vlan serve 10.79.0.1 7000 || return 1
	rm -f "$work/end" "$work/talk"
	(in_ns $b - $talker talk 10.79.0.1 7000 "$work/end") >"$work/talk" 2>&1 &
	talk=$!
	wait_for talking "$work/talk" && await_frames $b br0 100 && "$@" &&
		await_frames $b br0 100
	status=$?
	touch "$work/end"
	wait $talk
	wait_for '^served' "$work/out" || return 1
	[ $status = 0 ] && [ "$(sed -n 's/^right \([0-9]*\) .*/\1/p' "$work/talk")" -ge 20 ] ||
		{ cat "$work/talk"; return 1; }
	expect "$(sed -n 's/^served //p' "$work/out")" "$(awk '/^right/ {
		for (i = 0; i < $2; i++)
			n += 800 * (length(i) + 1)
	} END { print n }' "$work/talk")"
}
there_and_back() {
	fail_over v0 v1 && carried_by v1 v0 await_frames $b v1 50 && fail_over v1 v0 &&
		carried_by v0 v1 await_frames $b v0 50
}
connection_goes_on_by_the_other_port() {
	while_talking there_and_back
}
# The cable of the first one breaks, which the driver says a moment later.
loses_its_link() {
	ip -n $b link set v0 down && sleep 0.05 && fail_over v0 v1
}
link_is_lost_under_a_connection() {
	while_talking loses_its_link
}

# A switch that never learns sends all to both ports.
what_comes_twice_is_taken_once() {
	local port
	make_bond || return 1
	for port in v0 v1; do
		ip -n $b link set $port type bridge_slave learning off || return 1
	done
	switch_forgets
	start a.log $program echo 10.79.0.1 7000 &&
		expect "$( (in_ns $b - $talker flows 10.79.0.1 7000 10 64) 2>&1)" \
			"right 200 of 200"
}

# 802.3ad, by addresses and ports. Both ports are active, and the switch sends to one.
make_lacp() {
	export VMA_TEST_BONDS=w0:4:1:v0:v1
	make_bond 0 && ip netns exec $b bridge fdb replace "$(mac_of $a w0)" dev v0 \
		master static sticky
}
both_ports_of_lacp_carry() {
	local by_v0 by_v1 in_a
	make_lacp && start a.log $program echo 10.79.0.1 7000 || return 1
	by_v0=$(has_come v0) by_v1=$(has_come v1) in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - $talker flows 10.79.0.1 7000 40 64) 2>&1)" \
		"right 800 of 800" || return 1
	by_v0=$(($(has_come v0) - by_v0)) by_v1=$(($(has_come v1) - by_v1))
	[ $by_v0 -ge 100 ] && [ $by_v1 -ge 100 ] ||
		{ echo "$by_v0 by v0, $by_v1 by v1"; return 1; }
	expect "$(kernel_cnt $a)" "$in_a" && ip -n $a link set v1 group 1 &&
		wait_until uses a.log v0 && carried_by v0 v1 asks_well 100 64
}

# Both ways, what the card cuts included.
bulk_over_both_ports() {
	make_lacp && start a.log $vlan serve 10.79.0.1 7000 &&
		expect "$( (in_ns $b - timeout 30 $vlan stream 10.79.0.1 7000 8000000) 2>&1)" \
			"right 8000000" && wait_for 'served 8000000' "$work/out"
}

# What one port has received into memory that came later, the other one sends. As in
# udp_card.sh: a program that does not look for a while needs more of it.
frames_of_further_regions() {
	make_lacp && VMA_PROGRESS_ENGINE_INTERVAL=0 start a.log \
		$program echo_on_a_card 10.79.0.1 7000 && asks_well 10 64 &&
		overlook w0 10.79.0.1 &&
		expect "$( (in_ns $b - $talker flows 10.79.0.1 7000 40 1400) 2>&1)" \
			"right 800 of 800"
}

# fail_over_mac=1: the bond's address is that of the active port.
address_moves() {
	fail_over v0 v1 && ip -n $a link set w0 address 02:00:00:00:01:01 &&
		ip -n $b neighbour replace 10.79.0.1 dev br0 lladdr 02:00:00:00:01:01 \
			nud permanent
}
address_moves_with_the_port() {
	while_talking address_moves
}

# A bond of other ports is another device, and the socket stays.
port_removed_and_added() {
	make_bond && start a.log $program echo 10.79.0.1 7000 && asks_well 50 64 &&
		ip -n $a link del v1 && wait_for 'w0 cannot be driven any more' "$work/a.log" &&
		wait_for "w0 is driven by $LAB_CARD (mlx5_0 port 1)" "$work/a.log" &&
		asks_well 50 64
}

# begin_to_talk: by a connection from b to port 7000 of a.
begin_to_talk() {
	rm -f "$work/end" "$work/talk"
	(in_ns $b - $talker talk 10.79.0.1 7000 "$work/end") >"$work/talk" 2>&1 &
	talk=$!
	wait_for talking "$work/talk"
}
# Of what is said, nothing is the kernel's.
is_ours() {
	before=$(kernel_has_sent) && await_frames $b br0 100 &&
		expect "$(kernel_has_sent)" "$before"
}
# Segments of TCP.
kernel_has_sent() {
	ip netns exec $a nstat -asz TcpOutSegs | awk '/OutSegs/ { print $2 }'
}
is_the_kernels() {
	[ "$(kernel_has_sent)" -gt "$before" ]
}
loses_a_port() {
	ip -n $a link del v1 && wait_for \
		'w0 cannot be driven any more (it is a bond of other ports now)' "$work/a.log"
}
stop_talking() {
	kill -9 $talk 2>/dev/null
	wait $talk 2>/dev/null
}

# What it has meanwhile goes back to the kernel in peace. (Here the kernel's way leads
# nowhere.)
connection_leaves_a_bond_that_changes() {
	local talk before status
	make_bond && start a.log $vlan serve 10.79.0.1 7000 &&
		wait_for 'connections are accepted by us' "$work/a.log" || return 1
	begin_to_talk && is_ours && loses_a_port && wait_until is_the_kernels &&
		wait_for "w0 is driven by $LAB_CARD (mlx5_0 port 1)" "$work/a.log" &&
		expect "$(ip netns exec $b nstat -asz TcpEstabResets |
			awk '/Reset/ { print $2 }') reset" "0 reset" && kill -0 $talk
	status=$?
	stop_talking
	return $status
}

# The kernel has had the first SYN, whose answer was lost, so that it does not take the
# connection over: there is one of these names, which goes on saying its answer. Whoever
# cannot leave tries again, now and then.
who_cannot_leave_waits() {
	local talk status
	make_bond || return 1
	: >"$work/out"
	(in_ns $a a.log $talker late 10.79.0.1 7000) >"$work/out" 2>&1 &
	server=$!
	wait_for listening "$work/out" && begin_to_talk && loses_a_port && sleep 2 &&
		wait_until tried_twice && tried_at_most 50
	status=$?
	stop_talking
	return $status
}
tries() {
	sed '1,/cannot be driven any more/d' "$work/a.log" |
		grep -c 'the twin cannot guard the connection'
}
tried_twice() {
	[ "$(tries)" -ge 2 ]
}
tried_at_most() {
	local cnt
	cnt=$(tries)
	[ "$cnt" -le "$1" ] || { echo "$cnt tries"; return 1; }
}

# Both ends have a bond, and the VLAN 100 on it.
vlan_on_a_bond() {
	local end number=1
	export VMA_TEST_VLANS=w1:w0:100:3-5
	make_second_wire || return 1
	for end in $a $b; do
		make_quiet_link $end w0 && make_quiet_link $end w1 &&
			ip -n $end link set v1 group 1 &&
			ip -n $end address add 10.80.0.$number/24 dev w1 || return 1
		number=$((number + 1))
	done
	ip -n $a neighbour add 10.80.0.2 dev w1 lladdr "$(mac_of $b w1)" nud permanent &&
		ip -n $b neighbour add 10.80.0.1 dev w1 lladdr "$(mac_of $a w1)" \
			nud permanent &&
		start a.log $program echo 10.80.0.1 7000 &&
		expect "$(SOFTCX_PCAP=$work/pcap ask b.log 100 64 10.80.0.1)" "right 100" &&
		expect "$($vlan tags "$work/pcap" 7000)" 100.0 &&
		for end in $a $b; do
			ip -n $end link set v0 group 1 && ip -n $end link set v1 group 0
		done && wait_until uses a.log v1 &&
		expect "$(ask b.log 100 64 10.80.0.1)" "right 100"
}

two_processes_on_a_bond() {
	local other status
	make_bond && start a.log $program echo 10.79.0.1 7000 || return 1
	: >"$work/second"
	(in_ns $a second.log $program echo 10.79.0.1 7002) >"$work/second" 2>&1 &
	other=$!
	wait_for ready "$work/second" && asks_well 100 64 &&
		expect "$( (in_ns $b - timeout 30 $program ask 10.79.0.1 7002 100 64) 2>&1)" \
			"right 100"
	status=$?
	kill -9 $other
	wait $other 2>/dev/null
	[ $status = 0 ] && asks_well 100 64
}

parent_of_a_child() {
	make_bond && start a.log $program forking 10.79.0.1 7000 && asks_well 100 64
}

# is_refused TEXT: the bond is the kernel's.
is_refused() {
	make_bond && start a.log $program echo 10.79.0.1 7000 &&
		wait_for "w0 stays with the kernel: .*$1" "$work/a.log"
}
ports_of_one_rdma_device() {
	local LAB_CARDS=mlx5_0:w0
	is_refused 'its port v0: its bond is one RDMA device (RoCE LAG)'
}
port_without_card() {
	local LAB_CARDS=mlx5_0:v0
	is_refused 'its port v1: it has no RDMA device'
}
other_modes() {
	local VMA_TEST_BONDS=w0:0:0:v0:v1
	is_refused 'a bond of mode 0, and only 1 (active-backup) and 4 (802.3ad) are driven'
}

run_cases $cases
