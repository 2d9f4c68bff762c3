# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two namespaces for the benchmarks, sourced by them; a temporary folder is $work, and
# what $echo_pid names is ended with them. LAB_PORTS: two interfaces that are cabled to each
# other and used by nobody, which go there instead of a veth, and come back at the end.
#
#      namespace $a                     namespace $b
#      10.79.0.1 --- v0 -------- veth -------- v0 --- 10.79.0.2
a=vma-ia.$$
b=vma-ib.$$
work=$(mktemp -d)
echo_pid=

clean_up() {
	# whoever is gone already, the rest has to go, too
	set +e
	# one that is under valgrind may not hear of less
	[ -z "$echo_pid" ] || kill -KILL "$echo_pid"
	[ -z "${LAB_PORTS:-}" ] || give_back_ports
	ip netns del $a
	ip netns del $b
	rm -r "$work"
}
end_server() {
	kill "$echo_pid"
	wait "$echo_pid" 2>/dev/null || true
	echo_pid=
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# take_port PORT NAMESPACE
take_port() {
	ip link set "$1" down
	ip link set "$1" netns "$2"
	ip -n "$2" link set "$1" name v0
}
give_back_ports() {
	for namespace in $a $b; do
		port=${LAB_PORTS%% *}
		[ "$namespace" = $a ] || port=${LAB_PORTS##* }
		ip -n $namespace link set v0 down &&
			ip -n $namespace link set v0 name "$port" &&
			ip -n $namespace link set "$port" netns $$ || true
	done 2>/dev/null
}

# preload_of LIBRARY[:LIBRARY...]: the same with whole paths.
preload_of() {
	list=
	for part in $(echo "$1" | tr : ' '); do
		list=$list${list:+:}$(realpath "$part")
	done
	echo "$list"
}

ip netns add $a
ip netns add $b
if [ -n "${LAB_PORTS:-}" ]; then
	take_port "${LAB_PORTS%% *}" $a
	take_port "${LAB_PORTS##* }" $b
else
	ip link add v0 netns $a type veth peer name v0 netns $b
fi
ip -n $a address add 10.79.0.1/24 dev v0
ip -n $b address add 10.79.0.2/24 dev v0
ip -n $a link set v0 up
ip -n $b link set v0 up
# a card says up to a second later than the link that it is up
if [ -n "${VMA_RING:-}" ]; then
	for end in $a $b; do
		ip netns exec $end ethtool -K v0 tso off gso off gro off >/dev/null || true
		for look in $(seq 250); do
			ip netns exec $end grep -qx up /sys/class/net/v0/operstate && break
			sleep 0.02
		done
	done
fi
mac=$(ip -n $b -br link show v0 | awk '{ print $3 }')
ip -n $a neighbour replace 10.79.0.2 lladdr "$mac" dev v0 nud permanent
