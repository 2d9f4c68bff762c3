# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by test scripts: how to run a program under the library.
#
#   preloaded LIBRARY COMMAND...     COMMAND with LIBRARY preloaded
#
# In a sanitizer build the run-time library has to come first, and a program that
# is not instrumented must not be held to account for what it leaks. The thread
# sanitizer starts by installing fault handlers, through our sigaction(), before it
# can bear instrumented code: it shall not. What it reports goes to files, because
# outputs are compared; a script that has called collect_reports has one more case
# at its end, which fails on any.

builddir=${builddir:-.}
srcdir=${srcdir:-.}

# clang's name first: it would find gcc's under the other.
runtime_of() {
	local name path
	for name in "libclang_rt.$1-$(uname -m).so" "lib$1.so"; do
		path=$(${CC:-gcc} -print-file-name="$name")
		case $path in /*) echo "$path"; return ;; esac
	done
}

sanitizer_runtime() {
	case ${SANITIZERS:-none} in
	*thread*) runtime_of tsan ;;
	*address*) runtime_of asan ;;
	esac
}

is_thread_sanitized() {
	[ "${SANITIZERS:-none}" = thread ]
}

is_address_sanitized() {
	case ${SANITIZERS:-none} in address*) ;; *) false ;; esac
}

tsan_options=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
tsan_options=$tsan_options:suppressions=$srcdir/tests/support/tsan.supp
# Each process would wait a second at its exit for reports of other threads. A child may
# end without those of its parent, which it takes for forgotten.
tsan_options=$tsan_options:atexit_sleep_ms=50:report_thread_leaks=0
export TSAN_OPTIONS=$tsan_options:${TSAN_OPTIONS:-}

# collect_reports DIRECTORY: where those of the thread sanitizer go.
collect_reports() {
	reports=$1/tsan
	TSAN_OPTIONS=log_path=$reports:$TSAN_OPTIONS
}

no_reports() {
	! cat "$reports".* 2>/dev/null
}

preloaded() {
	local library=$1 runtime
	shift
	runtime=$(sanitizer_runtime)
	ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} \
	LD_PRELOAD=${runtime:+$runtime:}$library "$@"
}

# tap_alike CASE OUTPUT OTHER...: whether they are the same, and of a program that
# printed something and ended by itself ("exit N" is the last line of others).
tap_alike() {
	local name=$1 first=$2 other diff=
	shift 2
	for other; do
		diff=$(diff "$first" "$other") && continue
		diff="of ${other##*/}: $diff"
		break
	done
	if [ -z "$diff" ] && [ -s "$first" ] && ! grep -q '^exit' "$first"; then
		tap_ok "$name"
	else
		tap_not_ok "$name" "${diff:-$(cat "$first")}"
		return 1
	fi
}

# wait_until COMMAND...: ten seconds at most.
wait_until() {
	local end=$((SECONDS + 10))
	until "$@"; do
		[ $SECONDS -lt $end ] || { echo "not: $*"; return 1; }
		sleep 0.02
	done
}

# TAP.
tap_cnt=0
tap_ok() {
	tap_cnt=$((tap_cnt + 1))
	echo "ok $tap_cnt - $1"
}
tap_not_ok() {
	tap_cnt=$((tap_cnt + 1))
	echo "not ok $tap_cnt - $1"
	[ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/# /'
}
tap_skip() {
	tap_cnt=$((tap_cnt + 1))
	echo "ok $tap_cnt - $1 # SKIP $2"
}
# tap_check NAME COMMAND...: ok when the command succeeds; its output is shown
# when it does not.
tap_check() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		tap_ok "$name"
	else
		tap_not_ok "$name" "$out"
	fi
}
tap_end() {
	if [ -n "${reports:-}" ] && is_thread_sanitized; then
		tap_check nothing_was_reported no_reports
	fi
	echo "1..$tap_cnt"
}
