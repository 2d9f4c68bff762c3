#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The library at unusual moments, and what it says when. See moments.c.
. "${srcdir:-.}/tests/support/preload.sh"

moments=$builddir/tests/shim/moments
library=${SHIM_LIBRARY:-$builddir/src/.libs/libvma.so}
early=$builddir/tests/shim/.libs/early.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"

# expect TEXT COMMAND...: stdout is TEXT.
expect() {
	local want=$1 got
	shift
	got=$("$@" 2>"$work/stderr") || echo "exit $?"
	[ "$got" = "$want" ] || { printf 'got:\n%s\nwant:\n%s\n' "$got" "$want"
		cat "$work/stderr"; return 1; }
}

lines_with() {
	grep -c -- "$1" "$2"
}

program_without_sockets_is_left_alone() {
	local want
	want=$("$moments" idle)
	expect "$want" preloaded "$library" "$moments" idle &&
		{ [ ! -s "$work/stderr" ] || { cat "$work/stderr"; return 1; }; }
}

banner_comes_once_at_the_first_socket() {
	expect "5 sockets" preloaded "$library" env VMA_TCP=0 "$moments" sockets 5 ||
		return 1
	[ "$(lines_with VMA_VERSION: "$work/stderr")" = 1 ] &&
		[ "$(lines_with 'TCP sockets stay with the kernel: VMA_TCP=0' \
			"$work/stderr")" = 1 ] || { cat "$work/stderr"; return 1; }
}

details_come_at_load() {
	VMA_TRACELEVEL=details preloaded "$library" "$moments" idle \
		>/dev/null 2>"$work/stderr"
	[ "$(lines_with VMA_VERSION: "$work/stderr")" = 1 ] ||
		{ cat "$work/stderr"; return 1; }
}

threads_begin_and_end() {
	local want
	want=$("$moments" threads)
	expect "$want" preloaded "$library" "$moments" threads
}

dlopen_as_the_manual_shows() {
	expect "ours is another
bind 0
close 0" "$moments" dlopen "$library"
}

calls_before_and_after_main() {
	local want order
	want=$(LD_PRELOAD=$early "$moments" sockets 1)
	for order in "$library:$early" "$early:$library"; do
		expect "$want" timeout 20 env VMA_LOG_FILE=/dev/null \
			LD_PRELOAD="$order" "$moments" sockets 1 || return 1
	done
}

other_allocator_before_or_after() {
	local jemalloc
	jemalloc=$(ldconfig -p | awk '/libjemalloc.so.2 / { print $NF; exit }')
	[ -n "$jemalloc" ] || { echo "libjemalloc.so.2 is missing"; return 1; }
	for order in "$library:$jemalloc" "$jemalloc:$library"; do
		expect "3 sockets" timeout 20 env VMA_LOG_FILE=/dev/null \
			LD_PRELOAD="$order" "$moments" sockets 3 || return 1
	done
}

address_sanitizer_before() {
	printf '%s\n' '#include <stdlib.h>' '#include <stdio.h>' \
		'#include <sys/socket.h>' '#include <unistd.h>' \
		'int main(void) { char *p = malloc(9); int fd = socket(2, 2, 0);' \
		'  p[8] = 1; printf("%d %d\n", fd > 0, close(fd)); free(p); return 0; }' \
		>"$work/a.c"
	gcc -fsanitize=address -o "$work/a" "$work/a.c" || return 1
	expect "1 0" env VMA_LOG_FILE=/dev/null \
		LD_PRELOAD="$(gcc -print-file-name=libasan.so):$library" "$work/a"
}

# A program that the kernel holds to be more than its user, linked with the library,
# since the loader preloads nothing there. euid and uid that differ at exec are what
# a set-user-ID file makes.
environment_is_nothing_to_a_set_user_id_program() {
	printf '%s\n' '#include <stdio.h>' \
		'#include <sys/auxv.h>' '#include <sys/socket.h>' \
		'int main(void) { int fd = socket(2, 2, 0);' \
		'  printf("secure %lu, %d\n", getauxval(AT_SECURE), fd > 0);' \
		'  return 0; }' >"$work/s.c"
	gcc -o "$work/s" "$work/s.c" -Wl,--no-as-needed "$library" \
		-Wl,-rpath,"$(dirname "$library")" || return 1
	export VMA_LOG_FILE=$work/secure.log VMA_TRACELEVEL=details
	expect "secure 1, 1" setpriv --ruid 65534 "$work/s" || return 1
	[ ! -e "$VMA_LOG_FILE" ] && grep -q VMA_VERSION: "$work/stderr" &&
		! grep -q 'VMA DETAILS:' "$work/stderr" || { cat "$work/stderr"; return 1; }
	expect "secure 0, 1" "$work/s" || return 1
	grep -q 'VMA DETAILS:' "$VMA_LOG_FILE"
}

daemon_that_closes_everything_goes_on_logging() {
	VMA_TCP=0 VMA_TRACELEVEL=debug VMA_LOG_FILE=$work/daemon.log \
		preloaded "$library" "$moments" daemon >"$work/out" 2>&1
	for _ in $(seq 100); do
		grep -q 'a daemon' "$work/out" && break
		sleep 0.05
	done
	[ "$(lines_with 'stays with the kernel' "$work/daemon.log")" -ge 2 ] ||
		{ cat "$work/daemon.log" "$work/out"; return 1; }
}

# What `take` finds of the number that the library keeps for its log.
out_of_reach="before: 0
close: -1 EBADF
write: -1 EBADF
dup: -1 EBADF
fdopen: -1 EBADF
dup2: 1
now mine: 1
close: 0"
log_file_is_out_of_reach() {
	local fd
	# The fd is the lowest number the library keeps for itself.
	VMA_LOG_FILE=$work/take.log expect "$out_of_reach" preloaded "$library" "$moments" take 2048
}

# in_a_dev COMMAND...: with a /dev of its own, and a daemon at /dev/log, whose lines go to
# $work/syslog.
in_a_dev() {
	mkdir -p "$work/dev"
	unshare --mount bash -c '
		mount --bind /dev "$1" && mount -t tmpfs dev /dev || exit 1
		for node in null zero urandom; do
			touch /dev/$node && mount --bind "$1/$node" /dev/$node
		done
		shift
		exec python3 -c "
import socket, subprocess, sys
daemon = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
daemon.bind(\"/dev/log\")
daemon.setblocking(False)
subprocess.run(sys.argv[2:], check=True)
with open(sys.argv[1], \"w\") as f:
    try:
        while True:
            print(daemon.recv(4096).decode(), file=f)
    except BlockingIOError:
        pass
" "$@"' - "$work/dev" "$work/syslog" "$@"
}

# The fd is the lowest number the library keeps for itself, and the program's are as without.
syslog_gets_the_log() {
	local program=${moments##*/}
	echo 'log destination syslog' >"$work/rules"
	in_a_dev timeout -k 5 20 env VMA_CONFIG_FILE="$work/rules" LD_PRELOAD="$library" \
		"$moments" take 2048 >"$work/out" 2>&1
	[ "$(cat "$work/out")" = "$out_of_reach" ] && grep -q "^<14>$program:  VMA INFO: VMA_VERSION" "$work/syslog" ||
		{ cat "$work/out" "$work/syslog"; return 1; }
}

new_namespace_is_a_reason() {
	VMA_TRACELEVEL=debug preloaded "$library" "$moments" "${1:-namespace}" \
		>/dev/null 2>"$work/stderr"
	grep -q 'stays with the kernel: the network namespace has changed' \
		"$work/stderr" || { cat "$work/stderr"; return 1; }
}

new_namespace_by_number_is_a_reason() {
	new_namespace_is_a_reason namespace_by_number
}

other_namespace_is_no_reason() {
	! new_namespace_is_a_reason other_namespace >/dev/null &&
		grep -q 'The log level is DEBUG' "$work/stderr"
}

switched_off_is_a_reason() {
	VMA_OFFLOADED_SOCKETS=0 VMA_TRACELEVEL=debug preloaded "$library" \
		"$moments" sockets 1 >/dev/null 2>"$work/stderr"
	grep -q 'stays with the kernel: VMA_OFFLOADED_SOCKETS=0' "$work/stderr"
}

rule_is_a_reason() {
	printf 'application-id moments *\nuse os tcp_server *:*\nuse os tcp_client *:*:*:*\n' \
		>"$work/conf"
	VMA_CONFIG_FILE=$work/conf VMA_TRACELEVEL=debug preloaded "$library" \
		"$moments" sockets 1 >/dev/null 2>"$work/stderr"
	grep -q 'stays with the kernel: a rule for this program says so' \
		"$work/stderr" || { cat "$work/stderr"; return 1; }
}

missing_rules_file_is_said_once() {
	VMA_CONFIG_FILE=/no/such/file preloaded "$library" "$moments" sockets 2 \
		>/dev/null 2>"$work/stderr"
	[ "$(lines_with 'WARNING.*/no/such/file' "$work/stderr")" = 1 ] ||
		{ cat "$work/stderr"; return 1; }
}

rules_file_says_where_to_log() {
	printf 'log destination file %s min-level 1\nuse os tcp_server *:80\n' \
		"$work/by-rule.log" >"$work/conf"
	VMA_CONFIG_FILE=$work/conf preloaded "$library" "$moments" sockets 1 \
		>/dev/null 2>"$work/stderr"
	grep -q VMA_VERSION: "$work/by-rule.log" &&
		grep -q 'use os tcp_server' "$work/stderr" ||
		{ cat "$work/stderr"; return 1; }
}

unwritable_log_file_is_one_line() {
	VMA_LOG_FILE=/no/such/dir/log preloaded "$library" "$moments" sockets 1 \
		>/dev/null 2>"$work/stderr"
	[ "$(lines_with 'WARNING.*/no/such/dir/log' "$work/stderr")" = 1 ] ||
		{ cat "$work/stderr"; return 1; }
}

signal_during_the_start_is_harmless() {
	expect "lines came, handlers ran" preloaded "$library" timeout 20 \
		"$moments" callback
}

# Its stdout is a pipe, which the limit on files is not for.
who_says_nothing_ends_by_no_signal() {
	local want
	want=$("$moments" mute)
	expect "$want" preloaded "$library" "$moments" mute || return 1
	# where the log is a file, as with any user who cannot write any more
	VMA_LOG_FILE=$work/mute.log VMA_STATS_FILE=$work/mute.stats \
		VMA_STATS_SHMEM_DIR=$work expect "$want" preloaded "$library" \
		"$moments" mute
}

exec_is_flushed_and_starts_anew() {
	VMA_TRACELEVEL=debug preloaded "$library" "$moments" exec "$moments" \
		sockets 1 >/dev/null 2>"$work/stderr"
	[ "$(lines_with VMA_VERSION: "$work/stderr")" = 2 ] &&
		[ "$(lines_with 'process image ends' "$work/stderr")" = 1 ] ||
		{ cat "$work/stderr"; return 1; }
}

# The user has said it to the program that was started, and what it does to its own
# environment is no answer to that.
environment_of_the_start_counts_when_it_is_cleared() {
	local way
	for way in cleared no_environment; do
		VMA_OFFLOADED_SOCKETS=junk VMA_LOG_FILE=$work/$way.log expect "still here" \
			preloaded "$library" "$moments" $way || return 1
		[ "$(lines_with 'WARNING.*VMA_OFFLOADED_SOCKETS.*junk' "$work/$way.log")" = 1 ] ||
			{ cat "$work/$way.log" "$work/stderr"; return 1; }
	done
}

# Without us it does not see the difference.
same_as_alone() {
	local want
	want=$("$moments" "$@" 2>/dev/null)
	expect "$want" preloaded "$library" timeout -k 1 60 "$moments" "$@"
}

forks_in_a_handler_of_a_fork() {
	same_as_alone forks && same_as_alone filtered_forks
}

children_may_be_cancelled() {
	same_as_alone cancelled
}

filter_of_the_launcher_is_found_out() {
	local call
	for call in bpf rt_sigpending; do
		same_as_alone filtered $call || return 1
		grep -q "Sockets stay with the kernel: a filter of system calls" \
			"$work/stderr" || { cat "$work/stderr"; return 1; }
	done
	VMA_OFFLOADED_SOCKETS=0 same_as_alone filtered rt_sigpending
}

data_at_the_number_of_stderr_stays_the_programs() {
	same_as_alone no_stderr
}

connection_in_place_of_stderr_hears_the_program_alone() {
	same_as_alone inetd
}

bad_value_is_one_line() {
	VMA_RX_POLL=junk preloaded "$library" "$moments" sockets 1 \
		>/dev/null 2>"$work/stderr"
	[ "$(lines_with 'WARNING.*VMA_RX_POLL.*junk' "$work/stderr")" = 1 ] ||
		{ cat "$work/stderr"; return 1; }
}

# As in a program that is started by the one whose function it is.
function_of_another_program_is_not_called() {
	local address want
	want=$("$moments" sockets 1)
	for address in 0x1000 0x7ffffffff000; do
		VMA_LOG_CB_FUNC_PTR=$address expect "$want" preloaded "$library" \
			"$moments" sockets 1 || return 1
		[ "$(lines_with "WARNING.*VMA_LOG_CB_FUNC_PTR=$address" "$work/stderr")" = 1 ] ||
			{ cat "$work/stderr"; return 1; }
	done
	VMA_LOG_FILE=$work/called.log expect "$want" preloaded "$library" env \
		VMA_LOG_CB_FUNC_PTR=$address "$moments" sockets 1 || return 1
	[ "$(lines_with "VMA_LOG_CB_FUNC_PTR=$address" "$work/called.log")" = 1 ]
}

# Two switches that are off by default and do nothing yet; as many as there are.
options_without_effect_are_named() {
	local names name
	names=$(tr -d '\n' <"$srcdir/src/conf/options.def" |
		grep -oE 'OPTION\(flag, \w+, "VMA_\w+",\s*LATER,\s*false' |
		sed 's/.*"\(.*\)".*/\1/' | head -2)
	[ -n "$names" ] || return 0
	for name in $names; do
		export "$name=1"
	done
	preloaded "$library" "$moments" sockets 1 >/dev/null 2>"$work/stderr"
	for name in $names; do
		grep -i 'not effective yet' "$work/stderr" | grep -q "$name" ||
			{ cat "$work/stderr"; return 1; }
	done
}

sanitized='syslog_gets_the_log filter_of_the_launcher_is_found_out forks_in_a_handler_of_a_fork program_without_sockets_is_left_alone dlopen_as_the_manual_shows
calls_before_and_after_main other_allocator_before_or_after
address_sanitizer_before environment_is_nothing_to_a_set_user_id_program'
needs_root='syslog_gets_the_log new_namespace_is_a_reason new_namespace_by_number_is_a_reason
other_namespace_is_no_reason
environment_is_nothing_to_a_set_user_id_program'
for case in ${CASES:-program_without_sockets_is_left_alone \
	banner_comes_once_at_the_first_socket details_come_at_load \
	threads_begin_and_end dlopen_as_the_manual_shows \
	calls_before_and_after_main other_allocator_before_or_after \
	address_sanitizer_before daemon_that_closes_everything_goes_on_logging \
	log_file_is_out_of_reach switched_off_is_a_reason rule_is_a_reason \
	missing_rules_file_is_said_once rules_file_says_where_to_log \
	unwritable_log_file_is_one_line \
	signal_during_the_start_is_harmless who_says_nothing_ends_by_no_signal exec_is_flushed_and_starts_anew \
	forks_in_a_handler_of_a_fork children_may_be_cancelled filter_of_the_launcher_is_found_out \
	data_at_the_number_of_stderr_stays_the_programs \
	connection_in_place_of_stderr_hears_the_program_alone \
	environment_of_the_start_counts_when_it_is_cleared bad_value_is_one_line function_of_another_program_is_not_called \
	options_without_effect_are_named $needs_root}; do
	if [ "${SANITIZERS:-none}" != none ] && grep -qw "$case" <<<"$sanitized"; then
		tap_skip "$case" "not under a sanitizer"
	elif [ "$(id -u)" != 0 ] && grep -qw "$case" <<<"$needs_root"; then
		tap_skip "$case" "needs root"
	else
		tap_check "$case" "$case"
	fi
done
tap_end
