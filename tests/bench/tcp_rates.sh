#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# TCP over veth by ways in turn: the kernel's sockets at both ends, ours at both, and ours
# at one. 64 bytes there and back (blocking, spinning, and under VMA_SPEC=latency), much
# one way in frames of 1500 bytes, and connections. Each end has a processor of its own,
# and nothing else should run. Prints medians and what they are of the kernel's, and
# writes them to JSON-FILE. With VMA_RING (contrib/card-bench) LIBRARY may be a list, and
# LAB_CPUS_A and LAB_CPUS_B are other processors for the ends.
#
# With UDP-RATES and UDP-FRAMES the floors are beside them, bare AF_XDP with no stack at all
# (udp_raw.c), which no library that uses it gets below: frames there and back; frames of
# 1500 bytes one way, of which TCP would use 1448, in batches of 32 and with nothing that
# acknowledges them, to bare AF_XDP and (floor_client) to a socket of the kernel's, for
# datagrams, which cost it less; and of connections the six frames that wait for each other
# (SYN, its answer, the request, its answer, and two FINs), with no call of the kernel for a
# socket.
# Usage: [ROUNDS=N] tcp_rates.sh PROGRAM LIBRARY JSON-FILE [UDP-RATES UDP-FRAMES]
set -eu
program=$1
json=$3
udp_rates=${4:-}
udp_frames=${5:-}
[ "$(nproc)" -ge 2 ] || { echo 'This takes two processors.' >&2; exit 1; }
. "$(dirname "$0")/udp_lab.sh"
library=$(preload_of "$2")
results=$work/results
for end in $a $b; do
	ip netns exec $end ethtool -K v0 tso off gso off gro off >/dev/null
	# or the kernel runs out of ports, and searches long for a free one
	ip netns exec $end sysctl -qw net.ipv4.tcp_max_tw_buckets=256
done

# (at END WHOSE SPEC COMMAND...): becomes the command.
at() {
	namespace=$1 whose=$2 spec=$3 preload=
	shift 3
	end=a processor=${LAB_CPUS_A:-0}
	[ "$namespace" = "$a" ] || end=b processor=${LAB_CPUS_B:-1}
	if [ "$whose" = ours ]; then
		preload=$library
		export VMA_LOG_FILE="$work/log.$end"
		rm -f "$VMA_LOG_FILE"
		[ "$spec" = - ] || export VMA_SPEC="$spec"
	fi
	exec ip netns exec "$namespace" taskset -c "$processor" timeout 20 \
		env ${preload:+"LD_PRELOAD=$preload"} "$@"
}

# A listener is ours from its first wait on.
await_server() {
	for _ in $(seq 200); do
		grep -q ready "$work/server" && break
		sleep 0.02
	done
	[ "$1" = theirs ] || sleep 0.3
}

# run NAME ROLE WAY SERVERS CLIENTS SPEC
run() {
	: >"$work/server"
	(at $b "$4" "$6" "$program" serve "$3" 10.79.0.2) >"$work/server" 2>&1 &
	server=$!
	await_server "$4"
	figures=$( (at $a "$5" "$6" "$program" "$2" "$3" 10.79.0.2) 2>"$work/errors") ||
		cat "$work/errors" >&2
	kill $server
	wait $server 2>/dev/null || true
	echo "$1 ${figures:-failed}" >>"$results"
}

# bare A-ROLE B-ROLE BATCH PROGRAM [A-WAY]: what B prints, or A.
mac_a=$(ip netns exec $a cat /sys/class/net/v0/address)
mac_b=$(ip netns exec $b cat /sys/class/net/v0/address)
bare() {
	: >"$work/server"
	(at $a theirs - "$4" "${5:-raw}" "$1" 10.79.0.1 10.79.0.2 "$mac_b" "$3") \
		>"$work/server" 2>&1 &
	first=$!
	await_server theirs
	(at $b theirs - "$4" raw "$2" 10.79.0.2 10.79.0.1 "$mac_a" "$3") \
		>"$work/second" 2>&1 &
	second=$!
	case $1 in
	count) wait $first || true ;;
	*) wait $second || true ;;
	esac
	kill $first $second 2>/dev/null || true
	wait $first $second 2>/dev/null || true
	sed -n '/^[0-9]/p' "$work/server" "$work/second"
}

floors() {
	figures=$(bare echo ping 1 "$udp_rates")
	echo "ping.floor_spinning ${figures:-failed}" >>"$results"
	echo "${figures:-0}" | awk '{ print "connect.floor",
		($1 > 0 ? int(1e9 / (6 * $1)) : "failed") }' >>"$results"
	one_way send.floor raw
	one_way send.floor_client block
}
# one_way NAME A-WAY
one_way() {
	bare count flood 32 "$udp_frames" "$2" |
		awk -v name="$1" '{ print name, int($1 * 1448 * 8 / 1e6); n++ }
			END { if (!n) print name, "failed" }' >>"$results"
}

for _ in $(seq "${ROUNDS:-5}"); do
	for role in ping send take connect; do
		run $role.kernel $role block theirs theirs -
		run $role.ours $role block ours ours -
		run $role.server_ours $role block ours theirs -
		run $role.client_ours $role block theirs ours -
	done
	run ping.kernel_spinning ping spin theirs theirs -
	run ping.ours_spinning ping spin ours ours -
	run ping.ours_latency ping spin ours ours latency
	[ -z "$udp_frames" ] || floors
done

# what a library measured last is ours at both ends
for end in a b; do
	grep -q "is driven by ${VMA_RING:-}" "$work/log.$end" || {
		echo 'The library did not take the interface; its log:' >&2
		cat "$work/log.$end" >&2
		exit 1
	}
done

# The median of each figure, and of the kernel's: NAME FIGURE...
awk '
	$2 != "failed" { for (i = 2; i <= NF; i++) all[$1, i] = all[$1, i] " " $i
		cnt[$1] = NF; if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 } }
	$2 == "failed" { failed[$1]++ }
	function median(list,   v, k, i, j, t) {
		k = split(list, v, " ")
		for (i = 1; i <= k; i++) for (j = i + 1; j <= k; j++)
			if (v[j] + 0 < v[i] + 0) { t = v[i]; v[i] = v[j]; v[j] = t }
		return v[int((k + 1) / 2)]
	}
	END {
		print "{" >json
		for (i = 1; i <= n; i++) {
			name = order[i]; split(name, part, ".")
			base = name ~ /spinning|latency/ ? "ping.kernel_spinning" : part[1] ".kernel"
			value = median(all[name, 2]); of = median(all[base, 2])
			printf "%-24s %10d  %.2f of the kernel", name, value, value / of
			printf "  \"%s\": [%d", name, value >json
			if (cnt[name] > 2) {
				printf "   p99.9 %8d  %.2f", median(all[name, 3]), median(all[name, 3]) / median(all[base, 3])
				printf ", %d", median(all[name, 3]) >json
			}
			if (failed[name]) printf "   %d runs failed", failed[name]
			printf "\n"
			print "]" (i < n ? "," : "") >json
		}
		print "}" >json
		for (name in failed) if (!(name in seen))
			printf "%-24s all %d runs failed\n", name, failed[name]
	}' json="$json" "$results"
