#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the wire, the machine and its owner do to an accelerated program: it goes on,
# by the kernel if need be, and says why once.
. "${srcdir:-.}/tests/system/udp_lab.sh"

hostile="/usr/bin/python3 $srcdir/tests/system/udp_hostile.py"

mac_of_a() {
	ip -n $a -o link show v0 | sed -E 's/.*link\/ether ([^ ]*).*/\1/'
}
still_accelerated() {
	local in_a
	in_a=$(kernel_cnt $a)
	expect "$(ask - 500 64)" "right 500" && is_accelerated $a "$in_a" 500
}
# The line, once, and the program is served.
said_once() {
	wait_for "$1" "$work/a.log" || return 1
	expect "$(ask - 50 64)" "right 50" || return 1
	[ "$(grep -c "$1" "$work/a.log")" = 1 ] ||
		{ echo "said more than once:"; grep "$1" "$work/a.log"; return 1; }
}

# collected LOG FILE: the frames whose datagrams reach a program.
collected() {
	# a second address of its own, to be spoofed
	ip -n $a address add 10.79.0.1/24 dev v0 2>/dev/null
	start "$1" $hostile collect "$2" || return 1
	(in_ns $b - $hostile blast "$(mac_of_a)" "$seed") || return 1
	sleep 0.3
	(in_ns $b - socat -u STDIN UDP4:10.78.0.1:7000 <<<"" ) 2>/dev/null
	(printf end | in_ns $b - socat -u STDIN UDP4:10.78.0.1:7000)
	wait "$server"
	server=
}
one_blast() {
	local numbers
	collected - "$work/by_kernel" && collected a.log "$work/by_us" || return 1
	[ "$(wc -l <"$work/by_kernel")" -gt 100 ] ||
		{ wc -l "$work/by_kernel"; return 1; }
	diff "$work/by_kernel" "$work/by_us" >"$work/diff" && return
	echo "seed $seed"
	numbers=$(sed -nE 's/^[<>] ([0-9]+) .*/\1/p' "$work/diff")
	cat "$work/diff"
	$hostile name "$seed" $numbers
	return 1
}
# BLASTS times, each with a seed of its own; SEED repeats one.
lies_on_the_wire() {
	local i
	for i in $(seq "${BLASTS:-1}"); do
		seed=${SEED:-$RANDOM}
		in_three_tries one_blast || return 1
	done
}
lies_leave_the_program_accelerated() {
	start a.log $program echo 10.78.0.1 7000 &&
		(in_ns $b - $hostile blast "$(mac_of_a)" 1 >/dev/null) &&
		still_accelerated
}
flood_of_fragments() {
	start a.log $program echo 10.78.0.1 7000 &&
		(in_ns $b - $hostile fragments "$(mac_of_a)" 20000) &&
		still_accelerated
}

# A program that does not read for a second.
ring_full() {
	start a.log $hostile slow && (in_ns $b - $hostile flood 30000) || return 1
	sleep 1.2
	still_accelerated
}
few_frames() {
	export VMA_XDP_FRAMES=128
	ring_full
	local status=$?
	unset VMA_XDP_FRAMES
	return $status
}

# without CAPABILITIES COMMAND...
without() {
	local drop=$1
	shift
	preloaded "$library" exec ip netns exec $a capsh --drop="$drop" -- -c \
		'exec "$0" "$@"' "$@"
}
# start_without CAPABILITIES
start_without() {
	: >"$work/out"
	(
		export VMA_LOG_FILE=$work/a.log VMA_TRACELEVEL=${2:-info}
		without "$1" $program echo 10.78.0.1 7000
	) >"$work/out" 2>&1 &
	server=$!
	wait_for ready "$work/out"
}
memlock_too_small() {
	(
		ulimit -l 64
		start_without cap_ipc_lock,cap_sys_resource &&
			said_once 'v0 stays with the kernel: there is not enough memory'
		local status=$?
		end_server
		exit $status
	)
}
no_right_to_raw_sockets() {
	start_without cap_net_raw && said_once 'stays* with the kernel: the process may not'
}
no_right_to_drive_interfaces() {
	start_without cap_net_admin,cap_sys_admin &&
		said_once 'stays* with the kernel: the process may not'
}
no_right_to_load_programs() {
	start_without cap_bpf,cap_sys_admin,cap_perfmon &&
		said_once 'stays* with the kernel: the process may not'
}
not_root_at_all() {
	start_without all && said_once 'stays* with the kernel: the process may not'
}
# The first socket goes on by our queues, the second one is the kernel's.
rights_dropped_later() {
	local in_a
	start a.log $hostile dropping 65534 || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 30 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
for i in range(200):
    for port in 7000, 7001:
        s.sendto(b"%d" % i, ("10.78.0.1", port))
        assert s.recv(99) == b"%d" % i
print("right")') 2>&1)" right || return 1
	in_a=$(($(kernel_cnt $a) - in_a))
	[ $in_a -le 210 ] || { echo "$in_a of 400 by the kernel"; return 1; }
}

interface_vanishes_mid_send() {
	start a.log $hostile sending && wait_for well "$work/out" || return 1
	sleep 0.3
	ip -n $a link del v0
	wait_for 'v0 cannot be driven any more' "$work/a.log" || return 1
	wait_for unreachable "$work/out" || return 1
	: >"$work/out"
	ip link add v0 netns $a type veth peer name v0 netns $b
	ip -n $a address add 10.78.0.1/24 dev v0
	ip -n $b address add 10.78.0.2/24 dev v0
	ip -n $a link set v0 up
	ip -n $b link set v0 up
	wait_for well "$work/out"
}
link_goes_down_mid_send() {
	start a.log $hostile sending && wait_for well "$work/out" || return 1
	ip -n $a link set v0 down
	wait_for unreachable "$work/out" || return 1
	: >"$work/out"
	ip -n $a link set v0 up
	wait_for well "$work/out"
}

# Our program is taken off under us: the kernel has the traffic.
program_detached_under_us() {
	local link
	start a.log $program echo 10.78.0.1 7000 || return 1
	expect "$(ask - 20 64)" "right 20" || return 1
	link=$(cat /proc/$(pid_of_echo)/fdinfo/* 2>/dev/null |
		sed -nE 's/^link_id:\s*//p' | head -1)
	[ -n "$link" ] || { echo "no link"; return 1; }
	ip netns exec $a bpftool link detach id "$link" || return 1
	expect "$(ask - 50 64)" "right 50" &&
		wait_for 'v0 cannot be driven any more' "$work/a.log" &&
		expect "$(ask - 50 64)" "right 50"
}
pid_of_echo() {
	ip netns pids $a | head -1
}
program_is_not_replaced() {
	start a.log $program echo 10.78.0.1 7000 || return 1
	wait_for 'v0 is driven' "$work/a.log" || return 1
	! ip -n $a link set dev v0 xdpgeneric obj \
		"$builddir/tests/system/pass.bpf.o" sec xdp 2>/dev/null ||
		{ echo "ours was replaced"; return 1; }
	! ip -n $a link set dev v0 xdpgeneric off 2>/dev/null ||
		{ echo "ours was taken off"; return 1; }
	still_accelerated
}

four_queues() {
	local in_a
	start a.log $program echo 10.78.0.1 7000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 20 $hostile many 64) 2>&1)" "right 320" &&
		is_accelerated $a "$in_a" 320
}
four_queues_natively() {
	local status
	export VMA_XDP_MODE=native
	four_queues
	status=$?
	unset VMA_XDP_MODE
	return $status
}

# The table of rules begins with 4096, and cannot grow without rights.
many_sockets_without_rights() {
	local in_a
	start a.log $hostile dropping_early 65534 5000 || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 20 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
for port in range(10001, 15001):
    s.sendto(b"%d" % port, ("10.78.0.1", port))
    assert s.recv(99) == b"%d" % port
print("right")') 2>&1)" right && is_accelerated $a "$in_a" 5000
}

# queue_cnts CNT: by which v0 of a receives, and that of b sends.
queue_cnts() {
	ip netns exec $a ethtool -L v0 rx "$1" && ip netns exec $b ethtool -L v0 tx "$1"
}

# driven_anew: by all of its queues.
driven_anew() {
	local in_a
	wait_for 'v0 cannot be driven any more' "$work/a.log" || return 1
	expect "$(ask - 5 64 10.78.0.1 2)" "right 5"
	wait_until driven_times 2 || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 20 $hostile many 64) 2>&1)" "right 320" &&
		is_accelerated $a "$in_a" 320
}
driven_times() {
	[ "$(grep -c "v0 is driven by xdp" "$work/a.log")" -ge "$1" ]
}

queues_added_while_it_runs() {
	queue_cnts 1 && start a.log $program echo 10.78.0.1 7000 || return 1
	expect "$(ask - 20 64)" "right 20" && queue_cnts 4 && driven_anew
}

# under_talk COMMAND...: by which v0 has to be driven anew. A connection that was there goes
# on, and so do those that come meanwhile.
under_talk() {
	local talk status
	: >"$work/talk"
	(in_ns $b - timeout 30 $hostile tcp_talk 10.78.0.1 7000) >"$work/talk" 2>&1 &
	talk=$!
	wait_for '^begun' "$work/talk" && wait_for 'v0 is driven by xdp' "$work/a.log" &&
		"$@" && wait_for 'v0 cannot be driven any more' "$work/a.log" &&
		wait_until driven_times 2 && wait_for '^right' "$work/talk"
	status=$?
	kill $talk 2>/dev/null
	wait $talk 2>/dev/null
	return $status
}
queues_added_under_tcp() {
	queue_cnts 1 && start a.log $hostile tcp_echo 10.78.0.1 7000 &&
		under_talk queue_cnts 4
}

# away_and_back: v0 of a visits another namespace, which unbinds its queues, while the
# server is stopped, who then finds nothing changed.
away_and_back() {
	local other pid status
	pid=$(pid_of_echo)
	unshare -n sleep 60 &
	other=$!
	wait_until is_elsewhere $other && kill -STOP "$pid" &&
		ip -n $a link set v0 netns $other &&
		nsenter -t $other -n ip link set v0 netns $a &&
		ip -n $a address add 10.78.0.1/24 dev v0 && ip -n $a link set v0 up
	status=$?
	kill -CONT "$pid"
	kill $other
	wait $other 2>/dev/null
	return $status
}
# is_elsewhere PID: in another network namespace than we.
is_elsewhere() {
	[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/$$/ns/net)" ]
}

interface_was_away() {
	start a.log $program echo 10.78.0.1 7000 && expect "$(ask - 20 64)" "right 20" &&
		away_and_back && wait_until driven_times 2 && still_accelerated
}
interface_was_away_under_tcp() {
	start a.log $hostile tcp_echo 10.78.0.1 7000 && under_talk away_and_back
}

# What a shell of another namespace sees in /sys.
queues_that_sys_does_not_show() {
	local in_a
	(export VMA_LOG_FILE=$work/a.log VMA_TRACELEVEL=debug
		preloaded "$library" exec nsenter --net="/run/netns/$a" \
			$program echo 10.78.0.1 7000) >"$work/out" 2>&1 &
	server=$!
	wait_for ready "$work/out" || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 20 $hostile many 64) 2>&1)" "right 320" &&
		is_accelerated $a "$in_a" 320
}

too_many_queues() {
	LAB_VETH="numrxqueues 65 numtxqueues 65" make_lab &&
		start a.log $program echo 10.78.0.1 7000 &&
		expect "$(ask - 20 64)" "right 20" &&
		wait_for 'drives no more than 64 receive queues' "$work/a.log"
}

# By one of 48 queues: most of what each has for certain is there for the next burst.
bursts_by_one_of_many_queues() {
	local cnts="24 8 10" in_a
	LAB_VETH="numrxqueues 48 numtxqueues 48" make_lab &&
		start a.log $hostile count || return 1
	wait_for 'v0 is driven by xdp' "$work/a.log" || return 1
	in_a=$(kernel_cnt $a)
	cnts="$cnts $cnts $cnts $cnts"
	expect "$( (in_ns $b - timeout 20 $hostile bursts $cnts) 2>&1)" "lost 0" &&
		is_accelerated $a "$in_a" 168
}

# Fewer frames than would give each queue one: it has eight, and senders have some.
many_queues_of_few_frames() {
	local in_a
	export VMA_XDP_FRAMES=128
	LAB_VETH="numrxqueues 48 numtxqueues 48" make_lab &&
		start a.log $program echo 10.78.0.1 7000
	local status=$?
	unset VMA_XDP_FRAMES
	[ $status = 0 ] && in_a=$(kernel_cnt $a) && expect "$(ask - 200 64)" "right 200" &&
		is_accelerated $a "$in_a" 200
}

# Its driver says nothing of queues. The frames come by those of v0, whose address it has.
queues_of_a_macvlan() {
	local in_a
	# or v0 answers for the address, too, and has the frames
	ip netns exec $a sysctl -qw net.ipv4.conf.all.arp_ignore=1 &&
		ip -n $a link add link v0 name m0 numrxqueues 4 type macvlan &&
		ip -n $a address flush dev v0 &&
		ip -n $a address add 10.78.0.1/24 dev m0 && ip -n $a link set m0 up &&
		ip -n $b neigh flush dev v0 &&
		ip netns exec $b ping -q -c 1 -W 2 10.78.0.1 >/dev/null &&
		start a.log $program echo 10.78.0.1 7000 || return 1
	wait_for 'm0 is driven by xdp' "$work/a.log" || return 1
	in_a=$(kernel_cnt $a)
	expect "$( (in_ns $b - timeout 20 $hostile many 64) 2>&1)" "right 320" &&
		is_accelerated $a "$in_a" 320
}

cases="lies_on_the_wire lies_leave_the_program_accelerated flood_of_fragments
ring_full few_frames memlock_too_small no_right_to_raw_sockets
no_right_to_drive_interfaces no_right_to_load_programs not_root_at_all
rights_dropped_later many_sockets_without_rights interface_vanishes_mid_send link_goes_down_mid_send
program_detached_under_us program_is_not_replaced four_queues four_queues_natively
queues_added_while_it_runs queues_added_under_tcp interface_was_away
interface_was_away_under_tcp queues_that_sys_does_not_show
too_many_queues many_queues_of_few_frames bursts_by_one_of_many_queues queues_of_a_macvlan"
LAB_VETH="numrxqueues 4 numtxqueues 4"
run_cases $cases
