#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Long writes that the software ConnectX cuts into segments: what arrives, what each frame
# looks like, and what becomes of it where the card, the way or the option is another one, or
# not all segments arrive.
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/tcp_lab.sh"

peer=$builddir/tests/system/tcp_peer
stats=$builddir/tools/vma_stats/vma_stats
export PEER_BULK=${PEER_BULK:-10000000}
carriers='
bulk            mixed
'

# What the card of the client has counted at its end.
counted() {
	awk -v name="$1" '$2 == "mlx5_0:" && $3 == name { n = $4 } END { print n + 0 }' \
		"$work/err"
}

# Nothing that was sent was taken for damaged by the kernel of a.
has_seen_no_damage() {
	expect "$(ip netns exec $a awk '/^Tcp:/ {
			for (i = 2; i <= NF; i++)
				if (name[i] == "InErrs" || name[i] == "InCsumErrors")
					n += $i
				else
					name[i] = $i
		} END { print n }' /proc/net/snmp) damaged" "0 damaged"
}

# send CONVERSATION VARIABLE=VALUE...: a client on the card, the server on the kernel.
send() {
	local conversation=$1
	shift
	[ -n "$server" ] || serve_peer - bulk || return 1
	rm -f "$work/b.log"
	(in_ns $b b.log env SOFTCX_STATS=1 "$@" timeout -k 5 60 "$peer" ask \
		10.78.0.1 7000 "$conversation") >"$work/said" 2>"$work/err" </dev/null
	[ $? = 0 ] && grep -qx 'sent 1\|right 1' "$work/said" &&
		grep -q '^answer "right"' "$work/said" &&
		has_seen_no_damage || { cat "$work/said"; tail -3 "$work/err"; return 1; }
}

# So many of the segments of a bulk were made by the card.
cut_at_least() {
	[ "$(counted tx_segments)" -ge "$1" ] ||
		{ echo "$(counted tx_segments) cut of $(counted tx_wire)"; return 1; }
}
none_is_cut() {
	expect "$(counted tx_segments) cut" "0 cut"
}
full=$((PEER_BULK / 1448))

# Fewer entries than frames by a third (a quiet machine has six times as few), each of which is as if it had been sent alone.
frames_are_as_if_sent_alone() {
	send bulk_to_the_server SOFTCX_PCAP="$work/pcap" &&
		cut_at_least $((full * 3 / 4)) || return 1
	[ $(($(counted tx_entries) * 3 / 2)) -le "$(counted tx_wire)" ] ||
		{ echo "$(counted tx_entries) entries"; return 1; }
	python3 "$srcdir/tests/system/tcp_segments.py" "$work/pcap" 10.78.0.2 1514 \
		>"$work/frames"
	grep -qx 'bad none' "$work/frames" &&
		[ "$(sed -n 's/with data //p' "$work/frames")" -ge "$full" ] &&
		# not those in the middle of what was cut
		[ $(($(sed -n 's/pushed //p' "$work/frames") * 3 / 2)) -le "$full" ] ||
		{ cat "$work/frames"; return 1; }
}
# What would fit into one short frame is cut all the same.
no_segment_is_longer_than_the_peer_says() {
	ip netns exec $a sysctl -qw net.ipv4.route.min_adv_mss=100 &&
		ip -n $a route change 10.78.0.0/24 dev v0 src 10.78.0.1 advmss 100 &&
		PEER_BULK=300000 send bulk_to_the_server SOFTCX_PCAP="$work/pcap" &&
		cut_at_least 100 || return 1
	python3 "$srcdir/tests/system/tcp_segments.py" "$work/pcap" 10.78.0.2 154 \
		>"$work/frames"
	grep -qx 'bad none' "$work/frames" || { cat "$work/frames"; return 1; }
}
bulk_both_ways_is_cut() {
	send bulk_both_ways && cut_at_least $((full / 2))
}
# VMA_TSO=off: no segment, and the same on a card that does not cut; on: it is said there.
cut_by_option_and_card() {
	send bulk_to_the_server VMA_TSO=off && none_is_cut &&
		! grep -q 'does not cut' "$work/b.log" &&
		send bulk_to_the_server SOFTCX_TSO=0 && none_is_cut &&
		! grep -q 'does not cut' "$work/b.log" &&
		send bulk_to_the_server SOFTCX_TSO=0 VMA_TSO=on && none_is_cut &&
		expect "$(grep -c 'v0 does not cut segments of TCP by' "$work/b.log")" 1 &&
		send bulk_to_the_server VMA_TSO=on &&
		cut_at_least $((full / 2)) && ! grep -q 'does not cut' "$work/b.log"
}
# Verbs and AF_XDP cut nothing, and say so to who has asked for it.
nothing_is_cut_by() {
	local LAB_CARD=$1
	send bulk_to_the_server && none_is_cut &&
		! grep -q 'does not cut' "$work/b.log" &&
		send bulk_to_the_server VMA_TSO=on && none_is_cut &&
		expect "$(grep -c "v0 does not cut segments of TCP by ${1:-xdp}" \
			"$work/b.log")" 1
}
asked_for_in_vain() {
	nothing_is_cut_by verbs && nothing_is_cut_by ""
}

# A queue for few sends, and few frames: some of what is to be cut does not fit, and is lost.
short_of_room() {
	send bulk_to_the_server VMA_TX_WRE=32 VMA_TX_WRE_BATCHING=4 &&
		cut_at_least $((full / 4)) &&
		send bulk_to_the_server VMA_XDP_FRAMES=128 VMA_RX_WRE=64 &&
		cut_at_least $((full / 4))
}
# The peer's card loses frames in the middle of what was cut; they are sent again one by one.
some_of_them_get_lost() {
	export SOFTCX_IMPAIR=loss=5000
	serve_peer a.log bulk
	local status=$?
	unset SOFTCX_IMPAIR
	[ $status = 0 ] && send bulk_to_the_server && cut_at_least $((full / 2))
}
# in_the_middle WHAT...: happens to a connection with much under way both ways.
in_the_middle() {
	local said=$work/said
	: >"$said"
	serve_peer - bulk || return 1
	mark_carriers
	export PEER_BULK=40000000
	begin_talk "$said" b.log bulk_until_told
	export PEER_BULK=10000000
	wait_until is_under_way || return 1
	"$@" >>"$said" 2>&1
	end_talk "$said"
	grep -qx 'right 1' "$said" && grep -q '^answer "right"' "$said" &&
		! grep -q 'exit\|error' "$said" ||
		{ cat "$said"; return 1; }
}

to_the_kernel() {
	local pid
	for pid in $(ip netns pids $b); do
		[ "$(cat /proc/$pid/comm)" = tcp_peer ] || continue
		"$stats" -p "$pid" --kernel=all >"$work/order"
		grep -q OPERATOR "$work/order" || echo "error: $(cat "$work/order")"
	done
}
back_in_the_middle() {
	in_the_middle to_the_kernel
}

smaller_mtu() {
	ip -n $a link set v0 mtu 1280
	ip -n $b link set v0 mtu 1280
	sleep 0.3
}
mtu_shrinks_in_the_middle() {
	in_the_middle smaller_mtu
}
run_cases frames_are_as_if_sent_alone no_segment_is_longer_than_the_peer_says bulk_both_ways_is_cut cut_by_option_and_card \
	asked_for_in_vain short_of_room some_of_them_get_lost back_in_the_middle \
	mtu_shrinks_in_the_middle
