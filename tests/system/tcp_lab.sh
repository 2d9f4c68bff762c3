# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the tests of TCP over AF_XDP: the two namespaces of udp_lab.sh, and who has
# carried the segments of a case. The sourcing script has a table of that in $carriers.
. "${srcdir:-.}/tests/system/udp_lab.sh"

# The names of the table.
cases() {
	awk 'NF == 2 { print $1 }' <<<"$carriers"
}
carrier_of() {
	[ -n "${TCP_CARRIER:-}" ] && echo "$TCP_CARRIER" && return
	awk -v name="$1" '$1 == name { print $2 }' <<<"$carriers"
}

# Segments that the kernel of a namespace has received, and frames that have come.
segments() {
	ip netns exec "$1" cat /proc/net/snmp |
		awk '/^Tcp:/ { n = $11 } END { print n }'
}
frames() {
	ip netns exec "$1" cat /sys/class/net/v0/statistics/rx_packets
}

declare -A segments_before frames_before
mark_carriers() {
	local ns
	for ns in $a $b; do
		segments_before[$ns]=$(segments $ns) frames_before[$ns]=$(frames $ns)
	done
}

# check_carrier CASE NAMESPACE: of what has come since the mark. A few frames are no
# segments, and what the kernel joins counts once. The last words of a connection may come
# when its program has ended, and are the kernel's then: last_words_CASE has how many more.
check_carrier() {
	local theirs=$(($(segments "$2") - segments_before[$2]))
	local all=$(($(frames "$2") - frames_before[$2])) way words=last_words_$1
	theirs=$((theirs - ${!words:-0}))
	way=$(carrier_of "$1")
	if [ "$way" = ours ] && [ $((theirs * 20)) -gt $((all + 40)) ]; then
		echo "the kernel had $theirs of $all segments in ${2%.*}"
	elif [ "$way" = kernel ] && [ "$all" -gt $((theirs * 20 + 20)) ]; then
		echo "the kernel had only $theirs of $all in ${2%.*}, which is better than listed"
	fi
}

# Ends the processes of $servers, and whoever was started by them.
stop_servers() {
	local pid pids
	for pid in "${servers[@]}"; do
		kill "$pid" 2>/dev/null
	done
	for pid in "${servers[@]}"; do
		wait "$pid" 2>/dev/null
	done
	pids=$(ip netns pids $a; ip netns pids $b)
	[ -z "$pids" ] || kill $pids 2>/dev/null
	wait_until is_empty
	servers=()
}
is_empty() {
	[ -z "$(ip netns pids $a; ip netns pids $b)" ]
}

# serve_peer LOG CASE: tcp_peer as the server in a. A listener is ours from its first wait
# on, and who connects before is the kernel's.
serve_peer() {
	rm -f "$work/$1"
	start "$1" "$builddir/tests/system/tcp_peer" serve 10.78.0.1 7000 || return 1
	[ "$1" = - ] || [ "$(carrier_of "$2")" = kernel ] ||
		wait_for "are accepted by us" "$work/$1"
}

# begin_talk OUTPUT LOG CONVERSATION: tcp_peer as the client in b. Those conversations that
# wait for it end after end_talk.
begin_talk() {
	rm -f "$work/told"
	mkfifo "$work/told"
	(in_ns $b "$2" timeout -k 5 60 "$peer" ask 10.78.0.1 7000 "$3") \
		<"$work/told" >>"$1" 2>&1 &
	client=$!
	exec 7>"$work/told"
}
# end_talk OUTPUT
end_talk() {
	exec 7>&-
	wait $client || echo "exit $?" >>"$1"
}
# Much has passed since mark_carriers.
is_under_way() {
	[ $(($(frames $a) - frames_before[$a])) -gt 300 ]
}
