# Benchmarks report; nothing here fails on a time, and nothing runs in make check.
EXTRA_PROGRAMS += %D%/shim
%C%_shim_CFLAGS = $(release_cflags)
CLEANFILES += bench.json $(EXTRA_PROGRAMS)

bench: %D%/shim src/libvma.la
	%D%/shim src/.libs/libvma.so bench.json
	@size src/.libs/libvma.so
.PHONY: bench

# Instructions of the TCP engine for each segment; needs valgrind.
EXTRA_PROGRAMS += %D%/tcp_instructions
%C%_tcp_instructions_CFLAGS = $(release_cflags)
%C%_tcp_instructions_LDADD = libvma-tcp.a
EXTRA_DIST += %D%/tcp_instructions.sh
bench-tcp: %D%/tcp_instructions
	$(srcdir)/%D%/tcp_instructions.sh %D%/tcp_instructions
.PHONY: bench-tcp

# Instructions of calls on TCP sockets over AF_XDP; needs valgrind and root.
EXTRA_PROGRAMS += %D%/tcp_calls
%C%_tcp_calls_CFLAGS = $(release_cflags)
%C%_tcp_calls_LDADD =
EXTRA_DIST += %D%/tcp_calls.sh
bench-tcp-calls: %D%/tcp_calls all
	$(srcdir)/%D%/tcp_calls.sh %D%/tcp_calls src/.libs/libvma.so
.PHONY: bench-tcp-calls

# UDP over AF_XDP: what sockets cost before any traffic, and the instructions of
# calls; needs valgrind and root.
EXTRA_PROGRAMS += %D%/udp_instructions %D%/udp_start
%C%_udp_instructions_CFLAGS = $(release_cflags)
%C%_udp_instructions_LDADD =
%C%_udp_start_CFLAGS = $(release_cflags)
%C%_udp_start_LDADD =
EXTRA_DIST += %D%/udp_instructions.sh %D%/udp_lab.sh %D%/udp_start.sh
bench-udp: %D%/udp_instructions %D%/udp_start all
	$(srcdir)/%D%/udp_start.sh %D%/udp_start src/.libs/libvma.so
	$(srcdir)/%D%/udp_instructions.sh %D%/udp_instructions \
		src/.libs/libvma.so
.PHONY: bench-udp

# The same calls on the software ConnectX.
if HAVE_MLX5
EXTRA_PROGRAMS += %D%/card_instructions
%C%_card_instructions_CFLAGS = $(release_cflags)
%C%_card_instructions_LDADD =
bench-card: %D%/card_instructions %D%/udp_instructions all softcx
	$(srcdir)/%D%/card_instructions.sh %D%/card_instructions \
		%D%/udp_instructions src/.libs/libvma.so \
		tests/softcx/.libs/libsoftcx.so
endif
# What sockets on it cost before any traffic.
bench-card-start: %D%/udp_start all softcx
	for ring in mlx5 verbs; do \
		$(srcdir)/%D%/udp_start.sh %D%/udp_start src/.libs/libvma.so $$ring \
			tests/softcx/.libs/libsoftcx.so || exit; \
	done
EXTRA_DIST += %D%/card_instructions.sh

# Instructions of epoll and poll with many sockets; the same needs.
EXTRA_PROGRAMS += %D%/ready_instructions
%C%_ready_instructions_CFLAGS = $(release_cflags)
%C%_ready_instructions_LDADD =
EXTRA_DIST += %D%/ready_instructions.sh
bench-ready: %D%/ready_instructions %D%/udp_instructions all
	$(srcdir)/%D%/ready_instructions.sh %D%/ready_instructions \
		%D%/udp_instructions src/.libs/libvma.so
.PHONY: bench-ready

# What waiting costs in time, beside the kernel. Root, and two processors that do nothing
# else.
EXTRA_PROGRAMS += %D%/ready_rates
%C%_ready_rates_CFLAGS = $(release_cflags)
%C%_ready_rates_LDADD =
EXTRA_DIST += %D%/ready_rates.sh %D%/ready_rates.py
CLEANFILES += bench-ready-rates.json
bench-ready-rates: %D%/ready_rates all
	$(srcdir)/%D%/ready_rates.sh %D%/ready_rates src/.libs/libvma.so \
		bench-ready-rates.json
.PHONY: bench-ready-rates

# How long a datagram takes, and how many go one way: the library beside the kernel
# and beside bare AF_XDP, for which libxdp is needed. Root, and two processors that
# do nothing else.
if HAVE_XDP
EXTRA_PROGRAMS += %D%/udp_rates
%C%_udp_rates_SOURCES = %D%/udp_rates.h %D%/udp_rates.c %D%/udp_sockets.c \
	%D%/udp_raw.c src/base/btf.c src/os/kernel_types.c src/dev/xdp/kernel_btf.c src/dev/xdp/steer_load.c
nodist_%C%_udp_rates_SOURCES = src/dev/xdp/steer_object.c
%C%_udp_rates_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_udp_rates_CFLAGS = $(release_cflags)
%C%_udp_rates_LDADD = src/os/libos.a src/base/libbase.a -lxdp $(XDP_LIBS)
bench-udp-rates: %D%/udp_rates all
	$(srcdir)/%D%/udp_rates.sh %D%/udp_rates src/.libs/libvma.so \
		bench-udp-rates.json
endif
CLEANFILES += bench-udp-rates.json
EXTRA_DIST += %D%/udp_rates.sh %D%/udp_rates.py
.PHONY: bench-udp-rates

# The same of TCP, beside the kernel.
EXTRA_PROGRAMS += %D%/tcp_rates
%C%_tcp_rates_CFLAGS = $(release_cflags)
%C%_tcp_rates_LDADD =
EXTRA_DIST += %D%/tcp_rates.sh
CLEANFILES += bench-tcp-rates.json
tcp_floors =
if HAVE_XDP
# frames as long as those of a stream
EXTRA_PROGRAMS += %D%/udp_frames
%C%_udp_frames_SOURCES = $(%C%_udp_rates_SOURCES)
nodist_%C%_udp_frames_SOURCES = $(nodist_%C%_udp_rates_SOURCES)
%C%_udp_frames_CPPFLAGS = $(%C%_udp_rates_CPPFLAGS) -DRATES_LEN=1472
%C%_udp_frames_CFLAGS = $(%C%_udp_rates_CFLAGS)
%C%_udp_frames_LDADD = $(%C%_udp_rates_LDADD)
tcp_floors += %D%/udp_rates %D%/udp_frames
endif
bench-tcp-rates: %D%/tcp_rates $(tcp_floors) all
	$(srcdir)/%D%/tcp_rates.sh %D%/tcp_rates src/.libs/libvma.so \
		bench-tcp-rates.json $(tcp_floors)
.PHONY: bench-tcp-rates

# Real servers on connections beside the kernel's; nginx, wrk and redis, root, and two
# processors that do nothing else.
EXTRA_DIST += %D%/tcp_servers.sh
bench-tcp-servers: all
	$(srcdir)/%D%/tcp_servers.sh src/.libs/libvma.so
.PHONY: bench-tcp-servers

# What a flood of SYNs costs: instructions, for which valgrind is needed, and the rate of a
# connection beside it. Root, and two processors that do nothing else.
EXTRA_DIST += %D%/tcp_flood.sh
if HAVE_XDP
bench-tcp-flood: %D%/tcp_rates tests/system/tcp_flood all
	$(srcdir)/%D%/tcp_flood.sh %D%/tcp_rates tests/system/tcp_flood src/.libs/libvma.so
endif
.PHONY: bench-tcp-flood

# What it costs that a connection may become the kernel's; needs root.
EXTRA_PROGRAMS += %D%/way_back
%C%_way_back_CFLAGS = $(release_cflags)
%C%_way_back_LDADD =
EXTRA_DIST += %D%/way_back.sh
bench-way-back: %D%/way_back all
	$(srcdir)/%D%/way_back.sh %D%/way_back src/.libs/libvma.so
.PHONY: bench-way-back
