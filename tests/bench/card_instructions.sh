#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for each UDP call on the software ConnectX (tests/softcx), by single
# steps: on the card's own queues, with the usual lock and with that of the latency
# profile, and by portable verbs. What the card does is not counted. Minutes.
# Usage: card_instructions.sh STEPPER ECHO LIBRARY CARD
set -eu
stepper=$1 echo=$2
libraries="$(realpath "$3") $(realpath "$4")"
. "$(dirname "$0")/udp_lab.sh"
for end in $a $b; do
	ip netns exec "$end" ethtool -K v0 tso off gso off gro off >/dev/null
done
# until the kernel says that the port is active
sleep 1.2
ip netns exec $b "$echo" echo 10.79.0.2 &
echo_pid=$!

# The library's thread leaves what arrives to the receive that is measured.
export VMA_PROGRESS_ENGINE_INTERVAL=0 SOFTCX=mlx5_0:v0 VMA_LOG_FILE=$work/log

# count RING THREAD_MODE
count() {
	VMA_RING=$1 VMA_THREAD_MODE=$2 ip netns exec $a timeout 300 "$stepper" \
		10.79.0.2 "$libraries" >"$work/table" || { cat "$work/log"; exit 1; }
	grep -q "is driven by $1" "$work/log" || { cat "$work/log"; exit 1; }
	sed "s/^/$1, VMA_THREAD_MODE=$2: /" "$work/table"
}
for mode in 1 0; do
	for ring in mlx5 verbs; do
		count $ring $mode
	done
done
