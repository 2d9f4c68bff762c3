# Every test program speaks TAP. Tiers 1 to 3 are `make check`; each tier also
# has a target of its own, and the slow campaigns are never part of it.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/config/aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
AM_TESTS_ENVIRONMENT = \
	srcdir='$(abs_top_srcdir)' builddir='$(abs_top_builddir)' \
	CC='$(CC)' SANITIZERS='$(SANITIZERS)' \
	export srcdir builddir CC SANITIZERS;

noinst_LTLIBRARIES += tests/support/libtest.la
tests_support_libtest_la_SOURCES = tests/support/test.c tests/support/test.h

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
	$(MAKE) check TESTS='$(system_scripts) $(system_programs)'
check-softcx:
	$(MAKE) check TESTS='$(softcx_scripts)'
# All tiers in one report; what contrib/check runs. The long ones first.
check-all:
	$(MAKE) check TESTS='$(system_scripts) $(system_programs) $(softcx_scripts) $(TESTS)'

.PHONY: check-lint check-unit check-engine check-shim check-system check-softcx \
	check-all softcx check-softcx-long check-softcx-asan check-softcx-tsan

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
	rm -rf coverage coverage.all coverage.info

.PHONY: coverage
