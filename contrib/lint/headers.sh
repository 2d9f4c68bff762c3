#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Each header compiles alone.
. "${srcdir:-.}/tests/support/preload.sh"

# Where a module's library is missing, its headers are not looked at.
libnl=$(pkg-config --cflags libnl-3.0 2>/dev/null) || without=nl/libnl

alone() {
	"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -x c \
		$libnl -I"$srcdir/src" -I"$builddir" -I"$builddir/src" -I"$srcdir" \
		-include stddef.h - <<<"#include \"$1\""
}

each_alone() {
	local header failed=0
	while read -r header; do
		alone "$header" || failed=1
	done < <(cd "$srcdir/src" && find . -name '*.h' ! -name '*.map.h' \
		! -name '*.bpf.h' ! -path "./${without:-}/*" | sed 's|^\./||' | sort)
	return $failed
}

tap_check headers_compile_alone each_alone
tap_end
