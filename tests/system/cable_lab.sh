# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the tests of TCP over a cable that is a program (bad_cable): what tcp_lab.sh
# has, and a namespace between the two.
#
#      namespace vma-ua.PID        vma-uc.PID         namespace vma-ub.PID
#      10.78.0.1 --- v0 --- veth --- m0 | m1 --- veth --- v0 --- 10.78.0.2
#
# $cable: what it does to frames.
. "${srcdir:-.}/tests/system/tcp_lab.sh"

c=vma-uc.$$

end_cable() {
	[ -z "${cable_pid:-}" ] || kill "$cable_pid" 2>/dev/null
	[ -z "${cable_pid:-}" ] || wait "$cable_pid" 2>/dev/null
	cable_pid=
}
end_cable_lab() {
	end_cable
	end_lab
	ip netns del $c 2>/dev/null
}
trap 'end_cable_lab; clean_up' EXIT

# What leaves is complete, and not longer than a frame.
join() {
	ip link add v0 netns "$1" type veth peer name "$2" netns $c &&
		ip -n "$1" address add "$3/24" dev v0 &&
		ip -n "$1" link set lo up && ip -n "$1" link set v0 up &&
		ip -n $c link set "$2" up &&
		ip netns exec "$1" ethtool -K v0 tx off tso off gso off gro off \
			>/dev/null &&
		ip netns exec $c ethtool -K "$2" gro off >/dev/null
}
# plug_in SEED: with what $cable says of it.
plug_in() {
	# shellcheck disable=SC2086
	ip netns exec $c "$builddir/tests/system/bad_cable" m0 m1 "$1" $cable \
		>"$work/cable" 2>&1 &
	cable_pid=$!
	wait_for ready "$work/cable"
}
# make_cable_lab SEED
make_cable_lab() {
	end_cable_lab
	ip netns add $a && ip netns add $b && ip netns add $c &&
		join $a m0 10.78.0.1 && join $b m1 10.78.0.2 && plug_in "$1"
}
