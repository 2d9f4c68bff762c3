#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Every rule of the card, broken once (rules_test.c).
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
in_ns a SOFTCX_MANUAL=1 timeout 120 \
	"${builddir:-.}/tests/softcx/rules_test" "$@"
