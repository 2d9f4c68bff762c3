# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two namespaces for the benchmarks of UDP, sourced by them; a temporary folder is
# $work, and what $echo_pid names is ended with them.
#
#      namespace $a                     namespace $b
#      10.79.0.1 --- v0 -------- veth -------- v0 --- 10.79.0.2
a=vma-ia.$$
b=vma-ib.$$
work=$(mktemp -d)
echo_pid=

clean_up() {
	[ -z "$echo_pid" ] || kill "$echo_pid"
	ip netns del $a
	ip netns del $b
	rm -r "$work"
}
trap clean_up EXIT

ip netns add $a
ip netns add $b
ip link add v0 netns $a type veth peer name v0 netns $b
ip -n $a address add 10.79.0.1/24 dev v0
ip -n $b address add 10.79.0.2/24 dev v0
ip -n $a link set v0 up
ip -n $b link set v0 up
mac=$(ip -n $b -br link show v0 | awk '{ print $3 }')
ip -n $a neighbour replace 10.79.0.2 lladdr "$mac" dev v0 nud permanent
