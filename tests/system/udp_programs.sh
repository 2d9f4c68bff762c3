#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs with sockets of their own habits, under the library on both ends of a
# cable: what they say must be right, and the kernel's sockets must have seen next to
# nothing of it.
. "${srcdir:-.}/tests/system/udp_lab.sh"

helper="/usr/bin/python3 $srcdir/tests/system/udp_programs.py"

# (in_b COMMAND...): a program under the library in b, for half a minute at most.
in_b() {
	in_ns $b b.log timeout 30 "$@"
}

# both_carry CNT: what is done next has at least so many datagrams, and of these
# at most 5 in 100 are the kernel's, at either end.
mark() {
	in_a=$(kernel_cnt $a) in_b=$(kernel_cnt $b)
}
both_carry() {
	[ "$1" -ge 20 ] || { echo "only $1 datagrams"; return 1; }
	is_accelerated $a "$in_a" "$1" && is_accelerated $b "$in_b" "$1"
}

# iperf_once OPTIONS: 2 s of 20 Mbit/s. iperf3's control connection is TCP, and so is
# what it says when it is ready.
iperf_once() {
	local cnt lost
	: >"$work/out"
	(in_ns $a a.log timeout 30 iperf3 -s -1 --forceflush) >"$work/out" 2>&1 &
	server=$!
	wait_for 'Server listening' "$work/out" || return 1
	mark
	(in_b iperf3 -c 10.78.0.1 -u -b 20M -l 1400 -t 2 -J "$@") \
		>"$work/iperf" 2>&1
	wait "$server"
	server=
	read -r cnt lost <<<"$($helper iperf "$work/iperf")"
	[ -n "$lost" ] || { cat "$work/iperf"; return 1; }
	# the last ones are under way when the sender stops counting
	[ $((lost * 50)) -le "$cnt" ] || { echo "$lost of $cnt lost"; return 1; }
	both_carry "$cnt"
}
# A busy machine keeps the receiver from running for longer than any queue is long.
iperf() {
	iperf_once "$@" || iperf_once "$@" || iperf_once "$@"
}
iperf3_there() {
	iperf
}
iperf3_and_back() {
	iperf -R
}

socat_echoes() {
	start a.log sh -c 'echo ready; exec socat UDP4-LISTEN:7000 PIPE' &&
		wait_until is_bound $a 7000 || return 1
	sleep 0.3
	mark
	seq -w 200 | (in_b sh -c 'while read -r line; do
		echo "$line"; sleep 0.005; done | socat -t 5 - UDP4:10.78.0.1:7000') \
		>"$work/echoed"
	expect "$(md5sum <"$work/echoed")" "$(seq -w 200 | md5sum)" && both_carry 200
}

# dig makes its calls itself. The rule of libvma.conf is for those who do, too.
dig_asks() {
	(in_b dig +tries=1 +time=5 @10.78.0.1 -f "$work/names" +short) \
		>"$work/answers" 2>&1
	diff "$work/answers" "$work/expected" >"$work/diff" ||
		{ head -5 "$work/diff"; return 1; }
}
dig_with_the_rule_removed() {
	seq 100 | sed 's/.*/host&.example A/' >"$work/names"
	seq 100 | sed 's/.*/10.9.8.&/' >"$work/expected"
	echo 'use os udp_connect *:54' >"$work/conf"
	start a.log $helper names 10.78.0.1 53 || return 1
	mark
	export VMA_CONFIG_FILE=$work/conf
	dig_asks
	local status=$?
	unset VMA_CONFIG_FILE
	[ $status = 0 ] && both_carry 100
}
dig_with_the_rule() {
	local by_kernel
	seq 20 | sed 's/.*/host&.example A/' >"$work/names"
	seq 20 | sed 's/.*/10.9.8.&/' >"$work/expected"
	start a.log $helper names 10.78.0.1 53 || return 1
	mark
	export VMA_CONFIG_FILE=$srcdir/libvma.conf
	dig_asks
	local status=$?
	unset VMA_CONFIG_FILE
	[ $status = 0 ] || return 1
	by_kernel=$(($(kernel_cnt $b) - in_b))
	[ $by_kernel -ge 20 ] || { echo "$by_kernel of 20 by the kernel"; return 1; }
}

# sock SUMMARY MODE OPTIONS: sockperf, whose summary has to agree.
sock() {
	local summary=$1 cnt
	shift
	(in_ns $a a.log timeout 40 sockperf server -i 10.78.0.1 -p 7100) \
		>"$work/out" 2>&1 &
	server=$!
	wait_for 'v0 is driven by xdp' "$work/a.log" || return 1
	sleep 0.3
	mark
	(in_b sockperf "$@" -i 10.78.0.1 -p 7100) >"$work/sockperf" 2>&1
	grep -qE "$summary" "$work/sockperf" || { cat "$work/sockperf"; return 1; }
	cnt=$(grep -oE '\[Total Run\].*SentMessages=[0-9]+|[0-9]+ messages' \
		"$work/sockperf" | grep -oE '[0-9]+' | tail -1)
	both_carry "${cnt:-0}"
}
nothing_amiss='dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0'
sockperf_ping_pong() {
	sock "$nothing_amiss" ping-pong -t 2 -m 1000 --data-integrity
}
# sockperf counts as dropped what has no answer 50 ms after it has sent its last. On a machine
# that stands still for longer these are the last ones, of which it wants one in each
# millisecond answered. Its latencies are halves of the time until the answer.
sockperf_under_load() {
	sock '# duplicated messages = 0; # out-of-order messages = 0' under-load \
		-t 2 -m 200 --mps 5000 --reply-every 5 || return 1
	awk '/dropped messages = / { sub(/.*dropped messages = /, ""); dropped = $1 + 0; n++ }
		/<MAX> observation = / { longest_ms = $NF * 2 / 1000 }
		END { exit n != 1 || !longest_ms ||
			(dropped && dropped > 2 * (longest_ms - 50)) }' "$work/sockperf" ||
		{ cat "$work/sockperf"; return 1; }
}
sockperf_throughput() {
	sock 'Message Rate is [1-9]' throughput -t 2 -m 1400 --mps 20000
}
sockperf_playback() {
	# seconds and bytes: a datagram each millisecond, of every size
	seq 1000 | awk '{ printf "%.6f, %d\n", $1 / 1000, 14 + $1 }' >"$work/data"
	sock 'Test ended|SentMessages' playback --data-file "$work/data"
}

ten_thousand_sockets() {
	local bytes in_a kernel_bytes
	start - $helper many 10.78.0.1 10000 || return 1
	kernel_bytes=$(sed -n 's/ready //p' "$work/out")
	end_server
	start a.log $helper many 10.78.0.1 10000 || return 1
	bytes=$(sed -n 's/ready //p' "$work/out")
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 60 $helper reach 10.78.0.1 10000) 2>&1)" \
		"reached 10000" && is_accelerated $a "$in_a" 10000 || return 1
	echo "# $kernel_bytes bytes each on the kernel, $bytes accelerated" >&3
	[ $((bytes - kernel_bytes)) -le 4096 ]
}

exec 3>&1
run_cases iperf3_there iperf3_and_back socat_echoes \
	dig_with_the_rule_removed dig_with_the_rule sockperf_ping_pong \
	sockperf_under_load sockperf_throughput sockperf_playback \
	ten_thousand_sockets
