#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Forms of send entries (wqe_test.c), in manual mode.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
in_ns a SOFTCX_MANUAL=1 SOFTCX_MIN_INLINE=0 timeout 120 \
	"${builddir:-.}/tests/softcx/wqe_test" "$@"
