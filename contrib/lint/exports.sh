#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# libvma.so exports what calls.def lists and nothing else, needs libc alone, and
# no object outside src/os reaches libc's socket and file calls directly.
. "${srcdir:-.}/tests/support/preload.sh"
library=$builddir/src/.libs/libvma.so

names() {
	printf '#define CALL_NAME(name) name\n#include "os/calls.def"\n' |
		"${CC:-gcc}" -E -P -x c -I"$srcdir/src" - | tr -s ' ' '\n' |
		grep -v '^$' | sort
}

exports_are_listed() {
	diff <(names) <(nm -D --defined-only "$library" |
		awk '$2 ~ /^[TWVi]$/ { print $3 }' | sort)
}

needs_libc_alone() {
	[ "${SANITIZERS:-none}" != none ] && return 0
	local needed
	needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
	[ "$needed" = libc.so.6 ] || { echo "needed: $needed"; return 1; }
}

# Calls that are not intercepted but are files and sockets all the same.
file_calls='fopen fopen64 fread fwrite fgets fputs stat stat64 lstat lstat64 fstat fstat64
fstatat access unlink rename mkdir rmdir opendir readdir eventfd timerfd_create
signalfd inotify_init1 memfd_create lseek lseek64 ftruncate getline'

doors() {
	sed -nE 's|^module src/([^ ]+).*|\1|p' "$srcdir/contrib/lint/layers.txt"
	echo os
	echo sock-redirect # its names are the calls
}

no_back_doors() {
	local forbidden object folder calls failed=0
	forbidden=$({ names; tr ' ' '\n' <<<"$file_calls"; } | sort -u)
	while read -r object; do
		folder=${object#"$builddir"/src/}
		folder=${folder%/*}
		doors | grep -qx "$folder" && continue
		calls=$(nm -u "$object" | awk '{ print $2 }' |
			grep -Fx "$forbidden" | tr '\n' ' ')
		[ -z "$calls" ] && continue
		echo "$object calls $calls"
		failed=1
	done < <(find "$builddir/src" -name 'lib*_a-*.o')
	return $failed
}

if [ ! -e "$library" ]; then
	tap_not_ok library_is_built "$library is missing: run make"
else
	tap_check exports_are_those_listed exports_are_listed
	tap_check library_needs_libc_alone needs_libc_alone
	tap_check only_os_calls_libc no_back_doors
fi
tap_end
