#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Real servers over veth by ways in turn: the kernel's sockets at both ends, the server
# ours, and both ours. nginx without workers and redis, each asked by 50 connections; nginx
# with four workers, asked on connections that end with the answer, and how even the
# workers were (the busiest one's share of the mean); redis that saves all the time, which
# forks. Requests per second and the milliseconds of the 99th percentile, as wrk and
# redis-benchmark count them. Each end has a processor of its own, and nothing else should
# run. Prints medians and what they are of the kernel's, and how busy the client's processor
# was meanwhile: where that is all of it, no server can be faster.
# Usage: [ROUNDS=N] [SECONDS_EACH=N] [CONTESTS="NAME..."] tcp_servers.sh LIBRARY
set -eu
[ "$(nproc)" -ge 2 ] || { echo 'This takes two processors.' >&2; exit 1; }
. "$(dirname "$0")/udp_lab.sh"
library=$(preload_of "$1")
seconds=${SECONDS_EACH:-3}
head -c 1024 /dev/zero | tr '\0' x >"$work/page"
chmod 755 "$work"
# or a way meets what the one before has left in TIME_WAIT
for end in $a $b; do
	ip netns exec $end sysctl -qw net.ipv4.tcp_max_tw_buckets=256
done

# (at END WHOSE COMMAND...): becomes the command.
at() {
	namespace=$1 whose=$2 processor=0
	shift 2
	[ "$namespace" = "$a" ] || processor=1
	if [ "$whose" = ours ]; then
		export VMA_LOG_FILE="$work/log.$processor"
		exec ip netns exec "$namespace" taskset -c $processor \
			env LD_PRELOAD="$library" "$@"
	fi
	exec ip netns exec "$namespace" taskset -c $processor "$@"
}

# nginx_with WORKERS LOG: 0 is a single process.
nginx_with() {
	cat >"$work/nginx.conf" <<-END
		daemon off;
		$([ "$1" = 0 ] && echo "master_process off;" || echo "worker_processes $1;")
		pid $work/nginx.pid;
		error_log $work/nginx.error;
		events { worker_connections 2048; }
		http {
			log_format who \$pid;
			access_log $2;
			keepalive_requests 1000000;
			client_body_temp_path $work/body;
			proxy_temp_path $work/proxy;
			fastcgi_temp_path $work/fastcgi;
			uwsgi_temp_path $work/uwsgi;
			scgi_temp_path $work/scgi;
			server { listen 10.79.0.2:7010; root $work; }
		}
	END
}

# serve WHOSE COMMAND...: until its port is there. A listener is ours from its first wait on.
serve() {
	whose=$1
	shift
	(at $b "$whose" "$@") >"$work/server" 2>&1 &
	echo_pid=$!
	for look in $(seq 200); do
		ip netns exec $b grep -q ':1B62 .* 0A ' /proc/net/tcp && break
		sleep 0.02
	done
	sleep 0.5
}

# What the client's processor has done and not done since the start.
processor_times() {
	awk '$1 == "cpu0" { print $2 + $3 + $4 + $7 + $8 + $9, $5 + $6 }' /proc/stat
}
# client COMMAND...: runs it with its output in a file, and sets how busy its processor was.
client() {
	before=$(processor_times)
	(at $a "$@") >"$work/client" 2>&1 || true
	busy=$(echo "$before $(processor_times)" |
		awk '{ print ($3 - $1) / ($3 - $1 + $4 - $2) }')
}
# ask_wrk WHOSE [ARGUMENT...]: requests per second, the 99th percentile, and how busy.
ask_wrk() {
	client "$@" http://10.79.0.2:7010/page
	awk -v busy="$busy" '/99%/ { v = $2; sub(/[a-z]+$/, "", v)
	             p = $2 ~ /us$/ ? v / 1000 : $2 ~ /ms$/ ? v : v * 1000 }
	     /Requests\/sec/ { r = $2 }
	     /Socket errors/ { bad = 1; print > "/dev/stderr" }
	     END { if (r && !bad) print r, p, busy }' "$work/client"
}
ask_redis() {
	client "$1" redis-benchmark -h 10.79.0.2 -p 7010 -t get -c 50 \
		-n $((seconds * 40000)) --csv
	awk -F'"' -v busy="$busy" '$2 == "GET" { print $4, $14, busy }' "$work/client"
}

# What a round of each contest is: SERVER CLIENT
nginx() {
	nginx_with 0 off
	serve "$1" nginx -c "$work/nginx.conf" -p "$work"
	ask_wrk "$2" wrk -t 1 -c 50 -d "$seconds" --latency
}
redis() {
	serve "$1" redis-server --bind 10.79.0.2 --port 7010 --save '' \
		--protected-mode no --enable-debug-command yes --dir "$work"
	ask_redis "$2"
}
nginx_workers() {
	rm -f "$work/who"
	nginx_with 4 "$work/who who"
	serve "$1" nginx -c "$work/nginx.conf" -p "$work"
	figures=$(ask_wrk "$2" wrk -t 1 -c 50 -d "$seconds" --latency \
		-H 'Connection: close')
	echo "$figures $(sort "$work/who" | uniq -c |
		awk '{ sum += $1; if ($1 > most) most = $1 } END { if (sum) print 4 * most / sum }')"
}
redis_saves() {
	serve "$1" redis-server --bind 10.79.0.2 --port 7010 --save '' \
		--protected-mode no --enable-debug-command yes --dir "$work"
	ip netns exec $a redis-cli -h 10.79.0.2 -p 7010 debug populate 200000 >/dev/null
	(while sleep 0.3; do
		ip netns exec $a timeout 5 redis-cli -h 10.79.0.2 -p 7010 bgsave
	done) >"$work/saves" 2>&1 &
	saver=$!
	ask_redis "$2"
	kill $saver
	wait $saver 2>/dev/null || true
}

contests=${CONTESTS:-nginx redis nginx_workers redis_saves}
for round in $(seq "${ROUNDS:-5}"); do
	for contest in $contests; do
		for way in "theirs theirs" "ours theirs" "ours ours"; do
			figures=$($contest $way; end_server)
			echo_pid=
			echo "$contest $way ${figures:-failed}" >>"$work/results"
		done
	done
done
awk '
	function median(list,   v, k, i, j, t) {
		k = split(list, v, " ")
		for (i = 1; i <= k; i++) for (j = i + 1; j <= k; j++)
			if (v[j] + 0 < v[i] + 0) { t = v[i]; v[i] = v[j]; v[j] = t }
		return v[int((k + 1) / 2)]
	}
	{ name = $1 SUBSEP $2 " " $3 }
	!(name in cnt) { order[++n] = name; cnt[name] = 0 }
	$4 == "failed" { failed[name]++; next }
	{ cnt[name]++; for (i = 4; i <= NF; i++) all[name, i] = all[name, i] " " $i }
	END {
		for (i = 1; i <= n; i++) {
			name = order[i]; split(name, part, SUBSEP)
			base = part[1] SUBSEP "theirs theirs"
			ends = part[2] == "theirs theirs" ? "kernel" : part[2] == "ours theirs" ? "server ours" : "both ours"
			printf "%-14s %-12s", part[1], ends
			if (cnt[name] && cnt[base])
				printf " %8d per second  %.2f   p99 %7.2f ms  %.2f",
				       median(all[name, 4]), median(all[name, 4]) / median(all[base, 4]),
				       median(all[name, 5]), median(all[name, 5]) / median(all[base, 5])
			if (cnt[name]) printf "   client %3.0f %% busy", 100 * median(all[name, 6])
			if ((name, 7) in all) printf "   busiest %.2f", median(all[name, 7])
			if (failed[name]) printf "   %d runs failed", failed[name]
			printf "\n"
		}
	}' "$work/results"
