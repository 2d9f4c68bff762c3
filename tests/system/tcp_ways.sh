#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connections whose way changes while much is under way in both directions: with the
# library at one end and at both, every byte arrives as it does on the kernel.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

peer=$builddir/tests/system/tcp_peer
stats=$builddir/tools/vma_stats/vma_stats
export PEER_BULK=${PEER_BULK:-60000000}
# The names are the cases.
carriers='
peer_gets_another_mac           mixed
link_is_down_for_a_second       mixed
interface_goes_and_comes        mixed
route_moves                     mixed
servers_route_moves             mixed
clients_route_moves             mixed
answers_come_another_way        mixed
route_is_gone_for_a_second      mixed
address_is_gone_for_a_second    mixed
mtu_shrinks                     mixed
neighbour_is_gone               mixed
kept_alive_route_moves          mixed
operator_takes_them             mixed
'

# A second cable, by which b's address can be reached, too.
make_ways() {
	make_lab &&
		ip link add w0 netns $a type veth peer name w0 netns $b &&
		ip -n $a link set w0 up && ip -n $b link set w0 up &&
		for end in $a $b; do
			ip netns exec $end sysctl -qw net.ipv4.conf.all.rp_filter=0 \
				net.ipv4.conf.v0.rp_filter=0 \
				net.ipv4.conf.w0.rp_filter=0 \
				net.ipv4.conf.v0.arp_notify=1 \
				net.ipv4.conf.all.arp_notify=1 || return 1
		done
}

peer_gets_another_mac() {
	ip -n $b link set v0 address 02:00:00:00:00:77
}
link_is_down_for_a_second() {
	ip -n $a link set v0 down
	sleep 1
	ip -n $a link set v0 up
}
interface_goes_and_comes() {
	local mac_a mac_b
	mac_a=$(ip netns exec $a cat /sys/class/net/v0/address)
	mac_b=$(ip netns exec $b cat /sys/class/net/v0/address)
	ip -n $a link del v0
	sleep 0.5
	ip link add v0 netns $a address "$mac_a" type veth \
		peer name v0 netns $b address "$mac_b" &&
		ip -n $a address add 10.78.0.1/24 dev v0 &&
		ip -n $b address add 10.78.0.2/24 dev v0 &&
		ip -n $a link set v0 up && ip -n $b link set v0 up
}
route_moves() {
	ip -n $a route add 10.78.0.2/32 dev w0
	ip -n $b route add 10.78.0.1/32 dev w0
}
# The segments of one end come another way than those of the other.
servers_route_moves() {
	ip -n $a route add 10.78.0.2/32 dev w0
}
clients_route_moves() {
	ip -n $b route add 10.78.0.1/32 dev w0
}
# So it is from the beginning.
before_answers_come_another_way() {
	ip -n $a route add 10.78.0.2/32 dev w0
}
answers_come_another_way() {
	:
}
route_is_gone_for_a_second() {
	ip -n $a route del 10.78.0.0/24 dev v0
	sleep 1
	ip -n $a route add 10.78.0.0/24 dev v0 src 10.78.0.1
}
address_is_gone_for_a_second() {
	ip -n $a address del 10.78.0.1/24 dev v0
	sleep 1
	ip -n $a address add 10.78.0.1/24 dev v0
}
mtu_shrinks() {
	ip -n $a link set v0 mtu 1280
	ip -n $b link set v0 mtu 1280
}
neighbour_is_gone() {
	# while much is under way it comes back at once
	ip -n $a neighbour flush dev v0 >/dev/null 2>&1
	ip -n $b neighbour flush dev v0 >/dev/null 2>&1
}
before_kept_alive_route_moves() {
	export PEER_KEEPALIVE=1
}
kept_alive_route_moves() {
	servers_route_moves
}
operator_takes_them() {
	local pid asked=
	for pid in $(ip netns pids $a) $(ip netns pids $b); do
		[ "$(cat /proc/$pid/comm 2>/dev/null)" = tcp_peer ] &&
			grep -q libvma /proc/$pid/maps || continue
		"$stats" -p "$pid" --kernel=all >"$work/told.$pid" &
		asked+=" $!"
	done
	[ -n "$asked" ] || return
	wait $asked
	for pid in "$work"/told.*; do
		[ ! -e "$pid" ] || grep -q OPERATOR "$pid" || cat "$pid"
		rm -f "$pid"
	done
}

# live_through OUTPUT EVENT SERVER_LOG CLIENT_LOG
live_through() {
	local output=$work/$1 event=$2 client
	unset PEER_KEEPALIVE
	make_ways || { echo "no lab" >"$output"; return; }
	if declare -F "before_$event" >/dev/null; then "before_$event"; fi
	serve_peer "$3" "$event" >"$output" || { end_server; return; }
	mark_carriers
	begin_talk "$output" "$4" bulk_until_told
	wait_until is_under_way >>"$output"
	"$event" >>"$output" 2>&1
	end_talk "$output"
	end_server
}

if ! why=$(lab_is_possible); then
	tap_skip all_events "$why"
	tap_end
	exit
fi
different=
for event in ${CASES:-$(cases)}; do
	live_through kernel "$event" - -
	live_through server "$event" a.log -
	live_through client "$event" - b.log
	live_through both "$event" a.log b.log
	tap_alike "$event" "$work/kernel" "$work/server" "$work/client" "$work/both" ||
		different+=" $event"
done
[ -n "$different" ] && tap_not_ok all_events "$different" || tap_ok all_events
tap_end
