#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The scenarios of udp_mirror.sh over the software ConnectX by portable verbs.
LAB_CARD=verbs
. "${srcdir:-.}/tests/system/udp_mirror.sh"
