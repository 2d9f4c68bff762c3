#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Of tcp_mirror_mlx5.sh, which takes long, what only a card's rules make different.
CASES=${CASES:-ended_in_malloc}
. "${srcdir:-.}/tests/system/tcp_mirror_mlx5.sh"
