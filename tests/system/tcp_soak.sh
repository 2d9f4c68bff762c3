#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Servers under the library over a cable that loses, doubles and reorders. Their clients are
# the kernel's, and keep each busy for SOAK seconds (make soak-tcp-programs: ten minutes).
# What nginx and redis say is checked, most segments are ours, and when the clients have gone
# the server has no more fds than before, no connections, and no more frames than its rings
# and its stack need.
#
# CASES="NAME...": only these. SEED: the cable's.
. "${srcdir:-.}/tests/system/cable_lab.sh"

helper="/usr/bin/python3 $srcdir/tests/system/tcp_soak.py"
stats=$builddir/tools/vma_stats/vma_stats
soak=${SOAK:-3}
# In ppm; the delay in microseconds.
cable=${CABLE:-"loss=10000 dup=10000 reorder=10000 delay=200"}
carriers='
iperf3          ours
nginx           ours
redis           ours
'
reports=$work/report
export ASAN_OPTIONS=log_path=$reports UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports

make_files() {
	mkdir -p "$work/html" &&
		openssl enc -aes-128-ctr -K 0 -iv 0 -in /dev/zero 2>/dev/null |
		head -c 300000 >"$work/html/2" &&
		head -c 20000 "$work/html/2" >"$work/html/1" &&
		head -c 300 "$work/html/2" >"$work/html/0" &&
		chmod -R a+rX "$work"
}

# -- the server ------------------------------------------------------------------------

is_listening() {
	ip netns exec $a grep -qE ":$1 0{8}:0000 0A" /proc/net/tcp
}
# serve PORT COMMAND...: in a.
serve() {
	local port=$1
	shift
	rm -f "$work/a.log"
	(in_ns $a a.log "$@") >"$work/words" 2>&1 </dev/null &
	server=$!
	wait_until is_listening "$(printf '%04X' "$port")" ||
		{ cat "$work/words"; return 1; }
}
# ask COMMAND...: in b. The command has an end of its own.
ask() {
	(in_ns $b - timeout -k 5 $((soak + 60)) "$@") 2>&1
}
# Without the eventfds: a thread that sleeps has one, and it is kept for the next that does.
fds() {
	ls -l "/proc/$server/fd" | grep -cv 'eventfd]$'
}
connections() {
	"$stats" -p "$server" -v 5 -c 1 | grep '^tcp' | grep -cv LISTEN
}
frames_held() {
	"$stats" -p "$server" -v 3 -c 1 |
		awk '/^Size:/ { print $4 - $2 }'
}
# mark_server COMMAND...: a first call, by which the listener is ours at the latest, and one that
# is ours for certain: some fds stay that the first of those needs.
mark_server() {
	"$@" && wait_for "are accepted by us" "$work/a.log" && "$@" &&
		wait_until has_no_connections || return 1
	fds_before=$(fds)
	mark_carriers
}
has_no_connections() {
	[ "$(connections)" = 0 ]
}
# Of the frames a ring may have 2048 to receive into and 1024 to send, as many as it has once
# needed, and the stack some magazines.
frames_max=$((2048 + 1024 + 512))
has_calmed_down() {
	[ "$(fds)" -le "$fds_before" ] && [ "$(connections)" = 0 ] &&
		[ "$(frames_held)" -le $frames_max ]
}
# Nothing is left of the clients. What was lost is sent again for a while.
nothing_leaked() {
	local until=$((SECONDS + 30))
	until has_calmed_down; do
		if [ $SECONDS -ge $until ]; then
			echo "fds $fds_before, then $(fds);" \
				"connections $(connections); frames $(frames_held)"
			return 1
		fi
		sleep 0.5
	done
}

# -- the programs: each serves, warms up, and then asks until the time is over ----------

load() {
	ask iperf3 -c 10.78.0.1 -J "$@" >"$work/iperf" ||
		{ cat "$work/iperf"; return 1; }
}
program_iperf3() {
	local way
	serve 5201 iperf3 -s -B 10.78.0.1 && mark_server load -t 1 || return 1
	for way in "" "-R" "--bidir -P 2"; do
		load -t $(((soak + 2) / 3)) $way && $helper iperf3 "$work/iperf" ||
			return 1
	done
}

# Whose client has gone without a word ends by itself.
program_nginx() {
	cat >"$work/nginx.conf" <<-CONF
		daemon off; master_process off; pid $work/pid; user root;
		error_log $work/error.log; events { worker_connections 256; }
		http { access_log off; client_body_temp_path $work;
			proxy_temp_path $work; fastcgi_temp_path $work;
			uwsgi_temp_path $work; scgi_temp_path $work;
			keepalive_timeout 5; keepalive_requests 1000000;
			server { listen 10.78.0.1:80; root $work/html; sendfile on; } }
	CONF
	cat >"$work/check.lua" <<-LUA
		local threads, right = {}, {}
		function setup(thread) table.insert(threads, thread) end
		function init(args)
			asked, good, wrong = 0, 0, 0
			for i = 0, 2 do
				local file = io.open("$work/html/" .. i, "rb")
				local all = file:read("*a")
				file:close()
				right[#all] = all
			end
		end
		function request()
			asked = asked + 1
			return wrk.format("GET", "/" .. asked % 3)
		end
		function response(status, headers, body)
			if status == 200 and right[#body] == body then
				good = good + 1
			else
				wrong = wrong + 1
			end
		end
		function done(summary)
			local good, wrong = 0, 0
			for _, thread in ipairs(threads) do
				good = good + thread:get("good")
				wrong = wrong + thread:get("wrong")
			end
			for _, cnt in pairs(summary.errors) do wrong = wrong + cnt end
			print("# answers " .. good .. ", wrong " .. wrong)
		end
	LUA
	serve 80 nginx -c "$work/nginx.conf" &&
		mark_server ask curl -s -o /dev/null http://10.78.0.1/2 || return 1
	ask wrk -t 2 -c 16 -d "$soak" --timeout 30 -s "$work/check.lua" \
		http://10.78.0.1/ >"$work/wrk"
	grep '^# answers' "$work/wrk"
	grep -q '^# answers [1-9][0-9]*, wrong 0$' "$work/wrk" ||
		{ cat "$work/wrk"; return 1; }
}

program_redis() {
	local noise
	serve 6379 redis-server --port 6379 --bind 10.78.0.1 --protected-mode no \
		--dir "$work" --save "" --tcp-keepalive 1 &&
		mark_server ask redis-cli -h 10.78.0.1 ping >/dev/null || return 1
	(in_ns $b - timeout "$soak" redis-benchmark -h 10.78.0.1 -q -l -c 8 -P 4 \
		-n 100000 -d 1000 -t set,get,lrange_100) >"$work/noise" 2>&1 &
	noise=$!
	ask $helper redis 10.78.0.1 6379 "$soak" || return 1
	wait $noise
	# ended by the time, not by an answer that it did not like
	[ $? = 124 ] || { tr '\r' '\n' <"$work/noise" | tail -3; return 1; }
}

# -- all of them ---------------------------------------------------------------------------

# Its last breath may be a report.
stop_server() {
	kill "$server"
	wait "$server" 2>/dev/null
	server=
}
# For whoever looks for the reason.
how_it_is() {
	"$stats" -p "$server" -v 3 -c 1
	grep -v '\[VMA_\|VMA INFO: VMA_\|[*]' "$work/a.log" | tail -15
}
# run PROGRAM
run() {
	local carried bad=0
	rm -f "$reports"*
	"program_$1" && nothing_leaked || bad=1
	carried=$(check_carrier "$1" $a)
	[ -z "$carried" ] || { echo "$carried"; bad=1; }
	kill -0 "$server" 2>/dev/null || { cat "$work/words"; bad=1; }
	[ $bad = 0 ] || how_it_is
	stop_server
	! cat "$reports"* 2>/dev/null || bad=1
	return $bad
}

if ! why=$(lab_is_possible); then
	tap_skip all_programs "$why"
	tap_end
	exit
fi
make_cable_lab "${SEED:-1}" && make_files ||
	{ tap_not_ok lab "cannot make the namespaces"; tap_end; exit; }
bad=
for program in ${CASES:-$(cases)}; do
	if run "$program" >"$work/$program.said" 2>&1; then
		grep '^#' "$work/$program.said"
		tap_ok "$program"
	else
		tap_not_ok "$program" "$(cat "$work/$program.said")"
		bad+=" $program"
	fi
done
end_cable
sed "s/^/# /" "$work/cable"
[ -n "$bad" ] && tap_not_ok all_programs "$bad" || tap_ok all_programs
tap_end
