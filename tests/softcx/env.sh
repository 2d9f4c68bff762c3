#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the environment asks of the card (env_test.c): a capture, faults by seed,
# a clock of its own, large completions; what it prints; and what it says to a value
# it does not understand.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
tmp=$(mktemp -d)
trap 'lab_end; rm -rf "$tmp"' EXIT

# run NAME VARIABLES...: one case of env_test
run() {
	name=$1
	shift
	in_ns a SOFTCX_MANUAL=1 "$@" timeout 60 \
		"${builddir:-.}/tests/softcx/env_test" "$name" >"$tmp/out" 2>&1
	result=$?
	[ $result = 0 ] || sed 's/^/# /' "$tmp/out"
	return $result
}

run pcap_has_exactly_the_frames SOFTCX_PCAP="$tmp/wire.pcap"
tap $? pcap_has_exactly_the_frames

# faults SEED: the line that says what was injected and what arrived
faults() {
	run faults SOFTCX_SEED="$1" \
		SOFTCX_IMPAIR=loss=50000,dup=50000,corrupt=50000,reorder=50000 \
		>&2 || return 1
	sed -n 's/.*FAULTS //p' "$tmp/out"
}
first=$(faults 7) && [ -n "$first" ]
tap $? faults_of_the_environment_are_counted
echo "# $first"
[ "$(faults 7)" = "$first" ]
tap $? same_seed_same_faults
other=$(faults 8) && [ "$other" != "$first" ]
tap $? another_seed_other_faults

run clock_drifts_as_configured SOFTCX_CLOCK=khz=100000,ppm=200,offset=5000000
tap $? clock_drifts_as_configured
run completions_of_128_bytes MLX5_CQE_SIZE=128
tap $? completions_of_128_bytes
run short_frames_stay_in_their_buffers MLX5_CQE_SIZE=128 MLX5_SCATTER_TO_CQE=1
tap $? short_frames_stay_in_their_buffers

# Nothing, when it asks for nothing.
in_ns a env -u SOFTCX timeout 60 "${builddir:-.}/tests/softcx/env_test" \
	nothing_happens_without_the_variable >"$tmp/out" 2>&1
result=$?
[ $result = 0 ] || sed 's/^/# /' "$tmp/out"
tap $result nothing_happens_without_the_variable

# What is printed: each command, and each counter that is not zero.
in_ns a SOFTCX_TRACE=1 timeout 60 ibv_devinfo -d mlx5_0 >"$tmp/out" 2>"$tmp/err"
grep -qx 'softcx: command 0 get_context: ok' "$tmp/err" &&
	grep -qx 'softcx: command ex 1 query_device_ex: ok' "$tmp/err" &&
	grep -qx 'softcx: command 2 query_port: ok' "$tmp/err" &&
	grep -q '^softcx: ioctl object 0x.* (unknown): Protocol not supported$' \
		"$tmp/err" && ! grep -v '^softcx: ' "$tmp/err"
tap $? commands_are_traced
in_ns a SOFTCX_MANUAL=1 SOFTCX_STATS=1 SOFTCX_PCAP="$tmp/wire.pcap" timeout 60 \
	"${builddir:-.}/tests/softcx/env_test" pcap_has_exactly_the_frames \
	>"$tmp/out" 2>"$tmp/err"
grep -qx 'softcx: mlx5_0: tx_wire  *400  frames given to the wire' "$tmp/err" &&
	grep -qx 'softcx: mlx5_1: rx_delivered  *400  frames written into a receive queue' \
		"$tmp/err" && ! grep -q ' 0  ' "$tmp/err"
tap $? counters_are_printed

# What looks by statx(): the tools of today.
[ "$(in_ns a ls /sys/class/infiniband/mlx5_0/device/net/)" = eth0 ] &&
	[ "$(in_ns a stat -c %F:%t:%T /dev/infiniband/uverbs0)" = \
		'character special file:1:3' ] &&
	in_ns a ls -la /dev/infiniband /sys/class/infiniband/mlx5_0 \
		>"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/err" ] &&
	grep -q '^crw.* uverbs0$' "$tmp/out" && grep -q ' node_type$' "$tmp/out"
tap $? tools_see_the_devices

# malformed VARIABLE=VALUE LINE: ends the process with this one line.
most_cut() {
	in_ns a env SOFTCX_TSO=$1 timeout 60 ibv_devinfo -v 2>/dev/null |
		awk '$1 == "max_tso:" { print $2; exit }'
}
[ "$(most_cut 1)" = 262144 ] && [ "$(most_cut 0)" = 0 ]
tap $? card_without_segmentation

bad=0
malformed() {
	in_ns a env "$1" timeout 60 ibv_devices >"$tmp/out" 2>"$tmp/err"
	[ $? = 134 ] && [ "$(grep -v '^Aborted' "$tmp/err")" = "softcx: $2" ] &&
		return
	echo "# $1: $(cat "$tmp/err")"
	bad=1
}
malformed SOFTCX=mlx5_0 'SOFTCX: "mlx5_0" is not DEVICE:INTERFACE'
malformed SOFTCX=:eth0 'SOFTCX: "" is no name'
malformed SOFTCX=mlx5_0: 'SOFTCX: "" is no name'
malformed SOFTCX=../x:eth0 'SOFTCX: "../x" is no name'
malformed SOFTCX=a:e,b:e,c:e,d:e,e:e,f:e,g:e,h:e,i:e 'SOFTCX: more than 8 devices'
malformed SOFTCX_STRICT=2 'SOFTCX_STRICT: "2" is not a number from 0 to 1'
malformed SOFTCX_STATS=yes 'SOFTCX_STATS: "yes" is not a number from 0 to 1'
malformed SOFTCX_SEED=7x \
	'SOFTCX_SEED: "7x" is not a number from 0 to 9223372036854775807'
malformed SOFTCX_LATE_US=-1 'SOFTCX_LATE_US: "-1" is not a number from 0 to 1000000'
malformed SOFTCX_RULES=-1 'SOFTCX_RULES: "-1" is not a number from 0 to 4294967295'
malformed SOFTCX_TSO=256k 'SOFTCX_TSO: "256k" is not a number from 0 to 1'
malformed SOFTCX_MIN_INLINE=14 'SOFTCX_MIN_INLINE: 14 is neither 0 nor 18'
malformed SOFTCX_IMPAIR=loss 'SOFTCX_IMPAIR: "loss" has no ='
malformed SOFTCX_IMPAIR=loss=1000001 \
	'SOFTCX_IMPAIR: "1000001" is not a number from 0 to 1000000'
malformed SOFTCX_IMPAIR=loss=1,drop=5 'SOFTCX_IMPAIR: there is no "drop"'
malformed SOFTCX_CLOCK=khz=1 'SOFTCX_CLOCK: "1" is not a number from 1000 to 10000000'
malformed SOFTCX_STRICTT=1 'SOFTCX_STRICTT: there is no such variable'
malformed SOFTCX_PCAP=/no/such/dir/x \
	'SOFTCX_PCAP: cannot write /no/such/dir/x: No such file or directory'
tap $bad malformed_values_are_one_line
in_ns a env SOFTCX=mlx5_0:nosuch ibv_devices >"$tmp/out" 2>"$tmp/err"
[ "$(cat "$tmp/err")" = 'softcx: mlx5_0: no interface nosuch here' ] &&
	! grep -q mlx5_0 "$tmp/out"
tap $? missing_interface_is_one_line
tap_end
