#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The cases of tcp_way_back_test.c, each in namespaces it makes. WAYS: how many
# connections go back at any moment.
exec timeout 300 "${builddir:-.}/tests/system/tcp_way_back_test" "$@"
