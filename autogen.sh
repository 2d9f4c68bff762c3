#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes ./configure from configure.ac. Needs autoconf, automake, libtool and
# pkg-config (Debian: contrib/packages.txt has the list).
set -e
cd "$(dirname "$0")"
mkdir -p config/aux
for tool in autoreconf automake libtoolize pkg-config; do
	command -v "$tool" >/dev/null || {
		echo "autogen.sh: $tool is missing; on Debian: apt-get install autoconf automake libtool pkg-config" >&2
		exit 1
	}
done
exec autoreconf --install --force ${1:+"$@"}
