#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A TCP server under the library, and peers that mean it harm (tcp_hostile.py), over AF_XDP.
# While each attack lasts a guest, a kernel's connection, asks and is answered; after it the
# server has the fds and the memory that it had before, and serves.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

peer=$builddir/tests/system/tcp_peer
flood=$builddir/tests/system/tcp_flood
stats=$builddir/tools/vma_stats/vma_stats
hostile="/usr/bin/python3 $srcdir/tests/system/tcp_hostile.py"
carriers='
any ours
'

# The attackers' networks are behind b, which answers nothing for them.
make_hostile_lab() {
	make_lab && ip -n $a route add 10.79.0.0/16 via 10.78.0.2 &&
		ip -n $a route add 10.80.0.0/16 via 10.78.0.2 &&
		ip netns exec $a sysctl -qw net.ipv4.tcp_max_syn_backlog=256 &&
		ip netns exec $b ping -q -c 1 -W 2 10.78.0.1 >/dev/null
}

# -- the server ------------------------------------------------------------------------

victim() {
	ip netns pids $a | while read -r pid; do
		grep -q libvma "/proc/$pid/maps" && echo "$pid" && break
	done
}
# Without the eventfds: a thread that sleeps has one, and it is kept for the next that does.
fds() {
	ls -l "/proc/$pid/fd" | grep -cv 'eventfd]$'
}
eventfds() {
	ls -l "/proc/$pid/fd" | grep -c 'eventfd]$'
}
# The most threads that an attack keeps in a call at once are those of the deaf peers.
few_eventfds() {
	[ "$(eventfds)" -le 220 ] || { echo "$(eventfds) eventfds"; return 1; }
}
rss_kb() {
	awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"
}
count_of() {
	"$stats" -p "$pid" --raw | awk -v name="$1" '$1 == name { print $2 }'
}
# counted COUNTER AT_LEAST: the library publishes them each second.
is_counted() {
	[ "$(count_of "$1")" -ge "$2" ] 2>/dev/null
}
counted() {
	wait_until is_counted "$@" >/dev/null ||
		{ echo "$1 is $(count_of "$1")"; return 1; }
}

begin_attack() {
	serve_peer a.log any || return 1
	pid=$(victim)
	rm -f "$work/guest.in"
	mkfifo "$work/guest.in"
	(in_ns $b - timeout -k 5 120 "$peer" ask 10.78.0.1 7000 guest \
		<"$work/guest.in") >"$work/guest" 2>&1 &
	guest=$!
	exec 8>"$work/guest.in"
	wait_for begun "$work/guest" || return 1
	fds_before=$(fds)
	rss_before=$(rss_kb)
	mark_carriers
}
attack() {
	(in_ns $b - timeout -k 5 100 $hostile "$@") 2>&1
}
# fewer_fds MAX, less_memory MAX_KB: than that many more than before.
fewer_fds() {
	[ "$(fds)" -le $((fds_before + $1)) ] ||
		{ echo "$(fds) fds, $fds_before before"; return 1; }
}
less_memory() {
	[ "$(rss_kb)" -le $((rss_before + $1)) ] ||
		{ echo "$(rss_kb) KB, $rss_before before"; return 1; }
}
# soon CHECK ARGUMENT: it says why not only when the time is over.
soon() {
	wait_until "$@" >/dev/null || "$@"
}
end_guest() {
	exec 8>&-
	wait $guest
	expect "$(grep -v '^#' "$work/guest")" 'begun
0 bad
answer "", then the end' && check_nothing_by_kernel
}
check_nothing_by_kernel() {
	local said
	said=$(check_carrier any $a)
	[ -z "$said" ] || { echo "$said"; return 1; }
}
# It serves as before, and as ours.
serves() {
	mark_carriers
	expect "$(client ping_pong)" \
		'0 bad
answer "", then the end' && check_nothing_by_kernel
}
end_attack() {
	end_guest && serves && kill -0 "$pid" && soon fewer_fds 1 && few_eventfds
}

# -- the attacks -----------------------------------------------------------------------

# begin_flood CNT RATE, end_flood: tcp_flood, which is ended if it has not ended yet. A SYN
# has one answer or, where too much comes at once, none; those that are half open give up
# after the first.
begin_flood() {
	(in_ns $b - timeout -k 5 100 "$flood" v0 \
		"$(ip netns exec $a cat /sys/class/net/v0/address)" 10.78.0.1 7000 \
		"$@") >"$work/flood" 2>"$work/flood.rate" &
	flood_pid=$!
}
end_flood() {
	local sent answered
	[ "${1:-}" = now ] && kill $flood_pid
	wait $flood_pid
	sent=$(sed -nE 's/^sent ([0-9]+),.*/\1/p' "$work/flood")
	answered=$(sed -nE 's/.* answered ([0-9]+),.*/\1/p' "$work/flood")
	[ "$answered" -ge $((sent / 2)) ] &&
		grep -q "twice 0, reset 0, wrong 0" "$work/flood" ||
		{ cat "$work/flood"; return 1; }
}
syn_flood() {
	ip netns exec $a sysctl -qw net.ipv4.tcp_synack_retries=0
	begin_attack && begin_flood 60000 30000 && end_flood &&
		fewer_fds 1 && less_memory 8000 && counted tcp.cookies_sent 29000 &&
		end_attack
}
# Who is behind a gateway that is known is answered without a look-up, and with the others
# of a batch.
syn_flood_is_cheap() {
	local kicks
	ip netns exec $a sysctl -qw net.ipv4.tcp_synack_retries=0
	serve_peer a.log any || return 1
	pid=$(victim)
	begin_flood 60000 30000 && end_flood && counted tcp.cookies_sent 29000 || return 1
	kicks=$(count_of ring.0.kicks)
	echo "# $kicks kicks" >"$work/guest"
	[ "$kicks" -le 30000 ] || { echo "$kicks kicks for 60000 SYNs"; return 1; }
}
# In the midst of a flood: streams both ways, of which every byte is right, and new clients,
# who come by cookies.
syn_flood_beside_clients() {
	ip netns exec $a sysctl -qw net.ipv4.tcp_synack_retries=0
	begin_attack && begin_flood 1000000 30000 &&
		counted tcp.cookies_sent 1 &&
		expect "$(client bulk_both_ways)" 'right 1
answer "right", then the end' &&
		expect "$(PEER_SHORT=100 client short_connections)" "0 of them bad" &&
		end_flood now && counted tcp.cookies_accepted 80 && fewer_fds 1 &&
		less_memory 12000 && end_attack
}
client() {
	(in_ns $b - timeout -k 5 60 "$peer" ask 10.78.0.1 7000 "$1") 2>&1
}
# Their answers wait for neighbours that there are not.
syn_flood_of_nobody() {
	begin_attack && expect "$(attack near 30000)" "sent 30000" &&
		fewer_fds 1 && less_memory 8000 && end_attack
}
cookies_are_honoured() {
	begin_attack && expect "$(attack cookies 20000)" "right 50" &&
		counted tcp.cookies_accepted 10 && end_attack
}
# Of their peers nothing is known any more when the rest of the handshake comes.
cookies_are_honoured_late() {
	begin_attack && expect "$(attack late 30000)" "right 20" &&
		counted tcp.cookies_accepted 20 && end_attack
}

# What waits to be accepted costs no fds, and is bounded by the backlog.
nobody_accepts() {
	local holder
	begin_attack || return 1
	rm -f "$work/holder.in"
	mkfifo "$work/holder.in"
	(in_ns $b - timeout -k 5 60 "$peer" ask 10.78.0.1 7000 held \
		<"$work/holder.in") >"$work/holder" 2>&1 &
	holder=$!
	exec 7>"$work/holder.in"
	wait_for held "$work/holder" || return 1
	attack flood 2000 >"$work/flood"
	fewer_fds 3 && less_memory 16000 || return 1
	exec 7>&-
	wait $holder
	grep -qx 'open 5[1-9][0-9]' "$work/flood" || { cat "$work/flood"; return 1; }
	end_guest && serves && kill -0 "$pid"
}
# A connection that the program has closed costs no fd of the program's, as on Linux.
closed_connections_need_no_fds() {
	begin_attack || return 1
	prlimit --pid "$pid" --nofile=200:200
	expect "$(attack closers 1000)" "open 1000 ended 1000" && end_guest && serves
}
# deaf WINDOW: 200 peers that are owed much and take nothing. What waits for them is as much
# as on Linux for each, and is given back when they are gone.
deaf() {
	begin_attack && attack deaf 200 "$1" >"$work/deaf" && cat "$work/deaf" &&
		grep -qx 'open 200' "$work/deaf" && less_memory 60000 &&
		soon fewer_fds 1 && soon less_memory 12000 && end_attack
}
peers_never_answer() {
	deaf 65535
}
peers_close_their_windows() {
	deaf 0
}
windows_shrink() {
	begin_attack && expect "$(attack shrinker)" "got 200000 end True reset False" &&
		end_attack
}
# Each byte comes in a segment of its own, every other one first: the memory for that is
# bounded by the receive buffer, and at last the stream is whole.
bytes_come_out_of_order() {
	local crumbs
	begin_attack || return 1
	rm -f "$work/crumbs.in"
	mkfifo "$work/crumbs.in"
	attack crumbs 60000 <"$work/crumbs.in" >"$work/crumbs" &
	crumbs=$!
	exec 7>"$work/crumbs.in"
	wait_for half "$work/crumbs" && less_memory 16000 || return 1
	exec 7>&-
	wait $crumbs
	expect "$(tail -1 "$work/crumbs")" "taken 60000" && end_attack
}
# Whoever knows the four-tuple and not the numbers neither ends a connection nor says a
# word in it, and has no more answers than a few.
numbers_are_guessed() {
	local port before
	begin_attack || return 1
	port=$(ip netns exec $b ss -tnH dst 10.78.0.1:7000 |
		awk '{ sub(/.*:/, "", $4); print $4; exit }')
	expect "$(attack inject 10.78.0.2 "$port")" "sent 3000" &&
		counted tcp.out_of_window 500 && counted tcp.paws_drops 500 &&
		counted tcp.challenge_acks 1 && is_few tcp.challenge_acks 100 && end_attack
}
is_few() {
	[ "$(count_of "$1")" -le "$2" ] || { echo "$1 is $(count_of "$1")"; return 1; }
}
# What is malformed is dropped, and counted by its reason; nothing has two answers. What
# is of no connection of ours the kernel answers.
segments_lie() {
	begin_attack && expect "$(attack lies 1)" "sent 2000 answers few enough" &&
		counted tcp.malformed 100 && counted tcp.bad_checksum 100 || return 1
	mark_carriers
	end_attack
}
# From now on nothing more can be mapped: what is there goes on, what is new may fail.
no_more_memory() {
	local vm
	begin_attack || return 1
	vm=$(awk '/^VmSize/ { print $2 * 1024 }' "/proc/$pid/status")
	prlimit --pid "$pid" --as="$vm:"
	attack flood 3000 >/dev/null
	attack deaf 100 0 >/dev/null
	prlimit --pid "$pid" --as=unlimited:
	end_guest && serves && kill -0 "$pid"
}
closed_clients_need_no_fds() {
	: >"$work/keeper"
	(in_ns $b - timeout 60 $hostile keep 10.78.0.2) >"$work/keeper" 2>&1 &
	wait_for ready "$work/keeper" || return 1
	expect "$(ulimit -n 200; (in_ns $a a.log timeout -k 5 60 $hostile \
		close 10.78.0.2 1000) 2>&1 | tail -1)" "closed 1000" &&
		grep -q "v0 is driven" "$work/a.log"
}
cases="syn_flood syn_flood_is_cheap syn_flood_beside_clients syn_flood_of_nobody cookies_are_honoured cookies_are_honoured_late
nobody_accepts closed_connections_need_no_fds closed_clients_need_no_fds
peers_never_answer peers_close_their_windows windows_shrink bytes_come_out_of_order
numbers_are_guessed segments_lie no_more_memory"
for case in ${CASES:-$cases}; do
	why=$(lab_is_possible) || { tap_skip "$case" "$why"; continue; }
	make_hostile_lab || { tap_not_ok "$case" "cannot make the namespaces"; continue; }
	tap_check "$case" "$case"
	grep -hs '^#' "$work/guest" "$work/flood.rate"
	rm -f "$work/guest" "$work/flood.rate"
	end_lab
done
tap_end
