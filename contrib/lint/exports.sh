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

# The folders that may call libc.
doors() {
	sed -nE 's|^module src/([^ ]+).*|\1|p' "$srcdir/contrib/lint/layers.txt"
	echo os
	echo sock-redirect # its names are the calls
}

no_back_doors() {
	local calls
	calls=$(find "$builddir/src" -name 'lib*_a-*.o' -exec nm -A -u {} + |
		awk -v prefix="$builddir/src/" '
		FILENAME == ARGV[1] { door[$1] = 1; next }
		FILENAME == ARGV[2] { forbidden[$1] = 1; next }
		{ object = substr($1, 1, length($1) - 1); folder = substr(object, length(prefix) + 1)
		  sub("/[^/]*$", "", folder)
		  if ($3 in forbidden && !(folder in door)) print object " calls " $3 }' \
			<(doors) <(names; tr ' ' '\n' <<<"$file_calls") -)
	[ -z "$calls" ] || { echo "$calls"; return 1; }
}

if [ ! -e "$library" ]; then
	tap_not_ok library_is_built "$library is missing: run make"
else
	tap_check exports_are_those_listed exports_are_listed
	tap_check library_needs_libc_alone needs_libc_alone
	tap_check only_os_calls_libc no_back_doors
fi
tap_end
