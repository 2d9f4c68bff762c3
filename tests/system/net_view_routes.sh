#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The cases of net_view_routes_test.c, each in a namespace it makes.
exec timeout 300 "${builddir:-.}/tests/system/net_view_routes_test" "$@"
