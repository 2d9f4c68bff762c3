#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What contrib/quickstart and check do to a machine whose packages are made up.
. "${srcdir:-.}/tests/support/preload.sh"

. "$srcdir/contrib/setup.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work policy=$work/policy-rc.d
mkdir "$work/contrib"
echo 'build a-package' >"$work/contrib/packages.txt"

id() {
	echo 0
}
dpkg-query() {
	return 1
}
# Fails as it is told, and without the policy.
apt-get() {
	[ "$1" = update ] || { [ -x "$policy" ] && [ ! -e "$work/broken" ]; }
}

# install: as quickstart does, which sets a trap of its own afterwards.
install() (
	trap - EXIT
	install_packages build
	trap : EXIT
)

services_of_later_packages_start() {
	install >/dev/null && [ ! -e "$policy" ]
}

also_after_a_failure() {
	touch "$work/broken"
	! install >/dev/null 2>&1 && rm "$work/broken" && [ ! -e "$policy" ]
}

a_policy_that_was_there_stays() {
	echo "as it was" >"$policy" && chmod +x "$policy" && install >/dev/null &&
		grep -qx "as it was" "$policy" && rm "$policy"
}

tap_check services_of_later_packages_start services_of_later_packages_start
tap_check also_after_a_failure also_after_a_failure
tap_check a_policy_that_was_there_stays a_policy_that_was_there_stays
tap_end
