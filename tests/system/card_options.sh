#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What VMA's options for cards do, by what the software ConnectX counts
# (tests/softcx/counters.def) while a program in a sends, or waits for, datagrams.
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/udp_lab.sh"

cases="batches_of_completions inline_up_to_a_length blue_flame card_memory
card_memory_that_is_not_there card_memory_in_the_statistics depth_of_the_queue
more_than_the_queue batches_of_refills moderation_adapts moderation_stays frames_have_a_ceiling
moderated_interrupts"

# counts COUNTER: of the card of the last program.
counts() {
	awk -v name="$1" '$2 == "mlx5_0:" && $3 == name { print $4; n = 1 }
		END { if (!n) print 0 }' "$work/counts"
}

# Somebody in b who does not complain.
sink() {
	: >"$work/sink"
	(in_ns $b - /usr/bin/python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.78.0.2", 7000))
print("ready", flush=True)
time.sleep(100)') >"$work/sink" 2>&1 &
	server=$!
	wait_for ready "$work/sink"
}

# send_with VARIABLE=VALUE...: 640 datagrams of few bytes to the other end.
send_with() {
	[ -n "$server" ] || sink || return 1
	(in_ns $a a.log env SOFTCX_STATS=1 "$@" timeout 60 $program shower \
		10.78.0.2 7000 640) >"$work/counts" 2>&1 ||
		{ cat "$work/counts"; return 1; }
	[ "$(counts tx_wire)" -ge 640 ] || { cat "$work/counts"; return 1; }
}

# between NUMBER LOWEST HIGHEST
between() {
	[ "$1" -ge "$2" ] && [ "$1" -le "$3" ] ||
		{ echo "$1 is not from $2 to $3"; cat "$work/counts"; return 1; }
}

# VMA_TX_WRE_BATCHING: one completion in so many sends; a few more at the end.
batches_of_completions() {
	send_with VMA_TX_WRE_BATCHING=64 && between "$(counts cqes)" 10 20 &&
		send_with VMA_TX_WRE_BATCHING=4 &&
		between "$(counts cqes)" 160 170
}

# VMA_TX_MAX_INLINE: frames of 43 to 45 bytes are copied or gathered.
inline_up_to_a_length() {
	send_with VMA_TX_MAX_INLINE=45 && between "$(counts tx_inline)" 640 700 &&
		send_with VMA_TX_MAX_INLINE=42 && between "$(counts tx_inline)" 0 60
}

# VMA_BF: entries are written into the card's register, or only announced.
blue_flame() {
	send_with VMA_BF=1 && between "$(($(counts bf_entries) +
		$(counts bf_unsure)))" 1 700 &&
		send_with VMA_BF=0 && between "$(($(counts bf_entries) +
			$(counts bf_unsure)))" 0 0
}

# VMA_RING_DEV_MEM_TX: what is longer than a short frame lies on the card, as far as it
# has room: a datagram of 41 fragments has more than it, at once.
card_memory() {
	ask_with 1000 300 && between "$(counts reads_of_dm)" 0 0 &&
		ask_with 64 300 VMA_RING_DEV_MEM_TX=8192 &&
		between "$(counts reads_of_dm)" 0 0 &&
		ask_with 1000 300 VMA_RING_DEV_MEM_TX=8192 &&
		between "$(counts reads_of_dm)" 300 300 &&
		ask_by 60000 40 VMA_RING_DEV_MEM_TX=8192 &&
		between "$(counts tx_wire)" 1640 1700 &&
		between "$(counts reads_of_dm)" 100 1500 &&
		! grep 'v0: .*VMA_RING_DEV_MEM_TX' "$work/a.log"
}

# Less than was asked for, and none.
card_memory_that_is_not_there() {
	ask_with 1000 300 VMA_RING_DEV_MEM_TX=1000000 &&
		between "$(counts reads_of_dm)" 300 300 &&
		wait_for 'v0: its card has less memory than VMA_RING_DEV_MEM_TX=1000000: a ring gets 262144 bytes$' \
			"$work/a.log" &&
		ask_with 1000 300 VMA_RING_DEV_MEM_TX=8192 VMA_BF=0 &&
		between "$(counts reads_of_dm)" 0 0 &&
		wait_for 'v0: there is no BlueFlame (VMA_BF), so VMA_RING_DEV_MEM_TX=8192 has no effect$' \
			"$work/a.log"
}

# The rows of a ring that VMA has for it.
card_memory_in_the_statistics() {
	local stats=$builddir/tools/vma_stats/vma_stats out
	export VMA_RING_DEV_MEM_TX=8192
	start a.log $program echo 10.78.0.1 7000
	local status=$?
	unset VMA_RING_DEV_MEM_TX
	[ $status = 0 ] && expect "$(ask - 100 1024)" "right 100" || return 1
	out=$("$stats" -p "$server" -c 1 -v 3)
	grep -q '^Dev Mem Alloc: *8192$' <<<"$out" &&
		grep -q '^Dev Mem Stats: *100 / 100 / 0 \[kilobytes/packets/oob\]$' \
			<<<"$out" || { echo "$out"; return 1; }
	expect "$(ask - 20 60000)" "right 20" || return 1
	out=$("$stats" -p "$server" --raw | awk '/^ring/ { print $1, ($2 > 0) }')
	grep -qx 'ring.0.dev_mem_full 1' <<<"$out" || { echo "$out"; return 1; }
}

# VMA_TX_WRE: a queue of two blocks for each, so that twice as many sends of one block
# are under way at most.
depth_of_the_queue() {
	send_with VMA_TX_WRE=256 && grep -q 'queues: .* 512 to send' "$work/a.log" &&
		send_with VMA_TX_WRE=2048 &&
		grep -q 'queues: .* 4096 to send' "$work/a.log"
}

# ask_by LEN CNT VARIABLE=VALUE...: a program asks an echo of the kernel's.
ask_by() {
	local len=$1 cnt=$2
	shift 2
	[ -n "$server" ] || {
		: >"$work/echo"
		(in_ns $b - $program echo 10.78.0.2 7000) >"$work/echo" 2>&1 &
		server=$!
		wait_for ready "$work/echo" || return 1
	}
	rm -f "$work/a.log"
	(in_ns $a a.log env SOFTCX_STATS=1 "$@" timeout 60 $program ask \
		10.78.0.2 7000 "$cnt" "$len") >"$work/counts" 2>&1
	grep -qx "right $cnt" "$work/counts" || { cat "$work/counts"; return 1; }
}

# ask_with LEN CNT VARIABLE=VALUE...: whose answers come by the card.
ask_with() {
	ask_by "$@" && [ "$(counts rx_delivered)" -ge "$2" ] ||
		{ cat "$work/counts"; return 1; }
}

# What has more fragments than such a queue ever holds is the kernel's, at once.
more_than_the_queue() {
	ask_by 65000 20 VMA_TX_WRE=128 && between "$(counts tx_wire)" 0 100 &&
		ask_by 46000 20 VMA_TX_WRE=128 && between "$(counts tx_wire)" 640 700 &&
		ask_by 46000 20 VMA_TX_WRE=32 VMA_TX_WRE_BATCHING=4 VMA_RING=verbs &&
		between "$(counts tx_wire)" 0 100 &&
		ask_by 42000 20 VMA_TX_WRE=32 VMA_TX_WRE_BATCHING=4 VMA_RING=verbs &&
		between "$(counts tx_wire)" 580 640
}

# VMA_RX_WRE_BATCHING: one update of the receive queue for so many frames; some more
# when the program sleeps.
batches_of_refills() {
	in_three_tries refills 64 8 60 && in_three_tries refills 4 120 300
}
# refills BATCH LOWEST HIGHEST: a program that stands still sleeps, too.
refills() {
	ask_with 64 640 VMA_RX_WRE_BATCHING="$1" VMA_RX_POLL=-1 VMA_SELECT_POLL=-1 &&
		between "$(counts rx_refills)" "$2" "$3"
}

# VMA_CQ_AIM_...: few short answers end the moderation that there was at first; long ones
# begin one that is as the limits allow.
moderation_adapts() {
	ask_with 64 600 VMA_SELECT_POLL=0 VMA_CQ_AIM_INTERVAL_MSEC=20 &&
		between "$(counts moderations)" 2 100 &&
		wait_for 'v0: an interrupt waits for 0 packets, 0 us' "$work/a.log" &&
		ask_with 1400 600 VMA_SELECT_POLL=0 VMA_CQ_AIM_INTERVAL_MSEC=20 \
			VMA_CQ_AIM_INTERRUPTS_RATE_PER_SEC=1 \
			VMA_CQ_AIM_MAX_COUNT=7 VMA_CQ_AIM_MAX_PERIOD_USEC=90 &&
		wait_for 'v0: an interrupt waits for 7 packets, 90 us' "$work/a.log"
}

moderation_stays() {
	ask_with 64 600 VMA_SELECT_POLL=0 VMA_CQ_AIM_INTERVAL_MSEC=0 &&
		between "$(counts moderations)" 1 1
}

# VMA_RX_BUFS: a burst that nobody looks at would have more frames after it.
frames_have_a_ceiling() {
	export VMA_PROGRESS_ENGINE_INTERVAL=0 VMA_RX_BUFS=5000
	start a.log $program echo_on_a_card 10.78.0.1 7000
	local status=$?
	unset VMA_PROGRESS_ENGINE_INTERVAL VMA_RX_BUFS
	[ $status = 0 ] && expect "$(ask - 10 64)" "right 10" || return 1
	rm -f "$work/look"
	(in_ns $b - $program say 10.78.0.1 7000 "card unseen $work/look")
	wait_for '^looks away' "$work/out" || return 1
	(in_ns $b - $program shower 10.78.0.1 7000 1500)
	touch "$work/look"
	wait_for '^card unseen .* 0$' "$work/out" &&
		wait_for 'v0: no further frames: the interfaces may have 5000$' \
			"$work/a.log" &&
		expect "$(ask - 100 64)" "right 100" &&
		! grep 'another 4096' "$work/a.log"
}

# asked_in VARIABLE=VALUE...: the milliseconds that thirty questions to a program take
# that sleeps for each, whose interrupts do not adapt to that, and for which nobody else looks.
asked_in() {
	local begin end
	set -- VMA_CQ_AIM_INTERVAL_MSEC=0 VMA_PROGRESS_ENGINE_INTERVAL=0 "$@"
	export VMA_RX_POLL=0 "$@"
	start a.log $program echo 10.78.0.1 7000
	local status=$?
	unset VMA_RX_POLL "${@%%=*}"
	[ $status = 0 ] && expect "$(ask - 10 64)" "right 10" || return 1
	begin=$(date +%s%N)
	expect "$(ask - 30 64)" "right 30" || return 1
	end=$(date +%s%N)
	end_server
	took=$(((end - begin) / 1000000))
}

# VMA_CQ_MODERATION_...: an interrupt waits for the last of so many packets, and not
# longer than for so long.
moderated_interrupts() {
	asked_in VMA_CQ_MODERATION_COUNT=1000 VMA_CQ_MODERATION_PERIOD_USEC=60000 &&
		between "$took" 900 20000 &&
		asked_in VMA_CQ_MODERATION_COUNT=1 \
			VMA_CQ_MODERATION_PERIOD_USEC=60000 &&
		between "$took" 0 700 &&
		asked_in VMA_CQ_MODERATION_COUNT=1000 \
			VMA_CQ_MODERATION_PERIOD_USEC=60000 \
			VMA_CQ_MODERATION_ENABLE=0 &&
		between "$took" 0 700
}

# Times are for a machine that does nothing else: CARD_TIMES=1.
[ -n "${CARD_TIMES:-}" ] || {
	cases=${cases/moderated_interrupts/}
	tap_skip moderated_interrupts "CARD_TIMES=1 measures times"
}
run_cases $cases
