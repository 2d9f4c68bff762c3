# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced with LAB_CARD: TCP connections on a software ConnectX to which something happens
# while much is under way in both directions: with the library at one end and at both, every
# byte arrives as it does on the kernel. Either our rings carry the connection to its end, or
# the kernel goes on with it.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

peer=$builddir/tests/system/tcp_peer
export PEER_BULK=${PEER_BULK:-20000000}
# case, and who carries the segments at the end: ours, kernel or mixed. The names are the
# cases; what is said meanwhile is conversation_CASE, or bulk_until_told.
carriers='
frames_lost             ours
frames_doubled          ours
frames_damaged          ours
frames_in_disorder      ours
link_down_and_up        ours
card_removed            kernel
queues_failed           kernel
completions_failed      kernel
no_room_for_rules       kernel
rules_run_out           mixed
removed_under_silence   mixed
failed_under_silence    mixed
'

# What happens from the beginning is a matter of the environment.
impair_frames_lost=loss=10000
impair_frames_doubled=dup=50000
impair_frames_damaged=corrupt=10000
impair_frames_in_disorder=reorder=50000,reorder_cnt=5
# How many rules the card has room for: then a listener is the kernel's, or all connections
# but one.
rules_no_room_for_rules=0
rules_rules_run_out=1
conversation_rules_run_out=bulk_of_several

conversation_removed_under_silence=silent_crowd
conversation_failed_under_silence=silent_crowd

# order WORD: to all that are under the library.
order() {
	local fifo
	for fifo in "$work"/orders.*; do
		timeout 10 sh -c "echo $1 >$fifo" || echo "nobody heeds $1"
	done
}
link_down_and_up() {
	order down
	sleep 0.5
	order up
}
# goes_to_the_kernel ORDER
goes_to_the_kernel() {
	local log
	order "$1"
	for log in $logs; do
		wait_for 'v0 cannot be driven any more' "$work/$log"
	done
	mark_carriers
}
card_removed() {
	goes_to_the_kernel remove
}
queues_failed() {
	goes_to_the_kernel fail_queues
}
completions_failed() {
	goes_to_the_kernel fail_completions
}
removed_under_silence() {
	card_removed
}
# Connections leave after that was said, and none speaks before all have.
failed_under_silence() {
	local log
	queues_failed
	for log in $logs; do
		wait_until have_left 100 "$log" || grep -v 'VMA DEBUG' "$work/$log"
	done
}
# have_left CNT LOG
have_left() {
	[ "$(grep -c "is the kernel's: the interface cannot be driven" "$work/$2")" -ge "$1" ]
}
# says_no_room: each program under the library; a listener that has a rule says nothing.
says_no_room() {
	local log
	for log in $1; do
		wait_for "is the kernel's: the interface's device has no room" "$work/$log"
	done
}
no_room_for_rules() {
	says_no_room "$logs"
}
rules_run_out() {
	[ "${logs%b.log}" = "$logs" ] || says_no_room b.log
}

# orders_for LOG: of a program under the library.
orders_for() {
	unset PEER_ORDERS
	[ "$1" != - ] || return 0
	logs+=" $1"
	rm -f "$work/$1" "$work/orders.$1"
	mkfifo "$work/orders.$1"
	export PEER_ORDERS=$work/orders.$1
}

# live_through OUTPUT EVENT SERVER_LOG CLIENT_LOG
live_through() {
	local output=$work/$1 event=$2 client logs= impair=impair_$2
	local conversation=conversation_$2 rules=rules_$2
	conversation=${!conversation:-bulk_until_told}
	rm -f "$work"/orders.*
	make_lab || { echo "no lab" >"$output"; return; }
	unset SOFTCX_IMPAIR SOFTCX_RULES
	[ -z "${!rules:-}" ] || export SOFTCX_RULES=${!rules}
	[ -z "${!impair:-}" ] || export SOFTCX_IMPAIR=${!impair}
	orders_for "$3"
	serve_peer "$3" "$event" >"$output" || { end_server; return; }
	orders_for "$4"
	mark_carriers
	begin_talk "$output" "$4" "$conversation"
	if [ "$conversation" = silent_crowd ]; then
		wait_for begun "$output" >/dev/null
	else
		wait_until is_under_way >>"$output"
	fi
	[ -z "$logs" ] || ! declare -F "$event" >/dev/null || "$event" >>"$output" 2>&1
	end_talk "$output"
	[ "$3" = - ] || check_carrier "$event" $a >>"$output"
	[ "$4" = - ] || check_carrier "$event" $b >>"$output"
	end_server
}

if ! why=$(lab_is_possible); then
	tap_skip all_faults "$why"
	tap_end
	exit
fi
different=
for event in ${CASES:-$(cases)}; do
	live_through kernel "$event" - -
	live_through server "$event" a.log -
	live_through client "$event" - b.log
	live_through both "$event" a.log b.log
	tap_alike "$event" "$work/kernel" "$work/server" "$work/client" "$work/both" ||
		different+=" $event"
done
[ -n "$different" ] && tap_not_ok all_faults "$different" || tap_ok all_faults
tap_end
