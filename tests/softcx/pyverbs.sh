#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rdma-core's own tests, written against real cards, as Debian packages them with
# python3-pyverbs: those that a card with raw packet queue pairs only can run. Most
# of each module needs RC, UD or SRQs and is skipped by itself; the numbers are how
# many are not.
. "${srcdir:-.}/tests/softcx/lab.sh"
lab_one
folder=/usr/share/doc/rdma-core/tests
python=/usr/bin/python3
[ -d $folder ] && $python -c 'import pyverbs' 2>/dev/null ||
	skip "needs python3-pyverbs"
ip -n "$lab-a" addr add $LAB_IP_A/24 dev eth0
# What Python does not free is not our affair.
export ASAN_OPTIONS=detect_leaks=0
export PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
tmp=$(mktemp -d)
trap 'lab_end; rm -rf "$tmp"' EXIT
mkdir "$tmp/tests"
cp $folder/*.py* "$tmp/tests"
gunzip "$tmp/tests/"*.gz

# run NAME PASSING OPTIONS...
run() {
	in_ns a timeout 120 $python "${srcdir:-.}/tests/softcx/pyverbs_run.py" \
		"$tmp" "$@" >"$tmp/out" 2>"$tmp/err"
	result=$?
	[ $result = 0 ] || sed 's/^/# /' "$tmp/err"
	grep -v '^# skipped' "$tmp/out"
	tap $result "$1"
}
run test_cq 3
run test_cqex 2
run test_mr 4
# Five of nine have random attributes, and are skipped with those of other kinds.
run test_qp 4
run test_pd 4
run test_addr 1
run test_fork 1
run test_flow 5
run test_mlx5_timestamp 4
run test_mlx5_uar 1
# Processes that use their parent's context, which is not there (README); the
# table of GIDs by ioctl(), whose other form in sysfs answers otherwise to what is
# wrong; a device imported by its descriptor.
run test_device 18 without=test_multi_process_alloc_dm \
	without=test_query_gid_table without=test_query_gid_ex_bad_flow \
	without=test_import_dm
# With SRQs, whose refusal pyverbs does not survive; the others need RC.
run test_parent_domain 0 without=test_mem_align_srq_excq_rc_traffic \
	without=test_mem_align_srq_ud_traffic
# Connections are refused, and nobody hangs. One of them, for its other side waits
# for a quarter of a minute.
in_ns a timeout 120 $python "${srcdir:-.}/tests/softcx/pyverbs_run.py" "$tmp" \
	test_rdmacm.CMTestCase.test_rdmacm_async_traffic_external_qp 0 \
	>"$tmp/out" 2>&1
[ $? = 1 ] && grep -q 'Failed to create QP.*not supported' "$tmp/out"
tap $? test_rdmacm_is_refused
tap_end
