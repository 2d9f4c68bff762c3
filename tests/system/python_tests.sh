# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced, behind compare.sh, by the scripts that run tests of Python.

# Python's own tests of what we touch: the verdict on each case. What a case says
# on libc is the standard. Some of them count on time, and get a second chance (-w):
# what passes once passes. VSOCK hangs on machines without the driver. Where
# there are no verdicts, the ways never agree.
python_tests() {
	rm -f "$work/verdicts.xml"
	(cd "$work" && timeout "${PYTHON_TESTS_SECONDS:-280}" /usr/bin/python3 -m test \
		-j4 -w --timeout "${PYTHON_TEST_SECONDS:-100}" \
		--junit-xml verdicts.xml -i '*VSOCK*' "$@" >python.out 2>&1 </dev/null)
	if [ ! -s "$work/verdicts.xml" ]; then
		echo "no verdicts on ${LD_PRELOAD:-libc}:"
		tail -20 "$work/python.out"
		return
	fi
	/usr/bin/python3 - "$work/verdicts.xml" <<-'PY'
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
