#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The scenarios of tests/shim/udp over AF_XDP: b is a mirror, by which the sockets of
# one program reach each other over the wire. Each runs on libc, and under the library
# sleeping at once and polling before it sleeps; the outputs must be the same.
. "${srcdir:-.}/tests/system/udp_lab.sh"

scenarios=$builddir/tests/shim/udp

# run_scenario OUTPUT LOG SCENARIO VARIABLE=VALUE...
run_scenario() {
	local output=$1 log=$2 scenario=$3
	shift 3
	(in_ns $a "$log" env UDP_OWNED=10.78.0.1 UDP_HEARD_AT=$mirror \
		VMA_SELECT_SKIP_OS=0 "$@" timeout -k 5 20 \
		"$scenarios" "$scenario") >"$work/$output" 2>&1 ||
		echo "exit $?" >>"$work/$output"
}

if ! why=$(lab_is_possible); then
	tap_skip all_scenarios "$why"
	tap_end
	exit
fi
make_mirror || { tap_not_ok mirror "cannot make the mirror"; tap_end; exit; }
different=
for scenario in ${CASES:-$("$scenarios" --list)}; do
	# the other way round, system/card_stamps
	[ -n "${LAB_CARD:-}" ] && [ "$scenario" = stamps_of_no_card ] && continue
	# long datagrams come by the kernel and short ones by us, in another order
	[ "$scenario" = streams_in_pieces ] && continue
	run_scenario libc - "$scenario"
	run_scenario sleeping a.log "$scenario" VMA_RX_POLL=0 VMA_SELECT_POLL=0 \
		UDP_CHECK_SHARE=1
	run_scenario polling a.log "$scenario" VMA_RX_POLL=2000 \
		VMA_SELECT_POLL=500 VMA_THREAD_MODE=0 UDP_CHECK_SHARE=1
	tap_alike "$scenario" "$work/libc" "$work/sleeping" "$work/polling" ||
		different+=" $scenario"
done
[ -n "$different" ] && tap_not_ok all_scenarios "$different" || tap_ok all_scenarios
tap_end
