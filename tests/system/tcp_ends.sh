#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that end, become others or give a connection to the kernel in the middle of
# something, over AF_XDP to a peer on the kernel: calls that a signal interrupts,
# VMA_WAY_BACK=off, SYNs with data that nobody has answered, and connections in TIME_WAIT.
#
# CASES="NAME...": only these.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

ends="/usr/bin/python3 $srcdir/tests/system/tcp_ends.py"

# peer CASE PORT [ARGUMENT...]: in b; its words are in peer.
there=10.78.0.2
peer() {
	local case=$1 port=$2
	shift 2
	: >"$work/peer"
	(in_ns $b - $ends "$case" $there "$port" "$@") </dev/null >"$work/peer" 2>&1 &
	peer=$!
	wait_for ready "$work/peer"
}
end_peer() {
	kill $peer 2>/dev/null
	wait $peer 2>/dev/null
	return 0
}

# begin LOG CASE PORT [ARGUMENT...]: the program, in a; its words are in out.
begin() {
	local log=$1 case=$2 port=$3
	shift 3
	rm -rf "$work/log" "$work/go"
	mkdir "$work/log"
	: >"$work/out"
	(in_ns $a "$log" $ends "$case" $there "$port" "$@") </dev/null >"$work/out" 2>&1 &
	program=$!
}

said() {
	printf '%s\n' "$@" | diff - "$work/out" ||
		{ complaints; return 1; }
}
# Of every process and program one.
complaints() {
	cat "$work"/log/* | grep -E 'WARNING|ERROR' | grep -v '[*]'
}
last_of_peer() {
	wait_for "$1" "$work/peer" && tail -1 "$work/peer"
}

# -- a signal in the middle of a call --

# peer_has_more_than BYTES PORT: and has not read them.
peer_has_more_than() {
	[ "$(ip netns exec $b ss -Htn state established "sport = :$2" |
		awk '{ n += $1 } END { print n + 0 }')" -gt "$1" ]
}
# interrupt LOG CALL ACTION: what the calls have said was written arrives, and nothing twice.
interrupt() {
	local counted came right end status
	peer sink 7200 "$work/go" || return 1
	rm -f "$work/count"
	begin "$1" interrupted 7200 "$2" "$3" "$work/count"
	wait_for writing "$work/out" && wait_until peer_has_more_than 60000 7200 || return 1
	kill -TERM $program
	wait $program
	status=$?
	touch "$work/go"
	read -r _ came right end <<<"$(last_of_peer got)"
	end_peer
	counted=$(cat "$work/count")
	[ "$right $end" = "True end" ] || { echo "came $came $right $end"; return 1; }
	if [ "$3" = handler ]; then
		said writing "interrupted True True" && [ $status = 0 ] && [ "$came" = $counted ]
	else
		said writing && [ $status = 143 ] && [ $counted = 60000 ] &&
			[ "$came" -ge $counted ] && [ "$came" -lt $((10 << 20)) ]
	fi || { echo "status $status, counted $counted, came $came"; return 1; }
}
interrupts() {
	interrupt - "$@" || { echo "on the kernel"; return 1; }
	interrupt log/%d.log "$@" || return 1
	grep -qh "is the kernel's: the process ends" "$work"/log/* ||
		{ echo "it was not ours before"; return 1; }
}
write_is_ended() { interrupts write default; }
write_is_handled() { interrupts write handler; }
sendfile_is_ended() { interrupts sendfile default; }
sendfile_is_handled() { interrupts sendfile handler; }

# -- VMA_WAY_BACK=off --

# stays CASE WORD...: the peer, which is slow to read, gets all that was written and the end;
# who has the socket then hears that it is none.
stays() {
	local case=$1
	shift
	peer sink 7201 "$work/go" || return 1
	VMA_WAY_BACK=off begin log/%d.log "$case" 7201
	wait_for written "$work/out" && sleep 0.2 && touch "$work/go" || return 1
	wait $program
	said written "$@" && last_of_peer "got 60000 True end" || return 1
	end_peer
	[ "$(complaints | wc -l)" = 1 ] &&
		complaints | grep -q 'VMA_WAY_BACK=off keeps a connection that the kernel should have' ||
		{ complaints; return 1; }
}
exec_with_what_stays() {
	stays becomes_another "recv ENOTCONN send EPIPE" "peer ENOTCONN"
}
filter_with_what_stays() {
	stays installs_filter "filter 0" "recv ENOTCONN send EPIPE" "peer ENOTCONN"
}
# The program goes on with a connection that it has shut down.
exec_that_fails_with_what_stays() {
	stays becomes_nothing "exec ENOENT" "recv b'' send EPIPE" "peer ENOTCONN"
}

# The kernel alone knows how, so it has the socket from the start.
zerocopy_without_a_way_back() {
	peer sink 7201 "$work/go" || return 1
	touch "$work/go"
	(VMA_WAY_BACK=off in_ns $a a.log timeout -k 5 30 python3 -c "
import socket
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
s.connect(('$there', 7201))
print(s.send(bytes(i % 251 for i in range(60000)), MSG_ZEROCOPY))") </dev/null >"$work/out" 2>&1
	said 60000 && last_of_peer got && end_peer
}

# -- a connection in TIME_WAIT whose peer has missed the last acknowledgment --

# still_answers CASE: when its program has ended, too, on the kernel and under the library.
still_answers() {
	local way there=10.78.0.200 ours=${2:-"is the kernel's: .*(handed it on|a child)"}
	ip -n $a neighbour replace $there dev v0 lladdr "$peer_mac" nud permanent
	for way in - log/%d.log; do
		peer forgetful 7203 "$work/go" || return 1
		begin $way "$1" 7203
		wait $program
		touch "$work/go"
		said "over True" "recv b'left' b''" && [ "$(last_of_peer answer)" = "answer ACK" ] ||
			{ echo "log $way"; cat "$work/peer"; return 1; }
		end_peer
	done
	grep -qhE "$ours" "$work"/log/* ||
		{ echo "it was not ours before"; grep -h "kernel" "$work"/log/*; return 1; }
}
time_wait_at_exec() { still_answers over_before_exec; }
time_wait_at_fork() { still_answers over_before_fork; }
time_wait_handed_on() { still_answers over_before_it_is_sent; }
time_wait_at_exit() { still_answers over_before_exit "is the kernel's: the process ends"; }
time_wait_at_exit_by_number() {
	still_answers over_before_exit_by_number "is the kernel's: the process ends"
}
# How many the kernel of a has in TIME_WAIT to this port.
waiting_cnt() {
	ip netns exec $a ss -Htn state time-wait "dport = :$1" | wc -l
}
kernel_waits_for() {
	[ "$(waiting_cnt "$1")" -ge "$2" ]
}
# The program goes on.
closed_while_it_goes_on() {
	local way there=10.78.0.200
	ip -n $a neighbour replace $there dev v0 lladdr "$peer_mac" nud permanent
	for way in - log/%d.log; do
		peer forgetful 7203 "$work/go" || return 1
		begin $way over_and_goes_on 7203 "$work/end"
		wait_for closed "$work/out" && wait_until kernel_waits_for 7203 1 || return 1
		touch "$work/go"
		[ "$(last_of_peer answer)" = "answer ACK" ] ||
			{ echo "log $way"; cat "$work/peer"; return 1; }
		touch "$work/end"
		wait $program
		rm "$work/end"
		said "over True" "recv b'left' b''" closed || return 1
		end_peer
	done
	grep -qh "1 in TIME_WAIT" "$work"/log/* || { echo "it was not ours before"; return 1; }
}
# Those that the kernel has while the program goes on, and those that we have waited for until
# its end: both are in the log, and together they are all.
many_that_are_closed() {
	local cnt=200 began took left ours
	touch "$work/go-on"
	peer sink 7204 "$work/go-on" || return 1
	began=$(date +%s%N)
	begin log/%d.log closes_many 7204 $cnt "$work/end"
	wait_for closed "$work/out" && wait_until kernel_waits_for 7204 16 || return 1
	touch "$work/end"
	wait $program
	took=$((($(date +%s%N) - began) / 1000000))
	rm "$work/end" "$work/go-on"
	end_peer
	left=$(cat "$work"/log/* | grep -c '1 in TIME_WAIT is left to the kernel')
	ours=$(sed -n 's/.*are left to the kernel, of //p' "$work"/log/*)
	[ "$left" -le $((17 + took * 32 / 1000)) ] && [ "$left" -lt $cnt ] ||
		{ echo "the kernel has $left after $took ms"; return 1; }
	expect "$((left + ours))" $cnt
}
little_unsent_at_exit() {
	local sent
	rm -f "$work/read"
	peer sink 7205 "$work/read" || return 1
	begin log/%d.log leaves_little_unsent 7205
	wait $program
	touch "$work/read"
	sent=$(sed -n 's/^sent //p' "$work/out")
	[ "${sent:-0}" -gt 65536 ] || { cat "$work/out"; return 1; }
	expect "$(last_of_peer '^got')" "got $sent True end" || { complaints; return 1; }
	end_peer
	grep -qh "is the kernel's: the process ends" "$work"/log/* || echo "it was not ours before"
}
closed_before_exit() { still_answers over_and_closed "1 in TIME_WAIT"; }
closed_before_exec() { still_answers over_before_it_becomes_another "1 in TIME_WAIT"; }

# -- a SYN with data that nobody has answered --

# The peer drops what comes from here (rp_filter: it has no way back), and takes it again.
# by_neighbour: it goes elsewhere, and the library hears of that.
cut() {
	[ -n "${by_neighbour:-}" ] || { ip -n $b route add blackhole 10.78.0.1; return; }
	ip -n $a neighbour replace 10.78.0.2 dev v0 lladdr 2:0:0:0:0:99 nud permanent
	sleep 0.2
}
mend() {
	[ -n "${by_neighbour:-}" ] || { ip -n $b route del blackhole 10.78.0.1; return; }
	ip -n $a neighbour replace 10.78.0.2 dev v0 lladdr "$peer_mac" nud permanent
}
have_come() {
	[ "$(grep -c "got b'only once'" "$work/peer")" = "$1" ]
}
# unanswered LOG CASE WORD: until a moment after the program has said that word.
unanswered() {
	peer answerer 7202 || return 1
	begin "$1" "$2" 7202 "$work/go"
	wait_for learned "$work/out" && wait_for "got" "$work/peer" && cut || return 1
	touch "$work/go"
	wait_for "$3" "$work/out"
	sleep ${moment:-0.3}
	mend
	wait $program
}
# late CASE NEXT WORD...: on the kernel and under the library. NEXT is the first word of what
# it says before it waits for the answer.
late() {
	local way what=$1 next=$2
	shift 2
	for way in - log/%d.log; do
		unanswered $way "$what" "$next" || return 1
		said "$@" && wait_until have_come 2 || { echo "log $way"; return 1; }
		end_peer
	done
}
exec_before_the_answer() {
	late hands_on sent learned "sent 9" awaits "error 0" "answer b'answer'"
}
wait_that_goes_back() {
	late waits waits learned "waits True" "sent 9" "answer b'answer'"
}
# The library's thread, which hears of the neighbour, looks at the socket each second.
exec_before_the_neighbour() {
	local by_neighbour=yes moment=1.2
	exec_before_the_answer
}
# The way goes while a SYN is under way, and comes back: as under Linux nobody hears of it.
loses() {
	case $1 in
	address) ip -n $a address del 10.78.0.1/24 dev v0 ;;
	route) ip -n $a route del 10.78.0.0/24 ;;
	link) ip -n $a link set v0 down ;;
	esac
}
has_again() {
	case $1 in
	address) ip -n $a address add 10.78.0.1/24 dev v0 ;;
	route) ip -n $a route add 10.78.0.0/24 dev v0 ;;
	link) ip -n $a link set v0 up ;;
	esac
}
connect_waits_for_the_way() {
	local way what
	touch "$work/read"
	for what in address route link; do
		for way in - log/%d.log; do
			peer sink 7206 "$work/read" && cut || return 1
			begin $way patient 7206
			wait_for connect "$work/out" && loses $what && sleep 1.2 && mend && has_again $what ||
				return 1
			wait $program
			said "connect EINPROGRESS" "poll [4]" "sent 7" &&
				expect "$(last_of_peer '^got')" "got 7 False end" ||
				{ echo "$what $way"; return 1; }
			end_peer
		done
	done
	! grep -h "is the kernel's" "$work"/log/*
}
# Linux forgets such a SYN with its program; ours is waited for, but not for long, and is
# not sent again later.
exit_before_the_answer() {
	unanswered log/%d.log leaves took || return 1
	sleep 3
	said learned "sent 9" "took not long" || return 1
	have_come 1 || { cat "$work/peer"; return 1; }
	end_peer
}

if ! why=$(lab_is_possible); then
	tap_skip all_ends "$why"
	tap_end
	exit
fi
make_lab || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
for ns in $a $b; do
	ip netns exec $ns sh -c 'echo 3 >/proc/sys/net/ipv4/tcp_fastopen'
done
ip netns exec $b sysctl -qw net.ipv4.conf.v0.rp_filter=1
peer_mac=$(ip netns exec $b cat /sys/class/net/v0/address)
for case in ${CASES:-write_is_ended write_is_handled sendfile_is_ended sendfile_is_handled \
	exec_with_what_stays exec_that_fails_with_what_stays filter_with_what_stays \
	zerocopy_without_a_way_back \
	time_wait_at_exec time_wait_at_fork time_wait_handed_on time_wait_at_exit time_wait_at_exit_by_number \
	closed_while_it_goes_on many_that_are_closed \
	closed_before_exit closed_before_exec little_unsent_at_exit \
	exec_before_the_answer exec_before_the_neighbour wait_that_goes_back connect_waits_for_the_way exit_before_the_answer}; do
	tap_check "$case" "$case"
done
tap_end
