#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The share of one link that a flow gets beside Linux' CUBIC, both of them begun at the
# same time, through a queue of one round trip, 30 packets at least: ours with CUBIC, ours with BBR, and
# Linux' CUBIC as a measure of both. Needs root and, for each line, a real DURATION.
#
#   fairness.sh PROGRAM [CNT]	CNT (4) runs of each, of which the medians are shown
#
# In the environment: DURATION (30 s), STALLED (a run in which others took more than so
# many % from the emulator is made once more; 2).
set -u
program=$1 cnt=${2:-4}
export MBIT RTT_MS LOSS_PPM=0 DURATION=${DURATION:-30}

# share CASE SEED
share() {
	for _ in 1 2 3; do
		line=$("$program" --seed "$2" "$1" | awk '
			/% stalled/ { stalled = $2 }
			/share/ { share = $3 }
			END { print share, stalled + 0 }')
		echo "$line" | awk -v most="${STALLED:-2}" '{ exit $2 > most }' &&
			break
	done
	echo "${line% *}"
}

# median, least and most
shares() {
	for seed in $(seq 1 "$cnt"); do
		share "$1" "$seed"
	done | sort -n | awk '{ v[NR] = $1 }
		END { printf "   %.2f (%.2f-%.2f)", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

echo "Mbit/s  RTT ms   CUBIC of ours      BBR of ours        CUBIC of Linux"
for MBIT in 10 50; do
	for RTT_MS in 10 40; do
		printf '%6d %7d' "$MBIT" "$RTT_MS"
		for case in beside_linux bbr_beside_linux linux_beside_linux; do
			shares $case
		done
		echo
	done
done
