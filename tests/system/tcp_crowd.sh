#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many connections of one listener in one epoll set: CROWD of them (make check-tcp-crowd has
# 100,000), all ours, little memory for each, next to nothing to do while they are idle, and
# each of them answers.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

crowd=$builddir/tests/system/tcp_crowd
cnt=${CROWD:-5000}
carriers='
many_idle_connections ours
'

many_idle_connections() {
	local client bytes us carried
	ip -n $b address add 10.78.0.3/24 dev v0
	ip -n $b address add 10.78.0.4/24 dev v0
	ip -n $b address add 10.78.0.5/24 dev v0
	ip netns exec $b sysctl -qw net.ipv4.ip_local_port_range="1024 65000"
	rm -f "$work/server.in" "$work/client.in"
	mkfifo "$work/server.in" "$work/client.in"
	(in_ns $a a.log "$crowd" serve 10.78.0.1 7000 "$cnt" <"$work/server.in") \
		>"$work/server" 2>&1 &
	server=$!
	exec 7>"$work/server.in"
	wait_for "are accepted by us" "$work/a.log" && wait_for ready "$work/server" || return 1
	mark_carriers
	(in_ns $b - "$crowd" call 10.78.0.1 7000 "$cnt" 10.78.0.2 4 <"$work/client.in") \
		>"$work/client" 2>&1 &
	client=$!
	exec 8>"$work/client.in"
	said accepted "$work/server" && said open "$work/client" || return 1
	# each has been greeted, and a while later nothing is under way any more
	sleep 3
	echo "idle 10" >&7
	said idle "$work/server" || return 1
	echo "talk 1000" | tee /dev/fd/7 >&8
	said right "$work/client" && said talk: "$work/server" || return 1
	# at the end of the program they go back to the kernel
	carried=$(check_carrier many_idle_connections $a)
	exec 7>&- 8>&-
	wait $client $server
	server=
	grep -qx 'right: 1000' "$work/client" || { cat "$work/client"; return 1; }
	bytes=$(sed -nE 's/^accepted.*, ([0-9]+) bytes.*/\1/p' "$work/server")
	us=$(sed -nE 's/^idle: ([0-9]+) us.*/\1/p' "$work/server")
	[ -z "$carried" ] || { echo "$carried"; return 1; }
	# 4 KB, and half a megabyte for what does not depend on how many there are
	[ "$bytes" -le $((4096 + 524288 / cnt)) ] || { echo "$bytes bytes each"; return 1; }
	# The bar is 1 ms on a machine that does nothing else.
	[ "$us" -le 5000 ] || { echo "$us us of CPU in ten idle seconds"; return 1; }
}
# said WORD FILE: or the program has ended.
said() {
	until grep -q "^$1" "$2"; do
		kill -0 $server $client 2>/dev/null && [ $SECONDS -lt 300 ] ||
			{ cat "$work/server" "$work/client"; return 1; }
		sleep 0.1
	done
}

if ! (ulimit -n $((cnt + 1000))) 2>/dev/null; then
	tap_skip many_idle_connections "needs a limit of $((cnt + 1000)) fds"
	tap_end
	exit
fi
run_cases many_idle_connections
sed 's/^/# /' "$work/server" 2>/dev/null
