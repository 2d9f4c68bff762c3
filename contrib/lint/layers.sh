#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Include edges go down only, as layers.txt says; private headers stay private;
# every file has its licence line.
. "${srcdir:-.}/tests/support/preload.sh"
cd "$srcdir" || exit 1
table=contrib/lint/layers.txt

# "file included-folder included-file" for each #include "folder/..." of ours.
edges() {
	grep -rnoE --include='*.[ch]' '^#include "[^"]+/[^"]+"' "$@" |
		sed -E 's|^([^:]+):[0-9]+:#include "(.*)/([^/]+)"$|\1 \2 \3|'
}

upward() {
	edges src | awk -v table=$table '
	BEGIN { while ((getline line < table) > 0) {
		split(line, f, " "); if (f[1] ~ /^[0-9]+$/) level[f[2]] = f[1] } }
	{ split($1, path, "/"); from = path[2]; split($2, inc, "/"); to = inc[1]
	  if (from == to) {
		if (from == "dev" && path[3] !~ /\./ && inc[2] != "" && inc[2] != path[3])
			print $1 " includes " $2 "/" $3 ": back ends do not know each other"
		if (from == "sock" && inc[2] != "" && inc[2] != path[3] && path[3] != "sock_kinds.c")
			print $1 " includes " $2 "/" $3 ": only sock_kinds.c knows the kinds"
	  } else if (!(to in level)) print $1 " includes " $2 "/" $3 ": no such layer"
	  else if (!(from in level)) print $1 ": its folder is not in " table
	  else if (level[to] >= level[from])
		print $1 " includes " $2 "/" $3 ": not a lower layer" }'
}

# Tools see what the table allows them, and themselves.
tools_reach_too_far() {
	local allowed
	allowed=$(sed -n 's/^allow tools //p' $table | tr ' ' '|')
	edges tools | awk -v ok="^($allowed|tools)\$" '
	{ split($2, inc, "/"); if (inc[1] !~ ok) print $1 " includes " $2 "/" $3 }'
}

foreign_private() {
	edges src tests tools | awk '$3 ~ /_priv\.h$/ && index($1, "src/" $2 "/") != 1 {
		print $1 " includes " $2 "/" $3 }'
}

# "folder prefix" for each module's library.
vendors() {
	awk '$1 == "module" { for (i = 3; i <= NF; i++) print $2, $i }' $table
}

# A module's headers are its own, but for what core gives it at the start.
modules_are_entered() {
	edges src | awk -v table=$table '
	BEGIN { while ((getline line < table) > 0) {
		n = split(line, f, " "); if (f[1] == "module") module[f[2]] = 1 } }
	{ folder = "src/" $2
	  if (!(folder in module) || index($1, folder "/") == 1) next
	  n = split($2, part, "/")
	  if ($3 != part[n] ".h") print $1 " includes " $2 "/" $3 ": a module of its own" }'
}

vendor_headers_elsewhere() {
	local prefixes prefix folders
	prefixes=$(vendors | cut -d' ' -f2 | sort -u)
	for prefix in $prefixes; do
		folders=$(vendors | awk -v p="$prefix" '$2 == p { print "^" $1 "/" }')
		grep -rnE --include='*.[ch]' "^#include [<\"]$prefix" src |
			grep -vE '\.bpf\.c:' | grep -vE "$(tr '\n' '|' <<<"$folders" | sed 's/|*$//')"
	done
}

without_licence() {
	git ls-files -z -- '*.[ch]' '*.def' '*.sh' | xargs -0 awk '
	FNR == 1 { if (file && !found) print file
		   file = FILENAME; found = 0 }
	FNR <= 3 && /SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause/ { found = 1; nextfile }
	FNR > 3 { nextfile }
	END { if (file && !found) print file }'
}

# What a source with a header of its own includes first must be that header.
own_header_first() {
	find src -name '*.c' | while read -r c; do
		[ -f "${c%.c}.h" ] && printf '%s\0' "$c"
	done | xargs -0 awk '
	/^#include "/ && $2 != "\"config.h\"" {
		own = FILENAME
		sub("^src/", "", own)
		sub("[.]c$", ".h", own)
		if ($2 != "\"" own "\"") print FILENAME ": " $0
		nextfile
	}'
}

# Only core reads options.
options_elsewhere() {
	grep -rlE '"conf/options.h"' --include='*.[ch]' src |
		grep -vE '^src/(conf|core)/'
}

expect_nothing() {
	local out
	out=$("$1")
	[ -z "$out" ] || { echo "$out"; return 1; }
}

tap_check includes_go_down expect_nothing upward
tap_check tools_include_low_layers_only expect_nothing tools_reach_too_far
tap_check private_headers_stay_private expect_nothing foreign_private
tap_check modules_headers_are_their_own expect_nothing modules_are_entered
tap_check vendor_headers_stay_in_their_module expect_nothing vendor_headers_elsewhere
tap_check files_have_a_licence_line expect_nothing without_licence
tap_check sources_include_their_header_first expect_nothing own_header_first
tap_check only_core_reads_options expect_nothing options_elsewhere
tap_end
