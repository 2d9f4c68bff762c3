#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# That no test can hold up the others.
. "${srcdir:-.}/tests/support/preload.sh"

bounded=$srcdir/tests/support/bounded
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What it says on both channels, and how it ends.
says_and_ends() {
	[ "$("$bounded" sh -c 'echo one; echo two >&2; exit 7'; echo $?)" = \
		$'one\ntwo\n7' ]
}

# With a child that does not end when asked.
hangs_and_is_ended() {
	TEST_SECONDS=1 "$bounded" sh -c "echo started
		sh -c 'trap : TERM; echo \$\$ >$work/stubborn; sleep 60; sleep 60' &
		wait" >"$work/said" && return 1
	grep -qx started "$work/said" && grep -q '^# .*sleep 60' "$work/said" &&
		tail -1 "$work/said" | grep -q '^Bail out!' &&
		[ -s "$work/stubborn" ] &&
		! grep -qs '^State:.[RSD]' "/proc/$(cat "$work/stubborn")/status"
}

can_clean_up() {
	TEST_SECONDS=1 "$bounded" bash -c "trap 'touch $work/cleaned' EXIT
		trap 'exit 1' TERM; sleep 60" >/dev/null
	[ -e "$work/cleaned" ]
}

# It is in no group or session of the test's, and keeps what it has open.
strays_hold_nobody_up() {
	local stray
	timeout 20 "$bounded" sh -c "setsid sleep 60 & echo \$! >$work/stray" |
		cat >/dev/null
	stray=$(cat "$work/stray")
	kill "$stray"
}

ends_with_all_of_ci() {
	CHECK_BEGAN=$(($(date +%s) - 3 * 3600)) timeout 20 "$bounded" sleep 60 >"$work/said" &&
		return 1
	tail -1 "$work/said" | grep -q '^Bail out!'
}

# A shell's child in the background ignores SIGINT and SIGQUIT, the bits of 2 and 4.
keyboards_signals_end_it() {
	"$bounded" grep -qx 'SigIgn:.*[0189]' /proc/self/status
}

for case in says_and_ends hangs_and_is_ended can_clean_up strays_hold_nobody_up \
	ends_with_all_of_ci keyboards_signals_end_it; do
	tap_check "$case" "$case"
done
tap_end
