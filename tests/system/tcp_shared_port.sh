#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Listeners that share a port (SO_REUSEPORT), and clients on the kernel of b. Those of one
# process are ours and have even shares; those of two processes are the kernel's, whoever
# came first.
#
# CASES="NAME...": only these.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

# serve LOG LISTENERS NAME: listeners on port 7000, each with its thread, answer with the
# name and their number.
serve() {
	local log=$1
	shift
	(in_ns $a "$log" timeout -k 5 60 python3 -c '
import socket, sys, threading
def serve(s, answer):
    while True:
        c = s.accept()[0]
        if c.recv(1):
            c.sendall(answer)
        c.close()
def listener():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("10.78.0.1", 7000))
    s.listen(256)
    return s
listeners = [listener() for _ in range(int(sys.argv[1]))]
for i, s in enumerate(listeners):
    threading.Thread(target=serve, args=(s, b"%s%d" % (sys.argv[2].encode(), i))).start()
print("ready", flush=True)' "$@") </dev/null >"$work/out.$2" 2>&1 &
	wait_for ready "$work/out.$2"
}
# are_ours CNT: so many listeners.
are_ours() {
	[ "$(grep -c "are accepted by us" "$work/a.log")" = "$1" ]
}

# ask_many CNT: who has answered, and how often.
ask_many() {
	(in_ns $b - timeout -k 5 60 python3 -c '
import collections, socket, sys
answers = collections.Counter()
for _ in range(int(sys.argv[1])):
    c = socket.create_connection(("10.78.0.1", 7000), 10)
    c.sendall(b"x")
    answers[c.recv(16).decode() or "nothing"] += 1
    c.close()
for name, cnt in sorted(answers.items()):
    print(name, cnt)' "$1") 2>&1
}
# has_answers MINIMUM NAME...: so often each of them, and nobody else.
has_answers() {
	local minimum=$1 name
	shift
	for name; do
		awk -v name="$name" -v minimum="$minimum" \
			'$1 == name && $2 >= minimum { ok = 1 } END { exit !ok }' "$work/answers" ||
			{ echo "too few of $name:"; cat "$work/answers"; return 1; }
	done
	[ "$(wc -l <"$work/answers")" = $# ] || { cat "$work/answers"; return 1; }
}

# Connections that the kernel of a has accepted.
accepted() {
	ip netns exec $a cat /proc/net/snmp |
		awk '/^Tcp:/ { n = $7 } END { print n }'
}

listeners_of_a_process() {
	local before
	serve a.log 4 t || return 1
	wait_until are_ours 4 || return 1
	before=$(accepted)
	ask_many 200 >"$work/answers"
	# 50 each, within five standard deviations
	has_answers 20 t0 t1 t2 t3 || return 1
	expect $(($(accepted) - before)) 0
}

# Until both have answered, which takes two looks.
both_answer() {
	ask_many 10 >"$work/answers"
	grep -q ^first "$work/answers" && grep -q ^second "$work/answers"
}
share_between_two() {
	local before
	wait_until both_answer || { cat "$work/answers"; return 1; }
	before=$(accepted)
	ask_many 100 >"$work/answers"
	# 33 each; that one of them has less than 10 is once in thirty million times
	has_answers 10 "$@" || return 1
	expect $(($(accepted) - before)) 100
}

other_process_comes_second() {
	serve a.log 2 first && wait_until are_ours 2 || return 1
	ask_many 10 >"$work/answers"
	serve b.log 1 second || return 1
	share_between_two first0 first1 second0 || return 1
	wait_for "is the kernel's: another process has the same port" "$work/a.log" &&
		wait_for "is the kernel's: another process has the same port" "$work/b.log"
}

kernels_process_comes_first() {
	serve - 1 first && serve b.log 2 second || return 1
	share_between_two first0 second0 second1 &&
		wait_for "is the kernel's: another process has the same port" "$work/b.log"
}

has_told_twice() {
	[ "$(grep -c accepted "$work/out")" = 2 ]
}
# The last word of one that is closed reaches its client, and the others go on.
one_of_a_process_is_closed() {
	: >"$work/out"
	(in_ns $a a.log timeout -k 5 60 python3 -c '
import select, socket
def listener():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("10.78.0.1", 7000))
    s.listen(256)
    s.setblocking(False)
    return s
def accept_all(s):
    cnt = 0
    try:
        while True:
            s.accept()[0].close()
            cnt += 1
    except BlockingIOError:
        return cnt
a, b = listener(), listener()
poll = select.poll()
poll.register(a)
poll.register(b)
poll.poll(0)
print("ready", flush=True)
input()
a.close()
print("accepted", accept_all(b), flush=True)
input()
print("accepted", accept_all(b), flush=True)') <"$work/orders" >"$work/out" 2>&1 &
	exec 7>"$work/orders"
	wait_for ready "$work/out" && wait_until are_ours 2 || return 1
	: >"$work/client"
	(in_ns $b - timeout -k 5 60 python3 -c '
import socket, sys
def connect():
    return socket.create_connection(("10.78.0.1", 7000), 10)
first = [connect() for _ in range(40)]
print("connected", flush=True)
reset = closed = 0
for c in first:
    try:
        closed += c.recv(1) == b""
    except ConnectionResetError:
        reset += 1
print("reset", reset, "closed", closed, flush=True)
second = [connect() for _ in range(20)]
print("again", flush=True)
for c in second:
    c.recv(1)') </dev/null >"$work/client" 2>&1 &
	wait_for connected "$work/client" && echo >&7
	wait_for again "$work/client" && echo >&7
	wait_until has_told_twice || return 1
	exec 7>&-
	set -- $(awk '/^reset/ { print $2, $4 }' "$work/client") \
		$(awk '/^accepted/ { print $2 }' "$work/out")
	# the first of the second ones may come while those of the first are accepted
	[ $# = 4 ] && [ "$1" -gt 0 ] && [ $(($1 + $2)) = 40 ] && [ "$3" -ge "$2" ] &&
		[ $(($3 + $4)) = $(($2 + 20)) ] || { echo "$*"; cat "$work/client" "$work/out"; return 1; }
}

mkfifo "$work/orders"
for case in ${CASES:-listeners_of_a_process other_process_comes_second \
	kernels_process_comes_first one_of_a_process_is_closed}; do
	why=$(lab_is_possible) || { tap_skip "$case" "$why"; continue; }
	make_lab || { tap_not_ok "$case" "cannot make the namespaces"; continue; }
	rm -f "$work"/*.log
	tap_check "$case" "$case"
	end_lab
done
tap_end
