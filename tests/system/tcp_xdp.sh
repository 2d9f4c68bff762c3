#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# TCP between two namespaces: each conversation of tcp_peer with both ends on the kernel,
# then with the library on the server's side, on the client's, and on both. What the
# client says must be the same, and the segments must have been carried as the case's
# line below says: kernel, ours (at most one in twenty by the kernel), or mixed. At last
# the server says what it has taken.
#
# CASES="NAME...": only these. TCP_CARRIER=kernel, ours or mixed: whatever the lines say.
# PEER_BULK=BYTES, PEER_TIMES=N: more of it (make check-tcp-long).
. "${srcdir:-.}/tests/system/tcp_lab.sh"

peer=$builddir/tests/system/tcp_peer

# At the end of the client the kernel takes over the 500 that wait. Each hears the end of its peer
# once more, answers, and is told that nobody knows it any more.
last_words_short_connections=1000
# who has shut down first waits in TIME_WAIT, and the kernel does so for him at the end; over
# cards, where a frame is many segments, there are few beside these
last_words_half_closed=3
# case                  carrier
carriers='
ping_pong               ours
bulk_to_the_server      ours
bulk_from_the_server    ours
bulk_both_ways          ours
bulk_of_several         ours
bulk_to_a_slow_reader   mixed
bulk_to_us_slowly       ours
short_connections       ours
idle_connections        mixed
many_in_a_set           ours
kept_alive              mixed
half_closed             ours
reset_by_the_server     ours
reset_by_us             mixed
urgent_byte             mixed
refused                 mixed
nobody_there            mixed
exit_behind_a_stream    mixed
exec_behind_a_stream    mixed
fork_before_accepting   mixed
child_takes_over        mixed
idle_child              ours
child_for_each          mixed
first_of_a_thread       ours
first_of_the_first_thread kernel
'

# converse OUTPUT CASE SERVER_LOG CLIENT_LOG
converse() {
	local output=$work/$1 case=$2 client_log=$4
	serve_peer "$3" "$case" >"$output" || { end_server; return 1; }
	mark_carriers
	(in_ns $b "$client_log" timeout -k 5 60 "$peer" ask 10.78.0.1 7000 "$case") \
		</dev/null >>"$output" 2>&1 || echo "exit $?" >>"$output"
	[ "$3" = - ] || check_carrier "$case" $a >>"$output"
	[ "$4" = - ] || check_carrier "$case" $b >>"$output"
	(in_ns $b - timeout -k 5 60 "$peer" ask 10.78.0.1 7000 what_was_taken) \
		</dev/null >>"$output" 2>&1
	end_server
}

# A thread that spins in accept() asks the kernel's listener at one look in 64, and once
# more before it sleeps.
accept_asks_the_kernel_seldom() {
	local looks=6400 asked fd
	(export VMA_RX_POLL=$looks
		in_ns $a a.log strace -f -e trace=ppoll -o "$work/calls" \
			timeout -k 5 60 python3 -c "
import socket, struct
s = socket.create_server(('10.78.0.1', 7001))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 2, 0))
try:
    s.accept()
except BlockingIOError:
    print('nobody came by', s.fileno())") >"$work/out" 2>&1
	fd=$(sed -n 's/^nobody came by //p' "$work/out")
	[ -n "$fd" ] || { cat "$work/out"; return 1; }
	# other threads have polls of their own
	asked=$(grep -cE "ppoll\(\[\{fd=$fd, events=POLLIN\}\], 1, \{tv_sec=0, tv_nsec=0\}" "$work/calls")
	[ "$asked" -ge $((looks / 64)) ] && [ "$asked" -le $((looks / 64 + 10)) ] ||
		{ echo "asked $asked times in $looks looks"; return 1; }
}

# A client that connects, asks, hears and closes: what all threads of its process ask the
# kernel for each connection, and how often our own is woken, which tidies up what is in
# TIME_WAIT.
connections_ask_the_kernel_seldom() {
	local cnt=100 all own left waking rounds
	: >"$work/words"
	(in_ns $a - timeout -k 5 60 python3 -c "
import socket
s = socket.create_server(('10.78.0.1', 7006))
print('ready', flush=True)
while True:
    c = s.accept()[0]
    c.send(c.recv(1))
    c.recv(1)
    c.close()") </dev/null >"$work/words" 2>&1 &
	server=$!
	wait_for ready "$work/words" || return 1
	(in_ns $b b.log strace -f -ttt -o "$work/calls" timeout -k 5 60 python3 -c "
import socket
for _ in range($cnt + 20):
    c = socket.socket()
    c.connect(('10.78.0.1', 7006))
    c.send(b'x')
    c.recv(1)
    c.close()
print('done')") </dev/null >"$work/out" 2>&1
	end_server
	grep -qx done "$work/out" || { cat "$work/out"; return 1; }
	# without what the first one and the end of the program take
	grep -v ' resumed>' "$work/calls" |
		awk '/SO_ATTACH_BPF/ { n++ } n > 10 && n <= '$((cnt + 10))'' >"$work/some"
	# those that the kernel waits for take more (tsock_tw.c): they are few, or far between
	left=$(grep -c BPF_PROG_TEST_RUN "$work/some")
	all=$(($(wc -l <"$work/some") - 30 * left))
	# the program's thread begins
	own=$(awk 'NR == 1 { own = $1 } $1 == own' "$work/some" | wc -l)
	waking=$(grep -c 'write([0-9]*, "\\1\\0\\0\\0\\0\\0\\0\\0", 8)' "$work/some")
	# they are tidied up after 10 ms: on a busy machine that may be for each of them, and
	# our thread looks at what is not yet at its end meanwhile
	rounds=$(awk 'NR == 1 { first = $2 } { last = $2 } END { print int((last - first) * 100) }' \
		"$work/some")
	# a card in software asks it often
	[ -z "${LAB_CARD:-}" ] || all=0 own=0
	[ "$own" -le $((20 * cnt)) ] && [ "$all" -le $((25 * cnt + 5 * rounds)) ] &&
		[ "$waking" -le $((cnt / 4 + rounds)) ] ||
		{ echo "$own of $all calls, woken $waking times in $rounds rounds, for $cnt"; return 1; }
}

# How many segments the server's kernel has taken for old ones.
taken_for_old() {
	ip netns exec $a awk '/^TcpExt:/ {
			for (i = 2; i <= NF; i++)
				if (!names) name[i] = $i; else if (name[i] ~ /^PAWS/) sum += $i
			names = 1
		} END { print sum }' /proc/net/netstat
}
# Where a connection is in TIME_WAIT at its peer, one of another process by the same names
# is not.
names_again() {
	local before=$(taken_for_old)
	: >"$work/words"
	(in_ns $a - timeout -k 5 60 python3 -c "
import socket
s = socket.create_server(('10.78.0.1', 7005))
print('ready', flush=True)
while True:
    c = s.accept()[0]
    c.recv(1)
    c.close()") </dev/null >"$work/words" 2>&1 &
	wait_for ready "$work/words" || return 1
	for process in 1 2; do
		(in_ns $b b.log timeout -k 5 60 python3 -c "
import socket
for port in range(30001, 30017):
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    c.bind(('10.78.0.2', port))
    c.connect(('10.78.0.1', 7005))
    c.sendall(b'x')
    print(c.recv(1))
    c.close()") </dev/null >"$work/out" 2>&1
		[ "$(grep -cx "b''" "$work/out")" = 16 ] || { cat "$work/out"; return 1; }
	done
	expect "$(($(taken_for_old) - before)) taken for old ones" "0 taken for old ones"
}

# No interface of ours leads back to who calls: the kernel answers, and all is as without us.
answers_lead_elsewhere() {
	local status
	export VMA_XDP_INTERFACES=v0
	ip link add w0 netns $a type veth peer name w0 netns $b &&
		ip -n $a link set w0 up && ip -n $b link set w0 up &&
		for end in $a $b; do
			ip netns exec $end sysctl -qw net.ipv4.conf.all.rp_filter=0 \
				net.ipv4.conf.v0.rp_filter=0 net.ipv4.conf.w0.rp_filter=0
		done && ip -n $a route add 10.78.0.2/32 dev w0 || return 1
	serve_peer a.log ping_pong &&
		(in_ns $b - timeout -k 5 30 "$peer" ask 10.78.0.1 7000 ping_pong) \
			</dev/null >"$work/out" 2>&1
	status=$?
	end_server
	unset VMA_XDP_INTERFACES
	ip -n $a link del w0
	[ $status = 0 ] && grep -q '^answer' "$work/out" || { cat "$work/out"; return 1; }
}

# A server that may have few fds closes connections whose peers read nothing yet, and exits:
# they get all of it. (Closed connections have at most one in sixteen of the fds for
# their twins, and none is needed.)
exit_behind_closed_ones() {
	local cnt=20 len=60000
	: >"$work/out"
	(in_ns $a a.log timeout -k 5 60 python3 -c "
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
s = socket.create_server(('10.78.0.1', 7002), backlog=64)
print('ready', flush=True)
s.setblocking(False)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 200000)
import select
for _ in range($cnt):
    select.select([s], [], [])
    c = s.accept()[0]
    c.setblocking(True)
    c.sendall(b'x' * $len)
    c.close()") </dev/null >"$work/out" 2>&1 &
	wait_for ready "$work/out" || return 1
	(in_ns $b - timeout -k 5 60 python3 -c "
import socket, time
cs = []
for _ in range($cnt):
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    c.connect(('10.78.0.1', 7002))
    cs.append(c)
time.sleep(1)
for c in cs:
    got = 0
    while more := c.recv(65536):
        got += len(more)
    print(got)") </dev/null >"$work/got" 2>&1
	wait
	[ "$(grep -cx $len "$work/got")" = $cnt ] || { sort "$work/got" | uniq -c; cat "$work/out"; return 1; }
}

# queued_at BEHIND: a server with a connection that it has not accepted does what the
# program BEHIND says, whose listener is `s`. The client says what becomes of it, and of one
# that comes later.
queued_at() {
	rm -f "$work/orders"
	mkfifo "$work/orders"
	: >"$work/out"
	(in_ns $a a.log timeout -k 5 40 python3 -c "
import os, select, socket, sys
s = socket.create_server(('10.78.0.1', 7003))
s.setblocking(False)
p = select.poll()
p.register(s)
p.poll(0)
print('ready', flush=True)
sys.stdin.readline()
if p.poll(10000):
    print('queued', flush=True)
$1") <"$work/orders" >"$work/out" 2>&1 &
	exec 7>"$work/orders"
	wait_for ready "$work/out" && wait_for "are accepted by us" "$work/a.log" || return 1
	: >"$work/got"
	(in_ns $b - timeout -k 5 40 python3 -c "
import socket
def ask(c):
    try:
        c.settimeout(15)
        c.sendall(b'x')
        print(c.recv(1), flush=True)
    except OSError as e:
        print(type(e).__name__, flush=True)
c = socket.create_connection(('10.78.0.1', 7003), 10)
print('connected', flush=True)
ask(c)
try:
    ask(socket.create_connection(('10.78.0.1', 7003), 10))
except OSError as e:
    print(type(e).__name__, flush=True)") </dev/null >"$work/got" 2>&1 &
	local client=$!
	wait_for connected "$work/got" && echo >&7
	wait $client
	exec 7>&-
	grep -qx queued "$work/out" || { cat "$work/out"; return 1; }
}
# A program that becomes another one, which accepts so many.
becomes_a_server_of() {
	queued_at "s.set_inheritable(True)
os.execv(sys.executable, [sys.executable, '-c', '''
import socket
s = socket.socket(fileno=%d)
s.setblocking(True)
for _ in range($1):
    c = s.accept()[0]
    c.sendall(c.recv(1))
''' % s.fileno()])"
}
# It has the listener still, and the queue is in the kernel's.
queue_at_exec() {
	becomes_a_server_of 2 || return 1
	expect "$(tr '\n' ' ' <"$work/got")" "connected b'x' b'x' "
}
# Where the kernel takes no connection that it has not begun, they are reset at once.
queue_without_cookies() {
	local result=0
	ip netns exec $a sysctl -qw net.ipv4.tcp_syncookies=0
	becomes_a_server_of 1 || result=1
	ip netns exec $a sysctl -qw net.ipv4.tcp_syncookies=1
	[ $result = 0 ] &&
		expect "$(tr '\n' ' ' <"$work/got")" "connected ConnectionResetError b'x' "
}
# queued_by END [SOCKET]: connections with something to read of every kind, which go on while the
# listener moves: long, in very many pieces, with an end, without a byte. END says by whom the
# queue is accepted, which is serve()'s to do. Each byte is there once.
queued_by() {
	local server
	rm -f "$work/orders"
	mkfifo "$work/orders"
	: >"$work/out"
	cat >"$work/serve.py" <<-'END'
		def sum_up(c):
		    n = h = 0
		    c.settimeout(30)
		    while (d := c.recv(65536)):
		        for b in d:
		            h = (h * 31 + b) % 1000003
		        n += len(d)
		    c.sendall(b'%d %d' % (n, h))
		    c.close()
		def serve(cnt):
		    s.setblocking(True)
		    threads = [threading.Thread(target=sum_up, args=(s.accept()[0],))
		               for _ in range(cnt)]
		    for t in threads:
		        t.start()
		    for t in threads:
		        t.join()
	END
	(in_ns $a a.log timeout -k 5 60 python3 -c "
import os, select, socket, sys, threading
s = ${2:-socket.create_server(('10.78.0.1', 7009), backlog=64)}
s.setblocking(False)
p = select.poll()
p.register(s)
p.poll(0)
print('ready', flush=True)
exec(open('$work/serve.py').read())
sys.stdin.readline()
$1" "$work/serve.py") <"$work/orders" >"$work/out" 2>&1 &
	server=$!
	exec 7>"$work/orders"
	wait_for ready "$work/out" && wait_for "are accepted by us" "$work/a.log" || return 1
	: >"$work/got"
	in_ns $b - timeout -k 5 60 python3 -c "
import random, socket, threading, time
r = random.Random(7)
kinds = [(0, 1), (1, 1), (3000, 3000), (40000, 1448), (1500, 1), (65000, 4096), (300000, 5000)]
all = threading.Barrier(22)
def talk(len, piece, pause, result):
    c = socket.create_connection(('10.78.0.1', 7009), 20)
    all.wait()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.settimeout(30)
    data = r.randbytes(len)
    for at in range(0, len, piece):
        if at > len // 2 and pause:
            time.sleep(pause)
            pause = 0
        c.sendall(data[at:at + piece])
    if not len:
        time.sleep(pause)
    c.shutdown(socket.SHUT_WR)
    h = 0
    for b in data:
        h = (h * 31 + b) % 1000003
    result.append(c.recv(100) == b'%d %d' % (len, h))
results, threads = [], []
for pause in 0, 1, 2:
    for len, piece in kinds:
        threads.append(threading.Thread(target=talk, args=(len, piece, pause, results)))
for t in threads:
    t.start()
all.wait()
# so that there is something to read; some go on for two seconds
time.sleep(0.3)
print('connected', flush=True)
for t in threads:
    t.join()
print(results.count(True), 'of', 21, flush=True)" </dev/null >"$work/got" 2>&1 &
	local client=$!
	wait_for connected "$work/got" && echo >&7
	wait $client
	exec 7>&-
	wait $server || { cat "$work/out"; return 1; }
	expect "$(tr '\n' ' ' <"$work/got")" "connected 21 of 21 " || { cat "$work/out"; return 1; }
	grep -q ': \([0-9]*\) of \1 connections that nobody has accepted are in the kernel' "$work/a.log"
}
# A child, while the parent has the listener, too.
queue_at_fork() {
	queued_by "
if os.fork() == 0:
    serve(21)
    os._exit(0)
sys.exit(os.wait()[1])"
}
# Among those that wait are some with an urgent byte: alone, behind a little or much, and
# followed by more.
queue_with_urgent_bytes() {
	local server
	rm -f "$work/orders"
	mkfifo "$work/orders"
	: >"$work/out"
	(in_ns $a a.log timeout -k 5 40 python3 -c "
import os, select, socket, sys
s = socket.create_server(('10.78.0.1', 7009), backlog=64)
s.setblocking(False)
p = select.poll()
p.register(s)
p.poll(0)
print('ready', flush=True)
sys.stdin.readline()
if os.fork() == 0:
    s.setblocking(True)
    for _ in range(5):
        c = s.accept()[0]
        c.settimeout(20)
        try:
            urgent = c.recv(1, socket.MSG_OOB)
        except OSError as e:
            urgent = type(e).__name__.encode()
        rest = b''
        while d := c.recv(65536):
            rest += d
        c.sendall(b'%s %d %s' % (urgent, len(rest), rest[-4:]))
        c.close()
    os._exit(0)
sys.exit(os.wait()[1])") <"$work/orders" >"$work/out" 2>&1 &
	server=$!
	exec 7>"$work/orders"
	wait_for ready "$work/out" && wait_for "are accepted by us" "$work/a.log" || return 1
	: >"$work/got"
	in_ns $b - timeout -k 5 40 python3 -c "
import array, fcntl, socket, termios, time
def is_acknowledged(c):
    left = array.array('i', [0])
    fcntl.ioctl(c, termios.TIOCOUTQ, left)
    return not left[0]
all = []
for before, urgent, after in ((b'ab', b'!', b'cd'), (b'plain', b'', b''), (b'', b'!', b''),
                              (b'a' * 40000, b'?', b'b' * 5000), (b'', b'', b'')):
    c = socket.create_connection(('10.78.0.1', 7009), 10)
    c.settimeout(20)
    c.sendall(before)
    if urgent:
        c.send(urgent, socket.MSG_OOB)
    c.sendall(after)
    while not is_acknowledged(c):
        time.sleep(0.01)
    all.append(c)
print('connected', flush=True)
for c in all:
    c.shutdown(socket.SHUT_WR)
for c in all:
    try:
        print(c.recv(100).decode(), flush=True)
    except OSError as e:
        print(type(e).__name__, flush=True)" </dev/null >"$work/got" 2>&1 &
	local client=$!
	wait_for connected "$work/got" && echo >&7
	wait $client
	exec 7>&-
	wait $server || { cat "$work/out"; return 1; }
	expect "$(tr '\n' ',' <"$work/got")" \
		"connected,! 4 abcd,OSError 5 lain,! 0 ,? 45000 bbbb,OSError 0 ," || return 1
	grep -q ': 5 of 5 connections that nobody has accepted are in the kernel' "$work/a.log"
}
queue_of_both_families() {
	queued_by "
if os.fork() == 0:
    serve(21)
    os._exit(0)
sys.exit(os.wait()[1])" "socket.create_server(('::', 7009), backlog=64,
    family=socket.AF_INET6, dualstack_ipv6=True)"
}
# Two listeners that share a port: each connection is in the queue of its own one.
queue_of_a_shared_port() {
	local made="socket.create_server(('10.78.0.1', 7009), backlog=64, reuse_port=True)"
	queued_by "
class Both:
    took = {s: 0, other: 0}
    def setblocking(self, value):
        pass
    def accept(self):
        one = select.select(list(self.took), [], [])[0][0]
        self.took[one] += 1
        return one.accept()
s = Both()
if os.fork() == 0:
    serve(21)
    print('took', *sorted(s.took.values()), flush=True)
    os._exit(0)
sys.exit(os.wait()[1])" "[other := $made, $made][1]" || return 1
	expect "$(sed -n 's/^took //p' "$work/out")" \
		"$(sed -n 's/.* \([0-9]*\) of \1 connections that nobody.*/\1/p' "$work/a.log" |
			sort -n | xargs)"
}
# Another program, with nothing of ours in it.
another="
os.environ.pop('LD_PRELOAD')
s.set_inheritable(True)
code = '''
import socket, threading
s = socket.socket(fileno=%d)
''' % s.fileno() + open(sys.argv[1]).read() + 'serve(21)'
command = [sys.executable, '-c', code]"
# The program that it becomes.
queue_of_the_next_program() {
	queued_by "$another
os.execv(command[0], command)"
}
# inetd's, which starts it when somebody waits.
queue_of_a_program_that_is_started() {
	queued_by "$another
sys.exit(os.waitpid(os.posix_spawn(command[0], command, os.environ), 0)[1])"
}
# Who has given up its rights, with the connections there: the helper attaches the program.
drops="
os.setgroups([])
os.setgid(65534)
os.setuid(65534)"
queue_at_fork_without_rights() {
	queued_by "$drops
if os.fork() == 0:
    serve(21)
    os._exit(0)
sys.exit(os.wait()[1])"
}
queue_of_the_next_without_rights() {
	queued_by "$another$drops
# one that others may start, too
command[0] = '/usr/bin/python3'
os.execv(command[0], command)"
}
# As by a close, which it is.
queue_at_exit() {
	queued_at "sys.exit(0)" || return 1
	expect "$(tr '\n' ' ' <"$work/got")" \
		"connected ConnectionResetError ConnectionRefusedError "
}
# first_of PORT START: a server with a listener that blocks, which waits for it by epoll
# before somebody connects; START calls serve(). What its first connection says, a kernel
# carries at the other end.
first_of() {
	: >"$work/out"
	(in_ns $a a.log timeout -k 5 40 python3 -c "
import select, socket, threading
s = socket.create_server(('10.78.0.1', $1))
def serve():
    e = select.epoll()
    e.register(s, select.EPOLLIN)
    e.poll(0)
    print('ready', flush=True)
    e.poll()
    c = s.accept()[0]
    while (d := c.recv(100)):
        c.sendall(d)
$2") </dev/null >"$work/out" 2>&1 &
	server=$!
	wait_for ready "$work/out" || return 1
	mark_carriers
	(in_ns $b - timeout -k 5 40 python3 -c "
import socket
c = socket.create_connection(('10.78.0.1', $1), 10)
for _ in range(100):
    c.sendall(b'x')
    assert c.recv(1) == b'x'") </dev/null >"$work/got" 2>&1 || { cat "$work/got"; return 1; }
	wait $server
	server=
}
# ZeroMQ's threads wait for listeners that block.
first_of_a_thread() {
	first_of 7007 "t = threading.Thread(target=serve)
t.start()
t.join()" || return 1
	expect "$(check_carrier "$FUNCNAME" $a)" "" && ! grep 'stays with the kernel' "$work/a.log"
}
# inetd waits in its first thread for what another program accepts.
first_of_the_first_thread() {
	first_of 7008 "serve()" || return 1
	expect "$(check_carrier "$FUNCNAME" $a)" "" &&
		grep -q 'stays with the kernel: it was begun before its listener was ours' "$work/a.log"
}

# waits_to_be_read BYTES: so many have come, and their program has not read them.
waits_to_be_read() {
	ip netns exec $b ss -Htn "dport = :7010" |
		awk -v least="$1" '$2 >= least { n++ } END { exit !n }'
}
# What a closed window has kept back leaves when it opens. That is more than the ring takes at
# a time, and nothing of it is lost there.
more_than_a_ring_takes() {
	local pid client status
	ip netns exec $a sysctl -qw net.ipv4.tcp_wmem="4096 65536 33554432"
	start a.log timeout -k 5 60 python3 -c "
import os, select, socket
s = socket.create_server(('10.78.0.1', 7010))
s.setblocking(False)
p = select.poll()
p.register(s)
p.poll(0)
print('ready', os.getpid(), flush=True)
p.poll()
c = s.accept()[0]
c.setblocking(True)
for _ in range(80):
    c.sendall(bytes(1 << 20))
c.recv(1)" || return 1
	pid=$(sed -n 's/^ready //p' "$work/out")
	rm -f "$work/orders"
	mkfifo "$work/orders"
	(in_ns $b - timeout -k 5 60 python3 -c "
import socket, sys
c = socket.socket()
# SO_RCVBUFFORCE
c.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
c.connect(('10.78.0.1', 7010))
for n in range(4):
    sys.stdin.readline()
    left = 12 << 20
    while left:
        left -= len(c.recv(left))
left = 32 << 20
while left:
    left -= len(c.recv(left))
print('all', flush=True)
sys.stdin.readline()") <"$work/orders" >"$work/got" 2>&1 &
	client=$!
	exec 7>"$work/orders"
	for _ in 1 2 3 4; do
		wait_until waits_to_be_read 12000000 || break
		echo >&7
	done
	wait_for all "$work/got" &&
		"$builddir/tools/vma_stats/vma_stats" -p "$pid" -c 1 -v 3 >"$work/stats"
	status=$?
	exec 7>&-
	wait $client
	end_server
	[ $status = 0 ] || return 1
	expect "$(sed -n 's/^Tx ring full: *//p' "$work/stats" | sort -u)" 0
}

# Segments are copied to frames, and those that wait for the next kick have all of them.
more_than_there_are_frames() {
	export VMA_XDP_FRAMES=128
	converse kernel bulk_to_the_server - -
	converse both bulk_to_the_server a.log b.log
	unset VMA_XDP_FRAMES
	diff "$work/kernel" "$work/both"
}

if ! why=$(lab_is_possible); then
	tap_skip all_conversations "$why"
	tap_end
	exit
fi
make_lab || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
# nobody_there waits less for a neighbour
ip netns exec $b sysctl -qw net.ipv4.neigh.v0.retrans_time_ms=250
different=
for case in ${CASES:-$(cases) accept_asks_the_kernel_seldom \
	connections_ask_the_kernel_seldom exit_behind_closed_ones queue_at_exec queue_without_cookies queue_at_fork queue_with_urgent_bytes queue_of_both_families queue_of_a_shared_port queue_of_the_next_program queue_of_a_program_that_is_started \
	queue_at_fork_without_rights queue_of_the_next_without_rights queue_at_exit names_again \
	answers_lead_elsewhere more_than_a_ring_takes more_than_there_are_frames}; do
	declare -F "$case" >/dev/null && tap_check "$case" "$case" && continue
	converse kernel "$case" - -
	converse server "$case" a.log -
	converse client "$case" - b.log
	converse both "$case" a.log b.log
	tap_alike "$case" "$work/kernel" "$work/server" "$work/client" "$work/both" ||
		different+=" $case"
done
[ -n "$different" ] && tap_not_ok all_conversations "$different" ||
	tap_ok all_conversations
tap_end
