#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A connection with the library at both ends, and somebody on the cable who knows all of its
# numbers (tcp_meddler.py).
. "${srcdir:-.}/tests/system/cable_lab.sh"

peer=$builddir/tests/system/tcp_peer
stats=$builddir/tools/vma_stats/vma_stats
# it carries all
cable=
carriers='
any ours
'

# meddle COMMAND: in the background; says in $work/meddler what it has seen.
meddle() {
	rm -f "$work/meddler.in" "$work/meddler"
	mkfifo "$work/meddler.in"
	(in_ns $c - timeout -k 5 110 /usr/bin/python3 "$srcdir/tests/system/tcp_meddler.py" \
		"$1" <"$work/meddler.in") >"$work/meddler" 2>&1 &
	meddler=$!
	exec 7>"$work/meddler.in"
	wait_for ready "$work/meddler"
}
# at_most WORD CNT: of what each end has said, and at least one. In many seconds it may be two
# in each.
at_most() {
	awk -v word="$1:" -v most="$2" '
		$1 == word && 2 + 2 * $5 > most { most = 2 + 2 * $5 }
		$1 == word { n = ($2 >= 1) + ($2 <= most) + ($3 >= 1) + ($3 <= most) }
		END { exit n != 4 }' "$work/meddler" ||
		{ cat "$work/meddler"; return 1; }
}
check_ours() {
	local said
	said=$(check_carrier any "$1")
	[ -z "$said" ] || { echo "$said"; return 1; }
}
count_of() {
	local pid
	for pid in $(ip netns pids "$1"); do
		"$stats" -p "$pid" --raw 2>/dev/null
	done | awk -v name="tcp.$2" '$1 == name { n += $2 } END { print n + 0 }'
}
is_counted() {
	[ "$(count_of "$1" "$2")" -gt 0 ]
}

# Neither takes what the other one acknowledges, and each tells the other so: that ends by
# itself, and who feeds it has an answer in half a second (net.ipv4.tcp_invalid_ratelimit).
acks_of_two_who_disagree_die_down() {
	local client
	serve_peer a.log any && meddle part || return 1
	mark_carriers
	rm -f "$work/client.in"
	mkfifo "$work/client.in"
	(in_ns $b b.log timeout -k 5 60 "$peer" ask 10.78.0.1 7000 silent \
		<"$work/client.in") >"$work/client" 2>&1 &
	client=$!
	exec 8>"$work/client.in"
	wait_for begun "$work/client" || return 1
	wait $meddler
	at_most parted 3 && at_most fed 12 &&
		expect "$(grep silent "$work/meddler")" "silent: 0 0" &&
		check_ours $a && check_ours $b && wait_until is_counted $a out_of_window &&
		wait_until is_counted $b out_of_window
	set -- $?
	exec 7>&- 8>&-
	wait $client
	return "$1"
}
# RFC 5961: a reset that is not exactly the next byte, and any SYN, is asked about, and so is
# an acknowledgment of what was not sent; nothing of it is taken.
stream_bears_forgeries() {
	local round
	serve_peer a.log any && meddle inject || return 1
	mark_carriers
	# whoever stands still for seconds has not said enough in the first one
	for round in 1 2 3 4 5; do
		expect "$( (in_ns $b b.log env PEER_BULK=8000000 timeout -k 5 100 "$peer" ask \
			10.78.0.1 7000 bulk_both_ways) 2>&1)" 'right 1
answer "right", then the end' || return 1
		! grep -qx enough "$work/meddler" || break
	done
	exec 7>&-
	wait $meddler
	echo "# forgeries: $(tail -1 "$work/meddler"), answers to them:" \
		"$(count_of $a challenge_acks)" >"$work/said"
	grep -qx enough "$work/meddler" || { cat "$work/meddler"; return 1; }
	wait_until is_counted $a challenge_acks && check_ours $a && check_ours $b
}

for case in ${CASES:-acks_of_two_who_disagree_die_down stream_bears_forgeries}; do
	why=$(lab_is_possible) || { tap_skip "$case" "$why"; continue; }
	make_cable_lab 1 || { tap_not_ok "$case" "cannot make the namespaces"; continue; }
	tap_check "$case" "$case"
	[ ! -s "$work/said" ] || cat "$work/said"
	end_cable_lab
done
tap_end
