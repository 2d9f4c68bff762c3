#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# vma_stats, and the files it reads, with programs under the test library whose
# traffic over loopback is known to the last byte.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/stats
tool=$builddir/tools/vma_stats/vma_stats
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
work=$(mktemp -d)
mkdir "$work/shm"
pid=
# The progress thread would poll, too.
export VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_PROGRESS_ENGINE_INTERVAL=0 VMA_LOG_FILE=$work/log VMA_STATS_SHMEM_DIR=$work/shm
TSAN_OPTIONS=$TSAN_OPTIONS:die_after_fork=0

end_program() {
	[ -n "$pid" ] || return 0
	exec 9>&-
	wait "$pid" 2>/dev/null
	pid=
}
clean_up() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
collect_reports "$work"
# The layouts show ports: one run at a time on a machine.
exec 8</tmp
flock 8

wait_for() {
	for _ in $(seq 500); do
		grep -q "$1" "$2" 2>/dev/null && return 0
		sleep 0.02
	done
	echo "no \"$1\" in $2:"
	cat "$2"
	return 1
}

# start SCENARIO [N]: its pid is $pid; it lives until end_program.
start() {
	rm -f "$work/in"
	mkfifo "$work/in"
	: >"$work/out"
	(preloaded "$library" exec "$program" "$@" <"$work/in" >"$work/out" \
		2>&1 8<&-) &
	pid=$!
	exec 9>"$work/in"
	wait_for ready "$work/out"
}

stats() {
	timeout 20 "$tool" -k "$work/shm" -p "$pid" "$@"
}

expect() {
	[ "$1" = "$2" ] || { printf 'got:\n%s\nexpected:\n%s\n' "$1" "$2"; return 1; }
}

# counts COUNTER VALUE...: --raw has exactly these, of those that are named.
counts() {
	local raw
	raw=$(stats --raw)
	while [ $# -gt 0 ]; do
		expect "$1 $(awk -v name="$1" '$1 == name { n = $2 }
			END { print n + 0 }' <<<"$raw")" "$1 $2" ||
			{ echo "$raw"; return 1; }
		shift 2
	done
}

counters_are_those_of_the_traffic() {
	start traffic || return 1
	counts socket.3.tx_packets 100 socket.3.tx_bytes 100000 \
		socket.4.rx_packets 90 socket.4.rx_bytes 90000 \
		socket.4.rx_queued_packets 100 socket.4.rx_queued_bytes 100000 \
		socket.4.rx_ready_pkt_max 100 socket.4.rx_ready_byte_max 100000 \
		socket.4.rx_poll_hit 0 socket.4.rx_poll_miss 0 \
		socket.4.tx_packets 1 socket.4.tx_bytes 500 \
		socket.3.rx_packets 1 socket.3.rx_bytes 500 \
		socket.3.rx_eagain 5 socket.3.rx_poll_miss 5 \
		socket.3.rx_poll_hit 1 \
		socket.3.tx_os_packets 0 socket.4.rx_os_packets 0 \
		ring.0.tx_pkts 101 ring.0.tx_bytes 104742 \
		ring.0.rx_pkts 101 ring.0.rx_bytes 104742 ring.0.kicks 101
}

kernel_traffic_is_counted() {
	start by_kernel || return 1
	counts socket.4.tx_os_packets 7 socket.4.tx_os_bytes 70 \
		socket.4.tx_os_errors 1 socket.4.rx_os_packets 7 \
		socket.4.rx_os_bytes 70 socket.4.rx_os_eagain 1 \
		socket.4.tx_packets 0 socket.4.rx_packets 0
}

failures_are_counted() {
	start failures || return 1
	counts socket.4.rx_errors 3 socket.4.rx_packets 3 \
		socket.5.rx_os_errors 1 socket.5.rx_errors 0
}

overflow_is_counted() {
	start flood 300 || return 1
	local raw queued dropped
	raw=$(stats --raw)
	queued=$(awk '$1 == "socket.4.rx_queued_packets" { print $2 }' <<<"$raw")
	dropped=$(awk '$1 == "socket.4.rx_ready_pkt_drop" { print $2 }' <<<"$raw")
	[ "${dropped:-0}" -gt 0 ] && [ $((queued + dropped)) = 300 ] ||
		{ echo "$raw"; return 1; }
	counts socket.4.rx_ready_byte_drop $((dropped * 1000)) \
		socket.4.rx_ready_pkt_max "$queued"
}

# full NAME=VALUE ERRNO COUNTER VALUE...: the sends that do not wait and those
# that do find no room, the latter more than once. EAGAIN is 11.
full() {
	local status
	export VMA_TEST_LOCAL_TX_MAX=4 "$1"
	start full "$2"
	status=$?
	unset VMA_TEST_LOCAL_TX_MAX "${1%%=*}"
	[ $status = 0 ] || return 1
	shift 2
	counts socket.3.tx_packets 5 socket.3.tx_errors 2 ring.0.tx_pkts 5 \
		"$@" &&
		[ "$(stats --raw |
			awk '$1 == "ring.0.tx_full" { print $2 }')" -ge 8 ]
	status=$?
	end_program
	return $status
}

full_ring_is_counted() {
	full VMA_TX_NONBLOCKED_EAGAINS=0 0 socket.3.tx_drops 8 \
		socket.3.tx_eagain 0 &&
		full VMA_TX_NONBLOCKED_EAGAINS=1 11 \
			socket.3.tx_drops 2 socket.3.tx_eagain 6
}

blocking_sends_sleep_in_a_full_ring() {
	export VMA_TEST_LOCAL_TX_MAX=4
	start full_for_long
	local status=$?
	unset VMA_TEST_LOCAL_TX_MAX
	[ $status = 0 ] && counts socket.3.tx_packets 8 socket.3.tx_errors 2 \
		socket.3.tx_drops 2
}

# request BYTES ARGUMENT...
request() {
	local status bytes=$1
	shift
	export VMA_TEST_LOCAL_TX_MAX=4 VMA_TX_NONBLOCKED_EAGAINS=1
	start "$@"
	status=$?
	unset VMA_TEST_LOCAL_TX_MAX VMA_TX_NONBLOCKED_EAGAINS
	[ $status = 0 ] && counts socket.4.tx_bytes "$bytes" socket.5.rx_bytes "$bytes"
}

request_without_room_is_not_lost() {
	request 128 request
}

quick_request_without_room_is_not_lost() {
	request 129 request 1
}

followed_request_without_room_is_sent_once() {
	request 64 followed_request
}

waits_in_vain_are_counted() {
	export VMA_SELECT_POLL=0
	start waits_in_vain
	local status=$?
	unset VMA_SELECT_POLL
	[ $status = 0 ] || return 1
	counts poll.poll_miss 2 poll.poll_hit 1 poll.timeouts 1 poll.errors 1 \
		poll.rx_ready 0 poll.os_rx_ready 1
}

# long MILLISECONDS VARIABLE=VALUE...: how much of the time was spent polling in
# epoll_wait and in poll, by all views.
long() {
	local ms=$1 views
	shift
	export "$@"
	start waits_long "$ms"
	local status=$?
	unset "${@%%=*}"
	[ $status = 0 ] || return 1
	stats --raw | awk '$1 == "epoll.3.polling_percent" { a = $2 }
		$1 == "poll.polling_percent" { b = $2 }
		END { print a + 0, b + 0 }'
	# the views say the same
	views=$(stats -c 1 | sed -n 's/^epoll.*Polling CPU:\([0-9]*\)%$/\1/p'
		stats -c 1 -v 2 | sed -n 's/^epoll.*Polling CPU:\([0-9]*\)%$/\1/p'
		stats -c 1 -v 3 | grep -A1 'epoll.3' | sed -n 's/^Polling CPU:\([0-9]*\)%$/\1/p')
	stats --raw | awk -v views="$(echo $views)" '$1 == "epoll.3.polling_percent" {
		n = $2 } END { n += 0; exit n && views != n " " n " " n }' || { echo "views: $views"; return 1; }
	end_program
}

# Others use the processors as well: what sleeps does not poll, and what polls is busy for
# most of the time.
polling_is_measured() {
	local got
	got=$(long 0 VMA_CPU_USAGE_STATS=1 VMA_SELECT_POLL=0) || { echo "$got"; return 1; }
	awk '{ exit !($1 >= 60 && $2 == 0) }' <<<"$got" || { echo "looking: $got"; return 1; }
	got=$(long 100 VMA_CPU_USAGE_STATS=1 VMA_SELECT_POLL=0) || { echo "$got"; return 1; }
	awk '{ exit !($1 <= 10 && $2 <= 10) }' <<<"$got" || { echo "asleep: $got"; return 1; }
	got=$(long 100 VMA_CPU_USAGE_STATS=1 VMA_SELECT_POLL=1000000) || { echo "$got"; return 1; }
	awk '{ exit !($1 >= 30 && $1 <= 65 && $2 >= 30 && $2 <= 65) }' <<<"$got" ||
		{ echo "spinning, half of the time in each: $got"; return 1; }
	got=$(long 0 VMA_CPU_USAGE_STATS=0) || { echo "$got"; return 1; }
	expect "$got" "0 0"
}

waits_are_counted() {
	start waits || return 1
	counts poll.poll_hit 2 poll.timeouts 1 poll.rx_ready 1 \
		select.poll_hit 2 select.timeouts 1 select.rx_ready 1 \
		epoll.3.poll_hit 2 epoll.3.timeouts 1 epoll.3.rx_ready 1 \
		poll.errors 0 poll.poll_miss 0 || return 1
	stats -c 1 | grep '^poll' >"$work/line"
	expect "$(cat "$work/line")" "poll       Rx Ready:0/1 [os/offload] Timeouts:1     Errors:0    Poll:100.00%   Polling CPU:0%"
}

basic_view_has_vma_layout() {
	start traffic || return 1
	expect "$(stats -c 1)" "vmastat: stats for application: stats  with pid: $pid
 fd      ------------ total offloaded -------------   --------- total os ----------
                pkt   Kbyte   eagain   error  poll%     pkt   Kbyte  eagain   error
 3   Rx:          1       0        5       0   16.7       0       0       0       0
     Tx:        100      97        0       0              0       0       0       0
 4   Rx:         90      87        0       0    0.0       0       0       0       0
     Tx:          1       0        0       0              0       0       0       0
-------------------------------------------------------------------------------"
}

medium_view_has_vma_layout() {
	start traffic || return 1
	expect "$(stats -c 1 -v 2 -s 4)" "vmastat: stats for application: stats  with pid: $pid
 fd      ----------------------- total offloaded -------------------------   --------- total os ----------
                pkt   Kbyte   eagain   error  poll%   ---- queue pkt -----     pkt   Kbyte  eagain   error
                                                       cur     max    drop 
 4   Rx:         90      87        0       0    0.0     10     100       0       0       0       0       0
     Tx:          1       0        0       0                                     0       0       0       0
-------------------------------------------------------------------------------"
}

# by_operator N: so many are the kernel's because of that, both ways.
by_operator() {
	[ "$(stats --why | grep -c OPERATOR)" = $(($1 * 2)) ]
}

operator_sends_back() {
	local said
	start traffic || return 1
	by_operator 0 || return 1
	said=$(stats --kernel 99 2>&1) && return 1
	expect "$said" "vmastat: process $pid has no such socket with the library" ||
		return 1
	said=$(stats --kernel=some 2>&1) && return 1
	grep -q "^vmastat: '--kernel' some: an fd or \"all\" is expected$" <<<"$said" ||
		{ echo "$said"; return 1; }
	said=$(stats --kernel=4) || { echo "$said"; return 1; }
	grep -q OPERATOR <<<"$said" && by_operator 1 || { echo "$said"; return 1; }
	said=$(stats --kernel=all) || { echo "$said"; return 1; }
	by_operator 2 || { stats --why; return 1; }
}

# The sum of a column over all reports so far: sum_of fd 4, of what it sent or got.
sum_of() {
	awk -v fd="$1" -v what="$2" '$1 ~ /^[0-9]+$/ { at = $1; shift = 1 }
		$1 == "Tx:" { shift = 0 }
		at == fd && $(1 + shift) == what { n += $(2 + shift) }
		END { print n + 0 }' "$work/tool"
}

has_exchanged() {
	stats --raw | grep -q '^socket.3.rx_packets 1$'
}
has_shown_exchange() {
	[ "$(sum_of 3 Rx:)" -gt 0 ]
}
has_shown_lines() {
	[ "$(grep -c 'Tx:' "$work/tool")" -ge "$1" ]
}

# What is exchanged between two reports is in one of those that follow, once; what
# was before in none.
deltas_add_up() {
	start on_demand || return 1
	echo >&9
	wait_until has_exchanged || return 1
	(exec timeout 20 "$tool" -k "$work/shm" -p "$pid" -d 2 -i 1) \
		>"$work/tool" 9>&- &
	local watcher=$!
	wait_until has_shown_lines 2 && echo >&9 &&
		wait_until has_shown_exchange &&
		wait_until has_shown_lines \
			$(($(grep -c 'Tx:' "$work/tool") + 2)) || return 1
	kill $watcher
	wait $watcher 2>/dev/null
	expect "$(sum_of 4 Rx:) $(sum_of 4 Tx:) $(sum_of 3 Tx:)" "90 1 100"
}

deltas_are_per_second() {
	start traffic || return 1
	expect "$(stats -c 2 -d 2 -i 0 -s 3-3 | tail -n +2)" " fd      --------------- offloaded ----------------         ---------- os ---------
              pkt/s Kbyte/s eagain/s error/s  poll%   pkt/s Kbyte/s eagain/s error/s
 3   Rx:          0       0        0       0    0.0       0       0       0       0
     Tx:          0       0        0       0              0       0       0       0
-------------------------------------------------------------------------------
 3   Rx:          0       0        0       0    0.0       0       0       0       0
     Tx:          0       0        0       0              0       0       0       0
-------------------------------------------------------------------------------"
}

full_view_has_blocks() {
	local out
	start traffic || return 1
	out=$(stats -c 1 -v 3)
	grep -q '^Tx Offload: 97 / 100 / 0 / 0 \[kilobytes/packets/eagains/errors\]$' <<<"$out" &&
		grep -q '^Rx pkt : cur 10 / max 100 / dropped 0$' <<<"$out" &&
		grep -q '^	RING_ETH=\[0\]$' <<<"$out" &&
		grep -q '^Rx Offload:         102 / 101 \[kilobytes/packets\]$' <<<"$out" &&
		grep -q '^	BUFFER_POOL=\[0\]$' <<<"$out" ||
		{ echo "$out"; return 1; }
}

list_view_has_vma_layout() {
	local inode
	start traffic || return 1
	inode=$(stat -L -c %i "/proc/$pid/fd/4")
	expect "$(timeout 20 "$tool" -k "$work/shm" -v 5 | head -1)" \
		"Proto Offloaded Recv-Q               Send-Q               Local Address          Foreign Address       State       Inode      PID/Program name" &&
		expect "$(timeout 20 "$tool" -k "$work/shm" -v 5 -s 4 | tail -1)" \
			"udp   Yes       10000                0                    127.0.0.1:7302         127.0.0.1:7301                    $(printf %-10s "$inode") $pid/stats" &&
		end_program &&
		expect "$(timeout 20 "$tool" -k "$work/shm" -v 5 | wc -l)" 1
}

# Nobody polls while it stays: the progress thread acknowledges.
start_stream() {
	export VMA_PROGRESS_ENGINE_INTERVAL=10
	start stream "$@"
	local status=$?
	export VMA_PROGRESS_ENGINE_INTERVAL=0
	return $status
}
# lists PATTERN: it matches a row of a TCP socket.
lists() {
	timeout 20 "$tool" -k "$work/shm" -v 5 | grep '^tcp' >"$work/tool"
	grep -Eq "$1" "$work/tool"
}

list_view_has_states_of_tcp() {
	start_stream || return 1
	wait_until lists '^tcp   Yes       0 {20}0 {20}127.0.0.1:[0-9]+ +127.0.0.1:7304 +ESTABLISHED ' &&
		wait_until lists '^tcp   Yes       3600 {17}0 {20}127.0.0.1:7304 +127.0.0.1:[0-9]+ +ESTABLISHED ' &&
		lists '^tcp   Yes       0 {20}0 {20}127.0.0.1:7304 +0.0.0.0:\* +LISTEN ' &&
		expect "$(wc -l <"$work/tool")" 3 || { cat "$work/tool"; return 1; }
	end_program
	start_stream 1 || return 1
	wait_until lists '7304 +FIN_WAIT_2 ' && wait_until lists ' 3600 .*CLOSE_WAIT ' ||
		{ cat "$work/tool"; return 1; }
}

has_counts_of_tcp() {
	stats --raw >"$work/tool" && grep -q '^socket.4.rtt_us [1-9]' "$work/tool" &&
		grep -q '^tcp.in_segments [1-9]' "$work/tool" &&
		grep -q '^socket.5.rx_queued_bytes 4000$' "$work/tool" &&
		! grep -q '^socket.4.send_queue' "$work/tool"
}
has_counts_of_repairs() {
	stats --raw >"$work/tool" &&
		grep -q '^socket.4.tx_retransmits [1-9]' "$work/tool" &&
		grep -q '^tcp.retransmitted [1-9]' "$work/tool"
}
# Nobody looks at what arrives, so it is sent again.
what_is_sent_again_is_counted() {
	start stream
	local status=$?
	[ $status = 0 ] && wait_until has_counts_of_repairs &&
		stats -c 1 -v 3 | grep -q '^Retransmissions: [1-9]' ||
		{ cat "$work/tool"; return 1; }
}
tcp_counters_are_those_of_the_traffic() {
	start_stream || return 1
	wait_until has_counts_of_tcp || { cat "$work/tool"; return 1; }
	counts socket.4.tx_packets 4 socket.4.tx_bytes 4000 socket.5.rx_bytes 400 \
		socket.5.rx_queued_bytes 4000 socket.4.send_queue 0 \
		socket.4.tx_retransmits 0 tcp.retransmitted 0 tcp.malformed 0 || return 1
	grep -q '^socket.4.congestion_window [1-9]' "$work/tool" &&
		grep -q '^socket.5.receive_window [1-9]' "$work/tool" || return 1
	stats -c 1 -v 3 >"$work/tool"
	grep -q '^- State           = \[ESTABLISHED\]$' "$work/tool" &&
		grep -q '^RTT: [1-9]' "$work/tool" &&
		grep -q '^Rx byte: cur 3600 / ' "$work/tool" &&
		grep -q '^in_segments  *[1-9]' "$work/tool" ||
		{ cat "$work/tool"; return 1; }
	stats -z -c 1 >/dev/null && sleep 2.5 &&
		counts tcp.in_segments 0 socket.4.tx_bytes 0
	stats -c 1 -v 3 >"$work/tool"
	grep -q '^Rx byte: cur 3600 / ' "$work/tool"
}

why_tells_of_tcp() {
	local out
	start_stream || return 1
	out=$(stats --why)
	grep -A1 '^fd 3: TCP 127.0.0.1:7304$' <<<"$out" | grep -q '  receives  accelerated' &&
		grep -A2 '^fd 4: TCP 127.0.0.1:[0-9]* to 127.0.0.1:7304$' <<<"$out" |
			grep -c 'accelerated by ring 0 on fake' | grep -qx 2 ||
		{ echo "$out"; return 1; }
}

# Before its first accept, too, which decides (the device of the tests would at once).
listener_is_shown_by_its_port() {
	local out
	export VMA_TEST_LOCAL=0
	start listener || return 1
	out=$(stats --why; stats -c 1 -v 5)
	grep -q '^fd 3: TCP 127.0.0.1:7304$' <<<"$out" &&
		grep -q 'not used yet to receive, send, connect or accept' <<<"$out" &&
		grep -q '127.0.0.1:7304.*LISTEN' <<<"$out" || { echo "$out"; return 1; }
}

why_names_the_option_of_tcp() {
	local out
	start stamped_stream
	local status=$?
	[ $status = 0 ] || return 1
	out=$(stats --why -s 4)
	grep -q '^  receives  by the kernel: the program has set an option .* \[OPTION\]$' <<<"$out" &&
		grep -q '^            decided at setsockopt: SO_TIMESTAMPING: time stamps of what is sent$' <<<"$out" ||
		{ echo "$out"; return 1; }
}

zeroed_counters_stay_zero() {
	start traffic || return 1
	stats -z -s 4 -c 1 >/dev/null || return 1
	counts socket.4.rx_packets 0 socket.4.rx_queued_packets 10 \
		socket.3.tx_packets 100 ring.0.tx_pkts 0 || return 1
	stats -z -c 1 >/dev/null || return 1
	sleep 0.1
	counts socket.3.tx_packets 0 socket.3.rx_eagain 0
}

# The list has all processes, and what is asked of one comes first.
list_view_does_what_is_asked() {
	local said
	start traffic || return 1
	said=$(stats -z -v 5) && grep -q '127.0.0.1:7302' <<<"$said" ||
		{ echo "$said"; return 1; }
	counts socket.3.tx_packets 0 && by_operator 0 || return 1
	said=$(stats --kernel=all -v 5) && by_operator 2 ||
		{ echo "$said"; return 1; }
	said=$(stats --kernel=99 -v 5 2>&1) && return 1
	grep -q 'has no such socket' <<<"$said" || { echo "$said"; return 1; }
}

# A process that stood still does not do it when it goes on. The second request is taken
# after the first.
request_in_vain_is_not_done_later() {
	start traffic || return 1
	kill -STOP "$pid"
	stats -z -c 1 >"$work/tool" 2>&1
	expect "$?" 1 && grep -q 'does not answer' "$work/tool" ||
		{ cat "$work/tool"; kill -CONT "$pid"; return 1; }
	kill -CONT "$pid"
	stats -l info -c 1 >/dev/null && counts socket.3.tx_packets 100
}

end_is_said_to_who_waits_for_an_answer() {
	local asker
	start traffic || return 1
	kill -STOP "$pid"
	stats -z -c 1 >"$work/tool" 2>&1 9>&- &
	asker=$!
	# it asks as long as it has the turn
	for _ in $(seq 500); do
		flock -n "$work/shm/vmastat.$pid" true || break
		sleep 0.02
	done
	local of=$pid
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	pid=
	wait $asker
	expect "$? $(cat "$work/tool")" "1 vmastat: Proccess $of ended - exiting"
}

# There is room for one request, and each of these wants something else.
requests_at_once_are_all_done() {
	local wish one askers=() failed=0
	start traffic || return 1
	for wish in '-z -s 3' '-z -s 4' '-l debug'; do
		stats $wish -c 1 >"$work/tool.${#askers[@]}" 2>&1 9>&- &
		askers+=($!)
	done
	for one in "${!askers[@]}"; do
		wait "${askers[one]}" || { cat "$work/tool.$one"; failed=1; }
	done
	counts socket.3.tx_packets 0 socket.3.rx_packets 0 socket.4.tx_packets 0 \
		socket.4.rx_packets 0 && return $failed
}

reports_that_cannot_be_written_are_an_error() {
	local view
	start traffic || return 1
	for view in '-i 0' '-v 3 -i 0' --why --raw '-v 5' -V; do
		stats $view >/dev/full 2>"$work/tool"
		expect "$view: $?" "$view: 1" &&
			grep -q '^vmastat: the report could not be written$' "$work/tool" || return 1
	done
	# where the shell's reader ends, too, and the signal for that is ignored
	(trap '' PIPE; stats -i 0 2>"$work/tool"; echo $? >"$work/status") |
		read -r || return 1
	wait_for '^1$' "$work/status"
}

log_level_is_changed() {
	start becomes_another || return 1
	! grep -q 'without destructors' "$work/log" || return 1
	stats -l debug -D 1 -c 1 >/dev/null || return 1
	end_program
	grep -q 'Tid: .*without destructors' "$work/log" ||
		{ tail -3 "$work/log"; return 1; }
}

sockets_beyond_the_slots_are_sums() {
	export VMA_STATS_FD_NUM=2 VMA_TCP=0
	start kinds 5
	local status=$? out
	unset VMA_STATS_FD_NUM VMA_TCP
	[ $status = 0 ] || return 1
	out=$(stats --why)
	[ "$(grep -c '^fd ' <<<"$out")" = 2 ] &&
		grep -q '^       3 accelerated$' <<<"$out" &&
		grep -q '^       2 by the kernel: VMA_TCP=0 \[TCP\]$' <<<"$out" &&
		[ "$(stats -c 1 | grep -c 'Rx:')" = 2 ] ||
		{ echo "$out"; return 1; }
}

why_names_ring_reason_and_remedy() {
	local out
	start traffic || return 1
	out=$(stats --why -s 4)
	grep -q '^fd 4: UDP 127.0.0.1:7302 to 127.0.0.1:7301$' <<<"$out" &&
		grep -q '^  receives  accelerated by ring 0 on ' <<<"$out" ||
		{ echo "$out"; return 1; }
	end_program
	start by_kernel || return 1
	out=$(stats --why -s 4)
	grep -q '^  receives  by the kernel: the program has set an option .* \[OPTION\]$' <<<"$out" &&
		grep -q '^            decided at setsockopt: UDP_SEGMENT: ' <<<"$out" ||
		{ echo "$out"; return 1; }
	end_program
	echo 'use os udp_connect *:*' >"$work/conf"
	export VMA_CONFIG_FILE=$work/conf
	start traffic
	local status=$?
	unset VMA_CONFIG_FILE
	[ $status = 0 ] || return 1
	out=$(stats --why -s 3)
	grep -q "^            decided at connect: $work/conf:1: use os udp_connect \*:\*$" <<<"$out" ||
		{ echo "$out"; return 1; }
}

file_is_private_and_goes() {
	start traffic || return 1
	expect "$(stat -c '%a %F' "$work/shm/vmastat.$pid")" "600 regular file" ||
		return 1
	end_program
	expect "$(ls "$work/shm")" ""
}

# In a directory like /tmp, from which only its owner may remove it.
file_goes_with_the_user() {
	local way
	chmod 711 "$work"
	chmod 1777 "$work/shm"
	for way in 0 1 2; do
		start becomes_nobody $way || return 1
		expect "$(stat -c '%u %a' "$work/shm/vmastat.$pid")" "65534 600" || return 1
		end_program
		expect "$(ls "$work/shm")" "" || return 1
	done
	# root removes what such a program leaves when it is killed
	start becomes_nobody 0 || return 1
	kill -9 "$pid"
	end_program
	start traffic || return 1
	expect "$(ls "$work/shm")" "vmastat.$pid"
}

no_directory_no_file() {
	export VMA_STATS_SHMEM_DIR=
	start traffic
	local status=$?
	export VMA_STATS_SHMEM_DIR=$work/shm
	[ $status = 0 ] || return 1
	expect "$(ls "$work/shm")" "" || return 1
	end_program
	export VMA_STATS_SHMEM_DIR=$work/nowhere
	start traffic
	status=$?
	export VMA_STATS_SHMEM_DIR=$work/shm
	[ $status = 0 ] && grep -q 'VMA_STATS_SHMEM_DIR)$' "$work/log"
}

# in_directories TMP SHM COMMAND...: /tmp and /dev/shm are file systems of these kinds, where
# what has no tmpfs stands for a disk.
in_directories() {
	exec unshare --mount bash -c '
		mkdir -p "$1/kept" && mount --bind "$1" /mnt && mount -t "$2" tmp /tmp &&
			mkdir -p "$1" && mount --bind /mnt "$1" &&
			mount -t $3 shm /dev/shm || exit 1
		shift 3
		exec "$@"' - "$work" "$@"
}

# by_default TMP SHM DIRECTORY: where the file is, without a name; and everybody finds it.
by_default() {
	local runtime said args
	runtime=$(sanitizer_runtime)
	rm -f "$work/in" "$work/log"
	mkfifo "$work/in"
	(in_directories "$1" "$2" env -u VMA_STATS_SHMEM_DIR VMA_TRACELEVEL=debug \
		ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="${runtime:+$runtime:}$library" \
		"$program" traffic <"$work/in" >"$work/out" 2>&1 8<&-) &
	pid=$!
	exec 9>"$work/in"
	wait_for ready "$work/out" || return 1
	said=$(nsenter --target "$pid" --mount sh -c 'echo /tmp/vmastat.* /dev/shm/vmastat.*')
	case $said in *"$3/vmastat.$pid"*) ;; *) echo "$said"; return 1 ;; esac
	for args in --why "--why -p $pid" '-v 5' '-v 5 -z' '-n stats --why'; do
		said=$(nsenter --target "$pid" --mount timeout 20 "$tool" $args 2>&1) &&
			grep -q 7302 <<<"$said" || { echo "$args: $said"; return 1; }
	done
	end_program
}

counters_are_in_memory_by_default() {
	by_default ramfs tmpfs /dev/shm && ! grep -q 'which is no tmpfs' "$work/log" &&
		by_default tmpfs tmpfs /tmp && ! grep -q 'which is no tmpfs' "$work/log" &&
		by_default ramfs ramfs /tmp && grep -q 'which is no tmpfs' "$work/log" &&
		by_default ramfs 'tmpfs -o size=8k' /tmp && grep -q 'which is no tmpfs' "$work/log"
}

exit_without_destructors_removes_the_file() {
	(preloaded "$library" exec "$program" ends_at_once 0) || return 1
	expect "$(ls "$work/shm")" ""
}

files_of_dead_processes_are_removed() {
	local dead
	start traffic || return 1
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	dead=$pid pid=
	expect "$(ls "$work/shm")" "vmastat.$dead" || return 1
	timeout 20 "$tool" -k "$work/shm" -F >/dev/null 2>"$work/err" && return 1
	expect "$(cat "$work/err")" \
		"vmastat: Failed to identify process please provide pid of active proccess..." &&
		expect "$(ls "$work/shm")" "vmastat.$dead" || return 1
	timeout 20 "$tool" -k "$work/shm" >/dev/null 2>&1 && return 1
	expect "$(ls "$work/shm")" ""
}

# As "unshare --pid --fork" leaves it: our number 1 is another process there.
proc_of_another_namespace_is_not_believed() {
	local runtime status inside
	runtime=$(sanitizer_runtime)
	rm -f "$work/in"
	mkfifo "$work/in"
	(exec unshare --pid --fork --kill-child \
		env ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="${runtime:+$runtime:}$library" \
		"$program" traffic <"$work/in" >"$work/out" 2>&1 8<&-) &
	pid=$!
	exec 9>"$work/in"
	wait_for ready "$work/out" || return 1
	expect "$(ls "$work/shm")" vmastat.1 || return 1
	read -r inside <"/proc/$pid/task/$pid/children"
	nsenter --target "$inside" --pid \
		timeout 20 "$tool" -k "$work/shm" -p 1 --why >"$work/tool" 2>&1
	status=$?
	expect "$status" 0 && expect "$(ls "$work/shm")" vmastat.1 ||
		{ cat "$work/tool"; return 1; }
}

start_removes_files_of_dead_processes() {
	local dead
	start traffic || return 1
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	dead=$pid pid=
	expect "$(ls "$work/shm")" "vmastat.$dead" || return 1
	start traffic || return 1
	expect "$(ls "$work/shm")" "vmastat.$pid"
}

program_is_found_by_name() {
	start traffic || return 1
	timeout 20 "$tool" -k "$work/shm" -n stats -c 1 |
		grep -q "with pid: $pid$" || return 1
	! timeout 20 "$tool" -k "$work/shm" -n other -c 1 >/dev/null 2>&1
}

# As after an update.
program_that_was_removed_is_found_by_name() {
	local program=$work/removed
	cp "$builddir/tests/shim/stats" "$program"
	start traffic || return 1
	rm "$program"
	timeout 20 "$tool" -k "$work/shm" -n removed -c 1 >"$work/tool" 2>&1
	expect "$? $(head -1 "$work/tool")" \
		"0 vmastat: stats for application: removed  with pid: $pid"
}

end_of_the_process_is_said() {
	start traffic || return 1
	stats -i 1 >"$work/tool" 2>&1 9>&- &
	local watcher=$!
	wait_for 'Tx:' "$work/tool" || return 1
	local of=$pid
	end_program
	wait $watcher
	expect "$? $(tail -1 "$work/tool")" \
		"0 vmastat: VMA statistics data for process id $of not found"
}

child_has_a_file_of_its_own() {
	local child
	start child || return 1
	child=$(sed -n 's/^child //p' "$work/out")
	expect "$(ls "$work/shm" | wc -l)" 2 &&
		counts socket.3.tx_packets 0 &&
		expect "$(timeout 20 "$tool" -k "$work/shm" -p "$child" --why |
			grep -c '^fd ')" 1 || return 1
	end_program
	expect "$(ls "$work/shm")" ""
}

# The number and the start of the process stay the same.
another_program_is_another_process() {
	start becomes_another || return 1
	stats -c 1 >/dev/null || { echo "a failed exec is the end"; return 1; }
	exec 9>&-
	wait_for going "$work/out" || return 1
	wait "$pid"
	expect "$(timeout 20 "$tool" -k "$work/shm" 2>&1 | head -1)" \
		"vmastat: Failed to identify process please provide pid of active proccess..."
	pid=
	expect "$(ls "$work/shm")" ""
}

closed_sockets_are_in_the_file() {
	export VMA_STATS_FILE=$work/file
	(preloaded "$library" exec "$program" ends_at_once 1)
	unset VMA_STATS_FILE
	expect "$(cat "$work/file")" "======================================================
	Fd=[4]
- UDP, Blocked
- Local Address   = [127.0.0.1:7302]
- Foreign Address = [127.0.0.1:7301]
Tx Offload: 0 / 1 / 0 / 0 [kilobytes/packets/eagains/errors]
Rx Offload: 87 / 90 / 0 / 0 [kilobytes/packets/eagains/errors]
Rx byte: cur 10000 / max 100000 / dropped 0 / limit 212992
Rx pkt : cur 10 / max 100 / dropped 0
======================================================
	Fd=[3]
- UDP, Blocked
- Local Address   = [127.0.0.1:7301]
- Foreign Address = [127.0.0.1:7302]
Tx Offload: 97 / 100 / 0 / 0 [kilobytes/packets/eagains/errors]
Rx Offload: 0 / 1 / 5 / 0 [kilobytes/packets/eagains/errors]
Rx byte: cur 0 / max 500 / dropped 0 / limit 212992
Rx pkt : cur 0 / max 1 / dropped 0
Rx poll: 5 / 1 (16.67%) [miss/hit]
======================================================"
}

damaged_files_are_refused() {
	start traffic || return 1
	local file=$work/shm/vmastat.$pid
	cp "$file" "$work/good"
	printf 'X' | dd of="$file" bs=1 conv=notrunc 2>/dev/null
	stats -c 1 >"$work/tool" 2>&1 && return 1
	grep -q 'are damaged$' "$work/tool" || { cat "$work/tool"; return 1; }
	dd if="$work/good" of="$file" conv=notrunc 2>/dev/null
	head -c 20 /dev/urandom | dd of="$file" bs=1 seek=24 conv=notrunc 2>/dev/null
	stats -c 1 >"$work/tool" 2>&1 && return 1
	dd if="$work/good" of="$file" conv=notrunc 2>/dev/null
	stats -c 1 >/dev/null && rm "$file" && ln -s "$work/good" "$file" &&
		! stats -c 1 >/dev/null 2>&1
}

# cut FILE BYTES OPTION...: another file of that name, so that the process keeps its
# own. The tool refuses it and ends by itself.
cut() {
	local file=$1 len=$2 status
	shift 2
	rm -f "$file"
	head -c "$len" "$work/good" >"$file"
	stats "$@" >"$work/tool" 2>&1
	status=$?
	[ $status = 1 ] && grep -q 'are damaged$' "$work/tool" ||
		{ echo "$len bytes, $*: $status"; cat "$work/tool"; return 1; }
}

# At its start, and between two looks, which a mapping would not survive.
cut_files_are_refused() {
	local size len view watcher
	start traffic || return 1
	local file=$work/shm/vmastat.$pid
	cp "$file" "$work/good"
	size=$(stat -c %s "$file")
	for len in 0 1 8 4096 $((size / 2)) $((size - 1)); do
		for view in '-v 1' '-v 3' --why --raw -z; do
			cut "$file" $len $view -c 1 || return 1
		done
		timeout 20 "$tool" -k "$work/shm" -v 5 >"$work/tool" &&
			expect "$(wc -l <"$work/tool")" 1 || return 1
	done
	cp "$work/good" "$file"
	stats -i 0 >"$work/tool" 2>&1 9>&- &
	watcher=$!
	wait_for 'Tx:' "$work/tool" || return 1
	truncate -s 4096 "$file"
	wait $watcher
	expect "$?" 1 && wait_for 'are damaged$' "$work/tool"
}

wrong_arguments_are_refused() {
	local args
	for args in '-p -1' '-p x' '-v 6' '-v 0' '-d 3' '-i -1' '-c x' '-D 4' \
		'-l loud' '-s 1-' '-s x' '-S 3'; do
		timeout 20 "$tool" -k "$work/shm" $args >"$work/tool" 2>&1
		expect "$args: $?" "$args: 1" &&
			grep -q '^vmastat: ' "$work/tool" || return 1
	done
	for args in 1234 '-c 1 now' '-- -1'; do
		timeout 20 "$tool" -k "$work/shm" $args >"$work/tool" 2>&1
		expect "$args: $?" "$args: 1" &&
			grep -q "^vmastat: '${args##* }': " "$work/tool" || return 1
	done
	timeout 20 "$tool" -h | grep -q '^Usage' &&
		timeout 20 "$tool" -V | grep -q '^vmastat: Linked with VMA version: '
}

cases="counters_are_those_of_the_traffic kernel_traffic_is_counted
failures_are_counted
overflow_is_counted full_ring_is_counted blocking_sends_sleep_in_a_full_ring
request_without_room_is_not_lost quick_request_without_room_is_not_lost
followed_request_without_room_is_sent_once waits_are_counted
waits_in_vain_are_counted polling_is_measured basic_view_has_vma_layout
medium_view_has_vma_layout deltas_are_per_second deltas_add_up full_view_has_blocks
list_view_has_vma_layout list_view_has_states_of_tcp
tcp_counters_are_those_of_the_traffic what_is_sent_again_is_counted why_tells_of_tcp listener_is_shown_by_its_port why_names_the_option_of_tcp
zeroed_counters_stay_zero list_view_does_what_is_asked
request_in_vain_is_not_done_later requests_at_once_are_all_done
reports_that_cannot_be_written_are_an_error log_level_is_changed operator_sends_back
sockets_beyond_the_slots_are_sums why_names_ring_reason_and_remedy
file_is_private_and_goes file_goes_with_the_user no_directory_no_file
counters_are_in_memory_by_default
exit_without_destructors_removes_the_file files_of_dead_processes_are_removed
start_removes_files_of_dead_processes proc_of_another_namespace_is_not_believed
program_is_found_by_name program_that_was_removed_is_found_by_name
end_of_the_process_is_said end_is_said_to_who_waits_for_an_answer child_has_a_file_of_its_own
another_program_is_another_process closed_sockets_are_in_the_file
damaged_files_are_refused cut_files_are_refused wrong_arguments_are_refused"

# In the subshell of tap_check, which alone knows the pid; the next case must not
# meet this one's program.
run_case() {
	local status
	"$1"
	status=$?
	end_program
	return $status
}

for case in ${CASES:-$cases}; do
	case $case in file_goes_with_the_user | counters_are_in_memory_by_default | proc_of_another_namespace_is_not_believed)
		if [ "$(id -u)" != 0 ]; then
			tap_skip "$case" "needs root"
			continue
		fi
	esac
	tap_check "$case" run_case "$case"
	rm -f "$work"/shm/*
done
tap_end
