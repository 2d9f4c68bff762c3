# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the tests that run programs of several processes over a cable: the lab of
# tcp_lab.sh, how a server and a client are started, and how all of them are run on the
# kernel and under the library. The sourcing script has a table in $programs, a function
# program_NAME for each line of it, and in $long the names of those that only `make
# check-servers` runs. The lines may say who carries the frames (carriers.sh).
#
# CASES="NAME...": only these. SERVERS_ALL=1: those that take long, or need packages of the
# kind `servers` in contrib/packages.txt, too, and more of each.
. "${srcdir:-.}/tests/system/tcp_lab.sh"
. "${srcdir:-.}/tests/system/carriers.sh"

times=${SERVERS_ALL:+10}
times=${times:-1}

make_files() {
	chmod 755 "$work" && mkdir -p "$work/html" "$work/log" && chmod 777 "$work/log" &&
		head -c 20000 "$srcdir/HACKING.md" >"$work/html/index.html" &&
		head -c 3000000 </dev/urandom >"$work/html/big" && chmod -R a+rX "$work"
}

# serve COMMAND...: in a.
serve() {
	# Apache ends its whole group
	(in_ns $a "$server_log" setsid "$@") >>"$work/words" 2>&1 </dev/null &
	servers+=($!)
}
# ask COMMAND...: in b.
ask() {
	(in_ns $b "$client_log" timeout -k 5 60 "$@") 2>>"$work/words"
}
# The log has a file for each process, which all users may write.
is_listening() {
	ip netns exec $a grep -qE ":$1 0{8,32}:0000 0A" /proc/net/tcp /proc/net/tcp6
}
# await_port PORT: until a server listens there, and until that is ours if all of it is to be.
await_port() {
	wait_until is_listening "$(printf '%04X' "$1")" || tail -3 "$work/words"
	[ "$server_log" = - ] || [ "$(field_of "$program" 3)" != ours ] ||
		wait_until grep -qs "are accepted by us" "$work"/log/a.*.vma
}
# How many processes of this name are in a, once there are so many.
has_processes() {
	[ "$(processes "$1")" = "$2" ]
}
processes() {
	ip netns pids $a | while read -r pid; do cat "/proc/$pid/comm" 2>/dev/null; done |
		grep -cx "$1"
}
await_processes() {
	wait_until has_processes "$1" "$2" >/dev/null
	echo "$1: $(processes "$1")"
}

# run_way OUTPUT PROGRAM SERVER_LOG CLIENT_LOG
run_way() {
	local output=$work/$1
	server_log=$3 client_log=$4
	servers=()
	: >"$work/words"
	rm -f "$work"/log/*.vma
	mark_frames
	"program_$2" >"$output" 2>&1
	ask_why
	stop_servers >>"$output" 2>&1
	[ "$3" = - ] || check_share $a "$(field_of "$2" 3)" >>"$output"
	[ "$4" = - ] || check_share $b "$(field_of "$2" 4)" >>"$output"
	cp "$work/words" "$work/words.$1"
}

# Whether what is wrong with a test of programs is wrong with the kernel's run of it.
went_wrong_on_the_kernel() {
	grep -E '^not: |Error|timed out' "$work/kernel" >"$work/bad"
}

# run_program NAME END: on the kernel, and under the library at this end, or, if it is
# `all`, at the server's, the client's and both.
run_program() {
	local server=log/a.%d.vma client=log/b.%d.vma outputs=
	run_way kernel "$1" - -
	case $2 in server | all) run_way server "$1" $server - && outputs+=" $work/server" ;; esac
	case $2 in client | all) run_way client "$1" - $client && outputs+=" $work/client" ;; esac
	case $2 in all) run_way both "$1" $server $client && outputs+=" $work/both" ;; esac
	if went_wrong_on_the_kernel; then
		tap_not_ok "$1" "on the kernel: $(cat "$work/bad" "$work/words.kernel")"
		return 1
	fi
	# shellcheck disable=SC2086
	tap_alike "$1" "$work/kernel" $outputs
}

# field_of PROGRAM N: of its line in the table.
field_of() {
	awk -v name="$1" -v n="$2" '$1 == name { print $n }' <<<"$programs"
}

# Why programs of several processes cannot be tried here.
why_not() {
	if [ "$(id -u)" != 0 ]; then
		echo "needs root"
	elif [ "${SANITIZERS:-none}" != none ]; then
		echo "not under a sanitizer"
	fi
}

run_programs() {
	local program why different=
	why=$(why_not)
	[ -z "$why" ] || { tap_skip all_servers "$why"; tap_end; return; }
	make_lab && make_files ||
		{ tap_not_ok lab "cannot make the namespaces"; tap_end; return; }
	for program in ${CASES:-$(awk '{ print $1 }' <<<"$programs")}; do
		[ -z "${CASES:-}${SERVERS_ALL:-}" ] && grep -qw "$program" <<<"$long" && continue
		run_program "$program" "$(field_of "$program" 2)" || different+=" $program"
	done
	[ -n "$different" ] && tap_not_ok all_servers "$different" || tap_ok all_servers
	tap_end
}
