# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the tests of UDP over AF_XDP: two namespaces, programs in them, and
# who has carried the datagrams, by the kernel's own counters.
#
#      namespace vma-ua.PID             namespace vma-ub.PID
#      10.78.0.1 --- v0 -------- veth -------- v0 --- 10.78.0.2
#
# LAB_SEGMENTS=1: each frame is a segment, as between cards.
# LAB_VETH: more about each end, as in "numrxqueues 4 numtxqueues 4".
# LAB_CARD: mlx5 or verbs: what runs under the library has a ConnectX in software
# (tests/softcx) on v0, driven in that way, instead of AF_XDP. LAB_CARDS: other or more
# cards, as SOFTCX has them.
. "${srcdir:-.}/tests/support/preload.sh"

library=$builddir/src/.libs/libvma-debug.so
program="/usr/bin/python3 $srcdir/tests/system/udp_xdp.py"
a=vma-ua.$$
b=vma-ub.$$
work=$(mktemp -d)
server=

end_server() {
	[ -n "$server" ] || return 0
	kill -9 "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
}
# Whoever is left in the namespaces is one of ours.
end_lab() {
	local pids
	end_server
	pids=$(ip netns pids $a 2>/dev/null; ip netns pids $b 2>/dev/null)
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	ip netns del $a 2>/dev/null
	ip netns del $b 2>/dev/null
}
clean_up() {
	end_lab
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

# Says why not.
lab_is_possible() {
	if [ "$(id -u)" != 0 ]; then
		echo "needs root"
		return 1
	fi
	[ -n "${LAB_CARD:-}" ] || return 0
	if [ ! -e "$builddir/tests/softcx/.libs/libsoftcx.so" ]; then
		echo "needs libmlx5"
		return 1
	fi
	printf '%s\n6.6\n' "$(uname -r | sed 's/[^0-9.].*//')" | sort -V |
		head -1 | grep -qx 6.6 || { echo "needs Linux 6.6"; return 1; }
	[ -e /sys/kernel/btf/vmlinux ] || { echo "needs the kernel's BTF"; return 1; }
}

# As between cards: nothing longer than the MTU, and a port that is active.
is_running() {
	ip netns exec "$1" grep -qx up "/sys/class/net/${2:-v0}/operstate"
}
make_wire() {
	local link=${1:-v0} end
	[ -n "${LAB_CARD:-}${LAB_SEGMENTS:-}" ] || return 0
	for end in $a $b; do
		ip netns exec $end ethtool -K "$link" tso off gso off gro off \
			>/dev/null && wait_until is_running $end "$link" ||
			return 1
	done
}

# That an interface runs the kernel says at once if its other end has another number; it
# takes one whose other end has the same for one without, and is up to a second late.
make_lab() {
	local number=
	[ -z "${LAB_CARD:-}${LAB_SEGMENTS:-}" ] || number="index 3"
	end_lab
	ip netns add $a && ip netns add $b &&
		ip link add v0 netns $a ${LAB_VETH:-} type veth \
			peer name v0 $number netns $b ${LAB_VETH:-} &&
		ip -n $a address add 10.78.0.1/24 dev v0 &&
		ip -n $b address add 10.78.0.2/24 dev v0 &&
		ip -n $a link set lo up && ip -n $b link set lo up &&
		ip -n $a link set v0 up && ip -n $b link set v0 up &&
		make_wire && ip netns exec $b ping -q -c 1 -W 2 10.78.0.1 >/dev/null
}

# (in_ns NAMESPACE LOG COMMAND...): on the kernel if LOG is -. The subshell becomes
# the command, so that a kill reaches it.
in_ns() {
	local namespace=$1 log=$2
	shift 2
	if [ "$log" = - ]; then
		exec ip netns exec "$namespace" "$@"
	fi
	export VMA_LOG_FILE=$work/$log VMA_TRACELEVEL=debug
	if [ -n "${LAB_CARD:-}" ]; then
		export SOFTCX=${LAB_CARDS:-mlx5_0:v0} VMA_RING=$LAB_CARD
		library=$library:$builddir/tests/softcx/.libs/libsoftcx.so
	fi
	preloaded "$library" exec ip netns exec "$namespace" "$@"
}

wait_for() {
	for _ in $(seq 500); do
		grep -q "$1" "$2" 2>/dev/null && return 0
		sleep 0.02
	done
	echo "no \"$1\" in $2:"
	grep -v '\[VMA_' "$2"
	return 1
}

# frames_at NAMESPACE LINK: those that have come by it.
frames_at() {
	ip netns exec "$1" cat "/sys/class/net/$2/statistics/rx_packets"
}
# await_frames NAMESPACE LINK CNT: until so many more have.
await_frames() {
	wait_until has_frames "$1" "$2" $(($(frames_at "$1" "$2") + $3))
}
has_frames() {
	[ "$(frames_at "$1" "$2")" -ge "$3" ]
}

# has_heard NAMESPACE: whoever hears of changes of its network there has read of all.
has_heard() {
	ip netns exec "$1" awk 'NR > 1 && $5 > 0 { exit 1 }' /proc/net/netlink
}

# is_bound NAMESPACE PORT: somebody has it.
is_bound() {
	ip netns exec "$1" ss -Huln "sport = :$2" | grep -q .
}

# A lab whose b is a mirror, by which the sockets of one program in a reach each other.
mirror=10.78.0.200
make_mirror() {
	make_lab || return 1
	ip -n $a neighbour add $mirror dev v0 lladdr \
		"$(ip netns exec $b cat /sys/class/net/v0/address)" &&
		ip netns exec $a sysctl -qw net.ipv4.icmp_ratelimit=0 &&
		# what leaves by the kernel leaves complete
		ip netns exec $a ethtool -K v0 tx off >/dev/null || return 1
	(in_ns $b - /usr/bin/python3 "$srcdir/tests/system/udp_mirror.py" v0 \
		$mirror) >"$work/mirror" 2>&1 &
	wait_for ready "$work/mirror"
}

# start LOG COMMAND...: a server in a that says "ready".
start() {
	local log=$1
	shift
	: >"$work/out"
	(in_ns $a "$log" "$@") >"$work/out" 2>&1 &
	server=$!
	wait_for ready "$work/out"
}

# Datagrams that the kernel's sockets of a namespace have received.
kernel_cnt() {
	ip netns exec "$1" cat /proc/net/snmp |
		awk '/^Udp:/ && NR { n = $2 } END { print n }'
}

# ask LOG CNT LEN [ADDRESS [SECONDS]]
ask() {
	(in_ns $b "$1" timeout 30 $program ask "${4:-10.78.0.1}" 7000 "$2" "$3" \
		${5:-}) 2>&1
}

# in_three_tries COMMAND...: for what a machine that stands still for a second can spoil. A
# fault of ours is there each time.
in_three_tries() {
	local try
	for try in 1 2 3; do
		"$@" && return
		echo "(try $try)"
		end_server
	done
	return 1
}

expect() {
	[ "$1" = "$2" ] || { echo "got: $1, expected: $2"; return 1; }
}

# overlook INTERFACE ADDRESS: a server (udp_xdp.py echo_on_a_card) looks away while much
# comes to it, so that the card uses what frames it had. Nobody else may take what comes
# (VMA_PROGRESS_ENGINE_INTERVAL=0). Until the interface has more.
overlook() {
	rm -f "$work/look"
	(in_ns $b - $program say "$2" 7000 "card unseen $work/look")
	wait_for '^looks away' "$work/out" || return 1
	(in_ns $b - $program shower "$2" 7000 1500)
	touch "$work/look"
	wait_for '^card unseen .* 0$' "$work/out" &&
		wait_for "$1: another 4096 frames\$" "$work/a.log"
}

# At most 5 in 100 by the kernel.
is_accelerated() {
	local namespace=$1 before=$2 cnt=$3 now
	now=$(kernel_cnt "$namespace")
	[ $(((now - before) * 20)) -le "$cnt" ] ||
		{ echo "$((now - before)) of $cnt by the kernel in $namespace"; return 1; }
}

# tell CASE: on failure, where its datagrams have gone; as much as helps whoever was not there.
tell() {
	local namespace pid
	"$@" && return
	for namespace in $a $b; do
		echo "== $namespace"
		ip -n $namespace neighbour
		ip netns exec $namespace nstat -a | grep -E '^(Ip|Udp|Icmp)[A-Z]' |
			awk '{ print $1, $2 }' | paste -sd ' '
		ip netns exec $namespace cat /sys/class/net/v0/statistics/{rx,tx}_{packets,dropped} |
			paste -sd ' '
		for pid in $(ip netns pids $namespace); do
			tr '\0' ' ' <"/proc/$pid/cmdline"
			echo
			"$builddir/tools/vma_stats/vma_stats" -p "$pid" --raw 2>/dev/null |
				awk '$2 != 0' | head -60 | paste -sd ' '
		done
	done
	return 1
}

# run_cases NAME...: each in a lab of its own.
run_cases() {
	local case why
	for case in ${CASES:-$@}; do
		why=$(lab_is_possible) || { tap_skip "$case" "$why"; continue; }
		make_lab || { tap_not_ok "$case" "cannot make the namespaces"; continue; }
		tap_check "$case" tell "$case"
		end_lab
	done
	tap_end
}
