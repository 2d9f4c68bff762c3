#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The scenarios of tests/shim/tcp over AF_XDP: b is a mirror (udp_mirror.py), by which
# the sockets of one program reach each other over the wire. Each runs on libc, and under
# the library sleeping at once and polling before it sleeps; the outputs must be the same,
# and who carried the segments what the scenario's line says.
#
# CASES="NAME...": only these. TCP_CARRIER=kernel, ours or mixed says who has to carry
# all of them. TCP_ALL=1: those that wait for seconds, too.
. "${srcdir:-.}/tests/system/udp_lab.sh"

scenarios=$builddir/tests/shim/tcp
mirror=10.78.0.200
# For whom seconds of waiting are the thing itself; tcp.sh has them.
slow='already_connecting connect_times_out interrupted_and_continued
	interrupted_and_restarted longer_backlog_by_listening_again lingering
	lingering_without_waiting connect_times_out_by_sysctl
	keepalive_between_living_ends
	ready_before_a_connection closed_under_a_connect goes_back_within_a_connect
	closed_within_a_connect time_limit_beside_a_child'
# A child without room for the log writes its lines to its standard error.
slow="$slow child_has_no_more_fds child_forks_with_a_full_table rights_go_beside_flights"

# Where we do not agree with the kernel over a wire yet, or over loopback neither
# (tcp --carriers): TCP is not switched on for them.
differing=closed_under_a_poll
has_tcp() {
	case ${TCP_CARRIER:-} in
	kernel) echo 0 ;;
	?*) echo 1 ;;
	*) { "$scenarios" --carriers | grep -qx "$1 kernel" ||
		grep -qw "$1" <<<"$differing"; } && echo 0 || echo 1 ;;
	esac
}

make_mirror() {
	make_lab || return 1
	ip -n $a neighbour add $mirror dev v0 lladdr \
		"$(ip netns exec $b cat /sys/class/net/v0/address)" &&
		# what leaves by the kernel leaves complete
		ip netns exec $a ethtool -K v0 tx off >/dev/null || return 1
	(in_ns $b - /usr/bin/python3 "$srcdir/tests/system/udp_mirror.py" v0 \
		$mirror) >"$work/mirror" 2>&1 &
	wait_for ready "$work/mirror"
}

# run_scenario OUTPUT LOG SCENARIO VARIABLE=VALUE...
run_scenario() {
	local output=$1 log=$2 scenario=$3
	shift 3
	(in_ns $a "$log" env TCP_OWNED=10.78.0.1 TCP_HEARD_AT=$mirror \
		VMA_SELECT_SKIP_OS=0 VMA_TCP="$(has_tcp "$scenario")" \
		TCP_CARRIER="${TCP_CARRIER:-mixed}" "$@" timeout -k 5 30 \
		"$scenarios" "$scenario") </dev/null >"$work/$output" 2>&1 ||
		echo "exit $?" >>"$work/$output"
}

is_slow() {
	[ -z "${TCP_ALL:-}" ] && [ -z "${CASES:-}" ] && grep -qw "$1" <<<"$slow"
}

if ! why=$(lab_is_possible); then
	tap_skip all_scenarios "$why"
	tap_end
	exit
fi
make_mirror || { tap_not_ok mirror "cannot make the mirror"; tap_end; exit; }
different=
for scenario in ${CASES:-$("$scenarios" --list)}; do
	is_slow "$scenario" && continue
	# the kernel's cookies of Fast Open, which outlive a program
	ip netns exec $a ip tcp_metrics flush all >/dev/null 2>&1
	run_scenario libc - "$scenario" TCP_CARRIER=mixed
	run_scenario sleeping a.log "$scenario" VMA_RX_POLL=0 VMA_SELECT_POLL=0 \
		TCP_WIRE=v0
	run_scenario polling a.log "$scenario" VMA_RX_POLL=2000 \
		VMA_SELECT_POLL=500 VMA_THREAD_MODE=0 TCP_WIRE=v0
	tap_alike "$scenario" "$work/libc" "$work/sleeping" "$work/polling" ||
		different+=" $scenario"
done
[ -n "$different" ] && tap_not_ok all_scenarios "$different" || tap_ok all_scenarios
tap_end
