# Fuzz targets. `make fuzz` builds each as tests/fuzz/<name>.fuzz with clang's
# fuzzer; run it by hand, for instance
#
#     tests/fuzz/fuzz_rules.fuzz -max_total_time=600 DIR $srcdir/tests/fuzz/corpus/fuzz_rules
#
# and merge what it finds into the corpus with -merge=1. `make check` replays the
# corpus with whatever compiler and sanitizers the build has.
FUZZ_CC = clang
FUZZ_CFLAGS = -O1 -g
# Empty for a campaign: three times as fast, with the asserts and the target's own
# checks alone; what it finds is then replayed by a build with sanitizers.
FUZZ_SANITIZERS = -fsanitize=address,undefined -fno-sanitize-recover=all
fuzz_flags = $(DEFS) -I. $(AM_CPPFLAGS) -std=gnu11 $(DEBUG_CFLAGS) \
	-fsanitize=fuzzer $(FUZZ_SANITIZERS)
fuzz_replay = tests/support/fuzz.h tests/support/fuzz_main.c
fuzz_targets =

base_fuzz_sources = src/base/ipaddr.c src/base/log.c src/base/text.c
conf_fuzz_sources = src/conf/banner.c src/conf/cpus.c src/conf/options.c \
	src/conf/options_parse.c src/conf/rules.c src/conf/rules_match.c \
	src/conf/rules_parse.c src/conf/suggest.c $(base_fuzz_sources)

ip_fuzz_sources = src/ip/ip_frag.c src/ip/ip_icmp.c src/pkt/wire.c \
	src/base/checksum.c $(base_fuzz_sources)
nl_fuzz_sources = src/nl/addr_tab.c src/nl/firewall_parse.c src/nl/link_tab.c \
	src/nl/neigh_tab.c src/nl/net_view.c src/nl/netlink_attr.c \
	src/nl/netlink_msg.c src/nl/netlink_parse.c \
	src/nl/netlink_parse_route.c src/nl/path_mtu_tab.c src/nl/policy_tab.c src/nl/route_tab.c src/nl/rpf_tab.c \
	src/base/hash_tab.c src/base/hash.c $(base_fuzz_sources)

fuzz_targets += %D%/fuzz_rules.fuzz
unit_programs += %D%/fuzz_rules
%C%_fuzz_rules_SOURCES = %D%/fuzz_rules.c $(fuzz_replay)
%C%_fuzz_rules_LDADD = $(conf_test_libs)
%D%/fuzz_rules.fuzz: %D%/fuzz_rules.c $(conf_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

fuzz_targets += %D%/fuzz_options.fuzz
unit_programs += %D%/fuzz_options
%C%_fuzz_options_SOURCES = %D%/fuzz_options.c $(fuzz_replay)
%C%_fuzz_options_LDADD = $(conf_test_libs)
%D%/fuzz_options.fuzz: %D%/fuzz_options.c $(conf_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

tcp_world = %D%/tcp_world.h %D%/tcp_world.c
tcp_fuzz_libs = src/tcp/libtcp-debug.la src/event/libevent-debug.la \
	src/pkt/libpkt-debug.la src/base/libbase-debug.la \
	tests/support/libtest.la
tcp_fuzz_sources = $(tcp_sources) $(event_sources) $(pkt_sources) \
	src/base/checksum.c src/base/hash.c src/base/lock.c src/base/log.c \
	%D%/tcp_world.c
# Nothing in a segment has to be guessed, for which the fuzzer looks at operands: they
# cost more than the engine.
tcp_fuzz_cflags = $(FUZZ_CFLAGS) \
	-fno-sanitize-coverage=trace-cmp,trace-div,trace-gep,indirect-calls

fuzz_targets += %D%/fuzz_tcp.fuzz
unit_programs += %D%/fuzz_tcp
%C%_fuzz_tcp_SOURCES = %D%/fuzz_tcp.c $(tcp_world) $(fuzz_replay)
%C%_fuzz_tcp_LDADD = $(tcp_fuzz_libs)
%D%/fuzz_tcp.fuzz: %D%/fuzz_tcp.c $(tcp_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(tcp_fuzz_cflags) -o $@ \
		$(filter %.c,$^)

fuzz_targets += %D%/fuzz_tcp_import.fuzz
unit_programs += %D%/fuzz_tcp_import
%C%_fuzz_tcp_import_SOURCES = %D%/fuzz_tcp_import.c $(tcp_world) \
	$(fuzz_replay)
%C%_fuzz_tcp_import_LDADD = $(tcp_fuzz_libs)
%D%/fuzz_tcp_import.fuzz: %D%/fuzz_tcp_import.c $(tcp_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(tcp_fuzz_cflags) -o $@ \
		$(filter %.c,$^)

fuzz_targets += %D%/fuzz_netlink.fuzz
unit_programs += %D%/fuzz_netlink
%C%_fuzz_netlink_SOURCES = %D%/fuzz_netlink.c $(fuzz_replay)
%C%_fuzz_netlink_LDADD = $(nl_test_libs)
%D%/fuzz_netlink.fuzz: %D%/fuzz_netlink.c $(nl_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

fuzz_targets += %D%/fuzz_icmp.fuzz
unit_programs += %D%/fuzz_icmp
%C%_fuzz_icmp_SOURCES = %D%/fuzz_icmp.c $(fuzz_replay)
%C%_fuzz_icmp_LDADD = $(ip_test_libs)
%D%/fuzz_icmp.fuzz: %D%/fuzz_icmp.c $(ip_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

fuzz_targets += %D%/fuzz_frame.fuzz
unit_programs += %D%/fuzz_frame
%C%_fuzz_frame_SOURCES = %D%/fuzz_frame.c $(fuzz_replay)
%C%_fuzz_frame_LDADD = $(net_unit_libs)
%D%/fuzz_frame.fuzz: %D%/fuzz_frame.c src/net/demux.c src/pkt/pkt_pool.c \
	src/pkt/wire.c src/base/checksum.c $(base_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

fuzz_targets += %D%/fuzz_tx_control.fuzz
unit_programs += %D%/fuzz_tx_control
%C%_fuzz_tx_control_SOURCES = %D%/fuzz_tx_control.c $(fuzz_replay)
%C%_fuzz_tx_control_LDADD = $(sock_test_libs)
%D%/fuzz_tx_control.fuzz: %D%/fuzz_tx_control.c src/sock/tx_control.c \
	$(base_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

stats_fuzz_reports = tools/vma_stats/report_basic.c \
	tools/vma_stats/report_full.c tools/vma_stats/report_list.c \
	tools/vma_stats/report_raw.c tools/vma_stats/report_why.c \
	tools/vma_stats/args.c
fuzz_targets += %D%/fuzz_stats.fuzz
unit_programs += %D%/fuzz_stats
%C%_fuzz_stats_SOURCES = %D%/fuzz_stats.c $(stats_fuzz_reports) $(fuzz_replay)
%C%_fuzz_stats_LDADD = $(stats_test_libs)
%D%/fuzz_stats.fuzz: %D%/fuzz_stats.c $(stats_fuzz_reports) \
		src/stats/layout.c src/stats/reasons.c \
		src/stats/stats_process.c src/stats/stats_snapshot.c \
		src/stats/stats_text.c src/base/hash.c $(base_fuzz_sources)
	$(AM_V_CCLD)$(FUZZ_CC) $(fuzz_flags) $(FUZZ_CFLAGS) -o $@ $^

fuzz: $(fuzz_targets)

EXTRA_DIST += %D%/corpus %D%/fuzz_rules.dict %D%/fuzz_options.dict
CLEANFILES += $(fuzz_targets)

.PHONY: fuzz
