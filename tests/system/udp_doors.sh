#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sockets that are handed on while datagrams wait in them, over AF_XDP: whoever gets
# them reads each datagram once.
. "${srcdir:-.}/tests/system/udp_lab.sh"

doors="/usr/bin/python3 $srcdir/tests/system/udp_doors.py"

# arrive LOG: 200 datagrams that wait when the socket is handed on, in an accelerated
# one.
arrive() {
	wait_for 'v0 is driven by xdp' "$work/$1" || return 1
	(in_ns $b - $doors send 10.78.0.1 7000 200) &&
		wait_for '^served' "$work/out" &&
		expect "$(grep '^served' "$work/out")" "served 200 200"
}

exec_serves_what_waited() {
	start a.log $doors activate 7000 200 && arrive a.log
}

# What is given back costs the kernel's socket more room than what comes by itself, and
# must not take the room of what comes behind it.
more_fits_behind_what_waited() {
	local send="$doors send 10.78.0.1"
	start a.log $doors activate_late 7000 200 &&
		wait_for 'v0 is driven by xdp' "$work/a.log" || return 1
	(in_ns $b - $send 7000 100) && wait_for '^became' "$work/out" &&
		(in_ns $b - $send 7000 100 100) && (in_ns $b - $send 7001 1) &&
		wait_for '^served' "$work/out" &&
		expect "$(grep '^served' "$work/out")" "served 200 200"
}

another_process_serves_what_waited() {
	start a.log $doors hand_over 7000 200 && arrive a.log &&
		wait_for 'goes back to the kernel: the program has handed it on' \
			"$work/a.log"
}

# systemd's activator, while datagrams come; without it there is the one above. It does
# not ask for a larger buffer.
activator_of_systemd() {
	local python
	command -v systemd-socket-activate >/dev/null || return 0
	python=$(command -v python3)
	: >"$work/out"
	(in_ns $a a.log systemd-socket-activate -d -l 10.78.0.1:7000 \
		"$python" "$srcdir/tests/system/udp_doors.py" serve 3 200) \
		>"$work/out" 2>&1 &
	server=$!
	wait_for 'Listening' "$work/out" || return 1
	(in_ns $b - $doors send 10.78.0.1 7000 200) &&
		wait_for '^served' "$work/out" &&
		expect "$(grep '^served' "$work/out")" "served 200 200"
}

run_cases exec_serves_what_waited more_fits_behind_what_waited \
	another_process_serves_what_waited \
	activator_of_systemd
