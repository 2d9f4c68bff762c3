#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The tool vma_conf: what it prints, and how it exits.
. "${srcdir:-.}/tests/support/preload.sh"
vma_conf=$builddir/tools/vma_conf/vma_conf
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset VMA_CONFIG_FILE VMA_APPLICATION_ID

# gives STATUS OUTPUT ARGUMENTS...: the tool exits and prints (both streams) so.
gives() {
	local status=$1 want=$2 got
	shift 2
	got=$("$vma_conf" "$@" 2>&1)
	if [ $? -ne "$status" ] || [ "$got" != "$want" ]; then
		printf 'expected %s and:\n%s\ngot:\n%s\n' "$status" "$want" "$got"
		return 1
	fi
}

# exits STATUS ARGUMENTS...
exits() {
	local status=$1
	shift
	timeout 10 "$vma_conf" "$@" >/dev/null 2>&1
	[ $? -eq "$status" ]
}

cat >"$dir/good" <<END
application-id prog *
use os tcp_client 10.0.0.0/8:80-90
use vma udp_sender [2001:db8::/32]:*
END
cat >"$dir/bad" <<END
use os tcp_server *:1
use nix
END
cat >"$dir/kernel" <<END
use os tcp_server *:*
use os tcp_client *:*
END

tap_check good_file_is_printed gives 0 "application-id prog *
use os tcp_client 10.0.0.0/8:80-90
use vma udp_sender [2001:db8::/32]:*
$dir/good: 1 group, 2 rules, 0 errors" --check "$dir/good"

tap_check errors_are_shown_with_their_place gives 1 "$dir/bad:2:5: expected a target (vma, os, sdp, sa or *), found \"nix\"
application-id * *
use os tcp_server *:1
$dir/bad: 1 group, 1 rule, 1 error" --check "$dir/bad"

tap_check shipped_file_is_good gives 0 "application-id * *
use os udp_connect *:53
$srcdir/libvma.conf: 1 group, 1 rule, 0 errors" --check "$srcdir/libvma.conf"

mkfifo "$dir/fifo"
tap_check directory_is_refused gives 2 \
	"vma_conf: $dir: not a regular file" --check "$dir"
tap_check fifo_is_refused gives 2 \
	"vma_conf: $dir/fifo: not a regular file" --check "$dir/fifo"
tap_check missing_file_is_refused gives 2 \
	"vma_conf: $dir/none: No such file or directory" --check "$dir/none"

export VMA_CONFIG_FILE=$dir/good
tap_check file_comes_from_the_environment gives 0 "application-id prog *
use os tcp_client 10.0.0.0/8:80-90
use vma udp_sender [2001:db8::/32]:*
$dir/good: 1 group, 2 rules, 0 errors" --check

tap_check kernel_rule_is_explained gives 0 \
	"kernel: $dir/good:2: use os tcp_client 10.0.0.0/8:80-90" \
	--explain prog id tcp_client '*' 10.1.2.3:85
tap_check library_rule_is_explained gives 0 \
	"accelerated: $dir/good:3: use vma udp_sender [2001:db8::/32]:*" \
	-e prog id udp_sender '*' '[2001:db8::1]:7'
tap_check no_rule_is_explained gives 0 \
	"accelerated: no rule of the group \"prog *\" in $dir/good matches" \
	--explain prog id tcp_client 1.2.3.4:5 10.1.2.3:91
tap_check no_group_is_explained gives 0 \
	"accelerated: no group in $dir/good is for this program and id" \
	--explain other id tcp_client '*' 10.1.2.3:85
tap_check all_kernel_is_explained gives 0 \
	"kernel: $dir/kernel:1: use os tcp_server *:*
All TCP sockets of this program stay with the kernel from the start." \
	--file "$dir/kernel" --explain prog id tcp_server 0.0.0.0:80

wrong_arguments_are_refused() {
	exits 2 && exits 2 --nonsense && exits 2 --check a b &&
		exits 2 --check --options && exits 2 --options=html &&
		exits 2 --explain a b tcp_server &&
		exits 2 --explain a b tcp_sever 1.2.3.4:5 &&
		exits 2 --explain a b tcp_server 1.2.3.4 &&
		exits 2 --explain a b tcp_server 1.2.3.4:65536 &&
		exits 2 --explain a b tcp_server ::1:80 &&
		exits 2 --explain a b tcp_server 1.2.3.400:80
}
tap_check wrong_arguments_are_refused wrong_arguments_are_refused

help_and_version() {
	"$vma_conf" --help | grep -q '^Usage: ' &&
		"$vma_conf" -V | grep -qx 'vma_conf [0-9.]*'
}
tap_check help_and_version help_and_version

options_are_listed() {
	"$vma_conf" --options | grep -qx 'VMA_RX_POLL=100000 (polls)' &&
		! "$vma_conf" --options | grep -q VMA_TEST_LOCAL
}
tap_check options_are_listed options_are_listed
tap_end
