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
