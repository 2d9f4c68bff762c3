#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A card that had nothing to do (idle_test.c).
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
in_ns a timeout 120 \
	"${builddir:-.}/tests/softcx/idle_test" "$@"
