#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Frames that are not what they seem: several datagrams in one, and tags that are not
# among their bytes.
. "${srcdir:-.}/tests/system/udp_lab.sh"

frames="/usr/bin/python3 $srcdir/tests/system/udp_frames.py"

mtu() {
	ip -n $a link set v0 mtu "$1" && ip -n $b link set v0 mtu "$1"
}

# are_separate MODE CNT LEN: what the kernel's sender leaves for a card to split arrives
# as it was meant; the datagrams beside it come by the ring.
are_separate() {
	local in_a
	export VMA_XDP_MODE=$1
	start a.log $frames collect 10.78.0.1 7000 1 || return 1
	in_a=$(kernel_cnt $a)
	(in_ns $b - $frames segments 10.78.0.1 7000 "$2" "$3")
	wait_for '^lengths' "$work/out" &&
		expect "$(grep '^lengths' "$work/out")" \
			"lengths 10x52 10x53 $(($2 * 10))x$3 whole" &&
		wait_for "v0 is driven by xdp ($1" "$work/a.log" || return 1
	in_a=$(($(kernel_cnt $a) - in_a))
	end_server
	rm "$work/a.log"
	[ $in_a -le $(($2 * 10)) ] ||
		{ echo "$in_a by the kernel"; return 1; }
}

# in_each_mode MTU CNT LEN
in_each_mode() {
	mtu "$1" && are_separate generic "$2" "$3" && are_separate native "$2" "$3"
}

segments_of_a_frame() { in_each_mode 1500 5 1200; }
short_segments_in_a_long_frame() { in_each_mode 9000 10 100; }
segments_in_a_long_frame() { in_each_mode 9000 5 1200; }
# The program for single buffers is another one.
segments_in_one_buffer() {
	export VMA_XDP_MULTI_BUFFER=0
	mtu 1500 && are_separate generic 5 1200 &&
		mtu 9000 && are_separate generic 10 100 &&
		are_separate generic 5 1200
}

run_cases segments_of_a_frame short_segments_in_a_long_frame \
	segments_in_a_long_frame segments_in_one_buffer
