# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the tests of the software card: namespaces with cables between
# them, and their removal whatever happens.
#
#   lab_one    one namespace, eth0 and eth1 joined: two cards, one process
#   lab_two    two namespaces a and b, eth0 joined (lab_two 2: and eth1)
#
#   in_ns NAME COMMAND...    runs it there, with the card preloaded

lab=softcx-$$
lab_names=
lab_library=
lab_so=${builddir:-.}/tests/softcx/.libs/libsoftcx.so
LAB_IP_A=10.9.0.1
LAB_IP_B=10.9.0.2

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

# wait_for COMMAND...: until it succeeds; a minute is long on any machine.
wait_for() {
	for lab_try in $(seq 1200); do
		"$@" && return
		sleep 0.05
	done
	return 1
}

# Whoever is still in the namespace is ours, whatever its session: a process that
# stays would keep it. Again until nobody is there: one may just be forking.
lab_ns_is_empty() {
	pids=$(ip netns pids "$1" 2>/dev/null)
	[ -z "$pids" ] && return
	kill -KILL $pids 2>/dev/null
	return 1
}
lab_ns_end() {
	wait_for lab_ns_is_empty "$1"
	ip netns del "$1" 2>/dev/null
}

# Namespaces whose maker was killed before it could remove them.
lab_end_stale() {
	ip netns list | sed -nE 's/^(softcx-([0-9]+)-[a-z]+).*/\1 \2/p' |
		while read -r name maker; do
			[ -d "/proc/$maker" ] || lab_ns_end "$name"
		done
}

# What the card needs of the machine; ends the test when that is not there.
lab_check() {
	[ -e "$lab_so" ] || skip "needs libmlx5"
	[ "$(id -u)" = 0 ] || skip "needs root"
	printf '%s\n6.6\n' "$(uname -r | sed 's/[^0-9.].*//')" |
		sort -V | head -1 | grep -qx 6.6 || skip "needs Linux 6.6"
	[ -e /sys/kernel/btf/vmlinux ] || skip "needs the kernel's BTF"
	lab_end_stale
	ip netns add "$lab-try" 2>/dev/null || skip "needs root"
	ip netns del "$lab-try"
}

lab_end() {
	for name in $lab_names; do
		lab_ns_end "$lab-$name"
	done
	lab_names=
}
trap lab_end EXIT
trap 'exit 1' HUP INT TERM

lab_ns() {
	ip netns add "$lab-$1"
	lab_names="$lab_names $1"
	ip -n "$lab-$1" link set lo up
}

# Frames as on a wire: nothing larger than the MTU, nothing of IPv6's own.
lab_port() {
	ip netns exec "$lab-$1" sysctl -qw \
		"net.ipv6.conf.$2.disable_ipv6=1" 2>/dev/null
	ip netns exec "$lab-$1" ethtool -K "$2" tso off gso off gro off \
		>/dev/null 2>&1
	ip -n "$lab-$1" link set "$2" up
}

lab_cable() {
	ip link add "$2" netns "$lab-$1" type veth peer name "$4" \
		netns "$lab-$3"
	lab_port "$1" "$2"
	lab_port "$3" "$4"
}

lab_one() {
	lab_check
	lab_ns a
	lab_cable a eth0 a eth1
	lab_cards=mlx5_0:eth0,mlx5_1:eth1
}

lab_two() {
	lab_check
	lab_ns a
	lab_ns b
	lab_cable a eth0 b eth0
	lab_cards=mlx5_0:eth0
	if [ "${1:-1}" = 2 ]; then
		lab_cable a eth1 b eth1
		lab_cards=mlx5_0:eth0,mlx5_1:eth1
	fi
	ip -n "$lab-a" addr add $LAB_IP_A/24 dev eth0
	ip -n "$lab-b" addr add $LAB_IP_B/24 dev eth0
}

# The run-time library of the sanitizers comes first of all.
lab_preload() {
	case ${SANITIZERS:-none} in
	*address*) "$CC" -print-file-name=libasan.so ;;
	*thread*) "$CC" -print-file-name=libtsan.so ;;
	esac
}

in_ns() {
	ns=$lab-$1
	shift
	ip netns exec "$ns" env SOFTCX="$lab_cards" \
		LD_PRELOAD="$(lab_preload) $lab_library $lab_so" "$@"
}
mac_of() {
	ip netns exec "$lab-$1" cat "/sys/class/net/${2:-eth0}/address"
}

# The result of one step as a line of TAP.
tap_n=0
tap() {
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
	fi
}
tap_end() {
	echo "1..$tap_n"
}
