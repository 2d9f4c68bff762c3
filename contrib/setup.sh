# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by quickstart and check: installs what is missing and builds out of the
# source tree. Sets top and build; expects `die`.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD_DIR:-$top/build}
policy=/usr/sbin/policy-rc.d

say() {
	printf '== %s\n' "$*"
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# missing_packages KIND...: those of contrib/packages.txt not installed.
missing_packages() {
	local kind name
	while read -r kind name; do
		case " $* " in *" $kind "*) ;; *) continue ;; esac
		dpkg-query -W -f '${Status}' "$name" 2>/dev/null |
			grep -q '^install ok installed$' || echo "$name"
	done < <(grep -vE '^[[:space:]]*(#|$)' "$top/contrib/packages.txt")
}

install_packages() {
	local missing
	command -v dpkg-query >/dev/null || {
		say "not a Debian system: install the packages of contrib/packages.txt yourself"
		return
	}
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	[ "$(id -u)" = 0 ] || die "as root, install: $(echo $missing)"
	say "installing $(echo $missing)"
	export DEBIAN_FRONTEND=noninteractive
	if [ -e "$policy" ]; then
		apt_install $missing
		return
	fi
	# Services that a package starts at installation are not wanted; of others, which
	# are installed later, nobody has said that. Callers have traps of their own.
	trap 'rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	apt_install $missing
	rm -f "$policy"
	trap - EXIT
}

apt_install() {
	apt-get update -q >/dev/null || die "apt-get update failed"
	apt-get install -q -y --no-install-recommends "$@" >"$top/packages.log" 2>&1 ||
		die "apt-get install failed, see packages.log"
	rm -f "$top/packages.log"
}

# build_tree [CONFIGURE-ARGUMENT...]
build_tree() {
	say "building in $build"
	[ -x "$top/configure" ] && [ "$top/configure" -nt "$top/configure.ac" ] ||
		"$top/autogen.sh" >"$top/autogen.log" 2>&1 ||
		die "autogen.sh failed, see autogen.log"
	rm -f "$top/autogen.log"
	mkdir -p "$build" && cd "$build" || die "cannot use $build"
	"$top/configure" "$@" >configure.out 2>&1 ||
		die "configure failed, see $build/config.log"
	make -s -j"$(nproc)" >make.out 2>&1 || {
		tail -20 make.out >&2
		die "make failed, see $build/make.out"
	}
}
