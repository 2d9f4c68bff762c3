#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SIGKILL under load, KILLS times: the next process is accelerated again, and once
# waitpid has returned nothing is left and the kernel has the traffic.
. "${srcdir:-.}/tests/system/udp_lab.sh"

program="/usr/bin/python3 $srcdir/tests/system/udp_kill.py"
kills=${KILLS:-6}
# whose start is timed
library=$builddir/src/.libs/libvma.so

rounds() {
	local runtime
	runtime=$(sanitizer_runtime)
	: >"$work/out"
	(in_ns $b - $program flood) >"$work/out" 2>&1 &
	server=$!
	wait_for ready "$work/out" || return 1
	export SERVER_PRELOAD=${runtime:+$runtime:}$library VMA_LOG_FILE=$work/log
	(in_ns $a - timeout $((60 + kills)) $program rounds "$kills" "$1") \
		>"$work/rounds" 2>&1
	local status=$?
	sed 's/^/# /' "$work/rounds" >&3
	[ $status = 0 ] || cat "$work/rounds"
	return $status
}
killed_under_load() {
	rounds alone
}
killed_under_load_while_a_child_lives() {
	rounds child
}

exec 3>&1
run_cases killed_under_load killed_under_load_while_a_child_lives
