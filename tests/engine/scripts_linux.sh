#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs each script of tests/engine/segments against Linux, in a namespace of its own.
# One that says `differs REASON` must fail there, all others must pass. Needs root.
# Usage: scripts_linux.sh PROGRAM
set -u
program=$1
srcdir=${srcdir:-.}
export srcdir
bad=0
for script in "$srcdir"/tests/engine/segments/*.tcp; do
	name=$(basename "$script" .tcp)
	why=$(sed -n 's/^differs *//p' "$script")
	# would take longer than anybody waits
	if [ "$why" = "not waited for" ]; then
		echo "ok - $name # $why"
		continue
	fi
	if out=$(timeout 30 "$program" "$name" 2>&1); then
		verdict=passes
	else
		verdict=fails
	fi
	if [ "$verdict" = passes ] && [ -z "$why" ]; then
		echo "ok - $name"
	elif [ "$verdict" = fails ] && [ -n "$why" ]; then
		echo "ok - $name # differs: $why"
	else
		echo "not ok - $name # Linux $verdict"
		echo "$out" | sed 's/^/# /'
		bad=1
	fi
done
exit $bad
