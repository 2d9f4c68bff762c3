# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced with LAB_CARD: UDP programs on the software ConnectX: those cases of
# udp_xdp.sh that are not about XDP, and some of a card alone. Two processes of a
# namespace have the card, each with queues and rules of its own.

cases="both_ends_are_accelerated counters_agree_with_the_kernel sizes_up_to_a_frame
longer_ones slow_reader_takes_no_frames child_of_a_parent_that_exits
child_of_a_parent_that_does_not_read peer_on_the_kernel server_on_the_kernel
other_traffic_is_undisturbed killed_process_leaves_nothing
excluded_interface_is_left_alone address_added_while_it_runs mac_changed_while_it_runs
peer_mac_changed_while_it_runs address_removed_while_it_runs
first_interface_added_while_it_runs first_address_added_while_it_runs
interface_deleted_while_it_runs sockperf_in_each_way
port_taken_by_another_process port_of_another_process address_taken_by_another_process
two_processes_on_one_card two_cards_in_one_process chosen_by_the_user without_the_module
send_and_exit bursts_get_more_frames card_removed
removed_card_takes_no_number queue_failed completions_failed
link_down_and_up frames_lost_and_damaged"
CASES=${CASES:-$cases}

# Each has its port, and what is for it. When one is killed, its rules go with it: its port
# is the kernel's, and the other process does not notice.
two_processes_on_one_card() {
	local other in_a
	start a.log $program echo 10.78.0.1 7000 || return 1
	: >"$work/second"
	(in_ns $a second.log $program echo 10.78.0.1 7002) >"$work/second" 2>&1 &
	other=$!
	wait_for ready "$work/second"
	in_a=$(kernel_cnt $a)
	expect "$(ask - 300 64)" "right 300" &&
		expect "$( (in_ns $b - timeout 30 $program ask 10.78.0.1 7002 300 \
			64) 2>&1)" "right 300" &&
		is_accelerated $a "$in_a" 600
	local status=$?
	kill -9 $other
	wait $other 2>/dev/null
	[ $status = 0 ] || return 1
	: >"$work/second"
	(in_ns $a - $program echo 10.78.0.1 7002) >"$work/second" 2>&1 &
	other=$!
	wait_for ready "$work/second" && in_a=$(kernel_cnt $a) &&
		expect "$( (in_ns $b - timeout 30 $program ask 10.78.0.1 7002 100 \
			64) 2>&1)" "right 100" &&
		expect "$(($(kernel_cnt $a) - in_a))" 100 &&
		in_a=$(kernel_cnt $a) && expect "$(ask - 100 64)" "right 100" &&
		is_accelerated $a "$in_a" 100
	status=$?
	kill -9 $other
	wait $other 2>/dev/null
	return $status
}

# One socket has a ring on each.
two_cards_in_one_process() {
	local in_a
	add_link && make_wire v1 || return 1
	LAB_CARDS=mlx5_0:v0,mlx5_1:v1 start a.log $program echo 0.0.0.0 7000 ||
		return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" &&
		expect "$(ask - 500 1400 10.79.0.1)" "right 500" &&
		is_accelerated $a "$in_a" 1000 &&
		says_why '^  receives  accelerated by ring 0 on v0 .*, ring 1 on v1 '
}

# VMA_RING=xdp: the card is a veth like any other.
chosen_by_the_user() {
	LAB_CARD=xdp start a.log $program echo 10.78.0.1 7000 || return 1
	expect "$(ask - 200 64)" "right 200" &&
		wait_for 'v0 is driven by xdp' "$work/a.log" || return 1
	end_server
	LAB_CARD=auto start a.log $program echo 10.78.0.1 7000 || return 1
	expect "$(ask - 200 64)" "right 200" &&
		wait_for 'v0 is driven by mlx5' "$work/a.log"
}

# A library that has no module for RDMA beside it.
without_the_module() {
	local library=$work/lib/libvma-debug.so in_a
	mkdir -p "$work/lib"
	cp "$builddir/src/.libs/libvma-debug.so" \
		"$builddir/src/nl/libnl/.libs/libvma-nl-debug.so" "$work/lib" ||
		return 1
	start a.log $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 100 64)" "right 100" &&
		expect "$(($(kernel_cnt $a) - in_a))" 100 &&
		wait_for 'Sockets stay with the kernel: no back end' "$work/a.log"
}

# has_received CNT: the kernel in a, since then.
has_received() {
	[ $(($(kernel_cnt $a) - in_a)) -ge "$1" ]
}

# What was sent leaves, although the queue that has it ends with the process, or with its
# program. The
# card, which is asleep, has not begun with it then.
send_and_exit() {
	local round in_a
	start - $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	for round in $(seq 5); do
		(in_ns $b b.log timeout 20 $program parting 10.78.0.1 7000 \
			$([ $((round % 2)) = 0 ] || echo exec)) || return 1
		wait_until has_received $((round * 2)) || return 1
	done
}

# The library's thread leaves all that comes to a program that does not look for a
# while, so that the card uses what it had. The next time it has more.
bursts_get_more_frames() {
	export VMA_PROGRESS_ENGINE_INTERVAL=0
	start a.log $program echo_on_a_card 10.78.0.1 7000
	local status=$?
	unset VMA_PROGRESS_ENGINE_INTERVAL
	[ $status = 0 ] && expect "$(ask - 10 64)" "right 10" &&
		overlook v0 10.78.0.1 && expect "$(ask - 100 64)" "right 100"
}

# fail_card WHAT: something happens to the card of the echo in a.
fail_card() {
	(in_ns $b - $program say 10.78.0.1 7000 "card $1")
	wait_for "^card $1 0\$" "$work/out"
}

patiently() {
	(in_ns $b - timeout 60 $program ask_patiently 10.78.0.1 7000 "$1") 2>&1
}

# goes_on_with_the_kernel WHAT: the echo answers, if not at once, and it is said why.
goes_on_with_the_kernel() {
	local in_a
	start a.log $program echo_on_a_card 10.78.0.1 7000 || return 1
	expect "$(ask - 100 64)" "right 100" && fail_card "$1" || return 1
	wait_for 'v0 cannot be driven any more' "$work/a.log" &&
		expect "$(patiently 20 | cut -d' ' -f 1,2)" "wrong 0" || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 100 64)" "right 100" &&
		expect "$(($(kernel_cnt $a) - in_a))" 100
}

card_removed() {
	goes_on_with_the_kernel removed
}

# Its fds, which are hidden, do not come to light.
removed_card_takes_no_number() {
	expect "$( (in_ns $a a.log timeout 60 $program numbers_after_removal 10.78.0.1 \
		7000) 2>&1)" "closed True new set()"
}

# An interface whose queue has failed is as good as another: the next news of the
# network takes it again.
goes_on_and_comes_back() {
	local in_a
	start a.log $program echo_on_a_card 10.78.0.1 7000 || return 1
	expect "$(ask - 100 64)" "right 100" && fail_card "$1" &&
		wait_for 'v0 cannot be driven any more' "$work/a.log" &&
		expect "$(patiently 20 | cut -d' ' -f 1,2)" "wrong 0" || return 1
	ip -n $a address add 10.78.9.1/24 dev v0
	wait_until is_said 2 "v0 is driven by $LAB_CARD" || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 300 64)" "right 300" && is_accelerated $a "$in_a" 300
}

queue_failed() {
	goes_on_and_comes_back queue
}
completions_failed() {
	goes_on_and_comes_back completions
}

# While it is down nothing comes; no harm is done.
link_down_and_up() {
	local in_a
	start a.log $program echo_on_a_card 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$(ask - 100 64)" "right 100" && fail_card blink &&
		expect "$(patiently 20)" "wrong 0 again True" &&
		expect "$(ask - 300 64)" "right 300" &&
		is_accelerated $a "$in_a" 420
}

# SOFTCX_IMPAIR: of what the card of the echo receives, a tenth each is lost, doubled
# and damaged. What the program sees is right all the same.
frames_lost_and_damaged() {
	export SOFTCX_IMPAIR=loss=100000,dup=100000,corrupt=100000
	start a.log $program echo_on_a_card 10.78.0.1 7000
	local status=$?
	unset SOFTCX_IMPAIR
	[ $status = 0 ] && expect "$(patiently 300)" "wrong 0 again True"
}

. "${srcdir:-.}/tests/system/udp_xdp.sh"
