#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Breaks the wrappers one at a time, and expects the shim tests to notice each
# time. Builds a test library of its own from the changed sources; the tree stays
# as it is. A target of its own: make check-mutants.
. "${srcdir:-.}/tests/support/preload.sh"
srcdir=$(cd "$srcdir" && pwd)
builddir=$(cd "$builddir" && pwd)
export srcdir builddir
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The other folders, as they were built.
unbroken() {
	find "$builddir/src" -name 'lib*-debug.a' ! -name 'libos-*' \
		! -name 'libsock-redirect-*' ! -name 'libvma-*'
}

# build_from TREE: libvma-test.so with the shim and os of that tree.
build_from() {
	local tree=$1
	"${CC:-gcc}" -E -P -x c -DVMA_TEST -I"$tree/src" \
		"$tree/src/sock-redirect/export.map.h" >"$work/map" &&
	"${CC:-gcc}" -std=gnu11 -O1 -g -w -fPIC -shared -fvisibility=hidden \
		-ftls-model=initial-exec -DVMA_TEST -DVMA_DEBUG=1 -I"$tree/src" \
		-I"$builddir" -I"$srcdir" -Wl,--version-script="$work/map" \
		-o "$work/libvma-test.so" "$tree"/src/sock-redirect/*.c \
		"$tree"/src/os/*.c "$srcdir/tests/shim/kind.c" -Wl,-z,defs \
		-Wl,--start-group $(unbroken) -Wl,--end-group
}

# mutant NAME FILE SED SUITE: red is good.
mutant() {
	local name=$1 file=$2 change=$3 suite=$4 log=$work/$1.log
	rm -rf "$work/tree"
	mkdir "$work/tree"
	cp -r "$srcdir/src" "$work/tree/src"
	sed -i "$change" "$work/tree/src/$file"
	if cmp -s "$srcdir/src/$file" "$work/tree/src/$file"; then
		tap_not_ok "$name" "the change does not apply any more"
	elif ! build_from "$work/tree" >"$log" 2>&1; then
		tap_not_ok "$name" "does not build: $(tail -3 "$log")"
	elif SHIM_LIBRARY=$work/libvma-test.so "$srcdir/tests/shim/$suite.sh" 2>/dev/null |
		grep -q '^not ok'; then
		tap_ok "$name"
	else
		tap_not_ok "$name" "no test of $suite noticed"
	fi
}

build_from "$srcdir" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for suite in ab scenarios moments; do
	red=$(SHIM_LIBRARY=$work/libvma-test.so "$srcdir/tests/shim/$suite.sh" 2>/dev/null |
		grep '^not ok')
	[ -z "$red" ] && tap_ok "${suite}_is_green_unbroken" ||
		tap_not_ok "${suite}_is_green_unbroken" "$red"
done

mutant recv_loses_a_byte sock-redirect/fd_calls.c \
	's/ recv, fd, buf, len, flags);/ recv, fd, buf, len - 1, flags);/' ab
mutant send_loses_a_byte sock-redirect/fd_calls.c \
	's/ send, fd, buf, len, flags);/ send, fd, buf, len - 1, flags);/' ab
mutant setsockopt_loses_the_value os/calls.def \
	'/ setsockopt, /s/name, value, len))$/name, NULL, len))/' ab
mutant epoll_wait_does_not_wait sock-redirect/mux_calls.c \
	's/real.epoll_wait(epfd, events, cnt, timeout)/real.epoll_wait(epfd, events, cnt, 0)/' ab
mutant poll_forgets_its_timeout sock-redirect/mux_calls.c \
	's/real.poll(fds, cnt, timeout)/real.poll(fds, cnt, 0)/' ab
mutant success_touches_errno sock-redirect/call.h \
	's/(int)-n : call->saved_errno;/(int)-n : 1;/' ab
mutant failure_has_no_errno sock-redirect/call.h \
	's/n < 0 ? (int)-n : call->saved_errno/call->saved_errno/' ab
mutant accept_misses_its_object sock-redirect/fd_calls.c \
	's/ON_OBJECT(int, fd_table_entry(fd), accept, fd, addr, len);//' ab
mutant syscall_misses_the_object sock-redirect/syscall_call.c \
	's/return shim_read(fd/return real.read(fd/' ab
mutant sysv_signal_is_not_reset sock-redirect/signal_calls.c \
	's/return signals_sysv_signal/return signals_signal/' ab
mutant dup_bypasses_the_table sock-redirect/table_calls.c \
	'/^int shim_dup(/,/^}/s/fd_call_duplicate(fd, F_DUPFD, NULL)/real.dup(fd)/' scenarios
mutant copy_is_a_stranger sock-redirect/call.c \
	'/^int fd_call_duplicate/,/^}/s/if (obj && new_fd >= 0/if (0/' scenarios
mutant dup2_keeps_the_old_object sock-redirect/table_calls.c \
	's/if (obj && fd_table_install(new_fd, obj) != 0)/if (0)/' scenarios
mutant close_leaks_the_object sock-redirect/table_calls.c \
	'/^static COLD int close_object/,/^}/s/fd_table_remove(fd);//' scenarios
mutant close_range_leaks_objects sock-redirect/table_calls.c \
	's/fd_table_remove_range(first, last);//' scenarios
mutant passed_fd_is_a_stranger sock-redirect/fd_calls.c \
	's/for_fds_of_message(msg, adopt_fd);//' scenarios
mutant fd_in_flight_is_dropped sock-redirect/fd_calls.c \
	's/for_fds_of_message(msg, fd_flight_start);//' scenarios
mutant stream_bypasses_the_object sock-redirect/stdio_calls.c \
	's/return open_stream(fd, mode);/return real.fdopen(fd, mode);/' scenarios
mutant vfork_does_not_wait sock-redirect/process_calls.c \
	's/wait_for_end_of_file(fds\[0\]);//' scenarios
mutant internal_fd_can_be_closed sock-redirect/table_calls.c \
	'/^static COLD int close_object/,/^}/s/obj->ops->is_internal/0/' moments
mutant first_call_resolves_all os/real.c \
	's/resolve(REAL_##name);  /real_resolve();  /' moments
tap_end
