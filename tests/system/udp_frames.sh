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
	start a.log $frames collect 10.78.0.1 7000 10 53 || return 1
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

# The kernel drops what is longer than the frames that it was given, and a queue begins with few.
long_datagrams_for_a_short_queue() {
	local in_a
	export VMA_RX_WRE=4 VMA_RX_WRE_BATCHING=1
	mtu 65535 && start a.log $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 20 60000)" "right 20" && is_accelerated $a "$in_a" 20
}

# tagged_in MODE: five datagrams of 11 bytes with the tag of a VLAN that a does not
# have, then one of 8 without.
tagged_in() {
	export VMA_XDP_MODE=$1
	start a.log $frames collect 10.78.0.1 7000 1 8 || return 1
	(in_ns $b - $frames say 10.78.0.1 7000 "<...>")
	ip netns exec $b tc qdisc add dev v0 clsact &&
		ip netns exec $b tc filter add dev v0 egress bpf direct-action \
			object-file "$builddir/tests/system/tag.bpf.o" section tc ||
		return 1
	for _ in 1 2 3 4 5; do
		(in_ns $b - $frames say 10.78.0.1 7000 "<.........>")
	done
	ip netns exec $b tc qdisc del dev v0 clsact
	(in_ns $b - $frames say 10.78.0.1 7000 "<......>")
	wait_for '^lengths' "$work/out" &&
		expect "$(grep '^lengths' "$work/out")" "lengths 1x5 1x8 whole" &&
		wait_for "v0 is driven by xdp ($1" "$work/a.log"
}

tags_in_native_mode() { tagged_in native; }
# There the program cannot ask; the sender has to leave the tag in the frame.
tags_in_generic_mode() {
	ip netns exec $b ethtool -K v0 tx-vlan-offload off && tagged_in generic
}

run_cases segments_of_a_frame short_segments_in_a_long_frame \
	segments_in_a_long_frame segments_in_one_buffer long_datagrams_for_a_short_queue \
	tags_in_native_mode tags_in_generic_mode
