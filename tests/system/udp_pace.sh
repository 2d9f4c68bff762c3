# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced with LAB_CARD, or without for AF_XDP: what SO_MAX_PACING_RATE does to datagrams of
# a program in a. The kernel in b says when they came.
. "${srcdir:-.}/tests/system/udp_lab.sh"

pacer="/usr/bin/python3 $srcdir/tests/system/udp_pace.py"
export PACE_GOT=$work/got

# Frames that the kernel has sent in a.
by_kernel() {
	ip netns exec $a cat /proc/net/snmp |
		awk '/^Udp:/ { n = $5 } END { print n }'
}

# gather CNT: somebody in b who awaits so many.
gather() {
	rm -f "$work"/got.*
	: >"$work/got"
	(in_ns $b - timeout 60 $pacer gather "$1") >"$work/got" 2>&1 &
	server=$!
	wait_for ready "$work/got"
}

# pace COMMAND...: a program in a.
pace() {
	rm -f "$work/a.log"
	before=$(by_kernel)
	(in_ns $a a.log timeout 60 $pacer "$@") >"$work/sent" 2>&1 ||
		{ cat "$work/sent"; return 1; }
	sent_by_kernel=$(($(by_kernel) - before))
}

# came CNT [LEAST [MOST]]: all of them, in the order of sending, and the milliseconds from
# first to last.
came() {
	local ms
	wait_for '^ms' "$work/got" || return 1
	ms=$(awk '$1 == "ms" { print $2 }' "$work/got")
	expect "$(head -2 "$work/got" | tail -1)" "got $1 sorted True" || return 1
	[ "$ms" -ge "${2:-0}" ] && [ "$ms" -le "${3:-1000000}" ] ||
		{ echo "$ms ms are not from ${2:-0} to ${3:-}"; return 1; }
}

# begun CNT, ended CNT: queues of sockets.
begun() {
	expect "$(grep -c 'a queue of a socket begins' "$work/a.log")" "$1"
}
ended() {
	expect "$(grep -c 'a queue of a socket ends' "$work/a.log")" "$1"
}
