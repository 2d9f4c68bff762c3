#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# libvma(7) has the options as options.def has them, and the system's settings that TCP
# follows, and every manual page is valid.
. "${srcdir:-.}/tests/support/preload.sh"
vma_conf=$builddir/tools/vma_conf/vma_conf

made_part() {
	sed '1,/^\.\\" BEGIN OPTIONS/d; /^\.\\" END OPTIONS/,$d' \
		"$srcdir/doc/libvma.7"
}

# If not, `make update-man`.
options_are_up_to_date() {
	diff <(made_part) <("$vma_conf" --options=man)
}

# The settings that the source reads, and those that the manual names.
read_settings() {
	{
		sed -n 's/^TCP_SYSCTL(\([a-z0-9_]*\),.*/\1/p' "$srcdir/src/sock/tcp/tcp_sysctl.def"
		grep -ohE '"(/proc/sys/net/ipv4/)?tcp_[a-z_]+"' "$srcdir/src/sock/tcp/tcp_sysctl.c" |
			grep -oE 'tcp_[a-z_]+'
	} | sort -u
}

named_settings() {
	sed -n '/^\.SH SYSTEM SETTINGS/,/^\.SH FILES/p' "$srcdir/doc/libvma.7" |
		grep -oE '\btcp_[a-z0-9_]+' | sort -u
}

settings_are_named() {
	diff <(named_settings) <(read_settings)
}

pages_are_valid() {
	local page out failed=0
	for page in "$srcdir"/doc/*.[578]; do
		grep -q '^\.so ' "$page" && continue
		out=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
		[ -z "$out" ] || { echo "$out"; failed=1; }
	done
	return $failed
}

tap_check options_are_up_to_date options_are_up_to_date
tap_check settings_are_named settings_are_named
if command -v groff >/dev/null; then
	tap_check pages_are_valid pages_are_valid
else
	tap_skip pages_are_valid "needs groff"
fi
tap_end
