# Tier 4: real programs, in network namespaces of their own; needs root. The long
# ones first.
system_scripts += %D%/asyncio.sh %D%/python.sh %D%/programs.sh
EXTRA_DIST += %D%/compare.sh %D%/python_tests.sh

netns_sources = %D%/netns.h %D%/netns.c

if HAVE_NL
system_programs += %D%/net_view_routes_test
system_scripts += %D%/net_view_routes.sh
%C%_net_view_routes_test_SOURCES = %D%/net_view_routes_test.c $(netns_sources) \
	$(fd_services)
%C%_net_view_routes_test_CPPFLAGS = $(libnl_cppflags)
%C%_net_view_routes_test_LDADD = $(libnl_test_libs)

system_programs += %D%/net_view_test
system_scripts += %D%/net_view.sh
%C%_net_view_test_SOURCES = %D%/net_view_test.c $(netns_sources) $(fd_services)
%C%_net_view_test_CPPFLAGS = $(libnl_cppflags)
%C%_net_view_test_LDADD = $(libnl_test_libs)
endif

# Connections of the engine that become the kernel's.
system_programs += %D%/tcp_way_back_test
system_scripts += %D%/tcp_way_back.sh
%C%_tcp_way_back_test_SOURCES = %D%/tcp_way_back_test.c %D%/tcp_wire.h \
	%D%/tcp_wire.c $(netns_sources)
%C%_tcp_way_back_test_LDADD = src/dev/fake/libimpair-debug.a src/sock/libsock-debug.a src/tcp/libtcp-debug.a \
	src/tcp/libtcp-debug.a $(net_unit_libs)

# What processes say to each other that share a connection since a fork, in every order.
system_programs += %D%/kin_model
%C%_kin_model_SOURCES = %D%/kin_model.c $(netns_sources)
%C%_kin_model_LDADD = src/sock/libsock-debug.a src/tcp/libtcp-debug.a $(net_unit_libs)
# With all processes at once.
check-kin-long:
	$(campaign) $(MAKE) check TESTS='%D%/kin_model' KIN_MODEL_ALL=1
.PHONY: check-kin-long

# UDP over AF_XDP, with a foreign XDP program in the way for one case.
if HAVE_XDP
system_scripts += %D%/tcp_ends.sh %D%/tcp_fastopen.sh %D%/tcp_mirror.sh %D%/tcp_programs.sh %D%/tcp_shared_port.sh %D%/tcp_xdp.sh
system_scripts += %D%/tcp_bad_cable.sh %D%/tcp_crowd.sh %D%/tcp_hostile.sh %D%/tcp_pmtu.sh \
	%D%/tcp_rights.sh %D%/tcp_meddler.sh %D%/tcp_scripts.sh %D%/tcp_servers.sh \
	%D%/tcp_turns.sh %D%/tcp_ways.sh
check_PROGRAMS += %D%/tcp_crowd %D%/tcp_flood %D%/tcp_peer %D%/bad_cable
%C%_bad_cable_SOURCES = %D%/bad_cable.c
%C%_tcp_peer_SOURCES = %D%/tcp_peer.c %D%/tcp_peer.h %D%/tcp_peer_serve.c %D%/tcp_peer_stream.c
%C%_bad_cable_LDADD = src/dev/fake/libimpair-debug.a src/base/libbase-debug.a
check_LTLIBRARIES += %D%/namesakes.la
%C%_namesakes_la_SOURCES = %D%/namesakes.c
%C%_namesakes_la_LDFLAGS = -module -avoid-version -rpath /nowhere
system_scripts += %D%/udp_doors.sh %D%/udp_xdp.sh %D%/udp_programs.sh %D%/udp_hostile.sh \
	%D%/udp_frames.sh %D%/udp_kill.sh %D%/udp_mirror.sh %D%/udp_pace_xdp.sh %D%/udp_rpf.sh %D%/udp_tx.sh \
	%D%/ip_headers.sh \
	%D%/udp_ways.sh %D%/ready_programs.sh %D%/ready_sequences.sh
%D%/pass.bpf.o: %D%/pass.bpf.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) -target bpf -O2 -g \
		-I/usr/include/$(host_cpu)-linux-gnu \
		-c $(top_srcdir)/%D%/pass.bpf.c -o $@
%D%/tag.bpf.o: %D%/tag.bpf.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) -target bpf -O2 -g \
		-I/usr/include/$(host_cpu)-linux-gnu \
		-c $(top_srcdir)/%D%/tag.bpf.c -o $@
%D%/cgroup.bpf.o: %D%/cgroup.bpf.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) -target bpf -O2 -g \
		-I/usr/include/$(host_cpu)-linux-gnu \
		-c $(top_srcdir)/%D%/cgroup.bpf.c -o $@
system_bpf = %D%/pass.bpf.o %D%/tag.bpf.o %D%/cgroup.bpf.o
check_DATA += $(system_bpf)
CLEANFILES += $(system_bpf)
endif
EXTRA_DIST += %D%/cable_lab.sh %D%/tcp_faults.sh %D%/tcp_lab.sh %D%/checksums.py %D%/tcp_hostile.py %D%/tcp_meddler.py %D%/tcp_pmtu.py \
	%D%/tcp_ends.py %D%/tcp_rights.py %D%/tcp_programs.py %D%/tcp_servers.py %D%/tcp_soak.sh %D%/tcp_soak.py %D%/tcp_turns.py
# The same on the software ConnectX.
if HAVE_VERBS
if HAVE_MLX5
system_scripts += %D%/tcp_exit_mlx5.sh %D%/udp_mirror_mlx5.sh %D%/udp_mirror_verbs.sh %D%/udp_mlx5.sh \
	%D%/udp_pace_mlx5.sh %D%/udp_pace_verbs.sh %D%/vlan_mlx5.sh %D%/vlan_verbs.sh \
	%D%/bond_mlx5.sh %D%/bond_verbs.sh \
	%D%/udp_verbs.sh %D%/card_options.sh %D%/card_soak.sh %D%/card_stamps.sh
check_PROGRAMS += %D%/card_soak
card_tcp_scripts = %D%/tcp_mlx5.sh %D%/tcp_verbs.sh %D%/tcp_mirror_mlx5.sh \
	%D%/tcp_mirror_verbs.sh
system_scripts += %D%/tcp_faults_mlx5.sh %D%/tcp_faults_verbs.sh %D%/tcp_tso.sh
endif
endif
EXTRA_DIST += %D%/tcp_segments.py %D%/card_stamps.py %D%/vlan_card.sh %D%/vlan.py %D%/bond_card.sh %D%/bond.py %D%/udp_card.sh %D%/udp_lab.sh \
	%D%/udp_pace.sh %D%/udp_pace_card.sh %D%/udp_pace.py %D%/udp_doors.py %D%/udp_xdp.py %D%/udp_programs.py \
	%D%/udp_hostile.py %D%/udp_frames.py %D%/udp_kill.py %D%/udp_rpf.py %D%/udp_tx.py \
	%D%/ip_headers.py \
	%D%/udp_mirror.py %D%/udp_ways.py %D%/ready_loop.py %D%/ready_loop.js %D%/pass.bpf.c %D%/tag.bpf.c %D%/cgroup.bpf.c

# Campaigns: two hundred kills, frames of many seeds.
check-udp-long:
	$(campaign) $(MAKE) check TESTS='%D%/udp_kill.sh %D%/udp_hostile.sh' KILLS=200 BLASTS=50
.PHONY: check-udp-long

# What of TCP takes longer: scenarios that wait for seconds over the wire, more bytes and
# connections.
check-tcp-long:
	$(campaign) $(MAKE) check TESTS='%D%/tcp_mirror.sh %D%/tcp_programs.sh %D%/tcp_xdp.sh' TCP_ALL=1 \
		PEER_BULK=1000000000 PEER_TIMES=20
# More servers and clients of several processes, and daemons of all trades, of which some
# need packages of their own.
EXTRA_DIST += %D%/python_processes.sh %D%/servers_lab.sh %D%/carriers.sh %D%/daemons.sh
check-servers:
	@bash -c '. $(top_srcdir)/contrib/setup.sh && install_packages test servers'
	$(campaign) $(MAKE) check TESTS='%D%/tcp_servers.sh %D%/daemons.sh %D%/python_processes.sh' \
		SERVERS_ALL=1
.PHONY: check-servers
# Streams over connections that processes use in turns, as many as TURNS says each way.
soak-turns:
	$(campaign) $(MAKE) check TESTS='%D%/tcp_turns.sh' TURNS=$${TURNS:-1000}
.PHONY: soak-turns
# Connections that go back at any moment, as many as WAYS says.
soak-way-back:
	$(campaign) $(MAKE) check TESTS='%D%/tcp_way_back.sh' WAYS=$${WAYS:-10000}
.PHONY: soak-way-back
# A hundred thousand connections.
check-tcp-crowd:
	$(campaign) $(MAKE) check TESTS='%D%/tcp_crowd.sh' CROWD=100000
.PHONY: check-tcp-crowd
# TCP over a bad cable for as many seconds as SOAK says.
soak-tcp:
	$(campaign) $(MAKE) check TESTS='%D%/tcp_bad_cable.sh' SOAK=$${SOAK:-600}
.PHONY: soak-tcp
# Programs over a bad cable, each for as many seconds as SOAK says.
soak-tcp-programs:
	$(campaign) $(MAKE) check TESTS='%D%/tcp_soak.sh' SOAK=$${SOAK:-600}
.PHONY: soak-tcp-programs
# TCP on the software ConnectX: the conversations and the scenarios on both kinds of rings.
check-tcp-card:
	$(MAKE) check TESTS='$(card_tcp_scripts)'
EXTRA_DIST += $(card_tcp_scripts)
.PHONY: check-tcp-long check-tcp-card
# Datagrams of all sizes there, so many each way.
soak-card:
	$(campaign) $(MAKE) check TESTS='%D%/card_soak.sh' CARD_SOAK=$${CARD_SOAK:-10000000}
.PHONY: soak-card

# Python's UDP tests with loopback as an accelerated device.
system_scripts += %D%/python_udp.sh
EXTRA_DIST += %D%/python_udp/sitecustomize.py
