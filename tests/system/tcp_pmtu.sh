#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# TCP over AF_XDP across routers, with a link in the middle that is narrower than those of
# the ends: what the routers report by ICMP is believed, on live connections, by whichever
# end is ours, and what cannot be reached is said at once.
#
#   vma-ua.PID          vma-ur.PID            vma-us.PID          vma-ub.PID
#   10.78.0.1 v0 ---- a0 10.78.0.2  m0 ---- m1  10.78.1.2 b0 ---- v0 10.78.1.1
#                                   1300 bytes
. "${srcdir:-.}/tests/system/tcp_lab.sh"

r=vma-ur.$$
s=vma-us.$$
program="/usr/bin/python3 $srcdir/tests/system/tcp_pmtu.py"

end_path() {
	ip netns del $r 2>/dev/null
	ip netns del $s 2>/dev/null
	clean_up
}
trap end_path EXIT

# end NAMESPACE ROUTER NET
end_of_path() {
	ip link add v0 netns "$1" type veth peer name e0 netns "$2" &&
		ip -n "$1" address add "10.78.$3.1/24" dev v0 &&
		ip -n "$2" address add "10.78.$3.2/24" dev e0 &&
		ip -n "$1" link set lo up && ip -n "$1" link set v0 up &&
		ip -n "$2" link set e0 up &&
		ip -n "$1" route add default via "10.78.$3.2" &&
		ip netns exec "$1" ethtool -K v0 tx off tso off gso off gro off \
			>/dev/null &&
		ip netns exec "$2" ethtool -K e0 tx off tso off gso off gro off \
			>/dev/null &&
		ip netns exec "$2" sysctl -qw net.ipv4.ip_forward=1
}
narrow() {
	ip -n $r link set m0 mtu "$1" && ip -n $s link set m1 mtu "$1"
}
make_path() {
	end_lab
	ip netns add $a && ip netns add $b && ip netns add $r &&
		ip netns add $s && end_of_path $a $r 0 && end_of_path $b $s 1 &&
		ip link add m0 netns $r type veth peer name m1 netns $s &&
		ip -n $r address add 10.78.2.1/24 dev m0 &&
		ip -n $s address add 10.78.2.2/24 dev m1 &&
		ip -n $r link set m0 up && ip -n $s link set m1 up &&
		ip -n $r route add 10.78.1.0/24 via 10.78.2.2 &&
		ip -n $s route add 10.78.0.0/24 via 10.78.2.1 &&
		ip -n $r route add unreachable 10.78.9.0/24 &&
		narrow 1300
}
# What one case has taught the kernel, the next one shall not know.
forget() {
	ip -n $a route flush cache
	ip -n $b route flush cache
	ip netns exec $a ip tcp_metrics flush >/dev/null 2>&1
	ip netns exec $b ip tcp_metrics flush >/dev/null 2>&1
}

# ask_once HOW SERVER_LOG CLIENT_LOG
ask_once() {
	forget
	rm -f "$work/$2" "$work/in"
	mkfifo "$work/in"
	start "$2" $program serve 10.78.0.1 7000 || return 1
	[ "$2" = - ] || wait_for "are accepted by us" "$work/$2" || return 1
	: >"$work/out"
	(in_ns $b "$3" timeout -k 5 40 $program "$1" 10.78.0.1 7000 <"$work/in") \
		>"$work/out" 2>&1 &
	local client=$!
	exec 9>"$work/in"
	if [ "$1" = late ]; then
		wait_for open "$work/out" && narrow 1300
		echo >&9
	fi
	wait $client
	exec 9>&-
	end_server
	grep -q '^client 1300 server 1300$' "$work/out" || { cat "$work/out"; return 1; }
}
# News of the network make either end forget what it has learned of the path, as on Linux,
# and on a crowded machine those of a lab that has just been made may come late.
ask() {
	ask_once "$@" >"$work/first" || ask_once "$@"
}

new_connections_learn_of_the_path() {
	ask ask - - && ask ask a.log - && ask ask - b.log && ask ask a.log b.log
}
live_connections_learn_of_the_path() {
	local logs
	for logs in "- -" "a.log -" "- b.log" "a.log b.log"; do
		narrow 1500
		# shellcheck disable=SC2086
		ask_once late $logs || return 1
	done
}
unreachable_hosts_are_told_at_once() {
	local before=$SECONDS
	rm -f "$work/a.log"
	(in_ns $a a.log timeout -k 5 40 $program refused 10.78.9.9 7000) \
		</dev/null >"$work/out" 2>&1
	grep -qx EHOSTUNREACH "$work/out" && [ $((SECONDS - before)) -lt 10 ] ||
		{ cat "$work/out"; return 1; }
}

if ! why=$(lab_is_possible); then
	tap_skip all_paths "$why"
	tap_end
	exit
fi
make_path || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
for case in ${CASES:-new_connections_learn_of_the_path live_connections_learn_of_the_path \
	unreachable_hosts_are_told_at_once}; do
	tap_check $case $case
done
tap_end
