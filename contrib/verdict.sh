# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by parts and variant: runs tests in the build directory one is in, and
# says what came of them. Expects `top` and `say` of setup.sh.

bad='FAIL|ERROR|XPASS'
# How many tests at a time: most of them wait most of the time. With twice as many as there
# are processors, some that a program may fail on the kernel as well did.
jobs=$(($(nproc) + 1))

# What the test driver left, builds of variants below this one excepted.
driver_files() {
	find . -path './check-*' -prune -o -name '*.trs' -print
}

# results VERDICTS: each case with one of these (A|B), its program, its reason.
results() {
	driver_files | sed 's/trs$/log/' | xargs -r sed -nE "s/^($1): //p"
}

# Skips whose reason is not declared: after "# SKIP" for a case, after the dash for
# a whole program.
undeclared_skips() {
	local line reason
	results SKIP | while read -r line; do
		reason=${line#* - }
		reason=${reason#*# SKIP }
		grep -vE '^[[:space:]]*(#|$)' "$top/tests/support/skips.txt" |
			grep -qxF -- "$reason" || echo "$line"
	done
}

show_failures() {
	local log
	say "failed:"
	results "$bad"
	driver_files | sed 's/trs$/log/' | xargs -r grep -lE "^($bad): " |
		while read -r log; do
			say "the end of $log"
			grep -vE '^(ok|PASS)' "$log" | tail -30
		done
}

# verdict MAKE-ARGUMENT...: runs that make and prints, last of all, one line of
# counts. False after a failure, and after a test that was skipped for a reason
# tests/support/skips.txt does not declare.
verdict() {
	local status passed failed skipped undeclared
	driver_files | xargs -r rm -f
	"${MAKE:-make}" -s -k "$@" >check.out 2>&1
	status=$?
	passed=$(results PASS | wc -l)
	failed=$(results "$bad" | wc -l)
	skipped=$(results SKIP | wc -l)
	undeclared=$(undeclared_skips)
	if [ "$failed" != 0 ]; then
		show_failures
	elif [ $status != 0 ]; then
		grep -E 'error:|\*\*\* ' check.out || tail -20 check.out
		failed=1
	fi
	if [ -n "$undeclared" ]; then
		say "skipped for a reason that tests/support/skips.txt does not declare:"
		echo "$undeclared"
		failed=$((failed + $(wc -l <<<"$undeclared")))
	fi
	[ "$passed" != 0 ] || failed=$((failed + 1))
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
