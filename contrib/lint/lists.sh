#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The .def lists are consistent, and documented.
. "${srcdir:-.}/tests/support/preload.sh"
cd "$srcdir" || exit 1

call_names() {
	printf '#define CALL_NAME(name) name\n#include "os/calls.def"\n' |
		"${CC:-gcc}" -E -P -x c -Isrc - | tr -s ' ' '\n' | grep -v '^$'
}

calls_are_listed_once() {
	local twice
	twice=$(call_names | sort | uniq -d)
	[ -z "$twice" ] || { echo "twice: $twice"; return 1; }
}

# Each call has its line in the matrix of tests, in the order of the list.
calls_are_in_the_matrix() {
	diff <(call_names) <(sed 's/\..*//' tests/shim/matrix.cells | uniq)
}

# The start-up steps exist, once each.
startup_steps_exist() {
	local step failed=0
	for step in $(sed -nE 's/^STARTUP(_SEEN)?\((\w+),.*/\2/p' src/core/startup.def); do
		[ "$(grep -cE "^static int $step\(void\)" src/core/runtime.c)" = 1 ] ||
			{ echo "no step $step"; failed=1; }
	done
	return $failed
}

# The manual says what each reason means.
reasons_are_documented() {
	local name failed=0
	for name in $(sed -nE 's/^REASON\((\w+),.*/\1/p' src/stats/reasons.def); do
		grep -q "^\.B $name\$" doc/libvma.7 ||
			{ echo "reason $name is not in libvma(7)"; failed=1; }
	done
	return $failed
}

# The manual of vma_stats says what each counter counts.
counters_are_documented() {
	local name failed=0
	for name in $(sed -nE 's/^(SOCKET|RING|DROP|MUX|TCP)_(COUNTER|GAUGE)\((\w+),.*/\3/p' \
		src/stats/counters.def); do
		grep -q "^\.B $name\$" doc/vma_stats.8 ||
			{ echo "counter $name is not in vma_stats(8)"; failed=1; }
	done
	return $failed
}

# A fault that the engine's tests are to find is planted where its text is.
mutations_have_their_places() {
	tests/engine/mutate.py --places
}

# What the fuzzer of imports begins with are exports of today: others are refused for their
# length, whatever follows.
exports_of_the_corpus_are_of_today() {
	local version file failed=0
	version=$(sed -nE 's/^enum \{ TCP_EXPORT_VERSION = ([0-9]+) \};/\1/p' src/tcp/tcp.h)
	for file in tests/fuzz/corpus/fuzz_tcp_import/*; do
		[ "$(od -An -tu4 -j4 -N4 "$file" | tr -d ' ')" = "$version" ] ||
			{ echo "$file is not of version $version"; failed=1; }
	done
	return $failed
}

# A target that names its test programs has them do more than `make check` does, and so gives
# them more time.
campaigns_have_time() {
	! grep -n "MAKE) check TESTS='%D%/" tests/*/local.mk | grep -vF '$(campaign) $(MAKE)'
}

tap_check calls_are_listed_once calls_are_listed_once
tap_check calls_are_in_the_matrix calls_are_in_the_matrix
tap_check startup_steps_exist startup_steps_exist
tap_check reasons_are_documented reasons_are_documented
tap_check counters_are_documented counters_are_documented
tap_check mutations_have_their_places mutations_have_their_places
tap_check exports_of_the_corpus_are_of_today exports_of_the_corpus_are_of_today
tap_check campaigns_have_time campaigns_have_time
tap_end
