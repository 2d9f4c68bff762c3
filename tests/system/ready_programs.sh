#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Event loops that people use, over many UDP sockets, under the library on both ends of
# a cable: each socket answers, and next to nothing goes by the kernel.
. "${srcdir:-.}/tests/system/udp_lab.sh"

loop="/usr/bin/python3 $srcdir/tests/system/ready_loop.py"
CNT=150

in_b() {
	in_ns $b b.log timeout 60 "$@"
}
mark() {
	in_a=$(kernel_cnt $a) in_b=$(kernel_cnt $b)
}
both_carry() {
	is_accelerated $a "$in_a" "$1" && is_accelerated $b "$in_b" "$1"
}

# echoes SERVER...: it answers at all its ports, twice.
echoes() {
	start a.log "$@" || return 1
	mark
	expect "$( (in_b $loop reach 10.78.0.1 $CNT) 2>&1 | grep reached)" \
		"reached $((2 * CNT))" && both_carry $((2 * CNT))
}
python_epoll() { echoes $loop serve EpollSelector 10.78.0.1 $CNT; }
python_poll() { echoes $loop serve PollSelector 10.78.0.1 $CNT; }
python_select() { echoes $loop serve SelectSelector 10.78.0.1 $CNT; }
node_dgram() { echoes node "$srcdir/tests/system/ready_loop.js" 10.78.0.1 $CNT; }

# sockets FLAG: sockperf over a thousand sockets, by epoll, poll or select.
sockets() {
	seq 20000 20999 | sed 's/^/U:10.78.0.1:/' >"$work/feed"
	: >"$work/out"
	(in_ns $a a.log timeout 50 sockperf server -f "$work/feed" -F "$1") \
		>"$work/out" 2>&1 &
	server=$!
	wait_for 'v0 is driven by xdp' "$work/a.log" && wait_for 'using .* on socket' "$work/out" >/dev/null ||
		return 1
	mark
	(in_b sockperf ping-pong -f "$work/feed" -F "$1" -t 3) >"$work/sockperf" 2>&1
	grep -q 'dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' \
		"$work/sockperf" || { tail -5 "$work/sockperf"; return 1; }
	both_carry "$(grep -oE '\[Total Run\].*SentMessages=[0-9]+' "$work/sockperf" |
		grep -oE '[0-9]+$')"
}
sockperf_by_epoll() { sockets e; }
sockperf_by_poll() { sockets p; }
sockperf_by_select() { sockets s; }

# asks SERVER...: a name server for *.example, of which 100 names are asked.
asks() {
	(in_ns $a a.log "$@") >"$work/out" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		ip netns exec $a cat /proc/net/udp | grep -q '01004E0A:0035' && break
		sleep 0.05
	done
	seq 100 | sed 's/.*/host&.example A/' >"$work/names"
	mark
	(in_b dig +tries=1 +time=5 @10.78.0.1 -f "$work/names" +short) >"$work/answers" 2>&1
	expect "$(sort -u "$work/answers") $(wc -l <"$work/answers")" "10.9.8.7 100" ||
		{ tail -5 "$work/out"; return 1; }
	is_accelerated $a "$in_a" 100
}
dnsmasq_answers() {
	asks dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts \
		--user=root --pid-file= --port=53 --listen-address=10.78.0.1 \
		--bind-interfaces --address=/example/10.9.8.7
}
unbound_answers() {
	cat >"$work/unbound.conf" <<-CONF
		server:
			directory: "$work"
			chroot: ""
			username: ""
			pidfile: ""
			use-syslog: no
			do-daemonize: no
			interface: 10.78.0.1
			access-control: 10.78.0.0/24 allow
			local-zone: "example." redirect
			local-data: "example. A 10.9.8.7"
		remote-control:
			control-enable: no
	CONF
	asks unbound -d -c "$work/unbound.conf"
}

# Its sockets ask for time stamps: who carries them is not the question.
chrony_measures() {
	printf 'local stratum 8\nallow 10.78.0.0/24\nbindaddress 10.78.0.1\ncmdport 0\npidfile %s\ndriftfile %s\n' \
		"$work/a.pid" "$work/a.drift" >"$work/a.conf"
	: >"$work/out"
	(in_ns $a a.log chronyd -x -d -u root -f "$work/a.conf") >"$work/out" 2>&1 &
	server=$!
	wait_for 'chronyd version' "$work/out" || return 1
	(in_b chronyd -Q -t 20 -u root "pidfile $work/b.pid" 'cmdport 0' \
		'server 10.78.0.1 iburst') >"$work/chrony" 2>&1
	grep -qE 'System clock wrong by -?0\.[0-9]+ seconds' "$work/chrony" ||
		{ cat "$work/chrony" "$work/out"; return 1; }
}

run_cases python_epoll python_poll python_select node_dgram sockperf_by_epoll \
	sockperf_by_poll sockperf_by_select dnsmasq_answers unbound_answers chrony_measures
