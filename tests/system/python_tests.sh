# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced, behind compare.sh, by the scripts that run tests of Python.

# Python's own tests of what we touch: the verdict on each case. What a case says
# on libc is the standard. Some of them count on time, and get a second chance (-w):
# what passes once passes. VSOCK hangs on machines without the driver. Where
# there are no verdicts, the ways never agree. Where some are side by side, each is
# in a network namespace of its own.
python_tests() {
	local in preload=${LD_PRELOAD:-} apart=()
	in=$(mktemp -d "$work/python-XXXXXX")
	[ -z "${side_by_side:-}" ] || apart=(env -u LD_PRELOAD unshare --net
		sh -c 'ip link set lo up && exec "$@"' sh
		env ${preload:+LD_PRELOAD="$preload"})
	(cd "$in" && "${apart[@]}" timeout "${PYTHON_TESTS_SECONDS:-400}" /usr/bin/python3 -m test \
		-j4 -w --timeout "${PYTHON_TEST_SECONDS:-200}" \
		--junit-xml verdicts.xml -i '*VSOCK*' "$@" >python.out 2>&1 </dev/null)
	if [ ! -s "$in/verdicts.xml" ]; then
		echo "no verdicts on ${LD_PRELOAD:-libc}:"
		tail -20 "$in/python.out"
		return
	fi
	/usr/bin/python3 - "$in/verdicts.xml" <<-'PY'
		import sys, xml.etree.ElementTree as tree
		verdicts = {}
		for case in tree.parse(sys.argv[1]).iter("testcase"):
		    bad = [c.tag for c in case if c.tag in ("failure", "error", "skipped")]
		    name = case.get("name")
		    if verdicts.get(name) != "ok":
		        verdicts[name] = bad[0] if bad else "ok"
		for name in sorted(verdicts):
		    print(name, verdicts[name])
	PY
}
