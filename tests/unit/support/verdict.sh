#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The verdict of contrib/check over results made up for it.
. "${srcdir:-.}/tests/support/preload.sh"

top=$(cd "$srcdir" && pwd)
. "$top/contrib/verdict.sh"
say() {
	printf '== %s\n' "$*"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# verdict_of STATUS LINE...: of a make that ends with STATUS and leaves a test's
# log with these lines.
verdict_of() {
	local status=$1
	shift
	mkdir -p "$work/tests" "$work/check-other"
	printf '%s\n' "$@" >"$work/tests/a.log"
	# Another build's results do not count.
	echo 'FAIL: tests/b 1 - of_another_build' >"$work/check-other/b.log"
	touch "$work/check-other/b.trs"
	printf 'all:\n\t@touch tests/a.trs; exit %s\n' "$status" >"$work/Makefile"
	(cd "$work" && verdict all 2>&1)
}

# says TEXT STATUS LINE...: the verdict has that last line.
says() {
	local want=$1
	shift
	[ "$(verdict_of "$@" | tail -1)" = "$want" ]
}

passes_are_counted() {
	says '2 passed, 0 failed, 0 skipped' 0 'PASS: tests/a 1 - x' \
		'PASS: tests/a 2 - y' && verdict_of 0 'PASS: tests/a 1 - x'
}

failure_is_named_and_counted() {
	says '1 passed, 1 failed, 0 skipped' 1 'PASS: tests/a 1 - x' \
		'FAIL: tests/a 2 - y' || return 1
	verdict_of 1 'FAIL: tests/a 2 - y' | grep -qx 'tests/a 2 - y' &&
		! verdict_of 0 'PASS: tests/a 1 - x' 'FAIL: tests/a 2 - y'
}

declared_skip_is_fine() {
	says '1 passed, 0 failed, 2 skipped' 0 'PASS: tests/a 1 - x' \
		'SKIP: tests/a 2 - y # SKIP needs root' \
		'SKIP: tests/a - needs Linux 6.6' &&
		verdict_of 0 'PASS: tests/a 1 - x' \
			'SKIP: tests/a 2 - y # SKIP needs root'
}

undeclared_skip_fails() {
	says '1 passed, 2 failed, 2 skipped' 0 'PASS: tests/a 1 - x' \
		'SKIP: tests/a 2 - y # SKIP no mood' 'SKIP: tests/a - tired' &&
		! verdict_of 0 'PASS: tests/a 1 - x' 'SKIP: tests/a - tired'
}

make_that_fails_without_a_test_fails() {
	says '1 passed, 1 failed, 0 skipped' 2 'PASS: tests/a 1 - x'
}

nothing_run_is_a_failure() {
	says '0 passed, 1 failed, 0 skipped' 0
}

for case in passes_are_counted failure_is_named_and_counted \
	declared_skip_is_fine undeclared_skip_fails \
	make_that_fails_without_a_test_fails nothing_run_is_a_failure; do
	tap_check "$case" "$case"
done
tap_end
