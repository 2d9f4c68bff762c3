#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#    namespace a                        namespace b
#    exchange -- mlx5_0:eth0 --cable-- mlx5_0:eth0 -- exchange
#    bystander - eth0 ---------------- eth0 - bystander
#
# EXCHANGE_FRAMES (a million) frames over plain verbs, and as many over the queues
# themselves, both directions together: inline and not, with and without checksum
# offload, polled and by interrupt, one and several queue pairs, one and two
# processes on each card.
# The kernel's own traffic on the same cable must not notice. Then, alone on the
# cable, with each kind of fault.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_two
total=${EXCHANGE_FRAMES:-1000000}
program=${builddir:-.}/tests/softcx/exchange
tmp=$(mktemp -d)
trap 'lab_end; rm -rf "$tmp"' EXIT
limit=$((180 + total / 10000))

# start NAME OPTIONS: one side in the background; it waits for "$tmp/go".
start() {
	at=$1 number=$2
	shift 2
	peer=b
	[ "$at" = b ] && peer=a
	(
		while [ ! -e "$tmp/go" ]; do sleep 0.05; done
		echo go
	) 9>&- | in_ns "$at" SOFTCX_STATS=1 SOFTCX_LATE_US="$late_us" \
		SOFTCX_SEED="$number" SOFTCX_IMPAIR="$impair" \
		timeout "$limit" "$program" -m "$(mac_of $peer)" "$@" >"$tmp/out-$at$number" \
		2>"$tmp/err-$at$number" 9>&- &
	pids="$pids $!"
}

are_ready() {
	[ "$(cat "$tmp"/out-* 2>/dev/null | grep -c ready)" = "$1" ]
}

# run_quietly NAME PAIRS FRAMES OPTIONS: so many processes on each card, and so many
# frames, of both directions and all queue pairs together.
run_quietly() {
	name=$1 pairs=$2 frames=$3
	shift 3
	rm -f "$tmp"/*
	pids=
	for i in $(seq "$pairs"); do
		for side in a b; do
			start $side "$i" -n $((frames / 2 / pairs)) \
				-p $((6000 + 100 * i)) -s "$i" "$@"
		done
	done
	wait_for are_ready $((2 * pairs))
	: >"$tmp/go"
	result=0
	for pid in $pids; do
		wait "$pid" || result=1
	done
	for out in "$tmp"/out-*; do
		echo "# $name ${out##*-}: $(grep sent "$out")"
	done
	[ $result = 0 ] || sed 's/^/# /' "$tmp"/err-*
}

# verbs and direct: what each of the two clients has received.
verbs=0 direct=0
run() {
	run_quietly "$@"
	tap $result "$1"
	received=$(awk '$3 == "received" { n += $4 } END { print n + 0 }' \
		"$tmp"/out-*)
	case " $* " in
	*' -D '*) direct=$((direct + received)) ;;
	*) verbs=$((verbs + received)) ;;
	esac
}

# Somebody else's traffic, all the while: a TCP connection of the kernel's.
bystander=${builddir:-.}/tests/softcx/bystander
ip netns exec "$lab-b" "$bystander" listen >/dev/null &
listener=$!
mkfifo "$tmp.stop"
ip netns exec "$lab-a" "$bystander" connect $LAB_IP_B <"$tmp.stop" \
	>"$tmp.sums" 2>&1 &
connector=$!
exec 9>"$tmp.stop"

late_us=0 impair=
share=$(((total + 3) / 4))
run verbs_polled 1 $share
run verbs_polled_inline 1 $share -I
run verbs_polled_csum 1 $share -C
run verbs_events_inline_csum 1 $share -E -I -C
share=$(((total + 5) / 6))
run direct_polled 1 $share -D
run direct_polled_inline_csum 1 $share -D -I -C
run direct_events 1 $share -D -E
run direct_events_inline_csum 1 $share -D -E -I -C
# -n counts for each queue pair.
run four_queue_pairs 1 $((share / 4)) -D -q 4 -C
run two_processes_on_each_card 2 $share -D -I
# Completions that come when they like, but in order.
late_us=200
run late_completions 1 $((share / 10)) -D
echo "# frames exchanged: $verbs over verbs, $direct over the queues themselves"
[ "$verbs" -ge "$total" ] && [ "$direct" -ge "$total" ]
tap $? both_clients_have_exchanged_their_frames

exec 9>&-
wait $connector
result=$?
sed 's/^/# /' "$tmp.sums"
wait $listener || result=1
tap $result kernel_traffic_is_undisturbed
rm -f "$tmp.sums" "$tmp.stop"

# faults NAME OPTIONS: each side sees what its own card did to the frames that came,
# and all that the other side sent came.
faults() {
	impair=$2
	run_quietly "$1" 1 $((total / 100)) -F $3
	[ "$(numbers sent a)" = "$(numbers wire b)" ] &&
		[ "$(numbers sent b)" = "$(numbers wire a)" ] || result=1
	tap $result "$1"
}
numbers() {
	sed -nE "s/.*\b$1 ([0-9]+).*/\1/p" "$tmp/out-$2"1
}
late_us=0
faults loss_is_seen_exactly loss=20000
faults duplicates_are_seen_exactly dup=20000 -I
faults damage_is_seen_exactly corrupt=20000 -D
faults reordering_is_seen_exactly reorder=20000
faults all_faults_add_up loss=10000,dup=10000,corrupt=10000,reorder=10000 -D
tap_end
