# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by servers_lab.sh: who has carried the frames of a program between the
# namespaces, and why not all of them were ours. A line of the table may say it in two
# columns, of the server's end and of the client's, for the runs with the library there:
#
#   ours                  at most one frame in twenty by the kernel
#   LOW-HIGH:REASON,...   so many in a hundred by us; for the rest the library's logs and
#                         vma_stats name some of these reasons (src/stats/reasons.def), and
#                         no others, or EXIT. TIME_WAIT is none of a socket: where the kernel
#                         waits in the place of a connection that has ended, it has its last
#                         frames
#   LOW-HIGH              the same, and it is not for a socket of this end
#   (nothing)             nobody asks
# They are those of long runs (SERVERS_ALL). SHARES=1: says what it has found.
#
# Both directions count. What our rings have carried is what has passed the links and not the
# kernel's protocols, so that each frame has to be a segment (LAB_SEGMENTS).

# Links of b that are the kernel's at all times are not looked at.
links_of() {
	case $1 in $a) echo 'v0 w0' ;; *) echo v0 ;; esac
}
declare -A frames_before

# frames_of NAMESPACE: how many have passed its links so far, both ways, and how many of
# them the kernel's protocols have had.
frames_of() {
	# shellcheck disable=SC2016
	ip netns exec "$1" sh -c '
		cd /sys/class/net
		for link in *; do
			echo link $link $(cat $link/statistics/rx_packets $link/statistics/tx_packets)
		done
		cat /proc/net/snmp' |
		awk -v links=" $(links_of "$1") " '
		/^link/ && index(links, " " $2 " ") { all += $3 + $4; next }
		/^link/ { theirs -= $3 + $4 }
		/^[A-Z]/ && $2 ~ /[A-Z]/ { for (i = 2; i <= NF; i++) name[i] = $1 $i; next }
		/^[A-Z]/ { for (i = 2; i <= NF; i++) n[name[i]] = $i }
		END { print all, theirs + n["Ip:InReceives"] + n["Tcp:OutSegs"] + n["Udp:OutDatagrams"] + n["Icmp:OutMsgs"] }'
}

mark_frames() {
	local ns
	for ns in $a $b; do
		frames_before[$ns]=$(frames_of $ns)
	done
}

# What vma_stats says of who still lives: a child that the kernel reads for is in no log.
ask_why() {
	local end pid
	for end in a b; do
		for pid in $(ip netns pids ${!end}); do
			timeout 5 "$builddir/tools/vma_stats/vma_stats" -p "$pid" --why 2>/dev/null
		done >"$work/$end.why"
	done
}

# The reasons that the logs of a namespace name, and vma_stats. Nobody asks of what never
# leaves the host.
reasons_of() {
	local end=a
	[ "$1" = $a ] || end=b
	{
		grep -oE '\[[A-Z_0-9]+\]' "$work/$end.why" | tr -d '[]'
		sed -nE "s/.*: fd -?[0-9]+.*(is the|with the|to the|by the) kernel(.s)?: (.*)/\3/p
			s/.*the kernel accepts alone while (.*)/\1/p
			s/.* in TIME_WAIT (is|are) left to the kernel.*/TIME_WAIT/p" \
			"$work"/log/$end.*.vma 2>/dev/null
	} | awk -F '"' '
		FILENAME != "-" { if (/^REASON/) { split($1, name, /[(,]/); names[$2] = name[2] } next }
		{ print $0 in names ? names[$0] : /^[A-Z_0-9]+$/ ? $0 : "OPTION" }
		' "$srcdir/src/stats/reasons.def" - |
		sort -u | grep -vxE 'FAMILY|TYPE|NOT_USED|LOCAL' | paste -sd,
}

# are_among SOME ALL: and there is one.
are_among() {
	[ -n "$1" ] && [ -z "$(tr , '\n' <<<"$1" | grep -vxF "$(tr , '\n' <<<"$2,EXIT")")" ]
}
# check_share NAMESPACE WISH: says what is otherwise.
check_share() {
	local all theirs all_before theirs_before ours low=95 high=100 reasons= given
	read -r all_before theirs_before <<<"${frames_before[$1]}"
	read -r all theirs <<<"$(frames_of "$1")"
	all=$((all - all_before)) theirs=$((theirs - theirs_before))
	given=$(reasons_of "$1")
	ours=$((all > theirs ? (all - theirs) * 100 / all : 0))
	[ -z "${SHARES:-}" ] || echo "# $program: $ours% of $all frames in ${1%.*} ours; $given" >&2
	[ -n "$2" ] && [ -n "${SERVERS_ALL:-}" ] || return 0
	# a few frames say nothing
	[ "$2" = ours ] && [ $((theirs * 20)) -le $((all + 40)) ] && ours=100
	if [ "$2" != ours ]; then
		IFS=-: read -r low high reasons <<<"$2"
	fi
	if [ "$ours" -lt "$low" ] || [ "$ours" -gt "$high" ]; then
		echo "in ${1%.*} $ours% of $all frames were ours, not $low to $high; reasons: $given"
	elif [ -n "$reasons" ] && ! are_among "$given" "$reasons"; then
		echo "in ${1%.*} $ours% of $all frames were ours; reasons: $given, not $reasons"
	fi
}
