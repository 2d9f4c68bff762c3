#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# librdmacm on the card (cm_test.c). The other namespace has some addresses, gets
# one more while a case waits for it, and is a gateway.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_two
ip -n "$lab-b" addr add 10.9.0.3/24 dev eth0
ip -n "$lab-b" addr add 10.9.0.4/24 dev eth0
ip -n "$lab-a" route add 10.99.0.0/24 via 10.9.0.4
ip -n "$lab-a" route add 239.0.0.0/8 dev eth0
in_ns a timeout 120 "${builddir:-.}/tests/softcx/cm_test" "$@" |
	while read -r line; do
		echo "$line"
		if [ "$line" = "# now 10.9.0.5" ]; then
			ip -n "$lab-b" addr add 10.9.0.5/24 dev eth0
		fi
	done
