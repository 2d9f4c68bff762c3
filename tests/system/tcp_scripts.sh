#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Some scripts of the engine through sockets, whose settings come from options and sysctls
# (make check-scripts-sockets plays all of them).
. "${srcdir:-.}/tests/support/preload.sh"

play() {
	SCRIPT_SLACK_MS=100 "$srcdir/tests/engine/scripts_sockets.sh" "$builddir/tests/engine/scripts_linux" \
		"$builddir/src/.libs/libvma-debug.so" "$1"
}

scripts="accepts_and_talks defer_accept_ends ecn_slows_down fastopen_client
	fastopen_server half_close_by_peer quick_ack_ends
	slow_start syn_ack_again syn_cookie syncnt urgent_out zero_window"
for script in ${CASES:-$scripts}; do
	if [ "$(id -u)" != 0 ]; then
		tap_skip "$script" "needs root"
	else
		tap_check "$script" play "$script"
	fi
done
tap_end
