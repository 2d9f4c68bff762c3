#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The netlink module: there, forked, missing, broken, somebody else's. A copy of the test
# library in a folder of its own finds beside it what the case puts there, and
# loopback is an accelerated device as far as the library can do that.
. "${srcdir:-.}/tests/support/preload.sh"

built=$builddir/tests/shim/.libs/libvma-test.so
module=$builddir/src/nl/libnl/.libs/libvma-nl-debug.so
xdp=$builddir/src/dev/xdp/.libs/libvma-xdp-debug.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
collect_reports "$work"
# A child's sockets get a network of their own, with its thread.
TSAN_OPTIONS=$TSAN_OPTIONS:die_after_fork=0

# Two sockets, one of which has to decide, and one that comes later.
cat >"$work/program.py" <<'PY'
import socket
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
a.bind(("127.0.0.1", 0))
b.sendto(b"hello", a.getsockname())
a.settimeout(10)
print(a.recv(100).decode())
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
PY

# The module's two sockets: the parent's, and not the child's, which gets two of its
# own with its first socket.
cat >"$work/child.py" <<'PY'
import os
exec(open(os.path.dirname(__file__) + "/program.py").read().replace("print", "str"))

def netlink():
    known = {line.split()[-1] for line in open("/proc/net/netlink")}
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if name[:8] == "socket:[" and name[8:-1] in known:
            found.add(name)
    return found

parents = netlink()
assert len(parents) == 2, parents
child = os.fork()
if child == 0:
    try:
        assert not netlink(), netlink()
        exec(open(os.path.dirname(__file__) + "/program.py").read()
             .replace("print", "str"))
        # a device of the test is the parent's alone: only with a back end
        cnt = 2 if os.environ["BACK_END"] else 0
        assert len(netlink()) == cnt and not netlink() & parents, netlink()
        os._exit(0)
    except Exception as error:
        print(error)
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert netlink() == parents, netlink()
print("hello")
PY

# The lock around the module is given back in a child whose parent has no sockets.
cat >"$work/first.py" <<'PY'
import os
child = os.fork()
if child == 0:
    exec(open(os.path.dirname(__file__) + "/program.py").read())
else:
    assert os.waitpid(child, 0)[1] == 0
PY

# A daemon goes to the root before its first socket.
cat >"$work/daemon.py" <<'PY'
import os
here = os.path.dirname(__file__)
os.chdir("/")
exec(open(here + "/program.py").read())
PY

# run_beside [FILE [BACK-END]]: the program under a library that has FILE as its
# netlink module.
program=program.py
level=debug
is_local=1
# how LD_PRELOAD names it, from $work
folder=$work/lib
run_beside() {
	rm -rf "$work/lib"
	mkdir "$work/lib"
	cp "$built" "$work/lib/libvma-test.so"
	[ $# = 0 ] || cp "$1" "$work/lib/libvma-nl-debug.so"
	[ $# -lt 2 ] || cp "$2" "$work/lib/libvma-xdp-debug.so"
	(cd "$work" && VMA_TEST_LOCAL=$is_local VMA_XDP_INTERFACES=lo VMA_TRACELEVEL=$level \
		VMA_LOG_FILE=$work/log \
		preloaded "$folder/libvma-test.so" \
		timeout 20 /usr/bin/python3 "$work/$program") >"$work/out" 2>&1
	[ "$(cat "$work/out")" = hello ] || { cat "$work/out" "$work/log"; return 1; }
}

# What libvma(7) promises for a reason, from the list itself.
why=$(sed -n '/^REASON(NO_NETLINK,/s/.*, "\([^"]*\)",$/\1/p' "$srcdir/src/stats/reasons.def")

lines() {
	grep -c "$1" "$work/log"
}

# all_with_the_kernel WARNINGS: said once for the process, and for each socket to
# who debugs.
all_with_the_kernel() {
	if [ "$(lines "INFO: Sockets stay with the kernel: $why; to change that: .*libnl-3")" = 1 ] &&
		[ "$(lines "DEBUG: fd [0-9]* stays with the kernel: $why")" -ge 1 ] &&
		[ "$(lines 'WARNING: .*libvma-nl-debug.so')" = "$1" ] &&
		[ "$(lines 'ERROR')" = 0 ]; then
		return 0
	fi
	cat "$work/log"
	return 1
}

compile() {
	${CC:-gcc} -shared -fPIC -x c - -o "$@"
}

with_the_module_sockets_are_accelerated() {
	run_beside "$module" || return 1
	if grep -q 'libvma-nl-debug.so: started' "$work/log" &&
		! grep -q 'stays* with the kernel\|by the kernel' "$work/log"; then
		return 0
	fi
	cat "$work/log"
	return 1
}

a_child_has_sockets_of_its_own() {
	local program=child.py back_end=
	[ ! -e "$xdp" ] || back_end=$xdp
	BACK_END=$back_end run_beside "$module" $back_end
}

a_child_may_have_the_first_socket() {
	# a local device, and who asks for details, would have the library start
	# before the fork
	local program=first.py level=info is_local=0
	run_beside "$module"
}

# The modules are opened at its first socket, the back end before the other.
a_daemon_finds_them_from_the_root() {
	local program=daemon.py level=info is_local=0 folder=./lib
	[ -e "$xdp" ] || return 0
	run_beside "$module" "$xdp" || return 1
	if ! grep -q 'stay with the kernel' "$work/log"; then
		return 0
	fi
	cat "$work/log"
	return 1
}

without_the_module_sockets_are_the_kernels() {
	run_beside && all_with_the_kernel 0
}

# As on a machine where libnl is not installed: the module is, and needs a library
# that cannot be found.
without_libnl_sockets_are_the_kernels() {
	compile "$work/libgone.so" <<<'int gone(void) { return 0; }' &&
		compile "$work/needy.so" -L"$work" -lgone \
			<<<'int gone(void); int vma_module(void) { return gone(); }' ||
		return 1
	rm "$work/libgone.so"
	run_beside "$work/needy.so" && all_with_the_kernel 1 &&
		grep -q 'WARNING: cannot open .*libgone.so' "$work/log"
}

# exports ABI, KIND: a module that has just these.
exports() {
	compile "$work/other.so" <<C
#include <stddef.h>
static void start(const void *services) { *(volatile int *)services = 0; }
const struct { int abi, kind; const char *name; void (*start)(const void *);
	const void *exports; } vma_module = { $1, $2, "nl", start, NULL };
C
}

# It is never started, which would be its end.
a_module_of_another_abi_is_left_alone() {
	exports 0x7fff 1 && run_beside "$work/other.so" &&
		all_with_the_kernel 1 &&
		grep -q 'WARNING: .* belongs to another libvma' "$work/log"
}

a_module_of_another_kind_is_left_alone() {
	exports "$(sed -n 's/.*MODULE_ABI = \(0x1[0-9]*\).*/\1/p' "$srcdir/src/os/module.h")" 0 &&
		run_beside "$work/other.so" && all_with_the_kernel 1 &&
		grep -q 'WARNING: .* belongs to another libvma' "$work/log"
}

tap_check with_the_module_sockets_are_accelerated with_the_module_sockets_are_accelerated
tap_check a_child_has_sockets_of_its_own a_child_has_sockets_of_its_own
tap_check a_child_may_have_the_first_socket a_child_may_have_the_first_socket
tap_check a_daemon_finds_them_from_the_root a_daemon_finds_them_from_the_root
tap_check without_the_module_sockets_are_the_kernels without_the_module_sockets_are_the_kernels
tap_check without_libnl_sockets_are_the_kernels without_libnl_sockets_are_the_kernels
tap_check a_module_of_another_abi_is_left_alone a_module_of_another_abi_is_left_alone
tap_check a_module_of_another_kind_is_left_alone a_module_of_another_kind_is_left_alone
tap_end
