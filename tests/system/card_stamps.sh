#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Time stamps of the card, by VMA_HW_TS_CONVERSION, on the software
# ConnectX, whose clock is fast by 1500 millionths: in five seconds a clock that nobody
# corrects is 7.5 ms ahead. The card shows its counter to others up to half a
# millisecond late, and a stamp of software is later than the card's by as much as the
# program is.
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/udp_lab.sh"

cases="system_time_is_kept raw_time_is_the_cards_own ptp_time_is_the_drivers
nobody_wants_them what_is_asked_for stamps_of_a_stream interface_without_stamps
sent_by_the_card sent_as_linux_tells_it sent_with_both_stamps sent_in_every_length
sent_in_raw_time sent_by_no_card sent_and_closed sent_without_modules"
stamps="/usr/bin/python3 $srcdir/tests/system/card_stamps.py"
clock=khz=100000,ppm=1500,offset=5000000

# receive KIND SECONDS FLAGS...: what a program in a says of so many seconds.
receive() {
	local kind=$1 seconds=$2 in_a
	shift 2
	export SOFTCX_CLOCK=$clock
	start a.log $stamps "$kind" 10.78.0.1 7000 "$@"
	local status=$?
	unset SOFTCX_CLOCK
	[ $status = 0 ] || return 1
	(in_ns $b - timeout 30 $stamps send "$kind" 10.78.0.1 7000 "$seconds") || return 1
	wait "$server" 2>/dev/null
	server=
	[ "$(said messages)" -ge $((seconds * 30)) ] ||
		{ cat "$work/out"; return 1; }
}

# said WORD: the number behind it.
said() {
	awk -v word="$1" '$1 == word { print $2 }' "$work/out"
}

# within WORD LOWEST HIGHEST
within() {
	local number
	number=$(said "$1")
	[ -n "$number" ] && [ "$number" -ge "$2" ] && [ "$number" -le "$3" ] ||
		{ echo "$1 is not from $2 to $3"; cat "$work/out"; return 1; }
}

# all_have WORD...: each message has such a stamp, but for those that the kernel brought
# before the socket was attached.
all_have() {
	local word
	for word; do
		within "$word" $(($(said messages) * 95 / 100)) "$(said messages)" ||
			return 1
	done
	within disorder 0 0
}

kinds() {
	for LAB_CARD in mlx5 verbs; do
		"$@" || { echo "on $LAB_CARD"; return 1; }
	done
}

system_time() {
	VMA_HW_TS_CONVERSION=$1 receive udp 5 card soft && all_have soft card &&
		within ahead_us -3500 3500
}
# 3 is the default, and 2 the same where the counter can be read.
system_time_is_kept() {
	unset VMA_HW_TS_CONVERSION
	kinds receive udp 5 card soft && all_have soft card &&
		within ahead_us -3500 3500 &&
		wait_for 'v0: time stamps of the card: system time' "$work/a.log" &&
		export VMA_HW_TS_CONVERSION && kinds system_time 2
}

# From the counter's start, which was at 50 ms, and as fast as the counter is.
raw_time() {
	VMA_HW_TS_CONVERSION=1 receive udp 3 card soft && all_have soft card &&
		within first_card_ms 50 30000 &&
		within card_ms $(($(said soft_ms) * 9 / 10)) \
			$(($(said soft_ms) * 11 / 10))
}
raw_time_is_the_cards_own() {
	export VMA_HW_TS_CONVERSION
	kinds raw_time
}

# Nobody corrects what this driver publishes.
ptp_time() {
	VMA_HW_TS_CONVERSION=4 receive udp 5 card soft && all_have soft card &&
		within ahead_us -100000 100000 && within drift_us 4500 9000 &&
		wait_for 'kept by PTP' "$work/a.log"
}
ptp_time_is_the_drivers() {
	export VMA_HW_TS_CONVERSION
	kinds ptp_time
}

none() {
	VMA_HW_TS_CONVERSION=0 receive udp 1 card soft && all_have soft &&
		within card 0 0
}
nobody_wants_them() {
	export VMA_HW_TS_CONVERSION
	kinds none
}

# As Linux: RX_HARDWARE has them made, RAW_HARDWARE tells them, alone or beside those of
# software; OPT_PKTINFO tells where a stamped frame came.
flags() {
	receive udp 1 card && all_have card && within soft 0 0 && within info 0 0 &&
		receive udp 1 card OPT_PKTINFO && all_have card info &&
		receive udp 1 RX_HARDWARE soft && all_have soft && within card 0 0 &&
		receive udp 1 soft OPT_PKTINFO && all_have soft &&
		within card 0 0 && within info 0 0
}
what_is_asked_for() {
	kinds flags
}

stream() {
	receive tcp 5 card soft OPT_PKTINFO && all_have soft card && within info 0 0 &&
		within ahead_us -3500 3500 &&
		receive tcp 1 card && all_have card && within soft 0 0
}
stamps_of_a_stream() {
	kinds stream
}

# Driven by AF_XDP, the same interface has none.
interface_without_stamps() {
	LAB_CARD=xdp receive udp 1 card soft && all_have soft && within card 0 0
}

# -- what is sent ------------------------------------------------------------------------

# sink: the kernel's socket in b, which receives for as long as something comes.
sink() {
	: >"$work/sink"
	(in_ns $b - $stamps udp 10.78.0.2 7000 soft) >"$work/sink" 2>&1 &
	server=$!
	wait_for ready "$work/sink"
}

# run_sent LOG ARGUMENTS...: in a, with the library's log, or on the kernel (-).
run_sent() {
	local log=$1 status
	shift
	sink || return 1
	export SOFTCX_CLOCK=$clock
	(in_ns $a "$log" timeout 60 $stamps "$@") >"$work/out" 2>&1
	status=$?
	unset SOFTCX_CLOCK
	end_server
	[ $status = 0 ] || { cat "$work/out"; return 1; }
}

# sent COUNT RECORDS SOFT CARD: what was read is that many of each.
sent() {
	within records "$2" "$2" && within numbered "$2" "$2" &&
		within soft "$3" "$3" && within card "$4" "$4" &&
		within astray 0 0 && within disorder 0 0 &&
		! grep 'one more\|there is nothing' "$work/out"
}

# Whoever waits for it, and however.
by_card() {
	local how
	for how in poll epoll spin; do
		run_sent a.log sent $how 10.78.0.2 7000 100 20 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID OPT_TSONLY &&
			sent 100 100 0 100 || { echo "by $how"; return 1; }
	done
}
sent_by_the_card() {
	kinds by_card
}

layout() {
	sed -n 's/^layout //p' "$work/out"
}
# A/B: the same program with stamps of software on the kernel has the same messages.
as_linux() {
	local flag theirs
	for flag in OPT_TSONLY ""; do
		run_sent - sent poll 10.78.0.2 7000 5 20 1 \
			TX_SOFTWARE SOFTWARE OPT_ID $flag && sent 5 5 5 0 || return 1
		theirs=$(layout)
		run_sent a.log sent poll 10.78.0.2 7000 5 20 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID $flag && sent 5 5 0 5 &&
			expect "$(layout)" "$theirs" || return 1
	done
	# without RAW_HARDWARE it is a record without a time
	run_sent a.log sent poll 10.78.0.2 7000 5 20 1 TX_HARDWARE SOFTWARE OPT_ID &&
		sent 5 5 0 0
}
sent_as_linux_tells_it() {
	kinds as_linux
}

# The card's is the better one of two, but for OPT_TX_SWHW.
both() {
	local flags="TX_HARDWARE TX_SOFTWARE RAW_HARDWARE SOFTWARE OPT_ID OPT_TSONLY"
	run_sent a.log sent poll 10.78.0.2 7000 20 20 1 $flags && sent 20 20 0 20 &&
		run_sent a.log sent poll 10.78.0.2 7000 20 20 2 $flags OPT_TX_SWHW &&
		sent 20 40 20 20 &&
		run_sent a.log sent poll 10.78.0.2 7000 20 20 3 $flags OPT_TX_SWHW \
			TX_SCHED && sent 20 60 40 20
}
sent_with_both_stamps() {
	kinds both
}

# Written in place, gathered, and in pieces, of which the first is stamped.
lengths() {
	local len
	for len in 0 200 600 1472 1473 9000; do
		run_sent a.log sent poll 10.78.0.2 7000 10 $len 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID && sent 10 10 0 10 ||
			{ echo "of $len bytes"; return 1; }
	done
}
sent_in_every_length() {
	kinds lengths
}

raw_sent() {
	VMA_HW_TS_CONVERSION=1 run_sent a.log sent poll 10.78.0.2 7000 10 20 1 \
		TX_HARDWARE RAW_HARDWARE OPT_ID && within card 10 10 &&
		within astray 10 10 && within disorder 0 0
}
sent_in_raw_time() {
	export VMA_HW_TS_CONVERSION
	kinds raw_sent
}

# Such a datagram is the kernel's, where its card may have stamps, and this one has none.
no_card() {
	run_sent a.log sent poll 10.78.0.2 7000 20 20 1 \
		TX_HARDWARE TX_SOFTWARE RAW_HARDWARE SOFTWARE OPT_ID && sent 20 20 20 0
}
no_stamps() {
	VMA_HW_TS_CONVERSION=0 no_card
}
sent_by_no_card() {
	LAB_CARD=xdp no_card || return 1
	export VMA_HW_TS_CONVERSION
	kinds no_stamps
}

# Completions are late, and nobody is there any more.
closed() {
	SOFTCX_LATE_US=2000 run_sent a.log left 10.78.0.2 7000 300
}
sent_and_closed() {
	export SOFTCX_LATE_US
	kinds closed
}

# A library that is alone leaves all to the kernel.
sent_without_modules() {
	local library=$work/libvma-debug.so LAB_CARD=
	cp "$builddir/src/.libs/libvma-debug.so" "$work/" &&
		run_sent a.log sent poll 10.78.0.2 7000 20 20 1 \
			TX_SOFTWARE TX_HARDWARE SOFTWARE OPT_ID && sent 20 20 20 0 &&
		wait_for 'no back end that drives interfaces can be opened' "$work/a.log"
}

run_cases $cases
