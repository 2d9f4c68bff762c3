#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rp_filter over AF_XDP: who is heard must be who is heard on the kernel. Besides the
# lab's two addresses b has some by which a reaches nobody, or somebody elsewhere:
#
#   10.99.0.2  a's way there leads by another interface
#   10.98.0.2  a has no way there
#   10.97.0.2  a has one by v0
. "${srcdir:-.}/tests/system/udp_lab.sh"

rpf_program="/usr/bin/python3 $srcdir/tests/system/udp_rpf.py"
sources="10.78.0.2 10.99.0.2 10.98.0.2 10.97.0.2"

more_addresses() {
	local i
	for i in 99 98 97; do
		ip -n $b address add 10.$i.0.2/32 dev v0 || return 1
	done
	ip -n $a address add 10.78.0.3/24 dev v0 &&
		ip -n $a link add other type veth peer name another &&
		ip -n $a address add 10.99.0.1/24 dev other &&
		ip -n $a link set other up && ip -n $a link set another up &&
		ip -n $a route add 10.97.0.0/24 via 10.78.0.2 dev v0
}

# set_filter ALL V0
set_filter() {
	ip netns exec $a sysctl -qw net.ipv4.conf.all.rp_filter="$1" \
		net.ipv4.conf.v0.rp_filter="$2"
}

# ask_all: one round; waits until the library has heard of what changed before.
ask_all() {
	wait_until has_heard $a
	sleep 0.3
	ip netns exec $b $rpf_program send 10.78.0.1,10.78.0.3 $sources
	sleep 0.1
	ip netns exec $b $rpf_program end 10.78.0.1
}

settings() {
	local pair
	for pair in "0 0" "0 1" "0 2" "1 0" "2 1" "1 2" "0 1" "0 0"; do
		set_filter $pair && ask_all || return 1
	done
}

rules() {
	set_filter 0 1
	ip -n $a rule add from 10.78.0.3 table 100 &&
		ip -n $a route add default via 10.78.0.2 table 100 &&
		ask_all &&
		ip -n $a rule del from 10.78.0.3 table 100 && ask_all
}

routes() {
	set_filter 0 1
	ask_all && ip -n $a route add default via 10.78.0.2 && ask_all &&
		ip -n $a link set other down && ask_all &&
		ip -n $a route add prohibit 10.98.0.0/16 && ask_all &&
		set_filter 0 2 && ask_all
}

# has_said WORD CNT: in so many lines.
has_said() {
	[ "$(grep -c "$1" "$work/out")" -ge "$2" ]
}

# heard_by LOG CHANGES CNT: what was printed in so many rounds, in $work/heard.
heard_by() {
	local log=$1 changes=$2 cnt=$3
	make_lab && more_addresses && set_filter 0 0 &&
		start "$log" $rpf_program hear && $changes || return 1
	wait_until has_said heard "$cnt" >/dev/null
	grep heard "$work/out" >"$work/heard"
}

# same CHANGES ROUNDS
same() {
	local pid
	heard_by - "$1" "$2" || return 1
	mv "$work/heard" "$work/heard.libc"
	heard_by a.log "$1" "$2" || return 1
	[ "$(wc -l <"$work/heard")" = "$2" ] || { echo "not all rounds"; return 1; }
	diff "$work/heard.libc" "$work/heard" || return 1
	pid=$(ip netns pids $a | head -1)
	"$builddir/tools/vma_stats/vma_stats" -p "$pid" --raw >"$work/raw"
	grep -q '^drop.RP_FILTER [1-9]' "$work/raw" ||
		{ echo "none dropped for it:"; grep drop "$work/raw"; return 1; }
	[ "$(awk '$1 ~ /\.rx_os_packets$/ { n += $2 } END { print n + 0 }' \
		"$work/raw")" -le 2 ] || { echo "the kernel had some"; return 1; }
}

follows_the_setting() { same settings 8; }
by_rules_of_the_way_back() { same rules 2; }
follows_routes() { same routes 5; }

run_cases follows_the_setting by_rules_of_the_way_back follows_routes
