#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs of several processes over a cable: workers, reloads, upgrades, activation,
# children of clients. Each is run on the kernel and then under the library, at the end
# that its line below names; the other end is the kernel's. What they say must be the same:
# requests that were answered, errors, processes that are left.
# CASES and SERVERS_ALL are those of servers_lab.sh (make check-servers).
. "${srcdir:-.}/tests/system/servers_lab.sh"

helper="/usr/bin/python3 $srcdir/tests/system/tcp_servers.py"

# program       end under the library
programs='
nginx_reload    server
nginx_upgrade   server
haproxy_reload  server
gunicorn        server
apache_prefork  server
apache_worker   server
postgres        server
php_fpm         server
sshd            server
inetd           server
socat_fork      server
redis_save      server
vsftpd          server
activation      server
pool            server
passing         server
double_fork     server
terminated      server
node_cluster    server
wrk             client
bash_tcp        client
ssh_forks       client
pgbench         client
node_children   client
java_children   client
'
long='haproxy_reload gunicorn apache_prefork apache_worker php_fpm vsftpd wrk pgbench
	java_children'

# load_during URL COMMAND: clients go on while the command is at work in this shell. With one
# request on a connection, since a server that reloads may close between two.
load_during() {
	local loader
	rm -f "$work/done"
	ask $helper until "$work/done" "$1" >"$work/load" &
	loader=$!
	"$2"
	touch "$work/done"
	wait $loader
	cat "$work/load"
}

# -- web servers -------------------------------------------------------------------------

write_nginx_conf() {
	cat >"$work/nginx.conf" <<-CONF
		worker_processes 4; pid $work/nginx.pid; user nobody nogroup;
		error_log $work/log/nginx.log; events { worker_connections 256; }
		http { access_log off; client_body_temp_path $work/log; proxy_temp_path $work/log;
			fastcgi_temp_path $work/log; uwsgi_temp_path $work/log; scgi_temp_path $work/log;
			server { listen 10.78.0.1:80; root $work/html; sendfile on; } }
	CONF
}
start_nginx() {
	write_nginx_conf
	rm -f "$work"/nginx.pid*
	# by its path, since an upgrade executes that
	serve /usr/sbin/nginx -c "$work/nginx.conf"
	await_port 80
	wait_until [ -s "$work/nginx.pid" ]
	nginx=$(cat "$work/nginx.pid")
	# before that it may ignore signals, or leave them to the next one
	wait_until has_processes nginx 5
}
reload_nginx() {
	local before
	for _ in 1 2 3; do
		before=$(pgrep -P "$nginx" -x nginx)
		kill -HUP "$nginx"
		wait_until others_than "$before"
	done
}
# others_than PIDS: of its children none is one of these, and there are some.
others_than() {
	local now
	now=$(pgrep -P "$nginx" -x nginx) || return 1
	! grep -qxF "$1" <<<"$now"
}
program_nginx_reload() {
	start_nginx
	load_during http://10.78.0.1/ reload_nginx
	await_processes nginx 5
	ask $helper load http://10.78.0.1/big $((20 * times))
}
upgrade_nginx() {
	local old=$nginx
	kill -USR2 "$old"
	wait_until [ -s "$work/nginx.pid.oldbin" ]
	wait_until [ -s "$work/nginx.pid" ]
	nginx=$(cat "$work/nginx.pid")
	wait_until has_processes nginx 10
	kill -WINCH "$old"
	wait_until has_processes nginx 6
	kill -QUIT "$old"
	wait_until has_processes nginx 5
	[ "$nginx" != "$old" ] && echo "another process"
}
program_nginx_upgrade() {
	start_nginx
	load_during http://10.78.0.1/ upgrade_nginx
	await_processes nginx 5
	ask $helper load http://10.78.0.1/big 20
}

haproxy_generation() {
	cat >"$work/haproxy.cfg" <<-CONF
		global
			stats socket $work/log/haproxy.sock level admin expose-fd listeners
			nbthread 2
			hard-stop-after 10s
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
	serve haproxy -W -f "$work/haproxy.cfg" -p "$work/haproxy.pid" "$@"
}
reload_haproxy() {
	local i workers
	for i in 1 2; do
		workers=$(pgrep -P "${servers[-1]}" -x haproxy | head -1)
		kill -USR2 "${servers[-1]}"
		wait_until gone "$workers"
	done
	# another one takes the sockets of the first
	haproxy_generation -x "$work/log/haproxy.sock" -sf "$(pgrep -P "${servers[-1]}" -x haproxy | head -1)"
	wait_until has_one_worker
}
has_one_worker() {
	[ "$(pgrep -P "${servers[-1]}" -cx haproxy)" = 1 ]
}
gone() {
	[ ! -e "/proc/$1" ]
}
program_haproxy_reload() {
	(in_ns $b - /usr/bin/python3 -m http.server 8000 --bind 10.78.0.2 \
		--directory "$work/html") >/dev/null 2>&1 &
	servers+=($!)
	wait_until ip netns exec $b curl -s -o /dev/null http://10.78.0.2:8000/
	haproxy_generation
	await_port 8080
	load_during http://10.78.0.1:8080/ reload_haproxy
	ask $helper load http://10.78.0.1:8080/big 10
}

program_gunicorn() {
	cat >"$work/app.py" <<-'PY'
		def app(environ, start):
		    start("200 OK", [("Content-Type", "text/plain")])
		    return [b"answer " * 5000]
	PY
	serve gunicorn --chdir "$work" -w 3 -b 10.78.0.1:8001 --max-requests 30 \
		--user nobody --group nogroup --worker-tmp-dir /dev/shm app:app
	await_port 8001
	load_during http://10.78.0.1:8001/ reload_gunicorn
	ask $helper load http://10.78.0.1:8001/ 40
	pgrep -P "${servers[-1]}" | wc -l
}
reload_gunicorn() {
	local i worker
	for i in 1 2; do
		worker=$(pgrep -P "${servers[-1]}" | head -1)
		kill -HUP "${servers[-1]}"
		wait_until gone "$worker"
	done
}

# start_apache MPM
start_apache() {
	local modules=/usr/lib/apache2/modules
	cat >"$work/apache.conf" <<-CONF
		LoadModule mpm_$1_module $modules/mod_mpm_$1.so
		LoadModule authz_core_module $modules/mod_authz_core.so
		LoadModule dir_module $modules/mod_dir.so
		ServerName test
		ServerRoot $work
		PidFile $work/apache.pid
		ErrorLog $work/log/apache.log
		DefaultRuntimeDir $work/log
		Mutex file:$work/log
		User nobody
		Group nogroup
		Listen 10.78.0.1:8002
		DocumentRoot $work/html
		MaxConnectionsPerChild 20
		GracefulShutdownTimeout 5
	CONF
	serve apache2 -f "$work/apache.conf" -D FOREGROUND
	await_port 8002
}
reload_apache() {
	local i worker
	for i in 1 2; do
		worker=$(pgrep -P "${servers[-1]}" | head -1)
		kill -USR1 "${servers[-1]}"
		wait_until gone "$worker"
	done
}
apache() {
	start_apache "$1"
	load_during http://10.78.0.1:8002/ reload_apache
	ask $helper load http://10.78.0.1:8002/big $((30 * times))
}
program_apache_prefork() { apache prefork; }
program_apache_worker() { apache worker; }

program_php_fpm() {
	cat >"$work/fpm.conf" <<-CONF
		[global]
		error_log = $work/log/fpm.log
		daemonize = no
		[www]
		user = nobody
		group = nogroup
		listen = 10.78.0.1:9000
		pm = static
		pm.max_children = 3
		pm.max_requests = 20
		ping.path = /ping
	CONF
	serve php-fpm8.2 -n -y "$work/fpm.conf" -F
	await_port 9000
	ask $helper fastcgi 10.78.0.1 9000 $((100 * times))
	kill -USR2 "${servers[-1]}"
	await_processes php-fpm8.2 4
	ask $helper fastcgi 10.78.0.1 9000 30
}

# -- others --------------------------------------------------------------------------------

init_postgres() {
	postgres=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
	rm -rf "$work/pg"
	mkdir "$work/pg" && chown postgres "$work/pg"
	setpriv --reuid postgres --regid postgres --clear-groups "$postgres/initdb" -D "$work/pg/data" \
		-A trust -N -U postgres >/dev/null 2>&1 || echo "no cluster"
	echo "host all all 10.78.0.0/24 trust" >>"$work/pg/data/pg_hba.conf"
}
start_postgres() {
	[ -d "$work/pg/data" ] || init_postgres
	serve setpriv --reuid postgres --regid postgres --clear-groups "$postgres/postgres" -D "$work/pg/data" \
		-h 10.78.0.1 -k "$work/pg" -c fsync=off
	await_port 5432
	# it listens before it lets anybody in
	wait_until "$postgres/pg_isready" -q -h "$work/pg"
}
bench_postgres() {
	ask pgbench -q -i -s 1 -h 10.78.0.1 -U postgres postgres >/dev/null && echo filled
	ask pgbench -C -S -c 4 -j 2 -t $((25 * times)) -h 10.78.0.1 -U postgres postgres |
		grep -E 'processed|failed'
	ask pgbench -c 4 -j 2 -t $((25 * times)) -h 10.78.0.1 -U postgres postgres |
		grep -E 'processed|failed'
	ask psql -h 10.78.0.1 -U postgres postgres -Atc "select count(*), sum(length(repeat('x', i)))
		from generate_series(1, 3000) i"
}
program_postgres() {
	start_postgres
	bench_postgres
	ask psql -h 10.78.0.1 -U postgres postgres -Atc 'select count(*) from pgbench_history'
	ask psql -h 10.78.0.1 -U postgres postgres -c 'select pg_terminate_backend(pg_backend_pid())' \
		>/dev/null 2>&1
	echo "ended $?"
}
program_pgbench() {
	start_postgres
	bench_postgres
}

start_sshd() {
	local dir=$work/ssh
	mkdir -p "$dir" /run/sshd
	[ -e "$dir/key" ] || {
		ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
		ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
		cp "$dir/key.pub" "$dir/authorized"
	}
	serve /usr/sbin/sshd -D -e -p 2222 -f /dev/null -h "$dir/host" \
		-o ListenAddress=10.78.0.1 -o AuthorizedKeysFile="$dir/authorized" \
		-o StrictModes=no -o PidFile=none -o PermitRootLogin=yes -o UsePAM=no \
		-o MaxStartups=50 -o Subsystem="sftp internal-sftp"
	await_port 2222
	ssh_options="-i $dir/key -F /dev/null -o BatchMode=yes
		-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
		-o LogLevel=ERROR"
}
login() {
	ask ssh -p 2222 $ssh_options root@10.78.0.1 "echo in $1; exit 3" </dev/null
	echo "status $?"
}
program_sshd() {
	local i j
	start_sshd
	for i in $(seq $((2 * times))); do
		for j in 1 2 3 4 5; do login $j & done >"$work/logins"
		wait $(jobs -p %- %+ 2>/dev/null) 2>/dev/null
		wait_until logins_are_done
		sort "$work/logins" | uniq -c
	done
	ask scp -q -P 2222 $ssh_options "$work/html/big" "root@10.78.0.1:$work/ssh/copy" &&
		cmp "$work/html/big" "$work/ssh/copy" && echo copied
	ask scp -q -P 2222 $ssh_options "root@10.78.0.1:$work/ssh/copy" "$work/ssh/back" &&
		cmp "$work/html/big" "$work/ssh/back" && echo back
	ask ssh -p 2222 $ssh_options root@10.78.0.1 "sleep 1 & echo left behind" </dev/null
}
logins_are_done() {
	[ "$(grep -c status "$work/logins")" = 5 ]
}
# It goes to the background, and its forwarded port serves others.
program_ssh_forks() {
	start_sshd
	ask ssh -f -N -L 10.78.0.2:7100:10.78.0.1:2222 -o ExitOnForwardFailure=yes \
		-p 2222 $ssh_options root@10.78.0.1 </dev/null >/dev/null 2>&1
	echo "status $?"
	(in_ns $b - timeout 20 ssh -p 7100 $ssh_options root@10.78.0.2 'echo through') </dev/null 2>&1
	ask ssh -f -p 2222 $ssh_options root@10.78.0.1 "cat $work/html/big; echo end >$work/ssh/end" \
		</dev/null >"$work/ssh/forked"
	echo "status $?"
	wait_until [ -e "$work/ssh/end" ]
	wait_until cmp -s "$work/html/big" "$work/ssh/forked" && echo whole
	rm -f "$work/ssh/end"
}

program_inetd() {
	cat >"$work/inetd.conf" <<-CONF
		10.78.0.1:7010 stream tcp nowait root /usr/bin/tr tr a-z A-Z
		10.78.0.1:7011 stream tcp wait root /usr/bin/python3 python3 $srcdir/tests/system/tcp_servers.py waited
	CONF
	serve inetd -i "$work/inetd.conf"
	await_port 7010
	ask $helper lines 10.78.0.1 7010 $((20 * times))
	kill -HUP "${servers[-1]}"
	ask $helper lines 10.78.0.1 7010 5
	ask $helper lines 10.78.0.1 7011 3
}
program_socat_fork() {
	serve socat TCP-LISTEN:7002,bind=10.78.0.1,reuseaddr,fork,backlog=64 EXEC:"tr a-z A-Z"
	await_port 7002
	ask $helper lines 10.78.0.1 7002 $((20 * times))
}

program_redis_save() {
	serve redis-server --port 6379 --bind 10.78.0.1 --protected-mode no \
		--dir "$work/log" --save "" --appendonly no
	await_port 6379
	seq 3000 | sed 's/.*/set k& v&/' | ask redis-cli -h 10.78.0.1 --pipe | grep replies
	ask redis-benchmark -h 10.78.0.1 -q -n $((20000 * times)) -c 20 -t set,get -P 4 >"$work/bench" &
	for _ in 1 2 3; do
		ask redis-cli -h 10.78.0.1 bgsave
		wait_until is_saved
	done
	wait $!
	tr '\r' '\n' <"$work/bench" | grep -c 'requests per second'
	ask redis-cli -h 10.78.0.1 bgrewriteaof
	ask redis-cli -h 10.78.0.1 info persistence | grep -E 'rdb_last_bgsave_status'
	ask redis-cli -h 10.78.0.1 info stats | grep -E 'rejected_connections|evicted_keys'
	ask redis-cli -h 10.78.0.1 get k3000
}
is_saved() {
	(in_ns $b - redis-cli -h 10.78.0.1 info persistence) | grep -q 'rdb_bgsave_in_progress:0'
}

program_vsftpd() {
	cat >"$work/vsftpd.conf" <<-CONF
		listen=YES
		background=NO
		listen_address=10.78.0.1
		listen_port=2121
		anonymous_enable=YES
		anon_root=$work/html
		no_anon_password=YES
		connect_from_port_20=NO
		port_promiscuous=YES
		ftp_username=daemon
		secure_chroot_dir=$work/empty
		seccomp_sandbox=NO
		xferlog_enable=NO
		nopriv_user=nobody
	CONF
	mkdir -p "$work/empty"
	chmod 755 "$work/html"
	serve vsftpd "$work/vsftpd.conf"
	await_port 2121
	ask $helper ftp 10.78.0.1 2121 "$work/html/big" $((6 * times))
}

# The activator has the socket; who serves it is started with it as fd 3.
program_activation() {
	serve systemd-socket-activate -l 10.78.0.1:7005 -E LD_PRELOAD -E VMA_LOG_FILE \
		/usr/bin/python3 "$srcdir/tests/system/tcp_servers.py" serve activated - -
	await_port 7005
	ask $helper lines 10.78.0.1 7005 20
	serve systemd-socket-activate -a --inetd -l 10.78.0.1:7006 -E LD_PRELOAD \
		/usr/bin/tr a-z A-Z
	await_port 7006
	ask $helper lines 10.78.0.1 7006 10
}

python_server() {
	serve $helper serve "$1" 10.78.0.1 7020
	await_port 7020
	ask $helper lines 10.78.0.1 7020 $((40 * times))
}
program_pool() { python_server pool; }
program_passing() { python_server passing; }
program_double_fork() { python_server double_fork; }

terminate() {
	local status
	serve $helper serve writer 10.78.0.1 7021
	await_port 7021
	ask $helper count 10.78.0.1 7021 4 >"$work/counted" &
	wait_until has_written "$2"
	kill -"$1" "${servers[-1]}"
	wait "${servers[-1]}"
	status=$?
	wait $!
	echo "status $status"
	cat "$work/counted"
}
# To so many connections so far.
has_written() {
	[ "$(grep -c writing "$work/words")" = "$1" ]
}
program_terminated() {
	terminate TERM 4
	terminate INT 8
}

program_node_cluster() {
	cat >"$work/cluster.js" <<-'JS'
		const cluster = require("cluster"), http = require("http");
		if (cluster.isPrimary) {
			for (let i = 0; i < 3; i++) cluster.fork();
			cluster.on("message", (worker) => cluster.fork()
				.once("listening", () => worker.disconnect()));
		} else {
			let n = 0;
			http.createServer((req, res) => {
				res.end("y".repeat(30000));
				if (++n == 30) process.send("tired");
			}).listen(3001, "10.78.0.1");
		}
	JS
	serve node "$work/cluster.js"
	await_port 3001
	ask $helper load http://10.78.0.1:3001/ $((60 * times))
}

# -- clients ---------------------------------------------------------------------------------

program_wrk() {
	start_nginx
	ask wrk -t 2 -c 8 -d 1 http://10.78.0.1/ >"$work/wrk"
	grep -E 'errors|Non-2xx' "$work/wrk"
	grep -cE '^ +[0-9]{3,} requests' "$work/wrk"
}

# Subshells write and read in turns.
program_bash_tcp() {
	serve $helper serve pool 10.78.0.1 7020
	await_port 7020
	ask bash -c '
		exec 3<>/dev/tcp/10.78.0.1/7020
		echo from the shell >&3
		(echo from a child >&3; (echo from its child >&3))
		echo from the shell >&3
		/bin/echo from a program >&3
		read -r first <&3; echo "$first"
		(read -r line <&3; echo "child: $line")
		read -r line <&3; echo "$line"
		head -c 9 </dev/null; exec 4>&3
		echo last >&4; echo $(read -r line <&3; echo "$line"; read -r line <&3; echo "$line")
		exec 3>&- ; exec 4>&-'
	echo "status $?"
}

program_node_children() {
	serve $helper serve pool 10.78.0.1 7020
	await_port 7020
	cat >"$work/children.js" <<-'JS'
		const net = require("net"), child = require("child_process");
		const s = net.connect(7020, "10.78.0.1", () => {
			s.write("before\n");
			child.execSync("true");
			const c = child.spawn("sh", ["-c", "echo child; exit 4"]);
			c.stdout.on("data", d => s.write("says " + d));
			c.on("close", code => s.end("status " + code + "\n"));
		});
		s.on("data", d => process.stdout.write(d));
		s.on("close", () => child.fork(process.argv[1].replace("children", "forked")));
	JS
	cat >"$work/forked.js" <<-'JS'
		const net = require("net");
		const s = net.connect(7020, "10.78.0.1", () => s.end("from a fork\n"));
		s.on("data", d => process.stdout.write(d));
	JS
	ask node "$work/children.js"
}

program_java_children() {
	serve $helper serve pool 10.78.0.1 7020
	await_port 7020
	cat >"$work/Children.java" <<-'JAVA'
		import java.io.*;
		import java.net.*;

		public class Children {
			public static void main(String[] args) throws Exception {
				Socket s = new Socket("10.78.0.1", 7020);
				BufferedReader in = new BufferedReader(
					new InputStreamReader(s.getInputStream()));
				for (int i = 0; i < 5; i++) {
					Process p = new ProcessBuilder("sh", "-c", "echo child " + i).start();
					String line = new BufferedReader(
						new InputStreamReader(p.getInputStream())).readLine();
					s.getOutputStream().write((line + "\n").getBytes());
					System.out.println(in.readLine() + " " + p.waitFor());
				}
				s.close();
			}
		}
	JAVA
	ask java "$work/Children.java"
}

run_programs
