# Tier 3: programs run on libc and under the library, which must not be able to
# tell the difference.
check_LTLIBRARIES += %D%/libvma-test.la
%C%_libvma_test_la_SOURCES = %D%/kind.c %D%/local_dev.c %D%/pretend_links.c
libvma_test_parts = src/sock-redirect/libsock-redirect-test.a \
	src/dev/fake/libfake-debug.a $(debug_folders)
%C%_libvma_test_la_CPPFLAGS = $(AM_CPPFLAGS) -DVMA_TEST
%C%_libvma_test_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-Wl,--wrap=link_tab_set -rpath /nowhere $(export_flags)src/sock-redirect/export-test.map \
	-Wl,--whole-archive $(libvma_test_parts:%=-Wl,%) -Wl,--no-whole-archive
EXTRA_%C%_libvma_test_la_DEPENDENCIES = src/sock-redirect/export-test.map $(libvma_test_parts)

check_PROGRAMS += %D%/matrix
%C%_matrix_SOURCES = %D%/matrix.c %D%/matrix_calls.h %D%/matrix_calls.def \
	%D%/matrix_calls.c %D%/matrix_files.c %D%/matrix_processes.c
shim_scripts += %D%/ab.sh
EXTRA_DIST += %D%/matrix.cells tests/support/preload.sh \
	tests/support/tsan.supp

check_PROGRAMS += %D%/scenarios

shim_scripts += %D%/scenarios.sh

check_PROGRAMS += %D%/udp
%C%_udp_SOURCES = %D%/udp.h %D%/udp.c %D%/udp_beside.c %D%/udp_calls.c %D%/udp_control.c \
	%D%/udp_lengths.c %D%/udp_options.c %D%/udp_stamps.c \
	%D%/udp_process.c %D%/udp_children.c %D%/udp_ready.c %D%/udp_mux.c %D%/udp_sets.c %D%/udp_waits.c
shim_scripts += %D%/udp.sh

check_PROGRAMS += %D%/tcp
%C%_tcp_SOURCES = %D%/tcp.h %D%/tcp.c %D%/tcp_close.c %D%/tcp_connect.c \
	%D%/tcp_error_queue.c %D%/tcp_exec.c %D%/tcp_fastopen.c %D%/tcp_files.c %D%/tcp_lengths.c %D%/tcp_listen.c \
	%D%/tcp_beside.c %D%/tcp_options.c %D%/tcp_parts.c %D%/tcp_ports.c %D%/tcp_process.c %D%/tcp_ready.c \
	%D%/tcp_receive.c %D%/tcp_send.c %D%/tcp_told.c %D%/tcp_urgent.c %D%/tcp_waits.c \
	%D%/tcp_workers.c
shim_scripts += %D%/tcp.sh

check_PROGRAMS += %D%/doors
%C%_doors_SOURCES = %D%/doors.h %D%/doors.c %D%/doors_handed.c \
	%D%/doors_numbers.c %D%/doors_readers.c
shim_scripts += %D%/doors.sh

# Seconds of it in make check, minutes by soak-ready: in any build, so with the
# sanitizers, too.
check_PROGRAMS += %D%/crowd
shim_scripts += %D%/crowd.sh
soak-ready:
	CROWD_SECONDS=$${CROWD_SECONDS:-200} $(campaign) $(MAKE) check TESTS='%D%/crowd.sh'
.PHONY: soak-ready

check_PROGRAMS += %D%/stats
shim_scripts += %D%/stats.sh

check_PROGRAMS += %D%/options
%C%_options_SOURCES = %D%/options.h %D%/options.c %D%/options_tcp.c
%C%_options_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
shim_scripts += %D%/options.sh

check_PROGRAMS += %D%/moments
check_LTLIBRARIES += %D%/early.la
%C%_early_la_SOURCES = %D%/early.c
%C%_early_la_LDFLAGS = -module -avoid-version -rpath /nowhere
shim_scripts += %D%/moments.sh

if HAVE_NL
shim_scripts += %D%/modules.sh
endif

# Are the tests of this tier any good? Not part of make check.
EXTRA_DIST += %D%/mutants.sh
check-mutants:
	$(campaign) $(MAKE) check TESTS='%D%/mutants.sh'
.PHONY: check-mutants
