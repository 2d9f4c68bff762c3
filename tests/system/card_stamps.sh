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
sent_in_raw_time sent_by_no_card sent_and_closed sent_without_modules
stream_by_the_card stream_as_linux_tells_it stream_with_both_stamps
stream_in_every_length stream_sent_again stream_asked_for_early stream_accepted
stream_by_no_card
stream_goes_back stream_loses_its_card stream_closed"
stamps="/usr/bin/python3 $srcdir/tests/system/card_stamps.py"
by_option="is the kernel's: the program has set an option"
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

# On both kinds of rings, or on those that RINGS names.
kinds() {
	for LAB_CARD in ${RINGS:-mlx5 verbs}; do
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

# drain: the same for all connections.
drain() {
	: >"$work/sink"
	(in_ns $b - $stamps drain 10.78.0.2 7000) >"$work/sink" 2>&1 &
	server=$!
	wait_for ready "$work/sink"
}

# run_sent LOG ARGUMENTS...: in a, with the library's log, or on the kernel (-).
# What stands still while the library looks at the card's clock for the first time lets it
# correct that by a step at the second look: once more, then.
run_sent() {
	sink && run_to_sink "$@" && { in_order || { sink && run_to_sink "$@"; }; }
}
# run_stream LOG ARGUMENTS...: the same of a connection.
run_stream() {
	drain && run_to_sink "$@" && { in_order || { drain && run_to_sink "$@"; }; }
}
in_order() {
	local disorder
	disorder=$(said disorder)
	[ "${disorder:-0}" = 0 ]
}
run_to_sink() {
	local log=$1 status
	shift
	export SOFTCX_CLOCK=$clock
	(in_ns $a "$log" timeout 60 $stamps "$@") >"$work/out" 2>&1
	status=$?
	unset SOFTCX_CLOCK
	end_server
	[ $status = 0 ] || { cat "$work/out"; return 1; }
}

# came COUNT RECORDS SOFT CARD: what was read is that many of each.
came() {
	within records "$2" "$2" && within numbered "$2" "$2" &&
		within soft "$3" "$3" && within card "$4" "$4" && within disorder 0 0 &&
		! grep 'one more\|there is nothing' "$work/out"
}
# The same, when the card's clock has been looked at for a while.
sent() {
	came "$@" && within astray 0 0
}

# Whoever waits for it, and however.
by_card() {
	local how
	for how in poll epoll spin; do
		run_sent a.log sent udp $how 10.78.0.2 7000 100 20 1 \
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
		run_sent - sent udp poll 10.78.0.2 7000 5 20 1 \
			TX_SOFTWARE SOFTWARE OPT_ID $flag && sent 5 5 5 0 || return 1
		theirs=$(layout)
		run_sent a.log sent udp poll 10.78.0.2 7000 5 20 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID $flag && sent 5 5 0 5 &&
			expect "$(layout)" "$theirs" || return 1
	done
	# without RAW_HARDWARE it is a record without a time
	run_sent a.log sent udp poll 10.78.0.2 7000 5 20 1 TX_HARDWARE SOFTWARE OPT_ID &&
		sent 5 5 0 0
}
sent_as_linux_tells_it() {
	kinds as_linux
}

# The card's is the better one of two, but for OPT_TX_SWHW.
both() {
	local flags="TX_HARDWARE TX_SOFTWARE RAW_HARDWARE SOFTWARE OPT_ID OPT_TSONLY"
	run_sent a.log sent udp poll 10.78.0.2 7000 20 20 1 $flags && sent 20 20 0 20 &&
		run_sent a.log sent udp poll 10.78.0.2 7000 20 20 2 $flags OPT_TX_SWHW &&
		sent 20 40 20 20 &&
		run_sent a.log sent udp poll 10.78.0.2 7000 20 20 3 $flags OPT_TX_SWHW \
			TX_SCHED && sent 20 60 40 20
}
sent_with_both_stamps() {
	kinds both
}

# Written in place, gathered, and in pieces, of which the first is stamped.
lengths() {
	local len
	for len in 0 200 600 1472 1473 9000; do
		run_sent a.log sent udp poll 10.78.0.2 7000 10 $len 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID && sent 10 10 0 10 ||
			{ echo "of $len bytes"; return 1; }
	done
}
sent_in_every_length() {
	kinds lengths
}

raw_sent() {
	VMA_HW_TS_CONVERSION=1 run_sent a.log sent udp poll 10.78.0.2 7000 10 20 1 \
		TX_HARDWARE RAW_HARDWARE OPT_ID && within card 10 10 &&
		within astray 10 10 && within disorder 0 0
}
sent_in_raw_time() {
	export VMA_HW_TS_CONVERSION
	kinds raw_sent
}

# Such a datagram is the kernel's, where its card may have stamps, and this one has none.
no_card() {
	run_sent a.log sent udp poll 10.78.0.2 7000 20 20 1 \
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
	SOFTCX_LATE_US=2000 run_sent a.log left udp 10.78.0.2 7000 300
}
sent_and_closed() {
	export SOFTCX_LATE_US
	kinds closed
}

# A library that is alone leaves all to the kernel.
sent_without_modules() {
	local library=$work/libvma-debug.so LAB_CARD=
	cp "$builddir/src/.libs/libvma-debug.so" "$work/" &&
		run_sent a.log sent udp poll 10.78.0.2 7000 20 20 1 \
			TX_SOFTWARE TX_HARDWARE SOFTWARE OPT_ID && sent 20 20 20 0 &&
		wait_for 'no back end that drives interfaces can be opened' "$work/a.log"
}

# -- streams -----------------------------------------------------------------------------

by_card_of_stream() {
	local how
	for how in poll epoll spin cmsg; do
		run_stream a.log sent tcp $how 10.78.0.2 7000 100 20 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID OPT_TSONLY &&
			sent 100 100 0 100 || { echo "by $how"; return 1; }
	done
}
stream_by_the_card() {
	kinds by_card_of_stream
}

stream_as_linux() {
	run_stream - sent tcp poll 10.78.0.2 7000 5 20 1 \
		TX_SOFTWARE SOFTWARE OPT_ID OPT_TSONLY && sent 5 5 5 0 || return 1
	theirs=$(layout)
	run_stream a.log sent tcp poll 10.78.0.2 7000 5 20 1 \
		TX_HARDWARE RAW_HARDWARE OPT_ID OPT_TSONLY && sent 5 5 0 5 &&
		expect "$(layout)" "$theirs" &&
		run_stream a.log sent tcp poll 10.78.0.2 7000 5 20 1 \
			TX_HARDWARE SOFTWARE OPT_ID OPT_TSONLY && sent 5 5 0 0
}
stream_as_linux_tells_it() {
	local theirs
	kinds stream_as_linux
}

both_of_stream() {
	local flags="TX_HARDWARE TX_SOFTWARE RAW_HARDWARE SOFTWARE OPT_ID OPT_TSONLY"
	run_stream a.log sent tcp poll 10.78.0.2 7000 20 20 1 $flags && sent 20 20 0 20 &&
		run_stream a.log sent tcp poll 10.78.0.2 7000 20 20 2 $flags OPT_TX_SWHW &&
		sent 20 40 20 20 &&
		run_stream a.log sent tcp poll 10.78.0.2 7000 20 20 4 $flags OPT_TX_SWHW \
			TX_SCHED TX_ACK && sent 20 80 60 20
}
stream_with_both_stamps() {
	kinds both_of_stream
}

# Written in place, gathered, and in several segments, of which the last is stamped.
lengths_of_stream() {
	local len
	for len in 1 200 600 1448 1449 20000; do
		run_stream a.log sent tcp poll 10.78.0.2 7000 10 $len 1 \
			TX_HARDWARE RAW_HARDWARE OPT_ID OPT_TSONLY && sent 10 10 0 10 ||
			{ echo "of $len bytes"; return 1; }
	done
}
stream_in_every_length() {
	kinds lengths_of_stream
}

# lose_one: the first segment with so many bytes does not arrive.
lose_one() {
	ip netns exec $b nft "table ip loss {
		chain in {
			type filter hook input priority 0;
			meta length 1000-1100 quota 1100 bytes drop;
		}
	}"
}
# A segment that is sent again is stamped again, as the kernel's.
again() {
	local log=$1
	shift
	lose_one && run_stream $log again 10.78.0.2 7000 "$@" OPT_ID OPT_TSONLY &&
		ip netns exec $b nft delete table ip loss &&
		within records 2 4 && within numbered 2 4 && within disorder 0 0
}
stream_sent_again() {
	again - TX_SOFTWARE SOFTWARE && within soft 2 4 &&
		kinds again a.log TX_HARDWARE RAW_HARDWARE && within card 2 4
}

# Wished for before there is a way, and also before the neighbour is known.
early() {
	local known
	for known in yes no; do
		rm -f "$work/a.log"
		[ $known = yes ] || ip -n $a neighbour flush dev v0 || return 1
		run_stream a.log sent early poll 10.78.0.2 7000 20 20 1 "$@" OPT_TSONLY ||
			return 1
		if [ "$LAB_CARD" = xdp ]; then
			came 20 20 20 0 && wait_for "$by_option" "$work/a.log" || return 1
		else
			came 20 20 0 20 || return 1
		fi
	done
}
stream_asked_for_early() {
	kinds early TX_HARDWARE RAW_HARDWARE &&
		LAB_CARD=xdp early TX_HARDWARE TX_SOFTWARE SOFTWARE
}

# With the wishes of a listener, which knows no numbers.
accepted() {
	start a.log $stamps sent accepted poll 10.78.0.1 7000 20 20 1 "$@" || return 1
	(in_ns $b - timeout 30 $stamps call 10.78.0.1 7000) || return 1
	wait "$server" 2>/dev/null
	server=
}
accepted_by_card() {
	accepted TX_HARDWARE RAW_HARDWARE OPT_TSONLY && came 20 20 0 20
}
stream_accepted() {
	kinds accepted_by_card &&
		LAB_CARD=xdp accepted TX_HARDWARE TX_SOFTWARE SOFTWARE OPT_TSONLY &&
		sent 20 20 20 0 && wait_for "$by_option" "$work/a.log"
}

# no_card_of_stream FLAG...: the connection is the kernel's.
no_card_of_stream() {
	local how
	for how in poll cmsg; do
		run_stream a.log sent tcp $how 10.78.0.2 7000 20 20 1 \
			TX_HARDWARE TX_SOFTWARE RAW_HARDWARE SOFTWARE OPT_ID "$@" &&
			sent 20 20 20 0 && wait_for "is the kernel's" "$work/a.log" ||
			return 1
	done
}
no_stamps_of_stream() {
	VMA_HW_TS_CONVERSION=0 no_card_of_stream OPT_TSONLY
}
stream_by_no_card() {
	LAB_CARD=xdp no_card_of_stream OPT_TSONLY && kinds no_card_of_stream || return 1
	export VMA_HW_TS_CONVERSION
	kinds no_stamps_of_stream
}

# moved WAY: what the card has said is read first, and the kernel counts on. What the card
# says too late nobody waits for. What has not left yet the kernel sends, and stamps.
moved() {
	unset SOFTCX_LATE_US
	run_stream a.log moved "$1" later 10.78.0.2 7000 20 &&
		sent 40 40 20 20 || return 1
	export SOFTCX_LATE_US=1000000
	run_stream a.log moved "$1" at-once 10.78.0.2 7000 20 && within soft 20 40 &&
		within card 0 19
}
stream_goes_back() {
	kinds moved back
}
stream_loses_its_card() {
	kinds moved removed && wait_for 'v0 cannot be driven any more' "$work/a.log"
}

closed_stream() {
	SOFTCX_LATE_US=20000 run_stream a.log left tcp 10.78.0.2 7000 100
}
stream_closed() {
	export SOFTCX_LATE_US
	kinds closed_stream
}

run_cases $cases
