net_unit_libs = src/net/libnet-debug.a src/nl/libnl-debug.a \
	src/ip/libip-debug.a src/fd/libfd-debug.a src/event/libevent-debug.a \
	src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a

unit_programs += %D%/confirm %D%/demux %D%/dst_lookup %D%/give_back %D%/net %D%/netif %D%/paced %D%/rpf %D%/send_memory %D%/spill \
	%D%/stack %D%/stack_lock %D%/stack_timers %D%/strays
%C%_confirm_LDADD = $(net_unit_libs)
%C%_demux_LDADD = $(net_unit_libs)
%C%_give_back_LDADD = $(net_unit_libs)
%C%_send_memory_LDADD = $(net_unit_libs)
# A network over one interface, for the tests of net and sock.
nic_sources = %D%/nic.h %D%/nic.c
%C%_dst_lookup_SOURCES = %D%/dst_lookup.c $(nic_sources)
%C%_dst_lookup_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_net_SOURCES = %D%/net.c $(nic_sources)
%C%_net_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_netif_SOURCES = %D%/netif.c $(nic_sources)
%C%_netif_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_paced_SOURCES = %D%/paced.c $(nic_sources)
%C%_paced_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_rpf_LDADD = $(net_unit_libs)
%C%_spill_LDADD = $(net_unit_libs)
# A stack on one ring, for the tests of stacks.
lone_sources = %D%/lone.h %D%/lone.c
%C%_stack_SOURCES = %D%/stack.c $(lone_sources)
%C%_stack_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_stack_lock_LDADD = $(net_unit_libs)
%C%_stack_timers_SOURCES = %D%/stack_timers.c $(lone_sources)
%C%_stack_timers_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
%C%_strays_SOURCES = %D%/strays.c $(nic_sources)
%C%_strays_LDADD = src/dev/fake/libfake-debug.a $(net_unit_libs)
