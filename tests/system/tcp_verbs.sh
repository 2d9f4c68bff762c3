#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The conversations of tcp_xdp.sh over the software ConnectX by portable verbs.
LAB_CARD=verbs
. "${srcdir:-.}/tests/system/tcp_xdp.sh"
