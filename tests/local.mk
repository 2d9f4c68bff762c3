# Every test program speaks TAP. Tiers 1 to 3 are `make check`; each tier also
# has a target of its own, and the slow campaigns are never part of it.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/config/aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
# TEST_SECONDS: how long a program may take; TEST_UNDER: what a compiled one runs under.
bounded = $(top_srcdir)/tests/support/bounded
LOG_COMPILER = $(bounded) $(TEST_UNDER)
SH_LOG_COMPILER = $(bounded)
EXTRA_DIST += tests/support/bounded
# Before a make of some test programs, each of which takes as long as it is told to.
campaign = TEST_SECONDS=$${TEST_SECONDS:-14400}
# Nobody reads what a test that passes has printed: what UBSan finds ends it.
AM_TESTS_ENVIRONMENT = \
	UBSAN_OPTIONS=halt_on_error=1; export UBSAN_OPTIONS; \
	srcdir='$(abs_top_srcdir)' builddir='$(abs_top_builddir)' \
	CC='$(CC)' SANITIZERS='$(SANITIZERS)' \
	export srcdir builddir CC SANITIZERS;

noinst_LIBRARIES += tests/support/libtest.a
tests_support_libtest_a_SOURCES = tests/support/test.c tests/support/test.h \
	tests/support/high_page.h tests/support/inherited.h \
	tests/support/pcap.c tests/support/pcap.h tests/support/sleeper.h \
	tests/support/stopper.h tests/support/unseen.h

# The tests of each tier, filled by their local.mk: programs that automake builds,
# and scripts (which are also to be named in EXTRA_DIST).
unit_programs =
unit_scripts =
engine_programs =
shim_programs =
shim_scripts =
system_programs =
system_scripts =
softcx_programs =
softcx_scripts =

include tests/unit/local.mk
include tests/engine/local.mk
include tests/shim/local.mk
include tests/sequences/local.mk
include tests/system/local.mk
include tests/fuzz/local.mk
include tests/bench/local.mk
include tests/softcx/local.mk
include tests/contract/local.mk

check_PROGRAMS += $(unit_programs) $(engine_programs) $(shim_programs) \
	$(system_programs) $(softcx_programs)
TESTS += $(lint_scripts) $(unit_programs) $(unit_scripts) \
	$(engine_programs) $(shim_programs) $(shim_scripts)
EXTRA_DIST += $(lint_scripts) $(unit_scripts) $(shim_scripts) \
	$(system_scripts) $(softcx_scripts)

check-lint:
	$(MAKE) check TESTS='$(lint_scripts)'
check-unit:
	$(MAKE) check TESTS='$(unit_programs) $(unit_scripts)'
check-engine:
	$(MAKE) check TESTS='$(engine_programs)'
check-shim:
	$(MAKE) check TESTS='$(shim_programs) $(shim_scripts)'
check-system:
	$(MAKE) check TESTS='$(system_scripts)'
check-softcx:
	$(MAKE) check TESTS='$(softcx_scripts)'
# All tiers in one report. The long ones first, so that none is left alone at the end.
# What takes longest is asked by turns where there is no time for all of it: of what the
# lists below name, TURN=0 to TURN=7 asks its own list alone, and of what the software card
# is asked over both kinds of rings, over one: mlx5 in even turns.
turn_0 = $(call scripts,udp_mirror_mlx5 tcp_servers udp_tx programs card_soak)
turn_1 = $(call scripts,udp_mirror_verbs python exchange)
turn_2 = $(call scripts,tcp_faults_mlx5 card_stamps card_options udp_programs tcp_ends)
turn_3 = $(call scripts,tcp_faults_verbs card_stamps card_options tcp_rights udp_hostile \
	net_view asyncio)
turn_4 = $(call scripts,udp_pace_mlx5 tcp_mirror ready_sequences)
turn_5 = $(call scripts,udp_verbs bond_verbs vlan_verbs udp_mirror tcp_hostile udp_ways)
turn_6 = $(call scripts,udp_mlx5 bond_mlx5 vlan_mlx5 tcp_ways tcp_programs)
turn_7 = $(call scripts,udp_pace_verbs tcp_xdp udp_xdp pyverbs tcp_fastopen)
# Of these, one half is asked here and the other of a variant of the build, in even turns
# and in odd ones, and of the two longest the variant asks one.
half_0 = $(call scripts,ab stats sequences sequences_tcp_processes)
half_1 = $(call scripts,options doors sequences_tcp sequences_processes)
scripts = $(addprefix %/,$(addsuffix .sh,$(1)))
# by_turn IN-EVEN-ONES,IN-ODD-ONES: without TURN, nothing
by_turn = $(if $(TURN),$(if $(filter 0 2 4 6,$(TURN)),$(1),$(2)))
others = $(if $(TURN),$(filter-out $(turn_$(TURN)),$(foreach turn,0 1 2 3 4 5 6 7,$(turn_$(turn)))))
all_tiers = $(filter-out $(others),$(system_scripts) $(softcx_scripts)) \
	$(filter-out $(call by_turn,$(half_1),$(half_0)),$(shim_scripts)) \
	$(engine_programs) $(shim_programs) $(unit_scripts) $(unit_programs) $(lint_scripts)
check-all:
	$(MAKE) check TESTS='$(all_tiers)'

# The same tests in builds of their own below this one: another compiler, whose
# lock analysis makes errors, and the sanitizers. The thread sanitizer has nothing
# to see in engines and would take minutes for them; the lints are not made for
# libraries that need and export a sanitizer's symbols.
variant = MAKE='$(MAKE)' $(top_srcdir)/contrib/variant $@
thread_tests = $(filter-out $(call by_turn,$(half_0) %/udp.sh,$(half_1) %/tcp.sh),$(shim_scripts)) \
	$(shim_programs) $(unit_scripts) $(unit_programs)
memory_tests = $(thread_tests) $(engine_programs)
check-clang:
	@$(variant) '$(memory_tests)' CC=clang CFLAGS='-O2 -g -Werror'
check-asan:
	@SIM_SEEDS=200 $(variant) '$(memory_tests)' CC='$(CC)' \
		--enable-sanitizers=address,undefined CFLAGS='-O1 -g -Werror'
# gcc's: the shared one of Debian 12's clang crashes in any program.
check-tsan:
	@$(variant) '$(thread_tests)' CC=gcc \
		--enable-sanitizers=thread CFLAGS='-O1 -g -Werror'

# The unit tests once more, in this build, under valgrind, but for those of signals,
# which it delivers at moments of its own.
check-valgrind:
	@TEST_UNDER_VALGRIND=1 TEST_UNDER='valgrind -q --leak-check=full --error-exitcode=99 \
		--errors-for-leak-kinds=definite' $(variant) \
		'$(filter-out tests/unit/os/signals%,$(unit_programs))'

# Builds without a part that others are built with: the unit tests show that the rest does
# without it. What tests there are is the inner build's to say.
check-builds: check-no-xdp check-no-mlx5 check-no-verbs check-no-nl
check-no-xdp check-no-mlx5 check-no-verbs check-no-nl:
	@$(variant) '$$(unit_programs) $$(unit_scripts)' CC='$(CC)' \
		--with-$(patsubst check-no-%,%,$@)=no CFLAGS='-O1 -g -Werror'

# Everything there is, in hours: all tiers, all variants, all campaigns.
check-long:
	@MAKE='$(MAKE)' $(top_srcdir)/contrib/parts all

variants = check-clang check-asan check-tsan check-softcx-asan \
	check-softcx-tsan check-no-xdp check-no-mlx5 check-no-verbs check-no-nl
.PHONY: check-lint check-unit check-engine check-shim check-system check-softcx \
	check-all check-builds check-long check-valgrind softcx check-softcx-long $(variants)

# Which lines of src the tests reach, in a build with --enable-coverage. Their
# verdict does not count here, and the lints have no part in it: an instrumented
# library needs and exports more, and the compiler puts calls of its own in the
# place of exec's.
if COVERAGE
coverage:
	find . -name '*.gcda' -exec rm -f {} +
	-$(MAKE) check TESTS='$(unit_programs) $(unit_scripts) $(engine_programs) $(shim_programs) $(shim_scripts)'
	lcov --quiet --capture --directory . --output-file coverage.all
	lcov --quiet --extract coverage.all '*/src/*' --output-file coverage.info
	genhtml --quiet --output-directory coverage coverage.info
	lcov --list coverage.info
else
coverage:
	@echo 'Configure with --enable-coverage first.'; exit 1
endif
clean-local:
	rm -rf coverage coverage.all coverage.info fuzz $(variants)

.PHONY: coverage
