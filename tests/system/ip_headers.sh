#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What sockets and routes say of the headers, on the wire of AF_XDP: a scenario of
# ip_headers.py runs on libc and under the library, and what it is told and what its peer
# sees must be the same.
. "${srcdir:-.}/tests/system/udp_lab.sh"

program="/usr/bin/python3 $srcdir/tests/system/ip_headers.py"

# What the kernel has sent in b: datagrams and segments.
kernel_sent_cnt() {
	ip netns exec $b cat /proc/net/snmp |
		awk '/^Udp:/ { u = $5 } /^Tcp:/ { t = $12 } END { print u + t }'
}

# observe LOG SCENARIO: what it is told and what is seen, in $work/seen.
observe() {
	start - $program peer || return 1
	(in_ns $b "$1" timeout 60 $program "$2") >"$work/told" 2>&1 ||
		{ cat "$work/told"; return 1; }
	wait "$server"
	server=
	grep -v '\[VMA_' "$work/told" >"$work/seen"
	grep -v ready "$work/out" >>"$work/seen"
}

# same_as_libc SCENARIO MOST: at most so many datagrams and segments go by the kernel.
same_as_libc() {
	local before sent
	observe - "$1" || return 1
	mv "$work/seen" "$work/seen.libc"
	before=$(kernel_sent_cnt)
	observe b.log "$1" || return 1
	sent=$(($(kernel_sent_cnt) - before))
	diff "$work/seen.libc" "$work/seen" || return 1
	[ "$sent" -le "$2" ] || { echo "$sent by the kernel"; return 1; }
}

# To the peer, as the route says.
by_route() {
	ip -n $b route add 10.78.0.1/32 dev v0 hoplimit 9 advmss 700 \
		initcwnd 33 rto_min 30ms
}

# The last datagram, which says "end", is that of a socket of its own.
ttl_of_the_route() { by_route && same_as_libc datagrams 2; }
# Whoever stands still during a handshake takes its round trip for a long one, and repeats
# late: not each time.
connections_by_the_route() { by_route && in_three_tries same_as_libc connections 8; }
accepted_by_the_route() { by_route && in_three_tries same_as_libc by_the_route 8; }
options_of_a_listener() { same_as_libc later_options 16; }

run_cases ttl_of_the_route connections_by_the_route accepted_by_the_route \
	options_of_a_listener
