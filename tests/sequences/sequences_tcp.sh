#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sequences.sh with TCP sockets, in a network namespace of its own, where the ports of
# ended connections are nobody else's.
export SEQUENCES_TCP=1
export SEQUENCES=${SEQUENCES:-3000}
script=${srcdir:-.}/tests/sequences/sequences.sh
for way in "unshare --net --" "unshare --map-root-user --net --"; do
	$way true 2>/dev/null &&
		exec $way sh -c 'ip link set lo up; exec bash "$1"' sh "$script"
done
exec bash "$script"
