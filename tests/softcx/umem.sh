#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The memory that the card takes (umem_test.c), in manual mode.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
in_ns a SOFTCX_MANUAL=1 timeout 120 \
	"${builddir:-.}/tests/softcx/umem_test" "$@"
