#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Fast Open between two namespaces: with both ends on the kernel, then with the library on
# the server's side, on the client's, and on both. What both ends say must be the same; who
# has carried the segments is counted.
#
# CASES="NAME...": only these.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

# At the end of a client the kernel takes over what waits, as in tcp_xdp.sh.
last_words_data_with_the_syn=6
last_words_data_after_connect=6
# case                  carrier
carriers='
data_with_the_syn       ours
data_after_connect      ours
cookie_of_the_kernel    mixed
back_before_the_answer  mixed
'

cat >"$work/server.py" <<'END'
import socket, sys
TCP_INFO_OPTIONS, SYN_DATA = 5, 32
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('10.78.0.1', 7100))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
s.listen(16)
s.settimeout(0.05)
try:
    s.accept()
except TimeoutError:
    print('ready', flush=True)
s.settimeout(20)
for _ in range(int(sys.argv[1])):
    c, _ = s.accept()
    c.settimeout(20)
    got = c.recv(100)
    c.sendall(b'answer')
    while more := c.recv(100):
        got += more
    info = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    c.close()
    print(got, 'by SYN' if info[TCP_INFO_OPTIONS] & SYN_DATA else 'later', flush=True)
END
cat >"$work/client.py" <<'END'
import errno, select, socket, sys
TCP_FASTOPEN_CONNECT, SO_PEEK_OFF, MSG_FASTOPEN = 30, 42, 0x20000000
there = ('10.78.0.1', 7100)
def end(c):
    c.settimeout(20)
    answer = c.recv(100)
    c.shutdown(socket.SHUT_WR)
    print(answer, c.recv(1), flush=True)
for what in sys.argv[1:]:
    c = socket.socket()
    if what == 'sendto':
        print(c.sendto(b'at once', MSG_FASTOPEN, there))
    elif what == 'connect':
        c.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
        print(c.connect(there), c.send(b'at first'))
    elif what == 'back':
        c.setblocking(False)
        print(c.sendto(b'only once', MSG_FASTOPEN, there))
        c.setsockopt(socket.SOL_SOCKET, SO_PEEK_OFF, 0)
        select.select([], [c], [], 20)
        c.send(b' and more')
    end(c)
END

# serve OUTPUT LOG CONNECTIONS
serve() {
	(in_ns $a "$2" timeout -k 5 60 python3 "$work/server.py" "$3") \
		</dev/null >"$work/$1" 2>&1 &
	server_job=$!
	wait_for ready "$work/$1"
}
# ask OUTPUT LOG WHAT...
ask() {
	local output=$work/$1 log=$2
	shift 2
	(in_ns $b "$log" timeout -k 5 60 python3 "$work/client.py" "$@") \
		</dev/null >>"$output" 2>&1 || echo "exit $?" >>"$output"
}

# talk OUTPUT CASE SERVER_LOG CLIENT_LOG WHAT...: the first connection brings the cookie.
talk() {
	local output=$1 case=$2 server=$3 client=$4
	shift 4
	# cookies that an earlier one has left are the kernel's
	ip netns exec $b ip tcp_metrics flush all >/dev/null 2>&1
	serve "$output.server" "$server" $#
	mark_carriers
	: >"$work/$output"
	ask "$output" "$client" "$@"
	[ "$server" = - ] || check_carrier "$case" $a >>"$work/$output"
	[ "$client" = - ] || check_carrier "$case" $b >>"$work/$output"
	wait "$server_job" || echo "server: exit $?" >>"$work/$output"
	# the first may have come either way
	sed 1,2d "$work/$output.server" >>"$work/$output"
}

# talk_by_syn ARGUMENTS OF TALK: a SYN that a server answers after a second only is sent again
# without its data; then they talk once more.
talk_by_syn() {
	local try
	for try in 1 2 3; do
		talk "$@"
		grep -q "later$" "$work/$1" || break
	done
}

# A client that has its cookie of the kernel's listener, and comes to ours.
cookie_of_the_kernel() {
	ip netns exec $b ip tcp_metrics flush all >/dev/null 2>&1
	: >"$work/out"
	serve first.server - 1
	ask out - sendto
	wait "$server_job"
	serve second.server a.log 1
	mark_carriers
	ask out - sendto
	wait "$server_job"
	grep -q "by SYN" "$work/second.server" &&
		[ "$(grep -c "b'answer' b''" "$work/out")" = 2 ] ||
		{ cat "$work/out" "$work"/*.server; return 1; }
	check_carrier data_with_the_syn $a
}

if ! why=$(lab_is_possible); then
	tap_skip all "$why"
	tap_end
	exit
fi
make_lab || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
for ns in $a $b; do
	ip netns exec $ns sh -c 'echo 3 >/proc/sys/net/ipv4/tcp_fastopen'
done
for case in ${CASES:-$(cases)}; do
	declare -F "$case" >/dev/null && tap_check "$case" "$case" && continue
	case $case in
	data_with_the_syn) set -- sendto sendto sendto ;;
	data_after_connect) set -- connect connect connect ;;
	back_before_the_answer) set -- sendto back sendto back ;;
	esac
	talk_by_syn kernel "$case" - - "$@"
	talk_by_syn server "$case" a.log - "$@"
	talk_by_syn client "$case" - b.log "$@"
	talk_by_syn both "$case" a.log b.log "$@"
	grep -q "by SYN" "$work/kernel" || echo "no data came by SYN" >>"$work/kernel"
	tap_alike "$case" "$work/kernel" "$work/server" "$work/client" "$work/both"
done
tap_end
