#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
LAB_CARD=mlx5
. "${srcdir:-.}/tests/system/bond_card.sh"
