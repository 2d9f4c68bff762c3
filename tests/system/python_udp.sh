#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's own tests of UDP sockets, on libc and with loopback as an accelerated
# device: the same verdict on each case, and next to no datagram by the kernel.
. "${srcdir:-.}/tests/support/preload.sh"
. "${srcdir:-.}/tests/system/python_tests.sh"

if [ "$(id -u)" != 0 ]; then
	tap_skip python_udp "needs root"
	tap_end
	exit 0
fi
if [ -z "${PYTHON_UDP_INSIDE:-}" ]; then
	PYTHON_UDP_INSIDE=1 exec unshare --net -- "$0" "$@"
fi
ip link set lo up
library=$(realpath "$builddir/tests/shim/.libs/libvma-test.so")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH=$(realpath "$srcdir/tests/system/python_udp") LOCAL_CNT=$work/cnt

kernel_cnt() {
	awk '/^Udp:/ { n = $2 } END { print n }' /proc/net/snmp
}

# local_mode COMMAND...
local_mode() {
	VMA_TEST_LOCAL=1 VMA_XDP_INTERFACES=lo VMA_SELECT_SKIP_OS=0 VMA_LOG_FILE=$work/log \
		preloaded "$library" "$@"
}

# compare CASE CASE TESTS...: the verdicts, and who carried the datagrams. Those of libc are
# in another namespace, and not counted.
compare() {
	local verdicts=$1 share=$2 before by_kernel ours cnt
	shift 2
	side_by_side=all python_tests "$@" >"$work/libc" &
	rm -f "$work/cnt"
	before=$(kernel_cnt)
	local_mode python_tests "$@" >"$work/local"
	by_kernel=$(($(kernel_cnt) - before))
	wait
	ours=$(awk '{ n += $1 } END { print n + 0 }' "$work/cnt")
	cnt=$(grep -c ' ok$' "$work/libc")
	echo "# $cnt cases, $ours datagrams, $by_kernel by the kernel"
	tap_check "$verdicts" diff "$work/libc" "$work/local"
	tap_check "$share" \
		[ $((by_kernel * 20)) -le $((ours + by_kernel)) -a "$cnt" -gt 5 ]
}

# UDP6 and UDPLITE are the kernel's.
socket_tests=$(/usr/bin/python3 -c '
import test.test_socket as t, unittest
for suite in unittest.defaultTestLoader.loadTestsFromModule(t):
    for case in suite:
        name = type(case).__name__
        if "UDP" in name and "UDP6" not in name and "UDPLITE" not in name:
            print("-m", name)
' | sort -u)
compare test_socket_verdicts test_socket_accelerated $socket_tests test_socket
compare asyncio_verdicts asyncio_accelerated -m '*atagram*' -m '*recvfrom*' -m '*sendto*' \
	test_asyncio
# These have sockets of TCP and of Unix, pipes and terminals: readiness of all of them
# by our ways to look. With TCP of the kernel's, too.
readiness_tests="test_select test_poll test_epoll test_selectors"
side_by_side=all
python_tests $readiness_tests >"$work/libc" &
VMA_TCP=0 local_mode python_tests $readiness_tests >"$work/local" &
local_mode python_tests $readiness_tests >"$work/local_tcp" &
wait
tap_check readiness_cases [ "$(grep -c ' ok$' "$work/libc")" -gt 50 ]
tap_check readiness_verdicts diff "$work/libc" "$work/local"
tap_check readiness_verdicts_tcp diff "$work/libc" "$work/local_tcp"
tap_end
