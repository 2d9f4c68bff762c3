#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Each row of tests/contract is complete and names a test that exists: a TEST(case)
# of a C program, or a case of a script.
. "${srcdir:-.}/tests/support/preload.sh"
cd "$srcdir" || exit 1

# id TAB behaviour TAB state TAB tier/program:case
rows() {
	grep -hvE '^[[:space:]]*(#|$)' tests/contract/*.tsv
}

malformed() {
	rows | awk -F'\t' 'NF != 4 || $1 == "" || $2 == "" ||
		$3 !~ /^(accelerated|mixed|engine|kernel:[A-Z_]+|refused:E[A-Z0-9]+)$/ ||
		$4 !~ /^[^:]+:[^:]+$/ { print "malformed: " $0 }'
	rows | cut -f1 | sort | uniq -d | sed 's/^/twice: /'
}

unknown_reasons() {
	comm -23 <(rows | cut -f3 | sed -n 's/^kernel://p' | sort -u) \
		<(sed -nE 's/^REASON\((\w+),.*/\1/p' src/stats/reasons.def | sort) |
		sed 's/^/no such reason: /'
}

# The code of a script outside its functions, without comments.
top_level() {
	sed -E '/^[[:space:]]*#/d; /^\w+\(\) .*[})]$/d; /^\w+\(\)/,/^[})]/d' "$1"
}

# The cases of a script: functions of it that its top level names, in a list or one by
# one; what it gives a name in an assertion; and those it makes from a list.
script_cases() {
	comm -12 <(sed -nE 's/^(\w+)\(\).*/\1/p' "$1.sh" | sort -u) \
		<(top_level "$1.sh" | grep -oE '\w+' | sort -u)
	grep -v '^[[:space:]]*#' "$1.sh" |
		grep -oP '\btap_(check|ok|alike|skip)\s+"?\K\w+'
	case $1 in
	*/softcx/*)
		grep -v '^[[:space:]]*#' "$1.sh" |
			grep -oP '^\s*(tap \S+|run|faults|perftest) "?\K\w+'
		;;
	*/shim/ab)
		sed 's/\..*//' tests/shim/matrix.cells | uniq |
			sed 'p;p' | awk 'NR % 3 == 1 { print $0 "_preloaded" }
				NR % 3 == 2 { print $0 "_as_object" }'
		;;
	*/shim/scenarios | */shim/tcp | */shim/udp | */shim/doors)
		sed -nE 's/^\tSCENARIO\((\w+).*\),/\1/p' "$1"*.c
		;;
	*/sequences/*)
		printf '%s\n' results_are_equal_{sleeping,polling}
		;;
	*/system/python_udp)
		sed -nE 's/^compare (\w+) (\w+) .*/\1\n\2/p' "$1.sh"
		;;
	*/system/tcp_xdp | */system/tcp_fastopen | */system/tcp_programs | */system/tcp_bad_cable | \
		*/system/tcp_ways)
		sed -n "/^carriers='/,/^'/s/^\(\w\+\) .*/\1/p" "$1.sh"
		;;
	*/system/tcp_servers | */system/daemons)
		sed -n "/^programs='/,/^'/s/^\(\w\+\) .*/\1/p" "$1.sh"
		;;
	*/system/udp_mlx5 | */system/udp_verbs | */system/vlan_mlx5 | */system/vlan_verbs | \
		*/system/bond_mlx5 | */system/bond_verbs | */system/udp_pace_mlx5 | \
		*/system/udp_pace_verbs)
		sed -n '/^cases="/,/"$/p' "${1%_*}_card.sh" |
			sed 's/^cases=//' | grep -oE '\w+'
		;;
	*/system/tcp_faults_mlx5 | */system/tcp_faults_verbs)
		sed -n "/^carriers='/,/^'/s/^\(\w\+\) .*/\1/p" tests/system/tcp_faults.sh
		grep -oP '^\s*tap_ok \K\w+|\|\| tap_ok \K\w+' tests/system/tcp_faults.sh
		;;
	*/system/*_mirror_mlx5 | */system/*_mirror_verbs)
		script_cases "${1%_*}"
		;;
	*/system/tcp_exit_mlx5)
		sed -nE 's/^CASES=\$\{CASES:-(.*)\}$/\1/p' "$1.sh" | tr ' ' '\n'
		;;
	*/system/tcp_mlx5 | */system/tcp_verbs)
		script_cases tests/system/tcp_xdp
		;;
	*/system/tcp_scripts)
		sed -n '/^scripts="/,/"$/p' "$1.sh" | sed 's/^scripts=//' | grep -oE '\w+'
		;;
	*/system/tcp_soak)
		sed -nE 's/^program_(\w+)\(\).*/\1/p' "$1.sh"
		;;
	*/system/*)
		sed -nE 's/^program_(\w+)\(\).*/\1_preloaded\n\1_as_object/p' "$1.sh"
		;;
	esac
}

missing_tests() {
	local named test program cases
	named=$(rows | cut -f4 | sort -u)
	sed 's/:.*//' <<<"$named" | uniq | while read -r test; do
		program=tests/$test
		if [ -f "$program.sh" ]; then
			cases=$(script_cases "$program")
		elif [ -f "$program.c" ]; then
			cases=$(sed -nE 's/.*\b(TEST|SCRIPT)\((\w+)\).*/\2/p' "$program.c" \
				$(ls "$program.def" 2>/dev/null))
		else
			echo "no test program $program"
			continue
		fi
		comm -23 <(sed -n "s|^$test:||p" <<<"$named") \
			<(sort -u <<<"$cases") | sed "s|^|$program has no case |"
	done
}

# test TAB who carries its segments, where the test says that of each case.
carriers() {
	local file name
	sed -nE 's/^\tSCENARIO\((\w+), (\w+)\),/shim\/tcp:\1\t\L\2/p' tests/shim/tcp_*.c
	sed -nE "/^programs='/,/^'/{s/^(\w+) +all +ours +ours$/system\/daemons:\1\tours/p;t
		s/^(\w+) +all .*/system\/daemons:\1\tmixed/p}" tests/system/daemons.sh
	for file in $(grep -l "^carriers='" tests/system/*.sh); do
		name=${file#tests/}
		sed -nE "/^carriers='/,/^'/s|^(\w+) +(ours\|kernel\|mixed)$|${name%.sh}:\1\t\2|p" "$file"
	done | sed -E '/^system\/tcp_faults:/{p;s//system\/tcp_faults_mlx5:/p;s/_mlx5:/_verbs:/}
		/^system\/tcp_xdp:/{p;s//system\/tcp_mlx5:/p;s/_mlx5:/_verbs:/}'
}

# What a test finds to be ours is accelerated, what it finds with the kernel is the kernel's;
# of both, a row may name the reason why the kernel has its part.
other_carriers() {
	join -t $'\t' <(carriers | sort -u) \
		<(rows | awk -F'\t' -v OFS='\t' '{ print $4, $3, $1 }' | sort) |
		awk -F'\t' '$2 == "ours" && $3 != "accelerated" ||
			$2 == "kernel" && $3 !~ /^kernel:/ ||
			$2 == "mixed" && $3 !~ /^(mixed|kernel:)/ {
				print $4 " is " $3 ", but " $1 " finds it " $2 }'
}

# Scripts of segments say which rows they show.
unknown_rows() {
	grep -oP '^row +\K\S+' tests/engine/segments/*.tcp |
		awk -F: 'NR == FNR { row[$1] = 1; next }
			!($2 in row) { print $1 " shows " $2 ", which is no row" }' \
			<(rows | cut -f1) - | sort -u
	grep -L '^row ' tests/engine/segments/*.tcp | sed 's/$/ shows no row/'
}

# Of TCP each promise has a script, or a reason why there can be none.
unscripted_rows() {
	local reasons=tests/engine/segments/without_script.tsv
	local shown excused ids
	ids=$(grep -oP '^tcp-[^\t]+' tests/contract/tcp*.tsv -h | sort)
	shown=$(grep -ohP '^row +\K\S+' tests/engine/segments/*.tcp | sort -u)
	excused=$(grep -v '^#' $reasons | cut -f1 | sort)
	comm -23 <(echo "$ids") <(sort -u <<<"$shown"$'\n'"$excused") |
		sed 's/$/ has neither a script nor a reason/'
	comm -13 <(echo "$ids") <(echo "$excused") |
		sed "s|\$| in $reasons is no row|"
	comm -12 <(echo "$shown") <(echo "$excused") |
		sed 's/$/ has a script, and a reason to have none/'
	grep -vP '^#|^\S+\t\S.{10,}' $reasons | sed 's/$/: no reason/'
}

expect_nothing() {
	local out
	out=$("$1")
	[ -z "$out" ] || { echo "$out"; return 1; }
}

tap_check rows_are_complete expect_nothing malformed
tap_check reasons_exist expect_nothing unknown_reasons
tap_check tests_exist expect_nothing missing_tests
tap_check carriers_agree expect_nothing other_carriers
tap_check scripts_show_rows expect_nothing unknown_rows
tap_check tcp_rows_have_scripts expect_nothing unscripted_rows
tap_end
