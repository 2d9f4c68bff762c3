#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
. "${srcdir:-.}/tests/system/udp_pace.sh"

# AF_XDP has no paces: the kernel sends, and the log says so once. What is not paced is ours.
kernel_sends_what_is_paced() {
	gather 40 && pace changing 20 1000000 -1 && came 40 &&
		expect "$sent_by_kernel" 20 && begun 0 &&
		expect "$(grep -c "v0: sends with SO_MAX_PACING_RATE are the kernel's: its device, driven by xdp, keeps no pace" \
			"$work/a.log")" 1
}

run_cases kernel_sends_what_is_paced
