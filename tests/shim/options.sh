#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# VMA_ variables that change what UDP sockets do, by what a program sees of them.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/options
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
if is_thread_sanitized; then
	echo "1..0 # SKIP not under a sanitizer"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
export VMA_LOG_FILE=$work/log VMA_TRACELEVEL=debug VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo

# run PROGRAM VARIABLE=VALUE...: what it says in $work/out
run() {
	local what=$1
	shift
	rm -f "$work/log"
	(
		ulimit -c 0
		preloaded "$library" env "$@" timeout -k 5 20 "$program" \
			"$what" </dev/null
	) >"$work/out" 2>&1
}

# says PROGRAM LINES VARIABLE=VALUE...
says() {
	local what=$1 lines=$2
	shift 2
	run "$what" "$@"
	[ "$(cat "$work/out")" = "$lines" ] && return 0
	echo "$what, $*:"
	cat "$work/out"
	return 1
}

logged() {
	grep -q "$1" "$work/log" || { echo "no \"$1\" in the log"; return 1; }
}

accelerated="10 of 10 arrived, 10 accelerated"
by_kernel="10 of 10 arrived, 0 accelerated"

# exception VALUE PROGRAM LINE...: between ten that are accelerated, and ten more.
exception() {
	local value=$1 what=$2
	shift 2
	says "$what" "$(printf '%s\n' "$accelerated" "$@")" \
		"VMA_EXCEPTION_HANDLING=$value"
}

exception_passed_over() {
	local value
	for value in -1 -2; do
		exception $value beyond_option "off: ok" "on: ok" "$by_kernel" &&
			exception $value beyond_flags "more: ok" "rest: ok" \
				"2 bytes" "$accelerated" &&
			exception $value beyond_control "sendmsg: ok" "1 bytes" \
				"$accelerated" &&
			exception $value beyond_splice "splice: ok" "$by_kernel" &&
			logged 'DEBUG.*beyond this library; the kernel does it' &&
			! grep -q ERROR "$work/log" || return 1
	done
}

# leaves VALUE SEVERITY
leaves() {
	exception "$1" beyond_option "off: ok" "on: ok" "$by_kernel" &&
		exception "$1" beyond_flags "more: ok" "rest: ok" "2 bytes" \
			"$by_kernel" &&
		logged "$2.*with these flags (0x8000) is beyond this library; the socket is the kernel's now" &&
		exception "$1" beyond_control "sendmsg: ok" "1 bytes" "$by_kernel" &&
		logged "$2.*these control messages" &&
		exception "$1" beyond_splice "splice: ok" "$by_kernel"
}
exception_leaves() { leaves 0 DEBUG; }
exception_leaves_loudly() { leaves 1 ERROR; }

exception_is_refused() {
	exception 2 beyond_option "off: ok" "on: EINVAL" "$accelerated" &&
		logged 'ERROR.*an option of SOL_SOCKET (0x28).*the call fails' &&
		exception 2 beyond_flags "more: EINVAL" "rest: ok" "1 bytes" \
			"$accelerated" &&
		exception 2 beyond_control "sendmsg: EINVAL" "-1 bytes" \
			"$accelerated" &&
		exception 2 beyond_splice "splice: EINVAL" "$accelerated"
}

# option_lines WAY RESULT: what is to be said of the options that the input names.
option_lines() {
	local way=$1 result=$2 name
	while read -r name; do
		[ -n "$name" ] || continue
		printf '%s\n' "$accelerated" "$name: $result" "$way"
	done
}

# Linux's own word on those it refuses.
refused_lines() {
	local name result
	while IFS== read -r name result; do
		option_lines "$accelerated" "$result" <<<"$name"
	done
}

each_option_lines() {
	option_lines "$accelerated" ok <<-END
		SO_PRIORITY
		SO_SNDBUF
		IP_MULTICAST_TTL
		IP_FREEBIND
		IP_RECVERR
		IP_TTL
		IP_PKTINFO
		SO_RCVBUF
		SO_REUSEADDR
		SO_MAX_PACING_RATE
		SO_RXQ_OVFL
		SO_NO_CHECK
		SO_PEEK_OFF
		SO_MAX_PACING_RATE
		UDP_GRO
	END
	refused_lines <<-END
		a filter without lines=EINVAL
		a filter cut short=EINVAL
		SO_DETACH_FILTER=ENOENT
		1=ENOPROTOOPT
		3=ENOPROTOOPT
		9999=ENOPROTOOPT
		9999=ENOPROTOOPT
		9999=ENOPROTOOPT
		IPV6_V6ONLY=ENOPROTOOPT
		SO_TXTIME nowhere=EFAULT
	END
	option_lines "$by_kernel" ok <<-END
		SO_RXQ_OVFL
		SO_NO_CHECK
		SO_PEEK_OFF
		SO_TIMESTAMPNS_NEW
		IP_UNICAST_IF
		IP_MINTTL
		SO_ATTACH_FILTER
		SO_INCOMING_CPU
		101
	END
}

each_socket_option() {
	says each_option "$(each_option_lines)" &&
		says each_option "$(each_option_lines)" VMA_EXCEPTION_HANDLING=0
}

filter_spares_what_waits() {
	local value
	for value in -1 0; do
		says filtered_late "$(printf '%s\n' "filter: ok" "3 received")" \
			VMA_EXCEPTION_HANDLING=$value || return 1
	done
}

exception_aborts() {
	local what
	for what in option flags control splice; do
		run "beyond_$what" VMA_EXCEPTION_HANDLING=3
		[ $? = 134 ] || { echo "$what: $(cat "$work/out")"; return 1; }
		logged 'ERROR.*beyond this library; the process ends' || return 1
	done
}

# Without its modules and without the local device there is no way to start.
exception_at_the_start() {
	mkdir "$work/alone" && cp "$library" "$work/alone" || return 1
	local library=$work/alone/${library##*/}
	says plain "$by_kernel" VMA_TEST_LOCAL=0 VMA_EXCEPTION_HANDLING=-1 ||
		return 1
	run plain VMA_TEST_LOCAL=0 VMA_EXCEPTION_HANDLING=-2
	[ $? = 1 ] && [ ! -s "$work/out" ] && logged 'the process ends'
}

switched_off() {
	says plain "$accelerated" VMA_OFFLOADED_SOCKETS=1 &&
		says plain "$by_kernel" VMA_OFFLOADED_SOCKETS=0
}

polls_give_way() {
	says patient "recv: EAGAIN, gave way" VMA_RX_POLL=2000 \
		VMA_RX_POLL_YIELD=1 &&
		says patient "recv: EAGAIN, did not give way" \
			VMA_RX_POLL=2000 VMA_RX_POLL_YIELD=0
}

# Who has not set how long calls poll wants others to have the processor, too.
polls_leave_room() {
	says beside_another "poll: slept, recv: slept" &&
		says beside_another "poll: did not sleep, recv: did not sleep" \
			VMA_SELECT_POLL=10000000 VMA_RX_POLL=100000000
}

# thread_mode MODE WORDS
thread_mode() {
	says contended "3 bytes, $2" VMA_THREAD_MODE="$1" VMA_RX_POLL=0
}
thread_mode_biased() {
	thread_mode 0 spins && logged 'VMA_THREAD_MODE=0 but a second thread'
}
thread_mode_spin() {
	thread_mode 1 spins && ! grep -q 'second thread' "$work/log"
}
thread_mode_sleep() { thread_mode 2 sleeps; }
# It gives way a few times, and then for longer than a moment.
thread_mode_yield() { thread_mode 3 sleeps; }

# counted PATTERN: the sum of all counters of such names.
counted() {
	"$builddir/tools/vma_stats/vma_stats" -k "$work/shm" -p "$pid" --raw |
		awk -v name="$1" '$1 ~ name { n += $2 } END { print n + 0 }'
}

# hold PROGRAM VARIABLE=VALUE...: one that says "ready", and stays until it is let go.
hold() {
	local what=$1
	shift
	rm -f "$work/in" "$work/log"
	: >"$work/out"
	mkfifo "$work/in" && mkdir -p "$work/shm"
	(preloaded "$library" exec env VMA_STATS_SHMEM_DIR="$work/shm" "$@" \
		"$program" "$what" <"$work/in" >"$work/out" 2>&1) &
	pid=$!
	exec 9>"$work/in"
	until grep -q ready "$work/out"; do
		kill -0 $pid || return 1
		sleep 0.02
	done
}
let_go() {
	exec 9>&-
	wait "$pid"
}

# unread VARIABLE=VALUE...: how many of 200 datagrams that the program does not ask for
# the library has queued: the first count that is not 0 in $first, what it is a third
# of a second later in $soon, and in the end in $last, $took milliseconds after the
# first.
unread() {
	hold unread "$@" || return 1
	first=0 soon=0 last=0
	local look looked_us began_us=${EPOCHREALTIME/[.,]/}
	# what has begun goes on, however slowly
	for ((look = 0; look < 100 || (first != 0 && look < 1000); look++)); do
		looked_us=${EPOCHREALTIME/[.,]/}
		last=$(counted '[.]rx_queued_packets$')
		if [ "$first" != 0 ]; then
			[ $((++since)) -gt 10 ] || soon=$last
		elif [ "$last" != 0 ]; then
			first=$last soon=$last since=0 began_us=$looked_us
		fi
		[ "$last" -lt 200 ] || break
		sleep 0.03
	done
	took=$(((${EPOCHREALTIME/[.,]/} - began_us) / 1000))
	let_go
}

progress_of_what_nobody_polls() {
	# all in one go, which may be seen under way
	unread VMA_PROGRESS_ENGINE_INTERVAL=1500 && [ "$soon" = 200 ] ||
		{ echo "$first at once, $soon soon"; return 1; }
	unread VMA_PROGRESS_ENGINE_INTERVAL=0 && [ "$last" = 0 ] ||
		{ echo "$last without it"; return 1; }
}
progress_in_portions() {
	local tries=0
	# the rest are nine portions, for which a look that comes late is made anew
	until unread VMA_PROGRESS_ENGINE_INTERVAL=200 VMA_PROGRESS_ENGINE_WCE_MAX=16 &&
		[ "$first" -le 64 ]; do
		[ $((++tries)) -lt 10 ] || break
	done
	[ "$first" -le 64 ] && [ "$last" = 200 ] && [ "$took" -ge 1000 ] ||
		{ echo "first $first, at last $last after $took ms"; return 1; }
	unread VMA_PROGRESS_ENGINE_INTERVAL=100 VMA_PROGRESS_ENGINE_WCE_MAX=0 &&
		[ "$last" = 0 ] || { echo "$last in portions of none"; return 1; }
}

# Though it would look only after a minute.
thread_woken_by_packets() {
	unread VMA_PROGRESS_ENGINE_INTERVAL=60000 && [ "$last" = 0 ] &&
		unread VMA_PROGRESS_ENGINE_INTERVAL=60000 \
			VMA_INTERNAL_THREAD_ARM_CQ=1 && [ "$last" = 200 ] &&
		unread VMA_PROGRESS_ENGINE_INTERVAL=0 \
			VMA_INTERNAL_THREAD_ARM_CQ=1 && [ "$last" = 200 ] &&
		unread VMA_PROGRESS_ENGINE_WCE_MAX=0 \
			VMA_INTERNAL_THREAD_ARM_CQ=1 && [ "$last" = 0 ] ||
		{ echo "$last"; return 1; }
}

# As the program is started, or where the option says, and never in real time.
internal_thread_where_asked() {
	local cpus
	cpus=$(taskset -p $$ | sed 's/.*: //')
	run where
	grep -qx "0x$cpus, policy 0" "$work/out" ||
		{ cat "$work/out"; return 1; }
	run where VMA_INTERNAL_THREAD_AFFINITY=0
	grep -qx "0x1, policy 0" "$work/out" ||
		{ cat "$work/out"; return 1; }
}

rings_by_wish() {
	says ring "ring: ENOSYS, accelerated" VMA_IO_URING=auto &&
		says ring "ring: ok, by the kernel" VMA_IO_URING=kernel &&
		says ring "ring: ok, accelerated" VMA_IO_URING=ignore &&
		says ring "ring: ok, by the kernel" VMA_OFFLOADED_SOCKETS=0
}

tcp_from_the_first() {
	says tcp "nodelay 0, time stamps 1, mss 65483, cubic" VMA_TCP_CC_ALGO=1 &&
		says tcp "nodelay 1, time stamps 0, mss 65495, reno" \
			VMA_TCP_NODELAY=1 VMA_TCP_TIMESTAMP_OPTION=0 VMA_TCP_CC_ALGO=0 &&
		says tcp "nodelay 0, time stamps 1, mss 988, cubic" VMA_MSS=1000 \
			VMA_TCP_TIMESTAMP_OPTION=2 VMA_TCP_CC_ALGO=1
}

tcp_acks_at_once() {
	says tcp_acks later && says tcp_acks "at once" VMA_TCP_QUICKACK=1
}

tcp_peeks_poll() {
	says tcp_peeks ab VMA_PROGRESS_ENGINE_INTERVAL=0
}

tcp_sends_poll() {
	says tcp_sends "not yet" VMA_PROGRESS_ENGINE_INTERVAL=0 &&
		says tcp_sends seen VMA_PROGRESS_ENGINE_INTERVAL=0 \
			VMA_RX_POLL_ON_TX_TCP=1
}

tcp_memory_has_a_limit() {
	says tcp_memory "much, full, goes on, goes on, all" &&
		says tcp_memory "little, full, goes on, goes on, all" VMA_TX_BUFS=1 &&
		says tcp_memory "little, full, goes on, goes on, all" VMA_TX_SEGS_TCP=128
}

tcp_segments_are_merged() {
	says tcp_merges merged VMA_MSS=1000 &&
		says tcp_merges each VMA_MSS=1000 VMA_GRO_STREAMS_MAX=0
}

tcp_syns_by_the_second() {
	says tcp_syns all && says tcp_syns few VMA_TCP_MAX_SYN_RATE=2
}

batch_of_a_poll() {
	local batch cnt
	for batch in 1 4 16 128; do
		hold batch VMA_CQ_POLL_BATCH_MAX=$batch \
			VMA_PROGRESS_ENGINE_INTERVAL=0 || return 1
		cnt=$(counted '^ring[.]0[.]rx_pkts$')
		let_go
		[ "$cnt" = $batch ] || { echo "$batch: $cnt"; return 1; }
	done
}

# polled PROGRAM VARIABLE=VALUE: frames that were taken off the ring, in $cnt.
polled() {
	hold "$1" "$2" VMA_PROGRESS_ENGINE_INTERVAL=0 || return 1
	cnt=$(counted '^ring[.]0[.]rx_pkts$')
	let_go
}

# A poll takes 16; those who find what was there poll as well if it is time.
polls_beside_data() {
	local cnt tcp
	polled drained VMA_RX_CQ_DRAIN_RATE_NSEC=0 && [ "$cnt" = 16 ] &&
		polled drained VMA_RX_CQ_DRAIN_RATE_NSEC=2000000000 &&
		[ "$cnt" = 16 ] &&
		polled drained VMA_RX_CQ_DRAIN_RATE_NSEC=1 && [ "$cnt" = 64 ] &&
		polled tcp_drained VMA_RX_CQ_DRAIN_RATE_NSEC=0 && tcp=$cnt &&
		polled tcp_drained VMA_RX_CQ_DRAIN_RATE_NSEC=1 &&
		[ $((cnt - tcp)) -ge 12 ] || { echo "$cnt, tcp before $tcp"; return 1; }
}

least_buffer_of_a_socket() {
	says buffered "30 kept" VMA_RX_BYTES_MIN=1000000 \
		VMA_CQ_POLL_BATCH_MAX=30 VMA_PROGRESS_ENGINE_INTERVAL=0 &&
		says buffered "4 kept" VMA_RX_BYTES_MIN=0 \
			VMA_CQ_POLL_BATCH_MAX=30 VMA_PROGRESS_ENGINE_INTERVAL=0
}

kernel_is_asked_while_polling() {
	says os_ratio "pipe: seen at once" VMA_SELECT_POLL=4000000 \
		VMA_SELECT_POLL_OS_RATIO=1 &&
		says os_ratio "pipe: seen late" VMA_SELECT_POLL=1000000 \
			VMA_SELECT_POLL_OS_RATIO=0
}

kernel_is_passed_over() {
	says skip_os "||||||||||||" VMA_SELECT_SKIP_OS=0 &&
		says skip_os "|..|..|..|.." VMA_SELECT_SKIP_OS=2
}

none_is_passed_over_for_ever() {
	says arrays_in_turn "0 not seen" VMA_SELECT_SKIP_OS=4 &&
		says arrays_in_turn "0 not seen" VMA_SELECT_SKIP_OS=1
}

# Nobody but the local device can drive lo.
local_device_by_wish() {
	says plain "$accelerated" VMA_TEST_LOCAL=1 &&
		says plain "$by_kernel" VMA_TEST_LOCAL=0
}

log_goes_to_a_file() {
	run plain VMA_LOG_FILE="$work/other"
	grep -q 'VMA INFO' "$work/other" && ! grep VMA "$work/out" || return 1
	run plain -u VMA_LOG_FILE
	grep -q 'VMA INFO' "$work/out"
}

# coloured WISH: lines with colours on a terminal.
coloured() {
	preloaded "$library" env -u VMA_LOG_FILE VMA_LOG_COLORS="$1" \
		script -qec "$program plain" /dev/null </dev/null >"$work/out"
	grep -q VMA "$work/out" || { cat "$work/out"; return 2; }
	grep -q $'\e\[' "$work/out"
}
log_has_colours() {
	local status
	coloured 1 || return 1
	coloured 0
	status=$?
	[ $status = 1 ]
}

rules_are_read_from_a_file() {
	echo 'use os udp_connect *:*' >"$work/rules"
	says plain "$by_kernel" VMA_CONFIG_FILE="$work/rules" &&
		says plain "$accelerated" VMA_CONFIG_FILE=
}

rules_for_an_application_id() {
	printf '%s\n' 'application-id options mine' 'use os udp_connect *:*' \
		>"$work/rules"
	says plain "$by_kernel" VMA_CONFIG_FILE="$work/rules" \
		VMA_APPLICATION_ID=mine &&
		says plain "$accelerated" VMA_CONFIG_FILE="$work/rules" \
			VMA_APPLICATION_ID=other &&
		says plain "$accelerated" VMA_CONFIG_FILE="$work/rules"
}

# nginx and its like write over their arguments.
rules_know_the_program_by_its_start() {
	printf '%s\n' 'application-id options *' 'use os udp_connect *:*' \
		'application-id w:* *' 'use vma udp_connect *:*' >"$work/rules"
	says titled "$by_kernel" VMA_CONFIG_FILE="$work/rules"
}

# PostgreSQL and its like over their environment as well. (With more in the log it would be
# read before.)
variables_outlive_a_title() {
	export VMA_TRACELEVEL=info
	echo 'use os udp_connect *:*' >"$work/rules"
	says titled_threads "$accelerated" &&
		says titled_threads "$by_kernel" VMA_CONFIG_FILE="$work/rules"
}

# They are for the card's queues alone. A program that sends one is not to find it sent.
dummies_are_not_sent() {
	local refused="EINVAL EINVAL EINVAL EINVAL, real"
	says dummies "$(printf '%s\n' "UDP: $refused" "$accelerated" "local: $refused")" &&
		says tcp_dummies "TCP: $refused" && ! grep 'flags (0x' "$work/log" &&
		says dummies "$(printf '%s\n' "UDP: $refused" "$by_kernel" "local: $refused")" \
			VMA_OFFLOADED_SOCKETS=0 &&
		says tcp_dummies "TCP: $refused" VMA_OFFLOADED_SOCKETS=0
}

for case in ${CASES:-exception_passed_over exception_leaves exception_leaves_loudly \
	exception_is_refused each_socket_option filter_spares_what_waits exception_aborts exception_at_the_start switched_off \
	polls_give_way polls_leave_room thread_mode_biased thread_mode_spin thread_mode_sleep \
	thread_mode_yield progress_of_what_nobody_polls progress_in_portions \
	internal_thread_where_asked rings_by_wish tcp_from_the_first tcp_acks_at_once tcp_peeks_poll tcp_sends_poll tcp_memory_has_a_limit tcp_segments_are_merged tcp_syns_by_the_second batch_of_a_poll polls_beside_data \
	thread_woken_by_packets \
	least_buffer_of_a_socket kernel_is_asked_while_polling kernel_is_passed_over \
	none_is_passed_over_for_ever \
	local_device_by_wish log_goes_to_a_file log_has_colours \
	rules_are_read_from_a_file rules_for_an_application_id \
	rules_know_the_program_by_its_start variables_outlive_a_title dummies_are_not_sent}; do
	tap_check "$case" "$case"
done
tap_end
