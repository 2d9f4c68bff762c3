#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Faults of the software ConnectX under TCP (tcp_faults.sh), on its own work queues.
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/tcp_faults.sh"
