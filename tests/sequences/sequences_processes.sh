#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sequences.sh with several processes (sequences_tcp_processes.sh).
export SEQUENCES_PROCESSES=1
export SEQUENCES=${SEQUENCES:-200}
exec bash "${srcdir:-.}/tests/sequences/sequences.sh"
