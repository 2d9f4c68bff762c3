#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# contrib/softcx-run with a peer: both have a card, and nothing is left behind,
# whichever way COMMAND ends; what a killed softcx-run leaves goes at the next start.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_check
export srcdir="${srcdir:-.}" builddir="${builddir:-.}" ASAN_OPTIONS=detect_leaks=0
tmp=$(mktemp -d)
export tmp
trap 'rm -rf "$tmp"' EXIT

# The peer runs a child of its own, which holds a card open.
peer='echo $$ >"$tmp/pids"
	(sleep 300) | "$builddir/tests/softcx/exchange" -m 02:00:00:00:00:01 \
		>"$tmp/peer" & wait'
wait_for_peer='for i in $(seq 1200); do
		grep -q ready "$tmp/peer" && break; sleep 0.05
	done
	grep -q ready "$tmp/peer" && ibv_devinfo >"$tmp/own" &&
	readlink /proc/self/ns/net >"$tmp/ns"'

# run_with END: softcx-run whose COMMAND ends so; its status in $status.
run_with() {
	rm -f "$tmp"/*
	timeout 300 "$srcdir/contrib/softcx-run" -b "$peer" \
		sh -c "$wait_for_peer; $1" >"$tmp/out" 2>&1
	status=$?
}
peer_is_gone() {
	left=$(grep -lzsx "tmp=$tmp" /proc/[0-9]*/environ | while read -r at; do
		readlink "${at%/environ}/exe"
	done | grep -c exchange)
	[ "$left" = 0 ] && [ ! -e "/proc/$(cat "$tmp/pids")" ]
}
nothing_is_left() {
	[ -s "$tmp/pids" ] && [ -s "$tmp/ns" ] && wait_for peer_is_gone
}

run_with 'exit 3'
[ $status = 3 ] && grep -q PORT_ACTIVE "$tmp/own"
tap $? peer_and_command_have_cards
nothing_is_left
tap $? nothing_is_left_of_the_peer
run_with 'kill -KILL $$'
[ $status = 137 ] && nothing_is_left
tap $? killed_command_leaves_nothing

"$srcdir/contrib/softcx-run" sh -c 'echo $$ >"$tmp/command"; sleep 60' \
	>"$tmp/out" 2>&1 &
runner=$!
wait_for [ -s "$tmp/command" ]
kill -KILL $runner
wait $runner 2>/dev/null
left() {
	ip netns list | grep -c "^softcx-$runner-"
}
[ "$(left)" = 2 ] && [ -e "/proc/$(cat "$tmp/command")" ] &&
	"$srcdir/contrib/softcx-run" true && [ "$(left)" = 0 ] &&
	[ ! -e "/proc/$(cat "$tmp/command")/exe" ]
tap $? leftovers_of_a_killed_run_go_at_the_next_start

# Both ends are accelerated, and each says by what.
cat >"$tmp/echo.py" <<-END
	import socket, sys
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	s.settimeout(30)
	if len(sys.argv) > 1:
	    s.bind(("10.9.0.2", 7000))
	    while True:
	        s.sendto(*s.recvfrom(2000))
	s.connect(("10.9.0.2", 7000))
	s.settimeout(0.2)
	while True:
	    s.send(b"hello")
	    try:
	        sys.exit(s.recv(100) != b"hello")
	    except OSError:
	        pass
END
timeout 60 "$srcdir/contrib/softcx-run" -a \
	-b '/usr/bin/python3 "$tmp/echo.py" server >"$tmp/server" 2>&1' \
	sh -c '/usr/bin/python3 "$tmp/echo.py" >"$tmp/client" 2>&1' &&
	grep -q 'eth0 is driven by mlx5' "$tmp/client" &&
	grep -q 'eth0 is driven by mlx5' "$tmp/server"
tap $? any_program_is_accelerated
tap_end
