#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Time stamps of the card on what is received, by VMA_HW_TS_CONVERSION, on the software
# ConnectX, whose clock is fast by 1500 millionths: in five seconds a clock that nobody
# corrects is 7.5 ms ahead. The card shows its counter to others up to half a
# millisecond late, and a stamp of software is later than the card's by as much as the
# program is.
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/udp_lab.sh"

cases="system_time_is_kept raw_time_is_the_cards_own ptp_time_is_the_drivers
nobody_wants_them what_is_asked_for stamps_of_a_stream interface_without_stamps"
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

run_cases $cases
