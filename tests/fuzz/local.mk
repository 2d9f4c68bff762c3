# Fuzz targets: programs that replay what the fuzzer has found so far, with the
# compiler and sanitizers of the build. `make fuzz` makes fuzzers of the same
# programs, by clang in a build of its own below this one; run them by hand, for
# instance
#
#     fuzz/tests/fuzz/fuzz_rules -max_total_time=600 DIR $srcdir/tests/fuzz/corpus/fuzz_rules
#
# and merge what they find into the corpus with -merge=1.
if FUZZING
fuzz_replay = tests/support/fuzz.h
else
fuzz_replay = tests/support/fuzz.h tests/support/fuzz_main.c
endif

tcp_world = %D%/tcp_world.h %D%/tcp_world.c
tcp_fuzz_libs = src/tcp/libtcp-debug.a src/event/libevent-debug.a \
	src/pkt/libpkt-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
stats_fuzz_reports = tools/vma_stats/report_basic.c \
	tools/vma_stats/report_full.c tools/vma_stats/report_list.c \
	tools/vma_stats/report_raw.c tools/vma_stats/report_why.c \
	tools/vma_stats/args.c

fuzz_programs =

fuzz_programs += %D%/fuzz_rules
%C%_fuzz_rules_SOURCES = %D%/fuzz_rules.c $(fuzz_replay)
%C%_fuzz_rules_LDADD = $(conf_test_libs)
%C%_fuzz_rules_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

fuzz_programs += %D%/fuzz_options
%C%_fuzz_options_SOURCES = %D%/fuzz_options.c $(fuzz_replay)
%C%_fuzz_options_LDADD = $(conf_test_libs)
%C%_fuzz_options_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

fuzz_programs += %D%/fuzz_tcp
%C%_fuzz_tcp_SOURCES = %D%/fuzz_tcp.c $(tcp_world) $(fuzz_replay)
%C%_fuzz_tcp_LDADD = $(tcp_fuzz_libs)
%C%_fuzz_tcp_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

fuzz_programs += %D%/fuzz_tcp_import
%C%_fuzz_tcp_import_SOURCES = %D%/fuzz_tcp_import.c $(tcp_world) $(fuzz_replay)
%C%_fuzz_tcp_import_LDADD = $(tcp_fuzz_libs)
%C%_fuzz_tcp_import_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

if HAVE_NL
fuzz_programs += %D%/fuzz_netlink
%C%_fuzz_netlink_SOURCES = %D%/fuzz_netlink.c $(fuzz_replay)
%C%_fuzz_netlink_CPPFLAGS = $(libnl_cppflags)
%C%_fuzz_netlink_LDADD = $(libnl_test_libs)
%C%_fuzz_netlink_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
endif

fuzz_programs += %D%/fuzz_icmp
%C%_fuzz_icmp_SOURCES = %D%/fuzz_icmp.c $(fuzz_replay)
%C%_fuzz_icmp_LDADD = $(ip_test_libs)
%C%_fuzz_icmp_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

fuzz_programs += %D%/fuzz_frame
%C%_fuzz_frame_SOURCES = %D%/fuzz_frame.c $(fuzz_replay)
%C%_fuzz_frame_LDADD = $(net_unit_libs)
%C%_fuzz_frame_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

fuzz_programs += %D%/fuzz_tx_control
%C%_fuzz_tx_control_SOURCES = %D%/fuzz_tx_control.c $(fuzz_replay)
%C%_fuzz_tx_control_LDADD = $(sock_test_libs)
%C%_fuzz_tx_control_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

fuzz_programs += %D%/fuzz_stats
%C%_fuzz_stats_SOURCES = %D%/fuzz_stats.c $(stats_fuzz_reports) $(fuzz_replay)
%C%_fuzz_stats_LDADD = $(stats_test_libs)
%C%_fuzz_stats_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)

unit_programs += $(fuzz_programs)
EXTRA_DIST += %D%/corpus %D%/fuzz_rules.dict %D%/fuzz_options.dict

# Empty for a campaign: many times as fast, with the asserts and the target's own
# checks alone; what it finds is then replayed by a build with sanitizers.
FUZZ_SANITIZERS = address,undefined
FUZZ_CFLAGS = -O1 -g
fuzz:
	@mkdir -p $@ && cd $@ && \
	$(abs_top_srcdir)/configure CC=clang CFLAGS='$(FUZZ_CFLAGS)' --enable-fuzzing \
		--enable-sanitizers=$(or $(FUZZ_SANITIZERS),no) >configure.out && \
	$(MAKE) -s $(fuzz_programs)
.PHONY: fuzz
