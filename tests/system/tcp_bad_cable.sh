#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# TCP over a cable that loses, doubles, damages and reorders: each conversation of
# tcp_peer (the slow ones with SOAK or CASES), with the library at the server's end, at the client's, and at both. Every byte
# of both streams is checked, and most segments are ours.
#
# SOAK=SECONDS: one round after the other for so long (make soak-tcp). SEED: of the first round; the next ones count on.
. "${srcdir:-.}/tests/system/cable_lab.sh"

peer=$builddir/tests/system/tcp_peer
seed=${SEED:-1}
# In ppm; the delay in microseconds.
cable=${CABLE:-"loss=10000 dup=10000 reorder=10000 corrupt=1000 delay=200"}
export PEER_BULK=${PEER_BULK:-4000000}
carriers='
ping_pong               ours
bulk_to_the_server      ours
bulk_from_the_server    ours
bulk_both_ways          ours
bulk_of_several         ours
short_connections       mixed
half_closed             mixed
'
# Each lost word costs a time-out.
slow='ping_pong short_connections'

# converse OUTPUT CASE SERVER_LOG CLIENT_LOG
converse() {
	local output=$work/$1 case=$2
	serve_peer "$3" "$case" >>"$output" || { end_server; return 1; }
	mark_carriers
	(in_ns $b "$4" timeout -k 5 100 "$peer" ask 10.78.0.1 7000 "$case") \
		</dev/null >"$output" 2>&1 || echo "exit $?" >>"$output"
	[ "$3" = - ] || check_carrier "$case" $a >>"$output"
	[ "$4" = - ] || check_carrier "$case" $b >>"$output"
	end_server
}

converse_in_all_ways() {
	local case
	for case in ${CASES:-$(cases)}; do
		[ -z "${CASES:-}${SOAK:-}" ] && grep -qw "$case" <<<"$slow" &&
			continue
		converse kernel "$case" - -
		converse server "$case" a.log -
		converse client "$case" - b.log
		converse both "$case" a.log b.log
		tap_alike "${1:-}$case" "$work/kernel" "$work/server" \
			"$work/client" "$work/both" || different+=" $case"
	done
}

if ! why=$(lab_is_possible); then
	tap_skip all_conversations "$why"
	tap_end
	exit
fi
make_cable_lab "$seed" || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
different=
until=$((SECONDS + ${SOAK:-0}))
while :; do
	converse_in_all_ways "${SOAK:+seed $seed: }"
	end_cable
	sed "s/^/# /" "$work/cable"
	[ $SECONDS -lt $until ] || break
	seed=$((seed + 1))
	plug_in "$seed"
done
[ -n "$different" ] && tap_not_ok all_conversations "$different" ||
	tap_ok all_conversations
tap_end
