#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs the scripts of tests/engine/segments through sockets under the library: each in a
# namespace of its own, whose TAP device the library drives by AF_XDP and the script
# answers at. Needs root. Times are real: what fails is played once more, alone.
#
# Usage: scripts_sockets.sh PROGRAM LIBRARY [SCRIPT...]
set -u
program=$1 library=$2
shift 2
. "${srcdir:-.}/tests/support/preload.sh"
export srcdir

# Not played through sockets, and why.
elsewhere='
accecn_*              Linux refuses the value of tcp_ecn that asks for accurate ECN
active_close          the rule of a connection goes with TIME_WAIT
batch*                the ring has one at a time
burst_loss            the send buffer has less room than Linux stretches its own to
ecn_accepted          ECN is not used where only the peer asks for it
over_ipv6             IPv6 is the kernel
pmtu_least            IPv6 is the kernel
resets_limited        the limit of resets is fixed
split_by_device       the device splits nothing
syn_rate              the rate of SYNs is an option of the library
time_wait             the rule of a connection goes with TIME_WAIT
time_wait_and_reset   the rule of a connection goes with TIME_WAIT
time_wait_reset_ends  the rule of a connection goes with TIME_WAIT
time_wait_stays       the rule of a connection goes with TIME_WAIT
trimmed_to_window     SO_RCVBUF counts the memory of Linux, too
window_current        SO_RCVBUF counts the memory of Linux, too
window_update         SO_RCVBUF counts the memory of Linux, too
'
why_elsewhere() {
	local pattern why
	while read -r pattern why; do
		# shellcheck disable=SC2053 # it is a pattern
		[ -n "$pattern" ] && [[ $1 == $pattern ]] && echo "$why" && return
	done <<<"$elsewhere"
}

# The segments that the kernel has received.
segments_of_kernel() {
	ip netns exec "$1" awk '/^Tcp: [0-9]/ { print $11 }' /proc/net/snmp
}

# play NAME: a few segments are the kernel's by right, such as the end of the program.
play() {
	local ns=vma-scripts.$BASHPID status kernel
	ip netns add "$ns" && ip netns exec "$ns" ip tuntap add dev script0 mode tap &&
		ip -n "$ns" link set lo up &&
		ip -n "$ns" link set script0 address 02:00:00:00:00:01 up &&
		ip -n "$ns" address add 10.77.0.1/24 dev script0 &&
		ip -n "$ns" neighbour replace 10.77.0.2 dev script0 \
			lladdr 02:00:00:00:00:02 nud permanent &&
		SCRIPT_TAP=script0 VMA_TRACELEVEL=warning \
			preloaded "$library" ip netns exec "$ns" \
			timeout 60 "$program" "$1" 2>&1
	status=$?
	kernel=$(segments_of_kernel "$ns")
	ip netns del "$ns"
	[ "${kernel:-9}" -le 3 ] || { echo "the kernel had $kernel segments"; return 1; }
	return $status
}

judge() {
	local out
	if out=$(play "$1"); then
		echo "ok - $1"
	elif [ -n "${again:-}" ]; then
		echo "not ok - $1"
		sed 's/^/# /' <<<"$out"
		return 1
	else
		echo "again - $1"
	fi
}

[ $# -gt 0 ] || set -- $(basename -s .tcp "$srcdir"/tests/engine/segments/*.tcp)
names=()
for name; do
	why=$(why_elsewhere "$name")
	grep -q '^differs *not waited for' "$srcdir/tests/engine/segments/$name.tcp" &&
		why='not waited for'
	if [ -n "$why" ]; then
		echo "# $name: $why"
	else
		names+=("$name")
	fi
done

# Four at a time: they mostly wait.
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for name in "${names[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge 4 ]; do
		wait -n
	done
	judge "$name" >>"$results" &
done
wait
grep -v '^again' "$results"
bad=0
for name in $(sed -n 's/^again - //p' "$results"); do
	again=1 judge "$name" || bad=$((bad + 1))
done
echo "# ${#names[@]} scripts through sockets, $bad of them bad"
[ $bad = 0 ]
