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
