#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each scenario on libc, preloaded, and with the test kind of socket; the outputs
# must be the same. Random sequences of operations run with several seeds.
. "${srcdir:-.}/tests/support/preload.sh"

program=$builddir/tests/shim/scenarios
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
export VMA_LOG_FILE=$work/log

run() {
	timeout -k 5 60 "$@" </dev/null 2>&1 || echo "exit $?"
}

on_object() {
	SHIM_TEST_KIND=1 preloaded "$library" timeout -k 5 60 "$program" "$1" \
		</dev/null 2>&1 || echo "exit $?"
}

# The thread sanitizer keeps a handler until the call it interrupts returns, which
# it does not here; and runs it wherever it likes then, inside our bracket too.
needs_prompt_handlers() {
	case $1 in
	restarted_with_sa_restart | handler_jumps_out_of_a_wait) ;;
	*) false ;;
	esac
}

# compare NAME SCENARIO
compare() {
	local diff
	if is_thread_sanitized && needs_prompt_handlers "$2"; then
		tap_skip "$1" "not under a sanitizer"
		return
	fi
	run "$program" "$2" >"$work/libc"
	preloaded "$library" timeout -k 5 60 "$program" "$2" </dev/null \
		>"$work/preloaded" 2>&1 || echo "exit $?" >>"$work/preloaded"
	on_object "$2" >"$work/as_object"
	diff=$(diff "$work/libc" "$work/preloaded" &&
		diff "$work/libc" "$work/as_object")
	if [ -z "$diff" ] && [ -s "$work/libc" ] &&
		! grep '^exit ' "$work/libc"; then
		tap_ok "$1"
	else
		tap_not_ok "$1" "$diff"
	fi
}

for scenario in $("$program" --list | grep -v random_operations); do
	compare "$scenario" "$scenario"
done
for seed in ${SCENARIO_SEED:-1 2 3 4 5 6}; do
	SCENARIO_SEED=$seed
	export SCENARIO_SEED
	compare "random_operations_seed_$seed" random_operations
done
tap_end
