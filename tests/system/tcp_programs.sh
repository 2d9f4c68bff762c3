#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that people use, over a cable: each with the kernel's sockets at both ends,
# then with the library at the server's end, at the client's, and at both. What they say
# must be the same, and the segments carried as the program's line below says: kernel,
# ours (at most one in twenty by the kernel), or mixed.
#
# CASES="NAME...": only these. TCP_CARRIER=kernel, ours or mixed: whatever the lines say.
# TCP_ALL=1: those that are slow or not everywhere, too (make check-tcp-long).
. "${srcdir:-.}/tests/system/tcp_lab.sh"

helper="/usr/bin/python3 $srcdir/tests/system/tcp_programs.py"

# program       carrier
carriers='
nginx           ours
redis           mixed
memcached       ours
iperf3          mixed
http_server     ours
asyncio         ours
node            ours
socat           mixed
ssh             mixed
git             mixed
java            mixed
sockperf        mixed
haproxy         mixed
requests        ours
netpipe         mixed
go              mixed
'
slow='java sockperf haproxy netpipe go'

make_files() {
	mkdir -p "$work/html" &&
		head -c 20000 "$srcdir/HACKING.md" >"$work/html/index.html" &&
		openssl enc -aes-128-ctr -K 0 -iv 0 -in /dev/zero 2>/dev/null |
		head -c 8000000 >"$work/html/big" &&
		chmod -R a+rX "$work"
}

# serve COMMAND...: in a, by the way that is tried.
serve() {
	rm -f "$work/$server_log"
	(in_ns $a "$server_log" "$@") >"$work/words" 2>&1 </dev/null &
	servers+=($!)
}
# ask COMMAND...: in b.
ask() {
	(in_ns $b "$client_log" timeout -k 5 60 "$@") 2>&1
}
# A listener is ours from its first wait on, or, if it blocks, from its first accept on, and
# who connects before is the kernel's.
is_listening() {
	ip netns exec $a grep -qE ":$1 0{8,32}:0000 0A" /proc/net/tcp /proc/net/tcp6 &&
		{ [ "$server_log" = - ] || [ "${2:-}" = blocking ] || [ "$(carrier_of "$program")" != ours ] ||
			grep -qs "are accepted by us" "$work/$server_log"; }
}
# await_port PORT [blocking]
await_port() {
	local hex
	hex=$(printf '%04X' "$1")
	for _ in $(seq 400); do
		is_listening "$hex" "${2:-}" && return
		sleep 0.02
	done
	echo "nothing listens on port $1"
	tail -3 "$work/words"
}

# nginx CONFIGURATION: in one process.
start_nginx() {
	cat >"$work/nginx.conf" <<-CONF
		daemon off; master_process off; pid $work/pid; user root;
		error_log $work/error.log; events { worker_connections 256; }
		http { access_log off; client_body_temp_path $work;
			proxy_temp_path $work; fastcgi_temp_path $work;
			uwsgi_temp_path $work; scgi_temp_path $work;
			server { listen 10.78.0.1:80; root $work/html; sendfile on; } }
	CONF
	serve nginx -c "$work/nginx.conf"
	await_port 80
}

program_nginx() {
	start_nginx
	ask curl -s http://10.78.0.1/ | md5sum
	ask curl -s http://10.78.0.1/big | md5sum
	ask curl -s -r 1000000-1999999 http://10.78.0.1/big | md5sum
	ask curl -s http://10.78.0.1/ http://10.78.0.1/big http://10.78.0.1/ | md5sum
	ask curl -s -o /dev/null -w '%{http_code} %{num_connects}\n' \
		http://10.78.0.1/missing
	ask curl -s -I http://10.78.0.1/big | grep -i content-length
	ask curl -s --no-progress-meter --parallel http://10.78.0.1/big \
		http://10.78.0.1/ -o "$work/first" -o "$work/second"
	cat "$work/first" "$work/second" | md5sum
	ask curl -s http://10.78.0.1:81/ || echo "status $?"
	ask wget -q -O - http://10.78.0.1/big | md5sum
}

program_redis() {
	serve redis-server --port 6379 --bind 10.78.0.1 --protected-mode no \
		--dir "$work" --save ""
	await_port 6379
	ask redis-cli -h 10.78.0.1 set key value
	ask redis-cli -h 10.78.0.1 get key
	ask redis-cli -h 10.78.0.1 -x set big <"$work/html/big"
	ask redis-cli -h 10.78.0.1 --raw get big | head -c 8000000 | md5sum
	seq 2000 | sed 's/.*/set k& v&/' | ask redis-cli -h 10.78.0.1 --pipe |
		grep replies
	ask redis-benchmark -h 10.78.0.1 -q -n 5000 -c 20 -t set,get,lpush,mset -P 4 |
		tr '\r' '\n' | grep -c 'requests per second'
	ask redis-cli -h 10.78.0.1 dbsize
}

program_memcached() {
	serve memcached -u root -l 10.78.0.1 -p 11211 -U 0 -t 3
	await_port 11211
	{
		printf 'set k 0 0 500000\r\n'
		head -c 500000 /dev/zero | tr '\0' m
		printf '\r\nget k\r\nincr n 1\r\ndelete k\r\nget k\r\nquit\r\n'
	} | ask socat -t 5 - TCP:10.78.0.1:11211 | md5sum
}

program_iperf3() {
	local way
	serve iperf3 -s -B 10.78.0.1
	await_port 5201
	for way in "" -R --bidir "-P 4"; do
		echo "iperf3 $way"
		ask_iperf3 -n 30M $way
		$helper bytes "$work/iperf"
	done
}
# The server listens anew after each test, a moment after its client has ended.
ask_iperf3() {
	for _ in $(seq 50); do
		ask iperf3 -c 10.78.0.1 -J "$@" >"$work/iperf"
		grep -q 'Connection refused' "$work/iperf" || return
		sleep 0.1
	done
}

program_http_server() {
	serve /usr/bin/python3 -u -m http.server 8000 --bind 10.78.0.1 \
		--directory "$work/html"
	await_port 8000 blocking
	ask $helper fetch http://10.78.0.1:8000/index.html 40
	ask $helper fetch http://10.78.0.1:8000/big 4
	ask curl -s http://10.78.0.1:8000/big | md5sum
}

program_asyncio() {
	serve $helper serve 10.78.0.1 7000
	await_port 7000
	ask $helper ask 10.78.0.1 7000 20
}

program_node() {
	cat >"$work/server.js" <<-'JS'
		require("http").createServer((req, res) => {
			let n = 0;
			req.on("data", d => n += d.length);
			req.on("end", () => res.end(req.method + " " + n + " " +
				"y".repeat(n)));
		}).listen(3000, "10.78.0.1");
	JS
	cat >"$work/client.js" <<-'JS'
		const http = require("http");
		const agent = new http.Agent({keepAlive: true, maxSockets: 5});
		const ask = (i) => new Promise((ok) => {
			const r = http.request({port: 3000, host: "10.78.0.1", agent,
				method: "POST"}, (res) => {
				let s = "";
				res.on("data", d => s += d);
				res.on("end", () => ok(s.length + " " + s.slice(0, 12)));
			});
			r.on("error", e => ok(e.code));
			r.end("x".repeat(i * 10000));
		});
		Promise.all([...Array(30).keys()].map(ask)).then((all) => {
			console.log(all.join("\n"));
			process.exit(0);
		});
	JS
	serve node "$work/server.js"
	await_port 3000
	ask node "$work/client.js"
}

program_socat() {
	rm -f "$work/received"
	serve socat -u TCP-LISTEN:7001,bind=10.78.0.1,reuseaddr "CREATE:$work/received"
	await_port 7001
	ask socat -u "OPEN:$work/html/big" TCP:10.78.0.1:7001
	wait "${servers[-1]}"
	md5sum <"$work/received"
	serve socat TCP-LISTEN:7002,bind=10.78.0.1,reuseaddr,fork EXEC:"tr a-z A-Z"
	await_port 7002
	for i in 1 2 3; do
		echo "message $i" | ask socat -t 5 - TCP:10.78.0.1:7002
	done
}

program_ssh() {
	local dir=$work/ssh
	mkdir -p "$dir" /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
	cp "$dir/key.pub" "$dir/authorized"
	serve /usr/sbin/sshd -D -e -p 2222 -f /dev/null -h "$dir/host" \
		-o ListenAddress=10.78.0.1 -o AuthorizedKeysFile="$dir/authorized" \
		-o StrictModes=no -o PidFile=none -o PermitRootLogin=yes -o UsePAM=no \
		-o Subsystem="sftp internal-sftp"
	await_port 2222
	local options="-i $dir/key -F /dev/null -o BatchMode=yes
		-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
		-o LogLevel=ERROR"
	ask ssh -p 2222 $options root@10.78.0.1 'echo logged in; exit 5' </dev/null
	echo "status $?"
	ask ssh -p 2222 $options root@10.78.0.1 md5sum <"$work/html/big"
	ask scp -q -P 2222 $options "$work/html/big" "root@10.78.0.1:$dir/copy"
	ask scp -q -P 2222 $options "root@10.78.0.1:$dir/copy" "$dir/back"
	md5sum <"$dir/back"
	rm -rf "$dir"
}

program_git() {
	local dir=$work/html/origin.git
	if ! [ -d "$dir" ]; then
		git init -q -b main "$work/one"
		head -c 2000000 "$work/html/big" >"$work/one/file"
		git -C "$work/one" add file
		git -C "$work/one" -c user.name=a -c user.email=a@b commit -qm first
		git clone -q --bare "$work/one" "$dir" 2>/dev/null
		git -C "$dir" update-server-info
	fi
	start_nginx
	rm -rf "$work/two"
	ask git clone -q http://10.78.0.1/origin.git "$work/two"
	md5sum <"$work/two/file"
	git -C "$work/two" log --oneline | cut -d' ' -f2
}

# A session over kept connections, what is sent in chunks, and an answer as it comes.
program_requests() {
	start_nginx
	ask $helper session http://10.78.0.1 4
}
# It doubles sizes, and checks nothing but that they come back.
program_netpipe() {
	serve NPtcp -u 50000 -n 20 -o /dev/null
	await_port 5002
	ask NPtcp -h 10.78.0.1 -u 50000 -n 20 -o /dev/null | grep -c Mbps
}
# Go asks the kernel itself, so its ends are the kernel's: it is a peer of ours.
program_go() {
	cat >"$work/peer.go" <<-'GO'
		package main

		import (
			"crypto/md5"
			"fmt"
			"io"
			"net"
			"net/http"
			"os"
		)

		func serve() {
			listener, err := net.Listen("tcp", "10.78.0.1:7005")
			if err != nil { panic(err) }
			for {
				c, err := listener.Accept()
				if err != nil { panic(err) }
				go func() { io.Copy(c, c); c.Close() }()
			}
		}

		func main() {
			if len(os.Args) > 1 { serve() }
			for i := 0; i < 20; i++ {
				answer, err := http.Get("http://10.78.0.1/big")
				if err != nil { fmt.Println(err); return }
				sum := md5.New()
				n, err := io.Copy(sum, answer.Body)
				fmt.Printf("%d %x %v\n", n, sum.Sum(nil), err)
			}
		}
	GO
	GOCACHE=$work/go go build -o "$work/peer" "$work/peer.go"
	start_nginx
	ask "$work/peer"
	serve "$work/peer" serve
	await_port 7005 blocking
	ask socat -u OPEN:"$work/html/big" TCP:10.78.0.1:7005,shut-down
	ask sh -c "socat -t 20 - TCP:10.78.0.1:7005 <$work/html/big | md5sum"
}
program_java() {
	cat >"$work/Echo.java" <<-'JAVA'
		import java.io.*;
		import java.net.*;
		import java.nio.*;
		import java.nio.channels.*;

		public class Echo {
			static void serve() throws Exception {
				ServerSocketChannel server = ServerSocketChannel.open();
				server.bind(new InetSocketAddress("10.78.0.1", 7003));
				Selector selector = Selector.open();
				server.configureBlocking(false);
				server.register(selector, SelectionKey.OP_ACCEPT);
				ByteBuffer b = ByteBuffer.allocate(65536);
				for (;;) {
					selector.select();
					for (SelectionKey key : selector.selectedKeys()) {
						if (key.isAcceptable()) {
							SocketChannel c = server.accept();
							c.configureBlocking(false);
							c.register(selector, SelectionKey.OP_READ);
							continue;
						}
						SocketChannel c = (SocketChannel) key.channel();
						b.clear();
						if (c.read(b) < 0) { c.close(); continue; }
						b.flip();
						while (b.hasRemaining()) c.write(b);
					}
					selector.selectedKeys().clear();
				}
			}
			public static void main(String[] args) throws Exception {
				if (args.length > 0) { serve(); return; }
				for (int i = 0; i < 20; i++) {
					Socket s = new Socket("10.78.0.1", 7003);
					s.getOutputStream().write(("from java " + i + "\n").getBytes());
					System.out.println(new BufferedReader(
						new InputStreamReader(s.getInputStream())).readLine());
					s.close();
				}
				try { new Socket("10.78.0.1", 1); }
				catch (ConnectException e) { System.out.println("refused"); }
			}
		}
	JAVA
	serve java "$work/Echo.java" serve
	await_port 7003
	ask java "$work/Echo.java"
}

program_sockperf() {
	serve sockperf server --tcp -i 10.78.0.1 -p 7004
	await_port 7004
	ask sockperf ping-pong --tcp -i 10.78.0.1 -p 7004 -t 2 |
		grep -c 'avg-latency\|avg-lat'
	ask sockperf throughput --tcp -i 10.78.0.1 -p 7004 -t 2 -m 1000 |
		grep -c 'Message Rate'
}

program_haproxy() {
	cat >"$work/haproxy.cfg" <<-CONF
		global
			nbthread 2
		defaults
			mode http
			timeout connect 5s
			timeout client 10s
			timeout server 10s
		frontend in
			bind 10.78.0.1:8080
			default_backend out
		backend out
			server one 10.78.0.2:8000
	CONF
	(in_ns $b - /usr/bin/python3 -m http.server 8000 --bind 10.78.0.2 \
		--directory "$work/html") >/dev/null 2>&1 &
	servers+=($!)
	serve haproxy -db -f "$work/haproxy.cfg"
	await_port 8080
	wait_until ip netns exec $b curl -s -o /dev/null http://10.78.0.2:8000/
	ask curl -s http://10.78.0.1:8080/big | md5sum
	ask $helper fetch http://10.78.0.1:8080/index.html 20
}

# run_way OUTPUT PROGRAM SERVER_LOG CLIENT_LOG
run_way() {
	local output=$work/$1 ns
	server_log=$3 client_log=$4
	mark_carriers
	servers=()
	"program_$2" >"$output" 2>&1
	stop_servers >/dev/null 2>&1
	[ "$3" = - ] || check_carrier "$2" $a >>"$output"
	[ "$4" = - ] || check_carrier "$2" $b >>"$output"
}

if [ "$(id -u)" != 0 ]; then
	tap_skip all_programs "needs root"
	tap_end
	exit
fi
if [ "${SANITIZERS:-none}" != none ]; then
	tap_skip all_programs "not under a sanitizer"
	tap_end
	exit
fi
make_lab && make_files || { tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
different=
for program in ${CASES:-$(cases)}; do
	[ -z "${CASES:-}${TCP_ALL:-}" ] && grep -qw "$program" <<<"$slow" && continue
	run_way kernel "$program" - -
	run_way server "$program" a.log -
	run_way client "$program" - b.log
	run_way both "$program" a.log b.log
	tap_alike "$program" "$work/kernel" "$work/server" "$work/client" "$work/both" ||
		different+=" $program"
done
[ -n "$different" ] && tap_not_ok all_programs "$different" || tap_ok all_programs
tap_end
