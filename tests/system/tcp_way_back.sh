#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The cases of tcp_way_back_test.c, each in namespaces it makes. WAYS: only so many
# connections that go back at any moment, eight at a time (make soak-way-back: 10,000);
# SEED: of the first one.
program=${builddir:-.}/tests/system/tcp_way_back_test
[ -n "${WAYS:-}" ] || exec timeout 300 "$program" "$@"

jobs=8
each=$(((WAYS + jobs - 1) / jobs))
first=${SEED:-$((RANDOM * 10000))}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ((i = 0; i < jobs; i++)); do
	WAYS=$each timeout $((60 + 5 * each)) "$program" --seed $((first + i * each)) \
		at_any_moment >"$work/$i" 2>&1 &
done
wait
bad=0
for ((i = 0; i < jobs; i++)); do
	grep -q '^ok ' "$work/$i" && continue
	# a skip says so itself
	tail -3 "$work/$i" | sed '/^not ok/d; s/^[^#]/# &/'
	bad=1
done
echo "# $((jobs * each)) connections from seed $first on"
[ $bad = 0 ] && echo "ok 1 - at_any_moment" || echo "not ok 1 - at_any_moment"
echo 1..1
exit $bad
