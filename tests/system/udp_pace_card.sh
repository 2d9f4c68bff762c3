# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced with LAB_CARD: paces that a card keeps. A datagram is 1042 bytes on the wire.
. "${srcdir:-.}/tests/system/udp_pace.sh"

# 200 at a million bytes a second.
pace_in_bytes() {
	gather 200 && pace once 1000000 200 && came 200 190 &&
		expect "$sent_by_kernel" 0 && begun 1 &&
		grep -q 'begins: 8000 kbit/s, bursts of 0 bytes' "$work/a.log"
}

# VMA's form, 50 at 800 kbit/s: half a second, or at once if a burst may be as long.
pace_with_bursts() {
	gather 50 && pace once 800:0:0 50 && came 50 480 && in_three_tries one_burst &&
		grep -q 'begins: 800 kbit/s, bursts of 60000 bytes' "$work/a.log"
}
# What comes late once is not the pace.
one_burst() {
	gather 50 && pace once 800:60000:1000 50 && came 50 0 400 &&
		expect "$sent_by_kernel" 0
}

# More than the queue holds: a send waits until there is room, and none is lost.
full_queue_is_waited_for() {
	gather 900 && pace once 1000000 900 && came 900 900 &&
		expect "$sent_by_kernel" 0 &&
		[ "$(awk '$1 == "sent" { print $3 }' "$work/sent")" -ge 300 ] ||
		{ cat "$work/sent"; return 1; }
}

# Handlers with SA_RESTART do not end that, SO_SNDTIMEO does.
waits_are_interrupted() {
	pace interrupted 500000 600 && expect "$sent_by_kernel" 0 &&
		expect "$(cat "$work/sent")" "handlers True
[Errno 11] Resource temporarily unavailable"
}

# The queue follows; what has no limit any more goes by the usual one, and the queue ends
# when it has sent what it has.
pace_that_changes() {
	in_three_tries paces_that_grow || return 1
	gather 60 && pace changing 30 400:0:0 -1 && wait_for '^ms' "$work/got" &&
		expect "$(head -2 "$work/got" | tail -1 | cut -d' ' -f1,2)" "got 60" &&
		expect "$sent_by_kernel" 0 && begun 1 && ended 1
}

paces_that_grow() {
	gather 90 && pace changing 30 400:0:0 800:0:0 80000:0:0 && came 90 0 1400 &&
		expect "$sent_by_kernel" 0 && begun 1
}

# What was sent before a close leaves all the same.
closed_socket_sends_what_it_has() {
	gather 100 && pace closing 800:0:0 100 && came 100 900 &&
		expect "$sent_by_kernel" 0 && begun 1 && ended 1
}

# Beyond what the card keeps, and what a queue pair of its own cannot be had for.
paces_that_no_card_keeps() {
	gather 20 && pace once 99 20 && came 20 && expect "$sent_by_kernel" 20 &&
		begun 0 &&
		wait_for 'v0: sends with an SO_MAX_PACING_RATE below 1 kbit/s are the kernel.s: its device keeps paces from 1 to 100000000 kbit/s$' \
			"$work/a.log" &&
		gather 20 && pace once 200000000:0:0 20 && came 20 &&
		expect "$sent_by_kernel" 20 && begun 0
}

many_paced_sockets() {
	gather 160 && pace crowd 80000:0:0 40 4 &&
		wait_for '^got 160' "$work/got" && begun 31 &&
		expect "$sent_by_kernel" 36 &&
		wait_for 'there is no further queue' "$work/a.log" || return 1
	# none rings by a register that is another one's, too
	[ "$LAB_CARD" = verbs ] ||
		expect "$(grep -o 'rings at 0x.*, by BlueFlame' "$work/a.log" | sort -u |
			wc -l)" 32
}

# Each has what it needs, whoever else waits for a pace; so has who does not.
none_starves() {
	pace slow_crowd 100000 20 400 && expect "$(cat "$work/sent")" "all
others True" && expect "$sent_by_kernel" 0 && begun 20
}

# A datagram whose fragments are more than the queue ever holds is the kernel's; those
# that just fit wait for room.
long_datagrams() {
	ip -n $a link set v0 mtu 500 && ip -n $b link set v0 mtu 500 &&
		gather 3 && pace lengths 10000000 61432 61432 30000 && came 3 &&
		expect "$sent_by_kernel" 2 && gather 5 &&
		pace lengths 10000000 30000 30000 30000 30000 30000 && came 5 &&
		expect "$sent_by_kernel" 0
}

# In four bytes and in eight as on the kernel, and in VMA's form.
pace_is_read_back() {
	local kind
	for kind in udp tcp; do
		pace reading $kind || return 1
		expect "$(cat "$work/sent")" "4294967295 18446744073709551615 0 0 0
1000000 1000000 8000 0 0
1000000 1000000 8000 65000 1000
99 99 0 0 0
4294967295 18446744073709551615 0 0 0
4294967295 5000000000 40000000 0 0
4294967295 18446744073709551615 0 0 0
0 [Errno 22] Invalid argument
1 [Errno 22] Invalid argument
2 [Errno 22] Invalid argument
3 [Errno 22] Invalid argument" || return 1
	done
}

# VMA's form for a connection, which the engine paces.
pace_of_a_stream() {
	: >"$work/got"
	(in_ns $b - timeout 60 $pacer serve) >"$work/got" 2>&1 &
	server=$!
	wait_for ready "$work/got" && pace stream 8000:0:0 400000 &&
		came 400000 300 && begun 0 &&
		grep -q 'v0 is driven by' "$work/a.log"
}

# The child's are the kernel's; the parent's queue is as it was.
pace_across_a_fork() {
	gather 61 && pace forking 800000 30 && wait_for '^got 61' "$work/got" &&
		expect "$sent_by_kernel" 1 && begun 1
}

card_lost_under_a_pace() {
	local pid
	gather 60
	: >"$work/sent"
	(in_ns $a a.log timeout 60 $pacer lost 800000 20 "$work/go") \
		>"$work/sent" 2>&1 &
	pid=$!
	wait_for '^lost 0' "$work/sent" &&
		wait_for 'v0 cannot be driven any more' "$work/a.log" &&
		wait_for 'a queue of a socket ends' "$work/a.log" || return 1
	touch "$work/go"
	wait $pid && wait_for '^got 60' "$work/got" && begun 1 && ended 1
}

cases="pace_in_bytes pace_with_bursts full_queue_is_waited_for waits_are_interrupted
pace_that_changes closed_socket_sends_what_it_has paces_that_no_card_keeps
many_paced_sockets none_starves long_datagrams
pace_is_read_back pace_of_a_stream pace_across_a_fork card_lost_under_a_pace"
run_cases $cases
