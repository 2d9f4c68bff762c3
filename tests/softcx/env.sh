#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the environment asks of the card (env_test.c): a capture, faults by seed,
# a clock of its own, large completions.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
tmp=$(mktemp -d)
trap 'lab_end; rm -rf "$tmp"' EXIT

# run NAME VARIABLES...: one case of env_test
run() {
	name=$1
	shift
	in_ns a SOFTCX_MANUAL=1 "$@" timeout 60 \
		"${builddir:-.}/tests/softcx/env_test" "$name" >"$tmp/out" 2>&1
	result=$?
	[ $result = 0 ] || sed 's/^/# /' "$tmp/out"
	return $result
}

run pcap_has_exactly_the_frames SOFTCX_PCAP="$tmp/wire.pcap"
tap $? pcap_has_exactly_the_frames

# faults SEED: the line that says what was injected and what arrived
faults() {
	run faults SOFTCX_SEED="$1" \
		SOFTCX_IMPAIR=loss=50000,dup=50000,corrupt=50000,reorder=50000 \
		>&2 || return 1
	sed -n 's/.*FAULTS //p' "$tmp/out"
}
first=$(faults 7) && [ -n "$first" ]
tap $? faults_of_the_environment_are_counted
echo "# $first"
[ "$(faults 7)" = "$first" ]
tap $? same_seed_same_faults
other=$(faults 8) && [ "$other" != "$first" ]
tap $? another_seed_other_faults

run clock_drifts_as_configured SOFTCX_CLOCK=khz=100000,ppm=200,offset=5000000
tap $? clock_drifts_as_configured
run completions_of_128_bytes MLX5_CQE_SIZE=128
tap $? completions_of_128_bytes
tap_end
