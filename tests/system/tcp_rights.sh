#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that give up their rights with TCP connections of ours, or before their first
# socket, over AF_XDP to a peer on the kernel: a helper keeps the rights by which connections
# go back to the kernel, and interfaces are opened (tools/vma_way_back). What the program says is what it says on the kernel, but for the
# helper.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

rights=$srcdir/tests/system/tcp_rights.py

# run LOG CASE [VARIABLE=VALUE...]: what it says is in out, and its log in LOG.
run() {
	local log=$1 case=$2
	shift 2
	rm -f "$work/a.log"
	(in_ns $a "$log" timeout -k 5 60 env "$@" /usr/bin/python3 "$rights" "$case" \
		10.78.0.2 7000) </dev/null >"$work/out" 2>"$work/err"
}

# says LINE...: the program has said exactly this.
says() {
	printf '%s\n' "$@" | diff - "$work/out" || { cat "$work/err"; return 1; }
}

# At most one of twenty segments was the kernel's since mark_carriers.
is_ours() {
	local theirs=$(($(segments $a) - segments_before[$a]))
	local all=$(($(frames $a) - frames_before[$a]))
	[ $((theirs * 20)) -le $((all + 40)) ] ||
		{ echo "the kernel had $theirs of $all segments"; return 1; }
}

connections_stay_ours() {
	mark_carriers
	run a.log goes_on
	says "before 10" "without rights 400 400" && is_ours
}

# With VMA_WAY_BACK=self they go back before.
without_a_helper_they_go_back() {
	run a.log goes_on VMA_WAY_BACK=self
	says "before 10" "without rights 400 400" &&
		grep -q "is the kernel's: the process has no right" "$work/a.log" &&
		! grep -q 'vma_way_back' "$work/a.log"
}

child_has_one_given_back() {
	run a.log comes_back
	says "without rights 10" "child 10" "child ended 0" "parent 10" || return 1
	grep -q "is the kernel's: a child process has it" "$work/a.log" ||
		{ grep -v '\[VMA_' "$work/a.log"; return 1; }
}

helper_is_not_noticed() {
	local pid
	run a.log goes_unnoticed
	says "descriptors True" "no child" "helpers 1" "rights True 0 2" \
		"of its own not to be seen" "session True" "echo 10 []" || return 1
	pid=$(awk '$1 == "helper" { print $2 }' "$work/err")
	for _ in $(seq 250); do
		[ -e "/proc/$pid" ] || return 0
		sleep 0.02
	done
	echo "process $pid is still there"
	return 1
}

helper_is_in_no_directory_of_the_program() {
	run a.log leaves_its_directory VMA_WAY_BACK=helper
	says "helper is in /" "echo 10"
}

helper_that_is_killed_costs_no_connection() {
	run a.log killed_helper
	says "older 200" "later 10" "asynchronous ENOTSUP" "its port EADDRINUSE" "helpers 1" "again 10 10" || return 1
	grep -q 'the helper that gives connections back to the kernel does not answer' \
		"$work/a.log" || { grep -v '\[VMA_' "$work/a.log"; return 1; }
}

# VMA_WAY_BACK=helper: it is there from the first connection on.
rights_that_go_unseen() {
	run a.log unseen VMA_WAY_BACK=helper
	says "helpers 1" "rights none" "without rights 10 10" "child 10 10" \
		"child ended 0" "parent 10 10" || return 1
	[ "$(grep -c "is the kernel's: a child process has it" "$work/a.log")" = 2 ] ||
		{ grep -v '\[VMA_' "$work/a.log"; return 1; }
}

# Each repair is its, though the program has the right as well.
helper_does_it_all() {
	rm -f "$work"/trace.*
	(in_ns $a a.log timeout -k 5 60 env VMA_WAY_BACK=helper strace -ff -o "$work/trace" \
		-e trace=setsockopt,execve /usr/bin/python3 "$rights" comes_back_with_rights \
		10.78.0.2 7000) </dev/null >"$work/out" 2>"$work/err"
	says "child 10" "child ended 0" "parent 10" || return 1
	grep -l TCP_REPAIR, "$work"/trace.* >"$work/switches"
	[ -s "$work/switches" ] && ! xargs grep -L '"vma: way back for' <"$work/switches" | grep .
}

helper_that_is_killed_is_replaced() {
	run a.log another_helper VMA_WAY_BACK=helper
	says "child 10" "helpers 1" "later 10 10"
}

helper_waits_for_an_interface() {
	run a.log no_helper_wanted VMA_WAY_BACK=helper
	says "helpers 0"
}

# A process that adopts orphans has none, and says once what that means.
no_helper_no_acceleration() {
	run a.log reaper VMA_WAY_BACK=helper
	says "echo 10 10" "helpers 0" || return 1
	[ "$(grep -c "TCP sockets are the kernel's, since VMA_WAY_BACK=helper" "$work/a.log")" = 1 ] ||
		{ grep -v '\[VMA_' "$work/a.log"; return 1; }
}

# VMA_WAY_BACK=off: whoever has which right, no connection goes back.
nothing_goes_back() {
	mark_carriers
	run a.log goes_on VMA_WAY_BACK=off
	says "before 10" "without rights 400 400" && is_ours || return 1
	run a.log stays VMA_WAY_BACK=off
	says "asynchronous ENOTSUP" "handed on ENOTSUP" "other end b'y'" \
		"child EIO EIO" "parent 10" "helpers 0" || return 1
	[ "$(grep -c "VMA_WAY_BACK=off keeps a connection" "$work/a.log")" = 1 ] ||
		{ grep -v '\[VMA_' "$work/a.log"; return 1; }
}

# A server that is ended by a signal, with much that it has just written.
ends_with_all_delivered() {
	local servers="/usr/bin/python3 $srcdir/tests/system/tcp_servers.py" pid
	rm -f "$work/a.log"
	(in_ns $a a.log env VMA_WAY_BACK=off $servers serve writer 10.78.0.1 7021) \
		>"$work/words" 2>"$work/err" &
	pid=$!
	wait_until ip netns exec $a grep -q ':1B6D 0' /proc/net/tcp || return 1
	(in_ns $b - timeout 60 $servers count 10.78.0.1 7021 4) >"$work/out" 2>&1 &
	wait_until have_written || return 1
	kill -TERM $pid
	wait $pid
	wait $!
	says "[('good', 4)]"
}
have_written() {
	[ "$(grep -c writing "$work/words")" = 4 ]
}

# As long as VMA_EXIT_LINGER_MSEC allows; the peer hears that something is missing.
end_that_cannot_be_delivered() {
	mkfifo "$work/told" 2>/dev/null
	: >"$work/late"
	(in_ns $b - /usr/bin/python3 "$rights" reads_late 10.78.0.2 7001) \
		<>"$work/told" >"$work/late" 2>&1 &
	wait_for ready "$work/late" || return 1
	rm -f "$work/a.log"
	(in_ns $a a.log timeout -k 5 60 env VMA_WAY_BACK=off VMA_EXIT_LINGER_MSEC=500 \
		/usr/bin/python3 "$rights" ends_full 10.78.0.2 7001) </dev/null >"$work/out" 2>"$work/err"
	wait_for took "$work/out" || return 1
	says "full True" "took as long as allowed" || return 1
	echo >"$work/told"
	wait $!
	wait_for ECONNRESET "$work/late"
}

# Packets of UDP and TCP that the kernel has received in the namespace of the program.
by_kernel() {
	ip netns exec $a awk '/^Udp: [0-9]/ { n += $2 } /^Tcp: [0-9]/ { n += $11 } END { print n }' \
		/proc/net/snmp
}
# At most so many of what has come since mark_all.
mark_all() {
	kernel_before=$(by_kernel)
}
at_most_by_kernel() {
	local cnt=$(($(by_kernel) - kernel_before))
	[ $cnt -le "$1" ] || { echo "the kernel had $cnt"; grep -v '\[VMA_' "$work/a.log"; return 1; }
}
at_least_by_kernel() {
	local cnt=$(($(by_kernel) - kernel_before))
	[ $cnt -ge "$1" ] || { echo "the kernel had $cnt"; return 1; }
}

# Rights that are gone before the first socket: the helper opens the interface. UDP, a
# connection either way, and one that goes back, as on the kernel.
gone_before_the_first_socket() {
	local how
	set -- "rights none" "datagrams 400" "echo 400" "accepted 400" "child 10" "child ended 0" "parent 10"
	run - rights_first DROP=setuid OWN=10.78.0.1
	says "$@" || return 1
	for how in setuid capset number; do
		mark_all
		run a.log rights_first DROP=$how OWN=10.78.0.1
		says "$@" && at_most_by_kernel 150 || { echo "by $how"; return 1; }
	done
}

# The library's own files are gone, too: the helper is there, and what opens interfaces.
root_changed_before_the_first_socket() {
	local how
	mkdir -p "$work/nothing"
	set -- "files []" "datagrams 400" "echo 400" "accepted 400" "child 10" "child ended 0" "parent 10"
	run - root_first CHANGE=call NOTHING="$work/nothing" OWN=10.78.0.1
	says "$@" || return 1
	for how in call number; do
		mark_all
		run a.log root_first CHANGE=$how NOTHING="$work/nothing" OWN=10.78.0.1
		says "$@" && at_most_by_kernel 150 || { echo "by $how"; return 1; }
	done
}

# Nobody without rights waits for the kernel to find a neighbour; the kernel does it when it
# answers by itself. Who calls a second time is known.
strangers_are_answered() {
	local mac
	mac=$(ip netns exec $a cat /sys/class/net/v0/address)
	ip -n $b neighbour replace 10.78.0.1 lladdr "$mac" dev v0 nud permanent &&
		ip -n $a neighbour flush all || return 1
	: >"$work/out"
	run a.log serves_strangers DROP=setuid OWN=10.78.0.1 &
	wait_for listening "$work/out" && wait_for 'are accepted by us' "$work/a.log" || return 1
	mark_carriers
	(in_ns $b - timeout 20 /usr/bin/python3 "$rights" calls 10.78.0.1 7000) ||
		{ cat "$work/out"; return 1; }
	wait $!
	ip -n $b neighbour del 10.78.0.1 dev v0
	says listening "answered 1" "answered 400" && is_ours
}

# The kernel finds out for a process without rights, too, that a neighbour is elsewhere now.
neighbour_that_moves() {
	local echo before mac sent status=0
	mac=$(ip netns exec $b cat /sys/class/net/v0/address)
	local quick=(net.ipv4.neigh.v0.delay_first_probe_time=1
		net.ipv4.neigh.v0.retrans_time_ms=100)
	before=$(ip netns exec $a sysctl "${quick[@]%=*}" | tr -d ' ')
	ip netns exec $a sysctl -qw "${quick[@]}" || return 1
	(in_ns $b - /usr/bin/python3 "$rights" sends_back 10.78.0.2 7000) >"$work/back" &
	echo=$!
	rm -f "$work/moved"
	# for somebody without rights
	chmod a+x "$work"
	: >"$work/out"
	wait_for ready "$work/back"
	run a.log sends_on DROP=setuid MOVED="$work/moved" &
	wait_for heard "$work/out" && moves || status=1
	mark_all
	sent=$(sent_by_kernel)
	# if it has found out already, on a slow machine
	ip -n $a neighbour change 10.78.0.2 dev v0 nud stale
	: >"$work/moved"
	wait $!
	kill $echo
	wait $echo
	says "heard True" "moved True" "not heard False" "heard again True" "goes on 200" &&
		at_most_by_kernel 20 || status=1
	sent=$(($(sent_by_kernel) - sent))
	[ $sent -le 20 ] || { echo "the kernel has sent $sent"; status=1; }
	ip netns exec $a sysctl -qw $before
	ip -n $b link set v0 address "$mac"
	return $status
}

sent_by_kernel() {
	ip netns exec $a awk '/^Udp: [0-9]/ { print $5 }' /proc/net/snmp
}

# The other end has another hardware address, and the kernel begins to doubt the old one.
moves() {
	ip -n $b neighbour replace 10.78.0.1 dev v0 nud permanent \
		lladdr "$(ip netns exec $a cat /sys/class/net/v0/address)" &&
		ip -n $b link set v0 address 02:00:00:00:77:01 &&
		ip -n $a neighbour change 10.78.0.2 dev v0 nud stale
}

# queue_with VARIABLE=VALUE...: a server that has not accepted when its rights go.
queue_with() {
	: >"$work/out"
	run a.log queue_of_one OWN=10.78.0.1 "$@" &
	wait_for listening "$work/out" && wait_for 'are accepted by us' "$work/a.log" || return 1
	(in_ns $b - timeout 20 /usr/bin/python3 "$rights" calls_once 10.78.0.1 7000) ||
		{ cat "$work/out"; return 1; }
	wait $!
}

# Who waits to be accepted then stays with this process.
queue_without_a_helper() {
	queue_with WHEN=killed && says listening "queued True" "parent 400" "ended 0" &&
		grep -q ': 0 of 1 connections that nobody has accepted' "$work/a.log"
}

# Where the process finds no file of the kernel's, the helper has them.
queue_of_another_root() {
	mkdir -p "$work/nothing"
	queue_with WHEN=root NOTHING="$work/nothing" &&
		says listening "queued True" "child 400" "ended 0" &&
		grep -q ': 1 of 1 connections that nobody has accepted' "$work/a.log"
}

# Without a helper, the interface stays the kernel's, and the log says why.
without_a_helper_nothing_is_opened() {
	local way
	for way in self off; do
		mark_all
		run a.log rights_first DROP=setuid OWN=10.78.0.1 VMA_WAY_BACK=$way
		says "rights none" "datagrams 400" "echo 400" "accepted 400" "child 10" \
			"child ended 0" "parent 10" && at_least_by_kernel 1000 || return 1
		[ "$(grep -c 'v0 stays with the kernel: the process may not drive' "$work/a.log")" = 1 ] ||
			{ grep -v '\[VMA_' "$work/a.log"; return 1; }
	done
}

# A program that is started without rights has never had any.
started_without_rights() {
	mark_all
	rm -f "$work/a.log"
	(in_ns $a a.log timeout -k 5 60 env DROP=setuid OWN=10.78.0.1 NOBODY=65534 setpriv --reuid 65534 \
		--regid 65534 --clear-groups --inh-caps=-all /usr/bin/python3 "$rights" \
		worker 10.78.0.2 7000) </dev/null >"$work/out" 2>"$work/err"
	says "child 400" "helpers 0" "helpers 0" && at_least_by_kernel 400
}

# A helper that is killed takes no interface with it. Without it none is opened.
helper_of_interfaces_is_killed() {
	mark_all
	run a.log dropped_and_killed WHEN=open
	says "datagrams 10" "datagrams 400" && at_most_by_kernel 40 || return 1
	mark_all
	run a.log dropped_and_killed WHEN=before
	says "datagrams 400" && at_least_by_kernel 400 || return 1
	[ "$(grep -c 'v0 stays with the kernel: the process may not drive' "$work/a.log")" = 1 ] &&
		[ "$(grep -c 'helper that gives.*new TCP sockets and interfaces are the kernel' "$work/a.log")" = 1 ] ||
		{ grep -v '\[VMA_' "$work/a.log"; return 1; }
}

# Whom a process without rights has forked has its helper, and opens what that could.
child_of_one_without_rights() {
	mark_all
	run a.log forked_later
	says "child 100" "parent 100" && at_most_by_kernel 20
}

# alike CASE[:VARIABLE=VALUE] LINE...: the same on the kernel, and then under the library. A child may go on
# when the program has ended.
has_lines() {
	[ "$(wc -l <"$work/out")" -ge "$1" ]
}
alike() {
	local case=${1%%:*} log set=
	[ "$case" = "$1" ] || set=${1#*:}
	shift
	for log in - a.log; do
		run $log "$case" $set
		wait_until has_lines $# && says "$@" || { cat "$work/err"; return 1; }
	done
}
# went_back CNT REASON: so many connections are the kernel's for that. A child that may not
# write the log file says so elsewhere.
went_back() {
	local cnt
	cnt=$(cat "$work/a.log" "$work/err" | grep -c "is the kernel's: $2")
	[ "$cnt" = "$1" ] ||
		{ echo "$cnt went back"; grep -hv '\[VMA_' "$work/a.log" "$work/err"; return 1; }
}

childs_connection_goes_back() {
	local how words=("child 400" "grandchild 10" "ended 0 child 10"
		"descriptors True others None signals 1" "ended 0 others None")
	for how in fork _Fork; do
		alike generations:HOW=$how "${words[@]}" && went_back 1 "a child process has it" ||
			{ echo "by $how"; return 1; }
	done
	# which an interpreter survives under the library alone
	run a.log generations HOW=vfork
	says "${words[@]}" && went_back 1 "a child process has it"
}

childs_connection_is_handed_on() {
	alike becomes_another "child 10" "receiver 10" "after exec b'after'" "ended 0" &&
		went_back 2 ".*handed it on"
}

child_ends_with_much() {
	local way
	for way in - a.log; do
		: >"$work/received"
		(in_ns $b - env SIDE=peer /usr/bin/python3 "$rights" ends_with_much 10.78.0.2 7000) \
			>"$work/received" 2>&1 &
		wait_for ready "$work/received" && run $way ends_with_much && says "ended 0" || return 1
		wait $!
		grep -qx "received 3000000" "$work/received" || { cat "$work/received"; return 1; }
	done
	went_back 1 "the process ends"
}

# Its child closes all descriptors that it does not know, too.
parent_ends_first() {
	alike survivors "child 400" "grandchild 10" "ended 0" "child 10" &&
		went_back 1 "a child process has it"
}

parent_is_killed() {
	run a.log parent_is_killed
	wait_until has_lines 2 &&
		says "recv ECONNABORTED ENOTCONN" "again 10"
}

child_whose_helper_is_killed() {
	mark_carriers
	run a.log child_without_helper
	says "child 10" "asynchronous ENOTSUP" "child 200" && is_ours
}

many_children_ask_at_once() {
	run a.log crowd
	says "children 900" "helpers 1 True"
}

# Who inherits a helper needs none of his own, but for another namespace.
children_that_drop_later() {
	run a.log drops_later VMA_WAY_BACK=helper
	says "beside 0 1" "elsewhere 1 1" "ended 0 0 echo 10"
}

# A program that makes a container: its first child is that of the namespace, not the helper.
children_of_another_namespace() {
	run a.log children_elsewhere
	says "helpers 0" "child 1" "ended 0 echo 10" &&
		grep -q "TCP sockets are the kernel's once the program" "$work/a.log"
}

# Descriptors of the library that the program closes past it are not written to.
closed_past_the_library() {
	run a.log closes_unseen
	says "asynchronous ENOTSUP" "told nothing" "echo 10"
}

# A child that gives up its rights has a helper of its own, and its parent none.
workers_have_their_own() {
	mark_all
	run a.log worker
	says "child 400" "helpers 1" "helpers 0" && at_most_by_kernel 100
}

# Filters of packets cannot be seen without rights; who wants them respected has the kernel.
filters_that_cannot_be_seen() {
	mark_all
	run a.log worker VMA_RESPECT_FIREWALL=1
	says "child 400" "helpers 1" "helpers 0" && at_least_by_kernel 400
}

# A program whose sockets are the kernel's by a rule needs no helper.
no_helper_by_rules() {
	printf '%s\n' "application-id * *" "use os tcp_server *:*" "use os tcp_client *:*" \
		"use os udp_receiver *:*" "use os udp_sender *:*" "use os udp_connect *:*" \
		>"$work/rules"
	run a.log worker VMA_CONFIG_FILE="$work/rules"
	says "child 400" "helpers 0" "helpers 0"
}

# Interfaces of another network namespace are not what it keeps the rights for.
another_namespace() {
	run a.log other_namespace
	says "sent 1" && grep -q 'v0 stays with the kernel: the process may not drive' "$work/a.log" ||
		{ grep -v '\[VMA_' "$work/a.log"; return 1; }
}

# It does what the list says, for whoever asks, and nothing by other words.
helper_is_strict() {
	run - strict HELPER="$builddir/tools/vma_way_back/vma_way_back"
	says "repair 0 0" "end of repair 0 0" "of no TCP socket ENOPROTOOPT 0" "of two EINVAL 0" \
		"of none EINVAL 0" "another value EINVAL 0" "AF_XDP 0 1" "with more EINVAL 0" \
		"with a descriptor EINVAL 0" "with six EINVAL 0" "too long EINVAL 0" \
		"too short EINVAL 0" "ICMP 0 1" "no such thing EINVAL 0" "neighbour EINVAL 0" "filter 0 1" \
		"another channel EINVAL 0" "no interface EINVAL 0" \
		"no such sight EINVAL 0" "too many rules EINVAL 0" "no such flag EINVAL 0" \
		"steering 0 5" "another program 0" "attached -22 0" "no interface True" \
		"its own 0 1" "hand-over 0 2 1" "it is gone True" "nowhere EINVAL 0" \
		"no interface ENODEV 0" "with a program EINVAL 0" "with flags EINVAL 0" \
		"nothing is left True"
}

# Another process of the program comes in by the entry, and takes part.
helper_serves_many() {
	run - entry HELPER="$builddir/tools/vma_way_back/vma_way_back"
	says "joined True" "AF_XDP 0 1" "no packets b''" "looked for True" "looked for True" \
		"not looked for False" "goes on 0 1 False" \
		"keeps its channels True" "deaf True" "others 0 1" "keeps its channels True" \
		"for the last one 0 1" "ended 0"
}

helper_takes_any_request() {
	run - any_request HELPER="$builddir/tools/vma_way_back/vma_way_back"
	says "goes on 0 1 None" "nothing is left True"
}

# Started by hand it says what it is.
helper_alone_says_what_it_is() {
	local status
	"$builddir/tools/vma_way_back/vma_way_back" </dev/null >"$work/out" 2>&1
	status=$?
	[ $status = 2 ] && grep -q '^vma_way_back: libvma starts this program' "$work/out" ||
		{ echo "status $status"; cat "$work/out"; return 1; }
}

if ! why=$(lab_is_possible); then
	tap_skip all_cases "$why"
	tap_end
	exit
fi
make_lab || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
(in_ns $b - "$builddir/tests/system/tcp_peer" serve 10.78.0.2 7000) >"$work/peer" 2>&1 &
wait_for ready "$work/peer"
(in_ns $b - env OWN=10.78.0.1 /usr/bin/python3 "$rights" mate 10.78.0.2 7000) >"$work/mate" 2>&1 &
wait_for ready "$work/mate"
for case in ${CASES:-connections_stay_ours without_a_helper_they_go_back \
	child_has_one_given_back helper_is_not_noticed helper_is_in_no_directory_of_the_program \
	helper_that_is_killed_costs_no_connection rights_that_go_unseen helper_does_it_all \
	helper_that_is_killed_is_replaced helper_waits_for_an_interface \
	no_helper_no_acceleration nothing_goes_back ends_with_all_delivered \
	end_that_cannot_be_delivered gone_before_the_first_socket \
	root_changed_before_the_first_socket strangers_are_answered neighbour_that_moves \
	queue_without_a_helper queue_of_another_root \
	without_a_helper_nothing_is_opened started_without_rights \
	helper_of_interfaces_is_killed child_of_one_without_rights childs_connection_goes_back \
	childs_connection_is_handed_on child_ends_with_much parent_ends_first parent_is_killed \
	child_whose_helper_is_killed many_children_ask_at_once children_that_drop_later \
	children_of_another_namespace closed_past_the_library \
	workers_have_their_own \
	filters_that_cannot_be_seen no_helper_by_rules another_namespace helper_is_strict \
	helper_serves_many helper_takes_any_request helper_alone_says_what_it_is}; do
	tap_check "$case" "$case"
done
tap_end
