#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many connections of one listener: CROWD of them (make check-tcp-crowd has 100,000), all
# ours, little memory for each, next to nothing to do while they are idle. Those for which the
# limit of fds has room are accepted, are in one epoll set, and each of them answers; the
# others wait in the backlog.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

crowd=$builddir/tests/system/tcp_crowd
total=${CROWD:-6000}
limit=$(ulimit -H -n)
[ "$limit" != unlimited ] || limit=1000000
cnt=$((total - 1000 < limit - 1000 ? total - 1000 : limit - 1000))
carriers='
many_idle_connections ours
'

many_idle_connections() {
	local client joiners bytes us carried held turn
	ip -n $b address add 10.78.0.3/24 dev v0
	ip -n $b address add 10.78.0.4/24 dev v0
	ip -n $b address add 10.78.0.5/24 dev v0
	ip netns exec $b sysctl -qw net.ipv4.ip_local_port_range="1024 65000"
	rm -f "$work/server.in" "$work/client.in"
	mkfifo "$work/server.in" "$work/client.in"
	ip netns exec $a sysctl -qw net.core.somaxconn="$total"
	(in_ns $a a.log "$crowd" serve 10.78.0.1 7000 "$cnt" "$total" <"$work/server.in") \
		>"$work/server" 2>&1 &
	server=$!
	exec 7>"$work/server.in"
	wait_for "are accepted by us" "$work/a.log" && wait_for ready "$work/server" || return 1
	mark_carriers
	(in_ns $b - "$crowd" call 10.78.0.1 7000 "$cnt" 10.78.0.2 4 <"$work/client.in") \
		>"$work/client" 2>&1 &
	client=$!
	exec 8>"$work/client.in"
	said accepted "$work/server" && said open "$work/client" && join || return 1
	echo "cost $total" >&7
	said held "$work/server" || return 1
	# each has been greeted, and a while later nothing is under way any more
	sleep 3
	for turn in 1 2 3; do
		echo "idle 10" >&7
		said_times "$turn" idle: "$work/server" || return 1
		us=$(sed -nE 's/^idle: ([0-9]+) us.*/\1/p' "$work/server" | tail -1)
		# The bar is 1 ms on a machine that does nothing else. One walk over the
		# connections in each round of the thread would be 30 ms.
		[ "$us" -gt 10000 ] || break
	done
	echo "talk 1000" | tee /dev/fd/7 >&8
	said right "$work/client" && said talk: "$work/server" || return 1
	# at the end of the program they go back to the kernel
	carried=$(check_carrier many_idle_connections $a)
	exec 9>&-
	wait $joiners
	exec 7>&- 8>&-
	wait $client $server
	server=
	held=$(awk '/^held/ { n += $2 } END { print n }' "$work"/joiner.*)
	[ "$held" = $((total - cnt)) ] || { echo "$held of $((total - cnt)) wait"; return 1; }
	grep -qx 'right: 1000' "$work/client" || { cat "$work/client"; return 1; }
	bytes=$(sed -nE 's/^held.*, ([0-9]+) bytes.*/\1/p' "$work/server")
	[ -z "$carried" ] || { echo "$carried"; return 1; }
	# 4 KB, and half a megabyte for what does not depend on how many there are
	[ "$bytes" -le $((4096 + 524288 / total)) ] || { echo "$bytes bytes each"; return 1; }
	[ "$us" -le 10000 ] || { echo "three times $us us of CPU in ten idle seconds"; return 1; }
}
# Those whom nobody accepts, from programs with as many fds as they may have.
join() {
	local left=$((total - cnt)) some
	joiners=
	rm -f "$work/joiners.in" "$work"/joiner.[0-9]*
	mkfifo "$work/joiners.in"
	while [ $left -gt 0 ]; do
		some=$((left < limit - 1000 ? left : limit - 1000))
		(in_ns $b - "$crowd" join 10.78.0.1 7000 "$some" 10.78.0.2 4 \
			<"$work/joiners.in") >"$work/joiner.$left" 2>&1 9>&- &
		joiners="$joiners $!"
		exec 9>"$work/joiners.in"
		said joined "$work/joiner.$left" || return 1
		left=$((left - some))
	done
}
# said WORD FILE: or the program has ended.
said() {
	said_times 1 "$@"
}
# said_times CNT WORD FILE
said_times() {
	until [ "$(grep -c "^$2" "$3")" -ge "$1" ]; do
		kill -0 $server $client 2>/dev/null && [ $SECONDS -lt 300 ] ||
			{ cat "$work/server" "$work/client"; return 1; }
		sleep 0.1
	done
}

run_cases many_idle_connections
sed 's/^/# /' "$work/server" 2>/dev/null
