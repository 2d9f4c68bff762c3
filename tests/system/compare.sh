# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the tests with real programs. What a program does and says must be the
# same on libc, under libvma.so, and with the test kind of socket. The sourcing
# script defines program_NAME for each, which prints what counts of a session and
# leaves out what varies, and calls compare_all. All traffic stays in a network
# namespace of its own. Programs of side_by_side, which mostly wait, and share no port and
# no file with themselves, run in all ways at once.
. "${srcdir:-.}/tests/support/preload.sh"

if [ "$(id -u)" != 0 ]; then
	tap_skip "$(basename "$0" .sh)" "needs root"
	tap_end
	exit 0
fi
if [ "${SANITIZERS:-none}" != none ]; then
	tap_skip "$(basename "$0" .sh)" "not under a sanitizer"
	tap_end
	exit 0
fi
if [ -z "${PROGRAMS_INSIDE:-}" ]; then
	PROGRAMS_INSIDE=1 exec unshare --net -- "$0" "$@"
fi
ip link set lo up

# Servers give up root, so everything lies where anybody may look.
work=$(mktemp -d /tmp/vma-programs-XXXXXX)
chmod 755 "$work"
cp "$builddir"/src/.libs/libvma.so.10.*.* "$work/libvma.so"
cp "$builddir/tests/shim/.libs/libvma-test.so" "$work/libvma-test.so"
chmod 755 "$work"/*.so

pids=()
# Starts a server in the background, on record for stop_all.
start() {
	"$@" >>"$work/server.out" 2>&1 </dev/null &
	pids+=($!)
}
stop_all() {
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null
	done
	for pid in "${pids[@]}"; do
		wait "$pid" 2>/dev/null
	done
	pids=()
}
trap 'stop_all; rm -rf "$work"' EXIT

# Until something listens on the port.
await_port() {
	local hex
	hex=$(printf '%04X' "$1")
	for _ in $(seq 200); do
		grep -qE ":$hex 0{8,32}:0000 0A" /proc/net/tcp /proc/net/tcp6 && return
		sleep 0.05
	done
	echo "nothing listens on port $1"
}

# run_way WAY PROGRAM
run_way() {
	unset LD_PRELOAD SHIM_TEST_KIND
	export VMA_LOG_FILE=/dev/null
	case $1 in
	libc) ;;
	preloaded) export LD_PRELOAD=$work/libvma.so ;;
	as_object)
		export LD_PRELOAD=$work/libvma-test.so SHIM_TEST_KIND=1
		;;
	esac
	"program_$2"
	unset LD_PRELOAD
	stop_all
}

compare() {
	local program=$1 way diff
	for way in libc preloaded as_object; do
		(run_way $way "$program") >"$work/out.$way" 2>&1 &
		[[ " ${side_by_side:-} " == *" $program "* ]] || wait $!
	done
	wait
	for way in preloaded as_object; do
		diff=$(diff "$work/out.libc" "$work/out.$way")
		if [ -z "$diff" ] && [ -s "$work/out.libc" ]; then
			tap_ok "${program}_$way"
		else
			tap_not_ok "${program}_$way" "$diff
$(tail -5 "$work/server.out")"
		fi
	done
}

# compare_all NAME...
compare_all() {
	local program
	for program in "$@"; do
		compare "$program"
	done
	tap_end
}
