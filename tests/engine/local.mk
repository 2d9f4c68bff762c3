# Tier 2: engines on a virtual clock and simulated links.
engine_test_libs = tests/engine/libsim.a src/dev/fake/libimpair-debug.a src/tcp/libtcp-debug.a \
	src/event/libevent-debug.a src/pkt/libpkt-debug.a \
	src/base/libbase-debug.a tests/support/libtest.a

check_LIBRARIES += %D%/libsim.a
%C%_libsim_a_SOURCES = %D%/sim.h %D%/sim.c %D%/sim_inside.h %D%/sim_checks.c %D%/peer.h %D%/peer.c \
	%D%/reference.h %D%/reference.c %D%/script.h %D%/script.c

engine_programs += %D%/transfer
%C%_transfer_LDADD = $(engine_test_libs)

engine_programs += %D%/random
%C%_random_LDADD = $(engine_test_libs)

engine_programs += %D%/storm
%C%_storm_LDADD = $(engine_test_libs)

engine_programs += %D%/recovery
%C%_recovery_LDADD = $(engine_test_libs)

# The example of the engine's interface, linked as others would link it.
engine_programs += %D%/minimal
%C%_minimal_LDADD = libvma-tcp.a

engine_programs += %D%/batch
%C%_batch_LDADD = $(engine_test_libs)
engine_programs += %D%/direct
%C%_direct_LDADD = $(engine_test_libs)

engine_programs += %D%/table
%C%_table_LDADD = $(engine_test_libs)

engine_programs += %D%/growth
%C%_growth_LDADD = $(engine_test_libs)

engine_programs += %D%/pmtu
%C%_pmtu_LDADD = $(engine_test_libs)

engine_programs += %D%/pace
%C%_pace_LDADD = $(engine_test_libs)

engine_programs += %D%/info
%C%_info_LDADD = $(engine_test_libs)

engine_programs += %D%/moving
%C%_moving_LDADD = $(engine_test_libs)

engine_programs += %D%/misbehave
%C%_misbehave_LDADD = $(engine_test_libs)

engine_programs += %D%/rules
%C%_rules_LDADD = $(engine_test_libs)

engine_programs += %D%/opening
%C%_opening_LDADD = $(engine_test_libs)

engine_programs += %D%/accecn
%C%_accecn_LDADD = $(engine_test_libs)

engine_programs += %D%/fastopen
%C%_fastopen_LDADD = $(engine_test_libs)

engine_programs += %D%/refused
%C%_refused_LDADD = $(engine_test_libs)
engine_programs += %D%/sending
%C%_sending_LDADD = $(engine_test_libs)

engine_programs += %D%/scripts
%C%_scripts_SOURCES = %D%/scripts.c %D%/scripts.def
%C%_scripts_LDADD = $(engine_test_libs)
EXTRA_DIST += %D%/segments %D%/scripts_linux.sh

# The same against Linux, on request: it needs root, and real time.
check_PROGRAMS += %D%/scripts_linux
%C%_scripts_linux_SOURCES = %D%/scripts_linux.c %D%/scripts.def
%C%_scripts_linux_LDADD = $(engine_test_libs)
check-scripts-linux: %D%/scripts_linux
	srcdir='$(abs_top_srcdir)' $(srcdir)/tests/engine/scripts_linux.sh \
		tests/engine/scripts_linux
.PHONY: check-scripts-linux
# And through sockets of the library, which takes a minute.
EXTRA_DIST += %D%/scripts_sockets.sh
check-scripts-sockets: %D%/scripts_linux src/libvma-debug.la
	srcdir='$(abs_top_srcdir)' $(srcdir)/tests/engine/scripts_sockets.sh \
		'$(abs_builddir)/tests/engine/scripts_linux' \
		'$(abs_builddir)/src/.libs/libvma-debug.so'
.PHONY: check-scripts-sockets

# Goodput under loss, ours in the simulator and Linux through two TUN devices and
# the same links. The list of Linux is kept, because it takes root, an hour, and a
# core that nobody else needs; `make goodput-linux` makes another one. The last
# table is in goodput.txt.
EXTRA_PROGRAMS += %D%/goodput
%C%_goodput_SOURCES = %D%/goodput.c
%C%_goodput_LDADD = $(engine_test_libs)
EXTRA_DIST += %D%/goodput.sh %D%/goodput.txt %D%/goodput_linux.txt \
	%D%/fairness.sh %D%/fairness.txt
CLEANFILES += goodput_ours.txt goodput_bbr.txt goodput_linux.txt
goodput: %D%/goodput
	$(srcdir)/%D%/goodput.sh ours %D%/goodput >goodput_ours.txt
	$(srcdir)/%D%/goodput.sh bbr %D%/goodput >goodput_bbr.txt
	$(srcdir)/%D%/goodput.sh table goodput_ours.txt \
		$(srcdir)/%D%/goodput_linux.txt goodput_bbr.txt
goodput-linux: %D%/goodput
	chrt -r 1 $(srcdir)/%D%/goodput.sh linux %D%/goodput >goodput_linux.txt
# Our share of a link beside Linux, half an hour; the last table is in fairness.txt.
fairness-linux: %D%/goodput
	chrt -r 1 $(srcdir)/%D%/fairness.sh %D%/goodput
.PHONY: goodput goodput-linux fairness-linux

# Campaigns, never part of `make check`: planted faults, and seeds without end.
EXTRA_DIST += %D%/mutate.py %D%/mutations.txt
check-mutations:
	CC='$(CC)' $(srcdir)/tests/engine/mutate.py
soak-engine: tests/engine/random
	for first in `seq 1000000 100000 100000000`; do \
		SIM_SEEDS=100000 tests/engine/random --seed $$first || exit 1; \
	done
.PHONY: check-mutations soak-engine

# The stack and what stands on it.
net_test_libs = src/net/libnet-debug.a src/nl/libnl-debug.a \
	src/ip/libip-debug.a src/fd/libfd-debug.a src/event/libevent-debug.a \
	src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
engine_programs += %D%/wait_model
%C%_wait_model_SOURCES = %D%/wait_model.c %D%/sleepers.h %D%/ways.h
%C%_wait_model_LDADD = $(net_test_libs)
# Sets of epoll, on the same.
engine_programs += %D%/set_model
%C%_set_model_SOURCES = %D%/set_model.c %D%/sleepers.h \
	%D%/ways.h
%C%_set_model_LDADD = src/iomux/libiomux-debug.a src/sock/libsock-debug.a src/tcp/libtcp-debug.a \
	$(net_test_libs)
