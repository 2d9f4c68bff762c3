#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# doc/tcp-rfcs.txt says what the contract and the scripts of TCP say.
. "${srcdir:-.}/tests/support/preload.sh"
cd "$srcdir" || exit 1

# If not, `contrib/rfc-table >doc/tcp-rfcs.txt`.
rfcs_are_up_to_date() {
	diff doc/tcp-rfcs.txt <(srcdir=. contrib/rfc-table)
}

# An RFC is said to be left out, or something shows it.
rfcs_without_proof() {
	awk '/^RFC/ { if (name != "" && !cnt) print name; name = $0; cnt = 0 }
		/^  [a-z]/ || /^    Not implemented/ { cnt++ }
		END { if (!cnt) print name }' doc/tcp-rfcs.txt
}

# The number of an RFC in the contract that the table does not have.
rfcs_forgotten() {
	grep -oE 'RFC [0-9]+' tests/contract/tcp.tsv | sort -u |
		while read -r rfc; do
			grep -q "^$rfc " doc/tcp-rfcs.txt || echo "$rfc"
		done
}

expect_nothing() {
	local out
	out=$("$1")
	[ -z "$out" ] || { echo "$out"; return 1; }
}

tap_check rfcs_are_up_to_date rfcs_are_up_to_date
tap_check rfcs_have_proof expect_nothing rfcs_without_proof
tap_check rfcs_are_complete expect_nothing rfcs_forgotten
tap_end
