#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# librdmacm on the card (cm_test.c).
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_two
in_ns a timeout 60 "${builddir:-.}/tests/softcx/cm_test" "$@"
