#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Streams both ways over connections that processes use in turns, against a peer on the
# kernel (tcp_turns.py): each byte arrives once and in order, wherever the connection is
# forked or taken along to another program. One at a time, since one process has an interface.
#
# TURNS=N: so many connections (make soak-turns: 1000); SEED=N: the first one's seed.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

turns="/usr/bin/python3 $srcdir/tests/system/tcp_turns.py"
cnt=${TURNS:-8}
first=${SEED:-$((RANDOM * 1000))}

# one WAY SEED
one() {
	(in_ns $a "$2.log" timeout -k 5 100 $turns "$1" 10.78.0.2 7000 "$2") \
		</dev/null >"$work/$2.out" 2>&1
	# a daemon says it later
	wait_until [ -s "$work/$2.out" ]
	[ "$(cat "$work/$2.out")" = good ] ||
		{ echo "seed $2: $(cat "$work/$2.out")"; grep -v '\[VMA_' "$work/$2.log" | tail -5; }
	grep -h "is the kernel's: $3" "$work/$2.log" >>"$work/$1.back"
	rm -f "$work/$2.log" "$work/$2.log.later"
}
# both_ways WAY REASON
both_ways() {
	local seed last=$((first + cnt))
	echo "# $1: seeds $first to $((last - 1))" >&3
	for ((seed = first; seed < last; seed++)); do
		one "$1" $seed "$2"
	done
	for ((seed = last - cnt; seed < last; seed++)); do
		wait_until grep -q "^$seed " "$work/peer" >/dev/null
		grep -qx "$seed good" "$work/peer" ||
			echo "peer: $(grep "^$seed " "$work/peer" || echo "$seed has not ended")"
	done
}
# No byte is lost, and each of them went back to the kernel for this reason.
go_on() {
	both_ways "$1" "$2" >"$work/said"
	[ ! -s "$work/said" ] || { cat "$work/said"; return 1; }
	[ "$(wc -l <"$work/$1.back")" = "$cnt" ] ||
		{ echo "only these of $cnt have gone back:"; cat "$work/$1.back"; return 1; }
}

if ! why=$(lab_is_possible); then
	tap_skip turns_by_fork "$why"
	tap_end
	exit
fi
exec 3>&1
make_lab || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
(in_ns $b - $turns serve 10.78.0.2 7000) >"$work/peer" 2>&1 &
wait_for ready "$work/peer"
tap_check turns_by_fork go_on fork "a child process has it"
first=$((first + cnt))
tap_check turns_by_exec go_on exec "the program has handed it on"
first=$((first + cnt))
tap_check turns_by_daemon go_on daemon "the process ends"
tap_end
