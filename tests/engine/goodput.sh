#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The table of goodput under loss: medians of OURS_RUNS seeds of our engine in the
# simulator and LINUX_RUNS runs of Linux in real time, SECONDS each. A cell counts
# when the emulator carries the link without loss at nearly its rate.
# Usage: [SECONDS=n] [OURS_RUNS=n] [LINUX_RUNS=n] [RATES=..] goodput.sh PROGRAM
set -u
program=$1
export MBIT RTT_MS LOSS_PPM SECONDS=${SECONDS:-20}
rates=${RATES:-10 100 1000}

median() {
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# The runs of a kind: runs CASE COUNT
runs() {
	for seed in $(seq 1 "$2"); do
		"$program" --seed "$seed" "$1" |
			sed -n 's,^# \([0-9.]*\) Mbit/s$,\1,p'
	done | median
}

printf '%s runs of %s s, %s of Linux\n' "${OURS_RUNS:-15}" "$SECONDS" \
	"${LINUX_RUNS:-5}"
printf 'Mbit/s  RTT ms  loss %%     ours    Linux   ratio\n'
for MBIT in $rates; do
	for RTT_MS in 1 10 100; do
		for LOSS_PPM in 0 1000 10000 30000; do
			ours=$(runs ours "${OURS_RUNS:-15}")
			linux=$(runs linux_tcp "${LINUX_RUNS:-5}")
			echo "$MBIT $RTT_MS $LOSS_PPM $ours $linux" | awk '{
				printf "%6d %7d %7.1f %8.2f %8.2f %7.2f\n",
					$1, $2, $3 / 10000, $4, $5, $4 / $5 }'
		done
	done
done
