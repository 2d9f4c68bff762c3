#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Servers, clients and run-times that people use, under the library (compare.sh).
. "${srcdir:-.}/tests/system/compare.sh"

program_nginx() {
	local dir=$work/nginx
	mkdir -p "$dir/html"
	head -c 300000 /dev/zero | tr '\0' x >"$dir/html/big"
	echo hello >"$dir/html/index.html"
	chmod -R a+rX "$dir"
	cat >"$dir/nginx.conf" <<-CONF
		daemon off; pid $dir/pid; error_log $dir/error.log;
		worker_processes 2; user www-data;
		events { worker_connections 64; }
		http {
			access_log off; client_body_temp_path $dir; proxy_temp_path $dir;
			fastcgi_temp_path $dir; uwsgi_temp_path $dir; scgi_temp_path $dir;
			server { listen 127.0.0.1:8080; root $dir/html; sendfile on; }
			server { listen 127.0.0.1:8081;
				location / { proxy_pass http://127.0.0.1:8080; } }
		}
	CONF
	start nginx -c "$dir/nginx.conf"
	await_port 8081
	curl -s http://127.0.0.1:8080/
	curl -s http://127.0.0.1:8080/big | md5sum
	curl -s http://127.0.0.1:8081/big | md5sum
	curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/missing
	echo reloaded >"$dir/html/index.html"
	sed -i 's/worker_processes 2/worker_processes 3/' "$dir/nginx.conf"
	kill -HUP "$(cat "$dir/pid")"
	for _ in $(seq 400); do
		[ "$(pgrep -c -P "$(cat "$dir/pid")")" = 3 ] && break
		sleep 0.05
	done
	pgrep -c -P "$(cat "$dir/pid")"
	curl -s http://127.0.0.1:8080/
	grep -c 'emerg\|alert' "$dir/error.log"
}

program_redis() {
	start redis-server --port 6379 --bind 127.0.0.1 --dir "$work" --save "" \
		--daemonize no
	await_port 6379
	redis-cli set key value
	redis-cli get key
	redis-benchmark -q -n 2000 -c 20 -t set,get,lpush,mset -P 4 2>&1 |
		tr '\r' '\n' | grep -c 'requests per second'
	redis-cli dbsize
	redis-cli bgsave
	for _ in $(seq 100); do
		redis-cli info persistence | grep -q rdb_bgsave_in_progress:0 && break
		sleep 0.05
	done
	redis-cli info persistence | tr -d '\r' | grep rdb_last_bgsave_status
	ls "$work/dump.rdb" | sed 's|.*/||'
	redis-cli shutdown nosave
}

program_memcached() {
	start memcached -u nobody -l 127.0.0.1 -p 11211 -U 11211 -t 3
	await_port 11211
	{
		printf 'set k 0 0 5\r\nhello\r\n'
		printf 'get k\r\nincr n 1\r\ndelete k\r\nget k\r\nquit\r\n'
	} | socat -t 5 - TCP:127.0.0.1:11211
	printf '\0\1\0\0\0\1\0\0version\r\n' | socat -t 5 - UDP:127.0.0.1:11211 |
		tail -c +9 | cut -d' ' -f1
}

program_iperf3() {
	start iperf3 -s -1 -B 127.0.0.1
	await_port 5201
	iperf3 -c 127.0.0.1 -n 20M -P 2 -J |
		python3 -c 'import json,sys; d=json.load(sys.stdin)["end"]
print(d["sum_sent"]["bytes"] >= 20<<20)'
	stop_all
	start iperf3 -s -1 -B 127.0.0.1
	await_port 5201
	iperf3 -c 127.0.0.1 -u -b 100M -n 2M -J |
		python3 -c 'import json,sys; d=json.load(sys.stdin)["end"]["sum"]
print(d["bytes"] >= 2<<20)'
}

program_socat() {
	start socat TCP-LISTEN:7001,bind=127.0.0.1,reuseaddr,fork EXEC:"tr a-z A-Z"
	start socat UDP-RECVFROM:7002,bind=127.0.0.1,fork EXEC:rev
	await_port 7001
	for i in 1 2 3; do
		echo "message $i" | socat -t 5 - TCP:127.0.0.1:7001
	done
	echo abc | socat -t 2 - UDP:127.0.0.1:7002
}

program_curl() {
	python3 -u -m http.server 8000 --bind 127.0.0.1 --directory /usr/share/common-licenses \
		>"$work/http" 2>&1 </dev/null &
	pids+=($!)
	await_port 8000
	curl -s http://127.0.0.1:8000/GPL-2 | md5sum
	curl -s --no-progress-meter --parallel http://127.0.0.1:8000/GPL-2 http://127.0.0.1:8000/BSD \
		-o "$work/a" -o "$work/b" 2>/dev/null
	cat "$work/a" "$work/b" | md5sum
	curl -s http://127.0.0.1:1/ || echo "exit $?"
}

program_postgres() {
	local bin dir=$work/pg
	bin=$(echo /usr/lib/postgresql/*/bin)
	mkdir -p "$dir"
	chown postgres "$dir"
	as_postgres() {
		setpriv --reuid=postgres --regid=postgres --init-groups \
			env HOME="$dir" "$@"
	}
	as_postgres "$bin/initdb" -D "$dir/data" -A trust -N >/dev/null 2>&1
	start setpriv --reuid=postgres --regid=postgres --init-groups \
		"$bin/postgres" -D "$dir/data" -h 127.0.0.1 -p 5433 -k ""
	await_port 5433
	for _ in $(seq 100); do
		psql -h 127.0.0.1 -p 5433 -U postgres -Atc 'select 1' >/dev/null 2>&1 && break
		sleep 0.1
	done
	psql -h 127.0.0.1 -p 5433 -U postgres -Atc \
		'select count(*), sum(i) from generate_series(1, 100000) i'
	"$bin/pgbench" -h 127.0.0.1 -p 5433 -U postgres -i -q postgres >/dev/null 2>&1
	"$bin/pgbench" -h 127.0.0.1 -p 5433 -U postgres -c 4 -j 2 -t 50 postgres 2>/dev/null |
		grep -E 'actually processed|failed'
	psql -h 127.0.0.1 -p 5433 -U postgres -Atc \
		'select count(*) from pgbench_history'
	stop_all
	rm -rf "$dir"
}

program_sshd() {
	local dir=$work/ssh
	mkdir -p "$dir" /run/sshd
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
	cp "$dir/key.pub" "$dir/authorized"
	start /usr/sbin/sshd -D -e -p 2222 -f /dev/null -h "$dir/host" \
		-o ListenAddress=127.0.0.1 -o AuthorizedKeysFile="$dir/authorized" \
		-o StrictModes=no -o PidFile=none -o PermitRootLogin=yes -o UsePAM=no
	await_port 2222
	ssh_to() {
		ssh -p 2222 -i "$dir/key" -F /dev/null -o BatchMode=yes \
			-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
			-o LogLevel=ERROR root@127.0.0.1 "$@"
	}
	ssh_to 'echo logged in; id -un; exit 5'
	echo "exit $?"
	head -c 500000 /dev/zero | ssh_to 'md5sum'
	rm -rf "$dir"
}

program_git() {
	local dir=$work/git
	mkdir -p "$dir"
	git init -q --bare "$dir/origin.git"
	git init -q -b main "$dir/one"
	seq 1000 >"$dir/one/file"
	(
		cd "$dir/one" || exit
		git add file
		git -c user.name=a -c user.email=a@b commit -qm first
		git push -q "$dir/origin.git" main
	) 2>&1
	touch "$dir/origin.git/git-daemon-export-ok"
	start git daemon --reuseaddr --listen=127.0.0.1 --port=9418 \
		--base-path="$dir" --export-all
	await_port 9418
	git clone -q -b main git://127.0.0.1/origin.git "$dir/two" 2>&1
	md5sum <"$dir/two/file"
	git -C "$dir/two" log --oneline | cut -d' ' -f2
	rm -rf "$dir"
}

program_node() {
	cat >"$work/server.js" <<-'JS'
		const http = require("http");
		const server = http.createServer((req, res) => {
			let n = 0;
			req.on("data", d => n += d.length);
			req.on("end", () => res.end(req.method + " " + n));
		}).listen(3000, "127.0.0.1", () => {
			const ask = (i) => new Promise((ok) => {
				const r = http.request({port: 3000, host: "127.0.0.1",
					method: "POST"}, (res) => {
					let s = "";
					res.on("data", d => s += d);
					res.on("end", () => ok(s));
				});
				r.end("x".repeat(i * 10000));
			});
			Promise.all([1, 2, 3, 4, 5].map(ask)).then((all) => {
				console.log(all.join("\n"));
				server.close(() => process.exit(0));
			});
		});
	JS
	timeout 30 node "$work/server.js"
}

program_java() {
	cat >"$work/Echo.java" <<-'JAVA'
		import java.io.*;
		import java.net.*;
		import java.nio.*;
		import java.nio.channels.*;

		public class Echo {
			public static void main(String[] args) throws Exception {
				ServerSocketChannel server = ServerSocketChannel.open();
				server.bind(new InetSocketAddress("127.0.0.1", 0));
				Thread t = new Thread(() -> {
					try (SocketChannel c = server.accept()) {
						ByteBuffer b = ByteBuffer.allocate(1024);
						while (c.read(b) >= 0) { b.flip(); c.write(b); b.clear(); }
					} catch (IOException e) { System.out.println(e); }
				});
				t.start();
				Socket s = new Socket("127.0.0.1",
					((InetSocketAddress) server.getLocalAddress()).getPort());
				s.getOutputStream().write("from java\n".getBytes());
				System.out.println(new BufferedReader(
					new InputStreamReader(s.getInputStream())).readLine());
				s.close();
				t.join();
				try { new Socket("127.0.0.1", 1); }
				catch (ConnectException e) { System.out.println("refused"); }
			}
		}
	JAVA
	timeout 100 java "$work/Echo.java"
}

compare_all ${*:-nginx redis memcached iperf3 socat curl postgres sshd git node java}
