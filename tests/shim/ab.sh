#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The matrix of every intercepted call in every condition, on libc and preloaded:
# results, errno and data must agree, and every cell must have come through its
# wrapper. Then the same with the test kind, where every cell on a socket must
# also have reached its object. One case for each call and way.
. "${srcdir:-.}/tests/support/preload.sh"

matrix=$builddir/tests/shim/matrix
library=${SHIM_LIBRARY:-$builddir/tests/shim/.libs/libvma-test.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

collect_reports "$work"

export VMA_LOG_FILE=$work/log MATRIX_MISSED=$work/missed

# The thread sanitizer answers these itself, before any library behind it.
is_hidden() {
	is_thread_sanitized && case $1 in
	sigaction | signal | vfork) ;;
	*) false ;;
	esac
}

# compare WAY: what each call printed in this way against libc.
compare() {
	local call diff missed
	for call in $calls; do
		if is_hidden "$call"; then
			tap_skip "${call}_$1" "not under a sanitizer"
			continue
		fi
		diff=$(diff <(grep "^$call\." "$work/libc") \
			<(grep "^$call\." "$work/$1"))
		missed=$(grep "^$call\." "$work/missed.$1")
		if [ -z "$diff$missed" ] && grep -q "^$call\." "$work/$1"; then
			tap_ok "${call}_$1"
		else
			tap_not_ok "${call}_$1" "$diff
$missed"
		fi
	done
}

run() {
	: >"$work/missed"
	"$@" </dev/null
}

"$matrix" --list >"$work/cells"
calls=$(sed 's/\..*//' "$work/cells" | uniq)
tap_check cells_are_those_in_the_tree diff "$srcdir/tests/shim/matrix.cells" \
	"$work/cells"

run "$matrix" >"$work/libc" 2>/dev/null
run preloaded "$library" "$matrix" >"$work/preloaded" 2>/dev/null
mv "$work/missed" "$work/missed.preloaded"
compare preloaded
SHIM_TEST_KIND=1
export SHIM_TEST_KIND
run preloaded "$library" "$matrix" >"$work/as_object" 2>/dev/null
mv "$work/missed" "$work/missed.as_object"
compare as_object
tap_end
