#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sequences_tcp.sh with programs that fork, leave a child behind, go on in another program,
# and send sockets to each other and to themselves.
export SEQUENCES_PROCESSES=1
export SEQUENCES=${SEQUENCES:-200}
exec bash "${srcdir:-.}/tests/sequences/sequences_tcp.sh"
