#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Goodput under loss, ours in the simulator and Linux in real time. A run is a line:
# Mbit/s of the link, its RTT in ms, losses in a million, seed, Mbit/s of goodput
# and, of Linux, the percentage of time that others took from the emulator.
#
#   goodput.sh ours|bbr PROGRAM [CNT]	CNT (15) seeds of each cell
#   goodput.sh linux PROGRAM [CNT]	CNT (5) runs of each cell, once more if disturbed
#   goodput.sh table OURS LINUX BBR	medians of such lists side by side
#
# At 100 ms and 0.1 % the first loss decides the run, and runs differ by a factor of
# four: there it is three times as many seeds, and nine times as many runs of Linux.
#
# In the environment: RATES, DURATION (20 s), STALLED (a run that lost more than so
# many % is disturbed; 1).
set -u
export MBIT RTT_MS LOSS_PPM DURATION=${DURATION:-20}
rates=${RATES:-10 100 1000}

# One run: run CASE SEED
run() {
	"$program" --seed "$2" "$1" | awk -v cell="$MBIT $RTT_MS $LOSS_PPM $2" '
		/% stalled/ { stalled = $2 }
		/Mbit/ { goodput = $2 }
		END { print cell, goodput, stalled + 0 }'
}

# Stalls lengthen a round trip now and then; much of them is no measurement.
run_undisturbed() {
	for _ in 1 2 3 4; do
		line=$(run linux_tcp "$1")
		echo "$line" | awk -v most="${STALLED:-1}" '{ exit $6 > most }' &&
			break
	done
	echo "$line"
}

# So many of each cell, and of the one that varies: cells CNT MORE RUN...
cells() {
	some=$1 more=$2
	shift 2
	for MBIT in $rates; do
		for RTT_MS in 1 10 100; do
			for LOSS_PPM in 0 1000 10000 30000; do
				cnt=$some
				[ $RTT_MS.$LOSS_PPM != 100.1000 ] || cnt=$more
				for seed in $(seq 1 "$cnt"); do
					"$@" "$seed"
				done
			done
		done
	done
}

table() {
	awk '
	FNR == 1 { list++ }
	{ cell = $1 " " $2 " " $3 }
	list == 1 {
		if (!(cell in n))
			order[++cells] = cell
		linux[cell, ++n[cell]] = $5
	}
	list == 2 { ours[cell, ++m[cell]] = $5 }
	list == 3 { bbr[cell, ++k[cell]] = $5 }
	function median(runs, cell, cnt,    v, i, j, t) {
		for (i = 1; i <= cnt; i++) {
			t = runs[cell, i]
			for (j = i; j > 1 && v[j - 1] > t; j--)
				v[j] = v[j - 1]
			v[j] = t
		}
		return v[int((cnt + 1) / 2)]
	}
	END {
		print "Mbit/s  RTT ms  loss %  seeds     ours  runs    Linux   ratio      BBR"
		for (i = 1; i <= cells; i++) {
			cell = order[i]
			split(cell, part)
			a = median(ours, cell, m[cell])
			b = median(linux, cell, n[cell])
			printf "%6d %7d %7.1f %6d %8.2f %5d %8.2f %7.2f %8.2f\n", part[1],
				part[2], part[3] / 10000, m[cell], a, n[cell], b, a / b,
				median(bbr, cell, k[cell])
			least = !least || a / b < least ? a / b : least
			if (part[3] > 0) {
				sum += log(a / b)
				lossy++
			}
		}
		printf "\ngeometric mean of the %d cells with loss: %.2f; least of all: %.2f\n",
			lossy, exp(sum / lossy), least
	}' "$2" "$1" "$3"
}

case $1 in
ours | bbr)
	program=$2 cnt=${3:-15}
	cells "$cnt" $((3 * cnt)) run "$1"
	;;
linux)
	program=$2 cnt=${3:-5}
	cells "$cnt" $((9 * cnt)) run_undisturbed
	;;
table)
	table "$2" "$3" "$4"
	;;
esac
